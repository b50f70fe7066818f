/* koine/sort.h - sorting and what rests on it: the largest elements, medians, distinct elements, searching in sorted
 * ones. Tensor expressions (koine/tensor.h).
 *
 * All dtypes. Equal elements keep their order, whether or not a stable sort is asked for. Every NaN is larger than all
 * numbers and equal to other NaNs, and -0.0 is equal to 0.0. A row has at most 2^31 - 1 elements. Indices are int64,
 * those of the elements along the dimension, owned as the result is; NULL: unwanted. The gradient of a value goes to
 * the element that it is a copy of. */
#ifndef KOINE_SORT_H
#define KOINE_SORT_H

#include <koine/common.h>
#include <koine/tensor.h>
#include <limits.h>

KN_BEGIN_DECLS

/* --- in order ----------------------------------------------------------------------------------------------------- */

typedef struct kn_sort_params {
    int dim;         /* default -1 */
    bool descending; /* default false */
    bool stable;     /* default false; every sort is stable */
} kn_sort_params;
#define KN_SORT_DEFAULTS .dim = -1
KN_API kn_sort_params kn_sort_params_init(void);

/* x sorted along a dimension. */
KN_API kn_tensor *kn_sort_with(kn_tensor *x, kn_tensor **indices, const kn_sort_params *params);
/* The indices alone. */
KN_API kn_tensor *kn_argsort_with(kn_tensor *x, const kn_sort_params *params);
KN_API kn_tensor *kn_msort(kn_tensor *x); /* along dimension 0 */

#define KN_SORT_PARAMS(...)                                                                                            \
    &(kn_sort_params) { KN_SORT_DEFAULTS, __VA_ARGS__ }
#define kn_sort(x, indices, ...) KN_CALL(kn_sort_with(x, indices, KN_SORT_PARAMS(__VA_ARGS__)))
#define kn_argsort(x, ...) KN_CALL(kn_argsort_with(x, KN_SORT_PARAMS(__VA_ARGS__)))

typedef struct kn_topk_params {
    int dim;      /* default -1 */
    bool largest; /* default true; false: the smallest */
    bool sorted;  /* default true; the result always is */
} kn_topk_params;
#define KN_TOPK_DEFAULTS .dim = -1, .largest = true, .sorted = true
KN_API kn_topk_params kn_topk_params_init(void);

/* The k largest along a dimension, the largest first; of equal ones the first. */
KN_API kn_tensor *kn_topk_with(kn_tensor *x, int64_t k, kn_tensor **indices, const kn_topk_params *params);
#define KN_TOPK_PARAMS(...)                                                                                            \
    &(kn_topk_params) { KN_TOPK_DEFAULTS, __VA_ARGS__ }
#define kn_topk(x, k, indices, ...) KN_CALL(kn_topk_with(x, k, indices, KN_TOPK_PARAMS(__VA_ARGS__)))

/* --- one of each row ---------------------------------------------------------------------------------------------- */

typedef struct kn_kthvalue_params {
    int dim;      /* default -1 */
    bool keepdim; /* default false */
} kn_kthvalue_params;
#define KN_KTHVALUE_DEFAULTS .dim = -1
KN_API kn_kthvalue_params kn_kthvalue_params_init(void);

/* The k-th smallest, from 1, along a dimension. */
KN_API kn_tensor *kn_kthvalue_with(kn_tensor *x, int64_t k, kn_tensor **indices, const kn_kthvalue_params *params);
#define KN_KTHVALUE_PARAMS(...)                                                                                        \
    &(kn_kthvalue_params) { KN_KTHVALUE_DEFAULTS, __VA_ARGS__ }
#define kn_kthvalue(x, k, indices, ...) KN_CALL(kn_kthvalue_with(x, k, indices, KN_KTHVALUE_PARAMS(__VA_ARGS__)))

/* The lower median; NaN if there is one. Of all elements NaN for none, and equal ones share the gradient evenly. */
KN_API kn_tensor *kn_median(kn_tensor *x);
KN_API kn_tensor *kn_median_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices);
/* That of the numbers, NaN only if there are none. */
KN_API kn_tensor *kn_nanmedian(kn_tensor *x);
KN_API kn_tensor *kn_nanmedian_dim(kn_tensor *x, int dim, bool keepdim, kn_tensor **indices);

typedef kn_kthvalue_params kn_mode_params;
#define KN_MODE_DEFAULTS .dim = -1
KN_API kn_mode_params kn_mode_params_init(void);

/* The most frequent value along a dimension, the smallest of several, with the index of its last. Each NaN differs from
 * the others. */
KN_API kn_tensor *kn_mode_with(kn_tensor *x, kn_tensor **indices, const kn_mode_params *params);
#define KN_MODE_PARAMS(...)                                                                                            \
    &(kn_mode_params) { KN_MODE_DEFAULTS, __VA_ARGS__ }
