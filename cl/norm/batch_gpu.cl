/* norm/batch_gpu.cl - batch normalisation for devices with work-groups, forward: y = (x - mean) / sqrt(variance + eps)
 * * weight + bias, with mean and variance of each channel over all dimensions but 1, clamped by the activation.
 * Counted on NVIDIA's sm_90 with WIDTH 4: see the numbers at each loop. */
#include "norm/batch_shared.clh"

/* Moments of x - shift, where shift is the channel's first element. */
#define PARTS 3
typedef struct totals {
    T mean, m2, count;
} totals;
typedef struct channel_numbers {
    T shift;
} channel_numbers;

#include "norm/batch_gpu.clh"

static channel_numbers numbers_of(operands in, kn_batch_shape s, long channel)
{
    const channel_numbers n = {in.x[channel * s.inner]};
    return n;
}

/* 11 instructions an element, two loads of 16 bytes. */
static totals totals_of(operands in, kn_batch_shape s, long channel, long chunk, channel_numbers n)
{
    const global T *p = in.x + channel * s.inner;
    totals t = {0, 0, 0};
    WALK_BEGIN(chunk);
    while (left > (8 / WIDTH - 1) * step) {
        vec v[8 / WIDTH];
#pragma unroll
        for (int j = 0; j < 8 / WIDTH; j++) {
            v[j] = LOAD(p + here) - n.shift;
            WALK_NEXT();
        }
        add_eight(&t.mean, &t.m2, t.count, EIGHT(v));
        t.count += 8;
    }
    while (left > 0) {
        const vec v = LOAD(p + here) - n.shift;
#if WIDTH == 4
        add_four(&t.mean, &t.m2, t.count, v.x, v.y, v.z, v.w);
#else
        KN_MERGE(T, t.mean, t.m2, t.count, v, 0, 1);
#endif
        t.count += WIDTH;
        WALK_NEXT();
    }
    return t;
}

/* The n-th, the n + size-th, ... */
static totals totals_of_chunks(operands in, kn_batch_shape s, long channel)
{
    totals t = {0, 0, 0};
    for (long chunk = get_local_id(0); chunk < s.summed; chunk += get_local_size(0)) {
        const global T *p = in.partial + 2 * (chunk * s.channels + channel);
        const T more = min(s.length, s.outer * s.inner - chunk * s.length);
        KN_MERGE(T, t.mean, t.m2, t.count, p[0], p[1], more);
        t.count += more;
    }
    return t;
}

static totals merge(local T (*parts)[KN_SUM_GROUP], int holders, totals t)
{
    join_group(parts[0], parts[1], parts[2], holders, &t.mean, &t.m2, &t.count);
    return t;
}

static void store_totals(global T *to, totals t)
{
    to[0] = t.mean;
    to[1] = t.m2;
}

/* y = (x - mean) scale + bias, cut. */
static void apply_to(operands in, kn_batch_shape s, long channel, long chunk, channel_numbers n, totals t)
{
    const T size = s.outer * s.inner;
    statistics stats;
    if (s.flags & KN_NORM_TRAINING)
        stats = finish_moments(n.shift, t.mean, t.m2, size, in.eps);
    else
        stats = running_statistics(channel, in);
    if (chunk == 0 && get_local_id(0) == 0)
        keep_statistics(channel, stats, t.m2, size, in, s);
    const T scale = scale_of(stats.inverse, channel, in, s), bias = bias_of(channel, in, s);
    const global T *p = in.x + channel * s.inner;
    global T *q = in.y + channel * s.inner;
    WALK_BEGIN(chunk);
    while (left > (8 / WIDTH - 1) * step) {
        vec v[8 / WIDTH];
        long at[8 / WIDTH];
#pragma unroll
        for (int j = 0; j < 8 / WIDTH; j++) {
            at[j] = here;
            v[j] = LOAD(p + here);
            WALK_NEXT();
        }
#pragma unroll
        for (int j = 0; j < 8 / WIDTH; j++)
            STORE(cut_off(KN_CENTRED(v[j], stats) * scale + bias, in.bounds), q + at[j]);
    }
    while (left > 0) {
        STORE(cut_off(KN_CENTRED(LOAD(p + here), stats) * scale + bias, in.bounds), q + here);
        WALK_NEXT();
    }
}
