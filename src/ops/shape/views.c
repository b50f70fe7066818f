/* ops/shape/views.c - transpose, permute, unsqueeze, squeeze, expand, narrow, select: views, and gradients through
 * them. */
#include "ops/shape/views.h"

#include <koine/ops.h>
#include <string.h>

#include "base/text.h"
#include "ops/dispatch/promote.h"
#include "ops/pointwise/broadcast.h"

/* --- shared ------------------------------------------------------------------------------------------------------ */

kn_view_params kn_view_of(const kn_tensor *x)
{
    kn_view_params params = {.ndim = x->ndim, .offset = x->offset};
    memcpy(params.shape, x->shape, sizeof params.shape);
    memcpy(params.strides, x->strides, sizeof params.strides);
    return params;
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

int kn_wrap_dim(const char *function, int dim, int ndim)
{
    const int dims = ndim > 0 ? ndim : 1; /* a scalar has dimension 0, as in PyTorch */
    const int wrapped = dim < 0 ? dim + dims : dim;

    if (wrapped >= 0 && wrapped < dims)
        return wrapped;
    kn_fail(KN_ERR_ARGUMENT, "%s: dimension %d is out of range for a tensor of %d dimensions", function, dim, ndim);
    kn_stick();
    return -1;
}

/* Makes `result` the gradient of input 0. */
static kn_status give(kn_grad_call *grad, kn_tensor *result)
{
    grad->grad_inputs[0] = result;
    return result ? KN_OK : kn_error_status();
}

#define VIEW_OP(op_name, backward_function)                                                                            \
    {                                                                                                                  \
        .name = op_name, .inputs = {"x"}, .params_size = sizeof(kn_view_params), .is_view = true,                      \
        .shape = kn_view_shape, .forward = kn_view_forward, .backward = backward_function                              \
    }

/* --- permute, transpose, t --------------------------------------------------------------------------------------- */

static kn_status permute_backward(kn_grad_call *grad)
{
    const kn_view_params *params = grad->params;
    int inverse[KN_MAX_DIMS];

    for (int i = 0; i < params->ndim; i++)
        inverse[params->dims[i]] = i;
    return give(grad, kn_permute(grad->grad_outputs[0], inverse));
}

const kn_op kn_permute_op = VIEW_OP("permute", permute_backward);

kn_tensor *kn_permute(kn_tensor *x, const int *dims)
{
    kn_view_params params;
    bool seen[KN_MAX_DIMS] = {false};

    if (!kn_argument_given("permute", "x", x))
        return NULL;
    if (!dims && x->ndim > 0)
        return kn_fail_argument_null("permute", "dims"), kn_stick();
    params = kn_view_of(x);
    for (int i = 0; i < x->ndim; i++) {
        const int from = kn_wrap_dim("permute", dims[i], x->ndim);
        if (from < 0)
            return NULL;
        if (seen[from])
            return kn_fail_null(KN_ERR_ARGUMENT, "permute: dimension %d is named twice", from);
        seen[from] = true;
        params.dims[i] = from;
        params.shape[i] = x->shape[from];
        params.strides[i] = x->strides[from];
    }
    return kn_apply(&kn_permute_op, &params, x);
}

kn_tensor *kn_transpose(kn_tensor *x, int dim0, int dim1)
{
    int dims[KN_MAX_DIMS];

    if (!kn_argument_given("transpose", "x", x))
        return NULL;
    dim0 = kn_wrap_dim("transpose", dim0, x->ndim);
    dim1 = dim0 < 0 ? -1 : kn_wrap_dim("transpose", dim1, x->ndim);
    if (dim1 < 0)
        return NULL;
    for (int i = 0; i < x->ndim; i++)
        dims[i] = i == dim0 ? dim1 : i == dim1 ? dim0 : i;
    return kn_permute(x, dims);
}

kn_tensor *kn_t(kn_tensor *x)
{
    char text[KN_DESCRIBE];

    if (!kn_argument_given("t", "x", x))
        return NULL;
    if (x->ndim > 2)
        return kn_fail_null(KN_ERR_SHAPE, "t: takes at most 2 dimensions, not %s; use kn_transpose",
                            kn_tensor_describe(text, sizeof text, x));
    return x->ndim == 2 ? kn_transpose(x, 0, 1) : kn_permute(x, (const int[]){0});
}

/* --- unsqueeze, squeeze ------------------------------------------------------------------------------------------ */

static kn_status reshape_backward(kn_grad_call *grad)
{
    return give(grad, kn_reshape(grad->grad_outputs[0], grad->input[0].ndim, grad->input[0].shape));
}

const kn_op kn_unsqueeze_op = VIEW_OP("unsqueeze", reshape_backward);
const kn_op kn_squeeze_op = VIEW_OP("squeeze", reshape_backward);

kn_tensor *kn_unsqueeze(kn_tensor *x, int dim)
{
    kn_view_params params;

    if (!kn_argument_given("unsqueeze", "x", x))
        return NULL;
    dim = kn_wrap_dim("unsqueeze", dim, x->ndim + 1);
    if (dim < 0)
        return NULL;
    if (x->ndim == KN_MAX_DIMS)
        return kn_fail_null(KN_ERR_SHAPE, "unsqueeze: the tensor has %d dimensions already, the most there can be",
                            KN_MAX_DIMS);
    params = kn_view_of(x);
    params.ndim++;
    for (int i = x->ndim; i > dim; i--) {
        params.shape[i] = x->shape[i - 1];
        params.strides[i] = x->strides[i - 1];
    }
    params.strides[dim] = dim < x->ndim ? x->shape[dim] * x->strides[dim] : 1;
    params.shape[dim] = 1;
    return kn_apply(&kn_unsqueeze_op, &params, x);
}

/* Takes dimension `dim` out of a view. */
static void drop_dimension(kn_view_params *params, int dim)
{
    params->ndim--;
    for (int i = dim; i < params->ndim; i++) {
        params->shape[i] = params->shape[i + 1];
        params->strides[i] = params->strides[i + 1];
    }
}

kn_tensor *kn_squeeze(kn_tensor *x, int dim)
{
    kn_view_params params;

    if (!kn_argument_given("squeeze", "x", x))
        return NULL;
    dim = kn_wrap_dim("squeeze", dim, x->ndim);
    if (dim < 0)
        return NULL;
    params = kn_view_of(x);
    if (x->ndim > 0 && x->shape[dim] == 1)
        drop_dimension(&params, dim);
    return kn_apply(&kn_squeeze_op, &params, x);
}

/* --- expand ------------------------------------------------------------------------------------------------------ */

static kn_status expand_backward(kn_grad_call *grad)
{
    return give(grad, kn_sum_to_shape(grad->grad_outputs[0], grad->input[0].ndim, grad->input[0].shape));
}

const kn_op kn_expand_op = VIEW_OP("expand", expand_backward);

static void *fail_expand(const kn_tensor *x, int ndim, const int64_t *shape)
{
    char from[KN_DESCRIBE], to[KN_DESCRIBE];
    return kn_fail_null(KN_ERR_SHAPE, "expand: shape %s does not expand to %s",
                        kn_format_shape(from, sizeof from, x->ndim, x->shape),
                        kn_format_shape(to, sizeof to, ndim, shape));
}

kn_tensor *kn_expand(kn_tensor *x, int ndim, const int64_t *shape)
{
    kn_view_params params;

    if (!kn_argument_given("expand", "x", x))
        return NULL;
    if (ndim < 0 || ndim > KN_MAX_DIMS || (ndim > 0 && !shape))
        return kn_fail_null(KN_ERR_SHAPE, "expand: a shape of 0 to %d dimensions is needed", KN_MAX_DIMS);
    if (ndim < x->ndim)
        return fail_expand(x, ndim, shape);
    params = kn_view_of(x);
    params.ndim = ndim;
    for (int i = ndim - 1; i >= 0; i--) {
        const int own = i - (ndim - x->ndim);
        const int64_t size = own >= 0 ? x->shape[own] : 1;
        const int64_t wanted = shape[i] == -1 && own >= 0 ? size : shape[i];
        if (wanted < 0 || (size != wanted && size != 1))
            return fail_expand(x, ndim, shape);
        params.shape[i] = wanted;
        params.strides[i] = own < 0 || size != wanted ? 0 : x->strides[own];
    }
    return kn_apply(&kn_expand_op, &params, x);
}

/* --- narrow, select ---------------------------------------------------------------------------------------------- */

/* The gradient is zero but for the part that the view shows. */
static kn_status narrow_backward(kn_grad_call *grad)
{
    const kn_view_params *params = grad->params;
    kn_tensor *whole = kn_zeros_with(
        grad->input[0].ndim, grad->input[0].shape,
        &(kn_tensor_options){.dtype = grad->input[0].dtype, .device = kn_device_of(grad->grad_outputs[0])});
    kn_tensor *part = NULL;
    kn_status status;

    if (!whole)
        return kn_error_status();
    KN_TRY(kn_tensor_view(&part, whole, params->ndim, params->shape, NULL, 0));
    /* The same dimensions as the view taken, with the strides of a contiguous whole. */
    for (int i = 0, from = 0; from < whole->ndim; from++) {
        if (from == params->dim && params->ndim < whole->ndim)
            continue; /* select: dimension `dim` is gone */
        part->strides[i++] = whole->strides[from];
    }
    part->offset = params->start * whole->strides[params->dim];
    status = kn_tensor_copy(part, grad->grad_outputs[0]);
    kn_release(part);
    grad->grad_inputs[0] = whole;
    return status;
}

const kn_op kn_narrow_op = VIEW_OP("narrow", narrow_backward);
const kn_op kn_select_op = VIEW_OP("select", narrow_backward);

kn_tensor *kn_narrow(kn_tensor *x, int dim, int64_t start, int64_t length)
{
    kn_view_params params;

    if (!kn_argument_given("narrow", "x", x))
        return NULL;
    if (x->ndim == 0)
        return kn_fail_null(KN_ERR_SHAPE, "narrow: a 0-dimensional tensor has no part");
    dim = kn_wrap_dim("narrow", dim, x->ndim);
    if (dim < 0)
        return NULL;
    if (start < 0)
        start += x->shape[dim];
    if (start < 0 || length < 0 || start > x->shape[dim] - length)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "narrow: start %lld and length %lld reach beyond size %lld of dimension %d",
                            (long long)start, (long long)length, (long long)x->shape[dim], dim);
    params = kn_view_of(x);
    params.shape[dim] = length;
    params.offset += start * x->strides[dim];
    params.dim = dim;
    params.start = start;
    return kn_apply(&kn_narrow_op, &params, x);
}

kn_tensor *kn_select(kn_tensor *x, int dim, int64_t index)
{
    kn_view_params params;

    if (!kn_argument_given("select", "x", x))
        return NULL;
    if (x->ndim == 0)
        return kn_fail_null(KN_ERR_SHAPE, "select: a 0-dimensional tensor has nothing to select from");
    dim = kn_wrap_dim("select", dim, x->ndim);
    if (dim < 0)
        return NULL;
    if (index < -x->shape[dim] || index >= x->shape[dim])
        return kn_fail_null(KN_ERR_ARGUMENT, "select: index %lld is out of range for size %lld of dimension %d",
                            (long long)index, (long long)x->shape[dim], dim);
    params = kn_view_of(x);
    params.dim = dim;
    params.start = index < 0 ? index + x->shape[dim] : index;
    params.offset += params.start * x->strides[dim];
    drop_dimension(&params, dim);
    return kn_apply(&kn_select_op, &params, x);
}
