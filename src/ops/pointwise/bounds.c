/* ops/pointwise/bounds.c - clamping to two bounds: clamp, hardtanh, relu6, and a sum with an activation. The values are
 * the same, and the gradients are 0 at the bounds; as in PyTorch, they differ where x is NaN: clamp's is 0, that of the
 * others, which follows from the result alone, passes. */
#include <koine/pointwise.h>
#include <math.h>

#include "ops/dispatch/promote.h"
#include "ops/pointwise/activation.h"
#include "ops/pointwise/compose.h"
#include "ops/pointwise/elementwise.h"

/* NaN passes through; a NaN bound has no effect, because comparisons with it are false. */
#define CUT "a < p ? p : a > q ? q : a"
#define CUT_GRADIENT "y <= p || y >= q ? (T)0 : g"
/* An infinite bound is absent. */
#define CLAMP_GRADIENT "(a > p || p - p != 0) && (a < q || q - q != 0) ? g : (T)0"

static double cut(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

/* If p > q, everything becomes q. */
KN_ELEMENTWISE_TABLE(clamp, KN_ANY, "a", "pq", KN_NO_VECTORS, "a > q ? q : a < p ? (p > q ? q : p) : a",
                     KN_GRADIENTS(CLAMP_GRADIENT), cut(a, p > q ? q : p, q), .bounds = true);
KN_ELEMENTWISE_TABLE(hardtanh, KN_NUMBERS, "a", "pq", KN_NO_VECTORS, CUT, KN_GRADIENTS(CUT_GRADIENT), cut(a, p, q),
                     .bounds = true);
static kn_status check_floating(const kn_call *call)
{
    const kn_dtype joint = kn_result_type_of(call->inputs, call->num_inputs);
    if (kn_dtype_is_floating(joint))
        return KN_OK;
    return kn_fail(KN_ERR_DTYPE,
                   "the sum is %s, but an activation needs a floating dtype; convert with kn_to_dtype first",
                   kn_dtype_name(joint));
}

KN_ELEMENTWISE_TABLE(add_activated, KN_ANY, "ab", "pq", KN_NO_VECTORS, "KN_CLAMP(a + b, p, q)",
                     KN_GRADIENTS(CUT_GRADIENT, CUT_GRADIENT), cut(a + b, p, q), .check = check_floating);

/* --- clamp, hardtanh, relu6 --------------------------------------------------------------------------------------- */

static const kn_op_param clamp_rows[] = {KN_PARAM_NAMED("min", kn_scalar_args, values[0]),
                                         KN_PARAM_NAMED("max", kn_scalar_args, values[1])};
static const kn_op_param hardtanh_rows[] = {KN_PARAM_NAMED("min_val", kn_scalar_args, values[0]),
                                            KN_PARAM_NAMED("max_val", kn_scalar_args, values[1])};

/* As in PyTorch, a bound that no number of the dtype reaches is an error. With a fraction the result is floating. */
static kn_status check_range(kn_dtype dtype, const kn_scalar *bounds)
{
    const kn_scalar low = bounds[0], high = bounds[1];
    const bool is_floating =
        kn_dtype_is_floating(dtype) || !(low.is_whole || isinf(low.real)) || !(high.is_whole || isinf(high.real));
    if (!is_floating && low.is_whole && low.whole > kn_dtype_highest(dtype))
        return kn_fail(KN_ERR_ARGUMENT, "min (%g) is greater than every %s", low.real, kn_dtype_name(dtype));
    if (!is_floating && high.is_whole && high.whole < kn_dtype_lowest(dtype))
        return kn_fail(KN_ERR_ARGUMENT, "max (%g) is less than every %s", high.real, kn_dtype_name(dtype));
    return KN_OK;
}

static kn_status clamp_enter(kn_entry *entry)
{
    const kn_scalar *bounds = ((const kn_scalar_args *)entry->params)->values;
    if (!isnan(bounds[0].real) && !isnan(bounds[1].real))
        return check_range(entry->inputs[0]->dtype, bounds);
    return kn_fail(KN_ERR_ARGUMENT, "a bound is NaN (min %g, max %g); omit a bound that is not wanted", bounds[0].real,
                   bounds[1].real);
}

static kn_status hardtanh_enter(kn_entry *entry)
{
    const kn_scalar *bounds = ((const kn_scalar_args *)entry->params)->values;
    if (bounds[0].real <= bounds[1].real)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "min_val (%g) must not be greater than max_val (%g)", bounds[0].real,
                   bounds[1].real);
}

static kn_status relu6_enter(kn_entry *entry)
{
    kn_scalar_args *own = kn_entry_record(entry, sizeof *own);
    own->values[1] = kn_scalar_int(6);
    own->values[0] = kn_scalar_int(0);
    return KN_OK;
}

