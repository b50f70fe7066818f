/* norm/batch.cl - batch normalisation, forward: y = (x - mean) / sqrt(variance + eps) * weight + bias, with mean and
 * variance of each channel over all dimensions but 1, clamped by the activation.
 *
 * Steps: moments (per chunk of a channel), finish (per channel: statistics, running estimates), apply. On CPU devices
 * with enough channels batch_forward does all steps for a channel while it is in cache. statistics [channels][3],
 * partial [chunks][channels][2]. */
#include "norm/batch.clh"

#define FORWARD_PARAMETERS \
    KN_INOUT(running_mean), KN_INOUT(running_var), KN_INOUT(counter)

/* The channel's statistics from its chunks' moments; one work-item per channel, so that the running estimates and the
 * counter are written once. */
static void finish_channel(long channel, const global T *x, const global T *partial, global T *table,
                           global T *running_mean, global T *running_var, global long *counter, SHAPE_PARAMETERS,
                           T eps, T momentum, int flags)
{
    T mean = partial[2 * channel], m2 = partial[2 * channel + 1], count = elements_of(0, SHAPE);

    for (long chunk = 1; chunk < chunks; chunk++) {
        const global T *p = partial + 2 * (chunk * channels + channel);
        const long more = elements_of(chunk, SHAPE);
        KN_MERGE(T, mean, m2, count, p[0], p[1], more);
        count += more;
    }
    const T n = outer * inner;
    const statistics s = finish_moments(x[channel * inner], mean, m2, n, eps);
    keep_statistics(channel, s, m2, n, table, running_mean, running_var, counter, momentum, flags);
}

static void moments_of_group(long first, long chunk, const global T *x, global T *partial, SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer * inner), all = outer * channels * inner;
    const long some = min(group, channels - first);
    run_moments m[MAX_IN_GROUP];

    for (long c = 0; c < some; c++)
        m[c] = (run_moments){0, 0, 0, 0, 0, 0};
    FOR_PIECES(from, to)
    {
        for (long c = 0; c < some; c++) {
            const long start = (row * channels + first + c) * inner + column;
            add_run(&m[c], x + start, run, all - start, x[(first + c) * inner]);
        }
    }
    for (long c = 0; c < some; c++) {
        T mean, m2;
        join_moments(&m[c], &mean, &m2);
        partial[2 * (chunk * channels + first + c)] = mean;
        partial[2 * (chunk * channels + first + c) + 1] = m2;
    }
}

/* Moments over the rows of each element of the line, shifted by its value in row 0. */
static void moments_down(const global T *x, long from, long to, long stride, long line, long room, TV *mean, TV *m2)
{
    const long whole = line / 16 * 16;
    T count = 0;
    long row = from;

#define AT(i) (KN_VLOAD(x + (row + (i)) * stride + k) - shift)
    for (; row + 8 <= to; row += 8, count += 8)
        for (long k = 0; k < whole; k += 16) {
            const TV shift = KN_VLOAD(x + k);
            add_eight(&mean[k / 16], &m2[k / 16], count, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7));
        }
    for (; row < to; row++, count += 1)
        for (long k = 0; k < whole; k += 16) {
            const TV shift = KN_VLOAD(x + k);
            KN_MERGE(TV, mean[k / 16], m2[k / 16], count, AT(0), 0, 1);
        }
#undef AT
    if (whole == line)
        return;
    const TV shift = load_part(x + whole, line - whole, room - whole, 0);
    for (row = from, count = 0; row < to; row++, count += 1) {
        const long at = row * stride + whole;
        const TV d = load_part(x + at, line - whole, room - at, 0) - shift;
        KN_MERGE(TV, mean[whole / 16], m2[whole / 16], count, d, 0, 1);
    }
}

static void moments_of_tile(long first, long chunk, const global T *x, global T *partial, SHAPE_PARAMETERS)
{
    const long from = chunk * length, to = min(from + length, outer), some = min(tile, channels - first);
    const long line = some * inner, stride = channels * inner, start = first * inner;
    TV mean[TILE_VECTORS], m2[TILE_VECTORS];

    for (long v = 0; v < (line + 15) / 16; v++)
        mean[v] = m2[v] = 0;
    moments_down(x + start, from, to, stride, line, outer * stride - start, mean, m2);
    for (long c = 0; c < some; c++) {
        const global T *shifts = x + start + c * inner;
        const private T *means = (const private T *)mean + c * inner, *m2s = (const private T *)m2 + c * inner;
        T middle = 0, total = 0, between = 0;
        for (long e = 0; e < inner; e++) {
            middle += (shifts[e] - shifts[0]) + means[e];
            total += m2s[e];
        }
        middle /= inner;
        for (long e = 0; e < inner; e++) {
            const T apart = (shifts[e] - shifts[0]) + means[e] - middle;
            between += apart * apart;
        }
        partial[2 * (chunk * channels + first + c)] = middle;
        partial[2 * (chunk * channels + first + c) + 1] = total + between * (to - from);
    }
}

static void moments_of(long task, long chunk, const global T *x, global T *partial, SHAPE_PARAMETERS)
{
    if (tile > 1)
        moments_of_tile(task * tile, chunk, x, partial, SHAPE);
    else
        moments_of_group(task * group, chunk, x, partial, SHAPE);
}

/* One channel: y = (x - mean) scale + bias, clamped. */
static void apply_to_run(const global T *x, global T *y, long run, long room, statistics s, T scale, T bias, cut c)
{
    long k = 0;

    for (; k + 16 <= run; k += 16)
        KN_VSTORE(cut_off(KN_CENTRED(KN_VLOAD(x + k), s) * scale + bias, c), y + k);
    if (k < run)
        store_part(cut_off(KN_CENTRED(load_part(x + k, run - k, room - k, 0), s) * scale + bias, c), y + k, run - k);
}

