/* ops/shape/reshape.c - reshape and flatten: a view if the strides allow it, else a copy. */
#include <koine/shape.h>

#include "autograd/work.h"
#include "base/text.h"
#include "ops/dispatch/promote.h"
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

/* Resolves a size of -1 in `whole`. */
static bool resolve(const kn_tensor *x, int ndim, const int64_t *shape, int64_t whole[KN_MAX_DIMS])
{
    int64_t known = 1;
    int open = -1;

    for (int i = 0; i < ndim; i++) {
        whole[i] = shape[i];
        if (shape[i] == -1 && open < 0)
            open = i;
        else if (shape[i] < 0)
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
    if (!kn_reshape_strides(x, view->ndim, view->shape, view->strides))
        entry->op = &reshape_copy_op;
    return KN_OK;
}

const kn_op kn_reshape_op = {.name = "reshape",
                             .inputs = {"x"},
                             .params = KN_PARAMS(kn_shape_args, kn_shape_rows),
                             .enter = reshape_enter,
                             .record_size = sizeof(kn_view_params),
                             .is_view = true,
                             .shape = kn_view_shape,
                             .forward = kn_view_forward,
                             .backward = reshape_backward,
                             .backward_recorded = reshape_backward};

kn_tensor *kn_reshape(kn_tensor *x, int ndim, const int64_t *shape)
{
    kn_shape_args params;
    return kn_ints_of(&params.shape, "reshape", "shape", ndim, shape) ? kn_invoke(&kn_reshape_op, &params, x) : NULL;
}

kn_tensor *kn_flatten(kn_tensor *x, int start_dim, int end_dim)
{
    int64_t shape[KN_MAX_DIMS];
    int ndim = 0;

    if (!kn_check_argument("flatten", "x", x))
        return NULL;
    start_dim = kn_wrap_dim("flatten", start_dim, x->ndim);
    end_dim = start_dim < 0 ? -1 : kn_wrap_dim("flatten", end_dim, x->ndim);
    if (end_dim < 0)
        return NULL;
    if (start_dim > end_dim)
        return kn_fail_null(KN_ERR_ARGUMENT, "flatten: start dimension %d is after end dimension %d", start_dim,
                            end_dim);
    if (x->ndim == 0)
        return kn_reshape(x, 1, (const int64_t[]){1});
    if (start_dim == end_dim)
        return kn_scope_adopt(kn_retain(x));
    for (int i = 0; i < x->ndim; i++) {
        if (i > start_dim && i <= end_dim)
            shape[ndim - 1] *= x->shape[i];
        else
            shape[ndim++] = x->shape[i];
    }
    return kn_reshape(x, ndim, shape);
}