#define BOUNDED(op_name, table, dtypes_, params_, enter_)                                                              \
    {                                                                                                                  \
        KN_ELEMENTWISE_FIELDS(op_name, false, true, table), .inputs = {"x"}, .dtypes = {dtypes_}, .params = params_,   \
                                                            .enter = enter_                                            \
    }
#define INFINITE                                                                                                       \
    {                                                                                                                  \
        false, 0, (double)INFINITY                                                                                     \
    }
const kn_op kn_clamp_op =
    BOUNDED("clamp", &clamp_table, KN_DTYPES_ALL,
            KN_PARAMS(kn_scalar_args, clamp_rows, {{false, 0, -(double)INFINITY}, INFINITE}), clamp_enter);
const kn_op kn_hardtanh_op =
    BOUNDED("hardtanh", &hardtanh_table, KN_DTYPES_NUMBERS,
            KN_PARAMS(kn_scalar_args, hardtanh_rows, {{true, -1, -1}, {true, 1, 1}}), hardtanh_enter);
const kn_op kn_relu6_op = BOUNDED("relu6", &hardtanh_table, KN_DTYPES_NUMBERS, KN_NO_PARAMS, relu6_enter);

kn_clamp_params kn_clamp_params_init(void) { return (kn_clamp_params){KN_CLAMP_DEFAULTS}; }

static kn_tensor *bounded(const kn_op *op, kn_tensor *x, double low, double high)
{
    const kn_scalar_args params = {.values = {kn_scalar_nearest(low), kn_scalar_nearest(high)}};
    return kn_invoke(op, &params, x);
}

kn_tensor *kn_clamp_with(kn_tensor *x, const kn_clamp_params *params)
{
    params = params ? params : &(kn_clamp_params){KN_CLAMP_DEFAULTS};
    return bounded(&kn_clamp_op, x, params->min, params->max);
}

kn_tensor *kn_hardtanh(kn_tensor *x, double min_val, double max_val)
{
    return bounded(&kn_hardtanh_op, x, min_val, max_val);
}

kn_tensor *kn_relu6(kn_tensor *x) { return kn_invoke(&kn_relu6_op, NULL, x); }

/* --- activations of other operations' results --------------------------------------------------------------------- */

static kn_pointwise_code cut_gradient = {
    .name = "activation_backward", .inputs = "gy", .numbers = "pq", .values = {CUT_GRADIENT}};

kn_tensor *kn_activation_gradient(const kn_grad_call *grad, kn_activation activation, kn_tensor *y)
{
    kn_tensor *g = grad->grad_outputs[0], *result;
    const kn_bounds bounds = kn_bounds_of(activation);
    const kn_scalar numbers[2] = {kn_scalar_real(bounds.low), kn_scalar_real(bounds.high)};

    if (activation == KN_ACTIVATION_NONE)
        return g;
    if (!y)
        return kn_fail(KN_ERR_ARGUMENT, "with an activation the backward pass needs the result"), NULL;
    result = kn_empty_like(g);
    if (!result || kn_elements(grad->stream, &cut_gradient, grad->op->name, kn_compute_type(y->dtype), result,
                               (const kn_tensor *[]){g, y}, 2, numbers) != KN_OK)
        return NULL;
    return result;
}

kn_tensor *kn_activation_gradient_recorded(kn_tensor *gradient, kn_activation activation, kn_tensor *y)
{
    const kn_bounds bounds = kn_bounds_of(activation);
    const kn_composed operands[] = {
        {.tensor = gradient}, {.tensor = y}, {.number = bounds.low}, {.number = bounds.high}};
    return activation == KN_ACTIVATION_NONE ? gradient : kn_compose(CUT_GRADIENT, "gypq", operands);
}

static kn_status add_activated_enter(kn_entry *entry)
{
    const kn_bounds bounds = kn_bounds_of(((const kn_activation_args *)entry->params)->activation);
    kn_scalar_args *own = kn_entry_record(entry, sizeof *own);
    own->values[0] = kn_scalar_real(bounds.low);
    own->values[1] = kn_scalar_real(bounds.high);
    return KN_OK;
}

const char *const kn_activation_names[] = {"none", "relu", "relu6", NULL};
static const kn_op_param activation_row[] = {KN_PARAM(kn_activation_args, activation, .values = kn_activation_names)};
const kn_op kn_add_activated_op = {KN_ELEMENTWISE_FIELDS("add_activated", false, true, &add_activated_table),
                                   .inputs = {"a", "b"}, .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_ALL},
                                   .params = KN_PARAMS(kn_activation_args, activation_row),
                                   .enter = add_activated_enter};

kn_tensor *kn_add_activated(kn_tensor *a, kn_tensor *b, kn_activation activation)
{
    return kn_invoke(&kn_add_activated_op, &(kn_activation_args){activation}, a, b);
}
