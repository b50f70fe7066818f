/* koine/pool.h - pooling, in one to three dimensions. Tensor expressions (koine/tensor.h); shapes, dtypes and plural
 * fields are as in koine/conv.h. */
#ifndef KOINE_POOL_H
#define KOINE_POOL_H

#include <koine/common.h>
#include <koine/conv.h>
#include <koine/generator.h>
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

/* Power-average pooling: (sum x^p)^(1/p) over each window, for p = norm_type. Of the parameters kernel_size, stride and
 * ceil_mode. */
KN_API kn_tensor *kn_lp_pool1d_with(kn_tensor *x, double norm_type, const kn_pool_params *params);
KN_API kn_tensor *kn_lp_pool2d_with(kn_tensor *x, double norm_type, const kn_pool_params *params);
KN_API kn_tensor *kn_lp_pool3d_with(kn_tensor *x, double norm_type, const kn_pool_params *params);
#define kn_lp_pool1d(x, norm_type, ...) KN_CALL(kn_lp_pool1d_with(x, norm_type, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_lp_pool2d(x, norm_type, ...) KN_CALL(kn_lp_pool2d_with(x, norm_type, KN_POOL_PARAMS(__VA_ARGS__)))
#define kn_lp_pool3d(x, norm_type, ...) KN_CALL(kn_lp_pool3d_with(x, norm_type, KN_POOL_PARAMS(__VA_ARGS__)))

/* Sizes as in kn_pool_params. */
typedef struct kn_max_unpool_params {
    int64_t kernel_size, stride, padding; /* stride 0: kernel_size */
    int64_t kernel_sizes[3], strides[3], paddings[3];
    int64_t
        output_sizes[3]; /* by dimension; 0: (size - 1) stride - 2 padding + kernel, from which it may differ by less
                                than a stride */
} kn_max_unpool_params;
#define KN_MAX_UNPOOL_DEFAULTS .kernel_size = 0
KN_API kn_max_unpool_params kn_max_unpool_params_init(void);

/* The inverse of max pooling: each element of x goes to the place that `indices`, int64 of its shape, names in its
 * channel, as max pooling with indices gives it; zeros elsewhere. Of elements with one place the last is there. A place
 * outside the result is KN_ERR_ARGUMENT, reported at the next synchronisation. */
KN_API kn_tensor *kn_max_unpool1d_with(kn_tensor *x, kn_tensor *indices, const kn_max_unpool_params *params);
KN_API kn_tensor *kn_max_unpool2d_with(kn_tensor *x, kn_tensor *indices, const kn_max_unpool_params *params);
KN_API kn_tensor *kn_max_unpool3d_with(kn_tensor *x, kn_tensor *indices, const kn_max_unpool_params *params);
#define KN_MAX_UNPOOL_PARAMS(...)                                                                                      \
    &(kn_max_unpool_params) { KN_MAX_UNPOOL_DEFAULTS, __VA_ARGS__ }
#define kn_max_unpool1d(x, indices, ...) KN_CALL(kn_max_unpool1d_with(x, indices, KN_MAX_UNPOOL_PARAMS(__VA_ARGS__)))
#define kn_max_unpool2d(x, indices, ...) KN_CALL(kn_max_unpool2d_with(x, indices, KN_MAX_UNPOOL_PARAMS(__VA_ARGS__)))
#define kn_max_unpool3d(x, indices, ...) KN_CALL(kn_max_unpool3d_with(x, indices, KN_MAX_UNPOOL_PARAMS(__VA_ARGS__)))

/* Fractional max pooling (Graham, 2014): windows of one size whose steps differ, shifted by a random number per channel
 * and dimension. Either output_size or output_ratio is required. */
typedef struct kn_fractional_max_pool_params {
    int64_t kernel_size, output_size;
    double output_ratio;                      /* the result has floor(size * ratio) elements; between 0 and 1 */
    int64_t kernel_sizes[3], output_sizes[3]; /* by dimension; used unless all 0 */
    double output_ratios[3];                  /* likewise */
    kn_tensor *samples;      /* the random numbers from [0, 1), [N, C, dimensions]; default NULL: drawn */
    kn_generator *generator; /* default NULL: the device's */
} kn_fractional_max_pool_params;
#define KN_FRACTIONAL_MAX_POOL_DEFAULTS .samples = NULL
KN_API kn_fractional_max_pool_params kn_fractional_max_pool_params_init(void);
KN_API kn_tensor *kn_fractional_max_pool2d_with(kn_tensor *x, const kn_fractional_max_pool_params *params);
KN_API kn_tensor *kn_fractional_max_pool3d_with(kn_tensor *x, const kn_fractional_max_pool_params *params);
KN_API kn_tensor *kn_fractional_max_pool2d_with_indices_with(kn_tensor *x, kn_tensor **indices,
                                                             const kn_fractional_max_pool_params *params);
KN_API kn_tensor *kn_fractional_max_pool3d_with_indices_with(kn_tensor *x, kn_tensor **indices,
                                                             const kn_fractional_max_pool_params *params);
#define KN_FRACTIONAL_PARAMS(...)                                                                                      \
    &(kn_fractional_max_pool_params) { KN_FRACTIONAL_MAX_POOL_DEFAULTS, __VA_ARGS__ }
#define kn_fractional_max_pool2d(x, ...) KN_CALL(kn_fractional_max_pool2d_with(x, KN_FRACTIONAL_PARAMS(__VA_ARGS__)))
#define kn_fractional_max_pool3d(x, ...) KN_CALL(kn_fractional_max_pool3d_with(x, KN_FRACTIONAL_PARAMS(__VA_ARGS__)))
#define kn_fractional_max_pool2d_with_indices(x, indices, ...)                                                         \
    KN_CALL(kn_fractional_max_pool2d_with_indices_with(x, indices, KN_FRACTIONAL_PARAMS(__VA_ARGS__)))
#define kn_fractional_max_pool3d_with_indices(x, indices, ...)                                                         \
    KN_CALL(kn_fractional_max_pool3d_with_indices_with(x, indices, KN_FRACTIONAL_PARAMS(__VA_ARGS__)))

/* Adaptive: window i of n covers floor(i size / n) to ceil((i + 1) size / n). A size of -1 (None in PyTorch) is the
 * input's. */
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
