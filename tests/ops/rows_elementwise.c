/* rows_elementwise.c - elementwise operators called by name: a row's parameters are the operator and its parameters. */
#include "ops/rows.h"

#include <stdio.h>
#include <string.h>

#include "ops/dispatch/params_text.h"

/* In place on a copy, because a leaf that requires a gradient must not be changed. */
kn_tensor *apply_named(kn_tensor *const *x, const void *call)
{
    char name[64] = "", params[256];
    const kn_op *op = sscanf(call, "%63s", name) == 1 ? kn_op_find(name) : NULL;
    kn_tensor *inputs[OP_MAX_INPUTS] = {NULL}, *y = NULL;
    int count = 0;
    if (!op)
        return NULL;
    while (count < OP_MAX_INPUTS && x[count])
        inputs[count] = x[count], count++;
    if (kn_op_describe(op).in_place)
        inputs[0] = kn_clone(inputs[0]);
    kn_op_params_init(op, params);
    const char *words = (const char *)call + strlen(name);
    return kn_op_params_read(op, params, words + strspn(words, " ")) == KN_OK &&
                   kn_op_call(op, inputs, count, params, &y, 1) == KN_OK
               ? y
               : NULL;
}

/* clang-format off */
/* "family/case", the call, its inputs; inputs between 1 and 2 and so on are away from kinks and poles. */
#define ROW(title, call, ...) {.name = title, .build = apply_named, .inputs = {__VA_ARGS__}, .params = call}
#define WITHOUT_GRADIENT(title, call, ...) {.name = title, .build = apply_named, .inputs = {__VA_ARGS__}, .params = call, .no_gradient = true}
#define FURTHER(title, call, ...) {.name = title, .build = apply_named, .inputs = {__VA_ARGS__}, .params = call, .full = true}
#define FURTHER_WITHOUT_GRADIENT(title, call, ...) \
    {.name = title, .build = apply_named, .inputs = {__VA_ARGS__}, .params = call, .no_gradient = true, .full = true}
#define INTEGERS(...) WHOLE(KN_I64, -9, 9, __VA_ARGS__)
#define POSITIVE(...) FLOATS_IN(0.3, 3, __VA_ARGS__)
#define PROPER(...) FLOATS_IN(0.05, 0.95, __VA_ARGS__)
#define WIDE(...) FLOATS_IN(-4, 4, __VA_ARGS__)

