/* defaults_sort.c - sorting, searching, counting; differences and integrals. */
#include "defaults.h"

static kn_tensor *indices;

static kn_tensor *boundaries(void) { return kn_sort(ramp(KN_SHAPE(5)), NULL); }
static kn_tensor *levels(void) { return kn_full(KN_SHAPE(2), 0.3); }
static kn_tensor *numbers(void) { return kn_from_data(((int64_t[]){2, 0, 2, 1}), KN_SHAPE(4), .dtype = KN_I64); }

CALLS(kn_sort, kn_sort_params, show_tensor, kn_sort_with(matrix(), &indices, params), kn_sort(matrix(), &indices))
CALLS(kn_argsort, kn_sort_params, show_tensor, kn_argsort_with(matrix(), params), kn_argsort(matrix()))
CALLS(kn_topk, kn_topk_params, show_tensor, kn_topk_with(matrix(), 2, &indices, params), kn_topk(matrix(), 2, &indices))
CALLS(kn_kthvalue, kn_kthvalue_params, show_tensor, kn_kthvalue_with(matrix(), 2, &indices, params),
      kn_kthvalue(matrix(), 2, &indices))
CALLS(kn_mode, kn_mode_params, show_tensor, kn_mode_with(matrix(), &indices, params), kn_mode(matrix(), &indices))
CALLS(kn_quantile, kn_quantile_params, show_tensor, kn_quantile_with(matrix(), levels(), params),
      kn_quantile(matrix(), levels()))
CALLS(kn_nanquantile, kn_quantile_params, show_tensor, kn_nanquantile_with(matrix(), levels(), params),
      kn_nanquantile(matrix(), levels()))
CALLS(kn_searchsorted, kn_searchsorted_params, show_tensor, kn_searchsorted_with(boundaries(), matrix(), params),
      kn_searchsorted(boundaries(), matrix()))
CALLS(kn_bucketize, kn_bucketize_params, show_tensor, kn_bucketize_with(matrix(), boundaries(), params),
      kn_bucketize(matrix(), boundaries()))
CALLS(kn_isin, kn_isin_params, show_tensor, kn_isin_with(matrix(), boundaries(), params),
      kn_isin(matrix(), boundaries()))
CALLS(kn_bincount, kn_bincount_params, show_tensor, kn_bincount_with(numbers(), params), kn_bincount(numbers()))
CALLS(kn_histc, kn_histc_params, show_tensor, kn_histc_with(matrix(), params), kn_histc(matrix()))
CALLS(kn_histogram, kn_histogram_params, show_tensor, kn_histogram_with(matrix(), NULL, params),
      kn_histogram(matrix(), NULL))
CALLS(kn_gradient, kn_gradient_params, show_tensor, kn_gradient_with(matrix(), params), kn_gradient(matrix()))
CALLS(kn_combinations, kn_combinations_params, show_tensor, kn_combinations_with(numbers(), params),
      kn_combinations(numbers()))
CALLS(kn_vander, kn_vander_params, show_tensor, kn_vander_with(numbers(), params), kn_vander(numbers()))
CALLS(kn_diff, kn_diff_params, show_tensor, kn_diff_with(matrix(), params), kn_diff(matrix()))
CALLS(kn_trapezoid, kn_trapezoid_params, show_tensor, kn_trapezoid_with(matrix(), params), kn_trapezoid(matrix()))
CALLS(kn_cumulative_trapezoid, kn_trapezoid_params, show_tensor, kn_cumulative_trapezoid_with(matrix(), params),
      kn_cumulative_trapezoid(matrix()))

/* clang-format off */
DEFAULTS(sort_defaults,
         ROW(kn_sort),
         ROW(kn_argsort),
         ROW(kn_topk),
         ROW(kn_kthvalue),
         ROW(kn_mode),
         ROW(kn_quantile),
         ROW(kn_nanquantile),
         ROW(kn_searchsorted),
         ROW(kn_bucketize),
         ROW(kn_isin),
         ROW(kn_bincount),
         ROW(kn_histc),
         ROW(kn_histogram),
         ROW(kn_gradient),
         ROW(kn_combinations),
         ROW(kn_vander),
         ROW(kn_diff),
         ROW(kn_trapezoid),
         ROW(kn_cumulative_trapezoid))
/* clang-format on */
