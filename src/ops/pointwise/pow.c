/* ops/pointwise/pow.c - powers: of two tensors, and of a tensor and a number. */
#include <koine/ops.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/strided.h"

static kn_status power_output(kn_call *call)
{
    if (call->inputs[0]->dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "not defined for bool tensors; convert with kn_to_dtype first");
    return kn_broadcast_output(call, call->inputs[0]->dtype);
}

/* --- tensor ^ tensor --------------------------------------------------------------------------------------------- */

/* One operand may be f64 without dimensions, which does not widen an f32 one: the power is that of its f32 value, but
 * the gradients are of what it is. */
static bool is_mixed(kn_dtype a, kn_dtype b) { return (a == KN_F32 && b == KN_F64) || (a == KN_F64 && b == KN_F32); }

static kn_status pow_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0], *b = call->inputs[1];
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    if (!is_mixed(a->dtype, b->dtype))
        return power_output(call);
    KN_TRY(kn_broadcast_shapes(&ndim, shape, a, b));
    return kn_call_output(call, KN_F32, ndim, shape);
}

static kn_status run_power(kn_call *call, const kn_tensor *a, const kn_tensor *b)
{
    const kn_dtype dtype = call->spec[0].dtype;
    const kn_strided_launch launch = {.source = kn_dtype_is_floating(dtype) ? "pointwise/binary_real.cl"
                                                                            : "pointwise/integer_power.cl",
                                      .kernel = "power",
                                      .operation = "pow",
                                      .dtype = dtype,
                                      .output = call->outputs[0],
                                      .inputs = {a, b}};
    return kn_launch_strided(call->stream, &launch);
}

static kn_status pow_forward(kn_call *call)
{
    kn_tensor *a = call->inputs[0], *b = call->inputs[1], *narrow = NULL;
    kn_status status;

    if (call->needs_grad) {
        KN_TRY(kn_call_save(call, a));
        KN_TRY(kn_call_save(call, b));
    }
    if (!is_mixed(a->dtype, b->dtype))
        return run_power(call, a, b);
    KN_TRY(kn_tensor_cast(&narrow, a->dtype == KN_F64 ? a : b, KN_F32, a->storage->device));
    status = a->dtype == KN_F64 ? run_power(call, narrow, b) : run_power(call, a, narrow);
    kn_release(narrow);
    return status;
}

/* d(a^b)/da = b a^(b-1), 0 for b = 0; d(a^b)/db = a^b log a, 0 for a = 0 and b >= 0. */
static kn_status pow_backward(kn_grad_call *grad)
{
    static const char *const kernels[2] = {"power_backward_base", "power_backward_exponent"};

    const kn_dtype dtype = kn_promote_types(grad->input[0].dtype, grad->input[1].dtype);
    kn_tensor *gradient = kn_to_dtype(grad->grad_outputs[0], dtype), *a = kn_to_dtype(grad->saved[0], dtype),
              *b = kn_to_dtype(grad->saved[1], dtype);

    if (!gradient || !a || !b)
        return kn_error_status();
    for (int i = 0; i < 2; i++) {
        kn_strided_launch launch = {.source = "pointwise/binary_real.cl",
                                    .kernel = kernels[i],
                                    .operation = "pow",
                                    .dtype = dtype,
                                    .inputs = {gradient, a, b}};
        if (!grad->needs[i])
            continue;
        launch.output = kn_empty_like(gradient);
        if (!launch.output)
            return kn_error_status();
        KN_TRY(kn_launch_strided(grad->stream, &launch));
        KN_TRY(kn_give_gradient(grad, i, launch.output));
    }
    return KN_OK;
}

/* pow() itself, but for whole numbers truncated towards 0, as the kernel's negative powers are. */
static kn_status pow_reference(const kn_call *call) { return kn_reference_binary(call, pow); }

static const kn_op pow_op = {.name = "pow",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .shape = pow_shape,
                             .forward = pow_forward,
                             .backward = pow_backward,
                             .reference = pow_reference};

