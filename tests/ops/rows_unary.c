/* rows_unary.c - elementwise operations of one tensor, with a number, and in place. */
#include "ops/rows.h"

#define UNARY(function)                                                                                                \
    static kn_tensor *build_##function(kn_tensor *const *x, const void *params)                                        \
    {                                                                                                                  \
        (void)params;                                                                                                  \
        return kn_##function(x[0]);                                                                                    \
    }

UNARY(neg)
UNARY(exp)
UNARY(log)
UNARY(sqrt)
UNARY(abs)
UNARY(relu)
UNARY(sigmoid)
UNARY(tanh)
UNARY(relu6)
UNARY(square)
UNARY(sign)
UNARY(reciprocal)
UNARY(rsqrt)
UNARY(exp2)
UNARY(expm1)
UNARY(log2)
UNARY(log10)
UNARY(log1p)
UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(sinh)
UNARY(cosh)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
UNARY(erf)
UNARY(erfc)
UNARY(logsigmoid)
UNARY(silu)
UNARY(softsign)
UNARY(tanhshrink)
UNARY(hardsigmoid)
UNARY(hardswish)

#define BETWEEN(...) (&(const kn_clamp_params){.min = -INFINITY, .max = INFINITY, __VA_ARGS__})

static kn_tensor *build_clamp(kn_tensor *const *x, const void *params) { return kn_clamp_with(x[0], params); }

static kn_tensor *build_hardtanh(kn_tensor *const *x, const void *params)
{
    const kn_clamp_params *bounds = params;
    return kn_hardtanh(x[0], bounds->min, bounds->max);
}

/* clang-format off */
#define NUMBER(value) &(const double){value}
/* clang-format on */

static kn_tensor *build_add_scalar(kn_tensor *const *x, const void *number)
{
    return kn_add_scalar(x[0], *(const double *)number);
}

static kn_tensor *build_mul_scalar(kn_tensor *const *x, const void *number)
{
    return kn_mul_scalar(x[0], *(const double *)number);
}

static kn_tensor *build_pow_scalar(kn_tensor *const *x, const void *number)
{
    return kn_pow_scalar(x[0], *(const double *)number);
}

/* In place: on a copy, because a leaf that requires a gradient must not be changed. */
static kn_tensor *build_mul_scalar_in_place(kn_tensor *const *x, const void *number)
{
    return kn_mul_scalar_(kn_clone(x[0]), *(const double *)number);
}

static kn_tensor *build_fill(kn_tensor *const *x, const void *number)
{
    return kn_fill_(kn_clone(x[0]), *(const double *)number);
}

static kn_tensor *build_zero(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_zero_(kn_clone(x[0]));
}

/* Later operations and their gradients use the changed value. */
static kn_tensor *build_in_place_chain(kn_tensor *const *x, const void *params)
{
    (void)params;
    kn_tensor *y = kn_mul_scalar_(kn_clone(x[0]), 3);
    return kn_mul(y, kn_exp(y));
}

