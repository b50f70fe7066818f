/* conv/common/sums.cl - final sums of a convolution's gradients: the shares of the weights' sums, and dy over images
 * and pixels for the bias. The order of all sums depends on the problem alone.
 *
 * Compiled in: T. */
#include "common/koine.clh"
#include "common/divide.clh"

/* db[k] = the sum of dy over images and pixels, image by image. */
KN_KERNEL_ONCE(conv_bias_gradient, (KN_ARG(dy), KN_ARG(db), images, channels, pixels),
               KN_IN(dy), KN_OUT(db), long images, long channels, long pixels)
{
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, db);
    KN_FOR_ONCE (k, channels) {
        T total = 0;
        for (long n = 0; n < images; n++) {
            T sum = 0;
            for (long i = 0; i < pixels; i++)
                sum += dy[(n * channels + k) * pixels + i];
            total += sum;
        }
        db[k] = total;
    }
}

/* dw = the sum of the shares; db = the sum of bias_part, [parts][groups][padded]. Either may be absent, with 0
 * elements. */
#ifdef KN_CPU

#define STRIP 64

/* In strips, whose sums stay in cache. */
KN_KERNEL_ONCE(conv_total,
               (KN_ARG(sums), KN_ARG(bias_part), KN_ARG(dw), KN_ARG(db), weights, shares, channels, parts, outer,
                padded),
               KN_IN(sums), KN_IN(bias_part), KN_OUT(dw), KN_OUT(db), const long weights, const long shares,
               const long channels, const long parts, const long outer, const long padded)
{
    KN_BIND_IN(T, sums);
    KN_BIND_IN(T, bias_part);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, db);
    const long chunk = (weights + KN_SIZE(0) - 1) / KN_SIZE(0);
    const long first = KN_ID(0) * chunk, last = min(weights, first + chunk);
    for (long i0 = first; i0 < last; i0 += STRIP) {
        const int count = (int)min((long)STRIP, last - i0);
        T total[STRIP];
        for (int j = 0; j < count; j++)
            total[j] = sums[i0 + j];
        for (long share = 1; share < shares; share++)
            for (int j = 0; j < count; j++)
                total[j] += sums[share * weights + i0 + j];
        for (int j = 0; j < count; j++)
            dw[i0 + j] = total[j];
    }
    const long groups = channels / outer;
    KN_FOR_ONCE(channel, channels) {
        T total = 0;
        for (long part = 0; part < parts; part++)
            total += bias_part[(part * groups + channel / outer) * padded + channel % outer];
        db[channel] = total;
    }
}

#else

/* A work-item adds one element, with coalesced loads, eight in flight. */
kernel void conv_total(KN_IN(sums), KN_IN(bias_part), KN_OUT(dw), KN_OUT(db), const long weights, const long shares,
                       const long channels, const long parts, const long outer, const long padded)
{
    KN_BIND_IN(T, sums);
    KN_BIND_IN(T, bias_part);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, db);
    const long i = get_global_id(0);
    if (i >= weights + channels)
        return;
    const bool weight = i < weights;
    const int channel = (int)(i - weights), group = channel / (int)outer;
    const long count = weight ? shares : parts, step = weight ? weights : channels / outer * padded;
    const global T *from = weight ? sums + i : bias_part + group * padded + (channel - group * (int)outer);
    T total = 0;
#pragma unroll 8
    for (long share = 0; share < count; share++, from += step)
        total += *from;
    if (weight)
        dw[i] = total;
    else
        db[channel] = total;
}

#define GROUP 256
#define AHEAD 4

/* part[share][channel] = the sum of dy [images][channels][pixels] over a share of the channel's `all` elements, in
 * lanes and by a tree: a chain of additions is at most per_share / (GROUP * AHEAD) + 12 long. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
conv_bias_shares(KN_IN(dy), KN_OUT(part), const uint all, const uint per_share, const kn_divisor channels,
                 const kn_divisor pixels)
{
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, part);
    local T kept[GROUP];
    const int me = get_local_id(0);
    const uint id = (uint)get_group_id(0), share = kn_quotient(id, channels);
    const uint channel = kn_remainder(id, share, channels);
    const uint first = share * per_share, last = min(all, first + per_share);
    const long others = (long)(channels.divisor - 1) * pixels.divisor; /* between two images of a channel */
    T sum[AHEAD];
    dy += channel * (long)pixels.divisor;
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        sum[i] = 0;
    for (uint e = first + me; e < last; e += GROUP * AHEAD) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const uint at = e + i * GROUP;
            sum[i] += at < last ? dy[at + kn_quotient(at, pixels) * others] : (T)0;
        }
    }
    kept[me] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (int span = GROUP / 2; span > 0; span /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < span)
            kept[me] += kept[me + span];
    }
    if (me == 0)
        part[id] = kept[0];
}
#endif
