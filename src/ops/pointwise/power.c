/* ops/pointwise/power.c - powers: of two tensors, and of a tensor and a number. */
#include <koine/pointwise.h>
#include <math.h>

#include "ops/pointwise/elementwise.h"

/* Integers by repeated squaring, with wrap-around; negative powers are 0 except for bases 1 and -1. */
#define POWER                                                                                                          \
    "#ifdef KN_WHOLE\n"                                                                                                \
    "static T kn_power(T base, T exponent)\n"                                                                          \
    "{\n"                                                                                                              \
    "    T result = 1;\n"                                                                                              \
    "    if (exponent < 0)\n"                                                                                          \
    "        return base == 1 ? (T)1 : base == (T)-1 ? ((exponent & 1) ? (T)-1 : (T)1) : (T)0;\n"                      \
    "    for (; exponent > 0; exponent >>= 1) {\n"                                                                     \
    "        if (exponent & 1)\n"                                                                                      \
    "            result *= base;\n"                                                                                    \
    "        base *= base;\n"                                                                                          \
    "    }\n"                                                                                                          \
    "    return result;\n"                                                                                             \
    "}\n"                                                                                                              \
    "#else\n"                                                                                                          \
    "#define kn_power(base, exponent) pow(base, exponent)\n"                                                           \
    "#endif\n"

/* d(a^b)/da = b a^(b-1), 0 for b = 0; d(a^b)/db = a^b log a, 0 for a = 0 and b >= 0, its limit. Truncated towards 0 the
 * reference also holds for integers. */
KN_ELEMENTWISE_TABLE(pow, KN_JOINT_NUMBERS, "ab", NULL, KN_VECTORS, "kn_power(a, b)",
                     KN_GRADIENTS("b == 0 ? (T)0 : g * (b * pow(a, b - 1))",
                                  "g * (a == 0 && b >= 0 ? (T)0 : pow(a, b) * log(a))"),
                     pow(a, b), .forward.functions = POWER, .keeps_digits = true);

/* Common powers need no pow(). sqrt matches PyTorch, unlike pow()'s 0 and infinity at -0 and -infinity. */
#define POWER_OF "#define kn_power_of(a, e) ((e) == (T)0.5 ? sqrt(a) : (e) == (T)-0.5 ? (T)1 / sqrt(a) : pow(a, e))\n"
#define GENERAL_GRADIENT "p == 0 ? (T)0 : g * (p * kn_power_of(a, (p - 1)))"
#define POWER_ROW(id, vectors_, value, gradient)                                                                       \
    KN_ELEMENTWISE_TABLE(id, KN_JOINT_NUMBERS, "a", "p", vectors_, value, KN_GRADIENTS(gradient), pow(a, p),           \
                         .forward.functions = POWER, .backward.functions = POWER_OF, .check = check_exponent,          \
                         .rounds_number = true)

static kn_status check_exponent(const kn_call *call)
{
    const kn_scalar exponent = ((const kn_scalar_args *)call->params)->values[0];
    if (!kn_dtype_is_floating(call->inputs[0]->dtype) && exponent.is_whole && exponent.whole < 0)
        return kn_fail(KN_ERR_ARGUMENT,
                       "integers cannot be raised to the negative power %lld; convert to a floating dtype first",
                       (long long)exponent.whole);
    return KN_OK;
}

POWER_ROW(none, KN_NO_VECTORS, "(T)1", GENERAL_GRADIENT);
POWER_ROW(same, KN_NO_VECTORS, "a", "g");
POWER_ROW(square, KN_NO_VECTORS, "a * a", "g * 2 * a");
POWER_ROW(cube, KN_VECTORS, "a * a * a", "g * (3 * (a * a))");
POWER_ROW(reciprocal, KN_VECTORS, "1 / a", "g * -(1 / (a * a))");
POWER_ROW(root, KN_VECTORS, "sqrt(a)", "g * ((T)0.5 * (1 / sqrt(a)))");
POWER_ROW(reciprocal_root, KN_VECTORS, "(T)1 / sqrt(a)", GENERAL_GRADIENT);
POWER_ROW(power, KN_VECTORS, "kn_power(a, p)", GENERAL_GRADIENT);

