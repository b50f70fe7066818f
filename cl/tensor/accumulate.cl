/* tensor/accumulate.cl - sum += addend, both contiguous; T is float or double, or half with KN_HALF. On GPUs four at a time where both are `aligned`: of f32 two loads of 16 bytes, 25
 * instructions. */
#include "common/koine.clh"
#include "common/lanes.clh"

#ifdef KN_HALF
#define ADD(i) vstore_half_rte(vload_half(i, sum) + vload_half(i, addend), i, sum)
#define ADD_FOUR(i) vstorea_half4_rte(vloada_half4(i, sum) + vloada_half4(i, addend), i, sum)
#else
#define ADD(i) sum[i] += addend[i]
#define ADD_FOUR(i) ((global KN_JOIN(T, 4) *)sum)[i] += ((const global KN_JOIN(T, 4) *)addend)[i]
#endif

kernel void accumulate(KN_INOUT(sum), KN_IN(addend), long n, int aligned)
{
    KN_BIND_OUT(T, sum);
    KN_BIND_IN(T, addend);
#ifdef KN_CPU
    KN_FOR (i, n)
        ADD(i);
#else
    const long fours = aligned ? n / 4 : 0;
    KN_FOR (i, fours)
        ADD_FOUR(i);
    for (long i = 4 * fours + get_global_id(0); i < n; i += get_global_size(0))
        ADD(i);
#endif
}
