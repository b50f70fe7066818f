/* ops/pointwise/clamp.c - values held between two bounds: clamp, hardtanh, relu6. The values are the same; the
 * gradients differ where x is a bound or NaN, as PyTorch's do. */
#include <koine/functional.h>
#include <koine/ops.h>
#include <string.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/strided.h"

typedef struct kn_bounds {
    double low, high;
} kn_bounds;

static kn_status number_output(kn_call *call)
{
    if (call->inputs[0]->dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "not defined for bool tensors; convert with kn_to_dtype first");
    return kn_broadcast_output(call, call->inputs[0]->dtype);
}

/* The nearest number that `dtype` holds: an absent bound is an infinity. */
static double held_by(kn_dtype dtype, double value)
{
    const double low = dtype == KN_U8 ? 0 : dtype == KN_I32 ? INT32_MIN : (double)INT64_MIN;
    /* INT64_MAX is no double: the largest one below it */
    const double high = dtype == KN_U8 ? UINT8_MAX : dtype == KN_I32 ? INT32_MAX : 9223372036854774784.0;

    return kn_dtype_is_floating(dtype) ? value : fmin(fmax(value, low), high);
}

/* The kernels' `bounds`: two elements side by side. */
static kn_arg bounds_argument(char packed[16], kn_dtype dtype, double low, double high)
{
    const size_t size = kn_dtype_size(dtype);
    const kn_arg bounds[2] = {kn_arg_element(dtype, held_by(dtype, low)), kn_arg_element(dtype, held_by(dtype, high))};

    memcpy(packed, &bounds[0].value, size);
    memcpy(packed + size, &bounds[1].value, size);
    return kn_arg_struct(packed, 2 * size);
}

static kn_status launch_forward(kn_call *call)
{
    const kn_bounds *bounds = call->params;
    const kn_dtype dtype = call->inputs[0]->dtype;
    char packed[16];
    /* With the bounds crossed everything becomes the upper one. */
    const kn_arg parameter = bounds_argument(packed, dtype, fmin(bounds->low, bounds->high), bounds->high);
    const kn_strided_launch launch = {.source = "pointwise/clamp.cl",
                                      .kernel = "clamp_between",
                                      .operation = call->op->name,
                                      .dtype = dtype,
                                      .output = call->outputs[0],
                                      .inputs = {call->inputs[0]},
                                      .parameter = &parameter};
    return kn_launch_strided(call->stream, &launch);
}

static kn_status launch_backward(kn_grad_call *grad, const char *kernel)
{
    const kn_bounds *bounds = grad->params;
    char packed[16];
    const kn_arg parameter = bounds_argument(packed, grad->input[0].dtype, bounds->low, bounds->high);
    const kn_strided_launch launch = {.source = "pointwise/clamp.cl",
                                      .kernel = kernel,
                                      .operation = grad->op->name,
                                      .dtype = grad->input[0].dtype,
                                      .output = grad->grad_inputs[0] = kn_empty_like(grad->grad_outputs[0]),
                                      .inputs = {grad->grad_outputs[0], grad->saved[0]},
                                      .parameter = &parameter};
    return launch.output ? kn_launch_strided(grad->stream, &launch) : kn_error_status();
}

static kn_status reference(const kn_call *call)
{
    const kn_bounds *bounds = call->params;
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++) {
        const double x = kn_reference_get(call->inputs[0], i);
        const double above = x < bounds->low ? bounds->low : x;
        kn_reference_set(call->outputs[0], i, above > bounds->high ? bounds->high : above);
    }
    return KN_OK;
}

/* --- clamp: the gradient is that of where(low <= x <= high, x, bound) ------------------------------------------- */

static kn_status clamp_forward(kn_call *call)
{
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->inputs[0]));
    return launch_forward(call);
}

static kn_status clamp_backward(kn_grad_call *grad) { return launch_backward(grad, "clamp_backward"); }

static const kn_op clamp_op = {.name = "clamp",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .params_size = sizeof(kn_bounds),
                               .shape = number_output,
                               .forward = clamp_forward,
                               .backward = clamp_backward,
                               .reference = reference};

/* The dtype as if each bound that is there were an operand. */
static kn_dtype with_bound(kn_dtype dtype, double bound)
{
    return isinf(bound) ? dtype : kn_result_type_scalar(dtype, bound);
}

kn_clamp_params kn_clamp_params_init(void) { return (kn_clamp_params){KN_CLAMP_DEFAULTS}; }

kn_tensor *kn_clamp_with(kn_tensor *x, const kn_clamp_params *params)
{
    params = params ? params : &(kn_clamp_params){KN_CLAMP_DEFAULTS};
    const kn_bounds bounds = {.low = params->min, .high = params->max};
    kn_dtype result;

    if (!kn_argument_given("clamp", "x", x))
        return NULL;
    if (isnan(bounds.low) || isnan(bounds.high))
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "clamp: a bound is NaN (min %g, max %g); leave out the bound that is not wanted",
                            bounds.low, bounds.high);
    result = with_bound(with_bound(x->dtype, bounds.low), bounds.high);
    return kn_apply_as(&clamp_op, &x, 1, &bounds, kn_compute_type(result), result);
}

/* --- hardtanh, relu6: the gradient is 0 at the bounds too, so that the output tells where it passes -------------- */

static kn_status hardtanh_forward(kn_call *call)
{
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[0]));
    return launch_forward(call);
}

static kn_status hardtanh_backward(kn_grad_call *grad) { return launch_backward(grad, "hardtanh_backward"); }

static const kn_op hardtanh_op = {.name = "hardtanh",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .params_size = sizeof(kn_bounds),
                                  .shape = number_output,
                                  .forward = hardtanh_forward,
                                  .backward = hardtanh_backward,
                                  .reference = reference};

static const kn_op relu6_op = {.name = "relu6",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .params_size = sizeof(kn_bounds),
                               .shape = number_output,
                               .forward = hardtanh_forward,
                               .backward = hardtanh_backward,
                               .reference = reference};

static kn_tensor *hardtanh(const kn_op *op, kn_tensor *x, double low, double high)
{
    const kn_bounds bounds = {.low = low, .high = high};
    kn_dtype result;

    if (!kn_argument_given(op->name, "x", x))
        return NULL;
    if (x->dtype == KN_BOOL) /* before a bound makes it int64 */
        return kn_apply(op, &bounds, x);
    result = with_bound(with_bound(x->dtype, low), high);
    return kn_apply_as(op, &x, 1, &bounds, kn_compute_type(result), result);
}

kn_tensor *kn_hardtanh(kn_tensor *x, double min_val, double max_val)
{
    if (!(min_val <= max_val))
        return kn_fail_null(KN_ERR_ARGUMENT, "hardtanh: min_val %g is not at most max_val %g", min_val, max_val);
    return hardtanh(&hardtanh_op, x, min_val, max_val);
}

kn_tensor *kn_relu6(kn_tensor *x) { return hardtanh(&relu6_op, x, 0, 6); }
