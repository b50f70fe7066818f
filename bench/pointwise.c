/* pointwise.c - every elementwise function at 2^14, 2^18 and 2^22 elements, forward and backward: one that costs much
 * more than its neighbours is computed badly. On request: --only pointwise/, pointwise/erf. Bytes: each operand is read
 * and each result written once. */
#include "bench.h"

#define CASE(label, text, python, size, n, pass, passes, wanted, compared, ...)                                        \
    {                                                                                                                  \
        .name = "pointwise/" label "/" size pass, .shape = size, .dtype = KN_F32, .on_request = true,                  \
        .bytes = 4.0 * passes * n, BENCH_OPERATION_UNCOMPARED, .results = compared ? bench_operation_results : NULL,   \
        .operation =                                                                                                   \
            &(const bench_operation){.call = text, .peer = python, .inputs = {__VA_ARGS__}, .gradients = wanted},      \
    }
#define OPERAND(n, with)                                                                                               \
    {                                                                                                                  \
        .ndim = 1, .shape = {n}, .fill = BENCH_##with                                                                  \
    }

/* Of one tensor whose values are drawn as FILL says. */
#define FORWARD_OF(label, text, python, fill, compared, size, n)                                                       \
    CASE(label, text, python, size, n, "/fwd", 2, 0, compared, OPERAND(n, fill))
#define BACKWARD_OF(label, text, python, fill, compared, size, n)                                                      \
    CASE(label, text, python, size, n, "/bwd", 3, 1, compared, OPERAND(n, fill))
#define BOTH_OF(...) FORWARD_OF(__VA_ARGS__), BACKWARD_OF(__VA_ARGS__)
#define SIZES(rows, ...)                                                                                               \
    rows(__VA_ARGS__, "2^14", 16384), rows(__VA_ARGS__, "2^18", 262144), rows(__VA_ARGS__, "2^22", 4194304)
#define TORCH(name, fill) SIZES(BOTH_OF, #name, #name, "torch." #name "(a)", fill, true)
#define SPECIAL(name, fill) SIZES(BOTH_OF, #name, #name, "torch.special." #name "(a)", fill, true)
#define F(name) SIZES(BOTH_OF, #name, #name, "F." #name "(a)", NORMAL, true)
#define CALL(label, text, python, fill) SIZES(BOTH_OF, label, text, python, fill, true)
#define TEST(name, python) SIZES(FORWARD_OF, #name, #name, python, NORMAL, true)
/* With draws of their own, which differ between libraries. */
#define DRAWN(label, text, python) SIZES(BOTH_OF, label, text, python, NORMAL, false)

/* Of two tensors. */
#define FORWARD_OF_TWO(label, text, python, fill, other, size, n)                                                      \
    CASE(label, text, python, size, n, "/fwd", 3, 0, true, OPERAND(n, fill), OPERAND(n, other))
#define BACKWARD_OF_TWO(label, text, python, fill, other, size, n)                                                     \
    CASE(label, text, python, size, n, "/bwd", 5, 3, true, OPERAND(n, fill), OPERAND(n, other))
#define BOTH_OF_TWO(...) FORWARD_OF_TWO(__VA_ARGS__), BACKWARD_OF_TWO(__VA_ARGS__)
#define TWO(name, fill, other) SIZES(BOTH_OF_TWO, #name, #name, "torch." #name "(a, b)", fill, other)
#define COMPARE(name) SIZES(FORWARD_OF_TWO, #name, #name, "torch." #name "(a, b)", NORMAL, NORMAL)

