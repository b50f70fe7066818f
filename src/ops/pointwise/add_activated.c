/* ops/pointwise/add_activated.c - activation(a + b) in one pass: the end of a residual block. */
#include <koine/ops.h>

#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/activation.h"
#include "ops/pointwise/strided.h"

typedef struct kn_add_activated_params {
    kn_activation activation;
} kn_add_activated_params;

static kn_activation activation_of(const kn_add_activated_params *params) { return params->activation; }

static kn_status shape(kn_call *call)
{
    KN_TRY(kn_call_check_floating(call, 0));
    return kn_broadcast_output(call, call->inputs[0]->dtype);
}

static kn_status forward(kn_call *call)
{
    char packed[16];
    const kn_tensor *a = call->inputs[0];
    const kn_arg parameter = kn_activation_argument(packed, a->dtype, activation_of(call->params));
    const kn_strided_launch launch = {.source = "pointwise/clamp.cl",
                                      .kernel = "clamp_sum",
                                      .operation = call->op->name,
                                      .dtype = a->dtype,
                                      .output = call->outputs[0],
                                      .inputs = {a, call->inputs[1]},
                                      .parameter = &parameter};
    if (call->needs_grad)
        KN_TRY(kn_call_save(call, call->outputs[0]));
    return kn_launch_strided(call->stream, &launch);
}

static kn_status backward(kn_grad_call *grad)
{
    kn_tensor *gradient = kn_activation_gradient(grad, activation_of(grad->params), grad->saved[0]);
    if (!gradient)
        return kn_error_status();
    for (int i = 0; i < 2; i++)
        if (grad->needs[i])
            KN_TRY(kn_give_gradient(grad, i, gradient));
    return KN_OK;
}

static kn_status reference(const kn_call *call)
{
    const kn_tensor *a = call->inputs[0], *b = call->inputs[1];
    kn_tensor *y = call->outputs[0];
    const kn_cut cut = kn_cut_of(activation_of(call->params));
    for (int64_t i = 0; i < kn_numel(y); i++)
        kn_reference_set(y, i,
                         kn_cut_off(cut, kn_reference_get(a, kn_reference_index(a, y, i)) +
                                             kn_reference_get(b, kn_reference_index(b, y, i))));
    return KN_OK;
}

static const kn_op add_activated_op = {.name = "add_activated",
                                       .min_inputs = 2,
                                       .max_inputs = 2,
                                       .params_size = sizeof(kn_add_activated_params),
                                       .shape = shape,
                                       .forward = forward,
                                       .backward = backward,
                                       .reference = reference};

kn_tensor *kn_add_activated(kn_tensor *a, kn_tensor *b, kn_activation activation)
{
    const kn_add_activated_params params = {.activation = activation};
    if (!kn_argument_given(add_activated_op.name, "a", a) || !kn_argument_given(add_activated_op.name, "b", b))
        return NULL;
    if (kn_activation_check(activation) != KN_OK) {
        kn_error_prefix("%s", add_activated_op.name);
        return kn_stick();
    }
    const kn_dtype result = kn_result_type(a, b);
    return kn_apply_jointly(&add_activated_op, (kn_tensor *const[]){a, b}, 2, &params, result, result);
}
