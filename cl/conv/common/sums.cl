/* conv/common/sums.cl - final sums of a convolution's gradients on GPUs: the shares of the weights' sums, and dy over
 * images and pixels for the bias.
 *
 * Compiled in: T. */
#include "common/koine.clh"
#include "common/divide.clh"

/* dw = the sum of the shares, in order; db = the sum of bias_part, [parts][groups][padded]. Either may be absent, with
 * 0 elements. A work-item adds one element, with coalesced loads, eight in flight. */
kernel void conv_total(KN_IN(sums), KN_IN(bias_part), KN_OUT(dw), KN_OUT(db), const long weights, const long shares, const long channels, const long parts,
                       const long outer, const long padded)
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
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void conv_bias_shares(KN_IN(dy), KN_OUT(part), const uint all, const uint per_share, const kn_divisor channels,
                                                                               const kn_divisor pixels)
{
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, part);
    local T kept[GROUP];
    const int me = get_local_id(0);
    const uint id = (uint)get_group_id(0), share = kn_quotient(id, channels), channel = kn_remainder(id, share, channels);
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
