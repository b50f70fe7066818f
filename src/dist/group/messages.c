/* dist/group/messages.c - calls that move no values between all ranks: messages, barriers, splitting. */
#include "dist/group/call.h"

/* A contiguous host tensor with the shape of `tensor`: itself if it is one. Owned. */
static kn_status host_memory(kn_tensor **memory, kn_tensor *tensor)
{
    kn_device *device = kn_device_of(tensor);
    if (kn_device_is_host(device))
        return kn_is_contiguous(tensor) ? (*memory = kn_retain(tensor), KN_OK)
                                        : kn_tensor_new(memory, tensor->dtype, tensor->ndim, tensor->shape, device);
    return kn_tensor_new_pinned(memory, tensor->dtype, tensor->ndim, tensor->shape, device);
}

static size_t bytes_of(const kn_tensor *tensor) { return (size_t)kn_numel(tensor) * kn_dtype_size(tensor->dtype); }

static kn_status copy(kn_tensor *to, kn_tensor *from, const char *part)
{
    KN_PART(part);
    return to == from ? KN_OK : kn_tensor_copy_with(to, from, true);
}

static kn_status send(kn_transport *transport, kn_work *work, kn_tensor *memory)
{
    KN_TRY(copy(memory, work->tensor, KN_PART_COPY_DOWN));
    const void *data = kn_data(memory);
    KN_WAITING_PART(KN_PART_EXCHANGE);
    return data ? transport->class->send(transport, data, bytes_of(memory), work->root, work->tag) : kn_error_status();
}

static kn_status receive(kn_transport *transport, kn_work *work, kn_tensor *memory)
{
    void *data = kn_data(memory);
    if (!data)
        return kn_error_status();
    {
        KN_WAITING_PART(KN_PART_EXCHANGE);
        KN_TRY(transport->class->receive(transport, data, bytes_of(memory), work->root, work->tag, work->sender));
    }
    return copy(work->tensor, memory, KN_PART_COPY_UP);
}

static kn_status with_memory(kn_group *group, kn_work *work,
                             kn_status (*move)(kn_transport *transport, kn_work *work, kn_tensor *memory))
{
    kn_tensor *memory = NULL;
    KN_TRY(host_memory(&memory, work->tensor));
    kn_status status = move(group->transport, work, memory);
    kn_group_release(group, memory);
    return status;
}

kn_status kn_run_send(kn_group *group, kn_work *work) { return with_memory(group, work, send); }
kn_status kn_run_receive(kn_group *group, kn_work *work) { return with_memory(group, work, receive); }

kn_status kn_run_barrier(kn_group *group, kn_work *work)
{
    (void)work;
    KN_WAITING_PART(KN_PART_WAIT);
    return group->transport->class->barrier(group->transport);
}

kn_status kn_run_split(kn_group *group, kn_work *work)
{
    return group->transport->class->split(group->transport, work->color, work->key, work->part);
}
