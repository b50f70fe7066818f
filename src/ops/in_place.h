/* ops/in_place.h - the operators that store their result in their first input: sin_ of sin. */
#pragma once

#include "autograd/op.h"

/* clang-format off */
/* X(operator, arguments, how), sorted by name.
 *
 * The arguments are those of the public function: ONE tensor; TWO; a tensor and a NUMBER; a tensor and PARAMS; OTHER
 * ones, for which the function is written out. DIRECT: an elementwise operator, whose kernel writes there. STORED: the
 * result is computed, then copied, also where `enter` chooses another operator. */
#define KN_IN_PLACE_FORMS(X) \
    X(abs, ONE, DIRECT) \
    X(acos, ONE, DIRECT) \
    X(acosh, ONE, DIRECT) \
    X(add, TWO, DIRECT) \
    X(add_scalar, NUMBER, DIRECT) \
    X(addbmm, OTHER, STORED) \
    X(addcdiv, OTHER, DIRECT) \
    X(addcmul, OTHER, DIRECT) \
    X(addmm, OTHER, STORED) \
    X(addmv, OTHER, STORED) \
    X(addr, OTHER, STORED) \
    X(asin, ONE, DIRECT) \
    X(asinh, ONE, DIRECT) \
    X(atan2, TWO, DIRECT) \
    X(atan, ONE, DIRECT) \
    X(atanh, ONE, DIRECT) \
    X(baddbmm, OTHER, STORED) \
    X(bitwise_and, TWO, DIRECT) \
    X(bitwise_and_scalar, NUMBER, DIRECT) \
    X(bitwise_left_shift, TWO, DIRECT) \
    X(bitwise_left_shift_scalar, NUMBER, DIRECT) \
    X(bitwise_not, OTHER, STORED) \
    X(bitwise_or, TWO, DIRECT) \
    X(bitwise_or_scalar, NUMBER, DIRECT) \
    X(bitwise_right_shift, TWO, DIRECT) \
    X(bitwise_right_shift_scalar, NUMBER, DIRECT) \
    X(bitwise_xor, TWO, DIRECT) \
    X(bitwise_xor_scalar, NUMBER, DIRECT) \
    X(ceil, ONE, DIRECT) \
    X(celu, PARAMS, DIRECT) \
    X(clamp, OTHER, DIRECT) \
    X(copysign, TWO, DIRECT) \
    X(cos, ONE, DIRECT) \
    X(cosh, ONE, DIRECT) \
    X(cumprod, OTHER, STORED) \
    X(cumsum, OTHER, STORED) \
    X(deg2rad, ONE, DIRECT) \
    X(digamma, ONE, DIRECT) \
    X(div, TWO, DIRECT) \
    X(div_mode, OTHER, STORED) \
    X(div_scalar, NUMBER, DIRECT) \
    X(elu, PARAMS, DIRECT) \
    X(eq, TWO, DIRECT) \
    X(eq_scalar, NUMBER, DIRECT) \
    X(erf, ONE, DIRECT) \
    X(erfc, ONE, DIRECT) \
    X(erfinv, ONE, DIRECT) \
    X(exp2, ONE, DIRECT) \
    X(exp, ONE, DIRECT) \
    X(expm1, ONE, DIRECT) \
    X(float_power, OTHER, STORED) \
    X(floor, ONE, DIRECT) \
    X(floor_divide, TWO, DIRECT) \
    X(floor_divide_scalar, NUMBER, DIRECT) \
    X(fmod, TWO, DIRECT) \
    X(fmod_scalar, NUMBER, DIRECT) \
    X(frac, ONE, DIRECT) \
    X(gcd, TWO, DIRECT) \
    X(ge, TWO, DIRECT) \
    X(ge_scalar, NUMBER, DIRECT) \
    X(gt, TWO, DIRECT) \
    X(gt_scalar, NUMBER, DIRECT) \
    X(hardsigmoid, ONE, DIRECT) \
    X(hardswish, ONE, DIRECT) \
    X(hardtanh, OTHER, DIRECT) \
    X(heaviside, TWO, DIRECT) \
    X(hypot, TWO, DIRECT) \
    X(i0, ONE, DIRECT) \
    X(igamma, TWO, DIRECT) \
    X(igammac, TWO, DIRECT) \
    X(index_reduce, OTHER, STORED) \
    X(lcm, TWO, DIRECT) \
    X(ldexp, TWO, STORED) \
    X(le, TWO, DIRECT) \
    X(le_scalar, NUMBER, DIRECT) \
    X(leaky_relu, PARAMS, DIRECT) \
    X(lerp, OTHER, DIRECT) \
    X(lerp_scalar, OTHER, DIRECT) \
    X(lgamma, ONE, DIRECT) \
    X(log10, ONE, DIRECT) \
    X(log1p, ONE, DIRECT) \
    X(log2, ONE, DIRECT) \
    X(log, ONE, DIRECT) \
    X(logical_and, TWO, DIRECT) \
    X(logical_not, ONE, DIRECT) \
    X(logical_or, TWO, DIRECT) \
    X(logical_xor, TWO, DIRECT) \
    X(logit, PARAMS, DIRECT) \
    X(lt, TWO, DIRECT) \
    X(lt_scalar, NUMBER, DIRECT) \
    X(mish, ONE, DIRECT) \
    X(mul, TWO, DIRECT) \
    X(mul_scalar, NUMBER, DIRECT) \
    X(mvlgamma, OTHER, STORED) \
    X(nan_to_num, PARAMS, STORED) \
    X(ne, TWO, DIRECT) \
    X(ne_scalar, NUMBER, DIRECT) \
    X(neg, ONE, DIRECT) \
    X(nextafter, TWO, DIRECT) \
    X(polygamma, OTHER, DIRECT) \
    X(pow, TWO, DIRECT) \
    X(pow_scalar, NUMBER, DIRECT) \
    X(rad2deg, ONE, DIRECT) \
    X(reciprocal, ONE, DIRECT) \
    X(relu6, ONE, DIRECT) \
    X(relu, ONE, DIRECT) \
    X(remainder, TWO, DIRECT) \
    X(remainder_scalar, NUMBER, DIRECT) \
    X(round, PARAMS, DIRECT) \
    X(rrelu, PARAMS, STORED) \
    X(rsqrt, ONE, DIRECT) \
    X(scatter_reduce, OTHER, STORED) \
    X(selu, ONE, DIRECT) \
    X(sgn, ONE, DIRECT) \
    X(sigmoid, ONE, DIRECT) \
    X(sign, ONE, DIRECT) \
    X(silu, ONE, DIRECT) \
    X(sin, ONE, DIRECT) \
    X(sinc, ONE, DIRECT) \
    X(sinh, ONE, DIRECT) \
    X(sqrt, ONE, DIRECT) \
    X(square, ONE, DIRECT) \
    X(sub, TWO, DIRECT) \
    X(sub_scalar, NUMBER, DIRECT) \
    X(tan, ONE, DIRECT) \
    X(tanh, ONE, DIRECT) \
    X(threshold, OTHER, DIRECT) \
    X(tril, OTHER, STORED) \
    X(triu, OTHER, STORED) \
    X(trunc, ONE, DIRECT) \
    X(xlogy, TWO, DIRECT)
/* clang-format on */

/* NULL, without an error, if there is none of that name. */
const kn_op *kn_in_place_find(const char *name);
