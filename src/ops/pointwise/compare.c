/* ops/pointwise/compare.c - eq, ne, lt, le, gt, ge: bool results, no gradients; where, which selects by them. */
#include <koine/pointwise.h>

#include "ops/pointwise/elementwise.h"

#define COMPARISON(name, sign)                                                                                         \
    KN_ELEMENTWISE_TABLE(name, KN_COMPARES, "ab", NULL, KN_NO_VECTORS, "a " #sign " b", KN_GRADIENTS(NULL), a sign b); \
    const kn_op kn_##name##_op =                                                                                       \
        KN_ELEMENTWISE_OP(#name, false, false, &name##_table, KN_DTYPES_ALL, KN_NO_PARAMS, "a", "b");                  \
    kn_tensor *kn_##name(kn_tensor *a, kn_tensor *b) { return kn_invoke(&kn_##name##_op, NULL, a, b); }

COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

static kn_status check_condition(const kn_call *call)
{
    const kn_dtype dtype = call->inputs[0]->dtype;
    return dtype == KN_BOOL
               ? KN_OK
               : kn_fail(KN_ERR_DTYPE, "the condition is %s, not bool: convert it with kn_ne(condition, zero)",
                         kn_dtype_name(dtype));
}

KN_ELEMENTWISE_TABLE(where, KN_ANY, "abc", NULL, KN_NO_VECTORS, "a ? b : c",
                     KN_GRADIENTS(NULL, "a ? g : (T)0", "a ? (T)0 : g"), a != 0 ? b : c, .conditions = 1,
                     .forward.raw = "a", .backward.raw = "a", .check = check_condition);
const kn_op kn_where_op =
    KN_ELEMENTWISE_OP("where", false, true, &where_table, KN_DTYPES_ALL, KN_NO_PARAMS, "condition", "a", "b");

kn_tensor *kn_where(kn_tensor *condition, kn_tensor *a, kn_tensor *b)
{
    return kn_invoke(&kn_where_op, NULL, condition, a, b);
}
