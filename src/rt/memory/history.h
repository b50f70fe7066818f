/* rt/memory/history.h - the recorded history of a pool: what was allocated and freed when. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum kn_trace_action {
    KN_TRACE_ALLOC,
    KN_TRACE_FREE_REQUESTED,
    KN_TRACE_FREE_COMPLETED,
    KN_TRACE_SEGMENT_ALLOC,
    KN_TRACE_SEGMENT_FREE,
    KN_TRACE_OOM,
    KN_TRACE_SNAPSHOT,
    KN_TRACE_ACTIONS
} kn_trace_action;

typedef struct kn_trace_entry {
    uint64_t address; /* of KN_TRACE_OOM: the bytes that were still free */
    uint64_t size;
    uint64_t stream; /* 0: the default one */
    uint64_t pool;   /* id of the private pool; 0: the ordinary one */
    int64_t time_us; /* since 1970 */
    kn_trace_action action;
} kn_trace_entry;

/* A growable ring of up to `limit` entries, which overwrites the oldest when full. Zero while nothing is recorded. */
typedef struct kn_memory_trace {
    kn_trace_entry *entries;
    size_t limit, capacity, count;
    size_t next; /* the next slot once it is full */
} kn_memory_trace;

/* "alloc", "free_requested", ...: PyTorch's names */
const char *kn_trace_action_name(kn_trace_action action);
