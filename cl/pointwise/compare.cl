/* pointwise/compare.cl - comparisons of any dtype: one byte, 0 or 1. */
#include "pointwise/strided.clh"

STRIDED_BINARY(eq, T, uchar, , a == b)
STRIDED_BINARY(ne, T, uchar, , a != b)
STRIDED_BINARY(lt, T, uchar, , a < b)
STRIDED_BINARY(le, T, uchar, , a <= b)
STRIDED_BINARY(gt, T, uchar, , a > b)
STRIDED_BINARY(ge, T, uchar, , a >= b)
