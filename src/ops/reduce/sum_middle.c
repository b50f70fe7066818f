/* ops/reduce/sum_middle.c - sums over the middle of contiguous [outer, n, inner]: how the work is cut, and the
 * launches. See reduce.h. */
#include <stdio.h>

#include "base/divisor.h"
#include "ops/reduce/reduce.h"

enum { FEW_ROWS = 16 };

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static kn_chunks cut(int64_t n, int64_t chunks, int64_t multiple)
{
    const int64_t length = chunks <= 1 ? n : ceil_div(ceil_div(n, chunks), multiple) * multiple;
    return (kn_chunks){.length = length, .count = ceil_div(n, length)};
}

static kn_chunks cut_rows(int64_t outer, int64_t n)
{
    if (n <= 8192 || outer >= 256)
        return cut(n, 1, 1);
    return cut(n, smaller(ceil_div(n, 4096), ceil_div(2048, outer)), 64);
}

/* Enough pieces of at least 16384 elements to keep a large device busy. */
static kn_chunks cut_columns(int64_t outer, int64_t n, int64_t inner)
{
    const int64_t tiles = outer * ceil_div(inner, 64);

    if (tiles >= 256 || n * inner <= 131072) /* a launch more would take longer than the pieces save */
        return cut(n, 1, 1);
    return cut(n, smaller(ceil_div(n * inner, 16384), ceil_div(1024, tiles)), 16);
}

kn_chunks kn_cut_middle(int64_t outer, int64_t n, int64_t inner)
{
    return inner == 1 ? cut_rows(outer, n) : cut_columns(outer, n, inner);
}

kn_work_size kn_work_for_groups(const kn_limits *limits, int64_t tasks)
{
    size_t local = 256;

    if (limits->is_cpu)
        return (kn_work_size){.global = (size_t)smaller(tasks, 4 * (int64_t)limits->compute_units)};
    while (local > limits->max_work_group_size)
        local /= 2;
    return (kn_work_size){.global = (size_t)smaller(tasks, 65536) * local, .local = local};
}

typedef struct kn_sum_problem {
    const char *operation;
    const kn_tensor *x;
    kn_tensor *y; /* [outer, chunks, inner] */
    int64_t outer, n, inner;
    kn_chunks chunks;
    double divisor;
} kn_sum_problem;

static kn_status launch_whole(kn_stream *stream, const kn_sum_problem *p)
{
    const bool rows = p->inner == 1;
    const kn_work_size work = kn_work_for(kn_tensor_limits(p->y), p->outer * p->chunks.count * p->inner);
    kn_arg args[7];
    int count = 0;

    args[count++] = kn_arg_tensor(p->x);
    args[count++] = kn_arg_tensor(p->y);
    args[count++] = kn_arg_i64(p->outer);
    args[count++] = kn_arg_i64(p->n);
    if (!rows)
        args[count++] = kn_arg_i64(p->inner);
    args[count++] = kn_arg_i64(p->chunks.length);
    args[count++] = kn_arg_i64(p->chunks.count);
    return kn_run(stream, .source = "reduce/sum_whole.cl", .options = kn_dtype_options(p->x->dtype),
                  .kernel = rows ? "sum_rows" : "sum_columns", .operation = p->operation, .dims = 1,
                  .global = {work.global}, .local = {work.local}, .args = args, .num_args = count);
}

/* On devices that are no CPUs; `args` are those that their kernels share. Long columns are shared by a work-group's
 * lines, short ones are a work-item's. */
static kn_status launch_columns_in_groups(kn_stream *stream, const kn_sum_problem *p, kn_arg *args, int count)
{
    const kn_limits *limits = kn_tensor_limits(p->y);
    const bool wide = p->inner % 4 == 0, aligned = p->x->offset % 4 == 0 && p->y->offset % 4 == 0;
    const bool few = p->chunks.length <= FEW_ROWS;
    const int64_t pieces = p->outer * p->chunks.count, across = wide ? p->inner / 4 : p->inner;
    const kn_divisor by_columns = kn_divisor_of(across);
    const kn_work_size work =
        few ? kn_work_for(limits, pieces * across) : kn_work_for_groups(limits, pieces * ceil_div(p->inner, 32));
    char options[80];

    snprintf(options, sizeof options, "%s -DWIDTH=%d%s", kn_dtype_options(p->x->dtype), wide ? 4 : 1,
             wide && !aligned ? " -DUNALIGNED" : "");
    if (few) {
        args[count++] = kn_arg_struct(&by_columns, sizeof by_columns);
        args[count++] = kn_arg_i32(pieces * across <= INT32_MAX);
    }
    return kn_run(stream, .source = "reduce/sum.cl", .options = options, .kernel = few ? "sum_few" : "sum_columns",
                  .operation = p->operation, .dims = 1, .global = {work.global}, .local = {work.local}, .args = args,
                  .num_args = count);
}

