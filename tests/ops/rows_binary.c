/* rows_binary.c - elementwise operations of two tensors: broadcasting, promotion, comparison, in place. */
#include "ops/rows.h"

#define BINARY(function)                                                                                               \
    static kn_tensor *build_##function(kn_tensor *const *x, const void *params)                                        \
    {                                                                                                                  \
        (void)params;                                                                                                  \
        return kn_##function(x[0], x[1]);                                                                              \
    }

BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(pow)
BINARY(maximum)
BINARY(eq)
BINARY(ne)
BINARY(lt)
BINARY(le)
BINARY(gt)
BINARY(ge)

/* PyTorch's backward functions, which are called by name. */
#define BY_NAME(function)                                                                                              \
    static kn_tensor *build_##function(kn_tensor *const *x, const void *params)                                        \
    {                                                                                                                  \
        kn_tensor *y = NULL;                                                                                           \
        return kn_op_call(kn_op_find(#function), x, 2, params, &y, 1) == KN_OK ? y : NULL;                             \
    }

BY_NAME(sigmoid_backward)
BY_NAME(tanh_backward)
BY_NAME(threshold_backward)
BY_NAME(hardtanh_backward)

static kn_tensor *build_where(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_where(x[0], x[1], x[2]);
}

#define IN_PLACE(function)                                                                                             \
    static kn_tensor *build_##function##in_place(kn_tensor *const *x, const void *params)                              \
    {                                                                                                                  \
        (void)params;                                                                                                  \
        return kn_##function(kn_clone(x[0]), x[1]);                                                                    \
    }

IN_PLACE(add_)
IN_PLACE(sub_)
IN_PLACE(mul_)

static kn_tensor *build_add_activated(kn_tensor *const *x, const void *params)
{
    return kn_add_activated(x[0], x[1], *(const kn_activation *)params);
}

static kn_tensor *build_square_by_itself(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_mul(x[0], x[0]);
}

/* clang-format off */
#define RELU &(const kn_activation){KN_ACTIVATION_RELU}
#define RELU6 &(const kn_activation){KN_ACTIVATION_RELU6}
#define NO_ACTIVATION &(const kn_activation){KN_ACTIVATION_NONE}
/* Combinations of two shapes: those tested with each operator, and further ones tested with one operator, or with all
 * if KOINE_TEST_FULL=1. */
#define BROADCASTS(name, build, a, b, ...)                                                                             \
    {name "/same", build, {a(7, 11), b(7, 11)}, .layouts = true, __VA_ARGS__},                                         \
        {name "/row", build, {a(7, 11), b(11)}, __VA_ARGS__}, {name "/empty", build, {a(0, 3), b(1, 3)}, __VA_ARGS__}
#define FURTHER_BROADCASTS(name, build, a, b, ...)                                                                     \
    {name "/column", build, {a(7, 1), b(1, 11)}, __VA_ARGS__}, {name "/one", build, {a(1), b(5, 7)}, __VA_ARGS__},     \
        {name "/outer", build, {a(5, 1, 3), b(4, 1)}, __VA_ARGS__},                                                    \
        {name "/middle", build, {a(3, 1, 5), b(3, 4, 5)}, __VA_ARGS__},                                                \
        {name "/channels", build, {a(2, 3, 5, 7), b(3, 1, 1)}, __VA_ARGS__},                                           \
        {name "/long", build, {a(257, 131), b(131)}, __VA_ARGS__},                                                     \
        {name "/long_column", build, {a(131, 257), b(131, 1)}, __VA_ARGS__},                                           \
        {name "/short_columns", build, {a(431, 3), b(431, 1)}, __VA_ARGS__},                                           \
        {name "/short_rows", build, {a(431, 5), b(5)}, __VA_ARGS__},                                                   \
        {name "/short_rows_of_37", build, {a(43, 1, 37), b(5, 37)}, __VA_ARGS__},                                      \
        {name "/short_middle", build, {a(67, 8, 2), b(67, 1, 2)}, __VA_ARGS__},                                        \
        {name "/short_inner", build, {a(1, 31, 4), b(17, 31, 1)}, __VA_ARGS__}

#define BESIDE_ZERO(...) FLOATS_IN(0.5, 2, __VA_ARGS__)
#define LARGE(...) FLOATS_IN(-2, 2, __VA_ARGS__)

OP_ROWS_BEGIN
static const op_row rows[] = {
    BROADCASTS("add", build_add, FLOATS, FLOATS, .on_cpu = false),
    BROADCASTS("sub", build_sub, FLOATS, FLOATS, .on_cpu = true),
    BROADCASTS("mul", build_mul, FLOATS, FLOATS, .on_cpu = false),
    BROADCASTS("div", build_div, FLOATS, BESIDE_ZERO, .on_cpu = true),
    BROADCASTS("pow", build_pow, BESIDE_ZERO, LARGE, .on_cpu = true),
    BROADCASTS("maximum", build_maximum, FLOATS, FLOATS, .on_cpu = true),
    FURTHER_BROADCASTS("add", build_add, FLOATS, FLOATS, .full = true),
    FURTHER_BROADCASTS("sub", build_sub, FLOATS, FLOATS, .full = true),
    FURTHER_BROADCASTS("mul", build_mul, FLOATS, FLOATS, .full = false),
    FURTHER_BROADCASTS("div", build_div, FLOATS, BESIDE_ZERO, .full = true),
    FURTHER_BROADCASTS("pow", build_pow, BESIDE_ZERO, LARGE, .full = true),
    FURTHER_BROADCASTS("maximum", build_maximum, FLOATS, FLOATS, .full = true),
    {"add/scalars", build_add, {FLOAT_SCALAR(-1, 1), FLOAT_SCALAR(-1, 1)}},
    {"add/scalar_and_matrix", build_add, {FLOAT_SCALAR(-1, 1), FLOATS(5, 7)}},
    {"mul/itself", build_square_by_itself, {FLOATS(5, 7)}, .layouts = true},
    {"add/eight_dimensions", build_add, {FLOATS(2, 1, 2, 1, 3, 1, 2, 1), FLOATS(1, 2, 1, 2, 1, 2, 1, 3)}},
    {"add_activated/relu", build_add_activated, {FLOATS(3, 5, 7), FLOATS(3, 5, 7)}, RELU, .layouts = true},
    {"add_activated/relu6_broadcast", build_add_activated, {FLOATS_IN(-2, 8, 3, 5, 7), FLOATS(5, 1)}, RELU6},
    {"add_activated/none", build_add_activated, {FLOATS(70001), FLOATS(1)}, NO_ACTIVATION},
    {"add_activated/empty", build_add_activated, {FLOATS(0, 3), FLOATS(3)}, RELU},
    {"add/int32_and_int64", build_add, {WHOLE(KN_I32, -9, 9, 5, 7), WHOLE(KN_I64, -9, 9, 7)}, .no_gradient = true},
    {"add/uint8", build_add, {WHOLE(KN_U8, 0, 100, 31), WHOLE(KN_U8, 0, 100, 31)}, .no_gradient = true, .on_cpu = true},
    {"add/bools", build_add, {WHOLE(KN_BOOL, 0, 2, 31), WHOLE(KN_BOOL, 0, 2, 31)}, .no_gradient = true, .on_cpu = true},
    {"add/f16", build_add, {WHOLE(KN_F16, -9, 9, 5, 7), WHOLE(KN_F16, -9, 9, 7)}, .no_gradient = true, .layouts = true},
    {"add/bf16", build_add, {WHOLE(KN_BF16, -9, 9, 5, 7), WHOLE(KN_BF16, -9, 9, 7)}, .no_gradient = true, .layouts = true},
    {"add/int8", build_add, {WHOLE(KN_I8, -60, 60, 5, 7), WHOLE(KN_I8, -60, 60, 7)}, .no_gradient = true, .layouts = true},
    {"mul/int8_and_uint8", build_mul, {WHOLE(KN_I8, -128, 128, 31), WHOLE(KN_U8, 0, 256, 31)}, .no_gradient = true,
     .on_cpu = true},
    {"mul/bf16_and_f16", build_mul, {WHOLE(KN_BF16, -9, 9, 31), WHOLE(KN_F16, -9, 9, 31)}, .no_gradient = true},
    {"mul/f16_and_f32", build_mul, {WHOLE(KN_F16, -9, 9, 31), WHOLE(KN_F32, -9, 9, 31)}, .no_gradient = true,
     .on_cpu = true},
    {"div/f16", build_div, {WHOLE(KN_F16, -9, 9, 31), WHOLE(KN_F16, 1, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"div/int16", build_div, {WHOLE(KN_I16, -999, 999, 31), WHOLE(KN_I16, 1, 999, 31)}, .no_gradient = true,
     .on_cpu = true},
    {"lt/f16_and_int64", build_lt, {WHOLE(KN_F16, -3, 3, 31), WHOLE(KN_I64, -3, 3, 31)}, .no_gradient = true,
     .on_cpu = true},
    {"pow/int64", build_pow, {WHOLE(KN_I64, -5, 5, 31), WHOLE(KN_I64, 0, 5, 31)}, .no_gradient = true, .on_cpu = true},
    {"maximum/bools", build_maximum, {WHOLE(KN_BOOL, 0, 2, 31), WHOLE(KN_BOOL, 0, 2, 31)}, .no_gradient = true,
     .on_cpu = true},
    {"mul/int32_and_float", build_mul, {WHOLE(KN_I32, -9, 9, 5, 7), FLOATS(5, 7)}},
    {"mul/bool_and_float", build_mul, {WHOLE(KN_BOOL, 0, 2, 5, 7), FLOATS(5, 7)}},
    {"sub/int64", build_sub, {WHOLE(KN_I64, -9, 9, 1031), WHOLE(KN_I64, -9, 9, 1)}, .no_gradient = true,
     .on_cpu = true},
    {"mul/int64", build_mul, {WHOLE(KN_I64, -9, 9, 31), WHOLE(KN_I64, -9, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"div/int64", build_div, {WHOLE(KN_I64, -9, 9, 31), WHOLE(KN_I64, 1, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"sigmoid_backward/matrix", build_sigmoid_backward, {FLOATS(7, 11), FLOATS_IN(0, 1, 7, 11)}, .layouts = true,
     .on_cpu = true},
    {"tanh_backward/matrix", build_tanh_backward, {FLOATS(7, 11), FLOATS_IN(-1, 1, 7, 11)}, .on_cpu = true},
    {"threshold_backward/matrix", build_threshold_backward, {FLOATS(7, 11), FLOATS(7, 11)}, .on_cpu = true},
    {"hardtanh_backward/matrix", build_hardtanh_backward, {FLOATS(7, 11), FLOATS_IN(-2, 2, 7, 11)}, .on_cpu = true},
    {"maximum/int32", build_maximum, {WHOLE(KN_I32, -9, 9, 31), WHOLE(KN_I32, -9, 9, 31)}, .no_gradient = true,
     .on_cpu = true},
    {"eq/whole", build_eq, {WHOLE(KN_I64, 0, 3, 7, 11), WHOLE(KN_I64, 0, 3, 11)}, .no_gradient = true, .layouts = true},
    {"eq/short_columns", build_eq, {WHOLE(KN_U8, 0, 3, 701, 2), WHOLE(KN_U8, 0, 3, 701, 1)}, .no_gradient = true},
    {"maximum/short_bools", build_maximum, {WHOLE(KN_BOOL, 0, 2, 401, 3), WHOLE(KN_BOOL, 0, 2, 3)}, .no_gradient = true,
     .on_cpu = true},
    {"eq/floats", build_eq, {FLOATS(31), FLOATS(31)}, .no_gradient = true},
    {"eq/int32_and_float", build_eq, {WHOLE(KN_I32, 0, 3, 31), FLOATS_IN(0, 3, 31)}, .no_gradient = true,
     .on_cpu = true},
    {"eq/empty", build_eq, {FLOATS(0), FLOATS(0)}, .no_gradient = true},
    {"ne/whole", build_ne, {WHOLE(KN_I32, 0, 3, 31), WHOLE(KN_I32, 0, 3, 31)}, .no_gradient = true, .on_cpu = true},
    {"ne/bools", build_ne, {WHOLE(KN_BOOL, 0, 2, 31), WHOLE(KN_BOOL, 0, 2, 31)}, .no_gradient = true, .on_cpu = true},
    {"lt/floats", build_lt, {FLOATS(7, 11), FLOATS(7, 1)}, .no_gradient = true},
    {"le/whole", build_le, {WHOLE(KN_U8, 0, 3, 31), WHOLE(KN_U8, 0, 3, 31)}, .no_gradient = true, .on_cpu = true},
    {"gt/floats", build_gt, {FLOATS(1031), FLOATS(1)}, .no_gradient = true, .on_cpu = true},
    {"ge/whole", build_ge, {WHOLE(KN_I64, 0, 3, 31), WHOLE(KN_I64, 0, 3, 31)}, .no_gradient = true, .on_cpu = true},
    {"where/floats", build_where, {WHOLE(KN_BOOL, 0, 2, 7, 11), FLOATS(7, 11), FLOATS(7, 11)}, .layouts = true},
    {"where/broadcast", build_where, {WHOLE(KN_BOOL, 0, 2, 7, 1), FLOATS(11), FLOAT_SCALAR(-1, 1)}},
    {"where/mixed", build_where, {WHOLE(KN_BOOL, 0, 2, 1031), WHOLE(KN_I32, -9, 9, 1031), FLOATS(1031)}},
    {"where/whole", build_where, {WHOLE(KN_BOOL, 0, 2, 31), WHOLE(KN_I64, -9, 9, 31), WHOLE(KN_I64, -9, 9, 31)}, .no_gradient = true,
     .on_cpu = true},
    {"where/f16", build_where, {WHOLE(KN_BOOL, 0, 2, 31), WHOLE(KN_F16, -9, 9, 31), WHOLE(KN_F16, -9, 9, 31)}, .no_gradient = true,
     .on_cpu = true},
    {"where/empty", build_where, {WHOLE(KN_BOOL, 0, 2, 0), FLOATS(0), FLOATS(0)}},
    {"add_/same", build_add_in_place, {FLOATS(7, 11), FLOATS(7, 11)}, .layouts = true},
    {"add_/row", build_add_in_place, {FLOATS(7, 11), FLOATS(11)}},
    {"sub_/column", build_sub_in_place, {FLOATS(7, 11), FLOATS(7, 1)}, .on_cpu = true},
    {"mul_/same", build_mul_in_place, {FLOATS(7, 11), FLOATS(7, 11)}, .on_cpu = true},
    {"mul_/scalar", build_mul_in_place, {FLOATS(7, 11), FLOAT_SCALAR(1, 2)}},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(binary_rows, rows, .has_golden = true, .engine = "add mul");
