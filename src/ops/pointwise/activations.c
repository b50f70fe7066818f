/* ops/pointwise/activations.c - activations of one tensor; those that clamp are in bounds.c, those with random numbers
 * in drawn.c. */
#include <koine/activation.h>
#include <koine/shape.h>
#include <math.h>

#include "ops/dispatch/backward.h"
#include "ops/pointwise/elementwise.h"

KN_UNARY(relu, KN_NUMBERS, "a < 0 ? (T)0 : a", /* NaN passes */
         "y <= 0 ? (T)0 : g", a < 0 ? 0 : a)

KN_FUNCTION(sigmoid, KN_REAL, "(T)1 / ((T)1 + exp(-a))", "g * y * (1 - y)", 1 / (1 + exp(-a)))
KN_FUNCTION(logsigmoid, KN_REAL, "(a < 0 ? a : (T)0) - log1p(exp(-fabs(a)))", "g * kn_sigmoid(-a)",
            fmin(a, 0) - log1p(exp(-fabs(a))), .backward.functions = KN_SIGMOID)
KN_FUNCTION(silu, KN_REAL, "a / ((T)1 + exp(-a))", "g * kn_sigmoid(a) * (1 + a * (1 - kn_sigmoid(a)))",
            a / (1 + exp(-a)), .backward.functions = KN_SIGMOID)
KN_FUNCTION(softsign, KN_REAL, "a / ((T)1 + fabs(a))", "g / ((1 + fabs(a)) * (1 + fabs(a)))", a / (1 + fabs(a)))
static kn_status check_difference(const kn_call *call)
{
    return call->inputs[0]->dtype != KN_BOOL
               ? KN_OK
               : kn_fail(KN_ERR_DTYPE, "bool tensors have no difference; convert with kn_to_dtype first");
}

KN_ELEMENTWISE_TABLE(tanhshrink, KN_REAL, "a", NULL, KN_VECTORS, "a - tanh(a)", KN_GRADIENTS("g * tanh(a) * tanh(a)"),
                     a - tanh(a), .check = check_difference);
KN_OF_ONE(tanhshrink, tanhshrink, false, true, KN_DTYPES_NUMBERS)
KN_UNARY(hardsigmoid, KN_REAL, "a <= -3 ? (T)0 : a >= 3 ? (T)1 : a / 6 + (T)0.5", "a > -3 && a < 3 ? g / 6 : g * 0",
         a != a ? a : fmin(fmax(a / 6 + 0.5, 0), 1))
KN_UNARY(hardswish, KN_REAL, "a * (a <= -3 ? (T)0 : a >= 3 ? (T)6 : a + 3) / 6",
         "a <= -3 ? g * 0 : a < 3 ? g * (2 * a + 3) / 6 : g", a *fmin(fmax(a + 3, 0), 6) / 6,
         .recorded = {"g * (a <= -3 ? (T)0 : a < 3 ? a / 3 + (T)0.5 : (T)1)"})

/* --- linear above 0, exponential below ---------------------------------------------------------------------------- */

/* The exponential is not taken of large numbers, whose infinity would spoil gradients of gradients. The second
 * derivative at 0 is 0, as in PyTorch. */
#define NEGATIVE "(a > 0 ? (T)0 : a)"
#define BELOW "(a < 0 ? a : (T)0)"
#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717
#define SCALE "(T)1.0507009873554804934193349852946"
#define SCALE_ALPHA "(T)1.7580993408473768599402175208123"

static kn_status check_alpha(const kn_call *call)
{
    return ((const kn_scalar_args *)call->params)->values[0].real != 0
               ? KN_OK
               : kn_fail(KN_ERR_ARGUMENT, "alpha must not be 0: x is divided by it");
}

KN_FUNCTION_OF(elu, ELU, KN_FLOATS, "p", KN_VECTORS, "a > 0 ? a : p * expm1(" NEGATIVE ")",
               "a <= 0 ? g * p * exp(" BELOW ") : g", a > 0 ? a : p * expm1(a), KN_PARAM(kn_elu_params, alpha))
