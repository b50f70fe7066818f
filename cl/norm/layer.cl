/* norm/layer.cl - layer normalisation of contiguous x [rows, n]: y = (x - mean) r * weight + bias with mean and r = 1 /
 * sqrt(variance + eps) of each row, and its gradients, with c = x - mean and h = g weight:
 *
 *     d/dx = r (h - sum h / n - c r^2 sum h c / n)    d/dweight = sum over the rows of g c r    d/dbias = sum over the rows of g
 *
 * table [rows][3]. The sums over the rows take two steps: over `length` rows each here, into partial [chunks][n], which
 * a second launch adds. */
#include "common/koine.clh"
#include "norm/moments.clh"

static statistics forward_row(const global T *x, global T *y, const global T *weight, const global T *bias, long n,
                              long room, T eps, int flags)
{
    run_moments m = {0, 0, 0, 0, 0, 0};
    T mean, m2;

    add_run(&m, x, n, room, x[0]);
    join_moments(&m, &mean, &m2);
    const statistics s = finish_moments(x[0], mean, m2, n, eps);
    long k = 0;
    for (; k + 16 <= n; k += 16) {
        TV v = KN_CENTRED(KN_VLOAD(x + k), s) * s.inverse;
        if (flags & HAS_WEIGHT)
            v *= KN_VLOAD(weight + k);
        if (flags & HAS_BIAS)
            v += KN_VLOAD(bias + k);
        KN_VSTORE(v, y + k);
    }
    if (k < n) {
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

/* sum h and sum h c, in blocks with compensated summation. */
static void row_sums(const global T *g, const global T *x, const global T *weight, statistics s, long n, long room,
                     int flags, T *sum_h, T *sum_hc)
{
    T h_error = 0, hc_error = 0;

    *sum_h = *sum_hc = 0;
    for (long from = 0; from < n; from += KN_SUM_BLOCK) {
        const long to = min(from + KN_SUM_BLOCK, n);
        TV a = 0, b = 0;
        long k = from;
        for (; k + 16 <= to; k += 16) {
            const TV h = flags & HAS_WEIGHT ? KN_VLOAD(g + k) * KN_VLOAD(weight + k) : KN_VLOAD(g + k);
            a += h;
            b += h * KN_CENTRED(KN_VLOAD(x + k), s);
        }
        if (k < to) {
            TV h = load_part(g + k, to - k, room - k, 0);
            if (flags & HAS_WEIGHT)
                h *= load_part(weight + k, to - k, n - k, 0);
            a += h;
            b += h * KN_CENTRED(load_part(x + k, to - k, room - k, s.high), s);
        }
        const T h_part = sum_lanes(a), hc_part = sum_lanes(b);
        KN_TWO_SUM(T, *sum_h, h_error, h_part);
        KN_TWO_SUM(T, *sum_hc, hc_error, hc_part);
    }
    *sum_h = sum_finish(*sum_h, h_error);
    *sum_hc = sum_finish(*sum_hc, hc_error);
}

/* One row: its gradient, and its contribution to the weight's and bias's gradients, added to partial, or stored there
 * for the first row of a chunk. WANTED: which of them; LOAD and STORE: of 16 elements, or of the remaining ones. */
#define ROW_STEP(LOAD, STORE, WANTED_X, WANTED_SUMS)                                     \
    do {                                                                                 \
        const TV v_ = LOAD(g, room), c_ = KN_CENTRED(LOAD(x, room), s);                  \
        if (WANTED_X) {                                                                  \
            const TV h_ = flags & HAS_WEIGHT ? v_ * LOAD(weight, n) : v_;                \
            STORE((h_ - middle - c_ * slope) * s.inverse, grad_x);                       \
        }                                                                                \
        if (WANTED_SUMS) {                                                               \
            const TV share_ = v_ * (c_ * s.inverse);                                     \
            STORE(first ? share_ : share_ + LOAD(partial_weight, n), partial_weight);    \
            STORE(first ? v_ : v_ + LOAD(partial_bias, n), partial_bias);                \
        }                                                                                \
    } while (0)
#define WHOLE_LOAD(p, room) KN_VLOAD((p) + k)
#define WHOLE_STORE(v, p) KN_VSTORE(v, (p) + k)
#define PART_LOAD(p, room) load_part((p) + k, n - k, (room)-k, 0)
#define PART_STORE(v, p) store_part(v, (p) + k, n - k)

static void backward_row(const global T *g, const global T *x, global T *grad_x, const global T *weight,
                         global T *partial_weight, global T *partial_bias, statistics s, long n, long room, int first,
                         int flags)
{
    const int wants_x = flags & WANTS_X, wants_sums = flags & (WANTS_WEIGHT | WANTS_BIAS);
    T sum_h = 0, sum_hc = 0;
    long k = 0;

    if (wants_x)
        row_sums(g, x, weight, s, n, room, flags, &sum_h, &sum_hc);
    const T middle = sum_h / n, slope = sum_hc / n * s.inverse * s.inverse;
    if (wants_x && wants_sums)
        for (; k + 16 <= n; k += 16)
            ROW_STEP(WHOLE_LOAD, WHOLE_STORE, 1, 1);
    else
        for (; k + 16 <= n; k += 16)
            ROW_STEP(WHOLE_LOAD, WHOLE_STORE, wants_x, wants_sums);
    if (k < n)
        ROW_STEP(PART_LOAD, PART_STORE, wants_x, wants_sums);
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
            backward_row(g + at, x + at, grad_x + at, weight, partial_weight + chunk * n, partial_bias + chunk * n, s, n,
                         room, row == chunk * length, flags);
        }
    }
}
