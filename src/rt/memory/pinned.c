/* rt/memory/pinned.c - pinned host memory: a device copies from and to it without staging by the driver.
 *
 * Mapping a buffer costs a driver call and page faults, so freed blocks stay mapped and are cached for the next request
 * of their size; sizes are powers of two, as in PyTorch's host allocator. kn_empty_cache releases them. Mapping and
 * unmapping use the service queue, which never waits for the user's work. */
#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/lost.h"
#include "rt/memory/pool.h"
#include "rt/stream/open.h"

struct kn_pinned {
    kn_device *device; /* the host's: plain memory */
    cl_mem memory;
    void *data;
    size_t size;     /* rounded */
    kn_pinned *next; /* of a block that waits for its next user */
};

static struct {
    kn_mutex lock;
    kn_pinned *idle; /* of all devices, most recently freed first */
    struct {
        kn_statistic allocations, allocated_bytes; /* blocks allocated by the driver, in use or cached */
        kn_statistic active_requests, active_bytes;
    } figures;
} pool = {.lock = KN_MUTEX_INIT};

static size_t rounded(size_t bytes)
{
    size_t size = 4096; /* a page: less is not mapped */
    while (size < bytes && size <= SIZE_MAX / 2)
        size *= 2;
    return size < bytes ? bytes : size;
}

/* --- with the driver -------------------------------------------------------------------------- */

static kn_status map_block(kn_pinned *pinned)
{
    kn_device *device = pinned->device;
    KN_TRY(kn_device_ensure_open(device));
    cl_int error;
    pinned->memory =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, pinned->size, NULL, &error);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "allocating %zu bytes of pinned memory", pinned->size);
    pinned->data = clEnqueueMapBuffer(device->service, pinned->memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                      pinned->size, 0, NULL, NULL, &error);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, device, "mapping %zu bytes of pinned memory", pinned->size);
}

static void unmap_block(kn_pinned *pinned)
{
    cl_command_queue queue = pinned->device->service;
    if (pinned->data && !kn_device_is_lost(pinned->device) &&
        clEnqueueUnmapMemObject(queue, pinned->memory, pinned->data, 0, NULL, NULL) == CL_SUCCESS)
        clFinish(queue);
    if (pinned->memory)
        clReleaseMemObject(pinned->memory);
    kn_free(pinned);
}

static kn_status new_block(kn_pinned **pinned, kn_device *device, size_t size)
{
    kn_pinned *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    *made = (kn_pinned){.device = device, .size = size};
    kn_status status = map_block(made);
    if (status != KN_OK) {
        unmap_block(made);
        return status;
    }
    kn_lock(&pool.lock);
    kn_statistic_add(&pool.figures.allocations, 1);
    kn_statistic_add(&pool.figures.allocated_bytes, (int64_t)size);
    kn_unlock(&pool.lock);
    *pinned = made;
    return KN_OK;
}

/* --- the idle blocks -------------------------------------------------------------------------- */

static kn_pinned *take_idle(const kn_device *device, size_t size)
{
    kn_lock(&pool.lock);
    kn_pinned **link = &pool.idle;
    while (*link && ((*link)->device != device || (*link)->size != size))
        link = &(*link)->next;
    kn_pinned *found = *link;
    if (found)
        *link = found->next;
    kn_unlock(&pool.lock);
    return found;
}

void kn_pinned_empty_cache(const kn_device *device)
{
    kn_pinned *gone = NULL;
    kn_lock(&pool.lock);
    for (kn_pinned **link = &pool.idle; *link;) {
        kn_pinned *block = *link;
        if (block->device != device) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        block->next = gone;
        gone = block;
        kn_statistic_subtract(&pool.figures.allocations, 1);
        kn_statistic_subtract(&pool.figures.allocated_bytes, (int64_t)block->size);
    }
    kn_unlock(&pool.lock);
    while (gone) {
        kn_pinned *block = gone;
        gone = block->next;
        unmap_block(block);
    }
}

