/* sort.c - sorting, the largest elements, medians, running sums and extremes, searching: one long row and many short
 * ones. */
#include "bench.h"

static kn_tensor *sort(kn_tensor *const *x, const double *p) { return kn_sort(x[0], NULL, .dim = (int)p[0]); }
static kn_tensor *topk(kn_tensor *const *x, const double *p) { return kn_topk(x[0], (int64_t)p[0], NULL); }
static kn_tensor *median(kn_tensor *const *x, const double *p) { return (void)p, kn_median_dim(x[0], -1, false, NULL); }
static kn_tensor *cumsum(kn_tensor *const *x, const double *p) { return kn_cumsum(x[0], (int)p[0]); }
static kn_tensor *cummax(kn_tensor *const *x, const double *p) { return kn_cummax(x[0], (int)p[0], NULL); }
static kn_tensor *unique(kn_tensor *const *x, const double *p) { return (void)p, kn_unique(x[0], NULL, NULL); }
static kn_tensor *bucketize(kn_tensor *const *x, const double *p)
{
    return (void)p, kn_to_dtype(kn_bucketize(x[0], kn_cumsum(x[1], 0)), KN_F32);
}

/* A comparison per element. */
#define CASE(label, function, parameter, rows, n, ...)                                                                 \
    {                                                                                                                  \
        .name = label, .shape = #rows "x" #n, .dtype = KN_F32, .flops = (double)rows * n, .bytes = 8.0 * rows * n,     \
        BENCH_OPERATION,                                                                                               \
        .operation = &(const bench_operation){.name = #function,                                                       \
                                              .apply = function,                                                       \
                                              .inputs = {{.ndim = 2, .shape = {rows, n}}, __VA_ARGS__},                \
                                              .parameters = {parameter}},                                              \
    }
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
    CASE("sort/unique", unique, 0, 1, 1000000),
    CASE("sort/bucketize", bucketize, 0, 1000, 1000, EDGES),
    CASE("gpu/sort/long", sort, 1, 1, 16777216),
    CASE("gpu/sort/rows", sort, 1, 65536, 1000),
    CASE("gpu/sort/topk/long", topk, 10, 1, 16777216),
};
const bench_list bench_sort = {cases, sizeof cases / sizeof cases[0]};
