/* ops/user/jit_run.c - running a user's function: its shape, the choice of a build, and the two passes. */
#include <koine/tensor.h>
#include <string.h>

#include "ops/dispatch/promote.h"
#include "ops/pointwise/elementwise.h"
#include "ops/shape/broadcast.h"
#include "ops/user/jit.h"

kn_status kn_jit_check_dtype(const kn_call *call)
{
    if (kn_result_type_of(call->inputs, call->num_inputs) != KN_F64 || kn_tensor_limits(call->inputs[0])->has_f64)
        return KN_OK;
    return kn_fail(KN_ERR_DTYPE, "%s has no double arithmetic: convert the inputs to float32",
                   kn_device_string(call->inputs[0]->storage->device));
}

kn_status kn_jit_shape(kn_call *call)
{
    const kn_dtype joint = kn_result_type_of(call->inputs, call->num_inputs);
    const int outputs = ((const kn_jit_record *)call->params)->jit->num_outputs;
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    KN_TRY(kn_jit_check_dtype(call));
    KN_TRY(kn_broadcast_all(&ndim, shape, call->inputs, call->num_inputs));
    for (int i = 0; i < outputs; i++)
        KN_TRY(kn_call_output(call, joint, ndim, shape));
    return KN_OK;
}

/* --- which build -------------------------------------------------------------------------------------------------- */

static bool builds(kn_device *device, kn_pointwise_code *code, kn_dtype dtype)
{
    KN_PRESERVE_ERROR;
    return kn_pointwise_build(device, code, dtype) == KN_OK;
}

/* On CPU devices exp, tanh and the like are several times faster on explicit vectors, and compilers do not vectorise
 * scalar function calls. Many functions also work on vectors; a trial build shows whether this one does. It must build
 * for elements first, so that the accepted code does not depend on the device. */
static kn_status choose_code(kn_pointwise_code **code, kn_jit_function *f, kn_device *device, kn_dtype dtype)
{
    *code = &f->elements;
    if (!kn_device_limits(device)->is_cpu || !f->signature.suits_vectors || !kn_dtype_is_floating(dtype))
        return KN_OK;
    atomic_uchar *known = &f->lanes[kn_device_slot(device)][dtype == KN_F64];
    if (atomic_load(known) == KN_JIT_LANES_UNKNOWN) {
        KN_TRY(kn_pointwise_build(device, &f->elements, dtype));
        atomic_store(known, builds(device, &f->vectors, dtype) ? KN_JIT_LANES_YES : KN_JIT_LANES_NO);
    }
    if (atomic_load(known) == KN_JIT_LANES_YES)
        *code = &f->vectors;
    return KN_OK;
}

static kn_status run(kn_stream *stream, kn_jit_function *f, kn_pointwise_problem *p, const double *scalars)
{
    KN_TRY(choose_code(&p->code, f, kn_stream_device(stream), p->compute));
    for (int i = 0; i < KN_JIT_MAX_SCALARS; i++)
        p->numbers[i] = kn_scalar_real(scalars[i]);
    return kn_pointwise_run(stream, p);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Inputs promoted to float16 or bfloat16 are rounded before the operation, as in PyTorch. */
static void add_inputs(kn_pointwise_problem *p, kn_tensor *const *inputs, int count, kn_dtype joint)
{
    for (int i = 0; i < count; i++) {
        kn_operand *operand = &p->inputs[p->num_inputs++];
        *operand = kn_operand_of(inputs[i], p->ndim, p->shape);
        if (kn_dtype_is_reduced(joint) && operand->dtype != joint)
            operand->rounded = joint;
    }
}

static kn_pointwise_problem problem_like(const kn_tensor *like, const char *operation, int outputs)
{
    kn_pointwise_problem p = {
        .operation = operation, .compute = kn_compute_type(like->dtype), .ndim = like->ndim, .num_outputs = outputs};
    memcpy(p.shape, like->shape, sizeof p.shape);
    return p;
}

kn_status kn_jit_forward(kn_call *call)
{
    const kn_jit_record *params = call->params;
    const kn_tensor *y = call->outputs[0];
    kn_pointwise_problem p = problem_like(y, params->jit->op.name, call->num_outputs);

    for (int i = 0; call->needs_grad && i < call->num_inputs; i++)
        KN_TRY(kn_call_save(call, call->inputs[i]));
    for (int i = 0; i < call->num_outputs; i++)
        p.outputs[i] = kn_operand_of(call->outputs[i], p.ndim, p.shape);
    add_inputs(&p, call->inputs, call->num_inputs, y->dtype);
    return run(call->stream, &params->jit->forward, &p, params->scalars);
}

/* --- the gradient ------------------------------------------------------------------------------------------------- */

/* The gradients of all outputs, with zeros for missing ones. */
static kn_status complete_gradients(const kn_grad_call *grad, kn_tensor **gradients)
{
    kn_tensor *like = NULL;
    for (int i = 0; i < grad->num_outputs && !like; i++)
        like = grad->grad_outputs[i];
    for (int i = 0; i < grad->num_outputs; i++)
        if (!(gradients[i] = grad->grad_outputs[i] ? grad->grad_outputs[i] : kn_zeros_like(like)))
            return kn_error_status();
    return KN_OK;
}

/* In the computation type, so that a sum over broadcast dimensions does not round early. */
static kn_tensor *new_gradient(const kn_pointwise_problem *p, const kn_grad_call *grad)
{
    const kn_tensor_options options = {.dtype = p->compute, .device = grad->input[0].device};
    return kn_empty_with(p->ndim, p->shape, &options);
}

kn_status kn_jit_backward(kn_grad_call *grad)
{
    const kn_jit_record *params = grad->params;
    kn_tensor *gradients[KN_JIT_FEW], *made[KN_JIT_FEW] = {NULL};

    KN_TRY(complete_gradients(grad, gradients));
    const kn_dtype joint = gradients[0]->dtype;
    kn_pointwise_problem p = problem_like(gradients[0], params->jit->derivative.name, grad->num_inputs);
    for (int i = 0; i < grad->num_inputs; i++) {
        if (!grad->needs[i])
            continue;
        made[i] = new_gradient(&p, grad);
        if (!made[i])
            return kn_error_status();
        p.outputs[i] = kn_operand_of(made[i], p.ndim, p.shape);
    }
    add_inputs(&p, grad->saved, grad->num_inputs, joint);
    add_inputs(&p, gradients, grad->num_outputs, joint);
    KN_TRY(run(grad->stream, &params->jit->derivative, &p, params->scalars));
    for (int i = 0; i < grad->num_inputs; i++)
        if (made[i])
            KN_TRY(kn_give_gradient(grad, i, made[i]));
    return KN_OK;
}
