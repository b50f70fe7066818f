/* koine/conv.h - convolutions. */
#ifndef KOINE_CONV_H
#define KOINE_CONV_H

#include <koine/common.h>
#include <koine/pointwise.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

#define KN_PADDING_VALID 0 /* as padding='valid': none */
#define KN_PADDING_SAME                                                                                                \
    (-1) /* as padding='same': the output has the input's size; stride 1; of an odd padding one more goes behind */
#define KN_PADDING_SYMMETRIC (-2) /* of paddings_after: as much behind the data as before it */

/* Of all convolutions. `paddings_after` is the padding behind the data, that is at the bottom and on the right, where
 * it differs from the one before it: .paddings = {1, 2}, .paddings_after = {0, 1}. */
typedef struct kn_conv_params {
    int64_t stride, padding, dilation;        /* defaults 1, 0, 1; padding may be KN_PADDING_SAME */
    int64_t output_padding;                   /* transposed convolution only; default 0 */
    int64_t strides[3], paddings[3];          /* by direction; used unless all 0 */
    int64_t dilations[3], output_paddings[3]; /* likewise */
    int64_t paddings_after[3];                /* by direction; default KN_PADDING_SYMMETRIC */
    int64_t groups;                           /* default 1 */
    kn_activation activation;                 /* of the result, bias included; default none */
} kn_conv_params;
#define KN_CONV_DEFAULTS                                                                                               \
    .stride = 1, .dilation = 1, .paddings_after = {KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC},  \
    .groups = 1
KN_API kn_conv_params kn_conv_params_init(void);

/* Cross-correlation of signals [N, C, L], images [N, C, H, W] or volumes [N, C, D, H, W], or of one without N; weight
 * [K, C / groups, kernel sizes...], bias [K] or NULL. The result has K channels, and along each direction
 * floor((size + paddings - dilation (kernel - 1) - 1) / stride) + 1 elements; KN_ERR_SHAPE where that is none. */
KN_API kn_tensor *kn_conv1d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv_params *params);
KN_API kn_tensor *kn_conv2d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv_params *params);
KN_API kn_tensor *kn_conv3d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv_params *params);

/* The gradient of a convolution with regard to its input, as an operation (torch.nn.functional.conv_transpose2d): what
 * has a convolution's sizes backwards. x [N, C, ...], weight [C, K / groups, kernel sizes...], bias [K] or NULL. The
 * result has K channels, and along each direction (size - 1) stride - paddings + dilation (kernel - 1) + output_padding
 * + 1 elements; KN_ERR_SHAPE where that is less than 1. A convolution with a stride brings several sizes down to one:
 * output_padding, which is smaller than stride or dilation, says which of them the result has. */
KN_API kn_tensor *kn_conv_transpose1d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias,
                                           const kn_conv_params *params);
KN_API kn_tensor *kn_conv_transpose2d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias,
                                           const kn_conv_params *params);
KN_API kn_tensor *kn_conv_transpose3d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias,
                                           const kn_conv_params *params);

#define KN_CONV_PARAMS(...)                                                                                            \
    &(kn_conv_params) { KN_CONV_DEFAULTS, __VA_ARGS__ }
#define kn_conv1d(x, weight, bias, ...) KN_CALL(kn_conv1d_with(x, weight, bias, KN_CONV_PARAMS(__VA_ARGS__)))
#define kn_conv2d(x, weight, bias, ...) KN_CALL(kn_conv2d_with(x, weight, bias, KN_CONV_PARAMS(__VA_ARGS__)))
#define kn_conv3d(x, weight, bias, ...) KN_CALL(kn_conv3d_with(x, weight, bias, KN_CONV_PARAMS(__VA_ARGS__)))
#define kn_conv_transpose1d(x, weight, bias, ...)                                                                      \
    KN_CALL(kn_conv_transpose1d_with(x, weight, bias, KN_CONV_PARAMS(__VA_ARGS__)))
#define kn_conv_transpose2d(x, weight, bias, ...)                                                                      \
    KN_CALL(kn_conv_transpose2d_with(x, weight, bias, KN_CONV_PARAMS(__VA_ARGS__)))
#define kn_conv_transpose3d(x, weight, bias, ...)                                                                      \
    KN_CALL(kn_conv_transpose3d_with(x, weight, bias, KN_CONV_PARAMS(__VA_ARGS__)))

KN_END_DECLS

#endif
