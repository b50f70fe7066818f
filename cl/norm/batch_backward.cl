/* norm/batch_backward.cl - gradients of batch normalisation, with c = x - mean, r = 1 / sqrt(variance + eps) and sums
 * over a channel's n elements:
 *
 *     d/dbias = sum g    d/dweight = r sum g c
 *     d/dx = weight r (g - sum g / n - c r^2 sum g c / n) in training, weight r g in evaluation
 *
 * where g is the gradient after the activation: the result that it clamped is recomputed, c r weight + bias with
 * forward's rounding, which costs a fraction of reading it. Steps as in batch.cl: sums (per chunk), finish (per
 * channel), apply; batch_backward combines them for CPU devices. partial [chunks][channels][2], sums [channels][2]. */
#include "norm/batch.clh"

static void finish_channel(long channel, const global T *partial, const global T *table, global T *sums,
                           global T *grad_weight, global T *grad_bias, long channels, long chunks, int flags)
{
    T g = 0, g_error = 0, gc = 0, gc_error = 0;

    for (long chunk = 0; chunk < chunks; chunk++) {
        const global T *p = partial + 2 * (chunk * channels + channel);
        KN_TWO_SUM(T, g, g_error, p[0]);
        KN_TWO_SUM(T, gc, gc_error, p[1]);
    }
    g = sum_finish(g, g_error);
    gc = sum_finish(gc, gc_error);
    sums[2 * channel] = g;
    sums[2 * channel + 1] = gc;
    if (flags & WANTS_WEIGHT)
        grad_weight[channel] = gc * table[3 * channel + 2];
    if (flags & WANTS_BIAS)
        grad_bias[channel] = g;
}

/* The result was c scale + bias. */
static T scale_of(operands in, long channel)
{
    const T inverse = in.table[3 * channel + 2];
    return in.flags & HAS_WEIGHT ? in.weight[channel] * inverse : inverse;
}

static T bias_of(operands in, long channel) { return in.flags & HAS_BIAS ? in.bias[channel] : 0; }

/* d/dx = (g - middle - c slope) scale */
static T middle_of(operands in, const global T *sums, long channel, T n)
{
    return in.flags & TRAINING ? sums[2 * channel] / n : 0;
}

static T slope_of(operands in, const global T *sums, long channel, T n)
{
    const T inverse = in.table[3 * channel + 2];
    return in.flags & TRAINING ? sums[2 * channel + 1] / n * inverse * inverse : 0;
}

typedef struct run_sums {
    TV g0, g1, g2, g3, gc0, gc1, gc2, gc3;
} run_sums;

/* `run` elements of one channel; `room` may be read. */
static void add_sums(run_sums *sums, const global T *g, const global T *x, long run, long room, statistics s, T scale,
                     T bias, cut bounds)
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
#define ADD_WHOLE(i) ADD(i, KN_VLOAD(g + k + 16 * i), KN_VLOAD(x + k + 16 * i))
    for (; k + 64 <= run; k += 64) {
        ADD_WHOLE(0);
        ADD_WHOLE(1);
        ADD_WHOLE(2);
        ADD_WHOLE(3);
    }
    for (; k + 16 <= run; k += 16)
        ADD_WHOLE(0);
    if (k < run)
        ADD(1, load_part(g + k, run - k, room - k, 0), load_part(x + k, run - k, room - k, s.high));
#undef ADD_WHOLE
#undef ADD
    *sums = r;
}

static void sums_of_group(long first, long chunk, operands in, global T *partial, SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer * inner), all = outer * channels * inner;
    const long some = min(group, channels - first);
    run_sums sums[MAX_IN_GROUP];

    for (long c = 0; c < some; c++)
        sums[c] = (run_sums){0, 0, 0, 0, 0, 0, 0, 0};
    FOR_PIECES(from, to)
    {
        for (long c = 0; c < some; c++) {
            const long channel = first + c, start = (row * channels + channel) * inner + column;
            add_sums(&sums[c], in.g + start, in.x + start, run, all - start, load_statistics(in.table + 3 * channel),
                     scale_of(in, channel), bias_of(in, channel), in.bounds);
        }
    }
    for (long c = 0; c < some; c++) {
        const run_sums r = sums[c];
        partial[2 * (chunk * channels + first + c)] = sum_lanes((r.g0 + r.g1) + (r.g2 + r.g3));
        partial[2 * (chunk * channels + first + c) + 1] = sum_lanes((r.gc0 + r.gc1) + (r.gc2 + r.gc3));
    }
}

