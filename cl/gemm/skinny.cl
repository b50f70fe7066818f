/* gemm/skinny.cl - matrix products on CPU devices in which one side is so short that tiles would be mostly empty;
 * memory-bound.
 *
 * Compiled in: T, VW. Local size 1. */
#include "common/koine.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"

/* Loads VW contiguous rows of `count` elements as `count` vectors of VW: v[i] has the i-th element of each row.
 * Compilers turn a plain loop over the rows into gathers, at a third of the speed. */
static inline void load_rows(V *v, const global T *x, const int count)
{
    if (count == 1) {
        v[0] = VLOAD(0, x);
    } else if (count == 2) {
        const V p = VLOAD(0, x), q = VLOAD(1, x);
        v[0] = (V)(p.even, q.even), v[1] = (V)(p.odd, q.odd);
    } else if (count == 3) {
        T row[3][VW];
        for (int l = 0; l < VW; l++)
            for (int i = 0; i < 3; i++)
                row[i][l] = x[3 * l + i];
        for (int i = 0; i < 3; i++)
            v[i] = VLOAD(0, row[i]);
    } else {
        const V p = VLOAD(0, x), q = VLOAD(1, x), r = VLOAD(2, x), s = VLOAD(3, x);
        const V even0 = (V)(p.even, q.even), even1 = (V)(r.even, s.even);
        const V odd0 = (V)(p.odd, q.odd), odd1 = (V)(r.odd, s.odd);
        v[0] = (V)(even0.even, even1.even), v[1] = (V)(odd0.even, odd1.even);
        v[2] = (V)(even0.odd, even1.odd), v[3] = (V)(odd0.odd, odd1.odd);
    }
}

/* c[j] = sum over i < count of a[i] * x[j][i], with short, contiguous rows of x. `count` is a constant after
 * inlining. */
static inline void short_rows(global T *restrict c, const global T *restrict x, const T *a, const int count, long first,
                              long last)
{
    long j = first;
    for (; j + VW <= last; j += VW) {
        V v[4], sum = (V)0;
        load_rows(v, x + j * count, count);
        for (int i = 0; i < count; i++)
            sum = fma((V)a[i], v[i], sum);
        VSTORE(sum, 0, c + j);
    }
    for (; j < last; j++) {
        T sum = 0;
        for (int i = 0; i < count; i++)
            sum = fma(a[i], x[j * count + i], sum);
        c[j] = sum;
    }
}

/* The epilogue of gemm_short_rows, with alpha already applied and beta 0, in loops that vectorise. */
static inline void finish_short_rows(global T *restrict c, long first, long last, const global T *restrict bias,
                                     long bias_stride, kn_gemm_finish f)
{
    if (f.has_bias && bias_stride == 0) {
        const T value = bias[0];
        for (long j = first; j < last; j++)
            c[j] = KN_CLAMP(c[j] + value, f.low, f.high);
    } else if (f.has_bias) {
        for (long j = first; j < last; j++)
            c[j] = KN_CLAMP(c[j] + bias[j], f.low, f.high);
    } else if (!isnan(f.low) || !isnan(f.high)) {
        for (long j = first; j < last; j++)
            c[j] = KN_CLAMP(c[j], f.low, f.high);
    }
}

/* One row times the transpose of x [n, k], k <= 4, ld = k, beta = 0. */
KN_KERNEL_ONCE(gemm_short_rows, (KN_ARG(a), KN_ARG(x), KN_ARG(bias), KN_ARG(c), n, k, a_stride, bias_stride, finish),
               KN_IN(a), KN_IN(x), KN_IN(bias), KN_OUT(c), long n, int k, long a_stride, long bias_stride,
               kn_gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    T scaled[4] = {0, 0, 0, 0};
    for (int i = 0; i < k; i++)
        scaled[i] = finish.alpha * a[i * a_stride];
    /* In strips that stay in cache between the sums and the epilogue. */
    const long chunk = (n + KN_SIZE(0) - 1) / KN_SIZE(0),
               end = min(n, (long)(KN_ID(0) + 1) * chunk);
    for (long first = KN_ID(0) * chunk; first < end; first += 1024) {
        const long last = min(end, first + 1024);
        switch (k) {
        case 1:
            short_rows(c, x, scaled, 1, first, last);
            break;
        case 2:
            short_rows(c, x, scaled, 2, first, last);
            break;
        case 3:
            short_rows(c, x, scaled, 3, first, last);
            break;
        default:
            short_rows(c, x, scaled, 4, first, last);
            break;
        }
        finish_short_rows(c, first, last, bias, bias_stride, finish);
    }
}

