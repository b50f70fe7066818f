/* tensor/arange.cl - whole numbers at equal distances. */
#include "common/koine.clh"

KN_KERNEL_ONCE(arange, (KN_ARG(x), start, step, n), KN_OUT(x), long start, long step, long n)
{
    KN_BIND_OUT(T, x);
    KN_FOR_ONCE (i, n)
        x[i] = (T)(start + i * step);
}
