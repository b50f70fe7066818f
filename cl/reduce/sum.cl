/* reduce/sum.cl - sums of floating T over the middle of [outer, n, inner], cut into chunks: x [outer, n, inner] -> y
 * [outer, chunks, inner], each chunk's sum divided by `divisor` (1 unless it is the last step of a mean). How the
 * host cuts depends on the shape alone, so the order is the same on all devices that run the same kernel. */
#include "common/divide.clh"
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
        for (long e = 0, j = 0; e < 16 * inner; e++) {
            part[j] += ((const private T *)lanes)[e];
            j = j + 1 == inner ? 0 : j + 1;
        }
        for (; row < to; row++)
            for (long j = 0; j < inner; j++)
                part[j] += x[row * inner + j];
        for (long j = 0; j < inner; j++)
            KN_TWO_SUM(T, sum[j], error[j], part[j]);
    }
    for (long j = 0; j < inner; j++)
        y[j] = sum_finish(sum[j], error[j]) / divisor;
}

/* Up to 16 columns, down the rows, each loaded with what stands beside it: `room` elements may be read. */
static TV sum_down(const global T *x, long rows, long inner, long columns, long room)
{
    TV sum = 0, error = 0;

    for (long from = 0; from < rows; from += 256) {
        const long to = min(from + 256, rows);
        /* rows whose vectors end within the room */
        const long whole = columns >= 16 ? to : min(to, room < 16 ? 0L : (room - 16) / inner + 1);
        TV part = 0, other = 0;
        long row = from;
        for (; row + 2 <= whole; row += 2) {
            part += KN_VLOAD(x + row * inner);
            other += KN_VLOAD(x + (row + 1) * inner);
        }
        for (; row < whole; row++)
            part += KN_VLOAD(x + row * inner);
        for (; row < to; row++)
            part += load_part(x + row * inner, columns, 0, 0);
        part += other;
        if (rows <= 256)
            return part;
        KN_TWO_SUM(TV, sum, error, part);
    }
    return select(sum, sum + error, error == error);
}

/* Fewer than 64 columns of a row of any length, 16 at a time; the last 16 take some again. */
static void sum_few(const global T *x, global T *y, long rows, long inner, long columns, long room, T divisor)
{
    if (columns < 16) {
        store_part(sum_down(x, rows, inner, columns, room) / divisor, y, columns);
        return;
    }
    for (long j = 0; j < columns; j += 16) {
        const long first = min(j, columns - 16);
        KN_VSTORE(sum_down(x + first, rows, inner, 16, room - first) / divisor, y + first);
    }
}

/* Short rows are laid side by side (sum_narrow) where there are enough of them to pay for taking them apart. */
#define MANY_ROWS 512

kernel void sum_columns(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const long length,
                        const long chunks, const T divisor)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long tiles = (inner + 63) / 64;
    KN_FOR(task, outer * chunks * tiles)
    {
        /* 64-bit division costs as much as a short run: none where nothing is cut. piece = outer index * chunks + chunk
         */
        const long piece = tiles == 1 ? task : task / tiles, tile = tiles == 1 ? 0 : task % tiles;
        const long block = chunks == 1 ? piece : piece / chunks, chunk = chunks == 1 ? 0 : piece % chunks;
        const long rows = min(length, n - chunk * length), columns = min(64L, inner - 64 * tile);
        const long start = (block * n + chunk * length) * inner + 64 * tile;
        global T *to = y + piece * inner + 64 * tile;
        if (columns == 64)
            sum_wide(x + start, to, rows, inner, divisor);
        else if (inner < 64 && rows >= MANY_ROWS)
            sum_narrow(x + start, to, rows, inner, divisor);
        else
            sum_few(x + start, to, rows, inner, columns, outer * n * inner - start, divisor);
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

/* WIDTH columns are loaded as one: 4 where inner is a multiple of 4, 16 bytes of f32; UNALIGNED where x or y begins
 * between vectors. A work-group takes 32 neighbouring columns; its lines share the rows. */
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

/* The sum of rows line, line + lines, ...; four loads under way at a time. With WIDTH 4 about five instructions an
 * element. */
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

/* The same for few rows: a work-item takes WIDTH columns all the way down. */
kernel void sum_few(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const long length, const long chunks,
                    const T divisor, const kn_divisor by_columns, const int small)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long across = inner / WIDTH;
    KN_FOR(i, outer * chunks * across)
    {
        const long piece = small ? (long)kn_quotient((uint)i, by_columns) : i / across, column = (i - piece * across) * WIDTH;
        const long block = chunks == 1 ? piece : piece / chunks, chunk = piece - block * chunks;
        STORE(sum_down(x + (block * n + chunk * length) * inner + column, min(length, n - chunk * length), inner, 0, 1) / divisor,
              y + piece * inner + column);
    }
}

#endif