/* --- the interface ---------------------------------------------------------------------------- */

static kn_status alloc_plain(kn_pinned **pinned, kn_device *host, size_t bytes)
{
    kn_pinned *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    *made = (kn_pinned){.device = host, .data = kn_malloc(bytes)};
    if (!made->data) {
        kn_free(made);
        return KN_ERR_MEMORY;
    }
    *pinned = made;
    return KN_OK;
}

kn_status kn_pinned_alloc(kn_pinned **pinned, kn_device *device, size_t bytes)
{
    if (kn_device_is_host(device))
        return alloc_plain(pinned, device, bytes);
    size_t size = rounded(bytes);
    kn_pinned *block = take_idle(device, size);
    if (!block) {
        KN_PRESERVE_ERROR;
        new_block(&block, device, size);
    }
    if (!block) {
        kn_pinned_empty_cache(device); /* idle blocks of other sizes may use the memory */
        KN_TRY(new_block(&block, device, size));
    }
    kn_lock(&pool.lock);
    kn_statistic_add(&pool.figures.active_requests, 1);
    kn_statistic_add(&pool.figures.active_bytes, (int64_t)size);
    kn_unlock(&pool.lock);
    *pinned = block;
    return KN_OK;
}

void *kn_pinned_data(kn_pinned *pinned) { return pinned->data; }

void kn_pinned_free(kn_pinned *pinned)
{
    if (!pinned || kn_is_forked())
        return;
    if (kn_device_is_host(pinned->device)) {
        kn_free(pinned->data);
        kn_free(pinned);
        return;
    }
    kn_lock(&pool.lock);
    kn_statistic_subtract(&pool.figures.active_requests, 1);
    kn_statistic_subtract(&pool.figures.active_bytes, (int64_t)pinned->size);
    pinned->next = pool.idle;
    pool.idle = pinned;
    kn_unlock(&pool.lock);
}

/* --- figures ---------------------------------------------------------------------------------- */

static kn_statistic *const figures[] = {&pool.figures.allocations, &pool.figures.allocated_bytes,
                                        &pool.figures.active_requests, &pool.figures.active_bytes};
static const char *const figure_names[] = {"allocations", "allocated_bytes", "active_requests", "active_bytes"};
#define FIGURES (sizeof figures / sizeof figures[0])

int kn_host_memory_stats(kn_memory_stat_entry *entries, int capacity)
{
    if (!entries && capacity > 0)
        return kn_fail_argument_null("kn_host_memory_stats", "entries"), 0;
    kn_statistic_list list = {.entries = entries, .capacity = capacity};
    kn_lock(&pool.lock);
    for (size_t i = 0; i < FIGURES; i++)
        kn_statistic_list_figure(&list, figure_names[i], figures[i]);
    kn_statistic_list_number(&list, "num_host_alloc", pool.figures.allocations.allocated);
    kn_statistic_list_number(&list, "num_host_free", pool.figures.allocations.freed);
    kn_unlock(&pool.lock);
    kn_statistic_list_sort(&list);
    return list.count;
}

kn_status kn_host_memory_stat(const char *key, int64_t *value)
{
    if (!key || !value)
        return kn_fail_argument_null("kn_host_memory_stat", key ? "value" : "key");
    kn_memory_stat_entry entries[KN_MEMORY_STATS];
    kn_statistic_list list = {.entries = entries, .capacity = KN_MEMORY_STATS};
    list.count = kn_host_memory_stats(entries, KN_MEMORY_STATS);
    return kn_statistic_list_find(&list, "kn_host_memory_stat", key, value);
}

static void reset_all(void (*reset)(kn_statistic *))
{
    kn_lock(&pool.lock);
    for (size_t i = 0; i < FIGURES; i++)
        reset(figures[i]);
    kn_unlock(&pool.lock);
}

void kn_reset_peak_host_memory_stats(void) { reset_all(kn_statistic_reset_peak); }
void kn_reset_accumulated_host_memory_stats(void) { reset_all(kn_statistic_reset_accumulated); }
