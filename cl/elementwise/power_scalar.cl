/* elementwise/power_scalar.cl - x^value for floating T, and its gradient: a is dL/dy, b is x. Squares, square roots
 * and the like need no pow(). */
#include "common/lanes.clh"
#include "elementwise/strided.clh"

STRIDED_UNARY(square, T, T, , a * a)
STRIDED_UNARY(cube, T, T, , a * a * a)
STRIDED_UNARY(reciprocal, T, T, , 1 / a)
STRIDED_MATH(power_scalar, PARAMETER(const T value), pow(a, (operand)(value)))

STRIDED_BINARY(square_backward, T, T, , a * 2 * b)
STRIDED_BINARY(power_scalar_backward, T, T, PARAMETER(const T value),
               value == 0 ? (T)0 : a * (value * pow(b, value - 1)))
