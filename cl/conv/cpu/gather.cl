/* conv/cpu/gather.cl - the pixels of images that a strided or padded 1 x 1 convolution reads, on CPU devices.
 *
 * Compiled in: T, VW, REGISTERS. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/pack.clh"
#include "conv/cpu/copy.clh"
#include "conv/cpu/gather.h"

/* to[plane][row][column] = x at the pixels of the grid, zeros outside. */
KN_KERNEL_ONCE(conv_gather, (KN_ARG(x), KN_ARG(to), given, planes), KN_IN(x), KN_OUT(to), const kn_conv_sampling given,
               long planes)
{
    const kn_conv_sampling g = given;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, to);
    KN_FOR_ONCE(line, planes * g.rows)
    {
        const long plane = line / g.rows, row = line % g.rows * g.row_step - g.top;
        if (row < 0 || row >= g.height)
            zero_run(to + line * g.columns, g.columns);
        else
            copy_padded(to + line * g.columns, x + (plane * g.height + row) * g.width, g.width, -g.left, g.column_step,
                        g.columns);
    }
}
