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

/* inner = 1: `lanes` work-items, a power of two, take a run; a work-group takes as many runs as it has room for. */
kernel void sum_rows(KN_IN(x), KN_OUT(y), const long outer, const long n, const long length, const long chunks,
                     const T divisor, const int lanes)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    local T part[KN_SUM_GROUP];
    const int lane = get_local_id(0) & (lanes - 1), teams = get_local_size(0) / lanes;
    for (long first = get_group_id(0) * (long)teams; first < outer * chunks; first += get_num_groups(0) * (long)teams) {
        const long task = first + get_local_id(0) / lanes;
        const long row = chunks == 1 ? task : task / chunks, chunk = chunks == 1 ? 0 : task % chunks;
        const global T *run = x + row * n + chunk * length;
        const long count = row < outer ? min(length, n - chunk * length) : 0;
        T total;
        KN_SUM_SHARE(total, count, SCALAR, lane, lanes);
        total = sum_team(part, total, lanes);
        if (lane == 0 && row < outer)
            y[task] = total / divisor;
    }
}

/* WIDTH columns are loaded as one: 4 where inner is a multiple of 4, 16 bytes of f32; UNALIGNED where x or y begins between vectors. A work-group takes 32
 * neighbouring columns; its lines share the rows. */
#ifndef WIDTH
#define WIDTH 1 /* of no concern to sum_rows */
#endif
#if WIDTH == 4
typedef KN_JOIN(T, 4) columns;
#ifdef UNALIGNED
#define LOAD(p) vload4(0, p)
#define STORE(v, p) vstore4(v, 0, p)
#else
#define LOAD(p) (*(const global columns *)(p))
#define STORE(v, p) (*(global columns *)(p) = (v))
#endif
#define FINISH(sum, error) select(sum, sum + error, error == error)
#else
typedef T columns;
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#define FINISH(sum, error) sum_finish(sum, error)
#endif
#define LANES (32 / WIDTH)

/* The sum of rows line, line + lines, ...; four loads under way at a time. With WIDTH 4 about five instructions an element. */
static columns sum_down(const global T *from, long rows, long inner, int line, int lines)
{
    const long step = lines * inner;
    const global T *p = from + line * inner;
    columns sum = 0, error = 0, rest = 0;
    long row = line;
    for (; row + 3 * lines < rows; row += 4 * lines, p += 4 * step) {
        const columns a = LOAD(p), b = LOAD(p + step), c = LOAD(p + 2 * step), d = LOAD(p + 3 * step);
        const columns block = (a + b) + (c + d);
        KN_TWO_SUM(columns, sum, error, block);
    }
    for (; row < rows; row += lines, p += step)
        rest += LOAD(p);
    KN_TWO_SUM(columns, sum, error, rest);
    return FINISH(sum, error);
}

kernel void sum_columns(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const long length,
                        const long chunks, const T divisor)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    local columns part[KN_SUM_GROUP];
    const int me = get_local_id(0), lane = me % LANES, line = me / LANES, lines = get_local_size(0) / LANES;
    const long tiles = (inner + 31) / 32;
    for (long task = get_group_id(0); task < outer * chunks * tiles; task += get_num_groups(0)) {
        const long piece = tiles == 1 ? task : task / tiles, column = (task - piece * tiles) * 32 + lane * WIDTH;
        const long row = chunks == 1 ? piece : piece / chunks, chunk = piece - row * chunks;
        const long rows = column < inner ? min(length, n - chunk * length) : 0;
        part[me] = sum_down(x + (row * n + chunk * length) * inner + column, rows, inner, line, lines);
        for (int span = lines / 2; span > 0; span /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (line < span)
                part[me] += part[me + span * LANES];
        }
        if (line == 0 && column < inner)
            STORE(part[me] / divisor, y + piece * inner + column);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