kn_tensor *kn_pow(kn_tensor *a, kn_tensor *b)
{
    kn_dtype result;

    if (!kn_argument_given("pow", "a", a) || !kn_argument_given("pow", "b", b))
        return NULL;
    result = kn_result_type(a, b);
    if (result == KN_F32 && is_mixed(a->dtype, b->dtype))
        return kn_apply(&pow_op, NULL, a, b);
    return kn_apply_jointly(&pow_op, (kn_tensor *[]){a, b}, 2, NULL, result, result);
}

/* --- tensor ^ number --------------------------------------------------------------------------------------------- */

typedef struct kn_pow_scalar_params {
    double exponent;
} kn_pow_scalar_params;

static kn_status pow_scalar_shape(kn_call *call)
{
    const kn_pow_scalar_params *params = call->params;

    if (!kn_dtype_is_floating(call->inputs[0]->dtype) && params->exponent < 0)
        return kn_fail(KN_ERR_ARGUMENT,
                       "whole numbers cannot be raised to the negative power %g; convert to a floating dtype first",
                       params->exponent);
    return power_output(call);
}

/* The kernel for an exponent; squares and the like are far cheaper than pow(). */
static const char *special_kernel(double exponent)
{
    return exponent == 2      ? "square"
           : exponent == 3    ? "cube"
           : exponent == -1   ? "reciprocal"
           : exponent == 0.5  ? "root"
           : exponent == -0.5 ? "reciprocal_root"
                              : NULL;
}

static kn_status pow_scalar_forward(kn_call *call)
{
    const kn_pow_scalar_params *params = call->params;
    const kn_dtype dtype = call->inputs[0]->dtype;
    const bool real = kn_dtype_is_floating(dtype);
    const char *special = real ? special_kernel(params->exponent) : NULL;
    const kn_arg exponent = kn_arg_element(dtype, params->exponent);
    const kn_strided_launch launch = {.source = real ? "pointwise/power_scalar.cl" : "pointwise/integer_power.cl",
                                      .kernel = special ? special : "power_scalar",
                                      .operation = "pow_scalar",
                                      .dtype = dtype,
                                      .output = call->outputs[0],
                                      .inputs = {call->inputs[0]},
                                      .parameter = special ? NULL : &exponent};
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->inputs[0]));
    return kn_launch_strided(call->stream, &launch);
}

static kn_status pow_scalar_backward(kn_grad_call *grad)
{
    const kn_pow_scalar_params *params = grad->params;
    const bool square = params->exponent == 2;
    const kn_arg exponent = kn_arg_element(grad->input[0].dtype, params->exponent);
    const kn_strided_launch launch = {.source = "pointwise/power_scalar.cl",
                                      .kernel = square ? "square_backward" : "power_scalar_backward",
                                      .operation = "pow_scalar",
                                      .dtype = grad->input[0].dtype,
                                      .output = grad->grad_inputs[0] = kn_empty_like(grad->grad_outputs[0]),
                                      .inputs = {grad->grad_outputs[0], grad->saved[0]},
                                      .parameter = square ? NULL : &exponent};
    return launch.output ? kn_launch_strided(grad->stream, &launch) : kn_error_status();
}

static kn_status pow_scalar_reference(const kn_call *call)
{
    const kn_pow_scalar_params *params = call->params;
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i, pow(kn_reference_get(call->inputs[0], i), params->exponent));
    return KN_OK;
}

static const kn_op pow_scalar_op = {.name = "pow_scalar",
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .params_size = sizeof(kn_pow_scalar_params),
                                    .shape = pow_scalar_shape,
                                    .forward = pow_scalar_forward,
                                    .backward = pow_scalar_backward,
                                    .reference = pow_scalar_reference};

kn_tensor *kn_pow_scalar(kn_tensor *a, double b)
{
    const kn_pow_scalar_params params = {.exponent = b};
    kn_dtype result;

    if (!kn_argument_given("pow_scalar", "a", a))
        return NULL;
    result = kn_result_type_scalar(a->dtype, b);
    return kn_apply_as(&pow_scalar_op, &a, 1, &params, kn_compute_type(result), result);
}
