/* rt/trace/watch.h - who looks on while commands are enqueued: the profiler. Costs one relaxed load while nobody does.
 */
#ifndef KN_RT_TRACE_WATCH_H
#define KN_RT_TRACE_WATCH_H

#include <CL/cl.h>
#include <stdatomic.h>

#include "rt/rt.h"

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

extern atomic_bool kn_watching;
static inline bool kn_is_watched(void) { return atomic_load_explicit(&kn_watching, memory_order_relaxed); }

/* A command was enqueued; `event` is its event, taken over. */
void kn_watch_command(kn_stream *stream, const kn_command_info *info, cl_event event);

/* The event argument of an enqueue: asked for only while somebody watches. */
static inline cl_event *kn_watch_event(cl_event *event)
{
    *event = NULL;
    return kn_is_watched() ? event : NULL;
}

#define kn_watch(stream, event, ...)                                                                                   \
    do {                                                                                                               \
        if (event)                                                                                                     \
            kn_watch_command(stream, &(kn_command_info){__VA_ARGS__}, event);                                          \
    } while (0)

#endif
