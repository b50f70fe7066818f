/* rt/stream/calls.c - see calls.h. */
#include "rt/stream/calls.h"

#include <string.h>

#include "base/memory.h"
#include "rt/stream/stream_struct.h"

enum {
    LINE = 64,
    MOST_BYTES = (KN_CALL_BYTES + KN_MOST_VALUE_BYTES + LINE - 1) / LINE * LINE,
    MOST_AHEAD = (KN_STREAM_MARKERS + 1) * KN_LAUNCHES_PER_MARKER,
    SPARE = 32 /* for threads that share the stream, and for what does not fit before the end */
};

struct kn_calls {
    kn_mutex lock;
    size_t used; /* of the bytes, up to where the last launch's are */
    unsigned char *first, bytes[(MOST_AHEAD + SPARE) * MOST_BYTES + LINE];
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

kn_calls *kn_calls_new(void)
{
    kn_calls *calls = kn_calloc(1, sizeof *calls);
    if (!calls)
        return NULL;
    kn_mutex_init(&calls->lock);
    calls->first = calls->bytes + (LINE - (uintptr_t)calls->bytes % LINE);
    return calls;
}

void kn_calls_free(kn_calls *calls)
{
    if (calls)
        kn_mutex_destroy(&calls->lock);
    kn_free(calls);
}

cl_int kn_calls_begin(kn_calls *calls, cl_kernel kernel, const kn_values *values)
{
    const size_t size = (KN_CALL_BYTES + values->size + LINE - 1) / LINE * LINE;
    kn_lock(&calls->lock);
    if (calls->used + size > sizeof calls->bytes - LINE)
        calls->used = 0;
    unsigned char *place = calls->first + calls->used;
    calls->used += size;
    memset(place, 0, KN_CALL_BYTES);
    memcpy(place + KN_CALL_BYTES, values->bytes, values->size);
    const cl_long call = (cl_long)(uintptr_t)place;
    return clSetKernelArg(kernel, 0, sizeof call, &call);
}

void kn_calls_end(kn_calls *calls) { kn_unlock(&calls->lock); }
