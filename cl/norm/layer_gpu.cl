/* norm/layer_gpu.cl - layer normalisation for devices with work-groups, forward and backward; the formulas are in
 * norm/layer.cl.
 *
 * A team of `lanes` work-items, a power of two, processes a row. Compile-time: HELD, the number of elements that a
 * work-item keeps in registers between the passes, so that memory is read once; 0 for longer rows, which are read
 * twice. */
#include "common/koine.clh"
#include "norm/moments.clh"

/* Teams past the last row repeat it, because all of a work-group must reach the barriers; `own` is false for them. */
#define ROWS_BEGIN                                                                                             \
    const int lane = get_local_id(0) & (lanes - 1), teams = get_local_size(0) / lanes;                         \
    for (long first = get_group_id(0) * (long)teams; first < rows; first += get_num_groups(0) * (long)teams) { \
        const long mine = first + get_local_id(0) / lanes, row = min(mine, rows - 1);                           \
        const bool own = mine == row;
#define ROWS_END }

/* Two sums over each team by one tree; every work-item gets them. */
static void sum_pair_team(local T *as, local T *bs, int lanes, T *a, T *b)
{
    const int me = get_local_id(0), lane = me & (lanes - 1);

    barrier(CLK_LOCAL_MEM_FENCE);
    as[me] = *a;
    bs[me] = *b;
    for (int span = lanes / 2; span > 0; span /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < span) {
            as[me] += as[me + span];
            bs[me] += bs[me + span];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    *a = as[me - lane];
    *b = bs[me - lane];
}

#define WEIGHT_OF(k) (flags & HAS_WEIGHT ? weight[k] : (T)1)
#define BIAS_OF(k) (flags & HAS_BIAS ? bias[k] : (T)0)

#if HELD > 0

/* Does the work-item's element j exist, and what is its index in the row? */
#define AT(j) (lane + (j) * lanes)
#define THERE(j) (AT(j) < n)

kernel void layer_forward(KN_IN(x), KN_OUT(y), KN_IN(weight), KN_IN(bias), KN_OUT(table), const long rows, const long n,
                          const T eps, const int flags, const int lanes)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, table);
    local T part[KN_SUM_GROUP], other[KN_SUM_GROUP];
    ROWS_BEGIN
        const global T *p = x + row * n;
        global T *q = y + row * n;
        const T shift = p[0];
        T v[HELD], sum = 0, squares = 0;
#pragma unroll
        for (int j = 0; j < HELD; j++)
            v[j] = THERE(j) ? p[AT(j)] : shift;
#pragma unroll
        for (int j = 0; j < HELD; j++)
            sum += v[j] - shift;
        const T mean = sum_team(part, sum, lanes) / n;
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            const T apart = THERE(j) ? (v[j] - shift) - mean : (T)0;
            squares += apart * apart;
        }
        const statistics s = finish_moments(shift, mean, sum_team(other, squares, lanes), n, eps);
        if (lane == 0 && own)
            store_statistics(table + 3 * row, s);
#pragma unroll
        for (int j = 0; j < HELD; j++)
            if (THERE(j) && own)
                q[AT(j)] = KN_CENTRED(v[j], s) * s.inverse * WEIGHT_OF(AT(j)) + BIAS_OF(AT(j));
    ROWS_END
}

kernel void layer_backward(KN_IN(g), KN_IN(x), KN_OUT(grad_x), KN_IN(weight), KN_IN(table), const long rows,
                           const long n, const int flags, const int lanes)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, table);
    local T hs[KN_SUM_GROUP], hcs[KN_SUM_GROUP];
    ROWS_BEGIN
        const global T *p = g + row * n, *q = x + row * n;
        const statistics s = load_statistics(table + 3 * row);
        T h[HELD], c[HELD], sum_h = 0, sum_hc = 0;
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            h[j] = THERE(j) ? p[AT(j)] : (T)0;
            c[j] = THERE(j) ? q[AT(j)] : s.high;
        }
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            h[j] *= THERE(j) ? WEIGHT_OF(AT(j)) : (T)0;
            c[j] = KN_CENTRED(c[j], s);
            sum_h += h[j];
            sum_hc += h[j] * c[j];
        }
        sum_pair_team(hs, hcs, lanes, &sum_h, &sum_hc);
        const T middle = sum_h / n, slope = sum_hc / n * s.inverse * s.inverse;
