/* koine/functional.h - torch.nn.functional: convolution, pooling, normalisation, activation, dropout, losses.
 *
 * Tensor expressions as in koine/ops.h. Images are N, C, H, W and contiguous (others are copied); f32, f64,
 * and f16, which is computed in f32 and rounded once, gradients too. Floating inputs of one call have one dtype.
 * Optional parameters are named: kn_conv2d(x, weight, bias, .stride = 2, .padding = 1). Where a size may differ by
 * direction, the field with the suffix _2d ({height, width}) wins over the plain one when its first element is not 0
 * (for padding: when `padding_2d_set`). */
#ifndef KOINE_FUNCTIONAL_H
#define KOINE_FUNCTIONAL_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

#define KN_PADDING_SAME (-1) /* as padding='same': the output has the input's size; stride 1 */

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

typedef struct kn_conv2d_params {
    int64_t stride, padding, dilation;                   /* defaults 1, 0, 1; padding may be KN_PADDING_SAME */
    int64_t stride_2d[2], padding_2d[2], dilation_2d[2]; /* {height, width}; used when not {0, 0} */
    int64_t groups;                                      /* default 1 */
    kn_activation activation;                            /* of the result, bias included; default none */
} kn_conv2d_params;
#define KN_CONV2D_DEFAULTS .stride = 1, .dilation = 1, .groups = 1
KN_API kn_conv2d_params kn_conv2d_params_init(void);

/* Cross-correlation. x [N, C, H, W], weight [K, C / groups, R, S], bias [K] or NULL; the result is [N, K, P, Q] with
 * P = floor((H + 2 padding - dilation (R - 1) - 1) / stride) + 1, Q alike. */
KN_API kn_tensor *kn_conv2d_with(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, const kn_conv2d_params *params);
#define kn_conv2d(x, weight, bias, ...)                                                                                \
    KN_CALL(kn_conv2d_with(x, weight, bias, &(kn_conv2d_params){KN_CONV2D_DEFAULTS, __VA_ARGS__}))

/* --- pooling ---------------------------------------------------------------------------------- */

typedef struct kn_pool2d_params {
    int64_t kernel_size, stride, padding, dilation; /* stride 0: kernel_size; dilation default 1, max pooling only */
    int64_t kernel_size_2d[2], stride_2d[2], padding_2d[2], dilation_2d[2]; /* {height, width}; used when not {0, 0} */
    bool ceil_mode;                                                         /* default false */
    bool count_include_pad;                                                 /* average pooling: default true */
    int64_t divisor_override;                                               /* average pooling: default 0, none */
    kn_activation activation;                                               /* of the result; default none */
} kn_pool2d_params;
#define KN_POOL2D_DEFAULTS .dilation = 1, .count_include_pad = true
KN_API kn_pool2d_params kn_pool2d_params_init(void);

/* Padding counts as minus infinity; NaN propagates; the gradient goes to the first maximum of each window, or to its
 * last NaN. */
KN_API kn_tensor *kn_max_pool2d_with(kn_tensor *x, const kn_pool2d_params *params);
KN_API kn_tensor *kn_avg_pool2d_with(kn_tensor *x, const kn_pool2d_params *params);
#define kn_max_pool2d(x, ...) KN_CALL(kn_max_pool2d_with(x, &(kn_pool2d_params){KN_POOL2D_DEFAULTS, __VA_ARGS__}))
#define kn_avg_pool2d(x, ...) KN_CALL(kn_avg_pool2d_with(x, &(kn_pool2d_params){KN_POOL2D_DEFAULTS, __VA_ARGS__}))

/* Window i of n covers floor(i size / n) to ceil((i + 1) size / n). */
KN_API kn_tensor *kn_adaptive_max_pool2d(kn_tensor *x, int64_t output_height, int64_t output_width);
KN_API kn_tensor *kn_adaptive_avg_pool2d(kn_tensor *x, int64_t output_height, int64_t output_width);

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
