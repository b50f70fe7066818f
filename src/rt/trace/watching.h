/* rt/trace/watching.h - whether the profiler, or a tool to which ranges are forwarded, is watching; and notifications
 * of a command. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum kn_command_kind {
    KN_COMMAND_KERNEL,
    KN_COMMAND_READ,
    KN_COMMAND_WRITE,
    KN_COMMAND_COPY,
    KN_COMMAND_FILL
} kn_command_kind;

typedef struct kn_command_info {
    kn_command_kind kind;
    const char *operation; /* "conv2d"; valid during the call only */
    const char *kernel;    /* the kernel's name, valid during the call only; NULL for transfers */
    int dims;
    size_t global[3], local[3]; /* local {0}: the driver's choice */
    size_t bytes;               /* of transfers */
} kn_command_info;

/* One relaxed load. */
extern atomic_bool kn_watching;
static inline bool kn_is_watched(void) { return atomic_load_explicit(&kn_watching, memory_order_relaxed); }

/* The thread's number for what it enqueues: kn_profiler_correlate. */
extern _Thread_local uint64_t kn_profile_correlation;

/* The details that are recorded for a span. */
enum { KN_WANTS_SHAPES = 1, KN_WANTS_MEMORY = 2, KN_WANTS_WORK = 4, KN_WANTS_RANGES = 8 };
extern atomic_uint kn_profiler_wishes;
static inline bool kn_profiler_wants(unsigned wish)
{
    return atomic_load_explicit(&kn_profiler_wishes, memory_order_relaxed) & wish;
}
