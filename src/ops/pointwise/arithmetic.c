/* ops/pointwise/arithmetic.c - arithmetic and extremes of two tensors, and of a tensor and a number. */
#include <koine/pointwise.h>
#include <math.h>

#include "autograd/accumulate.h"
#include "base/load.h"
#include "ops/pointwise/elementwise.h"

static kn_status check_sub(const kn_call *call)
{
    for (int i = 0; i < call->num_inputs; i++)
        if (call->inputs[i]->dtype == KN_BOOL)
            return kn_fail(KN_ERR_DTYPE, "bool tensors cannot be subtracted; compare them with kn_ne, or convert with "
                                         "kn_to_dtype first");
    return KN_OK;
}

/* bool + bool is "or": any nonzero value is stored as 1. */
#define ADD KN_ANY, KN_NO_VECTORS, "a + b", "g", "g", a + b
#define SUB KN_ANY, KN_NO_VECTORS, "a - b", "g", "-g", a - b, .check = check_sub
#define MUL KN_ANY, KN_NO_VECTORS, "a * b", "g * b", "g * a", a *b, .keeps_factor = true
#define DIV KN_REAL, KN_NO_VECTORS, "a / b", "g / b", "-g * (a / b / b)", a / b, .keeps_factor = true

KN_TWO_TENSORS(add, ADD);
KN_TWO_TENSORS(sub, SUB);
KN_TWO_TENSORS(mul, MUL);
KN_TWO_TENSORS(div, DIV);
KN_NUMBER_AFTER(add_scalar, ADD);
KN_NUMBER_AFTER(sub_scalar, SUB);
KN_NUMBER_AFTER(mul_scalar, MUL);
KN_NUMBER_AFTER(div_scalar, DIV);
KN_NUMBER_BEFORE(rsub_scalar, SUB);
KN_NUMBER_BEFORE(rdiv_scalar, DIV);

KN_OF_TWO(add, add, false, true, KN_DTYPES_ALL)
KN_OF_TWO(sub, sub, false, true, KN_DTYPES_NUMBERS)
KN_OF_TWO(mul, mul, false, true, KN_DTYPES_ALL)
KN_OF_TWO(div, div, false, true, KN_DTYPES_ALL)
KN_OF_NUMBER(add_scalar, add_scalar, false, true, KN_DTYPES_ALL, kn_add_scalar_with)
KN_OF_NUMBER(sub_scalar, sub_scalar, false, true, KN_DTYPES_NUMBERS, kn_sub_scalar_with)
KN_OF_NUMBER(mul_scalar, mul_scalar, false, true, KN_DTYPES_ALL, kn_mul_scalar_with)
KN_OF_NUMBER(div_scalar, div_scalar, false, true, KN_DTYPES_ALL, kn_div_scalar_with)
KN_OF_NUMBER(rsub_scalar, rsub_scalar, false, true, KN_DTYPES_NUMBERS, kn_rsub_scalar_with)
KN_OF_NUMBER(rdiv_scalar, rdiv_scalar, false, true, KN_DTYPES_ALL, kn_rdiv_scalar_with)

KN_AT_LOAD register_sum(void) { kn_gradient_set_sum(&kn_add_op); }

/* --- extremes ----------------------------------------------------------------------------------------------------- */

/* maximum, minimum: NaN wins. fmax, fmin: NaN loses. Equal operands share the gradient. */
KN_TWO_TENSORS(maximum, KN_ANY, KN_NO_VECTORS, "(a > b || a != a) ? a : b", "a < b ? (T)0 : a == b ? g / 2 : g",
               "a > b ? (T)0 : a == b ? g / 2 : g", a > b || isnan(a) ? a : b);
KN_TWO_TENSORS(minimum, KN_ANY, KN_NO_VECTORS, "(a < b || a != a) ? a : b", "a > b ? (T)0 : a == b ? g / 2 : g",
               "a < b ? (T)0 : a == b ? g / 2 : g", a < b || isnan(a) ? a : b);
KN_TWO_TENSORS(fmax, KN_ANY, KN_NO_VECTORS, "(a >= b || b != b) ? a : b",
               "a == b ? g / 2 : (a > b || b != b) ? g : (T)0", "a == b ? g / 2 : (a > b || b != b) ? (T)0 : g",
               fmax(a, b));
KN_TWO_TENSORS(fmin, KN_ANY, KN_NO_VECTORS, "(a <= b || b != b) ? a : b",
               "a == b ? g / 2 : (a < b || b != b) ? g : (T)0", "a == b ? g / 2 : (a < b || b != b) ? (T)0 : g",
               fmin(a, b));
KN_OF_TWO(maximum, maximum, false, true, KN_DTYPES_ALL)
KN_OF_TWO(minimum, minimum, false, true, KN_DTYPES_ALL)
KN_OF_TWO(fmax, fmax, false, true, KN_DTYPES_ALL)
KN_OF_TWO(fmin, fmin, false, true, KN_DTYPES_ALL)
