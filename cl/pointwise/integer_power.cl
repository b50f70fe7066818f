/* pointwise/integer_power.cl - powers of whole T, by repeated squaring, with the wrap-around of machine
 * arithmetic. A negative power is 0 but for the bases 1 and -1. */
#include "pointwise/strided.clh"

static T integer_power(T base, T exponent)
{
    T result = 1;

    if (exponent < 0)
        return base == 1 ? (T)1 : base == (T)-1 ? ((exponent & 1) ? (T)-1 : (T)1) : (T)0;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

STRIDED_BINARY(power, T, T, , integer_power(a, b))
STRIDED_UNARY(power_scalar, T, T, PARAMETER(const T value), integer_power(a, value))
