/* pool/average_channels.cl - average pooling of images whose channels are innermost into such images.
 *
 * Compile-time: ADAPTIVE, adaptive pooling. */
#include "pool/pool.clh"
#include "pool/channels.clh"
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

static void window_averages(const kn_pool_geometry *p, pixels x, box b, T divisor, global T *y)
{
    for (long c = 0; c < x.channels; c += 16) {
        TV sum = 0;
        for (int d = b.front; d < b.back; d++)
            for (int h = b.top; h < b.bottom; h++)
                KN_NOT_UNROLLED
                for (int w = b.left; w < b.right; w++)
                    sum += load_channels(x, ((long)SLICE(d) * p->size[1] + h) * p->size[2] + w, c);
        store_part(sum / divisor, y + c, min(16L, x.channels - c));
    }
}

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
            window_averages(&p, image, b, divisor, y + (line * p.out_size[2] + column) * channels);
        }
    }
}
