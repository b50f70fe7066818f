/* data/loader_collate.c - turns a batch's host tensors into what the caller gets: by default a copy to the device that
 * overlaps the previous step, or whatever the caller's collate function does. */
#include <string.h>

#include "base/error.h"
#include "data/loader.h"
#include "tensor/scope.h"
#include "tensor/tensor.h"

static void forget(const kn_loader *loader, kn_prepared_batch *batch)
{
    for (int i = 0; i < loader->num_fields && batch->fields; i++)
        batch->fields[i] = NULL;
    batch->is_made = false;
    batch->made = NULL;
}

void kn_loader_drop(kn_loader *loader, kn_prepared_batch *batch)
{
    for (int i = 0; i < loader->num_fields && batch->fields; i++)
        kn_release(batch->fields[i]);
    kn_event_free(batch->made);
    forget(loader, batch);
}

kn_status kn_collate_to_device(const kn_batch *batch, void *user)
{
    if (!batch)
        return kn_fail_argument_null("kn_collate_to_device", "batch");
    kn_device *device = user ? user : kn_device_current();
    if (!device)
        return kn_error_status();
    for (int i = 0; i < batch->num_fields; i++) {
        batch->fields[i] = kn_to_device(batch->fields[i], device, .non_blocking = true);
        if (!batch->fields[i])
            return kn_error_status();
    }
    return KN_OK;
}

/* --- calling the collate function ------------------------------------------------------------- */

/* What the batch fills of a slot's field, from its beginning: `size` samples, each as long as the longest. The scope
 * owns the result. */
static kn_tensor *filled(const kn_loader *loader, const kn_slot *slot, int f, int64_t size)
{
    kn_tensor *whole = slot->memory.fields[f], *view = NULL;
    int64_t shape[KN_MAX_DIMS] = {size};
    for (int dim = 1; dim < whole->ndim; dim++)
        shape[dim] = whole->shape[dim];
    if (loader->dataset->fields[f].varies)
        shape[1] = slot->longest[f];
    if (memcmp(shape, whole->shape, (size_t)whole->ndim * sizeof shape[0]) == 0)
        return kn_scope_adopt(kn_retain(whole));
    return kn_tensor_view(&view, whole, whole->ndim, shape, NULL, 0) == KN_OK ? kn_scope_adopt(view)
                                                                              : kn_error_make_sticky();
}

/* A user's function may fail without setting an error. */
static kn_status fail_collate(const kn_loader *loader, kn_status status, int64_t batch)
{
    if (kn_error_status() == KN_OK)
        kn_fail(status, "it returned %s", kn_status_name(status));
    kn_error_prefix("loader: collate of batch %lld of %lld", (long long)batch, (long long)loader->batches);
    return status;
}

/* Calls the collate function on the slot's samples; the scope owns the results. */
static kn_status collate(const kn_loader *loader, const kn_slot *slot, kn_tensor **fields)
{
    const int64_t size = kn_loader_batch_size(loader, slot->batch);
    for (int i = 0; i < loader->num_fields; i++)
        if (!(fields[i] = filled(loader, slot, i, size)))
            return kn_error_status();
    const kn_batch batch = kn_loader_describe(loader, fields, slot->batch);
    kn_status status = loader->params.collate ? loader->params.collate(&batch, loader->params.collate_user)
                       : loader->stream       ? kn_collate_to_device(&batch, loader->device)
                                              : KN_OK;
    for (int i = 0; i < loader->num_fields && status == KN_OK; i++)
        if (!fields[i])
            status = kn_error_status() != KN_OK
                         ? kn_error_status()
                         : kn_fail(KN_ERR_STATE, "it left the batch's field \"%s\" NULL", loader->dataset->names[i]);
    return status == KN_OK || !loader->params.collate ? status : fail_collate(loader, status, slot->batch);
}

static kn_status call(const kn_loader *loader, const kn_slot *slot, kn_prepared_batch *result)
{
    kn_status status = collate(loader, slot, result->fields);
    if (status != KN_OK) {
        forget(loader, result);
        return status;
    }
    for (int i = 0; i < loader->num_fields; i++)
        kn_retain(result->fields[i]);
    result->is_made = true;
    return KN_OK;
}

static kn_status call_in_scope(const kn_loader *loader, const kn_slot *slot, kn_prepared_batch *result)
{
    int scope = kn_scope_begin();
    if (scope == 0)
        return kn_error_status();
    kn_status status = call(loader, slot, result);
    kn_scope_end(scope);
    return status;
}

/* Makes the loader's stream current for the call. Device memory belongs to the stream that is current at allocation,
 * which must be the stream that writes it first, since blocks are reused in stream order. */
static kn_status call_on_stream(const kn_loader *loader, const kn_slot *slot, kn_prepared_batch *result)
{
    kn_device *device = kn_device_current();
    kn_stream *stream = kn_stream_current(loader->device);
    if (!device || !stream)
        return kn_error_status();
    KN_TRY(kn_stream_set_current(loader->stream));
    kn_device_set_current(loader->device);
    kn_status status = call_in_scope(loader, slot, result);
    if (status == KN_OK)
        status = kn_event_new_recorded(&result->made, loader->stream);
    kn_device_set_current(device);
    kn_stream_set_current(stream);
    return status;
}

kn_status kn_loader_make(kn_loader *loader, kn_slot *slot, kn_prepared_batch *batch)
{
    kn_status status = loader->stream ? call_on_stream(loader, slot, batch) : call_in_scope(loader, slot, batch);
    if (status != KN_OK)
        kn_loader_drop(loader, batch);
    return status;
}

/* --- handing over ----------------------------------------------------------------------------- */

/* Makes the caller's stream wait for the copy. Later uses of the memory are tracked by the launches. */
static kn_status order_after(const kn_loader *loader, const kn_prepared_batch *batch)
{
    kn_stream *callers = kn_stream_current(loader->device);
    if (!callers)
        return kn_error_status();
    return kn_stream_wait_event(callers, batch->made);
}

kn_status kn_loader_hand_over(kn_loader *loader, kn_prepared_batch *batch, kn_yielded_batch *given)
{
    kn_status status = batch->made ? order_after(loader, batch) : KN_OK;
    if (status != KN_OK) {
        kn_loader_drop(loader, batch);
        return status;
    }
    kn_event_free(batch->made);
    status = kn_scope_adopt_all(batch->fields, loader->num_fields, given->fields);
    forget(loader, batch);
    if (status == KN_OK)
        given->batch = kn_loader_describe(loader, given->fields, loader->next_batch - 1);
    return status;
}
