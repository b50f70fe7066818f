/* pointwise/binary_real.cl - division and powers of floating T, and the gradients of these and of the maximum: a
 * is dL/dy, b and c the arguments. */
#include "pointwise/strided.clh"

STRIDED_BINARY(quotient, T, T, , a / b)
STRIDED_TERNARY(quotient_backward_divisor, -a * (b / c / c))

STRIDED_BINARY(power, T, T, , pow(a, b))
STRIDED_TERNARY(power_backward_base, c == 0 ? (T)0 : a * (c * pow(b, c - 1)))
/* y log(base); 0 where 0 is raised to a power >= 0, whose limit it is. */
STRIDED_TERNARY(power_backward_exponent, a * (b == 0 && c >= 0 ? (T)0 : pow(b, c) * log(b)))

STRIDED_TERNARY(maximum_backward_first, b < c ? (T)0 : b == c ? a / 2 : a)
STRIDED_TERNARY(maximum_backward_second, b > c ? (T)0 : b == c ? a / 2 : a)
