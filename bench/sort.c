/* sort.c - sorting, the largest elements, medians, running sums and extremes, searching: one long row and many short
 * ones. */
#include "bench.h"

static kn_tensor *sort(kn_tensor *const *x, const double *p) { return kn_sort(x[0], NULL, .dim = (int)p[0]); }
static kn_tensor *topk(kn_tensor *const *x, const double *p) { return kn_topk(x[0], (int64_t)p[0], NULL); }
static kn_tensor *argsort(kn_tensor *const *x, const double *p) { return kn_argsort(x[0], .dim = (int)p[0]); }
static kn_tensor *kthvalue(kn_tensor *const *x, const double *p) { return kn_kthvalue(x[0], (int64_t)p[0], NULL); }
static kn_tensor *median(kn_tensor *const *x, const double *p) { return (void)p, kn_median_dim(x[0], -1, false, NULL); }
static kn_tensor *cumsum(kn_tensor *const *x, const double *p) { return kn_cumsum(x[0], (int)p[0]); }
static kn_tensor *cumprod(kn_tensor *const *x, const double *p) { return kn_cumprod(x[0], (int)p[0]); }
static kn_tensor *logcumsumexp(kn_tensor *const *x, const double *p) { return kn_logcumsumexp(x[0], (int)p[0]); }
static kn_tensor *cummax(kn_tensor *const *x, const double *p) { return kn_cummax(x[0], (int)p[0], NULL); }
static kn_tensor *unique(kn_tensor *const *x, const double *p) { return (void)p, kn_unique(x[0], NULL, NULL); }
static kn_tensor *bucketize(kn_tensor *const *x, const double *p)
{
    return (void)p, kn_to_dtype(kn_bucketize(x[0], kn_cumsum(x[1], 0)), KN_F32);
}
static kn_tensor *searchsorted(kn_tensor *const *x, const double *p)
{
    return (void)p, kn_searchsorted(kn_cumsum(x[1], 1), x[0]);
}

/* A comparison per element. */
#define CASE_OF(label, type, size, function, parameter, rows, n, ...)                                                  \
    {                                                                                                                  \
        .name = label, .shape = #rows "x" #n, .dtype = type, .flops = (double)rows * n,                                \
        .bytes = 2.0 * size * rows * n, BENCH_OPERATION,                                                               \
        .operation = &(const bench_operation){                                                                         \
            .name = #function, .apply = function, .inputs = {__VA_ARGS__}, .parameters = {parameter}},                 \
    }
#define ROWS(rows, n)                                                                                                  \
    {                                                                                                                  \
        .ndim = 2, .shape = { rows, n }                                                                                \
    }
#define CASE(label, function, parameter, rows, n, ...)                                                                 \
    CASE_OF(label, KN_F32, 4, function, parameter, rows, n, ROWS(rows, n), __VA_ARGS__)
#define CASE_F64(label, function, parameter, rows, n)                                                                  \
    CASE_OF(label, KN_F64, 8, function, parameter, rows, n, ROWS(rows, n))
#define CASE_I64(label, function, parameter, rows, n)                                                                  \
    CASE_OF(label, KN_F32, 8, function, parameter, rows, n,                                                            \
            {.ndim = 2, .shape = {rows, n}, .fill = BENCH_INDICES, .below = 1000000000})
#define EDGES                                                                                                          \
    {                                                                                                                  \
        .ndim = 1, .shape = {10000}, .fill = BENCH_UNIFORM                                                             \
    }

static const bench_case cases[] = {
    CASE("sort/long", sort, 1, 1, 1000000),
    CASE("sort/rows", sort, 1, 4096, 1000),
    CASE("sort/short_rows", sort, 1, 65536, 32),
    CASE("sort/columns", sort, 0, 1000, 1024),
    CASE("sort/topk/long", topk, 10, 1, 1000000),
    CASE("sort/topk/rows", topk, 10, 4096, 1000),
    CASE("sort/median/rows", median, 0, 4096, 1000),
    CASE("sort/cumsum/long", cumsum, 1, 1, 1000000),
    CASE("sort/cumsum/rows", cumsum, 1, 4096, 1000),
    CASE("sort/cummax/rows", cummax, 1, 4096, 1000),
    CASE_F64("sort/rows/f64", sort, 1, 4096, 1000),
    CASE_I64("sort/rows/i64", sort, 1, 4096, 1000),
    CASE_I64("sort/long/i64", sort, 1, 1, 1000000),
    CASE_F64("sort/argsort/rows/f64", argsort, 1, 4096, 1000),
    CASE_F64("sort/topk/rows/f64", topk, 10, 4096, 1000),
    CASE_I64("sort/topk/rows/i64", topk, 10, 4096, 1000),
    CASE("sort/kthvalue/rows", kthvalue, 100, 4096, 1000),
    CASE_F64("sort/cumsum/rows/f64", cumsum, 1, 4096, 1000),
    CASE_I64("sort/cumsum/rows/i64", cumsum, 1, 4096, 1000),
    CASE("sort/cumsum/columns", cumsum, 0, 1000, 4096),
    CASE("sort/cummax/columns", cummax, 0, 1000, 4096),
    CASE("sort/cumprod/rows", cumprod, 1, 4096, 1000),
    CASE("sort/logcumsumexp/rows", logcumsumexp, 1, 4096, 1000),
    CASE("sort/unique", unique, 0, 1, 1000000),
    CASE("sort/bucketize", bucketize, 0, 1000, 1000, EDGES),
    CASE("sort/searchsorted", searchsorted, 0, 1000, 1000, {.ndim = 2, .shape = {1000, 100}, .fill = BENCH_UNIFORM}),
    CASE("gpu/sort/long", sort, 1, 1, 16777216),
    CASE("gpu/sort/rows", sort, 1, 65536, 1000),
    CASE("gpu/sort/topk/long", topk, 10, 1, 16777216),
};
const bench_list bench_sort = {cases, sizeof cases / sizeof cases[0]};
