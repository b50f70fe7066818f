/* data/loader_copy.c - from staging memory to the device, beside the work of the step before. */
#include <string.h>

#include "base/error.h"
#include "data/loader.h"
#include "tensor/tensor.h"

kn_status kn_slot_wait(kn_slot *slot)
{
    if (!slot->copied)
        return KN_OK;
    kn_status status = kn_event_await(slot->copied);
    kn_event_free(slot->copied);
    slot->copied = NULL;
    return status;
}

void kn_device_batch_drop(kn_device_batch *batch)
{
    kn_release(batch->input);
    kn_release(batch->target);
    kn_event_free(batch->copied);
    *batch = (kn_device_batch){0};
}

static kn_status make_tensor(kn_tensor **tensor, const kn_sample_spec *spec, int64_t size, kn_device *device)
{
    int64_t shape[KN_MAX_DIMS] = {size};
    for (int dim = 0; dim < spec->ndim; dim++)
        shape[dim + 1] = spec->shape[dim];
    return kn_tensor_new(tensor, spec->dtype, spec->ndim + 1, shape, device);
}

/* New tensors for the batch. A device's memory belongs to the stream that is current when it is allocated: that must be
 * the stream which writes it first, since blocks are reused in stream order. */
static kn_status make_tensors(const kn_loader *loader, int64_t size, kn_device_batch *batch)
{
    kn_stream *callers = NULL;
    if (loader->stream) {
        callers = kn_stream_current(loader->device);
        if (!callers)
            return kn_error_status();
        KN_TRY(kn_stream_set_current(loader->stream));
    }
    kn_status status = make_tensor(&batch->input, &loader->dataset->input, size, loader->device);
    if (status == KN_OK)
        status = make_tensor(&batch->target, &loader->dataset->target, size, loader->device);
    if (callers)
        kn_stream_set_current(callers);
    return status;
}

static void copy_on_host(const kn_loader *loader, const kn_slot *slot, int64_t size, const kn_device_batch *batch)
{
    const unsigned char *data = kn_pinned_data(slot->memory);
    size_t inputs = (size_t)size * loader->input_bytes, targets = (size_t)size * loader->target_bytes;
    if (inputs > 0)
        memcpy(batch->input->storage->host, data, inputs);
    if (targets > 0)
        memcpy(batch->target->storage->host, data + loader->target_offset, targets);
}

/* Two events: one stays with the slot until it is filled again, the other with the batch until it is handed over. */
static kn_status copy_on_device(const kn_loader *loader, kn_slot *slot, int64_t size, kn_device_batch *batch)
{
    kn_status status = kn_buffer_write_pinned(loader->stream, batch->input->storage->buffer, 0, slot->memory, 0,
                                              (size_t)size * loader->input_bytes);
    if (status == KN_OK)
        status = kn_buffer_write_pinned(loader->stream, batch->target->storage->buffer, 0, slot->memory,
                                        loader->target_offset, (size_t)size * loader->target_bytes);
    if (status == KN_OK)
        status = kn_event_new_recorded(&slot->copied, loader->stream);
    if (status == KN_OK)
        status = kn_event_new_recorded(&batch->copied, loader->stream);
    if (status != KN_OK) { /* a part of the copy may be under way, and the slot will be used again */
        kn_stream_synchronize(loader->stream);
        kn_event_free(slot->copied);
        slot->copied = NULL;
    }
    return status;
}

kn_status kn_loader_copy(kn_loader *loader, kn_slot *slot, kn_device_batch *batch)
{
    int64_t size = kn_loader_batch_size(loader, slot->batch);
    *batch = (kn_device_batch){0};
    kn_status status = make_tensors(loader, size, batch);
    if (status == KN_OK && loader->stream)
        status = copy_on_device(loader, slot, size, batch);
    else if (status == KN_OK)
        copy_on_host(loader, slot, size, batch);
    if (status != KN_OK)
        kn_device_batch_drop(batch);
    return status;
}

/* The caller's stream waits for the copy. What it then does with the memory, the launches note themselves. */
static kn_status order_after_copy(const kn_loader *loader, const kn_device_batch *batch)
{
    kn_stream *callers = kn_stream_current(loader->device);
    if (!callers)
        return kn_error_status();
    return kn_stream_wait_event(callers, batch->copied);
}

kn_status kn_loader_hand_over(kn_loader *loader, kn_device_batch *batch, kn_tensor **input, kn_tensor **target)
{
    kn_status status = batch->copied ? order_after_copy(loader, batch) : KN_OK;
    if (status != KN_OK) {
        kn_device_batch_drop(batch);
        return status;
    }
    kn_event_free(batch->copied);
    kn_tensor *adopted_input = kn_scope_adopt(batch->input);
    kn_tensor *adopted_target = adopted_input ? kn_scope_adopt(batch->target) : NULL;
    if (!adopted_input)
        kn_release(batch->target);
    *batch = (kn_device_batch){0};
    if (!adopted_target)
        return kn_error_status(); /* an adopted input is its scope's to release */
    *input = adopted_input;
    *target = adopted_target;
    return KN_OK;
}
