/* ops/pointwise/functions.c - functions of one tensor. */
#include <koine/tensor.h>
#include <math.h>

#include "ops/pointwise/elementwise.h"

KN_UNARY(neg, KN_NUMBERS, "-a", "-g", -a)
KN_UNARY(abs, KN_NUMBERS, "a < 0 ? -a : a == 0 ? (T)0 : a", /* |-0| = 0 */
         "a > 0 ? g : a < 0 ? -g : g * 0", fabs(a))
KN_UNARY(relu, KN_NUMBERS, "a < 0 ? (T)0 : a", /* NaN passes */
         "y <= 0 ? (T)0 : g", a < 0 ? 0 : a)

KN_FUNCTION(exp, KN_REAL, "exp(a)", "g * y", exp(a))
KN_FUNCTION(log, KN_REAL, "log(a)", "g / a", log(a))
KN_FUNCTION(sqrt, KN_REAL, "sqrt(a)", "g / (2 * y)", sqrt(a))
KN_FUNCTION(sigmoid, KN_REAL, "(T)1 / ((T)1 + exp(-a))", "g * y * (1 - y)", 1 / (1 + exp(-a)))
KN_FUNCTION(tanh, KN_REAL, "tanh(a)", "g * (1 - y * y)", tanh(a))
