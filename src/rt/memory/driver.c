/* rt/memory/driver.c - the sources of segments: the driver, or user functions. */
#include <stdint.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "rt/device/fill.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/device/table.h"
#include "rt/memory/blocks.h"
#include "rt/stream/queue.h"

#define LARGE_PAGE ((size_t)2 << 20)

static struct {
    kn_mutex lock;
    kn_pluggable_allocator allocator;
} current = {.lock = KN_MUTEX_INIT};

/* Some drivers allocate memory only at first use (rt/device/quirks.h), so it is used here: a request then fails while
 * the pool can still free its cache. */
static cl_int use_memory(const kn_segment *segment)
{
    const cl_uint zero = 0;
    cl_command_queue queue = segment->device->service;
    cl_int error = kn_fill_enqueue(queue, segment->memory, &zero, sizeof zero, 0, sizeof zero, NULL);
    return error == CL_SUCCESS ? clFinish(queue) : error;
}

/* --- memory that host and device share ---------------------------------------------------------------------------- */

/* A CPU device's memory is fine-grained SVM where the driver has it: then the host may use it between commands, which
 * takes no time, while mapping is two commands that other threads of the driver make (PoCL: 20 us). On other devices
 * such memory may be slow. */
static bool may_share(const kn_device *device)
{
    return device->limits.is_cpu && device->limits.shares_memory && !device->quirks.allocates_lazily;
}

typedef struct shared_memory {
    cl_context context;
    void *data;
} shared_memory;

/* Commands may use the memory until its object is destroyed. */
static void CL_CALLBACK free_shared(cl_mem memory, void *user)
{
    shared_memory *shared = user;
    (void)memory;
    clSVMFree(shared->context, shared->data);
    kn_free(shared);
}

static cl_int wrap_shared(kn_segment *segment, const shared_memory *shared)
{
    cl_int error;
    segment->memory =
        clCreateBuffer(shared->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, segment->size, shared->data, &error);
    if (error != CL_SUCCESS)
        return error;
    error = clSetMemObjectDestructorCallback(segment->memory, free_shared, (void *)shared);
    if (error == CL_SUCCESS)
        segment->data = shared->data;
    else
        clReleaseMemObject(segment->memory);
    return error;
}

/* CL_INVALID_VALUE: not in this way, or not as much. */
static cl_int create_shared(kn_segment *segment)
{
    cl_context context = segment->device->context;
    void *data = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, segment->size, 0);
    shared_memory *shared = data ? kn_malloc(sizeof *shared) : NULL;
    cl_int error = !data ? CL_INVALID_VALUE : CL_OUT_OF_HOST_MEMORY;
    if (shared) {
        *shared = (shared_memory){context, data};
        error = wrap_shared(segment, shared);
    }
    if (error != CL_SUCCESS) {
        kn_free(shared);
        if (data)
            clSVMFree(context, data);
    }
    return error;
}

/* --- the driver --------------------------------------------------------------------------------------------------- */

static cl_int create_memory(kn_segment *segment)
{
    const kn_device *device = segment->device;
    const cl_mem_flags flags =
        CL_MEM_READ_WRITE | kn_quirk_buffer_flags(&device->quirks, segment->size, device->limits.max_allocation);
    cl_int error = may_share(device) ? create_shared(segment) : CL_INVALID_VALUE;
    if (error == CL_SUCCESS || kn_cl_is_out_of_memory(error))
        return error;
    segment->memory = clCreateBuffer(device->context, flags, segment->size, NULL, &error);
    if (error == CL_SUCCESS && device->quirks.allocates_lazily && (error = use_memory(segment)) != CL_SUCCESS) {
        clReleaseMemObject(segment->memory);
        segment->memory = NULL;
    }
    return error;
}

/* Where a CPU device's memory is in the host's. */
static cl_int find_data(const kn_segment *segment, char **data)
{
    cl_command_queue queue = segment->device->service;
    cl_int error = CL_SUCCESS;
    *data = segment->data ? segment->data
                          : clEnqueueMapBuffer(queue, segment->memory, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                               segment->size, 0, NULL, NULL, &error);
    if (segment->data || error != CL_SUCCESS)
        return error;
    error = clEnqueueUnmapMemObject(queue, segment->memory, *data, 0, NULL, NULL);
    return error == CL_SUCCESS ? clFinish(queue) : error;
}

