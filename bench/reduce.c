/* reduce.c - sums, means and maxima of a matrix: over all of it, over rows, over columns. 1 MiB, 64 MiB, and for GPUs
 * 256 MiB. */
#include "bench.h"

static kn_tensor *sum(kn_tensor *const *x, const double *p) { return (void)p, kn_sum(x[0]); }
static kn_tensor *mean(kn_tensor *const *x, const double *p) { return (void)p, kn_mean(x[0]); }
static kn_tensor *max(kn_tensor *const *x, const double *p) { return (void)p, kn_max(x[0]); }
static kn_tensor *sum_dim(kn_tensor *const *x, const double *p)
{
    return kn_sum_dims(x[0], (const int[]){(int)p[0]}, 1, false);
}
static kn_tensor *max_dim(kn_tensor *const *x, const double *p) { return kn_max_dim(x[0], (int)p[0], false, NULL); }

static kn_tensor *logsumexp(kn_tensor *const *x, const double *p)
{
    return kn_logsumexp(x[0], (const int[]){(int)p[0]}, 1, false);
}

#define CASE(label, function, dim, rows, columns) OF_DTYPE(KN_F32, label, function, dim, rows, columns)
#define OF_DTYPE(type, label, function, dim, rows, columns)                                                            \
    {                                                                                                                  \
        .name = label, .shape = #rows "x" #columns, .dtype = type, .flops = (double)rows * columns,                    \
        .bytes = (type == KN_F16 ? 2.0 : 4.0) * rows * columns, BENCH_OPERATION,                                       \
        .operation = &(const bench_operation){.name = #function,                                                       \
                                              .apply = function,                                                       \
                                              .inputs = {{.ndim = 2, .shape = {rows, columns}}},                       \
                                              .parameters = {dim}},                                                    \
    }
#define SIZES(label, function, dim)                                                                                    \
    CASE("reduce/" label "/small", function, dim, 512, 512),                                                           \
        CASE("reduce/" label "/large", function, dim, 4096, 4096),                                                     \
        CASE("gpu/reduce/" label, function, dim, 8192, 8192)

/* Few elements per sum, as when pooling image patches or averaging small groups. */
#define SHORT(label, function, rows, n, columns)                                                                       \
    {                                                                                                                  \
        .name = "reduce/" label, .shape = #rows "x" #n "x" #columns, .dtype = KN_F32,                                  \
        .flops = (double)rows * n * columns, .bytes = 4.0 * rows * (n + 1) * columns, BENCH_OPERATION,                 \
        .operation = &(const bench_operation){.name = #function,                                                       \
                                              .apply = function,                                                       \
                                              .inputs = {{.ndim = 3, .shape = {rows, n, columns}}},                    \
                                              .parameters = {1}},                                                      \
    }

static const bench_case cases[] = {
    SIZES("sum", sum, 0),
    SIZES("sum_rows", sum_dim, 1),
    SIZES("sum_columns", sum_dim, 0),
    SIZES("max", max, 0),
    SIZES("max_rows", max_dim, 1),
    SIZES("mean", mean, 0),
    OF_DTYPE(KN_F16, "half/sum", sum, 0, 2048, 2048),
    OF_DTYPE(KN_F16, "half/sum_rows", sum_dim, 1, 2048, 2048),
    CASE("reduce/logsumexp/rows", logsumexp, 1, 16384, 128),
    CASE("reduce/logsumexp/short_rows", logsumexp, 1, 200000, 10),
    CASE("reduce/logsumexp/columns", logsumexp, 0, 2048, 1024),
    SHORT("sum_short/middle", sum_dim, 28672, 2, 28),
    SHORT("sum_short/windows", sum_dim, 40000, 7, 7),
    SHORT("sum_short/last", sum_dim, 500000, 3, 1),
    SHORT("max_short/middle", max_dim, 28672, 2, 28),
    SHORT("max_short/windows", max_dim, 40000, 7, 7),
    SHORT("max_short/last", max_dim, 500000, 3, 1),
};
const bench_list bench_reduce = {cases, sizeof cases / sizeof cases[0]};
