/* ops/shape/reshape.c - reshape and flatten: a view if the strides allow it, else a copy. */
#include <koine/shape.h>

#include "autograd/work.h"
#include "base/text.h"
#include "ops/shape/views.h"
#include "tensor/strides.h"

static kn_status reshape_backward(kn_grad_call *grad)
{
    grad->grad_inputs[0] = kn_reshape(grad->grad_outputs[0], grad->input[0].ndim, grad->input[0].shape);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

/* If the strides do not allow a view: a copy. */
static kn_status copy_forward(kn_call *call)
{
    const kn_tensor *x = call->inputs[0];
    kn_tensor *shaped = NULL;
    KN_TRY(kn_tensor_view(&shaped, call->outputs[0], x->ndim, x->shape, NULL, call->outputs[0]->offset));
    kn_status status = kn_tensor_copy(shaped, x);
    kn_release(shaped);
    return status;
}

/* Walks both shapes from the innermost dimension. A block of mutually contiguous dimensions of x can be divided
 * differently; each new dimension must be within one block. */
bool kn_reshape_strides(const kn_tensor *x, int ndim, const int64_t *shape, int64_t strides[KN_MAX_DIMS])
{
    int64_t block = 1, cut = 1, base; /* elements of x's block so far, and of the new dimensions in it */
    int to = ndim - 1;

    kn_strides_contiguous(strides, ndim, shape);
    if (kn_numel(x) == 0 || x->ndim == 0)
        return true;
    base = x->strides[x->ndim - 1];
    for (int from = x->ndim - 1; from >= 0; from--) {
        block *= x->shape[from];
        if (from > 0 && (x->shape[from - 1] == 1 || x->strides[from - 1] == block * base))
            continue;
        for (; to >= 0 && (cut < block || shape[to] == 1); to--) {
            strides[to] = cut * base;
            cut *= shape[to];
        }
        if (cut != block)
            return false;
        if (from > 0) {
            base = x->strides[from - 1];
            block = cut = 1;
        }
    }
    return to < 0;
}

kn_status kn_view_reshaped_part(kn_tensor **part, kn_tensor *whole, const void *params)
{
    const kn_view_params *view = params;
    int64_t strides[KN_MAX_DIMS];
    *part = NULL;
    return kn_reshape_strides(whole, view->ndim, view->shape, strides)
               ? kn_tensor_view(part, whole, view->ndim, view->shape, strides, whole->offset)
               : KN_OK;
}

/* Resolves a size of -1 in `whole`. */
static bool resolve(const kn_tensor *x, int ndim, const int64_t *shape, int64_t whole[KN_MAX_DIMS])
{
    int64_t known = 1;
    int open = -1;

    for (int i = 0; i < ndim; i++) {
        whole[i] = shape[i];
        if (shape[i] == -1 && open < 0)
            open = i;
        else if (shape[i] < 0 || (shape[i] > 0 && known > INT64_MAX / shape[i]))
            return false;
        else
            known *= shape[i];
    }
    if (open >= 0) {
        if (known == 0 || kn_numel(x) % known != 0)
            return false;
        whole[open] = kn_numel(x) / known;
        known *= whole[open];
    }
    return known == kn_numel(x);
}

static const kn_op reshape_copy_op = {.name = "reshape",
                                      .inputs = {"x"},
                                      .record_size = sizeof(kn_view_params),
                                      .shape = kn_view_shape,
                                      .forward = copy_forward,
                                      .backward = reshape_backward,
                                      .backward_recorded = reshape_backward,
                                      .work = kn_work_memory_bound};

static kn_status reshape_enter(kn_entry *entry)
{
    const kn_ints *shape = &((const kn_shape_args *)entry->params)->shape;
    const kn_tensor *x = entry->inputs[0];
    kn_view_params *view = kn_view_enter(entry);
    char from[KN_DESCRIBE], to[KN_DESCRIBE];

    view->ndim = shape->count;
    if (!resolve(x, shape->count, shape->values, view->shape))
        return kn_fail(KN_ERR_SHAPE, "shape %s does not fit the %lld elements of %s",
                       kn_format_shape(to, sizeof to, shape->count, shape->values), (long long)kn_numel(x),
                       kn_format_shape(from, sizeof from, x->ndim, x->shape));
    KN_TRY(kn_tensor_check_shape(view->ndim, view->shape, x->dtype));
    if (!kn_reshape_strides(x, view->ndim, view->shape, view->strides))
        entry->op = &reshape_copy_op;
    return KN_OK;
}

#define RESHAPE_OP(op_name, params_, enter_)                                                                           \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x"}, .params = params_, .enter = enter_, .record_size = sizeof(kn_view_params),   \
        .is_view = true, .shape = kn_view_shape, .forward = kn_view_forward, .backward = reshape_backward,             \
        .backward_recorded = reshape_backward, .part = kn_view_reshaped_part                                           \
    }
const kn_op kn_reshape_op = RESHAPE_OP("reshape", KN_PARAMS(kn_shape_args, kn_shape_rows), reshape_enter);

kn_tensor *kn_reshape(kn_tensor *x, int ndim, const int64_t *shape)
{
    kn_shape_args params;
    return kn_ints_of(&params.shape, "reshape", "shape", ndim, shape) ? kn_invoke(&kn_reshape_op, &params, x) : NULL;
}

/* Dimensions `start` to `end` become one. */
static kn_status flatten_enter(kn_entry *entry)
{
    const kn_flatten_args *params = entry->params;
    const kn_tensor *x = entry->inputs[0];
    kn_view_params *view = kn_view_enter(entry);
    int start, end;

    KN_TRY(kn_dim_from_front(&start, params->start_dim, x->ndim));
    KN_TRY(kn_dim_from_front(&end, params->end_dim, x->ndim));
    if (start > end)
        return kn_fail(KN_ERR_ARGUMENT, "start dimension %d is after end dimension %d", start, end);
    if (start == end && x->ndim > 0)
        return kn_entry_return_input(entry);
    view->ndim = 0;
    for (int i = 0; i < x->ndim; i++) {
        if (i > start && i <= end)
            view->shape[view->ndim - 1] *= x->shape[i];
        else
            view->shape[view->ndim++] = x->shape[i];
    }
    if (x->ndim == 0)
        view->shape[view->ndim++] = 1;
    KN_TRY(kn_tensor_check_shape(view->ndim, view->shape, x->dtype));
    if (!kn_reshape_strides(x, view->ndim, view->shape, view->strides))
        entry->op = &reshape_copy_op;
    return KN_OK;
}

static const kn_op_param flatten_rows[] = {KN_PARAM(kn_flatten_args, start_dim), KN_PARAM(kn_flatten_args, end_dim)};
const kn_op kn_flatten_op =
    RESHAPE_OP("flatten", KN_PARAMS(kn_flatten_args, flatten_rows, .end_dim = -1), flatten_enter);

kn_tensor *kn_flatten(kn_tensor *x, int start_dim, int end_dim)
{
    return kn_invoke(&kn_flatten_op, (&(kn_flatten_args){start_dim, end_dim}), x);
}
