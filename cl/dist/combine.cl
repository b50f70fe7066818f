/* dist/combine.cl - result = OPERATION(result, other), both contiguous. T is any dtype's type, half with KN_HALF;
 * bool's uchar with KN_LOGICAL, so that a sum of bools is a bool. */
#include "common/koine.clh"

#ifdef KN_LOGICAL
#define sum(a, b) ((a) | (b))
#else
#define sum(a, b) ((a) + (b))
#endif
/* NaN compares false with everything, including itself, so NaN propagates. */
#define largest(a, b) ((a) >= (b) || (a) != (a) ? (a) : (b))
#define smallest(a, b) ((a) <= (b) || (a) != (a) ? (a) : (b))

kernel void combine(KN_INOUT(result), KN_IN(other), long n)
{
    KN_BIND_OUT(T, result);
    KN_BIND_IN(T, other);
#ifdef KN_HALF
    KN_FOR (i, n) {
        float a = vload_half(i, result), b = vload_half(i, other);
        vstore_half_rte(OPERATION(a, b), i, result);
    }
#else
    KN_FOR (i, n) {
        T a = result[i], b = other[i];
        result[i] = OPERATION(a, b);
    }
#endif
}
