/* ops/shape/narrow_backward.c - the gradients of parts of a tensor: zeros with the part in its place. */
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
    own->step = args->step > 1 ? args->step : 1;
    const int64_t count = g->shape[own->dim], reach = count > 0 ? (count - 1) * own->step + 1 : 0;
    if (args->start < 0 || args->size < 0 || args->start > args->size - reach)
        return kn_fail(KN_ERR_ARGUMENT, "start %lld, length %lld and step %lld reach beyond size %lld",
                       (long long)args->start, (long long)count, (long long)own->step, (long long)args->size);
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
    int64_t strides[KN_MAX_DIMS];
    memcpy(strides, whole->strides, sizeof strides);
    strides[args->dim] *= args->step;
    KN_TRY(kn_tensor_fill(whole, 0));
    if (kn_numel(g) == 0)
        return KN_OK;
    KN_TRY(kn_tensor_view(&part, whole, g->ndim, g->shape, strides,
                          whole->offset + args->start * whole->strides[args->dim]));
    const kn_status status = kn_tensor_copy(part, g);
    kn_release(part);
    return status;
}

static kn_status whole_backward(kn_grad_call *grad)
{
    const kn_narrow_backward_args *args = grad->params;
    const int64_t count = grad->input[0].shape[args->dim];
    const int64_t stop = count > 0 ? args->start + (count - 1) * args->step + 1 : args->start;
    return kn_view_give(grad, kn_slice(grad->grad_outputs[0], args->dim, args->start, stop, args->step));
}

static kn_status whole_reference(const kn_call *call)
{
    const kn_narrow_backward_args *args = call->params;
    const kn_tensor *g = call->inputs[0];
    const int64_t inner = kn_shape_numel(g->ndim - args->dim - 1, g->shape + args->dim + 1), n = g->shape[args->dim];
    for (int64_t i = 0; i < kn_numel(g); i++) {
        const int64_t outer = i / (n * inner), at = i / inner % n * args->step + args->start;
        kn_reference_set(call->outputs[0], (outer * args->size + at) * inner + i % inner, kn_reference_get(g, i));
    }
    return KN_OK;
}

static const kn_op_param rows[] = {KN_PARAM(kn_narrow_backward_args, dim), KN_PARAM(kn_narrow_backward_args, start),
                                   KN_PARAM(kn_narrow_backward_args, size),
                                   KN_PARAM(kn_narrow_backward_args, step, .min = 0, .max = 9e15)};
const kn_op kn_narrow_backward_op = {.name = "narrow_backward",
                                     .inputs = {"gradient"},
                                     .params = KN_PARAMS(kn_narrow_backward_args, rows, .step = 1),
                                     .enter = whole_enter,
                                     .strided_outputs = true,
                                     .shape = whole_shape,
                                     .forward = whole_forward,
                                     .backward = whole_backward,
                                     .backward_recorded = whole_backward,
                                     .reference = whole_reference,
                                     .work = kn_work_memory_bound,
                                     .backward_work = kn_grad_work_memory_bound};

/* --- diagonal_backward -------------------------------------------------------------------------------------------- */

static kn_status diagonal_shape(kn_call *call)
{
    const kn_diagonal_backward_args *args = call->params;
    const kn_tensor *g = call->inputs[0];
    KN_TRY(kn_tensor_check_shape(args->shape.count, args->shape.values, g->dtype));
    return kn_call_output(call, g->dtype, args->shape.count, args->shape.values);
}

/* The diagonal of the whole, which must have the gradient's shape. */
static kn_status part_of(kn_tensor **part, kn_tensor *whole, const kn_tensor *g, const void *params)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    KN_TRY(kn_diagonal_of_whole(part, whole, params));
    if (kn_same_shape(*part, g))
        return KN_OK;
    kn_fail(KN_ERR_SHAPE, "the diagonal is %s, but the gradient %s", kn_tensor_describe(a, sizeof a, *part),
            kn_tensor_describe(b, sizeof b, g));
    kn_release(*part);
    return kn_error_status();
}

static kn_status diagonal_forward(kn_call *call)
{
    kn_tensor *part;
    KN_TRY(kn_tensor_fill(call->outputs[0], 0));
    KN_TRY(part_of(&part, call->outputs[0], call->inputs[0], call->params));
    const kn_status status = kn_numel(part) > 0 ? kn_tensor_copy(part, call->inputs[0]) : KN_OK;
    kn_release(part);
    return status;
}

static kn_status diagonal_whole_backward(kn_grad_call *grad)
{
    const kn_diagonal_backward_args *args = grad->params;
    return kn_view_give(
        grad, kn_diagonal(grad->grad_outputs[0], .offset = args->offset, .dim1 = args->dim1, .dim2 = args->dim2));
}

static kn_status diagonal_reference(const kn_call *call)
{
    kn_tensor *part;
    KN_TRY(part_of(&part, call->outputs[0], call->inputs[0], call->params));
    for (int64_t i = 0; i < kn_numel(part); i++) {
        int64_t rest = i, at = part->offset - call->outputs[0]->offset;
        for (int d = part->ndim - 1; d >= 0; d--) {
            at += rest % part->shape[d] * part->strides[d];
            rest /= part->shape[d];
        }
        kn_reference_set(call->outputs[0], at, kn_reference_get(call->inputs[0], i));
    }
    kn_release(part);
    return KN_OK;
}

static const kn_op_param diagonal_rows[] = {
    KN_PARAM(kn_diagonal_backward_args, shape), KN_PARAM(kn_diagonal_backward_args, offset),
    KN_PARAM(kn_diagonal_backward_args, dim1), KN_PARAM(kn_diagonal_backward_args, dim2)};
const kn_op kn_diagonal_backward_op = {.name = "diagonal_backward",
                                       .inputs = {"gradient"},
                                       .params = KN_PARAMS(kn_diagonal_backward_args, diagonal_rows, .dim2 = 1),
                                       .strided_outputs = true,
                                       .shape = diagonal_shape,
                                       .forward = diagonal_forward,
                                       .backward = diagonal_whole_backward,
                                       .backward_recorded = diagonal_whole_backward,
                                       .reference = diagonal_reference,
                                       .work = kn_work_memory_bound,
                                       .backward_work = kn_grad_work_memory_bound};
