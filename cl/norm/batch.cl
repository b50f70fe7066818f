/* norm/batch.cl - batch normalisation on CPU devices, forward: y = (x - mean) / sqrt(variance + eps) * weight + bias,
 * with mean and variance of each channel over all dimensions but 1, clamped by the activation. The sums are moments. */
#include "norm/batch.clh"

/* The number of a channel's elements in a chunk. */
static long elements_of(long chunk, kn_batch_shape s)
{
    return s.tile > 1 ? min(s.length, s.outer - chunk * s.length) * s.inner
                      : min(s.length, s.outer * s.inner - chunk * s.length);
}

/* What a channel's moments are computed relative to. The mean's error is a few roundings of its distance from here. */
static T shift_of(long channel, operands in, kn_batch_shape s)
{
    const global element *x = in.x + channel * s.inner;

    if (s.tile > 1)
        return VALUE(x[0]);
    return sum_lanes((LOAD_16(x) / 64 + LOAD_16(x + 16) / 64) + (LOAD_16(x + 32) / 64 + LOAD_16(x + 48) / 64));
}

/* The channel's statistics from its chunks' moments. */
static void finish_channel(long channel, operands in, kn_batch_shape s)
{
    if (!(s.flags & KN_NORM_TRAINING)) {
        store_statistics(in.table + 3 * channel, running_statistics(channel, in));
        return;
    }
    T mean = in.partial[2 * channel], m2 = in.partial[2 * channel + 1], count = elements_of(0, s);
    for (long chunk = 1; chunk < s.chunks; chunk++) {
        const global T *p = in.partial + 2 * (chunk * s.channels + channel);
        const long more = elements_of(chunk, s);
        KN_MERGE(T, mean, m2, count, p[0], p[1], more);
        count += more;
    }
    const T n = s.outer * s.inner;
    keep_statistics(channel, finish_moments(shift_of(channel, in, s), mean, m2, n, in.eps), m2, n, in, s);
}

static void sums_of_group(long first, long chunk, operands in, kn_batch_shape s)
{
    const long from = chunk * s.length, to = min(from + s.length, s.outer * s.inner);
    const long some = min(s.group, s.channels - first), all = s.outer * s.channels * s.inner;
    run_moments m[MAX_IN_GROUP];
    T shift[MAX_IN_GROUP];

    for (long c = 0; c < some; c++) {
        m[c] = (run_moments){0, 0, 0, 0, 0, 0};
        shift[c] = shift_of(first + c, in, s);
    }
    FOR_PIECES(from, to)
    {
        for (long c = 0; c < some; c++) {
            const long start = (row * s.channels + first + c) * s.inner + column;
            add_run(&m[c], in.x + start, run, all - start, shift[c]);
        }
    }
    for (long c = 0; c < some; c++) {
        T mean, m2;
        join_moments(&m[c], &mean, &m2);
        in.partial[2 * (chunk * s.channels + first + c)] = mean;
        in.partial[2 * (chunk * s.channels + first + c) + 1] = m2;
    }
}

/* Moments over the rows of each element of the line, shifted by its value in row 0. */
static void moments_down(const global element *x, long from, long to, long stride, long line, long room, TV *mean,
                         TV *m2)
{
    const long whole = line / 16 * 16;
    T count = 0;
    long row = from;

#define AT(i) (LOAD_16(x + (row + (i)) * stride + k) - shift)
    for (; row + 8 <= to; row += 8, count += 8)
        for (long k = 0; k < whole; k += 16) {
            const TV shift = LOAD_16(x + k);
            add_eight(&mean[k / 16], &m2[k / 16], count, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7));
        }
    for (; row < to; row++, count += 1)
        for (long k = 0; k < whole; k += 16) {
            const TV shift = LOAD_16(x + k);
            KN_MERGE(TV, mean[k / 16], m2[k / 16], count, AT(0), 0, 1);
        }
#undef AT
    if (whole == line)
        return;
    const TV shift = load_some(x + whole, line - whole, room - whole, 0);
    for (row = from, count = 0; row < to; row++, count += 1) {
        const long at = row * stride + whole;
        const TV d = load_some(x + at, line - whole, room - at, 0) - shift;
        KN_MERGE(TV, mean[whole / 16], m2[whole / 16], count, d, 0, 1);
    }
}

static void sums_of_tile(long first, long chunk, operands in, kn_batch_shape s)
{
    const long from = chunk * s.length, to = min(from + s.length, s.outer), some = min(s.tile, s.channels - first);
    const long line = some * s.inner, stride = s.channels * s.inner, start = first * s.inner;
    const global element *x = in.x + start;
    global T *partial = in.partial + 2 * (chunk * s.channels + first);
    TV mean[TILE_VECTORS], m2[TILE_VECTORS], relative[TILE_VECTORS];

    for (long v = 0; v < (line + 15) / 16; v++)
        mean[v] = m2[v] = 0;
    moments_down(x, from, to, stride, line, s.outer * stride - start, mean, m2);
    SPREAD(relative, line, first, VALUE(x[e_]));
    for (long k = 0; k < line; k += 16) /* means relative to each channel's first element, and then to their mean */
        mean[k / 16] += load_some(x + k, line - k, s.outer * stride - start - k, 0) - relative[k / 16];
    for (long c = 0; c < some; c++)
        partial[2 * c] = sum_of_channel(mean, c * s.inner, s.inner) / s.inner;
    SPREAD(relative, line, 0, partial[2 * channel]);
    for (long v = 0; v < (line + 15) / 16; v++) {
        const TV apart = mean[v] - relative[v];
        m2[v] += apart * apart * (to - from);
    }
    for (long c = 0; c < some; c++)
        partial[2 * c + 1] = sum_of_channel(m2, c * s.inner, s.inner);
}

/* One channel: y = (x - mean) scale + bias, clamped. */
static void apply_to_run(const global element *x, global element *y, long run, long room, statistics stats, T scale,
                         T bias, cut c)
{
#define STEP(LOAD, STORE) STORE(cut_off(KN_CENTRED(LOAD(x), stats) * scale + bias, c), y)
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
            const statistics stats = load_statistics(in.table + 3 * channel);
            apply_to_run(in.x + start, in.y + start, run, all - start, stats, scale_of(stats.inverse, channel, in, s),
                         bias_of(channel, in, s), in.bounds);
        }
    }
}

static void apply_to_tile(long first, long chunk, operands in, kn_batch_shape s)
{
    const long from = chunk * s.length, to = min(from + s.length, s.outer);
    const long line = min(s.tile, s.channels - first) * s.inner;
    const long stride = s.channels * s.inner, start = first * s.inner, all = s.outer * stride;
    TV high[TILE_VECTORS], low[TILE_VECTORS], scale[TILE_VECTORS], add[TILE_VECTORS];

    SPREAD(high, line, first, in.table[3 * channel]);
    SPREAD(low, line, first, in.table[3 * channel + 1]);
    SPREAD(scale, line, first, scale_of(in.table[3 * channel + 2], channel, in, s));
    SPREAD(add, line, first, bias_of(channel, in, s));
#define STEP(LOAD, STORE)                                                                                      \
    STORE(cut_off((LOAD(in.x + at) - high[k / 16] - low[k / 16]) * scale[k / 16] + add[k / 16], in.bounds), in.y + at)
    for (long row = from; row < to; row++) {
        const long at = row * stride + start;
        FOR_VECTORS(STEP, line, all - at);
    }
#undef STEP
}