KN_ELEMENTWISE_TABLE(celu, KN_FLOATS, "a", "p", KN_VECTORS, "a > 0 ? a : p * expm1(" NEGATIVE " / p)",
                     KN_GRADIENTS("a <= 0 ? g * exp(" BELOW " / p) : g"), a > 0 ? a : p * expm1(a / p),
                     .check = check_alpha);
KN_WITH_PARAMS(celu, CELU, KN_DTYPES_FLOATING, KN_PARAM(kn_celu_params, alpha))
KN_FUNCTION(selu, KN_FLOATS, "a > 0 ? a * " SCALE " : " SCALE_ALPHA " * expm1(" NEGATIVE ")",
            "a <= 0 ? g * " SCALE_ALPHA " * exp(" BELOW ") : g * " SCALE,
            SELU_SCALE *(a > 0 ? a : SELU_ALPHA * expm1(a)))
KN_FUNCTION_OF(leaky_relu, LEAKY_RELU, KN_FLOATS, "p", KN_NO_VECTORS, "a > 0 ? a : a * p", "a > 0 ? g : g * p",
               a > 0 ? a : a * p, KN_PARAM(kn_leaky_relu_params, negative_slope))

/* --- smooth ------------------------------------------------------------------------------------------------------- */

KN_ELEMENTWISE_TABLE(softplus, KN_FLOATS, "a", "pq", KN_VECTORS, "a * p > q ? a : log1p(exp(a * p)) / p",
                     KN_GRADIENTS("a * p > q ? g : g * kn_sigmoid(a * p)"), a *p > q ? a : log1p(exp(a * p)) / p,
                     .backward.functions = KN_SIGMOID);
KN_WITH_PARAMS(softplus, SOFTPLUS, KN_DTYPES_FLOATING, KN_PARAM(kn_softplus_params, beta),
               KN_PARAM(kn_softplus_params, threshold))

/* x tanh(log(1 + w)) = x n / (n + 2) with w = exp(x), n = w (w + 2). Above 20 it is x in every dtype. */
#define MISH                                                                                                           \
    "static T kn_mish(T a)\n"                                                                                          \
    "{\n"                                                                                                              \
    "    const T w = exp(fmin(a, (T)20)), n = w * (w + 2);\n"                                                          \
    "    return a * (n / (n + 2));\n"                                                                                  \
    "}\n"                                                                                                              \
    "static T kn_mish_slope(T a)\n"                                                                                    \
    "{\n"                                                                                                              \
    "    const T x = fmin(a, (T)20), w = exp(x), n = w * (w + 2), m = 1 / (n + 2);\n"                                  \
    "    return m * (n + 4 * x * w * (w + 1) * m);\n"                                                                  \
    "}\n"
#define TANH_SOFTPLUS "tanh(kn_softplus(a))"
KN_FUNCTION(mish, KN_FLOATS, "kn_mish(a)", "a != a ? a : g * kn_mish_slope(a)", a *tanh(a > 30 ? a : log1p(exp(a))),
            .forward.functions = MISH, .backward.functions = MISH,
            .recorded = {"g * (" TANH_SOFTPLUS " + a * kn_sigmoid(a) * (1 - " TANH_SOFTPLUS " * " TANH_SOFTPLUS "))"})

/* x times the normal distribution's probability below x, by the error function or approximately by tanh. */
#define HALF_ROOT "(T)0.707106781186547524401"
#define DENSITY "(T)0.398942280401432677940 * exp(a * a * (T)-0.5)"
#define INNER "(T)1.595769121605730711760 * (a + (T)0.044715 * a * a * a)"
#define INNER_SLOPE "((T)1.595769121605730711760 * (1 + (T)0.134145 * a * a))"
#define GELU "#include \"pointwise/gelu.clh\"\n"
KN_ELEMENTWISE_TABLE(gelu, KN_FLOATS, "a", NULL, KN_VECTORS, "kn_gelu(a)", KN_GRADIENTS("g * kn_gelu_slope(a)"),
                     0.5 * a * erfc(-a * sqrt(0.5)), .forward.functions = GELU, .backward.functions = GELU,
                     .recorded = {"g * ((T)0.5 * erfc(-a * " HALF_ROOT ") + a * " DENSITY ")"});
