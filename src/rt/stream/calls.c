/* rt/stream/calls.c - see calls.h. A ring of parts: one is used again once a launch after the last that has its
 * arguments there has started. */
#include "rt/stream/calls.h"

#include <string.h>

#include "base/memory.h"
#include "common/affinity.h"
#include "rt/device/inject.h"

/* More than the launches that kn_stream_count_launch lets the host be ahead need, unless all are large. */
enum { PARTS = 8, PART_BYTES = 16 * 1024, LINE = 64 };

/* As in cl/common/gathered.clh. */
typedef struct call_head {
    cl_long affinity, launch;
} call_head;

_Static_assert(sizeof(call_head) + KN_MOST_VALUE_BYTES <= PART_BYTES, "a part has room for a launch");

struct kn_calls {
    kn_mutex lock;
    long long last[PARTS]; /* the launch that used it last */
    int part;
    size_t used; /* of the part */
    unsigned char *first, bytes[PARTS * PART_BYTES + LINE];
};

bool kn_values_add(kn_values *values, const void *value, size_t size)
{
    if (kn_value_room(size) > sizeof values->bytes - values->size)
        return false;
    memcpy(values->bytes + values->size, value, size);
    values->size += kn_value_room(size);
    return true;
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

void kn_calls_lock(kn_calls *calls)
{
    if (calls)
        kn_lock(&calls->lock);
}

void kn_calls_unlock(kn_calls *calls)
{
    if (calls)
        kn_unlock(&calls->lock);
}

/* Kernels that do not note their start leave only the wait. */
static cl_int await(const kn_turn *turn, long long launch)
{
    if (launch == 0 || __atomic_load_n(&turn->affinity->started, __ATOMIC_ACQUIRE) > launch)
        return CL_SUCCESS;
    return KN_CL(KN_CL_WAIT, clFinish(turn->queue));
}

cl_int kn_calls_place(kn_calls *calls, const kn_turn *turn, const kn_values *values, cl_long *address)
{
    const call_head head = {(cl_long)(uintptr_t)turn->affinity, turn->launch};
    const size_t size = (sizeof head + values->size + LINE - 1) / LINE * LINE;
    if (calls->used + size > PART_BYTES) {
        const int next = (calls->part + 1) % PARTS;
        const cl_int error = await(turn, calls->last[next]);
        if (error != CL_SUCCESS)
            return error;
        calls->part = next;
        calls->used = 0;
    }
    unsigned char *place = calls->first + (size_t)calls->part * PART_BYTES + calls->used;
    calls->used += size;
    calls->last[calls->part] = turn->launch;
    memcpy(place, &head, sizeof head);
    memcpy(place + sizeof head, values->bytes, values->size);
    *address = (cl_long)(uintptr_t)place;
    return CL_SUCCESS;
}
