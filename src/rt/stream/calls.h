/* rt/stream/calls.h - the arguments of kernels that get them in one piece (cl/common/gathered.clh), on CPU devices that
 * number launches (rt/stream/affinity.h). */
#pragma once

#include "rt/stream/queue.h"

/* A launch's arguments, of memory objects their addresses. */
#define KN_MOST_VALUE_BYTES 2048 /* OpenCL: 1024 bytes of arguments, and what is between those of fewer than 8 bytes */
typedef struct kn_values {
    size_t size;
    unsigned char bytes[KN_MOST_VALUE_BYTES];
} kn_values;

/* Each begins at a multiple of 8 bytes. */
static inline size_t kn_value_room(size_t size) { return (size + 7) / 8 * 8; }

/* False: too many. */
bool kn_values_add(kn_values *values, const void *value, size_t size);

/* What a queue's launches read: never freed while the device is open, since kernels may still run. NULL: no memory. */
kn_calls *kn_calls_new(void);
void kn_calls_free(kn_calls *calls);

/* Held from numbering a launch until it is enqueued, so that launches have their numbers in the queue's order. NULL:
 * they are not numbered, nothing is locked. */
void kn_calls_lock(kn_calls *calls);
void kn_calls_unlock(kn_calls *calls);

/* The address for `kn_call` of the launch that was numbered: of what it is to find there. With the lock held. Waits if
 * all places are those of launches that have not ended. */
cl_int kn_calls_place(kn_calls *calls, const kn_turn *turn, const kn_values *values, cl_long *address);
