/* koine/norm.h - normalisation: of batches, layers, groups and instances; vectors of norm 1; softmax. Tensor
 * expressions (koine/tensor.h) of floating dtypes. */
#ifndef KOINE_NORM_H
#define KOINE_NORM_H

#include <koine/common.h>
#include <koine/pointwise.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_batch_norm_params {
    /* [C], floating; both or neither (default NULL); required unless `training` or x has no elements */
    kn_tensor *running_mean, *running_var;
    kn_tensor *weight, *bias; /* [C], default NULL: 1 and 0 */
    bool training;            /* default false */
    double momentum;          /* default 0.1 */
    double eps;               /* default 1e-5 */
    kn_activation activation; /* of the result; default none */
    /* Receive the statistics used, [C], without gradients: the mean and 1 / sqrt(variance + eps); NaN if x has no
     * elements. For float16 and bfloat16 they are float32. Owned as the result is; NULL on failure. Default NULL. */
    kn_tensor **mean, **rstd;
} kn_batch_norm_params;
#define KN_BATCH_NORM_DEFAULTS .momentum = 0.1, .eps = 1e-5
KN_API kn_batch_norm_params kn_batch_norm_params_init(void);

/* Ioffe and Szegedy, "Batch Normalization" (2015): y = (x - mean) / sqrt(variance + eps) weight + bias, for x [N, C] or
 * [N, C, d...], with the mean and the biased variance of each channel over all other dimensions. With `training` these
 * are the batch's (more than one value per channel is required), and running estimates, if given, are updated in place
 * on the device: r = (1 - momentum) r + momentum s, with the unbiased variance for running_var. Otherwise the running
 * estimates are used. Means far from 0 do not reduce accuracy (docs/normalization.md). If x has no elements the
 * estimates are unchanged. */
