/* norm/softmax.cl - softmax and log-softmax along the middle of [outer, n, inner], and their gradients.
 *
 *     softmax:     y = exp(x - max) / sum exp(x - max)        dL/dx = y (g - sum g y)
 *     log-softmax: y = x - max - log sum exp(x - max)         dL/dx = g - exp(y) sum g
 *
 * `logarithm` selects. For CPU devices: with inner = 1 vectors run along the row, otherwise over neighbouring
 * columns. */
#include "common/koine.clh"
#include "reduce/sum_run.clh"

/* `room` elements may be read from x on. Of y only the work-item's own may be read: others write the rest. Sums and
 * maxima use four independent chains to hide latency. NaN need not win the maximum: it makes the sum NaN. */
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
static T largest_of_row(const global T *x, long n, long room)
{
    TV m0 = -INFINITY, m1 = m0, m2 = m0, m3 = m0;
    long k = 0;

    for (; k + 64 <= n; k += 64) {
        const TV a = KN_VLOAD(x + k), b = KN_VLOAD(x + k + 16), c = KN_VLOAD(x + k + 32), d = KN_VLOAD(x + k + 48);
        m0 = LARGER(m0, a), m1 = LARGER(m1, b), m2 = LARGER(m2, c), m3 = LARGER(m3, d);
    }
    for (; k < n; k += 16) {
        const TV a = load_part(x + k, n - k, room - k, -INFINITY);
        m0 = LARGER(m0, a);
    }
    m0 = LARGER(m0, m1), m2 = LARGER(m2, m3);
    return max_lanes(LARGER(m0, m2));
}

/* The sum of the exponentials, which are stored in y unless for log-softmax. */
static T exponentials_of_row(const global T *x, global T *y, long n, long room, T largest, int logarithm)
{
    TV s0 = 0, s1 = 0;
    long k = 0;

    for (; k + 32 <= n; k += 32) {
        const TV a = exp(KN_VLOAD(x + k) - largest), b = exp(KN_VLOAD(x + k + 16) - largest);
        s0 += a, s1 += b;
        if (!logarithm) {
            KN_VSTORE(a, y + k);
            KN_VSTORE(b, y + k + 16);
        }
    }
    for (; k < n; k += 16) {
        const TV a = exp(load_part(x + k, n - k, room - k, -INFINITY) - largest);
        s0 += a;
        if (!logarithm)
            store_part(a, y + k, n - k);
    }
    return sum_lanes(s0 + s1);
}

static void forward_row(const global T *x, global T *y, long n, long room, int logarithm)
{
    const T largest = largest_of_row(x, n, room);
    const T total = exponentials_of_row(x, y, n, room, largest, logarithm);
    const T shift = logarithm ? log((TV)total).s0 : (T)0, scale = 1 / total; /* the vector log is faster */
    long k = 0;

    if (logarithm) { /* subtract the maximum first: its sum with the logarithm would be rounded to its precision */
        for (; k + 16 <= n; k += 16)
            KN_VSTORE(KN_VLOAD(x + k) - largest - shift, y + k);
        if (k < n)
            store_part(load_part(x + k, n - k, room - k, 0) - largest - shift, y + k, n - k);
    } else {
        for (; k + 16 <= n; k += 16)
            KN_VSTORE(KN_VLOAD(y + k) * scale, y + k);
        if (k < n)
            store_part(load_part(y + k, n - k, n - k, 0) * scale, y + k, n - k);
    }
}

static void backward_row(const global T *g, const global T *y, global T *out, long n, long room, int logarithm)
{
    TV s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    long k = 0;

#define TERM(i) (logarithm ? KN_VLOAD(g + k + i) : KN_VLOAD(g + k + i) * KN_VLOAD(y + k + i))
    for (; k + 64 <= n; k += 64)
        s0 += TERM(0), s1 += TERM(16), s2 += TERM(32), s3 += TERM(48);
#undef TERM
    for (; k < n; k += 16) {
        const TV a = load_part(g + k, n - k, room - k, 0);
        s0 += logarithm ? a : a * load_part(y + k, n - k, room - k, 0);
    }
    const T total = sum_lanes((s0 + s1) + (s2 + s3));
    for (k = 0; k + 16 <= n; k += 16) {
        const TV a = KN_VLOAD(g + k), b = KN_VLOAD(y + k);
        KN_VSTORE(logarithm ? a - exp(b) * total : b * (a - total), out + k);
    }
    if (k < n) {
        const TV a = load_part(g + k, n - k, room - k, 0), b = load_part(y + k, n - k, room - k, 0);
        store_part(logarithm ? a - exp(b) * total : b * (a - total), out + k, n - k);
    }
}

