/* ops/shape/narrow_backward.c - the gradient of a part of a tensor: zeros with the part in its place. */
#include <koine/shape.h>
#include <string.h>

#include "autograd/work.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/views.h"

static kn_status whole_enter(kn_entry *entry)
{
    const kn_narrow_backward_args *args = entry->params;
    const kn_tensor *g = entry->inputs[0];
    kn_narrow_backward_args *own = kn_entry_record(entry, sizeof *own);
    *own = *args;
    if (g->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "a 0-dimensional tensor cannot be a part");
    KN_TRY(kn_dim_from_front(&own->dim, args->dim, g->ndim));
    if (args->start < 0 || args->size < 0 || args->start > args->size - g->shape[own->dim])
        return kn_fail(KN_ERR_ARGUMENT, "start %lld and length %lld reach beyond size %lld", (long long)args->start,
                       (long long)g->shape[own->dim], (long long)args->size);
    return KN_OK;
}

static kn_status whole_shape(kn_call *call)
{
    const kn_narrow_backward_args *args = call->params;
    int64_t shape[KN_MAX_DIMS];
    memcpy(shape, call->inputs[0]->shape, sizeof shape);
    shape[args->dim] = args->size;
    return kn_call_output(call, call->inputs[0]->dtype, call->inputs[0]->ndim, shape);
}

static kn_status whole_forward(kn_call *call)
{
    const kn_narrow_backward_args *args = call->params;
    kn_tensor *whole = call->outputs[0], *g = call->inputs[0], *part;
    KN_TRY(kn_tensor_fill(whole, 0));
    KN_TRY(kn_tensor_view(&part, whole, g->ndim, g->shape, whole->strides,
                          whole->offset + args->start * whole->strides[args->dim]));
    const kn_status status = kn_tensor_copy(part, g);
    kn_release(part);
    return status;
}

static kn_status whole_backward(kn_grad_call *grad)
{
    const kn_narrow_backward_args *args = grad->params;
    grad->grad_inputs[0] = kn_narrow(grad->grad_outputs[0], args->dim, args->start, grad->input[0].shape[args->dim]);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status whole_reference(const kn_call *call)
{
    const kn_narrow_backward_args *args = call->params;
    const kn_tensor *g = call->inputs[0];
    const int64_t inner = kn_shape_numel(g->ndim - args->dim - 1, g->shape + args->dim + 1), n = g->shape[args->dim];
    for (int64_t i = 0; i < kn_numel(g); i++) {
        const int64_t outer = i / (n * inner), at = i / inner % n + args->start;
        kn_reference_set(call->outputs[0], (outer * args->size + at) * inner + i % inner, kn_reference_get(g, i));
    }
    return KN_OK;
}

static const kn_op_param rows[] = {KN_PARAM(kn_narrow_backward_args, dim), KN_PARAM(kn_narrow_backward_args, start),
                                   KN_PARAM(kn_narrow_backward_args, size)};
const kn_op kn_narrow_backward_op = {.name = "narrow_backward",
                                     .inputs = {"gradient"},
                                     .params = KN_PARAMS(kn_narrow_backward_args, rows),
                                     .enter = whole_enter,
                                     .strided_outputs = true,
                                     .shape = whole_shape,
                                     .forward = whole_forward,
                                     .backward = whole_backward,
                                     .backward_recorded = whole_backward,
                                     .reference = whole_reference,
                                     .work = kn_work_memory_bound,
                                     .backward_work = kn_grad_work_memory_bound};
