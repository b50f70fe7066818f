/* ops/pointwise/compare.c - eq, ne, lt, le, gt, ge: bool results, no gradients. */
#include <koine/ops.h>

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
