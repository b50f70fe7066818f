/* koine/functional.h - torch.nn.functional: convolution, pooling, normalisation, activation, dropout, losses.
 *
 * Tensor expressions as in koine/ops.h. Signals are N, C, L, images N, C, H, W, volumes N, C, D, H, W, all contiguous
 * (others are copied); f32, f64, and f16, which is computed in f32 and rounded once, gradients too. Floating inputs of
 * one call have one dtype. Optional parameters are named: kn_conv2d(x, weight, bias, .stride = 2, .padding = 1). Where
 * a size may differ by direction, there is a field in the plural too, .strides = {2, 1}: {length}, {height, width} or
 * {depth, height, width}, as many as the function has dimensions. It wins over the plain one unless all of it is 0. */
#ifndef KOINE_FUNCTIONAL_H
#define KOINE_FUNCTIONAL_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

#define KN_PADDING_VALID 0 /* as padding='valid': none */
#define KN_PADDING_SAME                                                                                                \
    (-1) /* as padding='same': the output has the input's size; stride 1; of an odd padding one more goes behind */
#define KN_PADDING_SYMMETRIC (-2) /* of paddings_after: as much behind the data as before it */

/* What an operation may do to its result before it stores it, which saves the activation's own passes over memory.
 * Results and gradients are those of kn_relu and kn_relu6 applied afterwards. Modules do it by themselves where an
 * activation follows (koine/nn.h). */
typedef enum kn_activation { KN_ACTIVATION_NONE, KN_ACTIVATION_RELU, KN_ACTIVATION_RELU6 } kn_activation;

/* --- linear and convolution ------------------------------------------------------------------- */

/* y = x weight^T + bias. x [..., in], weight [out, in], bias [out] or NULL. */
KN_API kn_tensor *kn_linear(kn_tensor *x, kn_tensor *weight, kn_tensor *bias);

typedef struct kn_linear_options {
    kn_activation activation; /* of the result, bias included; default none */
} kn_linear_options;
#define KN_LINEAR_DEFAULTS .activation = KN_ACTIVATION_NONE
KN_API kn_linear_options kn_linear_options_init(void);
KN_API kn_tensor *kn_linear_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_linear_options *options);

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

/* --- pooling ---------------------------------------------------------------------------------- */

/* Of all poolings but the adaptive ones. x is [N, C, L], [N, C, H, W] or [N, C, D, H, W], or without N. Along each
 * direction the result has floor((size + paddings - dilation (kernel - 1) - 1) / stride) + 1 elements; with ceil_mode
 * that is rounded up, but the last window starts inside x or the padding before it. */
typedef struct kn_pool_params {
    int64_t kernel_size, stride, padding; /* stride 0: kernel_size; padding: at most half the kernel */
    int64_t dilation;                     /* max pooling only; default 1 */
    int64_t kernel_sizes[3], strides[3];  /* by direction; used unless all 0 */
    int64_t paddings[3], dilations[3];    /* likewise */
    int64_t paddings_after[3];            /* by direction; default KN_PADDING_SYMMETRIC */
    bool ceil_mode;                       /* default false */
    bool count_include_pad;               /* average pooling: default true */
    int64_t divisor_override;             /* average pooling: default 0, none */
    kn_activation activation;             /* of the result; default none */
} kn_pool_params;
#define KN_POOL_DEFAULTS                                                                                               \
    .dilation = 1, .paddings_after = {KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC},               \
    .count_include_pad = true
KN_API kn_pool_params kn_pool_params_init(void);

/* Padding counts as minus infinity; NaN propagates; the gradient goes to the first maximum of each window, or to its
 * last NaN. */
KN_API kn_tensor *kn_max_pool1d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_max_pool2d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_max_pool3d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_avg_pool1d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_avg_pool2d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_avg_pool3d_with(kn_tensor *x, const kn_pool_params *params);

/* The same with where each maximum lies, i64 [result's shape] (return_indices=True): its number among the elements of
 * its channel, row by row; 0 for a window that covers nothing but padding. Takes no activation. *indices is owned as
 * the result is, and set to NULL on failure. */
KN_API kn_tensor *kn_max_pool1d_with_indices_with(kn_tensor *x, kn_tensor **indices, const kn_pool_params *params);
KN_API kn_tensor *kn_max_pool2d_with_indices_with(kn_tensor *x, kn_tensor **indices, const kn_pool_params *params);
KN_API kn_tensor *kn_max_pool3d_with_indices_with(kn_tensor *x, kn_tensor **indices, const kn_pool_params *params);

