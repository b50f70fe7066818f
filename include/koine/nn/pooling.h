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
KN_API kn_module *kn_nn_adaptive_max_pool1d(int64_t output_length);
KN_API kn_module *kn_nn_adaptive_max_pool2d(int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_max_pool3d(int64_t output_depth, int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_avg_pool1d(int64_t output_length);
KN_API kn_module *kn_nn_adaptive_avg_pool2d(int64_t output_height, int64_t output_width);
KN_API kn_module *kn_nn_adaptive_avg_pool3d(int64_t output_depth, int64_t output_height, int64_t output_width);

KN_END_DECLS

#endif
