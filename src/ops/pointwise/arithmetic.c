/* ops/pointwise/arithmetic.c - arithmetic of two tensors, of a tensor and a number, and the same in place. */
#include <koine/pointwise.h>
#include <math.h>

#include "autograd/engine.h"
#include "autograd/work.h"
#include "base/load.h"
#include "ops/dispatch/reference.h"
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
KN_ELEMENTWISE_TABLE(add, KN_ANY, "ab", NULL, KN_NO_VECTORS, "a + b", KN_GRADIENTS("g", "g"), a + b);
KN_ELEMENTWISE_TABLE(sub, KN_ANY, "ab", NULL, KN_NO_VECTORS, "a - b", KN_GRADIENTS("g", "-g"), a - b,
                     .check = check_sub);
KN_ELEMENTWISE_TABLE(mul, KN_ANY, "ab", NULL, KN_NO_VECTORS, "a * b", KN_GRADIENTS("g * b", "g * a"), a *b,
                     .keeps_factor = true);
KN_ELEMENTWISE_TABLE(div, KN_REAL, "ab", NULL, KN_NO_VECTORS, "a / b", KN_GRADIENTS("g / b", "-g * (a / b / b)"), a / b,
                     .keeps_factor = true);
KN_ELEMENTWISE_TABLE(maximum, KN_ANY, "ab", NULL, KN_NO_VECTORS, "(a > b || a != a) ? a : b", /* NaN wins */
                     KN_GRADIENTS("a < b ? (T)0 : a == b ? g / 2 : g", "a > b ? (T)0 : a == b ? g / 2 : g"),
                     a > b || isnan(a) ? a : b);
KN_ELEMENTWISE_TABLE(add_scalar, KN_ANY, "a", "p", KN_NO_VECTORS, "a + p", KN_GRADIENTS("g"), a + p);
KN_ELEMENTWISE_TABLE(mul_scalar, KN_ANY, "a", "p", KN_NO_VECTORS, "a * p", KN_GRADIENTS("g * p"), a *p);

#define BINARY(name, op_name, in_place, dtypes)                                                                        \
    const kn_op kn_##op_name##_op =                                                                                    \
        KN_ELEMENTWISE_OP(#op_name, in_place, true, &name##_table, dtypes, KN_NO_PARAMS, "a", "b");                    \
    kn_tensor *kn_##op_name(kn_tensor *a, kn_tensor *b) { return kn_invoke(&kn_##op_name##_op, NULL, a, b); }

#define WITH_NUMBER(name, op_name, in_place, dtypes, function)                                                         \
    const kn_op kn_##op_name##_op = KN_ELEMENTWISE_OP(#op_name, in_place, true, &name##_table, dtypes,                 \
                                                      KN_PARAMS(kn_scalar_args, kn_value_rows), "a");                  \
    kn_tensor *function(kn_tensor *a, kn_scalar b) { return kn_invoke(&kn_##op_name##_op, &(kn_scalar_args){{b}}, a); }

BINARY(add, add, false, KN_DTYPES_ALL)
BINARY(sub, sub, false, KN_DTYPES_NUMBERS)
BINARY(mul, mul, false, KN_DTYPES_ALL)
BINARY(div, div, false, KN_DTYPES_ALL)
BINARY(maximum, maximum, false, KN_DTYPES_ALL)
BINARY(add, add_, true, KN_DTYPES_ALL)
BINARY(sub, sub_, true, KN_DTYPES_NUMBERS)
BINARY(mul, mul_, true, KN_DTYPES_ALL)
WITH_NUMBER(add_scalar, add_scalar, false, KN_DTYPES_ALL, kn_add_scalar_with)
WITH_NUMBER(mul_scalar, mul_scalar, false, KN_DTYPES_ALL, kn_mul_scalar_with)
WITH_NUMBER(mul_scalar, mul_scalar_, true, KN_DTYPES_NUMBERS, kn_mul_scalar_with_)

KN_AT_LOAD register_sum(void) { kn_pass_set_sum(&kn_add_op); }
