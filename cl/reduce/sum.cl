/* reduce/sum.cl - sums of floating T over the middle of [outer, n, inner], cut into chunks: x [outer, n, inner] -> y
 * [outer, chunks, inner], each chunk's sum divided by `divisor` (1 unless it is the last step of a mean). How the
 * host cuts depends on the shape alone, so the order is the same on all devices that run the same kernel. */
#include "common/koine.clh"
#include "reduce/sum_run.clh"

#define VECTOR(k) KN_VLOAD(run + (k))
#define SCALAR(k) run[k]

#ifdef KN_CPU

/* inner = 1: a work-item takes whole runs. */
kernel void sum_rows(KN_IN(x), KN_OUT(y), const long outer, const long n, const long length, const long chunks,
                     const T divisor)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_FOR(task, outer * chunks)
    {
        const long row = chunks == 1 ? task : task / chunks, chunk = chunks == 1 ? 0 : task % chunks;
        const global T *run = x + row * n + chunk * length;
        const long count = min(length, n - chunk * length);
        T total = 0;
        if (count < 32)
            for (long k = 0; k < count; k++)
                total += run[k];
        else
            KN_SUM_RUN(total, count, VECTOR, SCALAR);
        y[task] = total / divisor;
    }
}

/* Rows of 64 columns and more: 64 columns at a time, down the rows. */
static void sum_wide(const global T *x, global T *y, long rows, long inner, T divisor)
{
    TV sum[4] = {0, 0, 0, 0}, error[4] = {0, 0, 0, 0};

    for (long from = 0; from < rows; from += 256) {
        const long to = min(from + 256, rows);
        TV s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (long row = from; row < to; row++) {
            const global T *p = x + row * inner;
            s0 += KN_VLOAD(p);
            s1 += KN_VLOAD(p + 16);
            s2 += KN_VLOAD(p + 32);
            s3 += KN_VLOAD(p + 48);
        }
        KN_TWO_SUM(TV, sum[0], error[0], s0);
        KN_TWO_SUM(TV, sum[1], error[1], s1);
        KN_TWO_SUM(TV, sum[2], error[2], s2);
        KN_TWO_SUM(TV, sum[3], error[3], s3);
    }
    for (int v = 0; v < 4; v++) {
        const TV total = select(sum[v], sum[v] + error[v], error[v] == error[v]);
        KN_VSTORE(total / divisor, y + 16 * v);
    }
}

/* Fewer columns, all of the row: 16 rows are 16 * inner elements in a line, `inner` whole vectors. */
static void sum_narrow(const global T *x, global T *y, long rows, long inner, T divisor)
{
    T sum[64], error[64], part[64];

    for (long j = 0; j < inner; j++)
        sum[j] = error[j] = 0;
    for (long from = 0; from < rows; from += 4096) {
        const long to = min(from + 4096, rows);
        long row = from;
        TV lanes[64];
        for (long v = 0; v < inner; v++)
            lanes[v] = 0;
        for (; row + 16 <= to; row += 16)
            for (long v = 0; v < inner; v++)
                lanes[v] += KN_VLOAD(x + row * inner + 16 * v);
        for (long j = 0; j < inner; j++)
            part[j] = 0;
        for (long e = 0; e < 16 * inner; e++)
            part[e % inner] += ((const private T *)lanes)[e];
        for (; row < to; row++)
            for (long j = 0; j < inner; j++)
                part[j] += x[row * inner + j];
        for (long j = 0; j < inner; j++)
            KN_TWO_SUM(T, sum[j], error[j], part[j]);
    }
    for (long j = 0; j < inner; j++)
        y[j] = sum_finish(sum[j], error[j]) / divisor;
}

/* The columns that are left of a row of 64 and more. */
static void sum_rest(const global T *x, global T *y, long rows, long inner, long columns, T divisor)
{
    T sum[64], error[64], part[64];

    for (long j = 0; j < columns; j++)
        sum[j] = error[j] = 0;
    for (long from = 0; from < rows; from += 256) {
        const long to = min(from + 256, rows);
        for (long j = 0; j < columns; j++)
            part[j] = 0;
        for (long row = from; row < to; row++)
            for (long j = 0; j < columns; j++)
                part[j] += x[row * inner + j];
        for (long j = 0; j < columns; j++)
            KN_TWO_SUM(T, sum[j], error[j], part[j]);
    }
    for (long j = 0; j < columns; j++)
        y[j] = sum_finish(sum[j], error[j]) / divisor;
}

kernel void sum_columns(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const long length,
                        const long chunks, const T divisor)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long tiles = (inner + 63) / 64;
    KN_FOR(task, outer * chunks * tiles)
    {
        const long tile = task % tiles, piece = task / tiles; /* piece = outer index * chunks + chunk */
        const long chunk = piece % chunks;
        const long rows = min(length, n - chunk * length), columns = min(64L, inner - 64 * tile);
        const global T *from = x + (piece / chunks * n + chunk * length) * inner + 64 * tile;
        global T *to = y + piece * inner + 64 * tile;
        if (columns == 64)
            sum_wide(from, to, rows, inner, divisor);
        else if (inner < 64)
            sum_narrow(from, to, rows, inner, divisor);
        else
            sum_rest(from, to, rows, inner, columns, divisor);
    }
}

#else

/* inner = 1: a work-group takes one run after another. */
kernel void sum_rows(KN_IN(x), KN_OUT(y), const long outer, const long n, const long length, const long chunks,
                     const T divisor)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    local T part[KN_SUM_GROUP];
    for (long task = get_group_id(0); task < outer * chunks; task += get_num_groups(0)) {
        const long row = task / chunks, chunk = task % chunks;
        const global T *run = x + row * n + chunk * length;
        const long count = min(length, n - chunk * length);
        T total;
        KN_SUM_RUN(total, count, SCALAR, part);
        if (get_local_id(0) == 0)
            y[task] = total / divisor;
    }
}

/* inner = 1, few terms: a work-item per run. */
kernel void sum_short_rows(KN_IN(x), KN_OUT(y), const long outer, const long n, const T divisor)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_FOR(row, outer)
    {
        T total = 0;
        for (long k = 0; k < n; k++)
            total += x[row * n + k];
        y[row] = total / divisor;
    }
}

/* A work-group takes 32 neighbouring columns; its 8 rows of work-items share the rows. */
kernel __attribute__((reqd_work_group_size(32, 8, 1))) void
sum_columns(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const long length,
            const long chunks, const T divisor)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    local T part[8][32];
    const int lane = get_local_id(0), line = get_local_id(1);
    const long tiles = (inner + 31) / 32;
    for (long task = get_group_id(0); task < outer * chunks * tiles; task += get_num_groups(0)) {
        const long column = task % tiles * 32 + lane, piece = task / tiles;
        const long chunk = piece % chunks;
        const long rows = min(length, n - chunk * length);
        const global T *from = x + (piece / chunks * n + chunk * length) * inner + column;
        T sum = 0, error = 0;
        if (column < inner)
            for (long row = line; row < rows;) {
                T block = 0;
                for (int i = 0; i < 64 && row < rows; i++, row += 8)
                    block += from[row * inner];
                KN_TWO_SUM(T, sum, error, block);
            }
        part[line][lane] = sum_finish(sum, error);
        for (int span = 4; span > 0; span /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (line < span)
                part[line][lane] += part[line + span][lane];
        }
        if (line == 0 && column < inner)
            y[piece * inner + column] = part[0][lane] / divisor;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
