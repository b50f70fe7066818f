/* koine/pool.h - pooling, in one to three dimensions. Tensor expressions (koine/tensor.h); shapes, dtypes and plural
 * fields are as in koine/conv.h. */
#ifndef KOINE_POOL_H
#define KOINE_POOL_H

#include <koine/common.h>
#include <koine/conv.h>
#include <koine/pointwise.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* For all poolings except adaptive ones. x may have no batch dimension. In each dimension the result has floor((size +
 * padding before and after - dilation (kernel - 1) - 1) / stride) + 1 elements; ceil_mode rounds up instead, as long as
 * the last window starts inside x or the padding before it. */
typedef struct kn_pool_params {
    int64_t kernel_size, stride, padding; /* stride 0: kernel_size; padding: at most half the kernel */
    int64_t dilation;                     /* max pooling only; default 1 */
    int64_t kernel_sizes[3], strides[3];  /* by dimension; used unless all 0 */
    int64_t paddings[3], dilations[3];    /* likewise */
    int64_t paddings_after[3];            /* by dimension; default KN_PADDING_SYMMETRIC */
    bool ceil_mode;                       /* default false */
    bool count_include_pad;               /* average pooling: default true */
    int64_t divisor_override;             /* average pooling: default 0, none */
    kn_activation activation;             /* of the result; default none */
} kn_pool_params;
#define KN_POOL_DEFAULTS                                                                                               \
    .dilation = 1, .paddings_after = {KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC, KN_PADDING_SYMMETRIC},               \
    .count_include_pad = true
KN_API kn_pool_params kn_pool_params_init(void);

/* Max pooling: padding counts as -infinity; NaN propagates; the gradient goes to the first maximum of each window, or
 * to its last NaN. */
KN_API kn_tensor *kn_max_pool1d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_max_pool2d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_max_pool3d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_avg_pool1d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_avg_pool2d_with(kn_tensor *x, const kn_pool_params *params);
KN_API kn_tensor *kn_avg_pool3d_with(kn_tensor *x, const kn_pool_params *params);

/* The same with the index of each maximum, int64 of the result's shape (return_indices=True): its position in its
 * channel in row-major order; 0 for a window that is all padding. `indices` is owned as the result is, and NULL on
 * failure. No activation. */
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

KN_END_DECLS

#endif
