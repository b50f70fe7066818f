/* koine/nn/normalization.h - normalisation. Constructors as in koine/module.h. */
#ifndef KOINE_NN_NORMALIZATION_H
#define KOINE_NN_NORMALIZATION_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/norm.h>

KN_BEGIN_DECLS

/* Batch normalisation of [N, C] or [N, C, L] (1d), [N, C, H, W] (2d), [N, C, D, H, W] (3d); kn_batch_norm has the
 * formula. Parameters weight (1) and bias (0) if `affine`; buffers running_mean (0), running_var (1) and
 * num_batches_tracked (int64, 0) if `track_running_stats`. In training mode each pass updates the buffers in place on
 * the device, without waiting; so does each replay of a graph. In evaluation mode the running estimates are used, or,
 * without tracking, the batch's statistics. With kn_nn_data_parallel each device normalises its own part of the batch,
 * and the first device's statistics update the buffers, as in PyTorch. */
typedef struct kn_nn_batch_norm_params {
    int64_t num_features;     /* C */
    double eps;               /* default 1e-5 */
    double momentum;          /* default 0.1: running = (1 - momentum) running + momentum batch */
    bool cumulative_average;  /* default false; PyTorch's momentum=None: running estimates are means of all batches */
    bool affine;              /* default true */
    bool track_running_stats; /* default true */
} kn_nn_batch_norm_params;
#define KN_NN_BATCH_NORM_DEFAULTS .eps = 1e-5, .momentum = 0.1, .affine = true, .track_running_stats = true
KN_API kn_nn_batch_norm_params kn_nn_batch_norm_params_init(void);
KN_API kn_module *kn_nn_batch_norm1d_with(const kn_nn_batch_norm_params *params);
KN_API kn_module *kn_nn_batch_norm2d_with(const kn_nn_batch_norm_params *params);
KN_API kn_module *kn_nn_batch_norm3d_with(const kn_nn_batch_norm_params *params);
#define kn_nn_batch_norm1d(...)                                                                                        \
    KN_CALL(kn_nn_batch_norm1d_with(&(kn_nn_batch_norm_params){KN_NN_BATCH_NORM_DEFAULTS, __VA_ARGS__}))
#define kn_nn_batch_norm2d(...)                                                                                        \
    KN_CALL(kn_nn_batch_norm2d_with(&(kn_nn_batch_norm_params){KN_NN_BATCH_NORM_DEFAULTS, __VA_ARGS__}))

#define kn_nn_batch_norm3d(...)                                                                                        \
    KN_CALL(kn_nn_batch_norm3d_with(&(kn_nn_batch_norm_params){KN_NN_BATCH_NORM_DEFAULTS, __VA_ARGS__}))

/* Instance normalisation of [N, C, L] (1d), [N, C, H, W] (2d), [N, C, D, H, W] (3d), or of one sample without N;
 * kn_instance_norm has the formula. Parameters weight (1) and bias (0) if `affine`; buffers as batch normalisation's if
 * `track_running_stats`: then these are used in evaluation mode. */
typedef struct kn_nn_instance_norm_params {
    int64_t num_features;     /* C */
    double eps;               /* default 1e-5 */
    double momentum;          /* default 0.1 */
    bool affine;              /* default false */
    bool track_running_stats; /* default false */
} kn_nn_instance_norm_params;
#define KN_NN_INSTANCE_NORM_DEFAULTS .eps = 1e-5, .momentum = 0.1
KN_API kn_nn_instance_norm_params kn_nn_instance_norm_params_init(void);
KN_API kn_module *kn_nn_instance_norm1d_with(const kn_nn_instance_norm_params *params);
KN_API kn_module *kn_nn_instance_norm2d_with(const kn_nn_instance_norm_params *params);
KN_API kn_module *kn_nn_instance_norm3d_with(const kn_nn_instance_norm_params *params);
#define kn_nn_instance_norm1d(...)                                                                                     \
    KN_CALL(kn_nn_instance_norm1d_with(&(kn_nn_instance_norm_params){KN_NN_INSTANCE_NORM_DEFAULTS, __VA_ARGS__}))
