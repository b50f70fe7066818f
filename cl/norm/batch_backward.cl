/* norm/batch_backward.cl - gradients of batch normalisation, with c = x - mean, r = 1 / sqrt(variance + eps) and sums over a channel's n elements:
 *
 *     d/dbias = sum g    d/dweight = r sum g c
 *     d/dx = weight r (g - sum g / n - c r^2 sum g c / n) in training, weight r g in evaluation
 *
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

/* d/dx = (g - middle - c slope) scale */
typedef struct formula {
    T scale, middle, slope;
} formula;

static formula formula_of(long channel, const global T *weight, const global T *table, const global T *sums, T n,
                          int flags)
{
    const T inverse = table[3 * channel + 2];
    formula f = {flags & HAS_WEIGHT ? weight[channel] * inverse : inverse, 0, 0};

    if (flags & TRAINING) {
        f.middle = sums[2 * channel] / n;
        f.slope = sums[2 * channel + 1] / n * inverse * inverse;
    }
    return f;
}

#ifdef KN_CPU

static void sums_of_channel(long channel, long chunk, const global T *g, const global T *x, statistics s,
                            global T *partial, SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer * inner), all = outer * channels * inner;
    TV a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;

#define ADD(i)                                                  \
    do {                                                        \
        const TV v_ = KN_VLOAD(p + k + 16 * i);                 \
        a##i += v_;                                             \
        b##i += v_ * KN_CENTRED(KN_VLOAD(q + k + 16 * i), s);   \
    } while (0)
    FOR_PIECES(from, to)
    {
        const long start = (row * channels + channel) * inner + column;
        const global T *p = g + start, *q = x + start;
        long k = 0;
        for (; k + 64 <= run; k += 64) {
            ADD(0);
            ADD(1);
            ADD(2);
            ADD(3);
        }
        for (; k + 16 <= run; k += 16)
            ADD(0);
        if (k < run) {
            const TV v = load_part(p + k, run - k, all - start - k, 0);
            a1 += v;
            b1 += v * KN_CENTRED(load_part(q + k, run - k, all - start - k, s.high), s);
        }
    }
#undef ADD
    partial[2 * (chunk * channels + channel)] = sum_lanes((a0 + a1) + (a2 + a3));
    partial[2 * (chunk * channels + channel) + 1] = sum_lanes((b0 + b1) + (b2 + b3));
}

static void sums_of_tile(long first, long chunk, const global T *g, const global T *x, const global T *table,
                         global T *partial, SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer), some = min(tile, channels - first);
    const long line = some * inner, stride = channels * inner, start = first * inner, all = outer * stride;
    TV high[TILE_VECTORS], low[TILE_VECTORS], sum_g[TILE_VECTORS], sum_gc[TILE_VECTORS];
    long row = from;

    SPREAD(high, line, first, table[3 * channel]);
    SPREAD(low, line, first, table[3 * channel + 1]);
    for (long v = 0; v < (line + 15) / 16; v++)
        sum_g[v] = sum_gc[v] = 0;
#define G(i) KN_VLOAD(p + (i) * stride)
#define GC(i) (G(i) * (KN_VLOAD(q + (i) * stride) - high[v] - low[v]))
    for (; row + 4 <= to; row += 4)
        for (long v = 0; 16 * v + 16 <= line; v++) {
            const global T *p = g + row * stride + start + 16 * v, *q = x + row * stride + start + 16 * v;
            sum_g[v] += (G(0) + G(1)) + (G(2) + G(3));
            sum_gc[v] += (GC(0) + GC(1)) + (GC(2) + GC(3));
        }
    for (; row < to; row++)
        for (long v = 0; 16 * v + 16 <= line; v++) {
            const global T *p = g + row * stride + start + 16 * v, *q = x + row * stride + start + 16 * v;
            sum_g[v] += G(0);
            sum_gc[v] += GC(0);
        }
