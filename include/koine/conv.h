/* koine/conv.h - convolutions, in one to three dimensions. Tensor expressions (koine/tensor.h).
 *
 * Signals are [N, C, L], images [N, C, H, W], volumes [N, C, D, H, W], contiguous (others are copied), of float64,
 * float32 or float16, which is computed in float32 and rounded once, gradients too. All floating inputs have one dtype.
 *
 * Parameters are named: kn_conv2d(x, weight, bias, .stride = 2, .padding = 1). A size that differs by dimension is
 * given in the plural field, .strides = {2, 1}, as {length}, {height, width} or {depth, height, width}; it overrides
 * the singular one unless it is all 0. */
#ifndef KOINE_CONV_H
#define KOINE_CONV_H

#include <koine/common.h>
#include <koine/pointwise.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

#define KN_PADDING_VALID 0 /* padding='valid': none */
#define KN_PADDING_SAME                                                                                                \
    (-1) /* padding='same': the output has the input's size; stride 1 only; odd padding has one more at the end */
#define KN_PADDING_SYMMETRIC (-2) /* for paddings_after: the same as before the data */

/* For all convolutions. `paddings_after` is the padding at the end of each dimension (bottom, right), where it differs
 * from that at the start: .paddings = {1, 2}, .paddings_after = {0, 1}. */
typedef struct kn_conv_params {
    int64_t stride, padding, dilation;        /* defaults 1, 0, 1; padding may be KN_PADDING_SAME */
    int64_t output_padding;                   /* transposed convolution only; default 0 */
    int64_t strides[3], paddings[3];          /* by dimension; used unless all 0 */
    int64_t dilations[3], output_paddings[3]; /* likewise */
    int64_t paddings_after[3];                /* by dimension; default KN_PADDING_SYMMETRIC */
    int64_t groups;                           /* default 1 */
    kn_activation activation;                 /* of the result, bias included; default none */
} kn_conv_params;
#define KN_CONV_DEFAULTS                                                                                               \
    .stride = 1, .dilation = 1, .paddings_after = {KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC},  \
    .groups = 1
KN_API kn_conv_params kn_conv_params_init(void);

/* Cross-correlation of x, with or without N; weight [K, C / groups, kernel sizes...], bias [K] or NULL. The result has
 * K channels, and in each dimension floor((size + padding before and after - dilation (kernel - 1) - 1) / stride) + 1
 * elements; fewer than 1 is KN_ERR_SHAPE. */
KN_API kn_tensor *kn_conv1d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv_params *params);
KN_API kn_tensor *kn_conv2d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv_params *params);
KN_API kn_tensor *kn_conv3d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv_params *params);

/* Transposed convolution: the gradient of a convolution with respect to its input, as an operator. x with or without N,
 * weight [C, K / groups, kernel sizes...], bias [K] or NULL. The result has K channels, and in each dimension (size -
 * 1) stride - padding before and after + dilation (kernel - 1) + output_padding + 1 elements; fewer than 1 is
 * KN_ERR_SHAPE. Convolutions with a stride give one output size for several input sizes; output_padding, less than the
 * stride or the dilation, selects among them. */
KN_API kn_tensor *kn_conv_transpose1d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias,
                                           const kn_conv_params *params);
KN_API kn_tensor *kn_conv_transpose2d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias,
                                           const kn_conv_params *params);
KN_API kn_tensor *kn_conv_transpose3d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias,
                                           const kn_conv_params *params);

/* torch.conv_tbc: of sequences x [time, batch, C], with a weight [kernel size, C, K], bias [K] or NULL, `pad` zeros
 * before and after. [time, batch, K] */
KN_API kn_tensor *kn_conv_tbc(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, int64_t pad);

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