/* For kernels that get addresses. */
static bool find_start(kn_segment *segment)
{
    const cl_int error = segment->device->limits.has_entries ? find_data(segment, &segment->start) : CL_SUCCESS;
    if (error != CL_SUCCESS)
        kn_device_note_error(segment->device, error, "finding memory");
    return error == CL_SUCCESS;
}

/* A CPU device's memory is the host's, in pages of 4 KiB: kernels that stride through tensors of some MiB have many TLB
 * misses. Where the system offers pages of 2 MiB on request (Linux: transparent_hugepage is `madvise` on most) they are
 * requested before the memory is touched, which makes training steps 2 to 6 % faster. It is only advice. */
#ifdef MADV_HUGEPAGE
static void advise(const kn_segment *segment, const char *data)
{
    const uintptr_t page = 4096, start = ((uintptr_t)data + page - 1) & ~(page - 1),
                    end = ((uintptr_t)data + segment->size) & ~(page - 1);
    madvise((void *)start, end - start, MADV_HUGEPAGE);
}

static void ask_for_large_pages(const kn_segment *segment)
{
    char *data;
    if (segment->device->limits.is_cpu && segment->size >= 2 * LARGE_PAGE && find_data(segment, &data) == CL_SUCCESS)
        advise(segment, data);
}
#else
static void ask_for_large_pages(const kn_segment *segment) { (void)segment; }
#endif

static bool take_memory(kn_segment *segment)
{
    kn_device *device = segment->device;
    if (segment->from.allocate) {
        segment->memory = segment->from.allocate(segment->from.user, device, device->context, segment->size);
        return segment->memory != NULL;
    }
    cl_int error = KN_CL(KN_CL_ALLOC, create_memory(segment));
    if (error != CL_SUCCESS)
        kn_device_note_error(device, error, "allocating memory");
    else
        ask_for_large_pages(segment);
    return error == CL_SUCCESS;
}

bool kn_driver_alloc(kn_segment *segment)
{
    kn_device *device = segment->device;
    if (kn_device_is_lost(device))
        return false;
    uint64_t reserved = (uint64_t)device->pool->figures.stats[KN_STAT_RESERVED_BYTES][KN_PART_ALL].current;
    if (reserved + segment->size > kn_pool_allowed(device))
        return false;
    kn_lock(&current.lock);
    segment->from = current.allocator;
    kn_unlock(&current.lock);
    if (!take_memory(segment))
        return false;
    if (find_start(segment))
        return true;
    kn_driver_free(segment);
    return false;
}

void kn_driver_free(kn_segment *segment)
{
    if (segment->from.release)
        segment->from.release(segment->from.user, segment->device, segment->memory);
    else
        clReleaseMemObject(segment->memory);
}

/* By a command that has the object. */
void kn_driver_keep(const kn_segment *segment, kn_stream *stream)
{
    const cl_uint zero = 0;
    if (!segment->start || kn_device_is_lost(segment->device))
        return;
    cl_command_queue queue = kn_stream_turn(stream).queue;
    if (kn_fill_enqueue(queue, segment->memory, &zero, sizeof zero, 0, sizeof zero, NULL) != CL_SUCCESS)
        clFinish(queue);
}

kn_status kn_change_current_allocator(const kn_pluggable_allocator *allocator)
{
    if (allocator && (!allocator->allocate || !allocator->release))
        return kn_fail_argument_null("kn_change_current_allocator", allocator->allocate ? "release" : "allocate");
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        kn_device *device = kn_device_slot_at(slot);
        if (kn_memory_reserved(device) > 0)
            return kn_fail(KN_ERR_STATE,
                           "kn_change_current_allocator: %s has memory of the current allocator; change it before the "
                           "first tensor, or free all tensors and call kn_empty_cache",
                           device->label);
    }
    kn_lock(&current.lock);
    current.allocator = allocator ? *allocator : (kn_pluggable_allocator){0};
    kn_unlock(&current.lock);
    return KN_OK;
}