#undef G
#undef GC
    if (line % 16 != 0)
        for (row = from; row < to; row++) {
            const long v = line / 16, at = row * stride + start + 16 * v;
            const TV a = load_part(g + at, line % 16, all - at, 0);
            sum_g[v] += a;
            sum_gc[v] += a * (load_part(x + at, line % 16, all - at, 0) - high[v] - low[v]);
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

static void sums_of(long task, long chunk, const global T *g, const global T *x, const global T *table,
                    global T *partial, SHAPE_PARAMETERS)
{
    if (tile > 1)
        sums_of_tile(task * tile, chunk, g, x, table, partial, SHAPE);
    else
        sums_of_channel(task, chunk, g, x, load_statistics(table + 3 * task), partial, SHAPE);
}

static void apply_to_channel(long channel, long chunk, const global T *g, const global T *x, global T *grad_x,
                             statistics s, formula f, SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer * inner), all = outer * channels * inner;

#define RESULT(g, x) (((g) - f.middle - KN_CENTRED(x, s) * f.slope) * f.scale)
    FOR_PIECES(from, to)
    {
        const long start = (row * channels + channel) * inner + column;
        const global T *p = g + start, *q = x + start;
        long k = 0;
        for (; k + 16 <= run; k += 16)
            KN_VSTORE(RESULT(KN_VLOAD(p + k), KN_VLOAD(q + k)), grad_x + start + k);
        if (k < run) {
            const long count = run - k, room = all - start - k;
            store_part(RESULT(load_part(p + k, count, room, 0), load_part(q + k, count, room, 0)), grad_x + start + k,
                       count);
        }
    }
#undef RESULT
}

static void apply_to_tile(long first, long chunk, const global T *g, const global T *x, global T *grad_x,
                          const global T *weight, const global T *table, const global T *sums, SHAPE_PARAMETERS,
                          int flags)
{
    const long from = chunk * length, to = min(from + length, outer), line = min(tile, channels - first) * inner;
    const long stride = channels * inner, start = first * inner, all = outer * stride;
    const T n = outer * inner;
    TV high[TILE_VECTORS], low[TILE_VECTORS], scale[TILE_VECTORS], middle[TILE_VECTORS], slope[TILE_VECTORS];

    SPREAD(high, line, first, table[3 * channel]);
    SPREAD(low, line, first, table[3 * channel + 1]);
    SPREAD(scale, line, first, formula_of(channel, weight, table, sums, n, flags).scale);
    SPREAD(middle, line, first, formula_of(channel, weight, table, sums, n, flags).middle);
    SPREAD(slope, line, first, formula_of(channel, weight, table, sums, n, flags).slope);
#define RESULT(g, x) (((g) - middle[v] - ((x) - high[v] - low[v]) * slope[v]) * scale[v])
    for (long row = from; row < to; row++) {
        const long at = row * stride + start;
        long k = 0, v = 0;
        for (; k + 16 <= line; k += 16, v++)
            KN_VSTORE(RESULT(KN_VLOAD(g + at + k), KN_VLOAD(x + at + k)), grad_x + at + k);
        if (k < line) {
            const long count = line - k, room = all - at - k;
            store_part(RESULT(load_part(g + at + k, count, room, 0), load_part(x + at + k, count, room, 0)),
                       grad_x + at + k, count);
        }
    }
#undef RESULT
}

static void apply_to(long task, long chunk, const global T *g, const global T *x, global T *grad_x,
                     const global T *weight, const global T *table, const global T *sums, SHAPE_PARAMETERS, int flags)
{
    if (tile > 1)
        apply_to_tile(task * tile, chunk, g, x, grad_x, weight, table, sums, SHAPE, flags);
    else
        apply_to_channel(task, chunk, g, x, grad_x, load_statistics(table + 3 * task),
                         formula_of(task, weight, table, sums, outer * inner, flags), SHAPE);
}

