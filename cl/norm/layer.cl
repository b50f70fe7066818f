/* norm/layer.cl - layer normalisation of contiguous x [rows, n]: y = (x - mean) r * weight + bias with mean and r = 1 / sqrt(variance + eps) of each row, and
 * its gradients, with c = x - mean and h = g weight:
 *
 *     d/dx = r (h - sum h / n - c r^2 sum h c / n)    d/dweight = sum over the rows of g c r    d/dbias = sum over the rows of g
 *
 * table [rows][3]. The sums over the rows are made in two steps: of `length` rows each here, into partial [chunks][n]; the host has those added up. */
#include "common/koine.clh"
#include "norm/moments.clh"

#ifdef KN_CPU

static statistics forward_row(const global T *x, global T *y, const global T *weight, const global T *bias, long n,
                              long room, T eps, int flags)
{
    run_moments m = {0, 0, 0, 0, 0, 0};
    T mean, m2;

    add_run(&m, x, n, room, x[0]);
    join_moments(&m, &mean, &m2);
    const statistics s = finish_moments(x[0], mean, m2, n, eps);
    for (long k = 0; k < n; k += 16) {
        TV v = KN_CENTRED(load_part(x + k, n - k, room - k, 0), s) * s.inverse;
        if (flags & HAS_WEIGHT)
            v *= load_part(weight + k, n - k, n - k, 0);
        if (flags & HAS_BIAS)
            v += load_part(bias + k, n - k, n - k, 0);
        store_part(v, y + k, n - k);
    }
    return s;
}

kernel void layer_forward(KN_IN(x), KN_OUT(y), KN_IN(weight), KN_IN(bias), KN_OUT(table), const long rows, const long n,
                          const T eps, const int flags)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, table);
    KN_FOR(row, rows)
    {
        const statistics s = forward_row(x + row * n, y + row * n, weight, bias, n, (rows - row) * n, eps, flags);
        store_statistics(table + 3 * row, s);
    }
}

static TV weighted(const global T *g, const global T *weight, long count, long room, int flags)
{
    const TV v = load_part(g, count, room, 0);
    return flags & HAS_WEIGHT ? v * load_part(weight, count, count, 0) : v;
}

/* sum h and sum h c, in blocks added with compensation. */
static void row_sums(const global T *g, const global T *x, const global T *weight, statistics s, long n, long room,
                     int flags, T *sum_h, T *sum_hc)
{
    T h_error = 0, hc_error = 0;

    *sum_h = *sum_hc = 0;
    for (long from = 0; from < n; from += KN_SUM_BLOCK) {
        const long to = min(from + KN_SUM_BLOCK, n);
        TV a = 0, b = 0;
        for (long k = from; k < to; k += 16) {
            const TV h = weighted(g + k, weight + k, n - k, room - k, flags);
            a += h;
            b += h * KN_CENTRED(load_part(x + k, n - k, room - k, s.high), s);
        }
        const T h_part = sum_lanes(a), hc_part = sum_lanes(b);
        KN_TWO_SUM(T, *sum_h, h_error, h_part);
        KN_TWO_SUM(T, *sum_hc, hc_error, hc_part);
    }
    *sum_h = sum_finish(*sum_h, h_error);
    *sum_hc = sum_finish(*sum_hc, hc_error);
}

/* partial += this row's share, or = for the first of a chunk. */
static void add_row(const global T *g, const global T *x, statistics s, global T *partial_weight,
                    global T *partial_bias, long n, long room, int first)
{
    for (long k = 0; k < n; k += 16) {
        const long count = n - k;
        const TV a = load_part(g + k, count, room - k, 0);
        const TV b = a * (KN_CENTRED(load_part(x + k, count, room - k, s.high), s) * s.inverse);
        store_part(first ? b : b + load_part(partial_weight + k, count, count, 0), partial_weight + k, count);
        store_part(first ? a : a + load_part(partial_bias + k, count, count, 0), partial_bias + k, count);
    }
}

static void backward_row(const global T *g, const global T *x, global T *grad_x, const global T *weight, statistics s,
                         long n, long room, int flags)
{
    T sum_h, sum_hc;

    row_sums(g, x, weight, s, n, room, flags, &sum_h, &sum_hc);
    const T middle = sum_h / n, slope = sum_hc / n * s.inverse * s.inverse;
    for (long k = 0; k < n; k += 16) {
        const TV h = weighted(g + k, weight + k, n - k, room - k, flags);
        const TV c = KN_CENTRED(load_part(x + k, n - k, room - k, s.high), s);
        store_part((h - middle - c * slope) * s.inverse, grad_x + k, n - k);
    }
}