static void apply_to_group(long first, long chunk, const global T *x, global T *y, const global T *weight,
                           const global T *bias, const global T *table, cut c, SHAPE_PARAMETERS, int flags)
{
    const long from = chunk * length, to = min(from + length, outer * inner), all = outer * channels * inner;

    FOR_PIECES(from, to)
    {
        for (long channel = first; channel < min(first + group, channels); channel++) {
            const long start = (row * channels + channel) * inner + column;
            const statistics s = load_statistics(table + 3 * channel);
            apply_to_run(x + start, y + start, run, all - start, s,
                         flags & HAS_WEIGHT ? weight[channel] * s.inverse : s.inverse,
                         flags & HAS_BIAS ? bias[channel] : 0, c);
        }
    }
}

static void apply_to_tile(long first, long chunk, const global T *x, global T *y, const global T *weight,
                          const global T *bias, const global T *table, cut c, SHAPE_PARAMETERS, int flags)
{
    const long from = chunk * length, to = min(from + length, outer), line = min(tile, channels - first) * inner;
    const long stride = channels * inner, start = first * inner, all = outer * stride;
    TV high[TILE_VECTORS], low[TILE_VECTORS], scale[TILE_VECTORS], add[TILE_VECTORS];

    SPREAD(high, line, first, table[3 * channel]);
    SPREAD(low, line, first, table[3 * channel + 1]);
    SPREAD(scale, line, first, table[3 * channel + 2] * (flags & HAS_WEIGHT ? weight[channel] : 1));
    SPREAD(add, line, first, flags & HAS_BIAS ? bias[channel] : 0);
    for (long row = from; row < to; row++) {
        const long at = row * stride + start;
        long k = 0;
        for (; k + 16 <= line; k += 16)
            KN_VSTORE(cut_off((KN_VLOAD(x + at + k) - high[k / 16] - low[k / 16]) * scale[k / 16] + add[k / 16], c),
                      y + at + k);
        if (k < line) {
            const TV v = load_part(x + at + k, line - k, all - at - k, 0);
            store_part(cut_off((v - high[k / 16] - low[k / 16]) * scale[k / 16] + add[k / 16], c), y + at + k,
                       line - k);
        }
    }
}

static void apply_to(long task, long chunk, const global T *x, global T *y, const global T *weight,
                     const global T *bias, const global T *table, cut c, SHAPE_PARAMETERS, int flags)
{
    if (tile > 1)
        apply_to_tile(task * tile, chunk, x, y, weight, bias, table, c, SHAPE, flags);
    else
        apply_to_group(task * group, chunk, x, y, weight, bias, table, c, SHAPE, flags);
}

kernel void batch_moments(KN_IN(x), KN_OUT(partial), SHAPE_PARAMETERS)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, partial);
    KN_FOR(i, TASKS * chunks) { moments_of(i / chunks, i % chunks, x, partial, SHAPE); }
}

kernel void batch_apply(KN_IN(x), KN_OUT(y), KN_IN(weight), KN_IN(bias), KN_IN(table), SHAPE_PARAMETERS,
                        const int flags, const T cut_low, const T cut_high)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, bias);
    KN_BIND_IN(T, table);
    const cut c = {cut_low, cut_high};
    KN_FOR(i, TASKS * chunks) { apply_to(i / chunks, i % chunks, x, y, weight, bias, table, c, SHAPE, flags); }
}

kernel void batch_forward(KN_IN(x), KN_OUT(y), KN_IN(weight), KN_IN(bias), FORWARD_PARAMETERS, KN_INOUT(partial),
                          KN_INOUT(table), SHAPE_PARAMETERS, const T eps, const T momentum, const int flags,
                          const T cut_low, const T cut_high)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_IN(T, weight);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, running_mean);
    KN_BIND_OUT(T, running_var);
    KN_BIND_OUT(long, counter);
    KN_BIND_OUT(T, partial);
    KN_BIND_OUT(T, table);
    const cut c = {cut_low, cut_high};
    KN_FOR(task, TASKS)
    {
        for (long chunk = 0; chunk < chunks; chunk++)
            moments_of(task, chunk, x, partial, SHAPE);
        for (long channel = task * PER_TASK; channel < min((task + 1) * PER_TASK, channels); channel++)
            finish_channel(channel, x, partial, table, running_mean, running_var, counter, SHAPE, eps, momentum, flags);
        for (long chunk = 0; chunk < chunks; chunk++)
            apply_to(task, chunk, x, y, weight, bias, table, c, SHAPE, flags);
    }
}

kernel void batch_finish(KN_IN(x), FORWARD_PARAMETERS, KN_IN(partial), KN_OUT(table), SHAPE_PARAMETERS, const T eps,
                         const T momentum, const int flags)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, running_mean);
    KN_BIND_OUT(T, running_var);
    KN_BIND_OUT(long, counter);
    KN_BIND_IN(T, partial);
    KN_BIND_OUT(T, table);
    KN_FOR(channel, channels)
    {
        finish_channel(channel, x, partial, table, running_mean, running_var, counter, SHAPE, eps, momentum, flags);
    }
}

/* Statistics of evaluation mode. */
kernel void batch_running(KN_IN(running_mean), KN_IN(running_var), KN_OUT(table), const long channels, const T eps)
{
    KN_BIND_IN(T, running_mean);
    KN_BIND_IN(T, running_var);
    KN_BIND_OUT(T, table);
    KN_FOR(channel, channels)
    {
        const statistics s = {running_mean[channel], 0, 1 / sqrt(running_var[channel] + eps)};
        store_statistics(table + 3 * channel, s);
    }
}
