/* tensor/accumulate.cl - sum += addend, both contiguous; T is float or double, or half with KN_HALF. */
#include "common/koine.clh"

kernel void accumulate(KN_INOUT(sum), KN_IN(addend), long n)
{
    KN_BIND_OUT(T, sum);
    KN_BIND_IN(T, addend);
#ifdef KN_HALF
    KN_FOR (i, n)
        vstore_half_rte(vload_half(i, sum) + vload_half(i, addend), i, sum);
#else
    KN_FOR (i, n)
        sum[i] += addend[i];
#endif
}
