/* conv/gpu/pack_taps.cl - packs a correlation's weights as a matrix [group][tap][channel], for the convolutions on GPUs
 * (conv/gpu/blocked.cl): in backward-data they are contiguous neither along the taps nor along the channels. Channels
 * past the last are not written.
 *
 * Compiled in: T. */
#include "common/koine.clh"
#include "common/divide.clh"
#include "conv/gpu/blocked.h"

kernel void conv_pack_taps(KN_IN(w), KN_OUT(packed), kn_conv_pack_layout p, int channels)
{
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, packed);
    KN_FOR(i, p.count)
    {
        const uint line = kn_quotient((uint)i, p.pitch), channel = kn_remainder((uint)i, line, p.pitch);
        const uint group = kn_quotient(line, p.taps), tap = kn_remainder(line, group, p.taps);
        const uint inner = kn_quotient(tap, p.area), place = kn_remainder(tap, inner, p.area),
                   u = kn_quotient(place, p.columns);
        if (channel < (uint)channels)
            packed[i] = w[group * p.group + channel * p.channel + inner * p.inner + p.first + (int)u * p.row +
                          (int)kn_remainder(place, u, p.columns) * p.column];
    }
}
