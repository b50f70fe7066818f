/* pool/average_lanes.cl - average pooling by vectors, on CPU devices: of the channels of images whose channels are
 * innermost, into such images, or of small planes.
 *
 * Compile-time: PLANES; ADAPTIVE, adaptive pooling. */
#include "pool/pool.clh"
#include "common/real_lanes.clh"
#ifdef PLANES
#include "pool/planes.clh"
#else
#include "pool/channels.clh"
#endif
#ifdef ADAPTIVE
#include "pool/adaptive.clh"
#else
#include "pool/average_window.clh"
#endif

/* The part inside the input of an output's window, and its divisor. */
static box window_of(const kn_pool_geometry *p, int slice, int row, int column, T *divisor)
{
#ifdef ADAPTIVE
    const box b = window(p, slice, row, column);
    *divisor = (T)((long)(b.back - b.front) * (b.bottom - b.top) * (b.right - b.left));
#else
    box b;
    *divisor = window(p, slice, row, column, &b);
    if (is_empty(&b)) /* the average is 0 */
        *divisor = 1;
#endif
    return b;
}

static long place_in(const kn_pool_geometry *p, int d, int h, int w)
{
    return ((long)SLICE(d) * p->size[1] + h) * p->size[2] + w;
}

static TV window_sum(const kn_pool_geometry *p, pixels x, box b, long channel)
{
    TV sum = 0;
    for (int d = b.front; d < b.back; d++)
        for (int h = b.top; h < b.bottom; h++)
            KN_NOT_UNROLLED
            for (int w = b.left; w < b.right; w++)
                sum += load_channels(x, place_in(p, d, h, w), channel);
    return sum;
}

#ifndef PLANES

KN_KERNEL_ONCE(average_pool_channels, (KN_ARG(x), KN_ARG(y), given, channels), KN_IN(x), KN_OUT(y),
               const kn_pool_geometry given, const long channels)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    const long size = volume_of(&p) * channels;
    KN_FOR_ONCE(line, output_lines(&p))
    {
        const output_line l = find_output_line(&p, line);
        const pixels image = {x + l.plane * size, (p.planes - l.plane) * size, channels};
        for (int column = 0; column < p.out_size[2]; column++) {
            T divisor;
            const box b = window_of(&p, l.slice, l.row, column, &divisor);
            global T *to = y + (line * p.out_size[2] + column) * channels;
            for (long c = 0; c < channels; c += 16)
                store_part(window_sum(&p, image, b, c) / divisor, to + c, channels - c);
        }
    }
}

#else

KN_KERNEL_ONCE(average_pool_planes, (KN_ARG(x), KN_ARG(y), given), KN_IN(x), KN_OUT(y), const kn_pool_geometry given)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, y);
    TV image[KN_POOL_MOST_PIXELS], averages[KN_POOL_MOST_PIXELS];
    const long size = volume_of(&p), out_size = out_volume_of(&p);
    KN_FOR_ONCE(group, (p.planes + VW - 1) / VW)
    {
        const long first = group * VW, planes = p.planes - first;
        read_planes(image, x + first * size, size, planes);
        const pixels pixels = {image, 16};
        FOR_OUTPUTS(&p, slice, row, column, to)
        {
            T divisor;
            const box b = window_of(&p, slice, row, column, &divisor);
            averages[to] = window_sum(&p, pixels, b, 0) / divisor;
        }
        write_planes(averages, y + first * out_size, out_size, planes);
    }
}

KN_KERNEL_ONCE(average_pool_planes_backward, (KN_ARG(gradient), KN_ARG(out), given), KN_IN(gradient), KN_OUT(out),
               const kn_pool_geometry given)
{
    const kn_pool_geometry p = given;
    KN_BIND_IN(T, gradient);
    KN_BIND_OUT(T, out);
    TV image[KN_POOL_MOST_PIXELS], gradients[KN_POOL_MOST_PIXELS];
    const long size = volume_of(&p), out_size = out_volume_of(&p);
    KN_FOR_ONCE(group, (p.planes + VW - 1) / VW)
    {
        const long first = group * VW, planes = p.planes - first;
        read_planes(gradients, gradient + first * out_size, out_size, planes);
        for (long i = 0; i < size; i++)
            image[i] = 0;
        FOR_OUTPUTS(&p, slice, row, column, from)
        {
            T divisor;
            const box b = window_of(&p, slice, row, column, &divisor);
            const TV part = gradients[from] / divisor;
            FOR_BOX(b, d, h, w)
                image[place_in(&p, d, h, w)] += part;
        }
        write_planes(image, out + first * size, size, planes);
    }
}

#endif
