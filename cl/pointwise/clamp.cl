/* pointwise/clamp.cl - values held between two bounds, for every dtype, and the two gradients: a is dL/dy. clamp
 * passes it on at the bounds themselves and not for NaN, hardtanh (and relu6) the other way round. */
#include "pointwise/strided.clh"

typedef struct {
    T low, high;
} bounds;

STRIDED_UNARY(clamp_between, T, T, PARAMETER(const bounds range),
              a < range.low ? range.low : a > range.high ? range.high : a) /* NaN passes */
STRIDED_BINARY(clamp_sum, T, T, PARAMETER(const bounds range), KN_CUT(a + b, range.low, range.high))
STRIDED_BINARY(clamp_backward, T, T, PARAMETER(const bounds range),
               b >= range.low && b <= range.high ? a : (T)0) /* b = x */
STRIDED_BINARY(hardtanh_backward, T, T, PARAMETER(const bounds range),
               b <= range.low || b >= range.high ? (T)0 : a) /* b = y */