static const bench_case cases[] = {
    /* functions.c */
    TORCH(neg, NORMAL),
    TORCH(abs, NORMAL),
    TORCH(square, NORMAL),
    TORCH(sign, NORMAL),
    TORCH(sqrt, UNIFORM),
    TORCH(rsqrt, FROM_1),
    TORCH(reciprocal, FROM_1),
    TORCH(exp, NORMAL),
    TORCH(exp2, NORMAL),
    TORCH(expm1, NORMAL),
    TORCH(log, FROM_1),
    TORCH(log2, FROM_1),
    TORCH(log10, FROM_1),
    TORCH(log1p, UNIFORM),
    TORCH(sin, NORMAL),
    TORCH(cos, NORMAL),
    TORCH(tan, SIGNED),
    TORCH(asin, SIGNED),
    TORCH(acos, SIGNED),
    TORCH(atan, NORMAL),
    TORCH(sinh, NORMAL),
    TORCH(cosh, NORMAL),
    TORCH(tanh, NORMAL),
    TORCH(asinh, NORMAL),
    TORCH(acosh, FROM_1),
    TORCH(atanh, SIGNED),
    /* activations.c, bounds.c, drawn.c, dropout.c */
    F(relu),
    F(relu6),
    F(sigmoid),
    F(logsigmoid),
    F(silu),
    F(softsign),
    F(tanhshrink),
    F(hardsigmoid),
    F(hardswish),
    F(hardtanh),
    F(elu),
    F(celu),
    F(selu),
    F(leaky_relu),
    F(softplus),
    F(mish),
    F(gelu),
    CALL("gelu_tanh", "gelu approximate=tanh", "F.gelu(a, approximate='tanh')", NORMAL),
    F(hardshrink),
    F(softshrink),
    CALL("threshold", "threshold threshold=0.5 value=1", "F.threshold(a, 0.5, 1)", NORMAL),
    F(glu),
    CALL("clamp", "clamp min=-1 max=0.5", "torch.clamp(a, -1, 0.5)", NORMAL),
    CALL("nan_to_num", "nan_to_num", "torch.nan_to_num(a)", NORMAL),
    CALL("rrelu", "rrelu", "F.rrelu(a)", NORMAL),
    DRAWN("rrelu_training", "rrelu training=true", "F.rrelu(a, training=True)"),
    DRAWN("dropout", "dropout", "F.dropout(a)"),
    DRAWN("alpha_dropout", "alpha_dropout training=true", "F.alpha_dropout(a, training=True)"),
    /* special.c */
    TORCH(erf, NORMAL),
    TORCH(erfc, NORMAL),
    TORCH(erfinv, SIGNED),
    SPECIAL(ndtr, NORMAL),
    SPECIAL(log_ndtr, NORMAL),
    SPECIAL(ndtri, UNIFORM),
    TORCH(lgamma, FROM_1),
    TORCH(digamma, FROM_1),
    CALL("lgamma_signed", "lgamma", "torch.lgamma(a)", NORMAL),
    CALL("digamma_signed", "digamma", "torch.digamma(a)", NORMAL),
    CALL("polygamma", "polygamma n=1", "torch.polygamma(1, a)", FROM_1),
    TORCH(i0, NORMAL),
    SPECIAL(i0e, NORMAL),
    SPECIAL(i1, NORMAL),
    SPECIAL(i1e, NORMAL),
    TORCH(sinc, NORMAL),
    SPECIAL(entr, UNIFORM),
    TORCH(deg2rad, NORMAL),
    TORCH(rad2deg, NORMAL),
    TORCH(logit, UNIFORM),
    /* rounding.c, logic */
    TORCH(ceil, NORMAL),
    TORCH(floor, NORMAL),
    TORCH(trunc, NORMAL),
    TORCH(round, NORMAL),
    TORCH(frac, NORMAL),
    CALL("round_decimals", "round decimals=2", "torch.round(a, decimals=2)", NORMAL),
    TEST(isnan, "torch.isnan(a)"),
    TEST(isfinite, "torch.isfinite(a)"),
    TEST(signbit, "torch.signbit(a)"),
    TEST(logical_not, "torch.logical_not(a)"),
    /* with a number */
    CALL("add_scalar", "add_scalar value=2", "a + 2", NORMAL),
    CALL("rdiv_scalar", "rdiv_scalar value=2", "2 / a", FROM_1),
    CALL("pow_scalar/2", "pow_scalar exponent=2", "a ** 2", NORMAL),
    CALL("pow_scalar/3", "pow_scalar exponent=3", "a ** 3", NORMAL),
    CALL("pow_scalar/2.5", "pow_scalar exponent=2.5", "a ** 2.5", FROM_1),
    CALL("rpow_scalar", "rpow_scalar value=2", "2 ** a", NORMAL),
    CALL("remainder_scalar", "remainder_scalar value=0.7", "torch.remainder(a, 0.7)", NORMAL),
    CALL("fmod_scalar", "fmod_scalar value=0.7", "torch.fmod(a, 0.7)", NORMAL),
    /* arithmetic.c, binary.c, power.c, division.c */
    TWO(add, NORMAL, NORMAL),
    TWO(sub, NORMAL, NORMAL),
    TWO(mul, NORMAL, NORMAL),
    TWO(div, NORMAL, FROM_1),
    TWO(pow, FROM_1, NORMAL),
    TWO(remainder, NORMAL, FROM_1),
    TWO(fmod, NORMAL, FROM_1),
    TWO(maximum, NORMAL, NORMAL),
    TWO(fmax, NORMAL, NORMAL),
    TWO(copysign, NORMAL, NORMAL),
    TWO(hypot, NORMAL, NORMAL),
    TWO(atan2, NORMAL, NORMAL),
    TWO(ldexp, NORMAL, NORMAL),
    TWO(logaddexp, NORMAL, NORMAL),
    TWO(logaddexp2, NORMAL, NORMAL),
    TWO(xlogy, NORMAL, FROM_1),
    COMPARE(floor_divide),
    COMPARE(nextafter),
    COMPARE(lt),
    COMPARE(isclose),
};
const bench_list bench_pointwise = {cases, sizeof cases / sizeof cases[0]};