/* A number to the power of a tensor: integers with wrap-around too. */
KN_ELEMENTWISE_TABLE(rpow_scalar, KN_JOINT_NUMBERS, "b", "a", KN_VECTORS, "kn_power(a, b)",
                     KN_GRADIENTS("g * (a == 0 && b >= 0 ? (T)0 : y * log(a))"), pow(a, b), .forward.functions = POWER,
                     .keeps_digits = true, .rounds_number = true);

#define POWER_OP(op_name, in_place_, table, enter_)                                                                    \
    {                                                                                                                  \
        KN_ELEMENTWISE_FIELDS(op_name, in_place_, true, table), .inputs = {"a"}, .dtypes = {KN_DTYPES_ALL},            \
                                                                .params = KN_PARAMS(kn_scalar_args, exponent_row),     \
                                                                .enter = enter_                                        \
    }
static const kn_op_param exponent_row[] = {KN_PARAM_NAMED("exponent", kn_scalar_args, values[0])};

/* Each plain and in place. */
#define POWER_OPS(table)                                                                                               \
    {                                                                                                                  \
        POWER_OP("pow_scalar", false, table, NULL), POWER_OP("pow_scalar_", true, table, NULL)                         \
    }
static const kn_op none_ops[] = POWER_OPS(&none_table), same_ops[] = POWER_OPS(&same_table),
                   square_ops[] = POWER_OPS(&square_table), cube_ops[] = POWER_OPS(&cube_table),
                   reciprocal_ops[] = POWER_OPS(&reciprocal_table), root_ops[] = POWER_OPS(&root_table),
                   reciprocal_root_ops[] = POWER_OPS(&reciprocal_root_table);

static kn_status choose_by_exponent(kn_entry *entry)
{
    const double exponent = ((const kn_scalar_args *)entry->params)->values[0].real;
    const kn_op *ops = exponent == 0      ? none_ops
                       : exponent == 1    ? same_ops
                       : exponent == 2    ? square_ops
                       : exponent == 3    ? cube_ops
                       : exponent == -1   ? reciprocal_ops
                       : exponent == 0.5  ? root_ops
                       : exponent == -0.5 ? reciprocal_root_ops
                                          : NULL;
    if (ops && kn_dtype_is_floating(entry->inputs[0]->dtype))
        entry->op = &ops[entry->op->in_place];
    return KN_OK;
}

const kn_op kn_pow_scalar_op = POWER_OP("pow_scalar", false, &power_table, choose_by_exponent);
KN_OF_TWO(pow, pow, false, true, KN_DTYPES_NUMBERS)
KN_OF_NUMBER(rpow_scalar, rpow_scalar, false, true, KN_DTYPES_ALL, kn_rpow_scalar_with)

kn_tensor *kn_pow_scalar_with(kn_tensor *a, kn_scalar b)
{
    return kn_invoke(&kn_pow_scalar_op, &(kn_scalar_args){{b}}, a);
}

/* --- float_power, ldexp ------------------------------------------------------------------------------------------- */

static kn_status widen(kn_entry *entry)
{
    for (int i = 0; i < 2; i++) {
        entry->inputs[i] = kn_to_dtype(entry->inputs[i], KN_F64);
        if (!entry->inputs[i])
            return kn_error_status();
    }
    return KN_OK;
}

const kn_op kn_float_power_op = {KN_ELEMENTWISE_FIELDS("float_power", false, true, &pow_table), .inputs = {"a", "b"},
                                 .dtypes = {KN_DTYPES_ALL}, .composes = true, .enter = widen};
kn_tensor *kn_float_power(kn_tensor *a, kn_tensor *b) { return kn_invoke(&kn_float_power_op, NULL, a, b); }

KN_TWO_TENSORS(ldexp, KN_REAL, KN_VECTORS, "a * exp2(b)", "g * exp2(b)", "g * y * " KN_LN_2, a *exp2(b));
KN_OF_TWO(ldexp, ldexp, false, true, KN_DTYPES_ALL)
