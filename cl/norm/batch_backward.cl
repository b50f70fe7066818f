/* norm/batch_backward.cl - gradients of batch normalisation on CPU devices, with c = x - mean, r = 1 / sqrt(variance +
 * eps) and sums over a channel's n elements:
 *
 *     d/dbias = sum g    d/dweight = r sum g c
 *     d/dx = weight r (g - sum g / n - c r^2 sum g c / n) in training, weight r g in evaluation
 *
 * where g is the gradient after the activation: the result that it clamped is recomputed, c r weight + bias with
 * forward's rounding, which costs a fraction of reading it. */
#define BACKWARD
#include "norm/batch.clh"

/* The channel's sums, of g and g c, are kept behind those of the chunks. */
static global T *sums_of_channel(long channel, operands in, kn_batch_shape s)
{
    return in.partial + 2 * (s.chunks * s.channels + channel);
}

static void finish_channel(long channel, operands in, kn_batch_shape s)
{
    global T *sums = sums_of_channel(channel, in, s);
    T g = 0, g_error = 0, gc = 0, gc_error = 0;

    for (long chunk = 0; chunk < s.chunks; chunk++) {
        const global T *p = in.partial + 2 * (chunk * s.channels + channel);
        KN_TWO_SUM(T, g, g_error, p[0]);
        KN_TWO_SUM(T, gc, gc_error, p[1]);
    }
    g = sum_finish(g, g_error);
    gc = sum_finish(gc, gc_error);
    sums[0] = g;
    sums[1] = gc;
    if (s.flags & KN_NORM_WANTS_WEIGHT)
        in.grad_weight[channel] = gc * in.table[3 * channel + 2];
    if (s.flags & KN_NORM_WANTS_BIAS)
        in.grad_bias[channel] = g;
}

/* d/dx = (g - middle - c slope) scale */
static T middle_of(long channel, operands in, kn_batch_shape s)
{
    return s.flags & KN_NORM_TRAINING ? sums_of_channel(channel, in, s)[0] / (T)(s.outer * s.inner) : 0;
}

static T slope_of(long channel, operands in, kn_batch_shape s)
{
    const T n = s.outer * s.inner, inverse = in.table[3 * channel + 2];
    return s.flags & KN_NORM_TRAINING ? sums_of_channel(channel, in, s)[1] / n * inverse * inverse : 0;
}

static T scale_in(long channel, operands in, kn_batch_shape s)
{
    return scale_of(in.table[3 * channel + 2], channel, in, s);
}

typedef struct run_sums {
    TV g0, g1, g2, g3, gc0, gc1, gc2, gc3;
} run_sums;

/* `run` elements of one channel; `room` may be read. */
static void add_sums(run_sums *sums, const global element *g, const global element *x, long run, long room,
                     statistics s, T scale, T bias, cut bounds)
{
    run_sums r = *sums;
    long k = 0;

#define ADD(i, gradient, input)                                            \
    do {                                                                   \
        const TV c_ = KN_CENTRED(input, s);                                \
        const TV g_ = let_through(gradient, c_ * scale + bias, bounds);    \
        r.g##i += g_;                                                      \
        r.gc##i += g_ * c_;                                                \
    } while (0)
#define ADD_WHOLE(i) ADD(i, LOAD_16(g + k + 16 * i), LOAD_16(x + k + 16 * i))
    for (; k + 64 <= run; k += 64) {
        ADD_WHOLE(0);
        ADD_WHOLE(1);
        ADD_WHOLE(2);
        ADD_WHOLE(3);
    }
    for (; k + 16 <= run; k += 16)
        ADD_WHOLE(0);
    if (k < run)
        ADD(1, load_some(g + k, run - k, room - k, 0), load_some(x + k, run - k, room - k, s.high));
#undef ADD_WHOLE
#undef ADD
    *sums = r;
}

static void sums_of_group(long first, long chunk, operands in, kn_batch_shape s)
{
    const long from = chunk * s.length, to = min(from + s.length, s.outer * s.inner);
    const long some = min(s.group, s.channels - first), all = s.outer * s.channels * s.inner;
    run_sums sums[MAX_IN_GROUP];

    for (long c = 0; c < some; c++)
        sums[c] = (run_sums){0, 0, 0, 0, 0, 0, 0, 0};
    FOR_PIECES(from, to)
    {
        for (long c = 0; c < some; c++) {
            const long channel = first + c, start = (row * s.channels + channel) * s.inner + column;
            add_sums(&sums[c], in.g + start, in.x + start, run, all - start, load_statistics(in.table + 3 * channel),
                     scale_in(channel, in, s), bias_of(channel, in, s), in.bounds);
        }
    }
    for (long c = 0; c < some; c++) {
        const run_sums r = sums[c];
        in.partial[2 * (chunk * s.channels + first + c)] = sum_lanes((r.g0 + r.g1) + (r.g2 + r.g3));
        in.partial[2 * (chunk * s.channels + first + c) + 1] = sum_lanes((r.gc0 + r.gc1) + (r.gc2 + r.gc3));
    }
}

