/* norm/batch_backward.cl - gradients of batch normalisation, with c = x - mean, r = 1 / sqrt(variance + eps) and sums over a channel's n elements:
 *
 *     d/dbias = sum g    d/dweight = r sum g c
 *     d/dx = weight r (g - sum g / n - c r^2 sum g c / n) in training, weight r g in evaluation
 *
 * where g is what the activation lets through: the result that it cut is made again, c r weight + bias with forward's roundings, which costs a fraction of reading it.
 * Steps as in batch.cl: sums (per chunk), finish (per channel), apply; batch_backward is all of them for CPU devices. partial [chunks][channels][2],
 * sums [channels][2]. */
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

/* What all steps read. */
typedef struct operands {
    const global T *g, *x, *weight, *bias, *table;
    cut bounds;
    int flags;
} operands;

#define OPERANDS \
    KN_IN(g), KN_IN(x), KN_IN(weight), KN_IN(bias), KN_IN(table), const T cut_low, const T cut_high, const int flags
#define BIND_OPERANDS(in)                                              \
    KN_BIND_IN(T, g);                                                  \
    KN_BIND_IN(T, x);                                                  \
    KN_BIND_IN(T, weight);                                             \
    KN_BIND_IN(T, bias);                                               \
    KN_BIND_IN(T, table);                                              \
    const operands in = {g, x, weight, bias, table, {cut_low, cut_high}, flags}

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

#ifdef KN_CPU

static void sums_of_channel(long channel, long chunk, operands in, global T *partial, SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer * inner), all = outer * channels * inner;
    const statistics s = load_statistics(in.table + 3 * channel);
    const T scale = scale_of(in, channel), bias = bias_of(in, channel);
    TV a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;

#define ADD(i, gradient, input)                                            \
    do {                                                                   \
        const TV c_ = KN_CENTRED(input, s);                                \
        const TV v_ = let_through(gradient, c_ * scale + bias, in.bounds);      \
        a##i += v_;                                                        \
        b##i += v_ * c_;                                                   \
    } while (0)
#define ADD_WHOLE(i) ADD(i, KN_VLOAD(p + k + 16 * i), KN_VLOAD(q + k + 16 * i))
    FOR_PIECES(from, to)
    {
        const long start = (row * channels + channel) * inner + column;
        const global T *p = in.g + start, *q = in.x + start;
        long k = 0;
        for (; k + 64 <= run; k += 64) {
            ADD_WHOLE(0);
            ADD_WHOLE(1);
            ADD_WHOLE(2);
            ADD_WHOLE(3);
        }
        for (; k + 16 <= run; k += 16)
            ADD_WHOLE(0);
        if (k < run)
            ADD(1, load_part(p + k, run - k, all - start - k, 0), load_part(q + k, run - k, all - start - k, s.high));
    }
#undef ADD_WHOLE
#undef ADD
    partial[2 * (chunk * channels + channel)] = sum_lanes((a0 + a1) + (a2 + a3));
    partial[2 * (chunk * channels + channel) + 1] = sum_lanes((b0 + b1) + (b2 + b3));
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
            const TV c0 = C(0), c1 = C(1), c2 = C(2), c3 = C(3), g0 = G(0, c0), g1 = G(1, c1), g2 = G(2, c2), g3 = G(3, c3);
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
        sums_of_channel(task, chunk, in, partial, SHAPE);
}

static void apply_to_channel(long channel, long chunk, operands in, global T *grad_x, const global T *sums,
                             SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer * inner), all = outer * channels * inner;
    const statistics s = load_statistics(in.table + 3 * channel);
    const T scale = scale_of(in, channel), bias = bias_of(in, channel);
    const T middle = middle_of(in, sums, channel, outer * inner), slope = slope_of(in, sums, channel, outer * inner);

#define STEP(LOAD, STORE)                                                                     \
    do {                                                                                      \
        const TV c_ = KN_CENTRED(LOAD(in.x), s);                                              \
        const TV g_ = let_through(LOAD(in.g), c_ * scale + bias, in.bounds);                       \
        STORE((g_ - middle - c_ * slope) * scale);                                            \
    } while (0)
