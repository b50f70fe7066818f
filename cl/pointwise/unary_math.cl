/* pointwise/unary_math.cl - y = f(a) for floating T, by expressions that hold for a scalar and for a vector alike;
 * and the gradients: there a is dL/dy, and b is x or y, as the op saved it. */
#include "common/lanes.clh"
#include "pointwise/strided.clh"

STRIDED_MATH(exponential, , exp(a)) /* its gradient is a product */

STRIDED_MATH(logarithm, , log(a))
STRIDED_BINARY(logarithm_backward, T, T, , a / b) /* b = x */

STRIDED_MATH(square_root, , sqrt(a))
STRIDED_BINARY(square_root_backward, T, T, , a / (2 * b)) /* b = y */

STRIDED_MATH(sigmoid, , (T)1 / ((T)1 + exp(-a)))
STRIDED_BINARY(sigmoid_backward, T, T, , a * b * (1 - b)) /* b = y */

STRIDED_MATH(hyperbolic_tangent, , tanh(a))
STRIDED_BINARY(hyperbolic_tangent_backward, T, T, , a * (1 - b * b)) /* b = y */