static void sums_of_tile(long first, long chunk, operands in, global T *partial, SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer), some = min(tile, channels - first);
    const long line = some * inner, stride = channels * inner, start = first * inner, all = outer * stride;
    TV high[TILE_VECTORS], low[TILE_VECTORS], scale[TILE_VECTORS], bias[TILE_VECTORS];
    TV sum_g[TILE_VECTORS], sum_gc[TILE_VECTORS];
    long row = from;

    SPREAD(high, line, first, in.table[3 * channel]);
    SPREAD(low, line, first, in.table[3 * channel + 1]);
    SPREAD(scale, line, first, scale_of(in, channel));
    SPREAD(bias, line, first, bias_of(in, channel));
    for (long v = 0; v < (line + 15) / 16; v++)
        sum_g[v] = sum_gc[v] = 0;
#define C(i) (KN_VLOAD(in.x + at + (i) * stride) - high[v] - low[v])
#define G(i, c) let_through(KN_VLOAD(in.g + at + (i) * stride), (c) * scale[v] + bias[v], in.bounds)
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
            const TV c = load_part(in.x + at, line % 16, all - at, 0) - high[v] - low[v];
            const TV g = let_through(load_part(in.g + at, line % 16, all - at, 0), c * scale[v] + bias[v], in.bounds);
            sum_g[v] += g;
            sum_gc[v] += g * c;
        }
    for (long c = 0; c < some; c++) {
        T a = 0, b = 0;
        for (long e = c * inner; e < (c + 1) * inner; e++) {
            a += ((const private T *)sum_g)[e];
            b += ((const private T *)sum_gc)[e];
        }
        partial[2 * (chunk * channels + first + c)] = a;
        partial[2 * (chunk * channels + first + c) + 1] = b;
    }
}

static void sums_of(long task, long chunk, operands in, global T *partial, SHAPE_PARAMETERS)
{
    if (tile > 1)
        sums_of_tile(task * tile, chunk, in, partial, SHAPE);
    else
        sums_of_group(task * group, chunk, in, partial, SHAPE);
}

static void apply_to_run(const global T *g, const global T *x, global T *grad_x, long run, long room, statistics s,
                         T scale, T bias, T middle, T slope, cut bounds)
{
    long k = 0;

#define STEP(LOAD, STORE)                                                                     \
    do {                                                                                      \
        const TV c_ = KN_CENTRED(LOAD(x), s);                                                 \
        const TV g_ = let_through(LOAD(g), c_ * scale + bias, bounds);                        \
        STORE((g_ - middle - c_ * slope) * scale);                                            \
    } while (0)
#define WHOLE(p) KN_VLOAD(p + k)
#define STORE_WHOLE(v) KN_VSTORE(v, grad_x + k)
#define PART(p) load_part(p + k, run - k, room - k, 0)
#define STORE_PART(v) store_part(v, grad_x + k, run - k)
    for (; k + 16 <= run; k += 16)
        STEP(WHOLE, STORE_WHOLE);
    if (k < run)
        STEP(PART, STORE_PART);
#undef STEP
#undef WHOLE
#undef STORE_WHOLE
#undef PART
#undef STORE_PART
}

static void apply_to_group(long first, long chunk, operands in, global T *grad_x, const global T *sums,
                           SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer * inner), all = outer * channels * inner;
    const T n = outer * inner;

    FOR_PIECES(from, to)
    {
        for (long channel = first; channel < min(first + group, channels); channel++) {
            const long start = (row * channels + channel) * inner + column;
            apply_to_run(in.g + start, in.x + start, grad_x + start, run, all - start,
                         load_statistics(in.table + 3 * channel), scale_of(in, channel), bias_of(in, channel),
                         middle_of(in, sums, channel, n), slope_of(in, sums, channel, n), in.bounds);
        }
    }
}

