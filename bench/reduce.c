/* reduce.c - sums, means and maxima of a matrix: of all of it, of its rows, of its columns. */
#include "bench.h"

static kn_tensor *sum(kn_tensor *const *x, const double *p) { return (void)p, kn_sum(x[0]); }
static kn_tensor *mean(kn_tensor *const *x, const double *p) { return (void)p, kn_mean(x[0]); }
static kn_tensor *max(kn_tensor *const *x, const double *p) { return (void)p, kn_max(x[0]); }
static kn_tensor *sum_dim(kn_tensor *const *x, const double *p)
{
    return kn_sum_dims(x[0], (const int[]){(int)p[0]}, 1, false);
}
static kn_tensor *max_dim(kn_tensor *const *x, const double *p) { return kn_max_dim(x[0], (int)p[0], false, NULL); }

#define CASE(label, function, dim, rows, columns, size)                                                                \
    {                                                                                                                  \
        .name = "reduce/" label "/" size, .shape = #rows "x" #columns, .dtype = KN_F32,                                \
        .flops = (double)rows * columns, .bytes = 4.0 * rows * columns, BENCH_OPERATION,                               \
        .operation = &(const bench_operation){.name = #function,                                                       \
                                              .apply = function,                                                       \
                                              .inputs = {{.ndim = 2, .shape = {rows, columns}}},                       \
                                              .parameters = {dim}},                                                    \
    }
#define BOTH(label, function, dim)                                                                                     \
    CASE(label, function, dim, 512, 512, "small"), CASE(label, function, dim, 4096, 4096, "large")

static const bench_case cases[] = {
    BOTH("sum", sum, 0), BOTH("sum_rows", sum_dim, 1), BOTH("sum_columns", sum_dim, 0),
    BOTH("max", max, 0), BOTH("max_rows", max_dim, 1), BOTH("mean", mean, 0),
};
const bench_list bench_reduce = {cases, sizeof cases / sizeof cases[0]};
