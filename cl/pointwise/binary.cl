/* pointwise/binary.cl - y = f(a, b) for every dtype, and the same in place. T: the operands' dtype. */
#include "pointwise/strided.clh"

STRIDED_BINARY(add, T, T, , a + b)
STRIDED_BINARY(sub, T, T, , a - b)
STRIDED_BINARY(mul, T, T, , a * b)
STRIDED_BINARY(maximum, T, T, , (a > b || a != a) ? a : b) /* NaN wins from either side */

/* 1 where a equals b, both NaN included: where a maximum is. */
STRIDED_BINARY(equal_or_nan, T, T, , (a == b || (a != a && b != b)) ? 1 : 0)

/* a where b is not 0: no product, which infinities and NaN would make NaN elsewhere. */
STRIDED_BINARY(where_marked, T, T, , b != 0 ? a : 0)
