/* koine/nn/pooling.h - pooling. Constructors as in koine/module.h. */
#ifndef KOINE_NN_POOLING_H
#define KOINE_NN_POOLING_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/pool.h>

KN_BEGIN_DECLS

KN_API kn_module *kn_nn_max_pool1d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_max_pool2d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_max_pool3d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_avg_pool1d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_avg_pool2d_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_avg_pool3d_with(const kn_pool_params *params);
#define kn_nn_max_pool1d(...) KN_CALL(kn_nn_max_pool1d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_max_pool2d(...) KN_CALL(kn_nn_max_pool2d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_max_pool3d(...) KN_CALL(kn_nn_max_pool3d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_avg_pool1d(...) KN_CALL(kn_nn_avg_pool1d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_avg_pool2d(...) KN_CALL(kn_nn_avg_pool2d_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_avg_pool3d(...) KN_CALL(kn_nn_avg_pool3d_with(KN_POOL_PARAMS(__VA_ARGS__)))

/* With the indices of the maxima as a second output (return_indices=True): kn_forward_many. */
KN_API kn_module *kn_nn_max_pool1d_with_indices_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_max_pool2d_with_indices_with(const kn_pool_params *params);
KN_API kn_module *kn_nn_max_pool3d_with_indices_with(const kn_pool_params *params);
#define kn_nn_max_pool1d_with_indices(...) KN_CALL(kn_nn_max_pool1d_with_indices_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_max_pool2d_with_indices(...) KN_CALL(kn_nn_max_pool2d_with_indices_with(KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_max_pool3d_with_indices(...) KN_CALL(kn_nn_max_pool3d_with_indices_with(KN_POOL_PARAMS(__VA_ARGS__)))

/* Modules of two inputs, the elements and their indices. */
KN_API kn_module *kn_nn_max_unpool1d_with(const kn_max_unpool_params *params);
KN_API kn_module *kn_nn_max_unpool2d_with(const kn_max_unpool_params *params);
KN_API kn_module *kn_nn_max_unpool3d_with(const kn_max_unpool_params *params);
#define kn_nn_max_unpool1d(...) KN_CALL(kn_nn_max_unpool1d_with(KN_MAX_UNPOOL_PARAMS(__VA_ARGS__)))
#define kn_nn_max_unpool2d(...) KN_CALL(kn_nn_max_unpool2d_with(KN_MAX_UNPOOL_PARAMS(__VA_ARGS__)))
#define kn_nn_max_unpool3d(...) KN_CALL(kn_nn_max_unpool3d_with(KN_MAX_UNPOOL_PARAMS(__VA_ARGS__)))

/* Of the parameters kernel_size, stride and ceil_mode. */
KN_API kn_module *kn_nn_lp_pool1d_with(double norm_type, const kn_pool_params *params);
KN_API kn_module *kn_nn_lp_pool2d_with(double norm_type, const kn_pool_params *params);
KN_API kn_module *kn_nn_lp_pool3d_with(double norm_type, const kn_pool_params *params);
#define kn_nn_lp_pool1d(norm_type, ...) KN_CALL(kn_nn_lp_pool1d_with(norm_type, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_lp_pool2d(norm_type, ...) KN_CALL(kn_nn_lp_pool2d_with(norm_type, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_nn_lp_pool3d(norm_type, ...) KN_CALL(kn_nn_lp_pool3d_with(norm_type, KN_POOL_PARAMS(__VA_ARGS__)))

/* Without given samples: every forward pass draws anew. */
KN_API kn_module *kn_nn_fractional_max_pool2d_with(const kn_fractional_max_pool_params *params);
KN_API kn_module *kn_nn_fractional_max_pool3d_with(const kn_fractional_max_pool_params *params);
KN_API kn_module *kn_nn_fractional_max_pool2d_with_indices_with(const kn_fractional_max_pool_params *params);
KN_API kn_module *kn_nn_fractional_max_pool3d_with_indices_with(const kn_fractional_max_pool_params *params);
#define kn_nn_fractional_max_pool2d(...) KN_CALL(kn_nn_fractional_max_pool2d_with(KN_FRACTIONAL_PARAMS(__VA_ARGS__)))
#define kn_nn_fractional_max_pool3d(...) KN_CALL(kn_nn_fractional_max_pool3d_with(KN_FRACTIONAL_PARAMS(__VA_ARGS__)))
#define kn_nn_fractional_max_pool2d_with_indices(...)                                                                  \
    KN_CALL(kn_nn_fractional_max_pool2d_with_indices_with(KN_FRACTIONAL_PARAMS(__VA_ARGS__)))
#define kn_nn_fractional_max_pool3d_with_indices(...)                                                                  \
    KN_CALL(kn_nn_fractional_max_pool3d_with_indices_with(KN_FRACTIONAL_PARAMS(__VA_ARGS__)))

/* A size of -1 (None in PyTorch) is the input's. */
KN_API kn_module *kn_nn_adaptive_max_pool1d(int64_t output_length);
KN_API kn_module *kn_nn_adaptive_max_pool2d(int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_max_pool3d(int64_t output_depth, int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_max_pool1d_with_indices(int64_t output_length);
KN_API kn_module *kn_nn_adaptive_max_pool2d_with_indices(int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_max_pool3d_with_indices(int64_t output_depth, int64_t output_height,
                                                         int64_t output_width);
KN_API kn_module *kn_nn_adaptive_avg_pool1d(int64_t output_length);
KN_API kn_module *kn_nn_adaptive_avg_pool2d(int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_avg_pool3d(int64_t output_depth, int64_t output_height, int64_t output_width);

KN_END_DECLS

#endif
