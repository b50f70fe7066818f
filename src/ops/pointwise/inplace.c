/* ops/pointwise/inplace.c - add_, sub_, mul_, mul_scalar_, fill_, zero_: the first argument, which may be any view, is
 * changed where it lies. */
#include <koine/autograd.h>
#include <koine/ops.h>
#include <math.h>
#include <string.h>

#include "autograd/work.h"
#include "ops/dispatch/promote.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/arithmetic.h"
#include "ops/pointwise/strided.h"

/* --- shared ------------------------------------------------------------------------------------------------------ */

static kn_status output_is_input(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    return kn_call_output(call, a->dtype, a->ndim, a->shape);
}

static kn_status update_shape(kn_call *call)
{
    const kn_tensor *a = call->inputs[0];
    char text_a[KN_DESCRIBE], text_b[KN_DESCRIBE];
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    if (!kn_dtype_is_floating(a->dtype))
        KN_TRY(kn_call_check_same_dtype(call, 0, 1));
    KN_TRY(kn_tensor_check_apart(a));
    KN_TRY(kn_broadcast_shapes(&ndim, shape, a, call->inputs[1]));
    if (ndim != a->ndim || memcmp(shape, a->shape, (size_t)ndim * sizeof *shape) != 0)
        return kn_fail(KN_ERR_SHAPE, "%s does not broadcast to %s, which is to be changed in place",
                       kn_tensor_describe(text_b, sizeof text_b, call->inputs[1]),
                       kn_tensor_describe(text_a, sizeof text_a, a));
    return output_is_input(call);
}

static kn_status launch(kn_stream *stream, const char *operation, const char *kernel, kn_tensor *a, const kn_tensor *b,
                        const kn_arg *parameter)
{
    const kn_strided_launch launch = {.source = "pointwise/inplace.cl",
                                      .kernel = kernel,
                                      .operation = operation,
                                      .dtype = a->dtype,
                                      .output = a,
                                      .inputs = {b},
                                      .parameter = parameter};
    return kn_launch_strided(stream, &launch);
}

/* What the op is computed in: f16 is storage, and b may be wider than a. */
static kn_dtype compute_type(const kn_call *call)
{
    const kn_dtype dtype = call->inputs[0]->dtype;
    return kn_compute_type(call->num_inputs > 1 ? kn_promote_types(dtype, call->inputs[1]->dtype) : dtype);
}

/* The same on copies of dtype `compute`, copied back. */
static kn_status launch_wider(kn_call *call, const char *kernel, kn_dtype compute, const kn_arg *parameter)
{
    kn_tensor *a = NULL, *b = NULL;
    kn_status status = kn_tensor_cast(&a, call->inputs[0], compute, call->inputs[0]->storage->device);

    if (status == KN_OK && call->num_inputs > 1)
        status = kn_tensor_cast(&b, call->inputs[1], compute, call->inputs[1]->storage->device);
    if (status == KN_OK)
        status = launch(call->stream, call->op->name, kernel, a, b, parameter);
    if (status == KN_OK)
        status = kn_tensor_copy(call->inputs[0], a);
    kn_release(a);
    kn_release(b);
    return status;
}

/* b may be a itself or another view of it; then the kernel reads a copy. */
static kn_status update(kn_call *call, const char *kernel)
{
    kn_tensor *a = call->inputs[0], *b = call->inputs[1], *copy = NULL;
    kn_status status;

    if (a->dtype != compute_type(call))
        return launch_wider(call, kernel, compute_type(call), NULL);
    if (a->storage == b->storage)
        KN_TRY(kn_tensor_cast(&copy, b, b->dtype, b->storage->device));
    status = launch(call->stream, call->op->name, kernel, a, copy ? copy : b, NULL);
    kn_release(copy);
    return status;
}

/* --- add_, sub_ -------------------------------------------------------------------------------------------------- */

static kn_status add_forward(kn_call *call)
{
    return update(call, call->inputs[0]->dtype == KN_BOOL ? "disjunction" : "add");
}

static kn_status sub_forward(kn_call *call) { return update(call, "sub"); }

/* --- mul_, mul_scalar_ ------------------------------------------------------------------------------------------- */

/* Saves `tensor` as it is before the change. */
static kn_status save_copy(kn_call *call, kn_tensor *tensor)
{
    kn_tensor *copy;
    kn_status status;

    KN_TRY(kn_tensor_cast(&copy, tensor, tensor->dtype, tensor->storage->device));
    status = kn_call_save(call, copy);
    kn_release(copy);
    return status;
}

/* Saves what the gradients that are wanted take: b for a's, a's old value for b's. */
static kn_status mul_forward(kn_call *call)
{
    kn_tensor *a = call->inputs[0], *b = call->inputs[1];

    if (call->needs_grad) {
        const bool copied = a->storage == b->storage && kn_call_needs(call, 0);
        KN_TRY(copied ? save_copy(call, b) : kn_call_save_for(call, 0, b));
        if (kn_call_needs(call, 1))
            KN_TRY(save_copy(call, a));
    }
    return update(call, "mul");
}

static kn_status mul_backward(kn_grad_call *grad)
{
    if (grad->needs[0])
        KN_TRY(kn_give_gradient(grad, 0, kn_mul(grad->grad_outputs[0], grad->saved[0])));
    if (grad->needs[1])
        KN_TRY(kn_give_gradient(grad, 1, kn_mul(grad->grad_outputs[0], grad->saved[1])));
    return KN_OK;
}

typedef struct kn_inplace_params {
    double value;
} kn_inplace_params;

