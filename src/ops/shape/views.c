/* ops/shape/views.c - transpose, permute, unsqueeze, squeeze, expand: views and their gradients. */
#include "ops/shape/views.h"

#include <koine/shape.h>
#include <string.h>

#include "base/text.h"
#include "ops/shape/broadcast.h"

/* --- shared ------------------------------------------------------------------------------------------------------ */

kn_view_params *kn_view_enter(kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[0];
    kn_view_params *view = kn_entry_record(entry, sizeof *view);
    view->ndim = x->ndim;
    view->offset = x->offset;
    memcpy(view->shape, x->shape, sizeof view->shape);
    memcpy(view->strides, x->strides, sizeof view->strides);
    return view;
}

bool kn_ints_of(kn_ints *list, const char *function, const char *name, int count, const int64_t *values)
{
    list->count = count;
    if (count > 0 && !values)
        return kn_fail_argument_null(function, name), kn_error_make_sticky(), false;
    for (int i = 0; i < count && i < KN_MAX_DIMS; i++)
        list->values[i] = values[i];
    return true;
}

kn_status kn_view_shape(kn_call *call)
{
    const kn_view_params *params = call->params;
    return kn_call_output(call, call->inputs[0]->dtype, params->ndim, params->shape);
}

kn_status kn_view_forward(kn_call *call)
{
    const kn_view_params *params = call->params;
    return kn_tensor_view(&call->outputs[0], call->inputs[0], params->ndim, params->shape, params->strides,
                          params->offset);
}

kn_status kn_view_give(kn_grad_call *grad, kn_tensor *result)
{
    grad->grad_inputs[0] = result;
    return result ? KN_OK : kn_error_status();
}

/* --- permute, transpose, t --------------------------------------------------------------------------------------- */

static kn_status permute_enter(kn_entry *entry)
{
    const kn_ints *dims = &((const kn_permute_args *)entry->params)->dims;
    const kn_tensor *x = entry->inputs[0];
    kn_view_params *view = kn_view_enter(entry);
    bool seen[KN_MAX_DIMS] = {false};

    if (dims->count != x->ndim)
        return kn_fail(KN_ERR_ARGUMENT, "%d dimensions given, but the tensor has %d", dims->count, x->ndim);
    for (int i = 0; i < x->ndim; i++) {
        int from;
        KN_TRY(kn_dim_from_front(&from, dims->values[i], x->ndim));
        if (seen[from])
            return kn_fail(KN_ERR_ARGUMENT, "dimension %d is given twice", from);
        seen[from] = true;
        view->dims[i] = from;
        view->shape[i] = x->shape[from];
        view->strides[i] = x->strides[from];
    }
    return KN_OK;
}

static kn_status permute_backward(kn_grad_call *grad)
{
    const kn_view_params *view = grad->params;
    int inverse[KN_MAX_DIMS];

    for (int i = 0; i < view->ndim; i++)
        inverse[view->dims[i]] = i;
    return kn_view_give(grad, kn_permute(grad->grad_outputs[0], inverse));
}

static kn_status permute_part(kn_tensor **part, kn_tensor *whole, const void *params)
{
    const kn_view_params *view = params;
    int64_t strides[KN_MAX_DIMS];
    for (int i = 0; i < view->ndim; i++)
        strides[i] = whole->strides[view->dims[i]];
    return kn_tensor_view(part, whole, view->ndim, view->shape, strides, whole->offset);
}

#define PERMUTE_OP(op_name, params_, enter_)                                                                           \
    {                                                                                                                  \
        KN_VIEW_FIELDS(op_name, enter_, permute_backward), .params = params_, .part = permute_part                     \
    }
static const kn_op_param permute_row[] = {KN_PARAM(kn_permute_args, dims)};
const kn_op kn_permute_op = PERMUTE_OP("permute", KN_PARAMS(kn_permute_args, permute_row), permute_enter);

kn_tensor *kn_permute(kn_tensor *x, const int *dims)
{
    kn_permute_args params = {{.count = x ? x->ndim : 0}};

    if (x && !dims && x->ndim > 0)
        return kn_fail_argument_null("permute", "dims"), kn_error_make_sticky();
    for (int i = 0; i < params.dims.count; i++)
        params.dims.values[i] = dims[i];
    return kn_invoke(&kn_permute_op, &params, x);
}

static void exchange(kn_view_params *view, int a, int b)
{
    const int64_t size = view->shape[a], stride = view->strides[a];
    view->shape[a] = view->shape[b];
    view->strides[a] = view->strides[b];
    view->shape[b] = size;
    view->strides[b] = stride;
    view->dims[a] = b;
    view->dims[b] = a;
}

static kn_view_params *identity_enter(kn_entry *entry)
{
    kn_view_params *view = kn_view_enter(entry);
    for (int i = 0; i < view->ndim; i++)
        view->dims[i] = i;
    return view;
}

static kn_status transpose_enter(kn_entry *entry)
{
    const kn_transpose_args *params = entry->params;
    kn_view_params *view = identity_enter(entry);
    int a, b;

    KN_TRY(kn_dim_from_front(&a, params->dim0, view->ndim));
    KN_TRY(kn_dim_from_front(&b, params->dim1, view->ndim));
    exchange(view, a, b);
    return KN_OK;
}

