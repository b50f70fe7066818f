/* ops/pointwise/compare.c - comparisons and logic: bool results, no gradients; where, which selects by them; are two
 * tensors equal or close? */
#include <koine/logic.h>
#include <koine/reduce.h>
#include <math.h>

#include "ops/pointwise/elementwise.h"
#include "tensor/liveness.h"

#define COMPARISON(name, sign)                                                                                         \
    KN_TWO_TENSORS(name, KN_COMPARES, KN_NO_VECTORS, "a " #sign " b", NULL, NULL, a sign b);                           \
    KN_NUMBER_AFTER(name##_scalar, KN_COMPARES, KN_NO_VECTORS, "a " #sign " b", NULL, NULL, a sign b,                  \
                    .rounds_number = true);                                                                            \
    KN_OF_TWO(name, name, false, false, KN_DTYPES_ALL)                                                                 \
    KN_OF_NUMBER(name##_scalar, name##_scalar, false, false, KN_DTYPES_ALL, kn_##name##_scalar_with)

COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

/* --- logic -------------------------------------------------------------------------------------------------------- */

#define LOGIC(name, value, reference)                                                                                  \
    KN_TWO_TENSORS(name, KN_COMPARES, KN_NO_VECTORS, value, NULL, NULL, reference);                                    \
    KN_OF_TWO(name, name, false, false, KN_DTYPES_ALL)
LOGIC(logical_and, "a != 0 && b != 0", a != 0 && b != 0)
LOGIC(logical_or, "a != 0 || b != 0", a != 0 || b != 0)
LOGIC(logical_xor, "(a != 0) != (b != 0)", (a != 0) != (b != 0))
KN_TEST(logical_not, KN_COMPARES, "a == 0", a == 0)

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
const kn_op kn_where_op = {KN_ELEMENTWISE_FIELDS("where", false, true, &where_table), .inputs = {"condition", "a", "b"},
                           .dtypes = {1u << KN_BOOL, KN_DTYPES_ALL, KN_DTYPES_ALL}};

kn_tensor *kn_where(kn_tensor *condition, kn_tensor *a, kn_tensor *b)
{
    return kn_invoke(&kn_where_op, NULL, condition, a, b);
}

/* --- closeness ---------------------------------------------------------------------------------------------------- */

/* p: rtol, q: atol, r: equal_nan. A bound that is infinite because b is does not count. */
KN_ELEMENTWISE_TABLE(isclose, KN_REAL_COMPARES, "ab", "pqr", KN_NO_VECTORS,
                     "a == b || (b - b == 0 && fabs(a - b) <= q + fabs(p * b)) || (r != 0 && a != a && b != b)",
                     KN_GRADIENTS(NULL),
                     a == b || (isfinite(b) && fabs(a - b) <= q + fabs(p * b)) || (r != 0 && isnan(a) && isnan(b)));
static const kn_op_param close_rows[] = {KN_PARAM(kn_isclose_params, rtol, .min = 0, .max = (double)INFINITY),
                                         KN_PARAM(kn_isclose_params, atol, .min = 0, .max = (double)INFINITY),
                                         KN_PARAM(kn_isclose_params, equal_nan)};
const kn_op kn_isclose_op = {
    KN_ELEMENTWISE_FIELDS("isclose", false, false, &isclose_table), .inputs = {"a", "b"}, .dtypes = {KN_DTYPES_ALL},
    .params = KN_PARAMS(kn_isclose_params, close_rows, KN_ISCLOSE_DEFAULTS), .enter = kn_elementwise_enter};

kn_isclose_params kn_isclose_params_init(void) { return (kn_isclose_params){KN_ISCLOSE_DEFAULTS}; }

kn_tensor *kn_isclose_with(kn_tensor *a, kn_tensor *b, const kn_isclose_params *params)
{
    return kn_invoke(&kn_isclose_op, params, a, b);
}

/* Is every element of a bool tensor true? Waits for the answer. */
static kn_status all_true(kn_tensor *answers, bool *all)
{
    kn_tensor *differences = answers ? kn_sum(kn_logical_not(answers)) : NULL;
    int64_t count = 0;
    const kn_status status = differences ? kn_item_i64(differences, &count) : kn_error_status();
    *all = status == KN_OK && count == 0;
    return status;
}

kn_status kn_allclose_with(kn_tensor *a, kn_tensor *b, bool *result, const kn_isclose_params *params)
{
    KN_SCOPE;
    if (!result)
        return kn_fail_argument_null("allclose", "result");
    return all_true(kn_isclose_with(a, b, params), result);
}

kn_status kn_equal(kn_tensor *a, kn_tensor *b, bool *result)
{
    KN_SCOPE;
    if (!result)
        return kn_fail_argument_null("equal", "result");
    *result = false;
    KN_TRY(kn_check_tensor("equal", "a", a));
    KN_TRY(kn_check_tensor("equal", "b", b));
    return kn_same_shape(a, b) ? all_true(kn_eq(a, b), result) : KN_OK;
}