static void sums_of_tile(long first, long chunk, operands in, kn_batch_shape s)
{
    const long from = chunk * s.length, to = min(from + s.length, s.outer), some = min(s.tile, s.channels - first);
    const long line = some * s.inner, stride = s.channels * s.inner, start = first * s.inner, all = s.outer * stride;
    TV high[TILE_VECTORS], low[TILE_VECTORS], scale[TILE_VECTORS], bias[TILE_VECTORS];
    TV sum_g[TILE_VECTORS], sum_gc[TILE_VECTORS];
    long row = from;

    SPREAD(high, line, first, in.table[3 * channel]);
    SPREAD(low, line, first, in.table[3 * channel + 1]);
    SPREAD(scale, line, first, scale_in(channel, in, s));
    SPREAD(bias, line, first, bias_of(channel, in, s));
    for (long v = 0; v < (line + 15) / 16; v++)
        sum_g[v] = sum_gc[v] = 0;
#define C(i) (LOAD_16(in.x + at + (i) * stride) - high[v] - low[v])
#define G(i, c) let_through(LOAD_16(in.g + at + (i) * stride), (c) * scale[v] + bias[v], in.bounds)
    for (; row + 4 <= to; row += 4)
        for (long v = 0; 16 * v + 16 <= line; v++) {
            const long at = row * stride + start + 16 * v;
            const TV c0 = C(0), c1 = C(1), c2 = C(2), c3 = C(3), g0 = G(0, c0), g1 = G(1, c1), g2 = G(2, c2),
                     g3 = G(3, c3);
            sum_g[v] += (g0 + g1) + (g2 + g3);
            sum_gc[v] += (g0 * c0 + g1 * c1) + (g2 * c2 + g3 * c3);
        }
    for (; row < to; row++)
        for (long v = 0; 16 * v + 16 <= line; v++) {
            const long at = row * stride + start + 16 * v;
            const TV c = C(0), g = G(0, c);
            sum_g[v] += g;
            sum_gc[v] += g * c;
        }
#undef C
#undef G
    if (line % 16 != 0)
        for (row = from; row < to; row++) {
            const long v = line / 16, at = row * stride + start + 16 * v;
            const TV c = load_some(in.x + at, line % 16, all - at, 0) - high[v] - low[v];
            const TV g = let_through(load_some(in.g + at, line % 16, all - at, 0), c * scale[v] + bias[v], in.bounds);
            sum_g[v] += g;
            sum_gc[v] += g * c;
        }
    for (long c = 0; c < some; c++) {
        in.partial[2 * (chunk * s.channels + first + c)] = sum_of_channel(sum_g, c * s.inner, s.inner);
        in.partial[2 * (chunk * s.channels + first + c) + 1] = sum_of_channel(sum_gc, c * s.inner, s.inner);
    }
}

static void apply_to_run(const global element *g, const global element *x, global element *grad_x, long run, long room,
                         statistics stats, T scale, T bias, T middle, T slope, cut bounds)
{
#define STEP(LOAD, STORE)                                                                     \
    do {                                                                                      \
        const TV c_ = KN_CENTRED(LOAD(x), stats);                                             \
        const TV g_ = let_through(LOAD(g), c_ * scale + bias, bounds);                        \
        STORE((g_ - middle - c_ * slope) * scale, grad_x);                                    \
    } while (0)
    FOR_VECTORS(STEP, run, room);
#undef STEP
}

static void apply_to_group(long first, long chunk, operands in, kn_batch_shape s)
{
    const long from = chunk * s.length, to = min(from + s.length, s.outer * s.inner);
    const long all = s.outer * s.channels * s.inner;

    FOR_PIECES(from, to)
    {
        for (long channel = first; channel < min(first + s.group, s.channels); channel++) {
            const long start = (row * s.channels + channel) * s.inner + column;
            apply_to_run(in.g + start, in.x + start, in.grad_x + start, run, all - start,
                         load_statistics(in.table + 3 * channel), scale_in(channel, in, s), bias_of(channel, in, s),
                         middle_of(channel, in, s), slope_of(channel, in, s), in.bounds);
        }
    }
}

static void apply_to_tile(long first, long chunk, operands in, kn_batch_shape s)
{
    const long from = chunk * s.length, to = min(from + s.length, s.outer);
    const long line = min(s.tile, s.channels - first) * s.inner;
    const long stride = s.channels * s.inner, start = first * s.inner, all = s.outer * stride;
    TV high[TILE_VECTORS], low[TILE_VECTORS], scale[TILE_VECTORS], bias[TILE_VECTORS];
    TV middle[TILE_VECTORS], slope[TILE_VECTORS];

    SPREAD(high, line, first, in.table[3 * channel]);
    SPREAD(low, line, first, in.table[3 * channel + 1]);
    SPREAD(scale, line, first, scale_in(channel, in, s));
    SPREAD(bias, line, first, bias_of(channel, in, s));
    SPREAD(middle, line, first, middle_of(channel, in, s));
    SPREAD(slope, line, first, slope_of(channel, in, s));
#define STEP(LOAD, STORE)                                                              \
    do {                                                                               \
        const long v = k >> 4;                                                         \
        const TV c_ = LOAD(in.x + at) - high[v] - low[v];                              \
        const TV g_ = let_through(LOAD(in.g + at), c_ * scale[v] + bias[v], in.bounds); \
        STORE((g_ - middle[v] - c_ * slope[v]) * scale[v], in.grad_x + at);            \
    } while (0)
    for (long row = from; row < to; row++) {
        const long at = row * stride + start;
        FOR_VECTORS(STEP, line, all - at);
    }
#undef STEP
}
