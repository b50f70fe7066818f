/* koine/norm.h - normalisation: batch norm, layer norm, softmax. Tensor expressions (koine/tensor.h) of floating
 * dtypes. */
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

/* exp(x) / sum(exp(x)) along `dim`, and its logarithm; the maximum is subtracted first. */
KN_API kn_tensor *kn_softmax(kn_tensor *x, int dim);
KN_API kn_tensor *kn_log_softmax(kn_tensor *x, int dim);

KN_END_DECLS

#endif