kernel void layer_backward(KN_IN(g), KN_IN(x), KN_OUT(grad_x), KN_IN(weight), KN_IN(table), KN_OUT(partial_weight),
                           KN_OUT(partial_bias), const long rows, const long n, const long length, const long chunks,
                           const int flags)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, table);
    KN_BIND_OUT(T, partial_weight);
    KN_BIND_OUT(T, partial_bias);
    KN_FOR(chunk, chunks)
    {
        for (long row = chunk * length; row < min((chunk + 1) * length, rows); row++) {
            const long at = row * n, room = (rows - row) * n;
            const statistics s = load_statistics(table + 3 * row);
            if (flags & WANTS_X)
                backward_row(g + at, x + at, grad_x + at, weight, s, n, room, flags);
            if (flags & (WANTS_WEIGHT | WANTS_BIAS))
                add_row(g + at, x + at, s, partial_weight + chunk * n, partial_bias + chunk * n, n, room,
                        row == chunk * length);
        }
    }
}

#else

/* A work-group per row. */
kernel void layer_forward(KN_IN(x), KN_OUT(y), KN_IN(weight), KN_IN(bias), KN_OUT(table), const long rows, const long n,
                          const T eps, const int flags)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, table);
    local T means[KN_SUM_GROUP], m2s[KN_SUM_GROUP], counts[KN_SUM_GROUP];
    const long step = get_local_size(0);
    for (long row = get_group_id(0); row < rows; row += get_num_groups(0)) {
        const global T *p = x + row * n;
        const T shift = p[0];
        T mean = 0, m2 = 0, count = 0;
        long k = get_local_id(0);
#define AT(i) (p[k + (i) * step] - shift)
        for (; k + 3 * step < n; k += 4 * step, count += 4)
            add_four(&mean, &m2, count, AT(0), AT(1), AT(2), AT(3));
        for (; k < n; k += step, count += 1)
            KN_MERGE(T, mean, m2, count, AT(0), 0, 1);
#undef AT
        join_group(means, m2s, counts, &mean, &m2, &count);
        const statistics s = finish_moments(shift, mean, m2, n, eps);
        if (get_local_id(0) == 0)
            store_statistics(table + 3 * row, s);
        for (k = get_local_id(0); k < n; k += step) {
            const T v = KN_CENTRED(p[k], s) * s.inverse;
            y[row * n + k] = (flags & HAS_WEIGHT ? v * weight[k] : v) + (flags & HAS_BIAS ? bias[k] : 0);
        }
    }
}

kernel void layer_backward(KN_IN(g), KN_IN(x), KN_OUT(grad_x), KN_IN(weight), KN_IN(table), const long rows,
                           const long n, const int flags)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, table);
    local T hs[KN_SUM_GROUP], hcs[KN_SUM_GROUP];
    const long step = get_local_size(0);
    for (long row = get_group_id(0); row < rows; row += get_num_groups(0)) {
        const global T *p = g + row * n, *q = x + row * n;
        const statistics s = load_statistics(table + 3 * row);
        T sum_h = 0, sum_hc = 0, h_error = 0, hc_error = 0;
        long at = get_local_id(0);
#define H(k) (flags & HAS_WEIGHT ? p[k] * weight[k] : p[k])
        while (at < n) { /* in blocks, whose sums are added with compensation */
            T a = 0, b = 0;
            for (int i = 0; i < 64 && at < n; i++, at += step) {
                a += H(at);
                b += H(at) * KN_CENTRED(q[at], s);
            }
            KN_TWO_SUM(T, sum_h, h_error, a);
            KN_TWO_SUM(T, sum_hc, hc_error, b);
        }
        sum_h = sum_finish(sum_h, h_error);
        sum_hc = sum_finish(sum_hc, hc_error);
        sum_pair_group(hs, hcs, &sum_h, &sum_hc);
        const T middle = sum_h / n, slope = sum_hc / n * s.inverse * s.inverse;
        for (long k = get_local_id(0); k < n; k += step)
            grad_x[row * n + k] = (H(k) - middle - KN_CENTRED(q[k], s) * slope) * s.inverse;
    }
}

/* A work-item per column of a chunk of rows. */
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
        const long chunk = i / n, column = i % n;
        T sum_g = 0, sum_gc = 0;
        for (long row = chunk * length; row < min((chunk + 1) * length, rows); row++) {
            const statistics s = load_statistics(table + 3 * row);
            sum_g += g[row * n + column];
            sum_gc += g[row * n + column] * (KN_CENTRED(x[row * n + column], s) * s.inverse);
        }
        partial_weight[i] = sum_gc;
        partial_bias[i] = sum_g;
    }
}

#endif