#pragma unroll
        for (int j = 0; j < HELD; j++)
            if (THERE(j) && own)
                grad_x[row * n + AT(j)] = (h[j] - middle - c[j] * slope) * s.inverse;
    ROWS_END
}

#else

kernel void layer_forward(KN_IN(x), KN_OUT(y), KN_IN(weight), KN_IN(bias), KN_OUT(table), const long rows, const long n,
                          const T eps, const int flags, const int lanes)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, table);
    local T means[KN_SUM_GROUP], m2s[KN_SUM_GROUP], counts[KN_SUM_GROUP];
    for (long row = get_group_id(0); row < rows; row += get_num_groups(0)) {
        const global T *p = x + row * n;
        const T shift = p[0];
        T mean = 0, m2 = 0, count = 0;
        long k = get_local_id(0);
#define AT(i) (p[k + (i) * lanes] - shift)
        for (; k + 7 * lanes < n; k += 8 * lanes, count += 8)
            add_eight(&mean, &m2, count, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7));
        for (; k < n; k += lanes, count += 1)
            KN_MERGE(T, mean, m2, count, AT(0), 0, 1);
#undef AT
        join_group(means, m2s, counts, lanes, &mean, &m2, &count);
        const statistics s = finish_moments(shift, mean, m2, n, eps);
        if (get_local_id(0) == 0)
            store_statistics(table + 3 * row, s);
        for (k = get_local_id(0); k < n; k += lanes)
            y[row * n + k] = KN_CENTRED(p[k], s) * s.inverse * WEIGHT_OF(k) + BIAS_OF(k);
    }
}

kernel void layer_backward(KN_IN(g), KN_IN(x), KN_OUT(grad_x), KN_IN(weight), KN_IN(table), const long rows,
                           const long n, const int flags, const int lanes)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, table);
    local T hs[KN_SUM_GROUP], hcs[KN_SUM_GROUP];
    for (long row = get_group_id(0); row < rows; row += get_num_groups(0)) {
        const global T *p = g + row * n, *q = x + row * n;
        const statistics s = load_statistics(table + 3 * row);
        T sum_h, sum_hc;
#define H(k) (p[k] * WEIGHT_OF(k))
#define HC(k) (H(k) * KN_CENTRED(q[k], s))
        KN_SUM_SHARE(sum_h, n, H, get_local_id(0), lanes);
        KN_SUM_SHARE(sum_hc, n, HC, get_local_id(0), lanes);
        sum_pair_group(hs, hcs, lanes, &sum_h, &sum_hc);
        const T middle = sum_h / n, slope = sum_hc / n * s.inverse * s.inverse;
        for (long k = get_local_id(0); k < n; k += lanes)
            grad_x[row * n + k] = (H(k) - middle - KN_CENTRED(q[k], s) * slope) * s.inverse;
    }
}

#endif

/* A work-item per column of a chunk of rows, four rows at a time. */
kernel void layer_weight_sums(KN_IN(g), KN_IN(x), KN_IN(table), KN_OUT(partial_weight), KN_OUT(partial_bias),
                              const long rows, const long n, const long length, const long chunks)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, table);
    KN_BIND_OUT(T, partial_weight);
    KN_BIND_OUT(T, partial_bias);
    KN_FOR(i, chunks * n)
    {
        const long chunk = i / n, column = i - chunk * n, end = min((chunk + 1) * length, rows);
        T sum_g = 0, sum_gc = 0;
        long row = chunk * length;
#define TAKE(r, g_, x_)                                                        \
    {                                                                          \
        const statistics s_ = load_statistics(table + 3 * (r));                \
        sum_g += g_;                                                           \
        sum_gc += g_ * (KN_CENTRED(x_, s_) * s_.inverse);                      \
    }
        for (; row + 3 < end; row += 4) {
            const global T *p = g + row * n + column, *q = x + row * n + column;
            const T g0 = p[0], g1 = p[n], g2 = p[2 * n], g3 = p[3 * n], x0 = q[0], x1 = q[n], x2 = q[2 * n], x3 = q[3 * n];
            TAKE(row, g0, x0)
            TAKE(row + 1, g1, x1)
            TAKE(row + 2, g2, x2)
            TAKE(row + 3, g3, x3)
        }
        for (; row < end; row++)
            TAKE(row, g[row * n + column], x[row * n + column])
        partial_weight[i] = sum_gc;
        partial_bias[i] = sum_g;
    }
}