/* clang-format off */
/* Values from -3 in steps of 6 / `per_six` (even), so that 0 and 6 are midway between two values. */
#define BEYOND_SIX(steps, per_six, ...) {.fill = FILL_DISTINCT, .low = -3, .high = -3 + steps * 6.0 / per_six, OP_SHAPE(__VA_ARGS__)}

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"neg/matrix", build_neg, {FLOATS(13, 17)}, .layouts = true},
    {"neg/scalar", build_neg, {FLOAT_SCALAR(-1, 1)}},
    {"neg/empty", build_neg, {FLOATS(3, 0)}},
    {"neg/int32", build_neg, {WHOLE(KN_I32, -9, 9, 5, 7)}, .no_gradient = true},
    {"neg/int64", build_neg, {WHOLE(KN_I64, -9, 9, 1031)}, .no_gradient = true, .layouts = true},
    {"exp/matrix", build_exp, {FLOATS_IN(-3, 3, 13, 17)}, .layouts = true},
    {"exp/one", build_exp, {FLOATS(1)}},
    {"exp/long", build_exp, {FLOATS(70001)}},
    {"exp/eight_dimensions", build_exp, {FLOATS(2, 1, 3, 1, 2, 2, 1, 2)}},
    {"exp/int64", build_exp, {WHOLE(KN_I64, -3, 4, 31)}, .no_gradient = true, .on_cpu = true},
    {"exp/f16", build_exp, {WHOLE(KN_F16, -3, 4, 31)}, .no_gradient = true, .on_cpu = true},
    {"exp/bf16", build_exp, {WHOLE(KN_BF16, -3, 4, 31)}, .no_gradient = true, .layouts = true},
    {"neg/int8", build_neg, {WHOLE(KN_I8, -127, 128, 31)}, .no_gradient = true},
    {"neg/f16", build_neg, {WHOLE(KN_F16, -9, 9, 5, 7)}, .no_gradient = true, .layouts = true},
    {"sqrt/int32", build_sqrt, {WHOLE(KN_I32, 0, 50, 31)}, .no_gradient = true, .on_cpu = true},
    {"relu/int32", build_relu, {WHOLE(KN_I32, -9, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"relu/f16", build_relu, {WHOLE(KN_F16, -9, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"sigmoid/uint8", build_sigmoid, {WHOLE(KN_U8, 0, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"log/matrix", build_log, {FLOATS_IN(0.1, 3, 7, 11)}, .layouts = true, .on_cpu = true},
    {"log/empty", build_log, {FLOATS_IN(0.1, 3, 0)}},
    {"sqrt/matrix", build_sqrt, {FLOATS_IN(0.1, 3, 7, 11)}, .layouts = true, .on_cpu = true},
    {"abs/matrix", build_abs, {DISTINCT(7, 11)}, .layouts = true, .on_cpu = true},
    {"abs/int32", build_abs, {WHOLE(KN_I32, -9, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"relu/matrix", build_relu, {DISTINCT(7, 11)}, .layouts = true, .on_cpu = true},
    {"relu/four_dimensions", build_relu, {DISTINCT(2, 3, 5, 7)}, .on_cpu = true},
    {"relu/long", build_relu, {DISTINCT(65537)}, .on_cpu = true},
    {"relu/empty", build_relu, {FLOATS(0, 5)}},
    {"sigmoid/matrix", build_sigmoid, {FLOATS_IN(-6, 6, 7, 11)}, .layouts = true, .on_cpu = true},
    {"tanh/matrix", build_tanh, {FLOATS_IN(-3, 3, 7, 11)}, .layouts = true, .on_cpu = true},
    {"square/matrix", build_square, {FLOATS_IN(-4, 4, 7, 11)}},
    {"sign/matrix", build_sign, {DISTINCT(7, 11)}},
    {"reciprocal/matrix", build_reciprocal, {FLOATS_IN(0.1, 3, 7, 11)}},
    {"rsqrt/matrix", build_rsqrt, {FLOATS_IN(0.1, 3, 7, 11)}},
    {"exp2/matrix", build_exp2, {FLOATS_IN(-4, 4, 7, 11)}},
    {"expm1/matrix", build_expm1, {FLOATS_IN(-4, 4, 7, 11)}},
    {"log2/matrix", build_log2, {FLOATS_IN(0.1, 3, 7, 11)}},
    {"log10/matrix", build_log10, {FLOATS_IN(0.1, 3, 7, 11)}},
    {"log1p/matrix", build_log1p, {FLOATS_IN(-0.9, 3, 7, 11)}},
    {"sin/matrix", build_sin, {FLOATS_IN(-4, 4, 7, 11)}},
    {"cos/matrix", build_cos, {FLOATS_IN(-4, 4, 7, 11)}},
    {"tan/matrix", build_tan, {FLOATS_IN(-1.5, 1.5, 7, 11)}},
    {"asin/matrix", build_asin, {FLOATS_IN(-0.9, 0.9, 7, 11)}},
    {"acos/matrix", build_acos, {FLOATS_IN(-0.9, 0.9, 7, 11)}},
    {"atan/matrix", build_atan, {FLOATS_IN(-4, 4, 7, 11)}},
    {"sinh/matrix", build_sinh, {FLOATS_IN(-4, 4, 7, 11)}},
    {"cosh/matrix", build_cosh, {FLOATS_IN(-4, 4, 7, 11)}},
    {"asinh/matrix", build_asinh, {FLOATS_IN(-4, 4, 7, 11)}},
    {"acosh/matrix", build_acosh, {FLOATS_IN(1.1, 9, 7, 11)}},
    {"atanh/matrix", build_atanh, {FLOATS_IN(-0.9, 0.9, 7, 11)}},
    {"erf/matrix", build_erf, {FLOATS_IN(-4, 4, 7, 11)}},
    {"erfc/matrix", build_erfc, {FLOATS_IN(-4, 4, 7, 11)}},
    {"logsigmoid/matrix", build_logsigmoid, {FLOATS_IN(-4, 4, 7, 11)}},
    {"silu/matrix", build_silu, {FLOATS_IN(-4, 4, 7, 11)}},
    {"softsign/matrix", build_softsign, {FLOATS_IN(-4, 4, 7, 11)}},
    {"tanhshrink/matrix", build_tanhshrink, {FLOATS_IN(-4, 4, 7, 11)}},
    {"hardsigmoid/matrix", build_hardsigmoid, {FLOATS_IN(-4, 4, 7, 11)}},
    {"hardswish/matrix", build_hardswish, {FLOATS_IN(-4, 4, 7, 11)}},
    {"relu6/matrix", build_relu6, {BEYOND_SIX(77, 38, 7, 11)}, .layouts = true, .on_cpu = true},
    {"relu6/four_dimensions", build_relu6, {BEYOND_SIX(210, 104, 2, 3, 5, 7)}, .on_cpu = true},
    {"relu6/long", build_relu6, {FLOATS_IN(-3, 9, 65537)}, .no_gradient = true, .on_cpu = true},
    {"relu6/empty", build_relu6, {FLOATS(0, 5)}},
    {"relu6/int64", build_relu6, {WHOLE(KN_I64, -9, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"relu6/f16", build_relu6, {WHOLE(KN_F16, -9, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"hardtanh/matrix", build_hardtanh, {DISTINCT(7, 11)}, BETWEEN(.min = -1, .max = 1), .layouts = true},
    {"hardtanh/one_value", build_hardtanh, {DISTINCT(31)}, BETWEEN(.min = 0.5, .max = 0.5)},
    {"hardtanh/empty", build_hardtanh, {FLOATS(0)}, BETWEEN(.min = -1, .max = 1)},
    {"clamp/both", build_clamp, {DISTINCT(7, 11)}, BETWEEN(.min = -1, .max = 0.75), .layouts = true},
    {"clamp/min", build_clamp, {DISTINCT(31)}, BETWEEN(.min = -1)},
    {"clamp/max", build_clamp, {DISTINCT(31)}, BETWEEN(.max = 0.25)},
    {"clamp/none", build_clamp, {DISTINCT(31)}, BETWEEN(.max = INFINITY)},
    {"clamp/crossed", build_clamp, {DISTINCT(31)}, BETWEEN(.min = 1, .max = -1)},
    {"clamp/empty", build_clamp, {FLOATS(3, 0)}, BETWEEN(.min = 0)},
    {"clamp/int32", build_clamp, {WHOLE(KN_I32, -9, 9, 31)}, BETWEEN(.min = -3), .no_gradient = true},
    {"clamp/int64", build_clamp, {WHOLE(KN_I64, -9, 9, 31)}, BETWEEN(.max = 4), .no_gradient = true, .on_cpu = true},
    {"clamp/int64_and_fraction", build_clamp, {WHOLE(KN_I64, -9, 9, 31)}, BETWEEN(.max = 4.5), .no_gradient = true,
     .on_cpu = true},
    {"clamp/uint8", build_clamp, {WHOLE(KN_U8, 0, 255, 31)}, BETWEEN(.min = -3, .max = 100), .no_gradient = true},
    {"clamp/f16", build_clamp, {WHOLE(KN_F16, -9, 9, 31)}, BETWEEN(.min = -3, .max = 4), .no_gradient = true,
     .on_cpu = true},
    {"add_scalar/matrix", build_add_scalar, {FLOATS(13, 17)}, NUMBER(1.5), .layouts = true},
    {"add_scalar/empty", build_add_scalar, {FLOATS(0)}, NUMBER(1.5)},
    {"add_scalar/int64", build_add_scalar, {WHOLE(KN_I64, -9, 9, 31)}, NUMBER(3), .no_gradient = true, .on_cpu = true},
    {"add_scalar/int64_and_fraction", build_add_scalar, {WHOLE(KN_I64, -9, 9, 31)}, NUMBER(1.5), .no_gradient = true,
     .on_cpu = true},
    {"mul_scalar/matrix", build_mul_scalar, {FLOATS(13, 17)}, NUMBER(-2.5), .layouts = true, .on_cpu = true},
    {"mul_scalar/int32", build_mul_scalar, {WHOLE(KN_I32, -9, 9, 31)}, NUMBER(-2), .no_gradient = true, .on_cpu = true},
    {"mul_scalar/uint8_and_fraction", build_mul_scalar, {WHOLE(KN_U8, 0, 255, 31)}, NUMBER(0.5), .no_gradient = true},
    {"pow_scalar/square", build_pow_scalar, {FLOATS_IN(-2, 2, 7, 11)}, NUMBER(2), .layouts = true},
    {"pow_scalar/cube", build_pow_scalar, {FLOATS_IN(-2, 2, 31)}, NUMBER(3), .on_cpu = true},
    {"pow_scalar/root", build_pow_scalar, {FLOATS_IN(0.1, 2, 31)}, NUMBER(0.5), .on_cpu = true},
    {"pow_scalar/inverse", build_pow_scalar, {FLOATS_IN(0.3, 2, 31)}, NUMBER(-1), .on_cpu = true},
    {"pow_scalar/zero", build_pow_scalar, {FLOATS(31)}, NUMBER(0), .on_cpu = true},
    {"pow_scalar/int64", build_pow_scalar, {WHOLE(KN_I64, -9, 9, 31)}, NUMBER(3), .no_gradient = true, .on_cpu = true},
    {"pow_scalar/f16", build_pow_scalar, {WHOLE(KN_F16, -9, 9, 31)}, NUMBER(2), .no_gradient = true, .on_cpu = true},
    {"mul_scalar/f16", build_mul_scalar, {WHOLE(KN_F16, -9, 9, 31)}, NUMBER(0.5), .no_gradient = true, .on_cpu = true},
    {"pow_scalar/fraction", build_pow_scalar, {FLOATS_IN(0.3, 2, 31)}, NUMBER(-1.75)},
    {"mul_scalar_/matrix", build_mul_scalar_in_place, {FLOATS(7, 11)}, NUMBER(3)},
    {"fill_/matrix", build_fill, {FLOATS(7, 11)}, NUMBER(2.5), .no_gradient = true},
    {"fill_/int32", build_fill, {WHOLE(KN_I32, 0, 9, 31)}, NUMBER(-7), .no_gradient = true},
    {"zero_/matrix", build_zero, {FLOATS(7, 11)}, .no_gradient = true},
    {"in_place/chain", build_in_place_chain, {FLOATS(5, 7)}},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(unary_rows, rows, .has_golden = true, .engine = "neg exp mul_scalar");
