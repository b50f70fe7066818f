/* pointwise/inplace.cl - y = f(y, a) and y = f(y, number) for every dtype. */
#include "pointwise/strided.clh"

STRIDED_UPDATE(add, y + a)
STRIDED_UPDATE(sub, y - a)
STRIDED_UPDATE(mul, y * a)
STRIDED_UPDATE(disjunction, (y != 0 || a != 0) ? 1 : 0) /* bool + bool */
STRIDED_SELF(mul_scalar, PARAMETER(const T value), y * value)
