/* ops/pointwise/binary.c - functions of two tensors. */
#include <koine/pointwise.h>
#include <math.h>

#include "ops/pointwise/elementwise.h"

/* The sign of a is taken from b; where a is 0, it has no slope. */
KN_TWO_TENSORS(copysign, KN_REAL, KN_NO_VECTORS, "copysign(a, b)", "g * (a == 0 ? (T)0 : y / (a == 0 ? (T)1 : a))",
               "g * 0", copysign(a, b),
               .forward.of_bits = KN_OF_BITS("ab", "(a & " KN_OTHER_BITS ") | (b & " KN_SIGN_BIT ")"));
KN_TWO_TENSORS(hypot, KN_FLOATS, KN_NO_VECTORS, "kn_hypot(a, b)", "g * (a / y)", "g * (b / y)", hypot(a, b),
               .forward.functions = "static T kn_hypot(T a, T b)\n"
                                    "{\n" /* scaled by a power of two, against overflow and underflow */
                                    "    const T high = fmax(fabs(a), fabs(b)), low = fmin(fabs(a), fabs(b));\n"
                                    "    if (isinf(a) || isinf(b))\n"
                                    "        return (T)INFINITY;\n"
                                    "    if (a != a || b != b)\n"
                                    "        return a + b;\n"
                                    "    return high == 0 ? high : high * sqrt(1 + (low / high) * (low / high));\n"
                                    "}\n");
/* At 0, 0 the gradient is 0, as in PyTorch. */
#define FROM_0 "(a * a + b * b == 0 ? (T)0 : 1 / (a * a + b * b))"
KN_TWO_TENSORS(atan2, KN_REAL, KN_VECTORS, "atan2(a, b)", "g * b * " FROM_0, "-g * a * " FROM_0, atan2(a, b));

/* log(exp(a) + exp(b)), of equal infinities that infinity; the gradients are the terms' shares of the sum. */
#define LARGER "(a > b || a != a ? a : b)"
KN_TWO_TENSORS(logaddexp, KN_FLOATS, KN_VECTORS, "(a == b ? a : " LARGER ") + log1p(exp(a == b ? (T)0 : -fabs(a - b)))",
               "g * kn_sigmoid(a - b)", "g * kn_sigmoid(b - a)",
               a == b ? a + log(2) : fmax(a, b) + log1p(exp(-fabs(a - b))), .backward.functions = KN_SIGMOID);
KN_TWO_TENSORS(logaddexp2, KN_FLOATS, KN_VECTORS,
               "(a == b ? a : " LARGER ") + log1p(exp2(a == b ? (T)0 : -fabs(a - b))) * " KN_1_LN_2,
               "g * kn_sigmoid((a - b) * " KN_LN_2 ")", "g * kn_sigmoid((b - a) * " KN_LN_2 ")",
               a == b ? a + 1 : fmax(a, b) + log1p(exp2(-fabs(a - b))) / log(2), .backward.functions = KN_SIGMOID);

/* a log(b) and a log(1 + b), 0 where a is 0 unless b is NaN. */
KN_TWO_TENSORS(xlogy, KN_REAL, KN_VECTORS, "b != b ? b : a == 0 ? (T)0 : a * log(b)",
               "a == 0 && b <= 0 ? g * 0 : g * log(b)", "g * a / b",
               isnan(b) ? b
               : a == 0 ? 0
                        : a * log(b));
KN_TWO_TENSORS(xlog1py, KN_REAL, KN_VECTORS, "b != b ? b : a == 0 ? (T)0 : a * log1p(b)",
               "a == 0 && b <= -1 ? g * 0 : g * log1p(b)", "g * a / (b + 1)",
               isnan(b) ? b
               : a == 0 ? 0
                        : a * log1p(b));

KN_OF_TWO(copysign, copysign, false, true, KN_DTYPES_ALL)
KN_OF_TWO(hypot, hypot, false, true, KN_DTYPES_FLOATING)
KN_OF_TWO(atan2, atan2, false, true, KN_DTYPES_ALL)
KN_OF_TWO(logaddexp, logaddexp, false, true, KN_DTYPES_FLOATING)
KN_OF_TWO(logaddexp2, logaddexp2, false, true, KN_DTYPES_FLOATING)
KN_OF_TWO(xlogy, xlogy, false, true, KN_DTYPES_ALL)
KN_OF_TWO(xlog1py, xlog1py, false, true, KN_DTYPES_ALL)

/* --- without gradients -------------------------------------------------------------------------------------------- */

static kn_status check_same_dtypes(const kn_call *call)
{
    const kn_dtype a = call->inputs[0]->dtype, b = call->inputs[1]->dtype;
    return a == b ? KN_OK
                  : kn_fail(KN_ERR_DTYPE, "the tensors are %s and %s: convert one of them with kn_to_dtype",
                            kn_dtype_name(a), kn_dtype_name(b));
}