/* Columns, with `stride` elements between rows: BLOCK vectors at a time, so that each row contributes several
 * contiguous cache lines, copied to a tile in the L1 cache, where rows a power of two apart do not evict each other. */
#define BLOCK 16
#define TILE (32768 / sizeof(TV))

/* `vectors` of columns, BLOCK at most, with n * vectors <= TILE. */
static void forward_block(const global T *x, global T *y, long n, long stride, long vectors, int logarithm)
{
    TV tile[TILE], most[BLOCK], sum[BLOCK];

    for (long v = 0; v < vectors; v++)
        most[v] = -INFINITY, sum[v] = 0;
    for (long k = 0; k < n; k++)
        for (long v = 0; v < vectors; v++) {
            const TV a = KN_VLOAD(x + k * stride + 16 * v);
            tile[k * vectors + v] = a;
            most[v] = LARGER(most[v], a);
        }
    for (long k = 0; k < n; k++)
        for (long v = 0; v < vectors; v++) {
            const TV shifted = tile[k * vectors + v] - most[v], e = exp(shifted);
            tile[k * vectors + v] = logarithm ? shifted : e;
            sum[v] += e;
        }
    for (long v = 0; v < vectors; v++)
        sum[v] = logarithm ? log(sum[v]) : (T)1 / sum[v];
    for (long k = 0; k < n; k++)
        for (long v = 0; v < vectors; v++) {
            const TV a = tile[k * vectors + v];
            KN_VSTORE(logarithm ? a - sum[v] : a * sum[v], y + k * stride + 16 * v);
        }
}

/* Backward, with 2 * n * vectors <= TILE. */
static void backward_tile(const global T *g, const global T *y, global T *out, long n, long stride, long vectors,
                          int logarithm)
{
    TV tile[TILE], total[BLOCK];

    for (long v = 0; v < vectors; v++)
        total[v] = 0;
    for (long k = 0; k < n; k++)
        for (long v = 0; v < vectors; v++) {
            const TV a = KN_VLOAD(g + k * stride + 16 * v), b = KN_VLOAD(y + k * stride + 16 * v);
            tile[2 * (k * vectors + v)] = a;
            tile[2 * (k * vectors + v) + 1] = b;
            total[v] += logarithm ? a : a * b;
        }
    for (long k = 0; k < n; k++)
        for (long v = 0; v < vectors; v++) {
            const TV a = tile[2 * (k * vectors + v)], b = tile[2 * (k * vectors + v) + 1];
            KN_VSTORE(logarithm ? a - exp(b) * total[v] : b * (a - total[v]), out + k * stride + 16 * v);
        }
}

/* For any n. */
static void backward_block(const global T *g, const global T *y, global T *out, long n, long stride, long vectors,
                           int logarithm)
{
    TV total[BLOCK];

    for (long v = 0; v < vectors; v++)
        total[v] = 0;
    for (long k = 0; k < n; k++)
        for (long v = 0; v < vectors; v++) {
            const TV a = KN_VLOAD(g + k * stride + 16 * v);
            total[v] += logarithm ? a : a * KN_VLOAD(y + k * stride + 16 * v);
        }
    for (long k = 0; k < n; k++)
        for (long v = 0; v < vectors; v++) {
            const TV a = KN_VLOAD(g + k * stride + 16 * v), b = KN_VLOAD(y + k * stride + 16 * v);
            KN_VSTORE(logarithm ? a - exp(b) * total[v] : b * (a - total[v]), out + k * stride + 16 * v);
        }
}

