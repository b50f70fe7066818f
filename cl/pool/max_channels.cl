/* pool/max_channels.cl - max pooling of images whose channels are innermost into such images. INDEX is that of
 * pool/max.cl. */
#include "pool/pool.clh"
#include "pool/channels.clh"

#define NO_PLACE ((INDEX)-1)

/* A vector of channels of output (slice, row, column). */
static void window_maxima(const kn_pool_geometry *p, pixels x, int slice, int row, int column, long channel,
                          global T *y, global INDEX *index, int save, T low, T high)
{
    const int front = SLICE(slice * p->stride[0] - p->padding[0]);
    const int top = row * p->stride[1] - p->padding[1], left = column * p->stride[2] - p->padding[2];
    const long count = min(16L, x.channels - channel);
    TV best = -INFINITY;
    lane_number at = -1;
    int place = 0, first = -1; /* the first place inside the input, in case all are minus infinity */

    for (int t = 0; t < DEPTH(p->kernel_size[0]); t++)
        for (int r = 0; r < p->kernel_size[1]; r++) {
            const int d = SLICE(front + t * p->dilation[0]), h = top + r * p->dilation[1];
            const bool inside = is_within(d, DEPTH(p->size[0])) && is_within(h, p->size[1]);
            const long line = ((long)d * p->size[1] + h) * p->size[2];
            KN_NOT_UNROLLED
            for (int s = 0; s < p->kernel_size[2]; s++, place++) {
                const int w = left + s * p->dilation[2];
                if (!inside || !is_within(w, p->size[2]))
                    continue;
                const TV v = load_channels(x, line + w, channel);
                const lane_number takes = (v > best) | (v != v); /* NaN wins */
                best = select(best, v, takes);
                at = select(at, (lane_number)place, takes);
                first = first < 0 ? place : first;
            }
        }
    store_part(KN_CLAMP(best, (TV)low, (TV)high), y, count);
    if (!save)
        return;
    at = select(max(at, (lane_number)max(first, 0)), (lane_number)-1, (best <= (TV)low) | (best >= (TV)high));
    int places[16];
    vstore16(convert_int16(at), 0, places);
    for (int k = 0; k < count; k++)
        index[k] = (INDEX)places[k];
}

KN_KERNEL_ONCE(max_pool_channels,
               (KN_ARG(x), KN_ARG(y), KN_ARG(index), given, channels, save, low, high), KN_IN(x), KN_OUT(y),
               KN_OUT(index), const kn_pool_geometry given, const long channels, const int save, const T low,
               const T high)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(INDEX, index);
    const long size = volume_of(&p) * channels;
    KN_FOR_ONCE(line, output_lines(&p))
    {
        const output_line l = find_output_line(&p, line);
        const pixels image = {x + l.plane * size, (p.planes - l.plane) * size, channels};
        for (int column = 0; column < p.out_size[2]; column++) {
            const long to = (line * p.out_size[2] + column) * channels;
            for (long c = 0; c < channels; c += 16)
                window_maxima(&p, image, l.slice, l.row, column, c, y + to + c, index + to + c, save, low, high);
        }
    }
}
