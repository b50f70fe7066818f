/* koine/dropout.h - dropout of elements, of channels and of samples. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_DROPOUT_H
#define KOINE_DROPOUT_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- elements and channels ---------------------------------------------------------------------------------------- *
 * Sets each element to 0 with probability p, 0 <= p <= 1, and scales the others by 1 / (1 - p). The identity unless
 * `training`. Advances the generator. Of the functions for channels each channel of each sample is kept or dropped as a
 * whole: kn_dropout1d takes [N, C, L] or [C, L], kn_dropout2d [N, C, ...], kn_dropout3d [N, C, D, H, W] or
 * [C, D, H, W]. */
typedef struct kn_dropout_params {
    double p;                /* default 0.5 */
    bool training;           /* default true */
    kn_generator *generator; /* default NULL: that of the device */
} kn_dropout_params;
#define KN_DROPOUT_DEFAULTS .p = 0.5, .training = true
KN_API kn_dropout_params kn_dropout_params_init(void);
KN_API kn_tensor *kn_dropout_with(kn_tensor *x, const kn_dropout_params *params);
KN_API kn_tensor *kn_dropout1d_with(kn_tensor *x, const kn_dropout_params *params);
KN_API kn_tensor *kn_dropout2d_with(kn_tensor *x, const kn_dropout_params *params);
KN_API kn_tensor *kn_dropout3d_with(kn_tensor *x, const kn_dropout_params *params);
#define kn_dropout(x, ...) KN_CALL(kn_dropout_with(x, &(kn_dropout_params){KN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_dropout1d(x, ...) KN_CALL(kn_dropout1d_with(x, &(kn_dropout_params){KN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_dropout2d(x, ...) KN_CALL(kn_dropout2d_with(x, &(kn_dropout_params){KN_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_dropout3d(x, ...) KN_CALL(kn_dropout3d_with(x, &(kn_dropout_params){KN_DROPOUT_DEFAULTS, __VA_ARGS__}))

/* --- stochastic depth --------------------------------------------------------------------------------------------- *
 * torchvision.ops.stochastic_depth (Huang et al., "Deep Networks with Stochastic Depth", 2016), for the branch of a
 * residual block: sets all of x to 0 with probability p ("batch"), or each of its samples x[i] ("row"), and scales what
 * is kept by 1 / (1 - p). The identity unless `training`. */
typedef enum kn_stochastic_depth_mode { KN_STOCHASTIC_DEPTH_BATCH, KN_STOCHASTIC_DEPTH_ROW } kn_stochastic_depth_mode;
typedef struct kn_stochastic_depth_params {
    bool training;           /* default true */
    kn_generator *generator; /* default NULL: that of the device */
} kn_stochastic_depth_params;
#define KN_STOCHASTIC_DEPTH_DEFAULTS .training = true
KN_API kn_stochastic_depth_params kn_stochastic_depth_params_init(void);
KN_API kn_tensor *kn_stochastic_depth_with(kn_tensor *x, double p, kn_stochastic_depth_mode mode,
                                           const kn_stochastic_depth_params *params);
#define kn_stochastic_depth(x, p, mode, ...)                                                                           \
    KN_CALL(kn_stochastic_depth_with(x, p, mode,                                                                       \
                                     &(kn_stochastic_depth_params){KN_STOCHASTIC_DEPTH_DEFAULTS, __VA_ARGS__}))

/* --- alpha dropout ------------------------------------------------------------------------------------------------ *
 * For networks with kn_selu: dropped elements become SELU's lowest value, and all are scaled and shifted so that mean 0
 * and variance 1 stay (Klambauer et al., 2017). kn_feature_alpha_dropout drops channels of [N, C, ...]. The identity
 * unless `training`, which is false here as in torch.nn.functional. */
typedef struct kn_alpha_dropout_params {
    double p;                /* default 0.5 */
    bool training;           /* default false */
    kn_generator *generator; /* default NULL: that of the device */
} kn_alpha_dropout_params;
#define KN_ALPHA_DROPOUT_DEFAULTS .p = 0.5
KN_API kn_alpha_dropout_params kn_alpha_dropout_params_init(void);
KN_API kn_tensor *kn_alpha_dropout_with(kn_tensor *x, const kn_alpha_dropout_params *params);
KN_API kn_tensor *kn_feature_alpha_dropout_with(kn_tensor *x, const kn_alpha_dropout_params *params);
#define kn_alpha_dropout(x, ...)                                                                                       \
    KN_CALL(kn_alpha_dropout_with(x, &(kn_alpha_dropout_params){KN_ALPHA_DROPOUT_DEFAULTS, __VA_ARGS__}))
#define kn_feature_alpha_dropout(x, ...)                                                                               \
    KN_CALL(kn_feature_alpha_dropout_with(x, &(kn_alpha_dropout_params){KN_ALPHA_DROPOUT_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
