/* ops/pointwise/functions.c - functions of one tensor. */
#include <math.h>

#include "ops/pointwise/elementwise.h"

KN_UNARY(neg, KN_NUMBERS, "-a", "-g", -a, .forward.of_bits = KN_OF_BITS("a", "a ^ " KN_SIGN_BIT))
KN_UNARY(abs, KN_NUMBERS, "a < 0 ? -a : a == 0 ? (T)0 : a", /* |-0| = 0 */
         "a > 0 ? g : a < 0 ? -g : g * 0", fabs(a), .forward.of_bits = KN_OF_BITS("a", "a & " KN_OTHER_BITS))
KN_UNARY(square, KN_NUMBERS, "a * a", "2 * g * a", a *a)
KN_UNARY(sign, KN_ANY, "a > 0 ? (T)1 : a < 0 ? -(T)1 : (T)0", "g * 0", (a > 0) - (a < 0))

KN_FUNCTION(sqrt, KN_REAL, "sqrt(a)", "g / (2 * y)", sqrt(a))
KN_FUNCTION(rsqrt, KN_REAL, "(T)1 / sqrt(a)", "-g * y * y * y / 2", 1 / sqrt(a))
KN_FUNCTION(reciprocal, KN_REAL, "(T)1 / a", "-g * y * y", 1 / a)

KN_OF_ONE(sign, sgn, false, true, KN_DTYPES_ALL)

/* --- exponentials and logarithms ---------------------------------------------------------------------------------- */

#define LN_10 "(T)2.302585092994045684018"

KN_FUNCTION(exp, KN_REAL, "exp(a)", "g * y", exp(a))
KN_FUNCTION(exp2, KN_REAL, "exp2(a)", "g * y * " KN_LN_2, exp2(a))
KN_FUNCTION(expm1, KN_REAL, "expm1(a)", "g * (y + 1)", expm1(a))
KN_FUNCTION(log, KN_REAL, "log(a)", "g / a", log(a))
KN_FUNCTION(log2, KN_REAL, "log2(a)", "g / (a * " KN_LN_2 ")", log2(a))
KN_FUNCTION(log10, KN_REAL, "log10(a)", "g / (a * " LN_10 ")", log10(a))
KN_FUNCTION(log1p, KN_REAL, "log1p(a)", "g / (a + 1)", log1p(a))

/* --- trigonometric and hyperbolic functions ----------------------------------------------------------------------- */

KN_FUNCTION(sin, KN_REAL, "sin(a)", "g * cos(a)", sin(a))
KN_FUNCTION(cos, KN_REAL, "cos(a)", "-g * sin(a)", cos(a))
KN_FUNCTION(tan, KN_REAL, "tan(a)", "g * (1 + y * y)", tan(a))
KN_FUNCTION(asin, KN_REAL, "asin(a)", "g / sqrt(1 - a * a)", asin(a))
KN_FUNCTION(acos, KN_REAL, "acos(a)", "-g / sqrt(1 - a * a)", acos(a))
KN_FUNCTION(atan, KN_REAL, "atan(a)", "g / (1 + a * a)", atan(a))
KN_FUNCTION(sinh, KN_REAL, "sinh(a)", "g * cosh(a)", sinh(a))
KN_FUNCTION(cosh, KN_REAL, "cosh(a)", "g * sinh(a)", cosh(a))
KN_FUNCTION(tanh, KN_REAL, "tanh(a)", "g * (1 - y * y)", tanh(a))
KN_FUNCTION(asinh, KN_REAL, "asinh(a)", "g / sqrt(a * a + 1)", asinh(a))
KN_FUNCTION(acosh, KN_REAL, "acosh(a)", "g / sqrt(a * a - 1)", acosh(a))
KN_FUNCTION(atanh, KN_REAL, "atanh(a)", "g / (1 - a * a)", atanh(a))

/* --- backward functions that PyTorch has by name ------------------------------------------------------------------ */

/* Of the gradient a and the result b, which for thresholds may be the input. */
KN_ELEMENTWISE_TABLE(sigmoid_backward, KN_NUMBERS, "ab", NULL, KN_NO_VECTORS, "a * b * (1 - b)",
                     KN_GRADIENTS("g * b * (1 - b)", "g * a * (1 - 2 * b)"), a *b *(1 - b));
KN_ELEMENTWISE_TABLE(tanh_backward, KN_NUMBERS, "ab", NULL, KN_NO_VECTORS, "a * (1 - b * b)",
                     KN_GRADIENTS("g * (1 - b * b)", "-2 * g * a * b"), a *(1 - b * b));
KN_ELEMENTWISE_TABLE(threshold_backward, KN_NUMBERS, "ab", "p", KN_NO_VECTORS, "b <= p ? (T)0 : a",
                     KN_GRADIENTS("b <= p ? (T)0 : g", "g * 0"), b <= p ? 0 : a);
KN_ELEMENTWISE_TABLE(hardtanh_backward, KN_NUMBERS, "ab", "pq", KN_NO_VECTORS, "b <= p || b >= q ? (T)0 : a",
                     KN_GRADIENTS("b <= p || b >= q ? (T)0 : g", "g * 0"), b <= p || b >= q ? 0 : a);

static const kn_op_param threshold_row[] = {KN_PARAM_NAMED("threshold", kn_scalar_args, values[0])};
static const kn_op_param bound_rows[] = {KN_PARAM_NAMED("min_val", kn_scalar_args, values[0]),
                                         KN_PARAM_NAMED("max_val", kn_scalar_args, values[1])};
const kn_op kn_sigmoid_backward_op = KN_ELEMENTWISE_OP("sigmoid_backward", false, true, &sigmoid_backward_table,
                                                       KN_DTYPES_NUMBERS, KN_NO_PARAMS, "grad", "result");
const kn_op kn_tanh_backward_op = KN_ELEMENTWISE_OP("tanh_backward", false, true, &tanh_backward_table,
                                                    KN_DTYPES_NUMBERS, KN_NO_PARAMS, "grad", "result");
const kn_op kn_threshold_backward_op =
    KN_ELEMENTWISE_OP("threshold_backward", false, true, &threshold_backward_table, KN_DTYPES_NUMBERS,
                      KN_PARAMS(kn_scalar_args, threshold_row), "grad", "x");
const kn_op kn_hardtanh_backward_op =
    KN_ELEMENTWISE_OP("hardtanh_backward", false, true, &hardtanh_backward_table, KN_DTYPES_NUMBERS,
                      KN_PARAMS(kn_scalar_args, bound_rows, {{true, -1, -1}, {true, 1, 1}}), "grad", "x");
