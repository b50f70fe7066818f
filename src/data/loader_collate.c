/* data/loader_collate.c - from the host tensors of a batch to what kn_loader_next gives: to the device, beside the work
 * of the step before, or whatever the caller's collate function does. */
#include "base/error.h"
#include "data/loader.h"
#include "tensor/tensor.h"

void kn_made_batch_drop(kn_made_batch *batch)
{
    kn_release(batch->input);
    kn_release(batch->target);
    kn_event_free(batch->made);
    *batch = (kn_made_batch){0};
}

kn_status kn_collate_to_device(kn_batch *batch, void *user)
{
    if (!batch)
        return kn_fail_argument_null("kn_collate_to_device", "batch");
    kn_device *device = user ? user : kn_device_current();
    if (!device)
        return kn_error_status();
    kn_tensor *input = kn_to_device(batch->input, device, .non_blocking = true);
    kn_tensor *target = kn_to_device(batch->target, device, .non_blocking = true);
    if (!input || !target)
        return kn_error_status();
    batch->input = input;
    batch->target = target;
    return KN_OK;
}

/* --- calling the collate function ------------------------------------------------------------- */

/* The first `size` rows; the tensor itself where that is all of it. The scope owns the result. */
static kn_tensor *rows(kn_tensor *whole, int64_t size)
{
    int64_t shape[KN_MAX_DIMS] = {size};
    kn_tensor *view = NULL;
    if (whole->shape[0] == size)
        return kn_scope_adopt(kn_retain(whole));
    for (int dim = 1; dim < whole->ndim; dim++)
        shape[dim] = whole->shape[dim];
    return kn_tensor_view(&view, whole, whole->ndim, shape, NULL, 0) == KN_OK ? kn_scope_adopt(view) : kn_stick();
}

/* A function of the user's may fail without saying why. */
static kn_status fail_collate(const kn_loader *loader, kn_status status, int64_t batch)
{
    if (kn_error_status() == KN_OK)
        kn_fail(status, "it returned %s", kn_status_name(status));
    kn_error_prefix("loader: collate of batch %lld of %lld", (long long)batch, (long long)loader->batches);
    return status;
}

static kn_status call(const kn_loader *loader, const kn_slot *slot, kn_made_batch *result)
{
    int64_t size = kn_loader_batch_size(loader, slot->batch);
    kn_batch batch = {rows(slot->memory.input, size), rows(slot->memory.target, size)};
    if (!batch.input || !batch.target)
        return kn_error_status();
    kn_status status = loader->params.collate ? loader->params.collate(&batch, loader->params.collate_user)
                       : loader->stream       ? kn_collate_to_device(&batch, loader->device)
                                              : KN_OK;
    if (status == KN_OK && (!batch.input || !batch.target))
        status = kn_error_status() != KN_OK
                     ? kn_error_status()
                     : kn_fail(KN_ERR_STATE, "it left the batch's %s NULL", batch.input ? "target" : "input");
    if (status != KN_OK)
        return loader->params.collate ? fail_collate(loader, status, slot->batch) : status;
    result->input = kn_retain(batch.input);
    result->target = kn_retain(batch.target);
    return KN_OK;
}

static kn_status call_in_scope(const kn_loader *loader, const kn_slot *slot, kn_made_batch *result)
{
    int scope = kn_scope_begin();
    if (scope == 0)
        return kn_error_status();
    kn_status status = call(loader, slot, result);
    kn_scope_end(scope);
    return status;
}

/* On the loader's stream, which is the caller's current one meanwhile. A device's memory belongs to the stream that is
 * current when it is allocated: that must be the stream which writes it first, since blocks are reused in stream order.
 */
static kn_status call_on_stream(const kn_loader *loader, const kn_slot *slot, kn_made_batch *result)
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

kn_status kn_loader_make(kn_loader *loader, kn_slot *slot, kn_made_batch *batch)
{
    *batch = (kn_made_batch){0};
    kn_status status = loader->stream ? call_on_stream(loader, slot, batch) : call_in_scope(loader, slot, batch);
    if (status != KN_OK)
        kn_made_batch_drop(batch);
    return status;
}

/* --- handing over ----------------------------------------------------------------------------- */

/* The caller's stream waits for the copy. What it then does with the memory, the launches note themselves. */
static kn_status order_after(const kn_loader *loader, const kn_made_batch *batch)
{
    kn_stream *callers = kn_stream_current(loader->device);
    if (!callers)
        return kn_error_status();
    return kn_stream_wait_event(callers, batch->made);
}

kn_status kn_loader_hand_over(kn_loader *loader, kn_made_batch *batch, kn_tensor **input, kn_tensor **target)
{
    kn_status status = batch->made ? order_after(loader, batch) : KN_OK;
    if (status != KN_OK) {
        kn_made_batch_drop(batch);
        return status;
    }
    kn_event_free(batch->made);
    kn_tensor *adopted_input = kn_scope_adopt(batch->input);
    kn_tensor *adopted_target = adopted_input ? kn_scope_adopt(batch->target) : NULL;
    if (!adopted_input)
        kn_release(batch->target);
    *batch = (kn_made_batch){0};
    if (!adopted_target)
        return kn_error_status(); /* an adopted input is its scope's to release */
    *input = adopted_input;
    *target = adopted_target;
    return KN_OK;
}