KN_API kn_tensor *kn_batch_norm_with(kn_tensor *x, const kn_batch_norm_params *params);
#define kn_batch_norm(x, ...)                                                                                          \
    KN_CALL(kn_batch_norm_with(x, &(kn_batch_norm_params){KN_BATCH_NORM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_layer_norm_params {
    kn_tensor *weight, *bias; /* of the normalised shape, default NULL: 1 and 0 */
    double eps;               /* default 1e-5 */
    /* Receive the statistics as those of kn_batch_norm_params do, in x's shape with 1 for the normalised dimensions. */
    kn_tensor **mean, **rstd;
} kn_layer_norm_params;
#define KN_LAYER_NORM_DEFAULTS .eps = 1e-5
KN_API kn_layer_norm_params kn_layer_norm_params_init(void);

/* Ba et al., "Layer Normalization" (2016): the same formula over the last `ndim` dimensions of x, whose sizes must be
 * `shape`: kn_layer_norm(x, KN_SHAPE(1024), .weight = w, .bias = b). */
KN_API kn_tensor *kn_layer_norm_with(kn_tensor *x, int ndim, const int64_t *shape, const kn_layer_norm_params *params);
#define kn_layer_norm(x, shape, ...)                                                                                   \
    KN_CALL(kn_layer_norm_with(x, shape, &(kn_layer_norm_params){KN_LAYER_NORM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_rms_norm_params {
    kn_tensor *weight; /* of the normalised shape, default NULL: 1 */
    double eps;        /* default -1: the machine epsilon of x's dtype, of float32 for float16 and bfloat16 */
} kn_rms_norm_params;
#define KN_RMS_NORM_DEFAULTS .eps = -1
KN_API kn_rms_norm_params kn_rms_norm_params_init(void);

/* Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019): x / sqrt(mean(x^2) + eps) weight, with the mean
 * over the last `ndim` dimensions of x, whose sizes must be `shape`. */
KN_API kn_tensor *kn_rms_norm_with(kn_tensor *x, int ndim, const int64_t *shape, const kn_rms_norm_params *params);
#define kn_rms_norm(x, shape, ...)                                                                                     \
    KN_CALL(kn_rms_norm_with(x, shape, &(kn_rms_norm_params){KN_RMS_NORM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_group_norm_params {
    kn_tensor *weight, *bias; /* [C], default NULL: 1 and 0 */
    double eps;               /* default 1e-5 */
} kn_group_norm_params;
#define KN_GROUP_NORM_DEFAULTS .eps = 1e-5
KN_API kn_group_norm_params kn_group_norm_params_init(void);

/* Wu and He, "Group Normalization" (2018): the formula of kn_layer_norm for x [N, C] or [N, C, d...], with statistics
 * of each sample and each of num_groups groups of C / num_groups neighbouring channels. */
KN_API kn_tensor *kn_group_norm_with(kn_tensor *x, int64_t num_groups, const kn_group_norm_params *params);
#define kn_group_norm(x, num_groups, ...)                                                                              \
    KN_CALL(kn_group_norm_with(x, num_groups, &(kn_group_norm_params){KN_GROUP_NORM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_instance_norm_params {
    /* [C], both or neither (default NULL); required without use_input_stats */
    kn_tensor *running_mean, *running_var;
    kn_tensor *weight, *bias; /* [C], default NULL: 1 and 0 */
    bool use_input_stats;     /* default true; false: normalises by the running estimates */
    double momentum;          /* default 0.1 */
    double eps;               /* default 1e-5 */
} kn_instance_norm_params;
#define KN_INSTANCE_NORM_DEFAULTS .use_input_stats = true, .momentum = 0.1, .eps = 1e-5
KN_API kn_instance_norm_params kn_instance_norm_params_init(void);

/* Ulyanov et al., "Instance Normalization" (2016): kn_group_norm of x [N, C, d...] with one channel per group, and more
 * than one value in each. Running estimates, if given, are updated in place as those of kn_batch_norm, with the means
 * over the batch of each sample's mean and unbiased variance. */
KN_API kn_tensor *kn_instance_norm_with(kn_tensor *x, const kn_instance_norm_params *params);
#define kn_instance_norm(x, ...)                                                                                       \
    KN_CALL(kn_instance_norm_with(x, &(kn_instance_norm_params){KN_INSTANCE_NORM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_local_response_norm_params {
    double alpha; /* default 1e-4 */
    double beta;  /* default 0.75 */
    double k;     /* default 1 */
} kn_local_response_norm_params;
#define KN_LOCAL_RESPONSE_NORM_DEFAULTS .alpha = 1e-4, .beta = 0.75, .k = 1
KN_API kn_local_response_norm_params kn_local_response_norm_params_init(void);

/* Krizhevsky et al. (2012): x / (k + alpha / size sum)^beta for x [N, C, d...]; the sum is of the squares of the `size`
 * neighbouring channels from size / 2 before each on. */
KN_API kn_tensor *kn_local_response_norm_with(kn_tensor *x, int64_t size, const kn_local_response_norm_params *params);
#define kn_local_response_norm(x, size, ...)                                                                           \
    KN_CALL(kn_local_response_norm_with(                                                                               \
        x, size, &(kn_local_response_norm_params){KN_LOCAL_RESPONSE_NORM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_normalize_params {
    double p;   /* default 2 */
    int dim;    /* default 1 */
    double eps; /* default 1e-12 */
} kn_normalize_params;
#define KN_NORMALIZE_DEFAULTS .p = 2, .dim = 1, .eps = 1e-12
KN_API kn_normalize_params kn_normalize_params_init(void);

/* x / max(p-norm of x along dim, eps) */
KN_API kn_tensor *kn_normalize_with(kn_tensor *x, const kn_normalize_params *params);
#define kn_normalize(x, ...) KN_CALL(kn_normalize_with(x, &(kn_normalize_params){KN_NORMALIZE_DEFAULTS, __VA_ARGS__}))

/* exp(x) / sum(exp(x)) along `dim`, and its logarithm; the maximum is subtracted first. */
KN_API kn_tensor *kn_softmax(kn_tensor *x, int dim);
KN_API kn_tensor *kn_log_softmax(kn_tensor *x, int dim);
KN_API kn_tensor *kn_softmin(kn_tensor *x, int dim); /* kn_softmax(-x) */

typedef struct kn_gumbel_softmax_params {
    double tau;              /* default 1: the temperature; greater than 0 */
    bool hard;               /* default false; true: one-hot results, with the gradients of the soft ones */
    int dim;                 /* default -1 */
    kn_generator *generator; /* default NULL: the device's */
} kn_gumbel_softmax_params;
#define KN_GUMBEL_SOFTMAX_DEFAULTS .tau = 1, .dim = -1
KN_API kn_gumbel_softmax_params kn_gumbel_softmax_params_init(void);

/* Jang et al., "Categorical Reparameterization with Gumbel-Softmax" (2016): samples softmax((x + g) / tau) with
 * g = -log(-log(u)), u uniform: as tau goes to 0 one-hot, with the probabilities softmax(x). */
KN_API kn_tensor *kn_gumbel_softmax_with(kn_tensor *x, const kn_gumbel_softmax_params *params);
#define kn_gumbel_softmax(x, ...)                                                                                      \
    KN_CALL(kn_gumbel_softmax_with(x, &(kn_gumbel_softmax_params){KN_GUMBEL_SOFTMAX_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
