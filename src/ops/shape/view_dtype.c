/* ops/shape/view_dtype.c - a tensor's bytes reinterpreted as another dtype. */
#include <koine/storage.h>

#include "ops/dispatch/invoke.h"
#include "ops/shape/views.h"

typedef struct view_dtype_record {
    kn_view_params view;
    kn_dtype dtype;
} view_dtype_record;

/* To a smaller dtype: each element becomes `ratio` elements. */
static kn_status split_elements(kn_view_params *view, int64_t ratio)
{
    const int last = view->ndim - 1;
    for (int d = 0; d < last; d++)
        view->strides[d] *= ratio;
    view->shape[last] *= ratio;
    view->offset *= ratio;
    return KN_OK;
}

static kn_status check_ratio(const char *what, int64_t value, int64_t ratio)
{
    return value % ratio == 0
               ? KN_OK
               : kn_fail(KN_ERR_SHAPE, "%s, %lld, is not a multiple of %lld, the ratio of the dtypes' sizes", what,
                         (long long)value, (long long)ratio);
}

/* To a larger dtype: `ratio` adjacent elements become one. */
static kn_status join_elements(kn_view_params *view, int64_t ratio)
{
    const int last = view->ndim - 1;
    KN_TRY(check_ratio("the size of the last dimension", view->shape[last], ratio));
    KN_TRY(check_ratio("the offset in the storage", view->offset, ratio));
    for (int d = 0; d < last; d++) {
        KN_TRY(check_ratio("a stride", view->strides[d], ratio));
        view->strides[d] /= ratio;
    }
    view->shape[last] /= ratio;
    view->offset /= ratio;
    return KN_OK;
}

static kn_status view_dtype_enter(kn_entry *entry)
{
    const kn_dtype dtype = ((const kn_to_dtype_args *)entry->params)->dtype;
    const kn_tensor *x = entry->inputs[0];
    const kn_view_params whole = *kn_view_enter(entry);
    view_dtype_record *own = kn_entry_record(entry, sizeof *own);
    const int64_t from = (int64_t)kn_tensor_element_size(x), to = (int64_t)kn_dtype_size(dtype);

    KN_TRY(kn_tensor_check_dtype(dtype, x->storage->device));
    *own = (view_dtype_record){whole, dtype};
    if (from == to)
        return KN_OK;
    if (x->ndim == 0)
        return kn_fail(KN_ERR_SHAPE,
                       "a 0-dimensional tensor has no dimension to resize: "
                       "%s and %s have elements of different sizes",
                       kn_dtype_name(x->dtype), kn_dtype_name(dtype));
    if (x->strides[x->ndim - 1] != 1)
        return kn_fail(KN_ERR_SHAPE, "the last dimension is not contiguous (its stride is %lld): kn_contiguous(x)",
                       (long long)x->strides[x->ndim - 1]);
    return from > to ? split_elements(&own->view, from / to) : join_elements(&own->view, to / from);
}

static kn_status view_dtype_shape(kn_call *call)
{
    const view_dtype_record *own = call->params;
    return kn_call_output(call, own->dtype, own->view.ndim, own->view.shape);
}

static kn_status view_dtype_forward(kn_call *call)
{
    const view_dtype_record *own = call->params;
    return kn_tensor_on(&call->outputs[0], call->inputs[0]->storage, own->dtype, own->view.ndim, own->view.shape,
                        own->view.strides, own->view.offset);
}

static const kn_op_param rows[] = {KN_PARAM(kn_to_dtype_args, dtype)};
const kn_op kn_view_dtype_op = {.name = "view_dtype",
                                .inputs = {"x"},
                                .params = KN_PARAMS(kn_to_dtype_args, rows, .dtype = KN_F32),
                                .enter = view_dtype_enter,
                                .record_size = sizeof(view_dtype_record),
                                .is_view = true,
                                .shape = view_dtype_shape,
                                .forward = view_dtype_forward};

kn_tensor *kn_view_dtype(kn_tensor *x, kn_dtype dtype)
{
    return kn_invoke(&kn_view_dtype_op, &(kn_to_dtype_args){dtype}, x);
}
