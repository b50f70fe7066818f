/* pointwise/scalar.cl - a tensor and a number, for every dtype. */
#include "pointwise/strided.clh"

STRIDED_UNARY(add_scalar, T, T, PARAMETER(const T value), a + value)
STRIDED_UNARY(mul_scalar, T, T, PARAMETER(const T value), a * value)