KN_ELEMENTWISE_TABLE(gelu_tanh, KN_FLOATS, "a", NULL, KN_VECTORS, "kn_gelu_tanh(a)",
                     KN_GRADIENTS("g * kn_gelu_tanh_slope(a)"),
                     0.5 * a * (1 + tanh(sqrt(M_2_PI) * (a + 0.044715 * a * a * a))), .forward.functions = GELU,
                     .backward.functions = GELU,
                     .recorded = {"g * kn_sigmoid(" INNER ") * (1 + a * " INNER_SLOPE " * (1 - kn_sigmoid(" INNER
                                  ")))"});

static const kn_op gelu_tanh_backward_op;
static const kn_op gelu_tanh_op = {KN_ELEMENTWISE_FIELDS("gelu", false, true, &gelu_tanh_table),
                                   .inputs = {"x"},
                                   .dtypes = {KN_DTYPES_FLOATING},
                                   .params = KN_NO_PARAMS,
                                   .saved = {"x"},
                                   .backward_operator = &gelu_tanh_backward_op};
static const kn_op gelu_tanh_backward_op = {KN_BACKWARD_OF("gelu", &gelu_tanh_op), .inputs = {"grad", "x"},
                                            .outputs = {"grad_x"}};

static kn_status choose_gelu(kn_entry *entry)
{
    if (((const kn_gelu_params *)entry->params)->approximate == KN_GELU_TANH)
        entry->op = &gelu_tanh_op;
    (void)kn_entry_record(entry, sizeof(kn_scalar_args));
    return KN_OK;
}

static const char *const gelu_names[] = {"none", "tanh", NULL};
static const kn_op_param gelu_rows[] = {KN_PARAM(kn_gelu_params, approximate, .values = gelu_names)};
const kn_op kn_gelu_op = {KN_ELEMENTWISE_FIELDS("gelu", false, true, &gelu_table),
                          .inputs = {"x"},
                          .dtypes = {KN_DTYPES_FLOATING},
                          .params = KN_PARAMS(kn_gelu_params, gelu_rows, KN_GELU_DEFAULTS),
                          .enter = choose_gelu,
                          .saved = {"x"}};
const kn_op kn_gelu_backward_op = {KN_BACKWARD_OP(gelu), .inputs = {"grad", "x"}, .outputs = {"grad_x"}};
KN_PARAMS_FUNCTIONS(gelu, GELU)

/* --- with a gap --------------------------------------------------------------------------------------------------- */

KN_FUNCTION_OF(hardshrink, HARDSHRINK, KN_FLOATS, "p", KN_NO_VECTORS, "a >= -p && a <= p ? (T)0 : a",
               "a >= -p && a <= p ? g * 0 : g", a >= -p && a <= p ? 0 : a, KN_PARAM(kn_hardshrink_params, lambd))
KN_FUNCTION_OF(softshrink, SOFTSHRINK, KN_FLOATS, "p", KN_NO_VECTORS,
               "a > p ? a - p : a < -p ? a + p : a == a ? a * 0 : a", "a >= -p && a <= p ? g * 0 : g",
               a > p    ? a - p
               : a < -p ? a + p
                        : a * 0,
               KN_PARAM(kn_softshrink_params, lambd, .min = 0, .max = (double)INFINITY))

KN_ELEMENTWISE_TABLE(threshold, KN_NUMBERS, "a", "pq", KN_NO_VECTORS, "a <= p ? q : a",
                     KN_GRADIENTS("a <= p ? g * 0 : g"), a <= p ? q : a);
static const kn_op_param threshold_rows[] = {KN_PARAM_NAMED("threshold", kn_scalar_args, values[0]),
                                             KN_PARAM_NAMED("value", kn_scalar_args, values[1])};
const kn_op kn_threshold_op = KN_ELEMENTWISE_OP("threshold", false, true, &threshold_table, KN_DTYPES_NUMBERS,
                                                KN_PARAMS(kn_scalar_args, threshold_rows), "x");

