/* rows_sort.c - sorting, selecting, and what searches sorted rows. */
#include "ops/rows.h"

typedef struct sort_case {
    int dim;
    bool descending;
    int64_t k;
} sort_case;

/* clang-format off */
#define ALONG(...) &(const sort_case){__VA_ARGS__}
/* clang-format on */

/* The values, and the indices of `id`. */
#define WITH_INDICES(id, call)                                                                                         \
    static kn_tensor *build_##id(kn_tensor *const *x, const void *params)                                              \
    {                                                                                                                  \
        const sort_case *c = params;                                                                                   \
        kn_tensor *indices = NULL;                                                                                     \
        return call;                                                                                                   \
    }                                                                                                                  \
    static kn_tensor *build_##id##_indices(kn_tensor *const *x, const void *params)                                    \
    {                                                                                                                  \
        const sort_case *c = params;                                                                                   \
        kn_tensor *indices = NULL;                                                                                     \
        return (call) ? indices : NULL;                                                                                \
    }

WITH_INDICES(sort, kn_sort(x[0], &indices, .dim = c->dim, .descending = c->descending))
WITH_INDICES(topk, kn_topk(x[0], c->k, &indices, .dim = c->dim, .largest = c->descending))
WITH_INDICES(kthvalue, kn_kthvalue(x[0], c->k, &indices, .dim = c->dim, .keepdim = c->descending))
WITH_INDICES(median_dim, kn_median_dim(x[0], c->dim, c->descending, &indices))
WITH_INDICES(nanmedian_dim, kn_nanmedian_dim(x[0], c->dim, c->descending, &indices))
WITH_INDICES(mode, kn_mode(x[0], &indices, .dim = c->dim, .keepdim = c->descending))

static kn_tensor *build_argsort(kn_tensor *const *x, const void *params)
{
    const sort_case *c = params;
    return kn_argsort(x[0], .dim = c->dim, .descending = c->descending);
}

/* The values, inverse indices and counts of unique. */
#define OUTPUT_OF(id, call)                                                                                            \
    static kn_tensor *build_##id(kn_tensor *const *x, const void *params)                                              \
    {                                                                                                                  \
        const sort_case *c = params;                                                                                   \
        kn_tensor *inverse = NULL, *counts = NULL;                                                                     \
        kn_tensor *values = call;                                                                                      \
        (void)c;                                                                                                       \
        return !values ? NULL : c->k == 0 ? values : c->k == 1 ? inverse : counts;                                     \
    }
OUTPUT_OF(unique, kn_unique(x[0], &inverse, &counts))
OUTPUT_OF(unique_dim, kn_unique_dim(x[0], c->dim, &inverse, &counts))
OUTPUT_OF(unique_consecutive, kn_unique_consecutive(x[0], &inverse, &counts))
OUTPUT_OF(unique_consecutive_dim, kn_unique_consecutive_dim(x[0], c->dim, &inverse, &counts))

static kn_tensor *build_median(kn_tensor *const *x, const void *params) { return (void)params, kn_median(x[0]); }
static kn_tensor *build_nanmedian(kn_tensor *const *x, const void *params) { return (void)params, kn_nanmedian(x[0]); }

static kn_tensor *build_searchsorted(kn_tensor *const *x, const void *params)
{
    const sort_case *c = params;
    return kn_searchsorted(kn_sort(x[0], NULL), x[1], .right = c->descending, .out_int32 = c->k == 1);
}

static kn_tensor *build_searchsorted_sorter(kn_tensor *const *x, const void *params)
{
    const sort_case *c = params;
    return kn_searchsorted(x[0], x[1], .right = c->descending, .sorter = kn_argsort(x[0]));
}

static kn_tensor *build_bucketize(kn_tensor *const *x, const void *params)
{
    const sort_case *c = params;
    return kn_bucketize(x[0], kn_sort(x[1], NULL), .right = c->descending);
}