#define kn_mode(x, indices, ...) KN_CALL(kn_mode_with(x, indices, KN_MODE_PARAMS(__VA_ARGS__)))

/* The order in which a quantile between two neighbours is chosen: on the line between them, the lower, the higher,
 * their mean, or the nearest (the even one of two). */
typedef enum kn_quantile_interpolation {
    KN_QUANTILE_LINEAR,
    KN_QUANTILE_LOWER,
    KN_QUANTILE_HIGHER,
    KN_QUANTILE_MIDPOINT,
    KN_QUANTILE_NEAREST
} kn_quantile_interpolation;

#define KN_ALL_DIMS INT_MIN /* for `dim` below: all elements */
typedef struct kn_quantile_params {
    int dim;                                 /* default KN_ALL_DIMS */
    bool keepdim;                            /* default false */
    kn_quantile_interpolation interpolation; /* default linear */
} kn_quantile_params;
#define KN_QUANTILE_DEFAULTS .dim = KN_ALL_DIMS
KN_API kn_quantile_params kn_quantile_params_init(void);

/* The quantiles q, from 0 to 1 (otherwise NaN), of x's dtype, float32 or float64: one number, or [count], which then is
 * the result's first dimension. A row with NaN has NaN; for nanquantile only one of NaN alone. */
KN_API kn_tensor *kn_quantile_with(kn_tensor *x, kn_tensor *q, const kn_quantile_params *params);
KN_API kn_tensor *kn_nanquantile_with(kn_tensor *x, kn_tensor *q, const kn_quantile_params *params);
#define KN_QUANTILE_PARAMS(...)                                                                                        \
    &(kn_quantile_params) { KN_QUANTILE_DEFAULTS, __VA_ARGS__ }
#define kn_quantile(x, q, ...) KN_CALL(kn_quantile_with(x, q, KN_QUANTILE_PARAMS(__VA_ARGS__)))
#define kn_nanquantile(x, q, ...) KN_CALL(kn_nanquantile_with(x, q, KN_QUANTILE_PARAMS(__VA_ARGS__)))

/* --- distinct elements -------------------------------------------------------------------------------------------- *
 * The size of the result depends on the elements: these functions wait for the device once, and are an error while a
 * graph is captured. `inverse`: of each element of x, or each slice, the index in the result, int64; `counts`: how many
 * are equal to each of the result, int64; owned as the result is; NULL: unwanted. Not differentiable. NaN is equal to
 * nothing. */

/* The distinct elements in order; or the distinct slices along `dim`, ordered by their elements in memory order. */
KN_API kn_tensor *kn_unique(kn_tensor *x, kn_tensor **inverse, kn_tensor **counts);
KN_API kn_tensor *kn_unique_dim(kn_tensor *x, int dim, kn_tensor **inverse, kn_tensor **counts);
/* The first of each run of equal ones. */
KN_API kn_tensor *kn_unique_consecutive(kn_tensor *x, kn_tensor **inverse, kn_tensor **counts);
KN_API kn_tensor *kn_unique_consecutive_dim(kn_tensor *x, int dim, kn_tensor **inverse, kn_tensor **counts);

/* --- searching ---------------------------------------------------------------------------------------------------- */

typedef struct kn_searchsorted_params {
    bool out_int32;    /* default false: int64 */
    bool right;        /* default false */
    kn_tensor *sorter; /* int64 of the sequence's shape: the order that sorts it; default NULL: it is sorted */
} kn_searchsorted_params;
#define KN_SEARCHSORTED_DEFAULTS .right = false
KN_API kn_searchsorted_params kn_searchsorted_params_init(void);

/* Where each element of the input belongs in the sorted last dimension of a sequence: how many elements of it are less,
 * or, `right`, not greater. The sequence has one dimension, or the input's except the last, and its dtype. */
KN_API kn_tensor *kn_searchsorted_with(kn_tensor *sorted_sequence, kn_tensor *input,
                                       const kn_searchsorted_params *params);
#define KN_SEARCHSORTED_PARAMS(...)                                                                                    \
    &(kn_searchsorted_params) { KN_SEARCHSORTED_DEFAULTS, __VA_ARGS__ }
#define kn_searchsorted(sorted_sequence, input, ...)                                                                   \
    KN_CALL(kn_searchsorted_with(sorted_sequence, input, KN_SEARCHSORTED_PARAMS(__VA_ARGS__)))

typedef struct kn_bucketize_params {
    bool out_int32; /* default false: int64 */
    bool right;     /* default false */
} kn_bucketize_params;
#define KN_BUCKETIZE_DEFAULTS .right = false
KN_API kn_bucketize_params kn_bucketize_params_init(void);

