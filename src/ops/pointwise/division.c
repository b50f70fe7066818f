/* ops/pointwise/division.c - quotients rounded to integers, and remainders. Of integers, those of a number and 0 are 0,
 * and those of the lowest number and -1 wrap around: neither may reach the processor's division, which traps. */
#include <koine/pointwise.h>
#include <math.h>

#include "ops/pointwise/elementwise.h"

#define QUOTIENTS "#include \"pointwise/quotients.clh\"\n"

static double remainder_of(double a, double b)
{
    const double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* The quotients are constant between jumps. */
#define ROUNDED(function, ...)                                                                                         \
    KN_JOINT_NUMBERS, KN_VECTORS, function "(a, b)", "g * 0", "g * 0", __VA_ARGS__, .forward.functions = QUOTIENTS
#define FLOOR_DIVIDE ROUNDED("kn_floor_divide", floor(a / b))
#define REMAINDER(function, quotient, ...)                                                                             \
    KN_JOINT_NUMBERS, KN_VECTORS, function "(a, b)", "g", "-g * " quotient "(a, b)", __VA_ARGS__,                      \
        .forward.functions = QUOTIENTS, .backward.functions = QUOTIENTS
#define PYTHONS REMAINDER("kn_modulo", "kn_floor_divide", remainder_of(a, b))
#define CS REMAINDER("kn_fmod", "kn_div_trunc", fmod(a, b))

KN_TWO_TENSORS(floor_divide, FLOOR_DIVIDE);
KN_TWO_TENSORS(remainder, PYTHONS);
KN_TWO_TENSORS(fmod, CS);
KN_NUMBER_AFTER(floor_divide_scalar, FLOOR_DIVIDE);
KN_NUMBER_AFTER(remainder_scalar, PYTHONS, .rounds_number = true);
KN_NUMBER_AFTER(fmod_scalar, CS, .rounds_number = true);

KN_OF_TWO(floor_divide, floor_divide, false, false, KN_DTYPES_NUMBERS)
KN_OF_TWO(remainder, remainder, false, true, KN_DTYPES_NUMBERS)
KN_OF_TWO(fmod, fmod, false, true, KN_DTYPES_NUMBERS)
KN_OF_NUMBER(floor_divide_scalar, floor_divide_scalar, false, false, KN_DTYPES_ALL, kn_floor_divide_scalar_with)
KN_OF_NUMBER(remainder_scalar, remainder_scalar, false, true, KN_DTYPES_ALL, kn_remainder_scalar_with)
KN_OF_NUMBER(fmod_scalar, fmod_scalar, false, true, KN_DTYPES_ALL, kn_fmod_scalar_with)

/* --- div with a rounding mode ------------------------------------------------------------------------------------- */

KN_TWO_TENSORS(div_trunc, ROUNDED("kn_div_trunc", trunc(a / b)));
KN_TWO_TENSORS(div_none, KN_REAL, KN_NO_VECTORS, "a / b", "g / b", "-g * (a / b / b)", a / b);

#define DIV_MODE(table, params_, enter_)                                                                               \
    {                                                                                                                  \
        KN_ELEMENTWISE_FIELDS("div_mode", false, true, table), .inputs = {"a", "b"}, .dtypes = {KN_DTYPES_ALL},        \
                                                               .params = params_, .enter = enter_                      \
    }
static const kn_op trunc_op = DIV_MODE(&div_trunc_table, KN_NO_PARAMS, NULL),
                   floor_op = DIV_MODE(&floor_divide_table, KN_NO_PARAMS, NULL);

static kn_status choose_mode(kn_entry *entry)
{
    const kn_rounding mode = ((const kn_rounding_args *)entry->params)->rounding_mode;
    entry->op = mode == KN_ROUNDING_TRUNC ? &trunc_op : mode == KN_ROUNDING_FLOOR ? &floor_op : entry->op;
    (void)kn_entry_record(entry, sizeof(kn_scalar_args));
    return KN_OK;
}

static const char *const rounding_names[] = {"none", "trunc", "floor", NULL};
static const kn_op_param rounding_row[] = {KN_PARAM(kn_rounding_args, rounding_mode, .values = rounding_names)};
const kn_op kn_div_mode_op =
    DIV_MODE(&div_none_table, KN_PARAMS(kn_rounding_args, rounding_row, KN_ROUNDING_NONE), choose_mode);

kn_tensor *kn_div_mode(kn_tensor *a, kn_tensor *b, kn_rounding rounding_mode)
{
    return kn_invoke(&kn_div_mode_op, &(kn_rounding_args){rounding_mode}, a, b);
}