static kn_tensor *build_isin(kn_tensor *const *x, const void *params)
{
    return kn_isin(x[0], x[1], .invert = ((const sort_case *)params)->descending);
}

static kn_tensor *build_bincount(kn_tensor *const *x, const void *params)
{
    return kn_bincount(x[0], .weights = x[1], .minlength = ((const sort_case *)params)->k);
}

static kn_tensor *build_histc(kn_tensor *const *x, const void *params)
{
    const sort_case *c = params;
    return kn_histc(x[0], .bins = c->k, .min = c->dim, .max = -c->dim);
}

static kn_tensor *build_quantile(kn_tensor *const *x, const void *params)
{
    const sort_case *c = params;
    return kn_quantile(x[0], x[1], .dim = c->dim, .keepdim = c->descending,
                       .interpolation = (kn_quantile_interpolation)c->k);
}

static kn_tensor *build_nanquantile(kn_tensor *const *x, const void *params)
{
    const sort_case *c = params;
    return kn_nanquantile(x[0], x[1], .dim = c->dim, .interpolation = (kn_quantile_interpolation)c->k);
}

/* clang-format off */
OP_ROWS_BEGIN
static const op_row rows[] = {
    {"sort/last", build_sort, {DISTINCT(7, 11)}, ALONG(-1), .layouts = true},
    {"sort/middle", build_sort, {DISTINCT(3, 53, 4)}, ALONG(1, true)},
    {"sort/ties", build_sort_indices, {WHOLE(KN_F32, -9, 9, 5, 301)}, ALONG(1), .no_gradient = true},
    {"sort/long", build_sort, {DISTINCT(40009)}, ALONG(0)},
    {"sort/long_ties", build_sort_indices, {WHOLE(KN_F32, -99, 99, 33000)}, ALONG(0, true), .no_gradient = true},
    {"sort/scalar", build_sort, {FLOAT_SCALAR(-1, 1)}, ALONG(0), .full = true},
    {"sort/empty", build_sort, {FLOATS(3, 0)}, ALONG(1)},
    {"sort/one", build_sort, {FLOATS(3, 1)}, ALONG(1), .full = true},
    {"sort/two", build_sort, {DISTINCT(3, 2)}, ALONG(1), .full = true},
    {"sort/2047", build_sort, {DISTINCT(2, 2047)}, ALONG(1), .full = true},
    {"sort/2049", build_sort, {DISTINCT(2, 2049)}, ALONG(1), .full = true},
    {"sort/uint8", build_sort_indices, {WHOLE(KN_U8, 0, 255, 3, 301)}, ALONG(1, true), .no_gradient = true},
    {"sort/int64", build_sort_indices, {WHOLE(KN_I64, -9, 9, 3, 301)}, ALONG(1), .no_gradient = true},
    {"sort/int64_long", build_sort_indices, {WHOLE(KN_I64, -9999, 9999, 33000)}, ALONG(0), .no_gradient = true},
    {"sort/int32", build_sort, {WHOLE(KN_I32, -999, 999, 3, 301)}, ALONG(1), .no_gradient = true, .full = true},
    {"sort/int16", build_sort, {WHOLE(KN_I16, -999, 999, 3, 301)}, ALONG(1), .no_gradient = true, .full = true},
    {"sort/int8", build_sort, {WHOLE(KN_I8, -128, 127, 3, 301)}, ALONG(1), .no_gradient = true},
    {"sort/bool", build_sort_indices, {WHOLE(KN_BOOL, 0, 2, 3, 301)}, ALONG(1), .no_gradient = true, .full = true},
    {"sort/f16", build_sort, {WHOLE(KN_F16, -99, 99, 3, 301)}, ALONG(1), .no_gradient = true},
    {"sort/bf16", build_sort, {WHOLE(KN_BF16, -99, 99, 3, 301)}, ALONG(0, true), .no_gradient = true},
    {"argsort/last", build_argsort, {WHOLE(KN_F32, -9, 9, 5, 67)}, ALONG(1), .no_gradient = true},
    {"topk/last", build_topk, {DISTINCT(7, 41)}, ALONG(1, true, 3)},
    {"topk/first", build_topk, {DISTINCT(41, 7)}, ALONG(0, false, 5)},
    {"topk/all", build_topk, {DISTINCT(3, 41)}, ALONG(1, true, 41), .full = true},
    {"topk/none", build_topk, {DISTINCT(3, 41)}, ALONG(1, true, 0)},
    {"topk/ties", build_topk_indices, {WHOLE(KN_F32, -9, 9, 3, 20011)}, ALONG(1, true, 301), .no_gradient = true},
    {"topk/long", build_topk_indices, {WHOLE(KN_F32, -9999, 9999, 70001)}, ALONG(0, false, 17), .no_gradient = true},
    {"topk/falling", build_topk, {DISTINCT(2, 5003)}, ALONG(1, false, 700), .full = true},
    {"topk/segments", build_topk_indices, {WHOLE(KN_F32, -99, 99, 3, 527)}, ALONG(1, true, 20), .no_gradient = true},
    {"topk/few_of_falling", build_topk, {DISTINCT(2, 303)}, ALONG(1, false, 7)},
    {"kthvalue/last", build_kthvalue, {DISTINCT(7, 41)}, ALONG(1, false, 3)},
    {"kthvalue/first", build_kthvalue, {DISTINCT(41, 7)}, ALONG(0, true, 30), .full = true},
    {"kthvalue/ties", build_kthvalue_indices, {WHOLE(KN_F32, -9, 9, 3, 301)}, ALONG(1, true, 7), .no_gradient = true},
    {"median_dim/last", build_median_dim, {DISTINCT(7, 41)}, ALONG(1)},
    {"median_dim/even", build_median_dim_indices, {WHOLE(KN_I64, -9, 9, 10, 7)}, ALONG(0, true), .no_gradient = true},
    {"nanmedian_dim/last", build_nanmedian_dim, {DISTINCT(7, 41)}, ALONG(1)},
    {"nanmedian_dim/ties", build_nanmedian_dim_indices, {WHOLE(KN_F32, -9, 9, 3, 40)}, ALONG(1), .no_gradient = true, .full = true},
    {"median/matrix", build_median, {DISTINCT(7, 5)}},
    {"nanmedian/even", build_nanmedian, {DISTINCT(6, 5)}},
    {"mode/last", build_mode, {DISTINCT(7, 41)}, ALONG(1)},
    {"mode/ties", build_mode_indices, {WHOLE(KN_F32, 0, 9, 7, 41)}, ALONG(0, true), .no_gradient = true},
    {"unique/values", build_unique, {WHOLE(KN_F32, -9, 9, 7, 41)}, ALONG(0), .no_gradient = true, .reads = true},
    {"unique/inverse", build_unique, {WHOLE(KN_I64, -9, 9, 7, 41)}, ALONG(0, false, 1), .no_gradient = true, .reads = true},
    {"unique/counts_of_long", build_unique, {WHOLE(KN_F32, -999, 999, 20011)}, ALONG(0, false, 2), .no_gradient = true, .reads = true},
    {"unique/empty", build_unique, {FLOATS(0, 3)}, ALONG(0), .no_gradient = true, .reads = true},
    {"unique/dim", build_unique_dim, {WHOLE(KN_I32, 0, 2, 41, 3, 2)}, ALONG(0, false, 1), .no_gradient = true, .reads = true},
    {"unique/middle", build_unique_dim, {WHOLE(KN_F32, 0, 2, 2, 41, 2)}, ALONG(1), .no_gradient = true, .reads = true},
    {"unique/last", build_unique_dim, {WHOLE(KN_BOOL, 0, 2, 3, 41)}, ALONG(1, false, 2), .no_gradient = true, .full = true, .reads = true},
    {"unique_consecutive/values", build_unique_consecutive, {WHOLE(KN_F32, 0, 2, 7, 41)}, ALONG(0), .no_gradient = true, .reads = true},
    {"unique_consecutive/inverse", build_unique_consecutive, {WHOLE(KN_U8, 0, 2, 7, 41)}, ALONG(0, false, 1), .no_gradient = true, .reads = true},
    {"unique_consecutive/dim", build_unique_consecutive_dim, {WHOLE(KN_I64, 0, 2, 2, 41)}, ALONG(1), .no_gradient = true, .reads = true},
    {"searchsorted/one_row", build_searchsorted, {WHOLE(KN_F32, -9, 9, 31), WHOLE(KN_F32, -12, 12, 5, 7)}, ALONG(0), .no_gradient = true},
    {"searchsorted/rows", build_searchsorted, {WHOLE(KN_I64, -9, 9, 5, 31), WHOLE(KN_I64, -12, 12, 5, 7)}, ALONG(0, true, 1), .no_gradient = true},
    {"searchsorted/sorter", build_searchsorted_sorter, {WHOLE(KN_F32, -9, 9, 5, 31), WHOLE(KN_F32, -12, 12, 5, 7)}, ALONG(0, true), .no_gradient = true},
    {"searchsorted/long_rows", build_searchsorted, {WHOLE(KN_F32, -999, 999, 3, 1003), WHOLE(KN_F32, -1009, 1009, 3, 101)}, ALONG(0), .no_gradient = true},
    {"searchsorted/rows_of_one", build_searchsorted, {WHOLE(KN_I32, -9, 9, 131, 9), WHOLE(KN_I32, -12, 12, 131, 1)}, ALONG(0, true), .no_gradient = true},
    {"bucketize/right", build_bucketize, {WHOLE(KN_F32, -12, 12, 5, 7), WHOLE(KN_F32, -9, 9, 31)}, ALONG(0, true), .no_gradient = true},
    {"bucketize/long", build_bucketize, {WHOLE(KN_F64, -1009, 1009, 3, 101), WHOLE(KN_F64, -999, 999, 1003)}, ALONG(0), .no_gradient = true, .wide = true},
    {"isin/floats", build_isin, {WHOLE(KN_F32, -99, 99, 5, 61), WHOLE(KN_F32, -99, 99, 31)}, ALONG(0), .no_gradient = true},
    {"isin/inverted", build_isin, {WHOLE(KN_I64, -99, 99, 5, 61), WHOLE(KN_I32, -99, 99, 31)}, ALONG(0, true), .no_gradient = true},
    {"bincount/plain", build_bincount, {WHOLE(KN_I64, 0, 31, 1031)}, ALONG(0), .no_gradient = true, .reads = true},
    {"bincount/chunks", build_bincount, {WHOLE(KN_U8, 0, 99, 40009)}, ALONG(0, false, 200), .no_gradient = true, .reads = true},
    {"bincount/weights", build_bincount, {WHOLE(KN_I32, 0, 31, 1031), FLOATS(1031)}, ALONG(0), .no_gradient = true, .reads = true},
    {"histc/given", build_histc, {FLOATS_IN(-3, 3, 41, 31)}, ALONG(-2, false, 7), .no_gradient = true},
    {"histc/found", build_histc, {FLOATS_IN(-3, 3, 20011)}, ALONG(0, false, 16), .no_gradient = true},
    {"quantile/last", build_quantile, {DISTINCT(5, 41), CONSTANTS_IN(0, 1, 3)}, ALONG(1)},
    {"quantile/all", build_quantile, {DISTINCT(5, 41), CONSTANTS_IN(0, 1, 1)}, ALONG(KN_ALL_DIMS, true, 3)},
    {"nanquantile/first", build_nanquantile, {DISTINCT(41, 5), CONSTANTS_IN(0, 1, 3)}, ALONG(0)},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(sort_rows, rows, .has_golden = true);
