/* tensor/join.cl - concatenation on CPU devices: up to 8 contiguous tensors to their places in rows of the result.
 *
 * Compiled in: E, an integer type as wide as an element. Local size 1. */
#include "common/koine.clh"
#include "tensor/join.h"

/* Runs are short where rows are. */
static inline void copy_run(global E *restrict to, const global E *restrict from, long count)
{
    long k = 0;
    KN_NOT_UNROLLED
    for (; k + 16 <= count; k += 16)
        vstore16(vload16(0, from + k), 0, to + k);
    if (k + 8 <= count) {
        vstore8(vload8(0, from + k), 0, to + k);
        k += 8;
    }
    if (k + 4 <= count) {
        vstore4(vload4(0, from + k), 0, to + k);
        k += 4;
    }
    KN_NOT_UNROLLED
    for (; k < count; k++)
        to[k] = from[k];
}

/* dim 0: `chunk` elements of what the tensors have together. */
KN_KERNEL_ONCE(join,
               (KN_ARG(x0), KN_ARG(x1), KN_ARG(x2), KN_ARG(x3), KN_ARG(x4), KN_ARG(x5), KN_ARG(x6), KN_ARG(x7),
                KN_ARG(y), p),
               KN_IN(x0), KN_IN(x1), KN_IN(x2), KN_IN(x3), KN_IN(x4), KN_IN(x5), KN_IN(x6), KN_IN(x7), KN_OUT(y),
               kn_join_plan p)
{
    KN_BIND_IN(E, x0);
    KN_BIND_IN(E, x1);
    KN_BIND_IN(E, x2);
    KN_BIND_IN(E, x3);
    KN_BIND_IN(E, x4);
    KN_BIND_IN(E, x5);
    KN_BIND_IN(E, x6);
    KN_BIND_IN(E, x7);
    KN_BIND_OUT(E, y);
    const global E *x[KN_JOIN_MOST] = {x0, x1, x2, x3, x4, x5, x6, x7};
    const long first = p.starts[0], width = p.starts[p.count] - first;
    long left = min(p.chunk, p.outer * width - KN_ID(0) * p.chunk);
    long row = KN_ID(0) * p.chunk / width, at = first + KN_ID(0) * p.chunk % width;
    int i = 0;
    while (left > 0) {
        while (at >= p.starts[i + 1])
            i++;
        const long begin = p.starts[i], length = p.starts[i + 1] - begin, run = min(left, begin + length - at);
        copy_run(y + row * p.row + at, x[i] + row * length + at - begin, run);
        left -= run;
        at += run;
        if (at == first + width) {
            at = first;
            row++;
            i = 0;
        }
    }
}
