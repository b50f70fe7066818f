/* pointwise/unary.cl - y = f(a) for every dtype, and the gradients: there a is dL/dy, and b is x or y, as the op
 * saved it. */
#include "pointwise/strided.clh"

STRIDED_UNARY(negative, T, T, , -a)

STRIDED_UNARY(absolute, T, T, , a < 0 ? -a : a == 0 ? (T)0 : a) /* |-0| = 0 */
STRIDED_BINARY(absolute_backward, T, T, , b > 0 ? a : b < 0 ? -a : a * 0) /* b = x */

STRIDED_UNARY(relu, T, T, , a < 0 ? (T)0 : a) /* NaN passes */
STRIDED_BINARY(relu_backward, T, T, , b <= 0 ? (T)0 : a) /* b = y */