static kn_status t_enter(kn_entry *entry)
{
    kn_view_params *view = identity_enter(entry);
    char text[KN_DESCRIBE];

    if (view->ndim > 2)
        return kn_fail(KN_ERR_SHAPE, "takes at most 2 dimensions, not %s; use kn_transpose",
                       kn_tensor_describe(text, sizeof text, entry->inputs[0]));
    if (view->ndim == 2)
        exchange(view, 0, 1);
    return KN_OK;
}

static const kn_op_param transpose_rows[] = {KN_PARAM(kn_transpose_args, dim0), KN_PARAM(kn_transpose_args, dim1)};
const kn_op kn_transpose_op =
    PERMUTE_OP("transpose", KN_PARAMS(kn_transpose_args, transpose_rows, .dim1 = 1), transpose_enter);
const kn_op kn_t_op = PERMUTE_OP("t", KN_NO_PARAMS, t_enter);

kn_tensor *kn_transpose(kn_tensor *x, int dim0, int dim1)
{
    return kn_invoke(&kn_transpose_op, (&(kn_transpose_args){dim0, dim1}), x);
}

kn_tensor *kn_t(kn_tensor *x) { return kn_invoke(&kn_t_op, NULL, x); }

/* --- unsqueeze, squeeze ------------------------------------------------------------------------------------------ */

static kn_status reshape_backward(kn_grad_call *grad)
{
    return kn_view_give(grad, kn_reshape(grad->grad_outputs[0], grad->input[0].ndim, grad->input[0].shape));
}

static kn_status unsqueeze_enter(kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[0];
    kn_view_params *view = kn_view_enter(entry);
    int dim;

    KN_TRY(kn_dim_from_front(&dim, ((const kn_dim_args *)entry->params)->dim, x->ndim + 1));
    if (x->ndim == KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "the tensor already has %d dimensions, the maximum", KN_MAX_DIMS);
    view->ndim++;
    for (int i = x->ndim; i > dim; i--) {
        view->shape[i] = x->shape[i - 1];
        view->strides[i] = x->strides[i - 1];
    }
    view->strides[dim] = dim < x->ndim ? x->shape[dim] * x->strides[dim] : 1;
    view->shape[dim] = 1;
    return KN_OK;
}

void kn_view_drop(kn_view_params *view, int dim)
{
    view->ndim--;
    for (int i = dim; i < view->ndim; i++) {
        view->shape[i] = view->shape[i + 1];
        view->strides[i] = view->strides[i + 1];
    }
}

static kn_status squeeze_enter(kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[0];
    kn_view_params *view = kn_view_enter(entry);
    int dim;

    KN_TRY(kn_dim_from_front(&dim, ((const kn_dim_args *)entry->params)->dim, x->ndim));
    if (x->ndim > 0 && x->shape[dim] == 1)
        kn_view_drop(view, dim);
    return KN_OK;
}

const kn_op kn_unsqueeze_op =
    KN_VIEW_OP("unsqueeze", KN_PARAMS(kn_dim_args, kn_dim_rows), unsqueeze_enter, reshape_backward);
const kn_op kn_squeeze_op = KN_VIEW_OP("squeeze", KN_PARAMS(kn_dim_args, kn_dim_rows), squeeze_enter, reshape_backward);

kn_tensor *kn_unsqueeze(kn_tensor *x, int dim) { return kn_invoke(&kn_unsqueeze_op, &(kn_dim_args){dim}, x); }
kn_tensor *kn_squeeze(kn_tensor *x, int dim) { return kn_invoke(&kn_squeeze_op, &(kn_dim_args){dim}, x); }

/* --- expand ------------------------------------------------------------------------------------------------------ */

static kn_status expand_backward(kn_grad_call *grad)
{
    return kn_view_give(grad, kn_sum_to_shape(grad->grad_outputs[0], grad->input[0].ndim, grad->input[0].shape));
}

static kn_status fail_expand(const kn_tensor *x, const kn_ints *shape)
{
    char from[KN_DESCRIBE], to[KN_DESCRIBE];
    return kn_fail(KN_ERR_SHAPE, "shape %s does not expand to %s",
                   kn_format_shape(from, sizeof from, x->ndim, x->shape),
                   kn_format_shape(to, sizeof to, shape->count, shape->values));
}

static kn_status expand_enter(kn_entry *entry)
{
    const kn_ints *shape = &((const kn_shape_args *)entry->params)->shape;
    const kn_tensor *x = entry->inputs[0];
    kn_view_params *view = kn_view_enter(entry);

    if (shape->count < x->ndim)
        return fail_expand(x, shape);
    view->ndim = shape->count;
    for (int i = shape->count - 1; i >= 0; i--) {
        const int own = i - (shape->count - x->ndim);
        const int64_t size = own >= 0 ? x->shape[own] : 1;
        const int64_t wanted = shape->values[i] == -1 && own >= 0 ? size : shape->values[i];
        if (wanted < 0 || (size != wanted && size != 1))
            return fail_expand(x, shape);
        view->shape[i] = wanted;
        view->strides[i] = own < 0 || size != wanted ? 0 : x->strides[own];
    }
    return KN_OK;
}

const kn_op kn_expand_op = KN_VIEW_OP("expand", KN_PARAMS(kn_shape_args, kn_shape_rows), expand_enter, expand_backward);

kn_tensor *kn_expand(kn_tensor *x, int ndim, const int64_t *shape)
{
    kn_shape_args params;
    return kn_ints_of(&params.shape, "expand", "shape", ndim, shape) ? kn_invoke(&kn_expand_op, &params, x) : NULL;
}
