/* rt/stream/calls.c - see calls.h. */
#include "rt/stream/calls.h"

#include <string.h>

#include "base/memory.h"
#include "rt/stream/stream_struct.h"

enum {
    LINE = 64,
    MOST_BYTES = (KN_CALL_BYTES + KN_MOST_VALUE_BYTES + LINE - 1) / LINE * LINE,
    PAGE_BYTES = 16 * MOST_BYTES /* about 130 launches of a common size */
};

typedef struct page page;
struct page {
    page *next;
    cl_event end; /* of the last launch whose arguments are here; NULL: not enqueued (yet) */
    size_t used;  /* of the bytes */
    unsigned char *first, bytes[PAGE_BYTES + LINE];
};

/* Pages in the order of their use, the one that is filled last; all launches come after one another, so the first are
 * free first. Nobody waits here: if none is free there will be another page. */
struct kn_calls {
    kn_mutex lock;
    page *oldest, *current;
};

_Static_assert(offsetof(kn_values, bytes) - offsetof(kn_values, head) == KN_CALL_BYTES, "arguments follow the head");

bool kn_values_add(kn_values *values, const void *value, size_t size)
{
    if (kn_value_room(size) > sizeof values->bytes - values->size)
        return false;
    memcpy(values->bytes + values->size, value, size);
    values->size += kn_value_room(size);
    return true;
}

/* Drivers may not tell the names of a program's parameters that was a binary. */
static cl_int has_name(cl_kernel kernel, bool *has)
{
    char name[256]; /* one that is longer is not it */
    const cl_int error = clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, sizeof name, name, NULL);
    *has = error == CL_KERNEL_ARG_INFO_NOT_AVAILABLE || (error == CL_SUCCESS && strcmp(name, "kn_call") == 0);
    return error == CL_INVALID_VALUE || error == CL_KERNEL_ARG_INFO_NOT_AVAILABLE ? CL_SUCCESS : error;
}

cl_int kn_calling_find(kn_calling *calling, cl_kernel kernel, const kn_device *device)
{
    cl_uint count = 0;
    size_t group[3] = {0};
    *calling = (kn_calling){0};
    if (!device->limits.has_entries)
        return CL_SUCCESS;
    cl_int error = clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    if (error == CL_SUCCESS)
        error =
            clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof group, group, NULL);
    if (error != CL_SUCCESS || count != 1 || group[0] != 1)
        return error;
    return has_name(kernel, &calling->is_gathered);
}

static page *page_new(void)
{
    page *made = kn_calloc(1, sizeof *made);
    if (made)
        made->first = made->bytes + (LINE - (uintptr_t)made->bytes % LINE);
    return made;
}

kn_calls *kn_calls_new(void)
{
    kn_calls *calls = kn_calloc(1, sizeof *calls);
    if (!calls || !(calls->oldest = calls->current = page_new())) {
        kn_free(calls);
        return NULL;
    }
    kn_mutex_init(&calls->lock);
    return calls;
}

void kn_calls_free(kn_calls *calls)
{
    if (!calls)
        return;
    for (page *p = calls->oldest, *next; p; p = next) {
        next = p->next;
        if (p->end)
            clReleaseEvent(p->end);
        kn_free(p);
    }
    kn_mutex_destroy(&calls->lock);
    kn_free(calls);
}

/* Have its launches ended? If the last one could not be enqueued, a later page's have. */
static bool has_ended(const kn_calls *calls, const page *p)
{
    cl_int state = CL_QUEUED;
    while (p != calls->current && !p->end)
        p = p->next;
    return p->end &&
           clGetEventInfo(p->end, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) == CL_SUCCESS &&
           state <= CL_COMPLETE;
}

/* Takes the oldest page out of the list if it is free. */
static page *take_free_page(kn_calls *calls)
{
    page *taken = calls->oldest;
    if (taken == calls->current || !has_ended(calls, taken))
        return NULL;
    calls->oldest = taken->next;
    if (taken->end)
        clReleaseEvent(taken->end);
    taken->end = NULL;
    taken->next = NULL;
    taken->used = 0;
    return taken;
}

/* The current page, with room for any launch; NULL: no memory. */
static page *page_with_room(kn_calls *calls)
{
    page *current = calls->current;
    if (PAGE_BYTES - current->used >= MOST_BYTES)
        return current;
    page *fresh = take_free_page(calls);
    if (!fresh && !(fresh = page_new()))
        return NULL;
    return calls->current = current->next = fresh;
}

cl_int kn_calls_begin(kn_calls *calls, cl_kernel kernel, const kn_values *values, const size_t size[3], cl_event **end)
{
    const kn_call_head head = {.size = {(kn_long)size[0], (kn_long)size[1], (kn_long)size[2]}};
    kn_lock(&calls->lock);
    page *current = page_with_room(calls);
    if (!current)
        return CL_OUT_OF_HOST_MEMORY;
    unsigned char *place = current->first + current->used;
    current->used += (KN_CALL_BYTES + values->size + LINE - 1) / LINE * LINE;
    memcpy(place, &head, KN_CALL_BYTES);
    memcpy(place + KN_CALL_BYTES, values->bytes, values->size);
    *end = PAGE_BYTES - current->used < MOST_BYTES ? &current->end : NULL;
    const cl_long call = (cl_long)(uintptr_t)place;
    return clSetKernelArg(kernel, 0, sizeof call, &call);
}

void kn_calls_end(kn_calls *calls) { kn_unlock(&calls->lock); }