#define WHOLE(p) KN_VLOAD(p + start + k)
#define STORE_WHOLE(v) KN_VSTORE(v, grad_x + start + k)
#define PART(p) load_part(p + start + k, run - k, all - start - k, 0)
#define STORE_PART(v) store_part(v, grad_x + start + k, run - k)
    FOR_PIECES(from, to)
    {
        const long start = (row * channels + channel) * inner + column;
        long k = 0;
        for (; k + 16 <= run; k += 16)
            STEP(WHOLE, STORE_WHOLE);
        if (k < run)
            STEP(PART, STORE_PART);
    }
#undef STEP
#undef WHOLE
#undef STORE_WHOLE
#undef PART
#undef STORE_PART
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
        apply_to_channel(task, chunk, in, grad_x, sums, SHAPE);
}

kernel void batch_sums(OPERANDS, KN_OUT(partial), SHAPE_PARAMETERS)
{
    BIND_OPERANDS(in);
    KN_BIND_OUT(T, partial);
    const long tasks = (channels + tile - 1) / tile;
    KN_FOR(i, tasks * chunks) { sums_of(i / chunks, i % chunks, in, partial, SHAPE); }
}

kernel void batch_backward_apply(OPERANDS, KN_OUT(grad_x), KN_IN(sums), SHAPE_PARAMETERS)
{
    BIND_OPERANDS(in);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, sums);
    const long tasks = (channels + tile - 1) / tile;
    KN_FOR(i, tasks * chunks) { apply_to(i / chunks, i % chunks, in, grad_x, sums, SHAPE); }
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
    const long tasks = (channels + tile - 1) / tile;
    KN_FOR(task, tasks)
    {
        for (long chunk = 0; chunk < chunks; chunk++)
            sums_of(task, chunk, in, partial, SHAPE);
        for (long channel = task * tile; channel < min((task + 1) * tile, channels); channel++)
            finish_channel(channel, partial, in.table, sums, grad_weight, grad_bias, channels, chunks, flags);
        if (flags & WANTS_X)
            for (long chunk = 0; chunk < chunks; chunk++)
                apply_to(task, chunk, in, grad_x, sums, SHAPE);
    }
}

#else

/* A work-group per chunk of a channel. */
kernel void batch_sums(OPERANDS, KN_OUT(partial), SHAPE_PARAMETERS)
{
    BIND_OPERANDS(in);
    KN_BIND_OUT(T, partial);
    local T gs[KN_SUM_GROUP], gcs[KN_SUM_GROUP];
    for (long i = get_group_id(0); i < channels * chunks; i += get_num_groups(0)) {
        const long channel = i / chunks, chunk = i % chunks;
        const long from = chunk * length, to = min(from + length, outer * inner);
        const statistics s = load_statistics(in.table + 3 * channel);
        const T scale = scale_of(in, channel), bias = bias_of(in, channel);
        T sum_g = 0, sum_gc = 0;
        ITEMS_BEGIN(from);
        while (at < to) {
            const long here = ITEM + channel * inner;
            const T c = KN_CENTRED(in.x[here], s), v = let_through(in.g[here], c * scale + bias, in.bounds);
            sum_g += v;
            sum_gc += v * c;
            ITEMS_NEXT();
        }
        sum_pair_group(gs, gcs, &sum_g, &sum_gc);
        if (get_local_id(0) == 0) {
            partial[2 * (chunk * channels + channel)] = sum_g;
            partial[2 * (chunk * channels + channel) + 1] = sum_gc;
        }
    }
}

kernel void batch_backward_apply(OPERANDS, KN_OUT(grad_x), KN_IN(sums), SHAPE_PARAMETERS)
{
    BIND_OPERANDS(in);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, sums);
    const T n = outer * inner;
    KN_FOR(i, outer * channels * inner)
    {
        const long row = quotient(i, inner), channel = row - quotient(row, channels) * channels;
        const T c = KN_CENTRED(in.x[i], load_statistics(in.table + 3 * channel)), scale = scale_of(in, channel);
        const T v = let_through(in.g[i], c * scale + bias_of(in, channel), in.bounds);
        grad_x[i] = (v - middle_of(in, sums, channel, n) - c * slope_of(in, sums, channel, n)) * scale;
    }
}

#endif

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
