/* koine/sort.h - sorting and what rests on it: the largest elements, medians, distinct elements, searching in sorted
 * ones. Tensor expressions (koine/tensor.h).
 *
 * All dtypes. Equal elements keep their order, whether or not a stable sort is asked for. Every NaN is larger than all
 * numbers and equal to other NaNs, and -0.0 is equal to 0.0. A row has at most 2^31 - 1 elements. Indices are int64,
 * those of the elements along the dimension, owned as the result is; NULL: unwanted. The gradient of a value goes to the
 * element that it is a copy of. */
#ifndef KOINE_SORT_H
#define KOINE_SORT_H

#include <koine/common.h>
#include <koine/tensor.h>

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

KN_END_DECLS

#endif
