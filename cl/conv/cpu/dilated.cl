/* conv/cpu/dilated.cl - the pixels of images that one another's taps of a dilated kernel read, as images of their own,
 * and back, on CPU devices. One row of an image at a time.
 *
 * Compiled in: T, VW, REGISTERS. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/pack.clh"
#include "conv/cpu/copy.clh"
#include "conv/cpu/dilated.h"

/* The row of the parts in the first column of parts that row `row` of a plane belongs to, and the distance to that of
 * the next column. */
static inline long find_part(const kn_conv_division *d, long plane, long row, long *distance)
{
    const long image = plane / d->channels, channel = plane % d->channels;
    const long part = (image * d->row_step + row % d->row_step) * d->column_step;
    *distance = d->channels * d->rows * d->columns;
    return ((part * d->channels + channel) * d->rows + row / d->row_step) * d->columns;
}

/* The pixels of a row of parts in column c that are inside the image: all, or all but the last. */
static inline long inside(const kn_conv_division *d, long c)
{
    return (d->columns - 1) * d->column_step + c < d->width ? d->columns : d->columns - 1;
}

/* parts = x, with zeros behind the last rows and columns. */
KN_KERNEL_ONCE(conv_divide, (KN_ARG(x), KN_ARG(parts), given), KN_IN(x), KN_OUT(parts), const kn_conv_division given)
{
    const kn_conv_division d = given;
    const long lines = d.rows * d.row_step; /* with those of zeros */
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, parts);
    KN_FOR_ONCE(line, d.images * d.channels * lines)
    {
        const long plane = line / lines, row = line % lines;
        const global T *from = x + (plane * d.height + row) * d.width;
        long distance;
        global T *to = parts + find_part(&d, plane, row, &distance);
        for (long c = 0; c < d.column_step; c++, to += distance) {
            const long n = row < d.height ? inside(&d, c) : 0;
            copy_steps(to, from + c, n, d.column_step);
            zero_run(to + n, d.columns - n);
        }
    }
}

/* y = parts, without what is behind the last row and column. */
KN_KERNEL_ONCE(conv_unite, (KN_ARG(parts), KN_ARG(y), given), KN_IN(parts), KN_OUT(y), const kn_conv_division given)
{
    const kn_conv_division d = given;
    KN_BIND_IN(T, parts);
    KN_BIND_OUT(T, y);
    KN_FOR_ONCE(line, d.images * d.channels * d.height)
    {
        const long plane = line / d.height;
        global T *to = y + line * d.width;
        long distance;
        const global T *from = parts + find_part(&d, plane, line % d.height, &distance);
        for (long c = 0; c < d.column_step; c++, from += distance)
            for (long j = 0; j < inside(&d, c); j++)
                to[j * d.column_step + c] = from[j];
    }
}
