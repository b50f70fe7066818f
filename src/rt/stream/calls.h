/* rt/stream/calls.h - launches of kernels that get their arguments in one piece (cl/common/gathered.clh). */
#pragma once

#include "common/gathered.h"
#include "rt/stream/queue.h"
#include "rt/team/team.h"

/* A launch's arguments, of memory objects their addresses. */
#define KN_MOST_VALUE_BYTES 2048 /* OpenCL: 1024 bytes of arguments, and what is between those of fewer than 8 bytes */
typedef struct kn_values {
    size_t size;
    kn_call_head head; /* right before them, as kernels expect it */
    unsigned char bytes[KN_MOST_VALUE_BYTES];
} kn_values;

/* Each begins at a multiple of 8 bytes. */
static inline size_t kn_value_room(size_t size) { return (size + 7) / 8 * 8; }

/* False: too many. */
bool kn_values_add(kn_values *values, const void *value, size_t size);

/* How a kernel is called. */
typedef struct kn_calling {
    bool is_gathered; /* its only parameter is the address of its arguments */
    kn_entry entry;   /* of one that is; NULL: not known (rt/direct/entry.h) */
} kn_calling;

/* With what a kernel is asked for its entry: it may answer after who asked has given up. */
typedef struct kn_question {
    kn_call_head head;
    volatile kn_long answer;
} kn_question;

cl_int kn_calling_find(kn_calling *calling, cl_kernel kernel, const kn_device *device);

/* Where launches in a stream's queues have their arguments, which they read when they run: pages that are used again
 * when their last launch has ended. NULL: no memory. */
kn_calls *kn_calls_new(void);
void kn_calls_free(kn_calls *calls);

/* Around the enqueueing of a launch of so many work-items: its arguments' place, as the kernel's only argument. *end:
 * NULL, or where the launch's event belongs, as it is the last of its page; a reference. */
cl_int kn_calls_begin(kn_calls *calls, cl_kernel kernel, const kn_values *values, const size_t size[3], cl_event **end);
void kn_calls_end(kn_calls *calls);