#define kn_nn_instance_norm2d(...)                                                                                     \
    KN_CALL(kn_nn_instance_norm2d_with(&(kn_nn_instance_norm_params){KN_NN_INSTANCE_NORM_DEFAULTS, __VA_ARGS__}))
#define kn_nn_instance_norm3d(...)                                                                                     \
    KN_CALL(kn_nn_instance_norm3d_with(&(kn_nn_instance_norm_params){KN_NN_INSTANCE_NORM_DEFAULTS, __VA_ARGS__}))

/* kn_group_norm of [N, C, ...]: kn_nn_group_norm(.num_groups = 8, .num_channels = 64). */
typedef struct kn_nn_group_norm_params {
    int64_t num_groups, num_channels; /* C, a multiple of the groups */
    double eps;                       /* default 1e-5 */
    bool affine;                      /* default true: parameters weight (1) and bias (0), [C] */
} kn_nn_group_norm_params;
#define KN_NN_GROUP_NORM_DEFAULTS .eps = 1e-5, .affine = true
KN_API kn_nn_group_norm_params kn_nn_group_norm_params_init(void);
KN_API kn_module *kn_nn_group_norm_with(const kn_nn_group_norm_params *params);
#define kn_nn_group_norm(...)                                                                                          \
    KN_CALL(kn_nn_group_norm_with(&(kn_nn_group_norm_params){KN_NN_GROUP_NORM_DEFAULTS, __VA_ARGS__}))

/* kn_rms_norm over the last dimensions, which are `shape`. */
typedef struct kn_nn_rms_norm_params {
    double eps;              /* default -1: as of kn_rms_norm; PyTorch's None */
    bool elementwise_affine; /* default true: a parameter weight (1) of that shape */
} kn_nn_rms_norm_params;
#define KN_NN_RMS_NORM_DEFAULTS .eps = -1, .elementwise_affine = true
KN_API kn_nn_rms_norm_params kn_nn_rms_norm_params_init(void);
KN_API kn_module *kn_nn_rms_norm_with(int ndim, const int64_t *shape, const kn_nn_rms_norm_params *params);
#define kn_nn_rms_norm(shape, ...)                                                                                     \
    KN_CALL(kn_nn_rms_norm_with(shape, &(kn_nn_rms_norm_params){KN_NN_RMS_NORM_DEFAULTS, __VA_ARGS__}))

/* kn_local_response_norm. */
KN_API kn_module *kn_nn_local_response_norm_with(int64_t size, const kn_local_response_norm_params *params);
#define kn_nn_local_response_norm(size, ...)                                                                           \
    KN_CALL(kn_nn_local_response_norm_with(                                                                            \
        size, &(kn_local_response_norm_params){KN_LOCAL_RESPONSE_NORM_DEFAULTS, __VA_ARGS__}))

/* Normalisation over the last dimensions, which are `shape`: kn_nn_layer_norm(KN_SHAPE(1024)). */
typedef struct kn_nn_layer_norm_params {
    double eps;              /* default 1e-5 */
    bool elementwise_affine; /* default true: parameters weight (1) and bias (0) of that shape */
    bool bias;               /* default true; false: the weight alone */
} kn_nn_layer_norm_params;
#define KN_NN_LAYER_NORM_DEFAULTS .eps = 1e-5, .elementwise_affine = true, .bias = true
KN_API kn_nn_layer_norm_params kn_nn_layer_norm_params_init(void);
KN_API kn_module *kn_nn_layer_norm_with(int ndim, const int64_t *shape, const kn_nn_layer_norm_params *params);
#define kn_nn_layer_norm(shape, ...)                                                                                   \
    KN_CALL(kn_nn_layer_norm_with(shape, &(kn_nn_layer_norm_params){KN_NN_LAYER_NORM_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
