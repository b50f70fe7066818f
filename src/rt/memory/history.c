/* rt/memory/history.c - recording a pool's actions (torch.cuda.memory._record_memory_history). */
#include <koine/memory.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "rt/memory/blocks.h"

#define FIRST_CAPACITY 1024

const char *kn_trace_action_name(kn_trace_action action)
{
    static const char *const names[KN_TRACE_ACTIONS] = {
        "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom", "snapshot"};
    return names[action];
}

/* The slot for one more entry: a new one, or the oldest one's. NULL when there is no memory even for the first. */
static kn_trace_entry *next_slot(kn_memory_trace *trace)
{
    if (trace->count < trace->limit && trace->count == trace->capacity) {
        size_t wanted = trace->capacity ? 2 * trace->capacity : FIRST_CAPACITY;
        wanted = wanted < trace->limit ? wanted : trace->limit;
        kn_trace_entry *grown = kn_realloc(trace->entries, wanted * sizeof *grown);
        if (grown) {
            trace->entries = grown;
            trace->capacity = wanted;
        } else {
            trace->limit = trace->count; /* stops growing, and overwrites the oldest */
        }
    }
    if (trace->count < trace->limit)
        return &trace->entries[trace->count++];
    if (trace->limit == 0)
        return NULL;
    kn_trace_entry *oldest = &trace->entries[trace->next];
    trace->next = (trace->next + 1) % trace->limit;
    return oldest;
}

/* Bytes that the driver, or the limit, still allows. */
static uint64_t bytes_left(const kn_device *device)
{
    uint64_t allowed = kn_pool_allowed(device), total = kn_pool_total(device);
    uint64_t whole = allowed < total ? allowed : total;
    uint64_t reserved = (uint64_t)device->pool->figures.stats[KN_STAT_RESERVED_BYTES][KN_PART_ALL].current;
    return whole > reserved ? whole - reserved : 0;
}

void kn_trace_append(kn_pool *pool, kn_trace_action action, const kn_buffer *block, const kn_stream *stream,
                     uint64_t size)
{
    kn_trace_entry *entry = next_slot(&pool->trace);
    if (!entry)
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *entry = (kn_trace_entry){.size = size,
                              .stream = kn_stream_trace_id(stream),
                              .action = action,
                              .time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000};
    if (block) {
        entry->address = block->segment->address + block->offset;
        entry->pool = block->segment->owner ? block->segment->owner->id : 0;
    } else if (action == KN_TRACE_OOM) {
        entry->address = bytes_left(stream->device);
    }
}

kn_status kn_memory_record_history(kn_device *device, size_t max_entries)
{
    if (!device)
        return kn_fail_argument_null("kn_memory_record_history", "device");
    kn_pool *pool = device->pool;
    kn_lock(&pool->lock);
    kn_free(pool->trace.entries);
    pool->trace = (kn_memory_trace){.limit = max_entries};
    kn_unlock(&pool->lock);
    return KN_OK;
}
