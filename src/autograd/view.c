/* autograd/view.c - see view.h. */
#include "autograd/view.h"

#include <string.h>

#include "autograd/tape.h"
#include "tensor/strides.h"

static _Thread_local bool tracking_off;
static const kn_op *as_strided;

void kn_view_set_op(const kn_op *op) { as_strided = op; }

bool kn_view_set_tracking(bool enabled)
{
    bool before = !tracking_off;
    tracking_off = !enabled;
    return before;
}

/* --- a view and its base ---------------------------------------------------------------------- */

/* A tensor whose storage was replaced (kn_module_to) no longer shares anything with its former views. */
kn_tensor *kn_view_base(const kn_tensor *tensor)
{
    kn_tensor *base = tensor->autograd ? tensor->autograd->base : NULL;
    return base && base->storage == tensor->storage ? base : NULL;
}

static unsigned version_of(const kn_tensor *tensor) { return atomic_load(&tensor->storage->version); }

kn_status kn_view_track(kn_tensor *view, kn_tensor *of, kn_view_kind kind)
{
    if (tracking_off || !kn_dtype_is_floating(view->dtype))
        return KN_OK;
    struct kn_autograd *autograd = kn_autograd_of(view);
    if (!autograd)
        return KN_ERR_MEMORY;
    kn_tensor *base = kn_view_base(of);
    autograd->view_kind = base && kind == KN_VIEW_ORDINARY ? of->autograd->view_kind : kind;
    autograd->base = kn_retain(base ? base : of);
    autograd->version = version_of(view);
    return KN_OK;
}

bool kn_view_is_outdated(const kn_tensor *tensor)
{
    const kn_tensor *base = kn_view_base(tensor);
    return base && tensor->autograd->version != version_of(tensor) && kn_autograd_wants(base);
}

/* If elements of the base overlapped in memory, it would be undefined which of them a gradient belongs to. */
static kn_status check_base(const kn_tensor *base)
{
    if (kn_tensor_check_no_overlap(base) == KN_OK)
        return KN_OK;
    kn_error_prefix("the base of a view that was changed in place");
    return kn_error_status();
}

kn_status kn_view_regenerate(kn_tensor *view)
{
    kn_tensor *base = kn_view_base(view);
    if (view->autograd->view_kind == KN_VIEW_WITHOUT_GRAD)
        return kn_fail(KN_ERR_STATE, "a view made inside KN_NO_GRAD is used after its base was changed in place: make "
                                     "the view again outside KN_NO_GRAD, or kn_detach it");
    if (view->autograd->view_kind == KN_VIEW_OF_MANY)
        return kn_fail(KN_ERR_STATE, "one of several views made at once is used after its base was changed in place: "
                                     "make them again, or kn_clone them before");
    KN_TRY(check_base(base));
    kn_base_slice slice;
    kn_slice_of(&slice, base, view);
    kn_call call = {
        .op = as_strided, .params = &slice, .num_inputs = 1, .inputs = &base, .num_outputs = 1, .outputs = {view}};
    const kn_record record = kn_record_of(&call);
    KN_TRY(kn_tape_add(&record));
    view->autograd->version = version_of(view);
    return KN_OK;
}

/* --- changes in place ------------------------------------------------------------------------- */

bool kn_change_wants_record(const kn_tensor *tensor)
{
    return kn_autograd_wants(tensor) || kn_autograd_wants(kn_view_base(tensor));
}

static kn_status check_view(const kn_tensor *view, const kn_tensor *base)
{
    if (view->autograd->view_kind == KN_VIEW_WITHOUT_GRAD)
        return kn_fail(KN_ERR_STATE, "a view made inside KN_NO_GRAD cannot be changed in place outside it: make the "
                                     "view outside, or change it inside");
    if (view->autograd->view_kind == KN_VIEW_OF_MANY)
        return kn_fail(KN_ERR_STATE, "one of several views made at once cannot be changed in place: kn_clone it first");
    if (kn_autograd_wants(base) && kn_is_leaf(base))
        return kn_fail(KN_ERR_STATE, "a view of a leaf that requires gradients cannot be changed in place: do it "
                                     "inside KN_NO_GRAD, or kn_clone the leaf first");
    return check_base(base);
}

kn_status kn_change_check(const kn_tensor *tensor)
{
    const kn_tensor *base = kn_view_base(tensor);
    if (base)
        KN_TRY(check_view(tensor, base));
    if (kn_autograd_wants(tensor) && kn_is_leaf(tensor))
        return kn_fail(KN_ERR_STATE,
                       "a leaf that requires gradients cannot be changed in place: do it inside KN_NO_GRAD");
    return KN_OK;
}

/* --- slices ----------------------------------------------------------------------------------- */

static void geometry_of(kn_geometry *geometry, const kn_tensor *tensor)
{
    geometry->ndim = tensor->ndim;
    memcpy(geometry->shape, tensor->shape, sizeof geometry->shape);
    memcpy(geometry->strides, tensor->strides, sizeof geometry->strides);
    geometry->offset = tensor->offset;
}

void kn_slice_of(kn_base_slice *slice, const kn_tensor *base, const kn_tensor *view)
{
    geometry_of(&slice->base, base);
    geometry_of(&slice->view, view);
}

static int64_t extent(const kn_geometry *g) { return kn_strides_extent(g->ndim, g->shape, g->strides); }

kn_span_of_slice kn_slice_span(const kn_base_slice *slice)
{
    const kn_geometry *base = &slice->base, *view = &slice->view;
    const int64_t start = base->offset < view->offset ? base->offset : view->offset;
    const int64_t base_end = base->offset + extent(base), view_end = view->offset + extent(view);
    return (kn_span_of_slice){start, (base_end > view_end ? base_end : view_end) - start};
}

static kn_status view_of(kn_tensor **tensor, kn_tensor *memory, const kn_geometry *geometry, int64_t start)
{
    return kn_tensor_view(tensor, memory, geometry->ndim, geometry->shape, geometry->strides, geometry->offset - start);
}

kn_status kn_slice_new(const kn_base_slice *slice, kn_dtype dtype, kn_device *device, kn_tensor **whole,
                       kn_tensor **part)
{
    kn_tensor *memory = NULL;
    const kn_span_of_slice span = kn_slice_span(slice);
    *whole = *part = NULL;
    KN_TRY(kn_tensor_new(&memory, dtype, 1, &span.elements, device));
    kn_status status = span.elements > extent(&slice->base) ? kn_tensor_fill(memory, 0) : KN_OK;
    if (status == KN_OK)
        status = view_of(whole, memory, &slice->base, span.start);
    if (status == KN_OK)
        status = view_of(part, memory, &slice->view, span.start);
    kn_release(memory);
    if (status != KN_OK) {
        kn_release(*whole);
        *whole = NULL;
    }
    return status;
}
