/* ops/pointwise/bits.c - integers and bools bit by bit; shifts; common divisors and multiples. */
#include <koine/logic.h>
#include <math.h>

#include "ops/pointwise/elementwise.h"

#define BITWISE(name, sign)                                                                                            \
    KN_TWO_TENSORS(name, KN_WHOLES, KN_NO_VECTORS, "a " #sign " b", NULL, NULL, (double)((int64_t)a sign(int64_t) b)); \
    KN_NUMBER_AFTER(name##_scalar, KN_WHOLES, KN_NO_VECTORS, "a " #sign " b", NULL, NULL,                              \
                    (double)((int64_t)a sign(int64_t) b));                                                             \
    KN_OF_TWO(name, name, false, false, KN_TAKES_KN_WHOLES)                                                            \
    KN_OF_NUMBER(name##_scalar, name##_scalar, false, false, KN_TAKES_KN_WHOLES, kn_##name##_scalar_with)
BITWISE(bitwise_and, &)
BITWISE(bitwise_or, |)
BITWISE(bitwise_xor, ^)

/* Of a bool, which is stored as 0 or 1, the other one. */
KN_ELEMENTWISE_TABLE(bitwise_not, KN_WHOLES, "a", NULL, KN_NO_VECTORS, "~a", KN_GRADIENTS(NULL), (double)~(int64_t)a);
KN_ELEMENTWISE_TABLE(bool_not, KN_WHOLES, "a", NULL, KN_NO_VECTORS, "a == 0", KN_GRADIENTS(NULL), a == 0);
static const kn_op bool_not_op =
    KN_ELEMENTWISE_OP("bitwise_not", false, false, &bool_not_table, KN_TAKES_KN_WHOLES, KN_NO_PARAMS, "x");

static kn_status choose_not(kn_entry *entry)
{
    entry->op = entry->inputs[0]->dtype == KN_BOOL ? &bool_not_op : entry->op;
    return KN_OK;
}

const kn_op kn_bitwise_not_op = {KN_ELEMENTWISE_FIELDS("bitwise_not", false, false, &bitwise_not_table),
                                 .inputs = {"x"}, .dtypes = {KN_TAKES_KN_WHOLES}, .enter = choose_not};
kn_tensor *kn_bitwise_not(kn_tensor *x) { return kn_invoke(&kn_bitwise_not_op, NULL, x); }

/* --- shifts ------------------------------------------------------------------------------------------------------- */

/* By fewer than 0 or more bits than there are, all are shifted out; C leaves that undefined. */
#define SHIFTS                                                                                                         \
    "#define kn_is_beyond(b) ((b) < 0 || (b) >= (T)(8 * sizeof(T)))\n"                                                 \
    "static T kn_left(T a, T b) { return kn_is_beyond(b) ? (T)0 : (T)(a << b); }\n"                                    \
    "static T kn_right(T a, T b) { return kn_is_beyond(b) ? (a < 0 ? (T)-1 : (T)0) : (T)(a >> b); }\n"
#define LEFT KN_INTS, KN_NO_VECTORS, "kn_left(a, b)", NULL, NULL, a *exp2(b), .forward.functions = SHIFTS
#define RIGHT KN_INTS, KN_NO_VECTORS, "kn_right(a, b)", NULL, NULL, floor(a *exp2(-b)), .forward.functions = SHIFTS

KN_TWO_TENSORS(bitwise_left_shift, LEFT);
KN_TWO_TENSORS(bitwise_right_shift, RIGHT);
KN_NUMBER_AFTER(bitwise_left_shift_scalar, LEFT);
KN_NUMBER_AFTER(bitwise_right_shift_scalar, RIGHT);
KN_OF_TWO(bitwise_left_shift, bitwise_left_shift, false, false, KN_TAKES_KN_INTS)
KN_OF_TWO(bitwise_right_shift, bitwise_right_shift, false, false, KN_TAKES_KN_INTS)
KN_OF_NUMBER(bitwise_left_shift_scalar, bitwise_left_shift_scalar, false, false, KN_TAKES_KN_WHOLES,
             kn_bitwise_left_shift_scalar_with)
KN_OF_NUMBER(bitwise_right_shift_scalar, bitwise_right_shift_scalar, false, false, KN_TAKES_KN_WHOLES,
             kn_bitwise_right_shift_scalar_with)

/* --- divisors ----------------------------------------------------------------------------------------------------- */

/* Euclid's algorithm; the result is not negative. */
#define DIVISORS                                                                                                       \
    "static T kn_gcd(T a, T b)\n"                                                                                      \
    "{\n"                                                                                                              \
    "    a = a < 0 ? -a : a, b = b < 0 ? -b : b;\n"                                                                    \
    "    while (b != 0) {\n"                                                                                           \
    "        const T rest = b < 0 ? (T)0 : (T)(a % b);\n" /* the lowest number stays negative */                       \
    "        a = b, b = rest;\n"                                                                                       \
    "    }\n"                                                                                                          \
    "    return a;\n"                                                                                                  \
    "}\n"                                                                                                              \
    "static T kn_lcm(T a, T b)\n"                                                                                      \
    "{\n"                                                                                                              \
    "    const T multiple = a == 0 || b == 0 ? (T)0 : (T)(a / kn_gcd(a, b) * b);\n"                                    \
    "    return multiple < 0 ? (T)-multiple : multiple;\n"                                                             \
    "}\n"

static double gcd_of(double a, double b) { return b == 0 ? fabs(a) : gcd_of(b, fmod(a, b)); }

KN_TWO_TENSORS(gcd, KN_INTS, KN_NO_VECTORS, "kn_gcd(a, b)", NULL, NULL, gcd_of(a, b), .forward.functions = DIVISORS);
KN_TWO_TENSORS(lcm, KN_INTS, KN_NO_VECTORS, "kn_lcm(a, b)", NULL, NULL,
               a == 0 || b == 0 ? 0 : fabs(a * b) / gcd_of(a, b), .forward.functions = DIVISORS);
KN_OF_TWO(gcd, gcd, false, false, KN_TAKES_KN_INTS)
KN_OF_TWO(lcm, lcm, false, false, KN_TAKES_KN_INTS)