/* `count` columns, at most 16: the last ones, and those with too many rows for a tile. */
static void forward_columns(const global T *x, global T *y, long n, long stride, long count, long room, int logarithm)
{
    TV most = -INFINITY, sum = 0;

    for (long k = 0; k < n; k++) {
        const TV a = load_part(x + k * stride, count, room - k * stride, 0);
        most = LARGER(most, a);
    }
    for (long k = 0; k < n; k++) {
        const TV e = exp(load_part(x + k * stride, count, room - k * stride, 0) - most);
        sum += e;
        if (!logarithm)
            store_part(e, y + k * stride, count);
    }
    const TV scale = (T)1 / sum;
    const TV shift = logarithm ? log(sum) : (TV)0;
    for (long k = 0; k < n; k++)
        if (logarithm)
            store_part(load_part(x + k * stride, count, room - k * stride, 0) - most - shift, y + k * stride, count);
        else
            store_part(load_part(y + k * stride, count, count, 0) * scale, y + k * stride, count);
}

static void backward_columns(const global T *g, const global T *y, global T *out, long n, long stride, long count,
                             long room, int logarithm)
{
    TV total = 0;

    for (long k = 0; k < n; k++) {
        const TV a = load_part(g + k * stride, count, room - k * stride, 0);
        total += logarithm ? a : a * load_part(y + k * stride, count, room - k * stride, 0);
    }
    for (long k = 0; k < n; k++) {
        const TV a = load_part(g + k * stride, count, room - k * stride, 0), b = load_part(y + k * stride, count,
                                                                                           room - k * stride, 0);
        store_part(logarithm ? a - exp(b) * total : b * (a - total), out + k * stride, count);
    }
}

/* Vectors of columns per task; `room` of them fit in a tile. */
static long block_of(long room, long inner)
{
    return room < 1 ? 1 : min(room, min((long)BLOCK, (inner + 15) / 16));
}

kernel void softmax_forward(KN_IN(x), KN_OUT(y), const long outer, const long n, const long inner, const int logarithm)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long wide = inner == 1 ? 1 : block_of(TILE / n, inner), tiles = (inner + 16 * wide - 1) / (16 * wide);
    KN_FOR(task, outer * tiles)
    {
        /* 64-bit division costs as much as a short row. */
        const long column = tiles == 1 ? 0 : task % tiles * 16 * wide;
        const long at = (tiles == 1 ? task : task / tiles) * n * inner + column, room = outer * n * inner - at;
        const long columns = min(16 * wide, inner - column), vectors = columns / 16;
        if (inner == 1) {
            forward_row(x + at, y + at, n, room, logarithm);
            continue;
        }
        if (n > TILE)
            forward_columns(x + at, y + at, n, inner, columns, room, logarithm);
        else if (vectors > 0)
            forward_block(x + at, y + at, n, inner, vectors, logarithm);
        if (n <= TILE && columns > 16 * vectors)
            forward_columns(x + at + 16 * vectors, y + at + 16 * vectors, n, inner, columns - 16 * vectors,
                            room - 16 * vectors, logarithm);
    }
}

kernel void softmax_backward(KN_IN(gradient), KN_IN(y), KN_OUT(out), const long outer, const long n, const long inner,
                             const int logarithm)
{
    KN_BIND_IN(T, gradient);
    KN_BIND_IN(T, y);
    KN_BIND_OUT(T, out);
    const long fitting = TILE / (2 * n), wide = inner == 1 ? 1 : block_of(fitting > 0 ? fitting : BLOCK, inner);
    const long tiles = (inner + 16 * wide - 1) / (16 * wide);
    KN_FOR(task, outer * tiles)
    {
        const long column = tiles == 1 ? 0 : task % tiles * 16 * wide;
        const long at = (tiles == 1 ? task : task / tiles) * n * inner + column, room = outer * n * inner - at;
        const long columns = min(16 * wide, inner - column), vectors = columns / 16, done = 16 * vectors;
        if (inner == 1) {
            backward_row(gradient + at, y + at, out + at, n, room, logarithm);
            continue;
        }
        if (vectors > 0 && fitting > 0)
            backward_tile(gradient + at, y + at, out + at, n, inner, vectors, logarithm);
        else if (vectors > 0)
            backward_block(gradient + at, y + at, out + at, n, inner, vectors, logarithm);
        if (columns > done)
            backward_columns(gradient + at + done, y + at + done, out + at + done, n, inner, columns - done,
                             room - done, logarithm);
    }
}
