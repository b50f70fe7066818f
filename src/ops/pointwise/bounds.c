/* ops/pointwise/bounds.c - values held between two bounds: clamp, hardtanh, relu6, and a sum with an activation. The
 * values are the same; the gradients differ where x is a bound or NaN, as PyTorch's do: clamp's is that of where(p <= x
 * <= q, x, bound); the others are 0 at the bounds too, so that the result tells where they pass. */
#include <koine/functional.h>
#include <koine/ops.h>
#include <math.h>

#include "ops/dispatch/promote.h"
#include "ops/pointwise/activation.h"
#include "ops/pointwise/elementwise.h"

/* NaN passes; a bound that is NaN is none, for no comparison with it holds. */
#define CUT "a < p ? p : a > q ? q : a"
#define CUT_GRADIENT "y <= p || y >= q ? (T)0 : g"

static double cut(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

/* With the bounds crossed everything becomes the upper one. */
KN_ELEMENTWISE_TABLE(clamp, KN_NUMBERS, "a", "pq", KN_NO_VECTORS, "a > q ? q : a < p ? (p > q ? q : p) : a",
                     KN_GRADIENTS("a >= p && a <= q ? g : (T)0"), cut(a, p > q ? q : p, q), .bounds = true);
KN_ELEMENTWISE_TABLE(hardtanh, KN_NUMBERS, "a", "pq", KN_NO_VECTORS, CUT, KN_GRADIENTS(CUT_GRADIENT), cut(a, p, q),
                     .bounds = true);
static kn_status check_floating(const kn_call *call)
{
    const kn_dtype joint = kn_result_type_of(call->inputs, call->num_inputs);
    if (kn_dtype_is_floating(joint))
        return KN_OK;
    return kn_fail(KN_ERR_DTYPE, "the sum is %s: an activation takes a floating dtype; convert with kn_to_dtype first",
                   kn_dtype_name(joint));
}

KN_ELEMENTWISE_TABLE(add_activated, KN_ANY, "ab", "pq", KN_NO_VECTORS, "KN_CUT(a + b, p, q)",
                     KN_GRADIENTS(CUT_GRADIENT, CUT_GRADIENT), cut(a + b, p, q), .check = check_floating);

const kn_op kn_clamp_op = KN_ELEMENTWISE_OP("clamp", false, true, &clamp_table, "x");
const kn_op kn_hardtanh_op = KN_ELEMENTWISE_OP("hardtanh", false, true, &hardtanh_table, "x");
const kn_op kn_relu6_op = KN_ELEMENTWISE_OP("relu6", false, true, &hardtanh_table, "x");
const kn_op kn_add_activated_op = KN_ELEMENTWISE_OP("add_activated", false, true, &add_activated_table, "a", "b");

static kn_tensor *bounded(const kn_op *op, kn_tensor *x, double low, double high)
{
    const kn_number bounds[2] = {kn_real_number(low), kn_real_number(high)};
    return kn_elementwise_apply(op, &x, 1, bounds);
}

/* --- clamp, hardtanh, relu6 --------------------------------------------------------------------------------------- */

kn_clamp_params kn_clamp_params_init(void) { return (kn_clamp_params){KN_CLAMP_DEFAULTS}; }

kn_tensor *kn_clamp_with(kn_tensor *x, const kn_clamp_params *params)
{
    params = params ? params : &(kn_clamp_params){KN_CLAMP_DEFAULTS};
    if (x && (isnan(params->min) || isnan(params->max)))
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "clamp: a bound is NaN (min %g, max %g); leave out the bound that is not wanted",
                            params->min, params->max);
    return bounded(&kn_clamp_op, x, params->min, params->max);
}

kn_tensor *kn_hardtanh(kn_tensor *x, double min_val, double max_val)
{
    if (!(min_val <= max_val))
        return kn_fail_null(KN_ERR_ARGUMENT, "hardtanh: min_val %g is not at most max_val %g", min_val, max_val);
    return bounded(&kn_hardtanh_op, x, min_val, max_val);
}

kn_tensor *kn_relu6(kn_tensor *x) { return bounded(&kn_relu6_op, x, 0, 6); }

/* --- activations of other operations' results --------------------------------------------------------------------- */

kn_status kn_activation_check(kn_activation activation)
{
    if ((unsigned)activation <= KN_ACTIVATION_RELU6)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "%d is no kn_activation", (int)activation);
}

static kn_pointwise_code cut_gradient = {
    .name = "activation_backward", .inputs = "gy", .numbers = "pq", .values = {CUT_GRADIENT}};

kn_tensor *kn_activation_gradient(const kn_grad_call *grad, kn_activation activation, kn_tensor *y)
{
    kn_tensor *g = grad->grad_outputs[0], *result;
    const kn_cut bounds = kn_cut_of(activation);
    const kn_number numbers[2] = {kn_real_number(bounds.low), kn_real_number(bounds.high)};

    if (activation == KN_ACTIVATION_NONE)
        return g;
    result = kn_empty_like(g);
    if (!result || kn_elements(grad->stream, &cut_gradient, grad->op->name, kn_compute_type(y->dtype), result,
                               (const kn_tensor *[]){g, y}, 2, numbers) != KN_OK)
        return NULL;
    return result;
}

kn_tensor *kn_add_activated(kn_tensor *a, kn_tensor *b, kn_activation activation)
{
    if (a && b && kn_activation_check(activation) != KN_OK) {
        kn_error_prefix("%s", kn_add_activated_op.name);
        return kn_stick();
    }
    const kn_cut bounds = kn_cut_of(activation);
    const kn_number numbers[2] = {kn_real_number(bounds.low), kn_real_number(bounds.high)};
    return kn_elementwise_apply(&kn_add_activated_op, (kn_tensor *[]){a, b}, 2, numbers);
}
