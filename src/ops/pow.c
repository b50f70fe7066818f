/* ops/pow.c - powers: of two tensors, and of a tensor and a number. */
#include <koine/ops.h>

#include "ops/promote.h"
#include "ops/reference.h"
#include "ops/strided.h"

static kn_status power_output(kn_call *call)
{
    if (call->inputs[0]->dtype == KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "not defined for bool tensors; convert with kn_to_dtype first");
    return kn_broadcast_output(call, call->inputs[0]->dtype);
}

/* --- tensor ^ tensor --------------------------------------------------------------------------------------------- */

static kn_status pow_forward(kn_call *call)
{
    const kn_dtype dtype = call->inputs[0]->dtype;
    const kn_strided_launch launch = {.source = kn_dtype_is_floating(dtype) ? "elementwise/binary_real.cl"
                                                                            : "elementwise/integer_power.cl",
                                      .kernel = "power",
                                      .operation = "pow",
                                      .dtype = dtype,
                                      .output = call->outputs[0],
                                      .inputs = {call->inputs[0], call->inputs[1]}};
    if (call->needs_grad) {
        KN_TRY(kn_call_save(call, call->inputs[0]));
        KN_TRY(kn_call_save(call, call->inputs[1]));
    }
    return kn_launch_strided(call->stream, &launch);
}

/* d(a^b)/da = b a^(b-1), 0 for b = 0; d(a^b)/db = a^b log a, 0 for a = 0 and b >= 0. */
static kn_status pow_backward(kn_grad_call *grad)
{
    static const char *const kernels[2] = {"power_backward_base", "power_backward_exponent"};

    for (int i = 0; i < 2; i++) {
        kn_strided_launch launch = {.source = "elementwise/binary_real.cl",
                                    .kernel = kernels[i],
                                    .operation = "pow",
                                    .dtype = grad->input[0].dtype,
                                    .inputs = {grad->grad_outputs[0], grad->saved[0], grad->saved[1]}};
        if (!grad->needs[i])
            continue;
        launch.output = kn_empty_like(grad->grad_outputs[0]);
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
                             .shape = power_output,
                             .forward = pow_forward,
                             .backward = pow_backward,
                             .reference = pow_reference};

kn_tensor *kn_pow(kn_tensor *a, kn_tensor *b)
{
    kn_dtype result;

    if (!kn_argument_given("pow", "a", a) || !kn_argument_given("pow", "b", b))
        return NULL;
    result = kn_result_type(a, b);
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
    const kn_strided_launch launch = {.source = real ? "elementwise/power_scalar.cl" : "elementwise/integer_power.cl",
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
    const kn_strided_launch launch = {.source = "elementwise/power_scalar.cl",
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