#define KN_POOL_PARAMS(...)                                                                                            \
    &(kn_pool_params) { KN_POOL_DEFAULTS, __VA_ARGS__ }
#define kn_max_pool1d(x, ...) KN_CALL(kn_max_pool1d_with(x, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_max_pool2d(x, ...) KN_CALL(kn_max_pool2d_with(x, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_max_pool3d(x, ...) KN_CALL(kn_max_pool3d_with(x, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_avg_pool1d(x, ...) KN_CALL(kn_avg_pool1d_with(x, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_avg_pool2d(x, ...) KN_CALL(kn_avg_pool2d_with(x, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_avg_pool3d(x, ...) KN_CALL(kn_avg_pool3d_with(x, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_max_pool1d_with_indices(x, indices, ...)                                                                    \
    KN_CALL(kn_max_pool1d_with_indices_with(x, indices, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_max_pool2d_with_indices(x, indices, ...)                                                                    \
    KN_CALL(kn_max_pool2d_with_indices_with(x, indices, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_max_pool3d_with_indices(x, indices, ...)                                                                    \
    KN_CALL(kn_max_pool3d_with_indices_with(x, indices, KN_POOL_PARAMS(__VA_ARGS__)))

/* Adaptive: window i of n covers floor(i size / n) to ceil((i + 1) size / n). */
KN_API kn_tensor *kn_adaptive_max_pool1d(kn_tensor *x, int64_t output_length);
KN_API kn_tensor *kn_adaptive_max_pool2d(kn_tensor *x, int64_t output_height, int64_t output_width);
KN_API kn_tensor *kn_adaptive_max_pool3d(kn_tensor *x, int64_t output_depth, int64_t output_height,
                                         int64_t output_width);
KN_API kn_tensor *kn_adaptive_max_pool1d_with_indices(kn_tensor *x, int64_t output_length, kn_tensor **indices);
KN_API kn_tensor *kn_adaptive_max_pool2d_with_indices(kn_tensor *x, int64_t output_height, int64_t output_width,
                                                      kn_tensor **indices);
KN_API kn_tensor *kn_adaptive_max_pool3d_with_indices(kn_tensor *x, int64_t output_depth, int64_t output_height,
                                                      int64_t output_width, kn_tensor **indices);
KN_API kn_tensor *kn_adaptive_avg_pool1d(kn_tensor *x, int64_t output_length);
KN_API kn_tensor *kn_adaptive_avg_pool2d(kn_tensor *x, int64_t output_height, int64_t output_width);
KN_API kn_tensor *kn_adaptive_avg_pool3d(kn_tensor *x, int64_t output_depth, int64_t output_height,
                                         int64_t output_width);

/* --- normalisation ---------------------------------------------------------------------------- */

typedef struct kn_batch_norm_params {
    kn_tensor *running_mean, *running_var; /* [C], floating; both or neither (default NULL); needed in evaluation, but
                                              for x without elements */
    kn_tensor *weight, *bias;              /* [C], default NULL: 1 and 0 */
    bool training;                         /* default false */
    double momentum;                       /* default 0.1 */
    double eps;                            /* default 1e-5 */
    kn_activation activation;              /* of the result; default none */
} kn_batch_norm_params;
#define KN_BATCH_NORM_DEFAULTS .momentum = 0.1, .eps = 1e-5
KN_API kn_batch_norm_params kn_batch_norm_params_init(void);

/* y = (x - mean) / sqrt(variance + eps) weight + bias for x [N, C] or [N, C, d...], with mean and (biased) variance of
 * each channel over all other dimensions. In training they are the batch's, more than one value per channel is needed
 * for them, and the running estimates, where given, are changed in place on the device, r = (1 - momentum) r + momentum
 * s, running_var with the unbiased variance. In evaluation the running estimates are used as they are. A mean far from
 * 0 costs no accuracy: sums are of x less one of its values (docs/normalization.md). x without elements gives y without
 * elements and leaves the estimates. */
KN_API kn_tensor *kn_batch_norm_with(kn_tensor *x, const kn_batch_norm_params *params);
#define kn_batch_norm(x, ...)                                                                                          \
    KN_CALL(kn_batch_norm_with(x, &(kn_batch_norm_params){KN_BATCH_NORM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_layer_norm_params {
    kn_tensor *weight, *bias; /* of the normalised shape, default NULL: 1 and 0 */
    double eps;               /* default 1e-5 */
} kn_layer_norm_params;
#define KN_LAYER_NORM_DEFAULTS .eps = 1e-5
KN_API kn_layer_norm_params kn_layer_norm_params_init(void);

/* The same formula over the last `ndim` dimensions of x, which must be `shape`: kn_layer_norm(x, KN_SHAPE(1024),
 * .weight = w, .bias = b). */
KN_API kn_tensor *kn_layer_norm_with(kn_tensor *x, int ndim, const int64_t *shape, const kn_layer_norm_params *params);
#define kn_layer_norm(x, shape, ...)                                                                                   \
    KN_CALL(kn_layer_norm_with(x, shape, &(kn_layer_norm_params){KN_LAYER_NORM_DEFAULTS, __VA_ARGS__}))

/* --- activation and dropout ------------------------------------------------------------------- */

KN_API kn_tensor *kn_softmax(kn_tensor *x, int dim); /* the maximum is subtracted first */
KN_API kn_tensor *kn_log_softmax(kn_tensor *x, int dim);

/* min_val where x < min_val, max_val where x > max_val, else x (NaN too). The gradient is 0 at the bounds themselves,
 * unlike kn_clamp's. min_val <= max_val. Not for bool. kn_relu6 is the one between 0 and 6. */
KN_API kn_tensor *kn_hardtanh(kn_tensor *x, double min_val, double max_val);
KN_API kn_tensor *kn_relu6(kn_tensor *x);

/* activation(a + b) in one pass, the end of a residual block: kn_relu(kn_add(a, b)) with the same values and gradients.
 * Floating dtypes. */
KN_API kn_tensor *kn_add_activated(kn_tensor *a, kn_tensor *b, kn_activation activation);

/* Each element (dropout2d: each channel of each image) is zero with probability p, else scaled by 1 / (1 - p). The
 * identity when not training. 0 <= p <= 1. The draw advances the device's generator. */
typedef struct kn_dropout_params {
    double p;      /* default 0.5 */
    bool training; /* default true */
} kn_dropout_params;
#define KN_DROPOUT_DEFAULTS .p = 0.5, .training = true
KN_API kn_dropout_params kn_dropout_params_init(void);
KN_API kn_tensor *kn_dropout_with(kn_tensor *x, const kn_dropout_params *params);
KN_API kn_tensor *kn_dropout2d_with(kn_tensor *x, const kn_dropout_params *params);
#define kn_dropout(x, ...) KN_CALL(kn_dropout_with(x, &(kn_dropout_params){KN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_dropout2d(x, ...) KN_CALL(kn_dropout2d_with(x, &(kn_dropout_params){KN_DROPOUT_DEFAULTS, __VA_ARGS__}))

/* --- losses ----------------------------------------------------------------------------------- */

typedef enum kn_reduction {
    KN_REDUCTION_MEAN = 0,
    KN_REDUCTION_SUM,
    KN_REDUCTION_NONE
} kn_reduction; /* the mean over nothing is NaN */

typedef struct kn_cross_entropy_params {
    kn_tensor *weight;      /* [C], default NULL: 1; the mean is then the weighted mean */
    int64_t ignore_index;   /* default -100 */
    double label_smoothing; /* default 0 */
    kn_reduction reduction; /* default mean */
} kn_cross_entropy_params;
#define KN_CROSS_ENTROPY_DEFAULTS .ignore_index = -100
KN_API kn_cross_entropy_params kn_cross_entropy_params_init(void);

/* input [N, C] or [N, C, d...] logits (nll_loss: log-probabilities). target: int64 (or int32, uint8) class indices [N]
 * or [N, d...]; cross_entropy also takes probabilities of the input's shape and dtype. A class outside 0 .. C - 1 is
 * reported at the next synchronise or read. */
KN_API kn_tensor *kn_cross_entropy_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params);
KN_API kn_tensor *kn_nll_loss_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params);
#define kn_cross_entropy(input, target, ...)                                                                           \
    KN_CALL(kn_cross_entropy_with(input, target, &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}))
#define kn_nll_loss(input, target, ...)                                                                                \
    KN_CALL(kn_nll_loss_with(input, target, &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}))

KN_API kn_tensor *kn_mse_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction); /* shapes broadcast */

/* max(x, 0) - x target + log(1 + exp(-|x|)), with pos_weight w: (1 - t) x + (1 + (w - 1) t) (log(1 + exp(-|x|)) +
 * max(-x, 0)). weight and pos_weight broadcast to the input; both may be NULL. */
KN_API kn_tensor *kn_binary_cross_entropy_with_logits(kn_tensor *input, kn_tensor *target, kn_tensor *weight,
                                                      kn_tensor *pos_weight, kn_reduction reduction);

KN_END_DECLS

#endif
