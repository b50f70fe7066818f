/* ops/shape/as_strided.c - arbitrary views of a tensor's storage and their gradient; also used to regenerate views
 * (autograd/view.h). */
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/storage.h>
#include <string.h>

#include "autograd/view.h"
#include "autograd/work.h"
#include "base/load.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/reference.h"
#include "ops/shape/views.h"
#include "tensor/strides.h"

/* --- as_strided --------------------------------------------------------------------------------------------------- */

static kn_status as_strided_enter(kn_entry *entry)
{
    const kn_as_strided_args *args = entry->params;
    const kn_tensor *x = entry->inputs[0];
    kn_base_slice *slice = kn_entry_record(entry, sizeof *slice);

    if (args->strides.count != args->shape.count)
        return kn_fail(KN_ERR_ARGUMENT, "%d strides are given for %d dimensions", args->strides.count,
                       args->shape.count);
    KN_TRY(kn_storage_check_layout(x->storage, x->dtype, args->shape.count, args->shape.values, args->strides.values,
                                   args->offset));
    kn_slice_of(slice, x, x);
    slice->view.ndim = args->shape.count;
    slice->view.offset = args->offset;
    memcpy(slice->view.shape, args->shape.values, sizeof slice->view.shape);
    memcpy(slice->view.strides, args->strides.values, sizeof slice->view.strides);
    return KN_OK;
}

static kn_status as_strided_shape(kn_call *call)
{
    const kn_geometry *view = &((const kn_base_slice *)call->params)->view;
    const kn_tensor *x = call->inputs[0];
    char text[KN_DESCRIBE];

    if (call->needs_grad && kn_strides_may_overlap(x->ndim, x->shape, x->strides))
        return kn_fail(KN_ERR_STATE,
                       "several elements of %s share memory, so gradients cannot be attributed to them; kn_clone "
                       "it first",
                       kn_tensor_describe(text, sizeof text, x));
    return kn_call_output(call, x->dtype, view->ndim, view->shape);
}

static kn_status as_strided_forward(kn_call *call)
{
    const kn_geometry *view = &((const kn_base_slice *)call->params)->view;
    return kn_tensor_view(&call->outputs[0], call->inputs[0], view->ndim, view->shape, view->strides, view->offset);
}

/* Sums the gradient over dimensions of stride 0, as after kn_expand. */
static kn_tensor *collapse(kn_tensor *gradient, kn_geometry *view)
{
    int dims[KN_MAX_DIMS], count = 0;

    for (int d = 0; d < view->ndim; d++)
        if (view->strides[d] == 0 && view->shape[d] > 1) {
            dims[count++] = d;
            view->shape[d] = 1;
        }
    return count > 0 ? kn_sum_dims(gradient, dims, count, true) : gradient;
}