static void apply_to_tile(long first, long chunk, operands in, global T *grad_x, const global T *sums,
                          SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer), line = min(tile, channels - first) * inner;
    const long stride = channels * inner, start = first * inner, all = outer * stride;
    const T n = outer * inner;
    TV high[TILE_VECTORS], low[TILE_VECTORS], scale[TILE_VECTORS], bias[TILE_VECTORS];
    TV middle[TILE_VECTORS], slope[TILE_VECTORS];

    SPREAD(high, line, first, in.table[3 * channel]);
    SPREAD(low, line, first, in.table[3 * channel + 1]);
    SPREAD(scale, line, first, scale_of(in, channel));
    SPREAD(bias, line, first, bias_of(in, channel));
    SPREAD(middle, line, first, middle_of(in, sums, channel, n));
    SPREAD(slope, line, first, slope_of(in, sums, channel, n));
#define STEP(LOAD, STORE)                                                              \
    do {                                                                               \
        const TV c_ = LOAD(in.x) - high[v] - low[v];                                   \
        const TV g_ = let_through(LOAD(in.g), c_ * scale[v] + bias[v], in.bounds);          \
        STORE((g_ - middle[v] - c_ * slope[v]) * scale[v]);                            \
    } while (0)
#define WHOLE(p) KN_VLOAD(p + at)
#define STORE_WHOLE(v) KN_VSTORE(v, grad_x + at)
#define PART(p) load_part(p + at, line % 16, all - at, 0)
#define STORE_PART(v) store_part(v, grad_x + at, line % 16)
    for (long row = from; row < to; row++) {
        long at = row * stride + start, v = 0;
        for (; 16 * v + 16 <= line; v++, at += 16)
            STEP(WHOLE, STORE_WHOLE);
        if (line % 16 != 0)
            STEP(PART, STORE_PART);
    }
#undef STEP
#undef WHOLE
#undef STORE_WHOLE
#undef PART
#undef STORE_PART
}

static void apply_to(long task, long chunk, operands in, global T *grad_x, const global T *sums, SHAPE_PARAMETERS)
{
    if (tile > 1)
        apply_to_tile(task * tile, chunk, in, grad_x, sums, SHAPE);
    else
        apply_to_group(task * group, chunk, in, grad_x, sums, SHAPE);
}

kernel void batch_sums(OPERANDS, KN_OUT(partial), SHAPE_PARAMETERS)
{
    BIND_OPERANDS(in);
    KN_BIND_OUT(T, partial);
    KN_FOR(i, TASKS * chunks) { sums_of(i / chunks, i % chunks, in, partial, SHAPE); }
}

kernel void batch_backward_apply(OPERANDS, KN_OUT(grad_x), KN_IN(sums), SHAPE_PARAMETERS)
{
    BIND_OPERANDS(in);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, sums);
    KN_FOR(i, TASKS * chunks) { apply_to(i / chunks, i % chunks, in, grad_x, sums, SHAPE); }
}

kernel void batch_backward(OPERANDS, KN_OUT(grad_x), KN_INOUT(partial), KN_INOUT(sums), KN_OUT(grad_weight),
                           KN_OUT(grad_bias), SHAPE_PARAMETERS)
{
    BIND_OPERANDS(in);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_OUT(T, partial);
    KN_BIND_OUT(T, sums);
    KN_BIND_OUT(T, grad_weight);
    KN_BIND_OUT(T, grad_bias);
    KN_FOR(task, TASKS)
    {
        for (long chunk = 0; chunk < chunks; chunk++)
            sums_of(task, chunk, in, partial, SHAPE);
        for (long channel = task * PER_TASK; channel < min((task + 1) * PER_TASK, channels); channel++)
            finish_channel(channel, partial, in.table, sums, grad_weight, grad_bias, channels, chunks, flags);
        if (flags & WANTS_X)
            for (long chunk = 0; chunk < chunks; chunk++)
                apply_to(task, chunk, in, grad_x, sums, SHAPE);
    }
}

kernel void batch_backward_finish(KN_IN(partial), KN_IN(table), KN_OUT(sums), KN_OUT(grad_weight), KN_OUT(grad_bias),
                                  const long channels, const long chunks, const int flags)
{
    KN_BIND_IN(T, partial);
    KN_BIND_IN(T, table);
    KN_BIND_OUT(T, sums);
    KN_BIND_OUT(T, grad_weight);
    KN_BIND_OUT(T, grad_bias);
    KN_FOR(channel, channels)
    {
        finish_channel(channel, partial, table, sums, grad_weight, grad_bias, channels, chunks, flags);
    }
}
