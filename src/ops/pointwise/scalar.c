/* ops/pointwise/scalar.c - a tensor and a number: add_scalar, mul_scalar. */
#include <koine/ops.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/strided.h"

typedef struct kn_scalar_params {
    double value;
} kn_scalar_params;

static kn_status same_output(kn_call *call) { return kn_broadcast_output(call, call->inputs[0]->dtype); }

static kn_status forward(kn_call *call)
{
    const kn_scalar_params *params = call->params;
    const kn_arg value = kn_arg_element(call->inputs[0]->dtype, params->value);
    const kn_strided_launch launch = {.source = "pointwise/scalar.cl",
                                      .kernel = call->op->name,
                                      .operation = call->op->name,
                                      .dtype = call->inputs[0]->dtype,
                                      .output = call->outputs[0],
                                      .inputs = {call->inputs[0]},
                                      .parameter = &value};
    return kn_launch_strided(call->stream, &launch);
}

static kn_status add_scalar_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_retain(grad->grad_outputs[0]);
    return kn_scope_adopt(grad->grad_inputs[0]) ? KN_OK : kn_error_status();
}

static kn_status add_scalar_reference(const kn_call *call)
{
    const double value = ((const kn_scalar_params *)call->params)->value;
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i, kn_reference_get(call->inputs[0], i) + value);
    return KN_OK;
}

static kn_status mul_scalar_backward(kn_grad_call *grad)
{
    const kn_scalar_params *params = grad->params;
    grad->grad_inputs[0] = kn_mul_scalar(grad->grad_outputs[0], params->value);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status mul_scalar_reference(const kn_call *call)
{
    const double value = ((const kn_scalar_params *)call->params)->value;
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i, kn_reference_get(call->inputs[0], i) * value);
    return KN_OK;
}

static const kn_op add_scalar_op = {.name = "add_scalar",
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .params_size = sizeof(kn_scalar_params),
                                    .shape = same_output,
                                    .forward = forward,
                                    .backward = add_scalar_backward,
                                    .reference = add_scalar_reference};
static const kn_op mul_scalar_op = {.name = "mul_scalar",
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .params_size = sizeof(kn_scalar_params),
                                    .shape = same_output,
                                    .forward = forward,
                                    .backward = mul_scalar_backward,
                                    .reference = mul_scalar_reference};

static kn_tensor *with_scalar(const kn_op *op, kn_tensor *a, double b)
{
    const kn_scalar_params params = {.value = b};
    kn_dtype result;

    if (!kn_argument_given(op->name, "a", a))
        return NULL;
    result = kn_result_type_scalar(a->dtype, b);
    return kn_apply_as(op, &a, 1, &params, kn_compute_type(result), result);
}

kn_tensor *kn_add_scalar(kn_tensor *a, double b) { return with_scalar(&add_scalar_op, a, b); }
kn_tensor *kn_mul_scalar(kn_tensor *a, double b) { return with_scalar(&mul_scalar_op, a, b); }