kernel void batch_sums(KN_IN(g), KN_IN(x), KN_IN(table), KN_OUT(partial), SHAPE_PARAMETERS)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, table);
    KN_BIND_OUT(T, partial);
    const long tasks = (channels + tile - 1) / tile;
    KN_FOR(i, tasks * chunks) { sums_of(i / chunks, i % chunks, g, x, table, partial, SHAPE); }
}

kernel void batch_backward_apply(KN_IN(g), KN_IN(x), KN_OUT(grad_x), KN_IN(weight), KN_IN(table), KN_IN(sums),
                                 SHAPE_PARAMETERS, const int flags)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, table);
    KN_BIND_IN(T, sums);
    const long tasks = (channels + tile - 1) / tile;
    KN_FOR(i, tasks * chunks) { apply_to(i / chunks, i % chunks, g, x, grad_x, weight, table, sums, SHAPE, flags); }
}

kernel void batch_backward(KN_IN(g), KN_IN(x), KN_OUT(grad_x), KN_IN(weight), KN_IN(table), KN_INOUT(partial),
                           KN_INOUT(sums), KN_OUT(grad_weight), KN_OUT(grad_bias), SHAPE_PARAMETERS, const int flags)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, table);
    KN_BIND_OUT(T, partial);
    KN_BIND_OUT(T, sums);
    KN_BIND_OUT(T, grad_weight);
    KN_BIND_OUT(T, grad_bias);
    const long tasks = (channels + tile - 1) / tile;
    KN_FOR(task, tasks)
    {
        for (long chunk = 0; chunk < chunks; chunk++)
            sums_of(task, chunk, g, x, table, partial, SHAPE);
        for (long channel = task * tile; channel < min((task + 1) * tile, channels); channel++)
            finish_channel(channel, partial, table, sums, grad_weight, grad_bias, channels, chunks, flags);
        if (flags & WANTS_X)
            for (long chunk = 0; chunk < chunks; chunk++)
                apply_to(task, chunk, g, x, grad_x, weight, table, sums, SHAPE, flags);
    }
}

#else

/* A work-group per chunk of a channel. */
kernel void batch_sums(KN_IN(g), KN_IN(x), KN_IN(table), KN_OUT(partial), SHAPE_PARAMETERS)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, table);
    KN_BIND_OUT(T, partial);
    local T gs[KN_SUM_GROUP], gcs[KN_SUM_GROUP];
    for (long i = get_group_id(0); i < channels * chunks; i += get_num_groups(0)) {
        const long channel = i / chunks, chunk = i % chunks;
        const long from = chunk * length, to = min(from + length, outer * inner);
        const statistics s = load_statistics(table + 3 * channel);
        T sum_g = 0, sum_gc = 0;
        ITEMS_BEGIN(from);
        while (at < to) {
            const long here = ITEM + channel * inner;
            sum_g += g[here];
            sum_gc += g[here] * KN_CENTRED(x[here], s);
            ITEMS_NEXT();
        }
        sum_pair_group(gs, gcs, &sum_g, &sum_gc);
        if (get_local_id(0) == 0) {
            partial[2 * (chunk * channels + channel)] = sum_g;
            partial[2 * (chunk * channels + channel) + 1] = sum_gc;
        }
    }
}

kernel void batch_backward_apply(KN_IN(g), KN_IN(x), KN_OUT(grad_x), KN_IN(weight), KN_IN(table), KN_IN(sums),
                                 SHAPE_PARAMETERS, const int flags)
{
    KN_BIND_IN(T, g);
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, grad_x);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, table);
    KN_BIND_IN(T, sums);
    KN_FOR(i, outer * channels * inner)
    {
        const long row = quotient(i, inner), channel = row - quotient(row, channels) * channels;
        const statistics s = load_statistics(table + 3 * channel);
        const formula f = formula_of(channel, weight, table, sums, outer * inner, flags);
        grad_x[i] = (g[i] - f.middle - KN_CENTRED(x[i], s) * f.slope) * f.scale;
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