static kn_status launch_columns(kn_stream *stream, const kn_sum_problem *p)
{
    const kn_limits *limits = kn_tensor_limits(p->y);
    const int64_t tiles = p->outer * p->chunks.count * ceil_div(p->inner, 64);
    kn_arg args[10];
    int count = 0;

    args[count++] = kn_arg_tensor(p->x);
    args[count++] = kn_arg_tensor(p->y);
    args[count++] = kn_arg_i64(p->outer);
    args[count++] = kn_arg_i64(p->n);
    args[count++] = kn_arg_i64(p->inner);
    args[count++] = kn_arg_i64(p->chunks.length);
    args[count++] = kn_arg_i64(p->chunks.count);
    args[count++] = kn_arg_real(p->x->dtype, p->divisor);
    if (!limits->is_cpu)
        return launch_columns_in_groups(stream, p, args, count);
    return kn_run(stream, .source = "reduce/sum.cl", .options = kn_dtype_options(p->x->dtype), .kernel = "sum_columns",
                  .operation = p->operation, .dims = 1,
                  .global = {(size_t)smaller(tiles, 4 * (int64_t)limits->compute_units)}, .args = args,
                  .num_args = count);
}

int kn_team_for(int64_t n, int64_t terms, size_t local)
{
    int lanes = 1;
    while (lanes < (int)local && terms * lanes < n)
        lanes *= 2;
    return lanes;
}

static kn_status launch_rows(kn_stream *stream, const kn_sum_problem *p)
{
    const kn_limits *limits = kn_tensor_limits(p->y);
    const int64_t tasks = p->outer * p->chunks.count;
    kn_work_size work = kn_work_for_groups(limits, tasks);
    const int lanes = kn_team_for(p->chunks.length, 16, work.local);
    kn_arg args[8];
    int count = 0;

    args[count++] = kn_arg_tensor(p->x);
    args[count++] = kn_arg_tensor(p->y);
    args[count++] = kn_arg_i64(p->outer);
    args[count++] = kn_arg_i64(p->n);
    args[count++] = kn_arg_i64(p->chunks.length);
    args[count++] = kn_arg_i64(p->chunks.count);
    args[count++] = kn_arg_real(p->x->dtype, p->divisor);
    if (!limits->is_cpu) {
        args[count++] = kn_arg_i32(lanes);
        work = kn_work_for_groups(limits, ceil_div(tasks * lanes, (int64_t)work.local));
    }
    return kn_run(stream, .source = "reduce/sum.cl", .options = kn_dtype_options(p->x->dtype), .kernel = "sum_rows",
                  .operation = p->operation, .dims = 1, .global = {work.global}, .local = {work.local}, .args = args,
                  .num_args = count);
}

static kn_status launch_sum(kn_stream *stream, const kn_sum_problem *p)
{
    if (!kn_dtype_is_floating(p->x->dtype))
        return launch_whole(stream, p);
    return p->inner == 1 ? launch_rows(stream, p) : launch_columns(stream, p);
}

kn_status kn_sum_middle(kn_stream *stream, const char *operation, const kn_tensor *x, int64_t outer, int64_t n,
                        int64_t inner, double divisor, kn_tensor *y)
{
    kn_sum_problem p = {
        .operation = operation, .x = x, .y = y, .outer = outer, .n = n, .inner = inner, .divisor = divisor};
    kn_tensor *partial;
    kn_status status;

    if (outer * inner == 0)
        return KN_OK;
    if (n == 0)
        return kn_tensor_fill(y, 0.0 / divisor);
    p.chunks = kn_cut_middle(outer, n, inner);
    if (p.chunks.count == 1)
        return launch_sum(stream, &p);
    KN_TRY(kn_tensor_new(&partial, y->dtype, 1, (const int64_t[]){outer * p.chunks.count * inner}, y->storage->device));
    p.y = partial;
    p.divisor = 1;
    status = launch_sum(stream, &p);
    if (status == KN_OK) {
        p = (kn_sum_problem){.operation = operation,
                             .x = partial,
                             .y = y,
                             .outer = outer,
                             .n = p.chunks.count,
                             .inner = inner,
                             .chunks = {.length = p.chunks.count, .count = 1},
                             .divisor = divisor};
        status = launch_sum(stream, &p);
    }
    kn_release(partial);
    return status;
}