static kn_status mul_scalar_shape(kn_call *call)
{
    const kn_inplace_params *params = call->params;
    const kn_dtype dtype = call->inputs[0]->dtype;

    if (kn_result_type_scalar(dtype, params->value) != dtype)
        return kn_fail(KN_ERR_DTYPE, "a %s tensor cannot hold its product with %g", kn_dtype_name(dtype),
                       params->value);
    KN_TRY(kn_tensor_check_apart(call->inputs[0]));
    return output_is_input(call);
}

static kn_status mul_scalar_forward(kn_call *call)
{
    const kn_inplace_params *params = call->params;
    const kn_dtype dtype = call->inputs[0]->dtype;
    const kn_arg value = kn_arg_element(kn_compute_type(dtype), params->value);

    if (dtype == KN_F16)
        return launch_wider(call, "mul_scalar", KN_F32, &value);
    return launch(call->stream, call->op->name, "mul_scalar", call->inputs[0], NULL, &value);
}

static kn_status mul_scalar_backward(kn_grad_call *grad)
{
    const kn_inplace_params *params = grad->params;
    grad->grad_inputs[0] = kn_mul_scalar(grad->grad_outputs[0], params->value);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status mul_scalar_reference(const kn_call *call)
{
    const double value = ((const kn_inplace_params *)call->params)->value;
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i, kn_reference_get(call->inputs[0], i) * value);
    return KN_OK;
}

/* --- fill_, zero_ ------------------------------------------------------------------------------------------------ */

static kn_status fill_forward(kn_call *call)
{
    return kn_tensor_fill(call->inputs[0], ((const kn_inplace_params *)call->params)->value);
}

/* The old value is gone: its gradient is zero. */
static kn_status fill_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_zeros_like(grad->grad_outputs[0]);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status fill_reference(const kn_call *call)
{
    const double value = ((const kn_inplace_params *)call->params)->value;
    for (int64_t i = 0; i < kn_numel(call->outputs[0]); i++)
        kn_reference_set(call->outputs[0], i, call->spec[0].dtype == KN_BOOL ? value != 0 : value);
    return KN_OK;
}

/* --- the ops ----------------------------------------------------------------------------------------------------- */

static const kn_op add_op = {.name = "add_",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .in_place = true,
                             .shape = update_shape,
                             .forward = add_forward,
                             .backward = kn_add_backward,
                             .reference = kn_add_reference};
static const kn_op sub_op = {.name = "sub_",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .in_place = true,
                             .shape = update_shape,
                             .forward = sub_forward,
                             .backward = kn_sub_backward,
                             .reference = kn_sub_reference};
static const kn_op mul_op = {.name = "mul_",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .in_place = true,
                             .shape = update_shape,
                             .forward = mul_forward,
                             .backward = mul_backward,
                             .reference = kn_mul_reference};
static const kn_op mul_scalar_op = {.name = "mul_scalar_",
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .params_size = sizeof(kn_inplace_params),
                                    .in_place = true,
                                    .shape = mul_scalar_shape,
                                    .forward = mul_scalar_forward,
                                    .backward = mul_scalar_backward,
                                    .reference = mul_scalar_reference};
static const kn_op fill_op = {.name = "fill_",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .params_size = sizeof(kn_inplace_params),
                              .in_place = true,
                              .shape = output_is_input,
                              .forward = fill_forward,
                              .backward = fill_backward,
                              .reference = fill_reference,
                              .work = kn_work_moving};

/* As in PyTorch the change is computed in the joint dtype and rounded to a's, but not from floating to whole or from
 * whole to bool; whole numbers wrap around alike in both. A factor without dimensions is not rounded to float16. */
static kn_dtype operand_type(const kn_op *op, const kn_tensor *a, const kn_tensor *b, kn_dtype joint)
{
    if (op == &mul_op && a->dtype == KN_F16 && b->ndim == 0)
        return kn_compute_type(joint);
    return kn_dtype_is_floating(joint) ? joint : a->dtype;
}

static kn_tensor *update_with(const kn_op *op, kn_tensor *a, kn_tensor *b)
{
    kn_tensor *result = NULL;
    kn_dtype joint;
    int depth;

    if (!kn_argument_given(op->name, "a", a) || !kn_argument_given(op->name, "b", b))
        return NULL;
    if (a->dtype == b->dtype)
        return kn_apply(op, NULL, a, b);
    joint = kn_result_type(a, b);
    if ((kn_dtype_is_floating(joint) && !kn_dtype_is_floating(a->dtype)) || (a->dtype == KN_BOOL && joint != KN_BOOL))
        return kn_fail_null(KN_ERR_DTYPE, "%s: a result of dtype %s does not fit the %s tensor to be changed in place",
                            op->name, kn_dtype_name(joint), kn_dtype_name(a->dtype));
    depth = kn_scope_begin();
    if (depth == 0)
        return kn_stick();
    b = kn_to_dtype(b, operand_type(op, a, b, joint));
    if (b)
        result = kn_apply(op, NULL, a, b);
    kn_scope_end(depth);
    return result;
}

kn_tensor *kn_add_(kn_tensor *a, kn_tensor *b) { return update_with(&add_op, a, b); }
kn_tensor *kn_sub_(kn_tensor *a, kn_tensor *b)
{
    return kn_sub_check("sub_", a, b) == KN_OK ? update_with(&sub_op, a, b) : kn_stick();
}
kn_tensor *kn_mul_(kn_tensor *a, kn_tensor *b) { return update_with(&mul_op, a, b); }

kn_tensor *kn_mul_scalar_(kn_tensor *a, double b)
{
    const kn_inplace_params params = {.value = b};
    return kn_apply(&mul_scalar_op, &params, a);
}

kn_tensor *kn_fill_(kn_tensor *a, double value)
{
    const kn_inplace_params params = {.value = value};
    return kn_apply(&fill_op, &params, a);
}

kn_tensor *kn_zero_(kn_tensor *a) { return kn_fill_(a, 0); }
