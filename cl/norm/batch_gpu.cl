/* norm/batch_gpu.cl - batch normalisation for devices with work-groups, forward: y = (x - mean) / sqrt(variance + eps)
 * * weight + bias, with mean and variance of each channel over all dimensions but 1, clamped by the activation.
 *
 * Two launches: the moments of each chunk; then every work-group merges its channel's moments, by one tree, and
 * normalises a chunk. Small channels are one chunk: batch_whole does both, and reads x from cache the second time.
 * Evaluation needs only batch_apply. partial [chunks][channels][2], table [channels][3], the statistics for backward.
 * Counted on NVIDIA's sm_90 with WIDTH 4: see the numbers at each loop. */
#include "norm/batch_gpu.clh"

/* The moments of this work-item's elements of a chunk of the channel that begins at p. 11 instructions an element, two
 * loads of 16 bytes. */
static void moments_of(const global T *p, T shift, long chunk, SHAPE_PARAMETERS, T *mean_out, T *m2_out, T *count_out)
{
    T mean = 0, m2 = 0, count = 0;
    WALK_BEGIN(chunk);
    while (left > (8 / WIDTH - 1) * step) {
        vec v[8 / WIDTH];
#pragma unroll
        for (int j = 0; j < 8 / WIDTH; j++) {
            v[j] = LOAD(p + here) - shift;
            WALK_NEXT();
        }
        add_eight(&mean, &m2, count, EIGHT(v));
        count += 8;
    }
    while (left > 0) {
        const vec v = LOAD(p + here) - shift;
#if WIDTH == 4
        add_four(&mean, &m2, count, v.x, v.y, v.z, v.w);
#else
        KN_MERGE(T, mean, m2, count, v, 0, 1);
#endif
        count += WIDTH;
        WALK_NEXT();
    }
    *mean_out = mean;
    *m2_out = m2;
    *count_out = count;
}

/* This work-item's share of the channel's chunks: the n-th, the n + size-th, ... */
static void moments_of_chunks(const global T *partial, long channel, SHAPE_PARAMETERS, T *mean_out, T *m2_out,
                              T *count_out)
{
    T mean = 0, m2 = 0, count = 0;
    for (long chunk = get_local_id(0); chunk < chunks; chunk += get_local_size(0)) {
        const global T *p = partial + 2 * (chunk * channels + channel);
        const T more = min(length, outer * inner - chunk * length);
        KN_MERGE(T, mean, m2, count, p[0], p[1], more);
        count += more;
    }
    *mean_out = mean;
    *m2_out = m2;
    *count_out = count;
}

/* y = (x - mean) scale + bias, cut, of a chunk of the channel that begins at p. */
static void apply_to(const global T *p, global T *q, long chunk, SHAPE_PARAMETERS, statistics s, T scale, T bias, cut c)
{
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
            STORE(cut_off(KN_CENTRED(v[j], s) * scale + bias, c), q + at[j]);
    }
    while (left > 0) {
        STORE(cut_off(KN_CENTRED(LOAD(p + here), s) * scale + bias, c), q + here);
        WALK_NEXT();
    }
}

#define BIND_ALL                       \
    KN_BIND_IN(T, x);                  \
    KN_BIND_OUT(T, y);                 \
    KN_BIND_IN(T, weight);             \
    KN_BIND_IN(T, bias);               \
    KN_BIND_OUT(T, running_mean);      \
    KN_BIND_OUT(T, running_var);       \
    KN_BIND_OUT(long, counter);        \
    KN_BIND_OUT(T, table);             \
    const cut c = {cut_low, cut_high}; \
    local T means[KN_SUM_GROUP], m2s[KN_SUM_GROUP], counts[KN_SUM_GROUP]

kernel void batch_moments(KN_IN(x), KN_OUT(partial), SHAPE_PARAMETERS)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, partial);
    local T means[KN_SUM_GROUP], m2s[KN_SUM_GROUP], counts[KN_SUM_GROUP];
    for (long i = get_group_id(0); i < channels * chunks; i += get_num_groups(0)) {
        const long channel = quotient(i, chunks), chunk = i - channel * chunks;
        const global T *p = x + channel * inner;
        T mean, m2, count;
        moments_of(p, p[0], chunk, SHAPE, &mean, &m2, &count);
        join_group(means, m2s, counts, get_local_size(0), &mean, &m2, &count);
        if (get_local_id(0) == 0) {
            partial[2 * (chunk * channels + channel)] = mean;
            partial[2 * (chunk * channels + channel) + 1] = m2;
        }
    }
}

/* Without TRAINING in the flags the running estimates are what it normalises by. */
kernel void batch_apply(KN_IN(x), KN_OUT(y), KN_IN(weight), KN_IN(bias), RUNNING_PARAMETERS, KN_INOUT(table),
                        KN_IN(partial), SHAPE_PARAMETERS, const T eps, const T momentum, const int flags,
                        const T cut_low, const T cut_high)
{
    BIND_ALL;
    KN_BIND_IN(T, partial);
    const long merged = flags & TRAINING ? chunks : 0;
    const int holders = chunk_holders(merged);
    for (long i = get_group_id(0); i < channels * chunks; i += get_num_groups(0)) {
        const long channel = quotient(i, chunks), chunk = i - channel * chunks;
        const T n = outer * inner, shift = x[channel * inner];
        T mean, m2, count;
        statistics s;
        moments_of_chunks(partial, channel, outer, channels, inner, length, merged, &mean, &m2, &count);
        join_group(means, m2s, counts, holders, &mean, &m2, &count);
        if (flags & TRAINING)
            s = finish_moments(shift, mean, m2, n, eps);
        else
            s.high = running_mean[channel], s.low = 0, s.inverse = 1 / sqrt(running_var[channel] + eps);
        if (chunk == 0 && get_local_id(0) == 0)
            keep_statistics(channel, s, m2, n, table, running_mean, running_var, counter, momentum, flags);
        apply_to(x + channel * inner, y + channel * inner, chunk, SHAPE, s,
                 flags & HAS_WEIGHT ? weight[channel] * s.inverse : s.inverse, flags & HAS_BIAS ? bias[channel] : 0, c);
    }
}

/* Channels of one chunk. */
kernel void batch_whole(KN_IN(x), KN_OUT(y), KN_IN(weight), KN_IN(bias), RUNNING_PARAMETERS, KN_INOUT(table),
                        SHAPE_PARAMETERS, const T eps, const T momentum, const int flags, const T cut_low,
                        const T cut_high)
{
    BIND_ALL;
    for (long channel = get_group_id(0); channel < channels; channel += get_num_groups(0)) {
        const global T *p = x + channel * inner;
        const T n = outer * inner, shift = p[0];
        T mean, m2, count;
        moments_of(p, shift, 0, SHAPE, &mean, &m2, &count);
        join_group(means, m2s, counts, get_local_size(0), &mean, &m2, &count);
        const statistics s = finish_moments(shift, mean, m2, n, eps);
        if (get_local_id(0) == 0)
            keep_statistics(channel, s, m2, n, table, running_mean, running_var, counter, momentum, flags);
        apply_to(p, y + channel * inner, 0, SHAPE, s, flags & HAS_WEIGHT ? weight[channel] * s.inverse : s.inverse,
                 flags & HAS_BIAS ? bias[channel] : 0, c);
    }
}