/* Scatters the gradient into the memory that x and the view span together, and takes x's view of it. */
static kn_status as_strided_backward(kn_grad_call *grad)
{
    kn_base_slice slice = *(const kn_base_slice *)grad->params;
    const kn_span_of_slice span = kn_slice_span(&slice);
    kn_tensor *gradient = collapse(grad->grad_outputs[0], &slice.view);
    kn_as_strided_backward_args args = {
        .size = span.elements, .strides.count = slice.view.ndim, .offset = slice.view.offset - span.start};

    memcpy(args.strides.values, slice.view.strides, sizeof args.strides.values);
    kn_tensor *memory = kn_invoke(&kn_as_strided_backward_op, &args, gradient);
    grad->grad_inputs[0] =
        kn_as_strided(memory, slice.base.ndim, slice.base.shape, slice.base.strides, slice.base.offset - span.start);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static const kn_op_param as_strided_rows[] = {
    KN_PARAM(kn_as_strided_args, shape), KN_PARAM(kn_as_strided_args, strides), KN_PARAM(kn_as_strided_args, offset)};
const kn_op kn_as_strided_op = {.name = "as_strided",
                                .inputs = {"x"},
                                .params = KN_PARAMS(kn_as_strided_args, as_strided_rows),
                                .enter = as_strided_enter,
                                .record_size = sizeof(kn_base_slice),
                                .is_view = true,
                                .shape = as_strided_shape,
                                .forward = as_strided_forward,
                                .backward = as_strided_backward,
                                .backward_recorded = as_strided_backward};

kn_tensor *kn_as_strided(kn_tensor *x, int ndim, const int64_t *shape, const int64_t *strides, int64_t offset)
{
    kn_as_strided_args args = {.offset = offset};
    return kn_ints_of(&args.shape, "as_strided", "shape", ndim, shape) &&
                   kn_ints_of(&args.strides, "as_strided", "strides", ndim, strides)
               ? kn_invoke(&kn_as_strided_op, &args, x)
               : NULL;
}

KN_AT_LOAD register_op(void) { kn_view_set_op(&kn_as_strided_op); }

/* --- as_strided_backward: scatter-add into zeros ----------------------------- */

static kn_status scatter_shape(kn_call *call)
{
    const kn_as_strided_backward_args *args = call->params;
    const kn_tensor *g = call->inputs[0];

    if (!kn_dtype_is_floating(g->dtype))
        return kn_fail(KN_ERR_DTYPE, "gradients are floating, not %s", kn_dtype_name(g->dtype));
    if (args->strides.count != g->ndim)
        return kn_fail(KN_ERR_ARGUMENT, "%d strides are given for %d dimensions", args->strides.count, g->ndim);
    for (int d = 0; d < g->ndim; d++)
        if (args->strides.values[d] < 0)
            return kn_fail(KN_ERR_ARGUMENT, "stride %lld of dimension %d is negative",
                           (long long)args->strides.values[d], d);
    const int64_t extent = kn_strides_extent(g->ndim, g->shape, args->strides.values);
    if (args->size < 0 || args->offset < 0 || extent < 0 || args->offset > args->size ||
        extent > args->size - args->offset)
        return kn_fail(KN_ERR_ARGUMENT, "the elements from offset %lld extend beyond size %lld",
                       (long long)args->offset, (long long)args->size);
    return kn_call_output(call, g->dtype, 1, &args->size);
}

/* Chooses the dimensions to loop over so that no two elements within one iteration overlap. The longest dimensions are
 * preferred for the iteration's body. */
static void choose_loops(const kn_tensor *g, const int64_t *strides, bool *loops)
{
    int64_t shape[KN_MAX_DIMS];
    bool seen[KN_MAX_DIMS] = {false};

    for (int d = 0; d < g->ndim; d++)
        shape[d] = 1;
    for (int i = 0; i < g->ndim; i++) {
        int longest = -1;
        for (int d = 0; d < g->ndim; d++)
            if (!seen[d] && (longest < 0 || g->shape[d] > g->shape[longest]))
                longest = d;
        seen[longest] = true;
        shape[longest] = g->shape[longest];
        loops[longest] = kn_strides_may_overlap(g->ndim, shape, strides);
        if (loops[longest])
            shape[longest] = 1;
    }
}

/* One addition per index of the looped dimensions, in order, so that the sums are deterministic. */
static kn_status accumulate(kn_tensor *memory, const kn_tensor *g, const int64_t *strides, int64_t offset)
{
    bool loops[KN_MAX_DIMS];
    int64_t shape[KN_MAX_DIMS], rounds = 1;

    choose_loops(g, strides, loops);
    for (int d = 0; d < g->ndim; d++) {
        shape[d] = loops[d] ? 1 : g->shape[d];
        rounds *= loops[d] ? g->shape[d] : 1;
    }
    for (int64_t round = 0; round < rounds; round++) {
        int64_t rest = round, to = memory->offset + offset, from = g->offset;
        kn_tensor *sum = NULL, *addend = NULL;
        for (int d = g->ndim - 1; d >= 0; d--) {
            to += loops[d] ? rest % g->shape[d] * strides[d] : 0;
            from += loops[d] ? rest % g->shape[d] * g->strides[d] : 0;
            rest /= loops[d] ? g->shape[d] : 1;
        }
        kn_status status = kn_tensor_on(&sum, memory->storage, memory->dtype, g->ndim, shape, strides, to);
        if (status == KN_OK)
            status = kn_tensor_on(&addend, g->storage, g->dtype, g->ndim, shape, g->strides, from);
        if (status == KN_OK)
            status = kn_tensor_accumulate(sum, addend);
        kn_release(sum);
        kn_release(addend);
        KN_TRY(status);
    }
    return KN_OK;
}

static kn_status scatter_forward(kn_call *call)
{
    const kn_as_strided_backward_args *args = call->params;
    const int64_t *strides = args->strides.values;
    kn_tensor *memory = call->outputs[0], *g = call->inputs[0], *part;

    KN_TRY(kn_tensor_fill(memory, 0));
    if (kn_numel(g) == 0)
        return KN_OK;
    if (kn_strides_may_overlap(g->ndim, g->shape, strides))
        return accumulate(memory, g, strides, args->offset);
    KN_TRY(kn_tensor_view(&part, memory, g->ndim, g->shape, strides, memory->offset + args->offset));
    const kn_status status = kn_tensor_copy(part, g);
    kn_release(part);
    return status;
}

static kn_status scatter_backward(kn_grad_call *grad)
{
    const kn_as_strided_backward_args *args = grad->params;
    kn_tensor *gradient = kn_contiguous(grad->grad_outputs[0]);

    grad->grad_inputs[0] = kn_as_strided(gradient, grad->input[0].ndim, grad->input[0].shape, args->strides.values,
                                         kn_storage_offset(gradient) + args->offset);
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_status scatter_reference(const kn_call *call)
{
    const kn_as_strided_backward_args *args = call->params;
    const kn_tensor *g = call->inputs[0];

    for (int64_t i = 0; i < kn_numel(g); i++) {
        int64_t rest = i, at = args->offset;
        for (int d = g->ndim - 1; d >= 0; d--) {
            at += rest % g->shape[d] * args->strides.values[d];
            rest /= g->shape[d];
        }
        kn_reference_set(call->outputs[0], at, kn_reference_get(call->outputs[0], at) + kn_reference_get(g, i));
    }
    return KN_OK;
}

static const kn_op_param scatter_rows[] = {KN_PARAM(kn_as_strided_backward_args, size),
                                           KN_PARAM(kn_as_strided_backward_args, strides),
                                           KN_PARAM(kn_as_strided_backward_args, offset)};
const kn_op kn_as_strided_backward_op = {.name = "as_strided_backward",
                                         .inputs = {"gradient"},
                                         .dtypes = {KN_DTYPES_FLOATING},
                                         .params = KN_PARAMS(kn_as_strided_backward_args, scatter_rows),
                                         .shape = scatter_shape,
                                         .forward = scatter_forward,
                                         .backward = scatter_backward,
                                         .backward_recorded = scatter_backward,
                                         .reference = scatter_reference,
                                         .work = kn_work_memory_bound,
                                         .backward_work = kn_grad_work_memory_bound};