/* The next half is not the next float: not of float16 and bfloat16. */
static kn_status check_nextafter(const kn_call *call)
{
    for (int i = 0; i < 2; i++)
        if (kn_dtype_is_reduced(call->inputs[i]->dtype))
            return kn_fail(KN_ERR_DTYPE, "not defined for %s tensors; convert with kn_to_dtype first",
                           kn_dtype_name(call->inputs[i]->dtype));
    return KN_OK;
}

KN_TWO_TENSORS(heaviside, KN_ANY, KN_NO_VECTORS, "a == 0 ? b : a > 0 ? (T)1 : (T)0", NULL, NULL, a == 0 ? b : a > 0,
               .check = check_same_dtypes);
KN_TWO_TENSORS(nextafter, KN_FLOATS, KN_NO_VECTORS, "nextafter(a, b)", NULL, NULL, nextafter(a, b),
               .check = check_nextafter);
KN_OF_TWO(heaviside, heaviside, false, false, KN_DTYPES_ALL)
KN_OF_TWO(nextafter, nextafter, false, false, KN_DTYPES_REAL)

/* --- mixtures ----------------------------------------------------------------------------------------------------- */

/* a + w (b - a), exact at both ends. */
#define LERP(w) w " < (T)0.5 ? a + " w " * (b - a) : b - (b - a) * (1 - " w ")"
#define LERP_REFERENCE(w) a + (w) * (b - a)
KN_ELEMENTWISE_TABLE(lerp, KN_FLOATS, "abc", NULL, KN_NO_VECTORS, LERP("c"),
                     KN_GRADIENTS("g * (1 - c)", "g * c", "g * (b - a)"), LERP_REFERENCE(c));
KN_ELEMENTWISE_TABLE(lerp_scalar, KN_FLOATS, "ab", "p", KN_NO_VECTORS, LERP("p"), KN_GRADIENTS("g * (1 - p)", "g * p"),
                     LERP_REFERENCE(p));

static const kn_op_param weight_row[] = {KN_PARAM_NAMED("weight", kn_scalar_args, values[0])};
const kn_op kn_lerp_op =
    KN_ELEMENTWISE_OP("lerp", false, true, &lerp_table, KN_DTYPES_FLOATING, KN_NO_PARAMS, "a", "b", "weight");
const kn_op kn_lerp_scalar_op = KN_ELEMENTWISE_OP("lerp_scalar", false, true, &lerp_scalar_table, KN_DTYPES_FLOATING,
                                                  KN_PARAMS(kn_scalar_args, weight_row), "a", "b");

kn_tensor *kn_lerp(kn_tensor *a, kn_tensor *b, kn_tensor *weight) { return kn_invoke(&kn_lerp_op, NULL, a, b, weight); }

kn_tensor *kn_lerp_scalar(kn_tensor *a, kn_tensor *b, double weight)
{
    return kn_invoke(&kn_lerp_scalar_op, &(kn_scalar_args){{kn_scalar_real(weight)}}, a, b);
}

KN_ELEMENTWISE_TABLE(addcmul, KN_NUMBERS, "abc", "p", KN_NO_VECTORS, "a + p * b * c",
                     KN_GRADIENTS("g", "g * c * p", "g * b * p"), a + p * b * c);
KN_ELEMENTWISE_TABLE(addcdiv, KN_FLOATS, "abc", "p", KN_NO_VECTORS, "a + p * b / c",
                     KN_GRADIENTS("g", "g * p / c", "-g * (p * b / c / c)"), a + p * b / c);

/* kn_NAME(a, b, c, .value = 1). */
#define MIXTURE(name, dtypes_)                                                                                         \
    const kn_op kn_##name##_op = {                                                                                     \
        KN_ELEMENTWISE_FIELDS(#name, false, true, &name##_table), .inputs = {"a", "b", "c"}, .dtypes = {dtypes_},      \
        .params = KN_PARAMS(kn_addcmul_params, value_row, KN_ADDCMUL_DEFAULTS), .enter = kn_elementwise_enter};        \
    kn_tensor *kn_##name##_with(kn_tensor *a, kn_tensor *b, kn_tensor *c, const kn_addcmul_params *params)             \
    {                                                                                                                  \
        return kn_invoke(&kn_##name##_op, params, a, b, c);                                                            \
    }
static const kn_op_param value_row[] = {KN_PARAM(kn_addcmul_params, value)};
MIXTURE(addcmul, KN_DTYPES_NUMBERS)
MIXTURE(addcdiv, KN_DTYPES_FLOATING)

kn_addcmul_params kn_addcmul_params_init(void) { return (kn_addcmul_params){KN_ADDCMUL_DEFAULTS}; }
