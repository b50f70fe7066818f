/* koine/nn/convolution.h - convolutions. Constructors as in koine/module.h. */
#ifndef KOINE_NN_CONVOLUTION_H
#define KOINE_NN_CONVOLUTION_H

#include <koine/common.h>
#include <koine/conv.h>
#include <koine/module.h>
#include <koine/pad.h>

KN_BEGIN_DECLS

/* For all convolutions; sizes are as in kn_conv_params. The weight is [out_channels, in_channels / groups, kernel...],
 * that of transposed convolutions [in_channels, out_channels / groups, kernel...], the bias [out_channels]. */
typedef struct kn_nn_conv_params {
    int64_t in_channels, out_channels;
    int64_t kernel_size, stride, padding, dilation; /* stride, dilation default 1; padding may be KN_PADDING_SAME */
    int64_t output_padding;                         /* transposed convolution only; default 0 */
    int64_t kernel_sizes[3], strides[3];            /* by dimension; used unless all 0 */
    int64_t paddings[3], dilations[3], output_paddings[3];
    int64_t paddings_after[3]; /* by dimension; default KN_PADDING_SYMMETRIC */
    int64_t groups;            /* default 1 */
    bool bias;                 /* default true */
    kn_padding_mode
        padding_mode; /* what the padding repeats: default KN_PAD_CONSTANT, zeros, the only one for transposed
                                     convolution; with another, forward pads, then convolves */
} kn_nn_conv_params;
#define KN_NN_CONV_DEFAULTS                                                                                            \
    .stride = 1, .dilation = 1, .paddings_after = {KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC},  \
    .groups = 1, .bias = true
#define KN_NN_CONV_PARAMS(...)                                                                                         \
    &(kn_nn_conv_params) { KN_NN_CONV_DEFAULTS, __VA_ARGS__ }
KN_API kn_nn_conv_params kn_nn_conv_params_init(void);
KN_API kn_module *kn_nn_conv1d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv2d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv3d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv_transpose1d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv_transpose2d_with(const kn_nn_conv_params *params);
KN_API kn_module *kn_nn_conv_transpose3d_with(const kn_nn_conv_params *params);
#define kn_nn_conv1d(...) KN_CALL(kn_nn_conv1d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv2d(...) KN_CALL(kn_nn_conv2d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv3d(...) KN_CALL(kn_nn_conv3d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv_transpose1d(...) KN_CALL(kn_nn_conv_transpose1d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv_transpose2d(...) KN_CALL(kn_nn_conv_transpose2d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))
#define kn_nn_conv_transpose3d(...) KN_CALL(kn_nn_conv_transpose3d_with(KN_NN_CONV_PARAMS(__VA_ARGS__)))

KN_END_DECLS

#endif
