/* pointwise/power_scalar.cl - x^value for floating T, and its gradient: a is dL/dy, b is x. Squares, square roots
 * and the like need no pow(). */
#include "common/lanes.clh"
#include "pointwise/strided.clh"

STRIDED_UNARY(square, T, T, , a * a)
STRIDED_UNARY(cube, T, T, , a * a * a)
STRIDED_UNARY(reciprocal, T, T, , 1 / a)
STRIDED_MATH(root, , sqrt(a)) /* as PyTorch has it: not pow()'s 0 and infinity at -0 and -infinity */
STRIDED_MATH(reciprocal_root, , (T)1 / sqrt(a))
#ifdef KN_USE_F64 /* PoCL 3.1's pow of double vectors is wrong in lanes beside a 0, a subnormal number, inf or NaN */
STRIDED_UNARY(power_scalar, T, T, PARAMETER(const T value), pow(a, value))
#else
STRIDED_MATH(power_scalar, PARAMETER(const T value), pow(a, (operand)(value)))
#endif

static T power_of(T base, T exponent)
{
    return exponent == (T)0.5 ? sqrt(base) : exponent == (T)-0.5 ? 1 / sqrt(base) : pow(base, exponent);
}

STRIDED_BINARY(square_backward, T, T, , a * 2 * b)
STRIDED_BINARY(power_scalar_backward, T, T, PARAMETER(const T value),
               value == 0 ? (T)0 : a * (value * power_of(b, value - 1)))
