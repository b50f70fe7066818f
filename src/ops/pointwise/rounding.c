/* ops/pointwise/rounding.c - rounding, signs, and what is not a finite number. Integers are rounded already. */
#include <float.h>
#include <koine/pointwise.h>
#include <math.h>
#include <stdlib.h>

#include "ops/pointwise/elementwise.h"

/* kn_ceil and the like: cl/common/rounding.clh. */
KN_UNARY(ceil, KN_NUMBERS, "kn_ceil(a)", "g * 0", ceil(a))
KN_UNARY(floor, KN_NUMBERS, "kn_floor(a)", "g * 0", floor(a))
KN_UNARY(trunc, KN_NUMBERS, "kn_trunc(a)", "g * 0", trunc(a))
KN_UNARY(frac, KN_FLOATS, "a - kn_trunc(a)", "g", a - trunc(a))

static double angle_of(double x) { return x < 0 ? 3.14159265358979323846 : x == x ? 0 : x; }

/* The argument of a complex number without an imaginary part. As a sum: compilers load a constant that a condition
 * selects under a mask, which stalls some processors while no element is selected. */
#define HALF_PI "(T)1.57079632679489661923"
KN_FUNCTION(angle, KN_REAL, "a != a ? a : " HALF_PI " - copysign(" HALF_PI ", a + 0)", "g * 0", angle_of(a))

KN_TEST(signbit, KN_COMPARES, "kn_signbit(a)", signbit(a),
        .forward.functions = KN_BY_DTYPE("kn_signbit(x)", "(x) < 0", "signbit(x) != 0"))

kn_tensor *kn_positive(kn_tensor *x)
{
    if (x && x->dtype == KN_BOOL)
        return kn_fail_null(KN_ERR_DTYPE, "positive: not defined for bool tensors; convert with kn_to_dtype first");
    return x ? kn_scope_adopt(kn_retain(x)) : (kn_fail_argument_null("positive", "x"), kn_error_make_sticky());
}

/* --- round -------------------------------------------------------------------------------------------------------- */

/* To a multiple of 1, of 1 / p or of p; halfway cases to the even one. */
KN_ELEMENTWISE_TABLE(round, KN_NUMBERS, "a", NULL, KN_NO_VECTORS, "kn_round(a)", KN_GRADIENTS("g * 0"), nearbyint(a));
KN_ELEMENTWISE_TABLE(round_part, KN_FLOATS, "a", "p", KN_NO_VECTORS, "kn_round(a * p) / p", KN_GRADIENTS("g * 0"),
                     nearbyint(a *p) / p);
KN_ELEMENTWISE_TABLE(round_multiple, KN_FLOATS, "a", "p", KN_NO_VECTORS, "kn_round(a / p) * p", KN_GRADIENTS("g * 0"),
                     nearbyint(a / p) * p);

#define ROUND_OP(table, in_place)                                                                                      \
    KN_ELEMENTWISE_OP(in_place ? "round_" : "round", in_place, true, table, KN_DTYPES_NUMBERS, KN_NO_PARAMS, "x")
static const kn_op part_ops[2] = {ROUND_OP(&round_part_table, false), ROUND_OP(&round_part_table, true)};
static const kn_op multiple_ops[2] = {ROUND_OP(&round_multiple_table, false), ROUND_OP(&round_multiple_table, true)};

static kn_status choose_decimals(kn_entry *entry)
{
    const int decimals = ((const kn_round_params *)entry->params)->decimals;
    kn_scalar_args *own = kn_entry_record(entry, sizeof *own);
    own->values[0] = kn_scalar_real(pow(10, abs(decimals)));
    if (decimals == 0)
        return KN_OK;
    if (!kn_dtype_is_floating(entry->inputs[0]->dtype))
        return kn_fail(KN_ERR_DTYPE, "decimals must be 0, not %d, for %s tensors", decimals,
                       kn_dtype_name(entry->inputs[0]->dtype));
    entry->op = &(decimals > 0 ? part_ops : multiple_ops)[entry->op->in_place];
    return KN_OK;
}

static const kn_op_param round_rows[] = {KN_PARAM(kn_round_params, decimals, .min = -30, .max = 30)};
const kn_op kn_round_op = {
    KN_ELEMENTWISE_FIELDS("round", false, true, &round_table), .inputs = {"x"}, .dtypes = {KN_DTYPES_NUMBERS},
    .params = KN_PARAMS(kn_round_params, round_rows, KN_ROUND_DEFAULTS), .enter = choose_decimals};
KN_PARAMS_FUNCTIONS(round, ROUND)

/* --- what is not finite ------------------------------------------------------------------------------------------- */

/* The difference of a number and itself is NaN if it is infinite; of integers it is always 0. */
KN_TEST(isnan, KN_COMPARES, "a != a", isnan(a))
KN_TEST(isinf, KN_COMPARES, "a == a && a - a != 0", isinf(a))
KN_TEST(isfinite, KN_COMPARES, "a - a == 0", isfinite(a))
KN_TEST(isposinf, KN_COMPARES, "a > 0 && a - a != 0", a > 0 && isinf(a))
KN_TEST(isneginf, KN_COMPARES, "a < 0 && a - a != 0", a < 0 && isinf(a))

KN_ELEMENTWISE_TABLE(nan_to_num, KN_FLOATS, "a", "pqr", KN_NO_VECTORS,
                     "a != a ? p : a == (T)INFINITY ? q : a == -(T)INFINITY ? r : a",
                     KN_GRADIENTS("a - a == 0 ? g : g * 0"),
                     isnan(a)   ? p
                     : isinf(a) ? (a > 0 ? q : r)
                                : a);

static double highest(kn_dtype dtype)
{
    return dtype == KN_F64 ? DBL_MAX : dtype == KN_F16 ? 65504 : dtype == KN_BF16 ? 0x1.fep127 : FLT_MAX;
}

static kn_status nan_to_num_enter(kn_entry *entry)
{
    const kn_nan_to_num_params *params = entry->params;
    const kn_dtype dtype = entry->inputs[0]->dtype;
    kn_scalar_args *own = kn_entry_record(entry, sizeof *own);
    if (!kn_dtype_is_floating(dtype))
        return kn_entry_return_input(entry);
    own->values[0] = kn_scalar_real(params->nan);
    own->values[1] = kn_scalar_real(isinf(params->posinf) ? highest(dtype) : params->posinf);
    own->values[2] = kn_scalar_real(isinf(params->neginf) ? -highest(dtype) : params->neginf);
    return KN_OK;
}

static const kn_op_param nan_to_num_rows[] = {KN_PARAM(kn_nan_to_num_params, nan),
                                              KN_PARAM(kn_nan_to_num_params, posinf),
                                              KN_PARAM(kn_nan_to_num_params, neginf)};
const kn_op kn_nan_to_num_op = {
    KN_ELEMENTWISE_FIELDS("nan_to_num", false, true, &nan_to_num_table), .inputs = {"x"}, .dtypes = {KN_DTYPES_ALL},
    .params = KN_PARAMS(kn_nan_to_num_params, nan_to_num_rows, KN_NAN_TO_NUM_DEFAULTS), .enter = nan_to_num_enter};
KN_PARAMS_FUNCTIONS(nan_to_num, NAN_TO_NUM)