/* The same for sorted boundaries of one dimension. */
KN_API kn_tensor *kn_bucketize_with(kn_tensor *input, kn_tensor *boundaries, const kn_bucketize_params *params);
#define KN_BUCKETIZE_PARAMS(...)                                                                                       \
    &(kn_bucketize_params) { KN_BUCKETIZE_DEFAULTS, __VA_ARGS__ }
#define kn_bucketize(input, boundaries, ...)                                                                           \
    KN_CALL(kn_bucketize_with(input, boundaries, KN_BUCKETIZE_PARAMS(__VA_ARGS__)))

typedef struct kn_isin_params {
    bool assume_unique; /* default false; makes no difference */
    bool invert;        /* default false; true: is it missing? */
} kn_isin_params;
#define KN_ISIN_DEFAULTS .invert = false
KN_API kn_isin_params kn_isin_params_init(void);

/* Is each element among the test elements? bool. */
KN_API kn_tensor *kn_isin_with(kn_tensor *elements, kn_tensor *test_elements, const kn_isin_params *params);
#define KN_ISIN_PARAMS(...)                                                                                            \
    &(kn_isin_params) { KN_ISIN_DEFAULTS, __VA_ARGS__ }
#define kn_isin(elements, test_elements, ...)                                                                          \
    KN_CALL(kn_isin_with(elements, test_elements, KN_ISIN_PARAMS(__VA_ARGS__)))

/* --- counting ----------------------------------------------------------------------------------------------------- */

typedef struct kn_bincount_params {
    kn_tensor *weights; /* of x's shape; default NULL: 1 each */
    int64_t minlength;  /* default 0 */
} kn_bincount_params;
#define KN_BINCOUNT_DEFAULTS .minlength = 0
KN_API kn_bincount_params kn_bincount_params_init(void);

/* How often, or with what sum of weights, each number from 0 to the largest, or minlength - 1, occurs in x, integers of
 * one dimension: int64; with weights of float32 that, of others float64, added in the order of x. Of an empty x the
 * counts are int64 even so. Reads the largest number: a wait, and an error while a graph is captured. */
KN_API kn_tensor *kn_bincount_with(kn_tensor *x, const kn_bincount_params *params);
#define KN_BINCOUNT_PARAMS(...)                                                                                        \
    &(kn_bincount_params) { KN_BINCOUNT_DEFAULTS, __VA_ARGS__ }
#define kn_bincount(x, ...) KN_CALL(kn_bincount_with(x, KN_BINCOUNT_PARAMS(__VA_ARGS__)))

typedef struct kn_histc_params {
    int64_t bins;    /* default 100 */
    double min, max; /* default 0 and 0; if equal, the least and the largest element */
} kn_histc_params;
#define KN_HISTC_DEFAULTS .bins = 100
KN_API kn_histc_params kn_histc_params_init(void);

/* How many elements are in each of `bins` equal intervals from min to max, of x's dtype, which is floating. Those
 * outside are not counted, nor is NaN; if min and max are equal and x has NaN, none is. */
KN_API kn_tensor *kn_histc_with(kn_tensor *x, const kn_histc_params *params);
#define KN_HISTC_PARAMS(...)                                                                                           \
    &(kn_histc_params) { KN_HISTC_DEFAULTS, __VA_ARGS__ }
#define kn_histc(x, ...) KN_CALL(kn_histc_with(x, KN_HISTC_PARAMS(__VA_ARGS__)))

typedef struct kn_histogram_params {
    int64_t bins;      /* default 100 */
    double min, max;   /* default 0 and 0: the least and the largest element, for which the call waits */
    kn_tensor *edges;  /* [bins + 1], ascending, instead of these; default NULL */
    kn_tensor *weight; /* of x's shape and dtype; default NULL: 1 each */
    bool density;      /* default false; true: the integral over all intervals is 1 */
} kn_histogram_params;
#define KN_HISTOGRAM_DEFAULTS .bins = 100
KN_API kn_histogram_params kn_histogram_params_init(void);

/* torch.histogram: how many elements of x, float32 or float64, are in each interval between two edges, the last one
 * with its end, of x's dtype; `bin_edges`, if not NULL: the edges. Not differentiable. */
KN_API kn_tensor *kn_histogram_with(kn_tensor *x, kn_tensor **bin_edges, const kn_histogram_params *params);
#define KN_HISTOGRAM_PARAMS(...)                                                                                       \
    &(kn_histogram_params) { KN_HISTOGRAM_DEFAULTS, __VA_ARGS__ }
#define kn_histogram(x, bin_edges, ...) KN_CALL(kn_histogram_with(x, bin_edges, KN_HISTOGRAM_PARAMS(__VA_ARGS__)))

KN_END_DECLS

#endif
