/* dist/coalesce.c - packs many tensors into few flat buffers, because a large transfer costs little more than a small
 * one. */
#include "dist/collective.h"

#define ALIGN_BYTES 64 /* each tensor starts on a cache line */

/* --- the layout ------------------------------------------------------------------------------------------------- */

/* The dtype's open buffer if it has room for `elements` more, otherwise a new one. */
static int find_buffer(kn_packing *layout, kn_dtype dtype, int64_t elements, size_t buffer_size)
{
    int64_t most = (int64_t)(buffer_size / kn_dtype_size(dtype));
    for (int b = layout->num_buffers - 1; b >= 0; b--) {
        const kn_coalesced_buffer *buffer = &layout->buffers[b];
        if (buffer->dtype != dtype)
            continue;
        if (buffer->elements + elements <= most)
            return b;
        break; /* only the last buffer of a dtype is open, so buffers hold neighbours */
    }
    layout->buffers[layout->num_buffers] = (kn_coalesced_buffer){.dtype = dtype};
    return layout->num_buffers++;
}

kn_status kn_packing_make(kn_packing *layout, kn_tensor *const *tensors, int count, size_t buffer_size)
{
    *layout = (kn_packing){.count = count};
    layout->places = kn_calloc((size_t)count, sizeof *layout->places);
    layout->buffers = kn_calloc((size_t)count, sizeof *layout->buffers);
    if (!layout->places || !layout->buffers) {
        kn_packing_free(layout);
        return KN_ERR_MEMORY;
    }
    for (int t = 0; t < count; t++) {
        int64_t unit = ALIGN_BYTES / (int64_t)kn_dtype_size(tensors[t]->dtype);
        int64_t elements = (kn_numel(tensors[t]) + unit - 1) / unit * unit;
        int b = find_buffer(layout, tensors[t]->dtype, elements, buffer_size ? buffer_size : KN_COALESCED_BYTES);
        layout->places[t] = (kn_coalesced_place){b, layout->buffers[b].elements};
        layout->buffers[b].elements += elements;
        layout->buffers[b].tensors++;
    }
    return KN_OK;
}

void kn_packing_free(kn_packing *layout)
{
    kn_free(layout->places);
    kn_free(layout->buffers);
    *layout = (kn_packing){0};
}

/* --- packing and unpacking -------------------------------------------------------------------------------------- */

kn_status kn_packing_new_buffer(const kn_packing *layout, int b, kn_device *device, kn_tensor **buffer)
{
    int64_t elements = layout->buffers[b].elements;
    return kn_tensor_new(buffer, layout->buffers[b].dtype, 1, &elements, device);
}

/* Can the tensor's memory serve as the buffer? It must be the only tensor, contiguous, and end where the buffer
 * ends. */
static bool is_its_own_buffer(const kn_packing *layout, int b, const kn_tensor *tensor)
{
    return layout->buffers[b].tensors == 1 && kn_is_contiguous(tensor) &&
           kn_numel(tensor) == layout->buffers[b].elements;
}

kn_status kn_packing_pack(const kn_packing *layout, int b, kn_tensor *const *tensors, kn_device *device,
                          kn_tensor **packed)
{
    kn_tensor *buffer = NULL;
    for (int t = 0; t < layout->count; t++)
        if (layout->places[t].buffer == b && is_its_own_buffer(layout, b, tensors[t]))
            return kn_tensor_view(packed, tensors[t], 1, &layout->buffers[b].elements, NULL, tensors[t]->offset);
    KN_TRY(kn_packing_new_buffer(layout, b, device, &buffer));
    kn_status status = KN_OK;
    for (int t = 0; t < layout->count && status == KN_OK; t++) {
        kn_tensor *part = NULL;
        if (layout->places[t].buffer != b)
            continue;
        status = kn_tensor_part(&part, buffer, tensors[t]->ndim, tensors[t]->shape, layout->places[t].start);
        if (status == KN_OK)
            status = kn_tensor_copy(part, tensors[t]);
        kn_release(part);
    }
    if (status != KN_OK) {
        kn_release(buffer);
        return status;
    }
    *packed = buffer;
    return KN_OK;
}

kn_status kn_packing_unpack(const kn_packing *layout, int b, kn_tensor *buffer, kn_tensor *const *like,
                            kn_tensor **parts)
{
    for (int t = 0; t < layout->count; t++)
        if (layout->places[t].buffer == b)
            KN_TRY(kn_tensor_part(&parts[t], buffer, like[t]->ndim, like[t]->shape, layout->places[t].start));
    return KN_OK;
}