/* Dot product of two runs, in four vectors of partial sums that are added in a fixed order. */
static inline T dot_run(const global T *restrict a, const global T *restrict b, long count)
{
    V sum[4] = {(V)0, (V)0, (V)0, (V)0};
    T total = 0;
    long i = 0;
    for (; i + 4 * VW <= count; i += 4 * VW)
#pragma unroll
        for (int v = 0; v < 4; v++)
            sum[v] = fma(VLOAD(0, a + i + v * VW), VLOAD(0, b + i + v * VW), sum[v]);
    for (; i + VW <= count; i += VW)
        sum[0] = fma(VLOAD(0, a + i), VLOAD(0, b + i), sum[0]);
    if (i > 0 && i < count) {
        sum[1] = fma(load_rest(a, count, (int)(count - i)), load_rest(b, count, (int)(count - i)), sum[1]);
        i = count;
    }
    for (; i < count; i++)
        total = fma(a[i], b[i], total);
    return total + sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* The dot products of a with rows of x of at most 2 VW elements: `head` and `tail` are a's vectors, padded with zeros.
 * Each row may be read up to 2 VW elements from its start. */
static inline V dot_short_rows(const V head, const V tail, const global T *x, long k, long stride)
{
    const T numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const V lane = VLOAD(0, numbers);
    V rows[VW];
#pragma unroll
    for (int l = 0; l < VW; l++) { /* what is not of the row may be infinite */
        const global T *row = x + l * stride;
        rows[l] = head * select((V)0, VLOAD(0, row), lane < (V)k);
        if (k > VW)
            rows[l] = fma(tail, select((V)0, VLOAD(0, row + VW), lane < (V)(k - VW)), rows[l]);
    }
    zip_transpose(rows);
#pragma unroll
    for (int span = VW / 2; span > 0; span /= 2)
        for (int l = 0; l < span; l++)
            rows[l] += rows[l + span];
    return rows[0];
}

/* One row times the transpose of x [n, k], k contiguous in both. */
KN_KERNEL_ONCE(gemm_dot_rows, (KN_ARG(a), KN_ARG(x), KN_ARG(bias), KN_ARG(c), n, k, x_stride, bias_stride, finish),
               KN_IN(a), KN_IN(x), KN_IN(bias), KN_OUT(c), long n, long k, long x_stride, long bias_stride,
               kn_gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    const long chunk = (n + KN_SIZE(0) - 1) / KN_SIZE(0), end = min(n, (long)(KN_ID(0) + 1) * chunk);
    long j = KN_ID(0) * chunk;
    if (k <= 2 * VW) {
        T padded[2 * VW], sums[VW];
        for (long i = 0; i < 2 * VW; i++)
            padded[i] = i < k ? a[i] : 0;
        const long readable = (n - 1) * x_stride + k - 2 * VW;
        for (; j + VW <= end && (j + VW - 1) * x_stride <= readable; j += VW) {
            VSTORE(dot_short_rows(VLOAD(0, padded), VLOAD(1, padded), x + j * x_stride, k, x_stride), 0, sums);
            for (int l = 0; l < VW; l++)
                c[j + l] = finish_value(finish, sums[l], c + j + l, bias + (j + l) * bias_stride);
        }
    }
    for (; j < end; j++)
        c[j] = finish_value(finish, dot_run(a, x + j * x_stride, k), c + j, bias + j * bias_stride);
}

/* --- few long sums: C is tiny, k long; slices of k are summed separately, gemm_long_total adds them in order ------ */

#define MAX_RESULTS 32
#define MAX_COLUMNS 16

/* sum[j] += a[i] * b[i][j] over `count` contiguous rows b of `width` columns; `width` is a constant after inlining.
 * Lane l takes every VW-th row. */
static inline void accumulate_rows(T *restrict sum, const global T *restrict a, const global T *restrict b,
                                   const int width, long count)
{
    V total[4] = {(V)0, (V)0, (V)0, (V)0};
    long i = 0;
    for (; i + VW <= count; i += VW) {
        const V scale = VLOAD(0, a + i);
        V v[4];
        load_rows(v, b + i * width, width);
        for (int j = 0; j < width; j++)
            total[j] = fma(scale, v[j], total[j]);
    }
    for (int j = 0; j < width; j++) {
        T lane[VW];
        VSTORE(total[j], 0, lane);
        for (int l = 0; l < VW; l++)
            sum[j] += lane[l];
    }
    for (; i < count; i++)
        for (int j = 0; j < width; j++)
            sum[j] = fma(a[i], b[i * width + j], sum[j]);
}

/* The same of up to MAX_COLUMNS columns: the lanes of vectors. `readable`: rows that may be read up to MAX_COLUMNS
 * elements from their start. */
static inline void accumulate_columns(T *restrict sum, const global T *restrict a, const global T *restrict b,
                                      const int width, long stride, long count, long readable)
{
    V total[4][MAX_COLUMNS / VW];
    long i = 0;
#pragma unroll
    for (int row = 0; row < 4; row++)
        for (int v = 0; v < MAX_COLUMNS / VW; v++)
            total[row][v] = (V)0;
    for (; i + 4 <= min(count, readable); i += 4)
#pragma unroll
        for (int row = 0; row < 4; row++)
            for (int v = 0; v < MAX_COLUMNS / VW; v++)
                total[row][v] = fma((V)a[i + row], VLOAD(v, b + (i + row) * stride), total[row][v]);
    for (int v = 0; v < MAX_COLUMNS / VW; v++) {
        T lane[VW];
        VSTORE((total[0][v] + total[1][v]) + (total[2][v] + total[3][v]), 0, lane);
        for (int l = 0; l < VW && v * VW + l < width; l++)
            sum[v * VW + l] += lane[l];
    }
    for (; i < count; i++)
        for (int j = 0; j < width; j++)
            sum[j] = fma(a[i], b[i * stride + j], sum[j]);
}

/* op(A) [m, k], op(B) [k, n], m * n <= MAX_RESULTS; one slice per work-item into part[slice][m * n]. A slice is summed
 * in runs of RUN, so that rounding errors stay small. */
#define RUN 4096
KN_KERNEL_ONCE(gemm_long_sums, (KN_ARG(a), KN_ARG(b), KN_ARG(part), m, n, k, a_row, a_k, b_k, b_column, slice),
               KN_IN(a), KN_IN(b), KN_OUT(part), int m, int n, long k, long a_row, long a_k, long b_k, long b_column,
               long slice)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_OUT(T, part);
    const long end = min(k, (long)(KN_ID(0) + 1) * slice);
    T total[MAX_RESULTS];
    long row[MAX_RESULTS], column[MAX_RESULTS];
    for (int e = 0; e < m * n; e++) {
        total[e] = 0;
        row[e] = e / n * a_row;
        column[e] = e % n * b_column;
    }
    for (long k0 = KN_ID(0) * slice; k0 < end; k0 += RUN) {
        const long count = min((long)RUN, end - k0);
        T sum[MAX_RESULTS];
        for (int e = 0; e < m * n; e++)
            sum[e] = 0;
        if (a_k == 1 && b_k == 1) {
            for (int e = 0; e < m * n; e++)
                sum[e] = dot_run(a + row[e] + k0, b + column[e] + k0, count);
        } else if (m == 1 && n <= 4 && a_k == 1 && b_column == 1 && b_k == n) {
            switch (n) {
            case 2:
                accumulate_rows(sum, a + k0, b + k0 * 2, 2, count);
                break;
            case 3:
                accumulate_rows(sum, a + k0, b + k0 * 3, 3, count);
                break;
            default:
                accumulate_rows(sum, a + k0, b + k0 * 4, 4, count);
                break;
            }
        } else if (m == 1 && n <= MAX_COLUMNS && a_k == 1 && b_column == 1 && b_k >= n) {
            accumulate_columns(sum, a + k0, b + k0 * b_k, n, b_k, count,
                               ((k - 1) * b_k + n - MAX_COLUMNS) / b_k + 1 - k0);
        } else {
            for (long i = k0; i < k0 + count; i++)
                for (int e = 0; e < m * n; e++)
                    sum[e] = fma(a[row[e] + i * a_k], b[i * b_k + column[e]], sum[e]);
        }
        for (int e = 0; e < m * n; e++)
            total[e] += sum[e];
    }
    for (int e = 0; e < m * n; e++)
        part[KN_ID(0) * m * n + e] = total[e];
}

KN_KERNEL_ONCE(gemm_long_total, (KN_ARG(part), KN_ARG(bias), KN_ARG(c), m, n, slices, ldc, bias_stride, finish),
               KN_IN(part), KN_IN(bias), KN_OUT(c), int m, int n, long slices, long ldc, long bias_stride,
               kn_gemm_finish finish)
{
    KN_BIND_IN(T, part);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    if (KN_ID(0) != 0)
        return;
    for (int e = 0; e < m * n; e++) {
        T sum = 0;
        for (long s = 0; s < slices; s++)
            sum += part[s * m * n + e];
        const long target = e / n * ldc + e % n;
        c[target] = finish_value(finish, sum, c + target, bias + e % n * bias_stride);
    }
}