OP_ROWS_BEGIN
static const op_row rows[] = {
    ROW("elu/matrix", "elu alpha=1.5", DISTINCT(7, 11)),
    ROW("celu/matrix", "celu alpha=0.5", DISTINCT(7, 11)),
    ROW("selu/matrix", "selu", DISTINCT(7, 11)),
    ROW("leaky_relu/matrix", "leaky_relu negative_slope=0.2", DISTINCT(7, 11)),
    ROW("mish/matrix", "mish", WIDE(7, 11)),
    ROW("softplus/matrix", "softplus beta=2 threshold=3", WIDE(7, 11)),
    ROW("gelu/matrix", "gelu", WIDE(7, 11)),
    ROW("gelu/tanh", "gelu approximate=tanh", WIDE(7, 11)),
    ROW("hardshrink/matrix", "hardshrink lambd=0.7", DISTINCT(7, 11)),
    ROW("softshrink/matrix", "softshrink lambd=0.7", DISTINCT(7, 11)),
    ROW("threshold/matrix", "threshold threshold=0.3 value=-2", DISTINCT(7, 11)),
    WITHOUT_GRADIENT("threshold/int64", "threshold threshold=2 value=7", INTEGERS(31)),
    ROW("rrelu/evaluation", "rrelu", DISTINCT(7, 11)),
    {.name = "rrelu/training",
     .build = apply_named,
     .inputs = {DISTINCT(7, 11)},
     .params = "rrelu training=1 lower=0.1 upper=0.9",
     .draws = true},
    ROW("prelu/one", "prelu", DISTINCT(7, 11), FLOATS(1)),
    ROW("prelu/channels", "prelu", DISTINCT(2, 5, 3, 2), FLOATS(5)),
    FURTHER("prelu/vector", "prelu", DISTINCT(31), FLOATS(1)),
    FURTHER("prelu/scalar", "prelu", FLOAT_SCALAR(1, 2), FLOATS(1)),
    ROW("glu/last", "glu", FLOATS(7, 12)),
    FURTHER("glu/first", "glu dim=0", FLOATS(6, 5)),
    FURTHER("glu/empty", "glu", FLOATS(3, 0)),
    ROW("alpha_dropout/half", "alpha_dropout training=1", FLOATS(7, 11)),
    ROW("feature_alpha_dropout/half", "feature_alpha_dropout p=0.3 training=1", FLOATS(5, 7, 2, 3)),
    FURTHER("alpha_dropout/all", "alpha_dropout p=1 training=1", FLOATS(7, 11)),
    FURTHER("alpha_dropout/evaluation", "alpha_dropout", FLOATS(7, 11)),
    ROW("dropout1d/half", "dropout1d", FLOATS(3, 5, 7)),
    ROW("dropout3d/half", "dropout3d", FLOATS(3, 5, 2, 3, 2)),
    ROW("stochastic_depth/row", "stochastic_depth p=0.5", FLOATS(7, 5, 3)),
    FURTHER("stochastic_depth/batch", "stochastic_depth p=0.2 mode=batch", FLOATS(7, 5, 3)),
    FURTHER("stochastic_depth/all", "stochastic_depth p=1", FLOATS(7, 5)),
    FURTHER("stochastic_depth/vector", "stochastic_depth p=0.5", FLOATS(31)),
    FURTHER("stochastic_depth/empty", "stochastic_depth p=0.5", FLOATS(3, 0)),
    FURTHER("dropout1d/without_batch", "dropout1d", FLOATS(5, 7)),
    FURTHER("dropout3d/without_batch", "dropout3d", FLOATS(5, 2, 3, 2)),

    ROW("sub_scalar/matrix", "sub_scalar value=1.5", FLOATS(7, 11)),
    ROW("div_scalar/matrix", "div_scalar value=1.5", FLOATS(7, 11)),
    ROW("rsub_scalar/matrix", "rsub_scalar value=1.5", FLOATS(7, 11)),
    ROW("rdiv_scalar/matrix", "rdiv_scalar value=1.5", POSITIVE(7, 11)),
    ROW("rpow_scalar/matrix", "rpow_scalar value=1.5", WIDE(7, 11)),
    WITHOUT_GRADIENT("rpow_scalar/int64", "rpow_scalar value=3", WHOLE(KN_I64, 0, 9, 31)),
    ROW("div_/matrix", "div_", FLOATS(7, 11), POSITIVE(7, 11)),
    ROW("pow_/matrix", "pow_", POSITIVE(7, 11), FLOATS(7, 11)),
    ROW("pow_scalar_/square", "pow_scalar_ exponent=2", FLOATS(7, 11)),
    ROW("pow_scalar_/fraction", "pow_scalar_ exponent=1.7", POSITIVE(7, 11)),
    ROW("add_scalar_/matrix", "add_scalar_ value=1.5", FLOATS(7, 11)),
    ROW("sub_scalar_/matrix", "sub_scalar_ value=1.5", FLOATS(7, 11)),
    ROW("div_scalar_/matrix", "div_scalar_ value=1.5", FLOATS(7, 11)),
    ROW("minimum/matrix", "minimum", FLOATS(7, 11), FLOATS(7, 11)),
    ROW("fmax/matrix", "fmax", FLOATS(7, 11), FLOATS(7, 11)),
    ROW("fmin/matrix", "fmin", FLOATS(7, 11), FLOATS(11)),
    WITHOUT_GRADIENT("floor_divide/matrix", "floor_divide", WIDE(7, 11), POSITIVE(7, 11)),
    WITHOUT_GRADIENT("floor_divide/int64", "floor_divide", INTEGERS(31), WHOLE(KN_I64, 1, 5, 31)),
    WITHOUT_GRADIENT("floor_divide/uint8", "floor_divide", WHOLE(KN_U8, 0, 256, 31), WHOLE(KN_U8, 1, 256, 31)),
    ROW("remainder/matrix", "remainder", WIDE(7, 11), FLOATS_IN(-9, -5, 7, 11)),
    WITHOUT_GRADIENT("remainder/int64", "remainder", INTEGERS(31), WHOLE(KN_I64, -7, 0, 31)),
    ROW("fmod/matrix", "fmod", WIDE(7, 11), FLOATS_IN(5, 9, 7, 11)),
    WITHOUT_GRADIENT("fmod/int8", "fmod", WHOLE(KN_I8, -9, 9, 31), WHOLE(KN_I8, 1, 5, 31)),
    WITHOUT_GRADIENT("floor_divide_/matrix", "floor_divide_", WIDE(7, 11), POSITIVE(7, 11)),
    ROW("remainder_/matrix", "remainder_", WIDE(7, 11), FLOATS_IN(-9, -5, 7, 11)),
    WITHOUT_GRADIENT("floor_divide_scalar/matrix", "floor_divide_scalar value=0.7", WIDE(7, 11)),
    ROW("remainder_scalar/matrix", "remainder_scalar value=7", WIDE(7, 11)),
    ROW("fmod_scalar/matrix", "fmod_scalar value=7", WIDE(7, 11)),
    ROW("div_mode/none", "div_mode", FLOATS(7, 11), POSITIVE(7, 11)),
    WITHOUT_GRADIENT("div_mode/trunc", "div_mode rounding_mode=trunc", WIDE(7, 11), POSITIVE(7, 11)),
    WITHOUT_GRADIENT("div_mode/trunc_of_int64", "div_mode rounding_mode=trunc", INTEGERS(31), WHOLE(KN_I64, 1, 5, 31)),
    FURTHER_WITHOUT_GRADIENT("div_mode/floor", "div_mode rounding_mode=floor", WIDE(7, 11), POSITIVE(7, 11)),
    ROW("copysign/matrix", "copysign", DISTINCT(7, 11), DISTINCT(7, 11)),
    ROW("hypot/matrix", "hypot", WIDE(7, 11), POSITIVE(7, 11)),
    ROW("atan2/matrix", "atan2", WIDE(7, 11), POSITIVE(7, 11)),
    ROW("ldexp/matrix", "ldexp", FLOATS(7, 11), FLOATS(7, 11)),
    ROW("logaddexp/matrix", "logaddexp", WIDE(7, 11), WIDE(7, 11)),
    ROW("logaddexp2/matrix", "logaddexp2", WIDE(7, 11), WIDE(7, 11)),
    ROW("xlogy/matrix", "xlogy", FLOATS(7, 11), POSITIVE(7, 11)),
    ROW("xlog1py/matrix", "xlog1py", FLOATS(7, 11), POSITIVE(7, 11)),
    WITHOUT_GRADIENT("heaviside/matrix", "heaviside", FLOATS(7, 11), FLOATS(7, 11)),
    WITHOUT_GRADIENT("nextafter/matrix", "nextafter", WIDE(7, 11), WIDE(7, 11)),
    {"float_power/matrix", apply_named, {POSITIVE(7, 11), FLOATS(7, 11)}, "float_power", .wide = true},
    ROW("lerp/matrix", "lerp", FLOATS(7, 11), FLOATS(7, 11), FLOATS(7, 11)),
    ROW("lerp_scalar/matrix", "lerp_scalar weight=0.7", FLOATS(7, 11), FLOATS(7, 11)),
    ROW("lerp_/matrix", "lerp_", FLOATS(7, 11), FLOATS(7, 11), FLOATS(11)),
    ROW("lerp_scalar_/matrix", "lerp_scalar_ weight=0.2", FLOATS(7, 11), FLOATS(7, 11)),
    ROW("addcmul/matrix", "addcmul value=0.5", FLOATS(7, 11), FLOATS(7, 1), FLOATS(11)),
    ROW("addcdiv/matrix", "addcdiv value=0.5", FLOATS(7, 11), FLOATS(7, 11), POSITIVE(7, 11)),
    ROW("addcmul_/matrix", "addcmul_ value=0.5", FLOATS(7, 11), FLOATS(7, 11), FLOATS(7, 11)),
    ROW("addcdiv_/matrix", "addcdiv_ value=0.5", FLOATS(7, 11), FLOATS(7, 11), POSITIVE(7, 11)),
    WITHOUT_GRADIENT("addcmul/int64", "addcmul value=2", INTEGERS(31), INTEGERS(31), INTEGERS(31)),

    WITHOUT_GRADIENT("ceil/matrix", "ceil", WIDE(7, 11)),
    WITHOUT_GRADIENT("ceil/int64", "ceil", INTEGERS(31)),
    WITHOUT_GRADIENT("floor/matrix", "floor", WIDE(7, 11)),
    WITHOUT_GRADIENT("trunc/matrix", "trunc", WIDE(7, 11)),
    WITHOUT_GRADIENT("ceil_/matrix", "ceil_", WIDE(7, 11)),
    WITHOUT_GRADIENT("floor_/matrix", "floor_", WIDE(7, 11)),
    WITHOUT_GRADIENT("trunc_/matrix", "trunc_", WIDE(7, 11)),
    ROW("frac/matrix", "frac", FLOATS_IN(0.05, 0.95, 7, 11)),
    WITHOUT_GRADIENT("round/matrix", "round", WIDE(7, 11)),
    WITHOUT_GRADIENT("round/int64", "round", INTEGERS(31)),
    WITHOUT_GRADIENT("round/decimals", "round decimals=1", WIDE(7, 11)),
    WITHOUT_GRADIENT("round/tens", "round decimals=-1", FLOATS_IN(-99, 99, 7, 11)),
    WITHOUT_GRADIENT("round_/matrix", "round_", WIDE(7, 11)),
    FURTHER_WITHOUT_GRADIENT("round_/decimals", "round_ decimals=1", WIDE(7, 11)),
    WITHOUT_GRADIENT("sgn/matrix", "sgn", DISTINCT(7, 11)),
    ROW("angle/matrix", "angle", DISTINCT(7, 11)),
    WITHOUT_GRADIENT("angle/int64", "angle", INTEGERS(31)),
    WITHOUT_GRADIENT("signbit/matrix", "signbit", DISTINCT(7, 11)),
    WITHOUT_GRADIENT("signbit/int64", "signbit", INTEGERS(31)),
    WITHOUT_GRADIENT("isnan/matrix", "isnan", FLOATS(7, 11)),
    WITHOUT_GRADIENT("isinf/matrix", "isinf", FLOATS(7, 11)),
    WITHOUT_GRADIENT("isfinite/matrix", "isfinite", FLOATS(7, 11)),
    WITHOUT_GRADIENT("isposinf/matrix", "isposinf", FLOATS(7, 11)),
    WITHOUT_GRADIENT("isneginf/matrix", "isneginf", FLOATS(7, 11)),
    ROW("nan_to_num/matrix", "nan_to_num", FLOATS(7, 11)),
    ROW("neg_/matrix", "neg_", FLOATS(7, 11)),
    ROW("abs_/matrix", "abs_", DISTINCT(7, 11)),
    ROW("square_/matrix", "square_", FLOATS(7, 11)),
    ROW("sqrt_/matrix", "sqrt_", POSITIVE(7, 11)),
    ROW("rsqrt_/matrix", "rsqrt_", POSITIVE(7, 11)),
    ROW("reciprocal_/matrix", "reciprocal_", POSITIVE(7, 11)),
    ROW("exp_/matrix", "exp_", FLOATS(7, 11)),
    ROW("log_/matrix", "log_", POSITIVE(7, 11)),
    ROW("tanh_/matrix", "tanh_", FLOATS(7, 11)),
    ROW("relu_/matrix", "relu_", DISTINCT(7, 11)),
    ROW("sigmoid_/matrix", "sigmoid_", FLOATS(7, 11)),
    ROW("selu_/matrix", "selu_", DISTINCT(7, 11)),
    ROW("clamp_/matrix", "clamp_ min=-1 max=0.75", DISTINCT(7, 11)),

    WITHOUT_GRADIENT("eq_scalar/int64", "eq_scalar value=2", INTEGERS(7, 11)),
    WITHOUT_GRADIENT("ne_scalar/int64", "ne_scalar value=2", INTEGERS(7, 11)),
    WITHOUT_GRADIENT("lt_scalar/matrix", "lt_scalar value=0.2", FLOATS(7, 11)),
    WITHOUT_GRADIENT("le_scalar/matrix", "le_scalar value=0.2", FLOATS(7, 11)),
    WITHOUT_GRADIENT("gt_scalar/matrix", "gt_scalar value=0.2", FLOATS(7, 11)),
    WITHOUT_GRADIENT("ge_scalar/matrix", "ge_scalar value=0.2", FLOATS(7, 11)),
    WITHOUT_GRADIENT("gt_scalar/below_uint8", "gt_scalar value=-1", WHOLE(KN_U8, 0, 256, 31)),
    WITHOUT_GRADIENT("eq_scalar/above_int8", "eq_scalar value=300", WHOLE(KN_I8, -128, 128, 131)),
    WITHOUT_GRADIENT("logical_and/int64", "logical_and", WHOLE(KN_I64, 0, 3, 31), WHOLE(KN_I64, 0, 3, 31)),
    WITHOUT_GRADIENT("logical_or/bool", "logical_or", WHOLE(KN_BOOL, 0, 2, 31), WHOLE(KN_BOOL, 0, 2, 31)),
    WITHOUT_GRADIENT("logical_xor/int64", "logical_xor", WHOLE(KN_I64, 0, 3, 31), WHOLE(KN_I64, 0, 3, 31)),
    WITHOUT_GRADIENT("logical_not/matrix", "logical_not", FLOATS(7, 11)),
    WITHOUT_GRADIENT("isclose/matrix", "isclose rtol=0.5", FLOATS(7, 11), FLOATS(7, 11)),
    WITHOUT_GRADIENT("isclose/int64", "isclose atol=2", INTEGERS(31), INTEGERS(31)),
    WITHOUT_GRADIENT("bitwise_and/int64", "bitwise_and", INTEGERS(31), INTEGERS(31)),
    WITHOUT_GRADIENT("bitwise_or/uint8", "bitwise_or", WHOLE(KN_U8, 0, 256, 31), WHOLE(KN_U8, 0, 256, 31)),
    WITHOUT_GRADIENT("bitwise_xor/bool", "bitwise_xor", WHOLE(KN_BOOL, 0, 2, 31), WHOLE(KN_BOOL, 0, 2, 31)),
    WITHOUT_GRADIENT("bitwise_not/int32", "bitwise_not", WHOLE(KN_I32, -9, 9, 31)),
    WITHOUT_GRADIENT("bitwise_not/bool", "bitwise_not", WHOLE(KN_BOOL, 0, 2, 31)),
    WITHOUT_GRADIENT("bitwise_and_scalar/int64", "bitwise_and_scalar value=5", INTEGERS(31)),
    WITHOUT_GRADIENT("bitwise_or_scalar/int64", "bitwise_or_scalar value=5", INTEGERS(31)),
    WITHOUT_GRADIENT("bitwise_xor_scalar/int64", "bitwise_xor_scalar value=5", INTEGERS(31)),
    WITHOUT_GRADIENT("bitwise_left_shift/int64", "bitwise_left_shift", INTEGERS(31), WHOLE(KN_I64, 0, 9, 31)),
    WITHOUT_GRADIENT("bitwise_right_shift/int64", "bitwise_right_shift", INTEGERS(31), WHOLE(KN_I64, 0, 9, 31)),
    WITHOUT_GRADIENT("bitwise_left_shift_scalar/int64", "bitwise_left_shift_scalar value=3", INTEGERS(31)),
    WITHOUT_GRADIENT("bitwise_right_shift_scalar/int16", "bitwise_right_shift_scalar value=2", WHOLE(KN_I16, -99, 99, 31)),
    WITHOUT_GRADIENT("gcd/int64", "gcd", WHOLE(KN_I64, -99, 99, 131), WHOLE(KN_I64, -99, 99, 131)),
    WITHOUT_GRADIENT("lcm/int64", "lcm", WHOLE(KN_I64, -99, 99, 131), WHOLE(KN_I64, -99, 99, 131)),

    ROW("erfinv/matrix", "erfinv", FLOATS_IN(-0.95, 0.95, 7, 11)),
    ROW("erfcx/near", "erfcx", FLOATS_IN(-1.5, 4, 7, 11)), /* below, exp(x^2) hides differences of others */
    WITHOUT_GRADIENT("erfcx/below", "erfcx", FLOATS_IN(-8, 0, 7, 11)),
    ROW("erfcx/far", "erfcx", FLOATS_IN(5, 40, 7, 11)),
    ROW("ndtr/matrix", "ndtr", WIDE(7, 11)),
    ROW("log_ndtr/matrix", "log_ndtr", FLOATS_IN(-20, 5, 7, 11)),
    ROW("ndtri/matrix", "ndtri", PROPER(7, 11)),
    ROW("lgamma/matrix", "lgamma", POSITIVE(7, 11)),
    ROW("digamma/matrix", "digamma", POSITIVE(7, 11)),
    ROW("polygamma/trigamma", "polygamma n=1", POSITIVE(7, 11)),
    FURTHER("polygamma/three", "polygamma n=3", POSITIVE(7, 11)),
    ROW("igamma/matrix", "igamma", CONSTANTS_IN(0.3, 20, 7, 11), FLOATS_IN(0.1, 30, 7, 11)),
    ROW("igammac/matrix", "igammac", CONSTANTS_IN(0.3, 20, 7, 11), FLOATS_IN(0.1, 15, 7, 11)),
    FURTHER("igamma/large", "igamma", CONSTANTS_IN(50, 400, 31), FLOATS_IN(50, 400, 31)),
    ROW("frexp/matrix", "frexp", FLOATS_IN(1.1, 1.9, 7, 11)),
    FURTHER_WITHOUT_GRADIENT("frexp/wide", "frexp", WIDE(131)),
    ROW("i0/matrix", "i0", WIDE(7, 11)),
    ROW("i0e/matrix", "i0e", FLOATS_IN(1, 40, 7, 11)),
    ROW("i1/matrix", "i1", WIDE(7, 11)),
    ROW("i1e/matrix", "i1e", FLOATS_IN(1, 40, 7, 11)),
    ROW("sinc/matrix", "sinc", WIDE(7, 11)),
    ROW("entr/matrix", "entr", POSITIVE(7, 11)),
    ROW("deg2rad/matrix", "deg2rad", FLOATS_IN(-360, 360, 7, 11)),
    ROW("rad2deg/matrix", "rad2deg", WIDE(7, 11)),
    ROW("logit/matrix", "logit", PROPER(7, 11)),
    ROW("logit/clipped", "logit eps=0.01", PROPER(7, 11)),
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(elementwise_rows, rows, .has_golden = true);
