/* rt/pool_driver.c - where segments come from: the driver, or functions that the user gave. */
#include "rt/lost.h"
#include "rt/pool_blocks.h"

static struct {
    kn_mutex lock;
    kn_pluggable_allocator allocator;
} current = {.lock = KN_MUTEX_INIT};

static cl_int create_memory(kn_segment *segment)
{
    cl_int error;
    segment->memory = clCreateBuffer(segment->device->context, CL_MEM_READ_WRITE, segment->size, NULL, &error);
    return error;
}

bool kn_driver_take(kn_segment *segment)
{
    kn_device *device = segment->device;
    if (kn_device_is_lost(device))
        return false;
    uint64_t reserved = (uint64_t)device->pool.figures.stats[KN_STAT_RESERVED_BYTES][KN_PART_ALL].current;
    if (reserved + segment->size > kn_pool_allowed(device))
        return false;
    kn_lock(&current.lock);
    segment->from = current.allocator;
    kn_unlock(&current.lock);
    if (segment->from.allocate) {
        segment->memory = segment->from.allocate(segment->from.user, device, device->context, segment->size);
        return segment->memory != NULL;
    }
    cl_int error = KN_CL(KN_CL_ALLOC, create_memory(segment));
    if (error != CL_SUCCESS)
        kn_device_note_error(device, error, "allocating memory");
    return error == CL_SUCCESS;
}

void kn_driver_give(kn_segment *segment)
{
    if (segment->from.release)
        segment->from.release(segment->from.user, segment->device, segment->memory);
    else
        clReleaseMemObject(segment->memory);
}

kn_status kn_change_current_allocator(const kn_pluggable_allocator *allocator)
{
    if (allocator && (!allocator->allocate || !allocator->release))
        return kn_fail_argument_null("kn_change_current_allocator", allocator->allocate ? "release" : "allocate");
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        kn_device *device = kn_device_slot_at(slot);
        if (kn_memory_reserved(device) > 0)
            return kn_fail(KN_ERR_STATE,
                           "kn_change_current_allocator: %s has memory of the present allocator; change it before the "
                           "first tensor, or free all tensors and call kn_empty_cache",
                           device->label);
    }
    kn_lock(&current.lock);
    current.allocator = allocator ? *allocator : (kn_pluggable_allocator){0};
    kn_unlock(&current.lock);
    return KN_OK;
}