kn_tensor *kn_threshold(kn_tensor *x, double threshold, double value)
{
    const kn_scalar_args args = {.values = {kn_scalar_nearest(threshold), kn_scalar_nearest(value)}};
    return kn_invoke(&kn_threshold_op, &args, x);
}

/* --- of two tensors ----------------------------------------------------------------------------------------------- */

KN_TWO_TENSORS(prelu, KN_FLOATS, KN_NO_VECTORS, "a > 0 ? a : a * b", "g * (a > 0 ? (T)1 : b)", "g * (a > 0 ? (T)0 : a)",
               a > 0 ? a : a * b);
KN_TWO_TENSORS(glu, KN_FLOATS, KN_VECTORS, "a * kn_sigmoid(b)", "g * kn_sigmoid(b)",
               "g * a * kn_sigmoid(b) * (1 - kn_sigmoid(b))", a / (1 + exp(-b)), .forward.functions = KN_SIGMOID,
               .backward.functions = KN_SIGMOID, .recorded = {NULL, "kn_sigmoid_backward(g * a, kn_sigmoid(b))"});

/* The weight of each channel, dimension 1, as a view that broadcasts to x. */
static kn_status prelu_enter(kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[0], *weight = entry->inputs[1];
    const int64_t channels = x->ndim < 2 ? 1 : x->shape[1];
    int64_t shape[KN_MAX_DIMS];
    char text[KN_DESCRIBE], other[KN_DESCRIBE];
    if (weight->ndim > 1 || (kn_numel(weight) != 1 && kn_numel(weight) != channels))
        return kn_fail(KN_ERR_SHAPE, "weight is %s: it must have 1 element or one for each of the %lld channels of %s",
                       kn_tensor_describe(text, sizeof text, weight), (long long)channels,
                       kn_tensor_describe(other, sizeof other, x));
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d == 1 ? kn_numel(weight) : 1;
    entry->inputs[1] = kn_reshape(entry->inputs[1], x->ndim, shape);
    return entry->inputs[1] ? KN_OK : kn_error_status();
}

const kn_op kn_prelu_op = {KN_ELEMENTWISE_FIELDS("prelu", false, true, &prelu_table), .inputs = {"x", "weight"},
                           .dtypes = {KN_DTYPES_FLOATING}, .composes = true, .enter = prelu_enter};
kn_tensor *kn_prelu(kn_tensor *x, kn_tensor *weight) { return kn_invoke(&kn_prelu_op, NULL, x, weight); }

static const kn_op halves_op =
    KN_ELEMENTWISE_OP("glu", false, true, &glu_table, KN_DTYPES_FLOATING, KN_NO_PARAMS, "a", "b");

/* Both halves of x, as views. */
static kn_status glu_enter(kn_entry *entry)
{
    kn_tensor *x = entry->inputs[0];
    int dim = 0;
    char text[KN_DESCRIBE];
    KN_TRY(kn_dim_from_front(&dim, ((const kn_dim_args *)entry->params)->dim, x->ndim));
    if (x->ndim == 0 || x->shape[dim] % 2 != 0)
        return kn_fail(KN_ERR_SHAPE, "dimension %d of %s must have an even size, to be halved", dim,
                       kn_tensor_describe(text, sizeof text, x));
    (void)kn_entry_record(entry, sizeof(kn_scalar_args));
    entry->op = &halves_op;
    entry->num_inputs = 2;
    entry->inputs[0] = kn_narrow(x, dim, 0, x->shape[dim] / 2);
    entry->inputs[1] = kn_narrow(x, dim, x->shape[dim] / 2, x->shape[dim] / 2);
    return entry->inputs[0] && entry->inputs[1] ? KN_OK : kn_error_status();
}

const kn_op kn_glu_op = {
    KN_ELEMENTWISE_FIELDS("glu", false, true, &glu_table),    .inputs = {"x"},  .dtypes = {KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_dim_args, kn_dim_rows, .dim = -1), .composes = true, .enter = glu_enter};
kn_tensor *kn_glu(kn_tensor *x, int dim) { return kn_invoke(&kn_glu_op, &(kn_dim_args){dim}, x); }
