/* rt/memory/snapshot.c - the pool's state and recorded history as JSON in the format of torch.cuda.memory._snapshot. */
#include "rt/memory/snapshot.h"

#include <koine/memory.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "rt/memory/blocks.h"

static bool add_number(cJSON *object, const char *key, uint64_t value)
{
    return cJSON_AddNumberToObject(object, key, (double)value) != NULL;
}

static const char *state_of(const kn_buffer *block)
{
    if (block->is_free)
        return "inactive";
    return block->is_pending ? "active_pending_free" : "active_allocated";
}

/* [0, id], as PyTorch names the pools that users make; [0, 0] is the ordinary one. */
static bool add_pool_id(cJSON *object, const char *key, uint64_t id)
{
    cJSON *pair = cJSON_AddArrayToObject(object, key);
    return pair && cJSON_AddItemToArray(pair, cJSON_CreateNumber(0)) &&
           cJSON_AddItemToArray(pair, cJSON_CreateNumber((double)id));
}

static bool add_block(cJSON *blocks, const kn_buffer *block)
{
    cJSON *object = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(blocks, object))
        return false;
    return add_number(object, "address", block->segment->address + block->offset) &&
           add_number(object, "size", block->size) && add_number(object, "requested_size", block->requested) &&
           cJSON_AddStringToObject(object, "state", state_of(block)) && cJSON_AddArrayToObject(object, "frames");
}

static bool add_segment(cJSON *segments, const kn_segment *segment)
{
    cJSON *object = cJSON_CreateObject();
    if (!cJSON_InsertItemInArray(segments, 0, object)) /* the pool's list has the newest first */
        return false;
    uint64_t allocated = 0, active = 0, requested = 0, stream = kn_stream_trace_id(segment->first->stream);
    cJSON *blocks = cJSON_AddArrayToObject(object, "blocks");
    bool fine = blocks != NULL;
    for (const kn_buffer *block = segment->first; block && fine; block = block->after) {
        fine = add_block(blocks, block);
        allocated += block->is_free || block->is_pending ? 0 : block->size;
        active += block->is_free ? 0 : block->size;
        requested += block->requested;
    }
    return fine && add_number(object, "device", (uint64_t)segment->device->slot - 1) &&
           add_number(object, "address", segment->address) && add_number(object, "total_size", segment->size) &&
           add_number(object, "allocated_size", allocated) && add_number(object, "active_size", active) &&
           add_number(object, "requested_size", requested) && add_number(object, "stream", stream) &&
           cJSON_AddStringToObject(object, "segment_type", segment->small ? "small" : "large") &&
           add_pool_id(object, "segment_pool_id", segment->owner ? segment->owner->id : 0) &&
           cJSON_AddFalseToObject(object, "is_expandable") && cJSON_AddArrayToObject(object, "frames");
}

static bool add_entry(cJSON *trace, const kn_trace_entry *entry)
{
    cJSON *object = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(trace, object))
        return false;
    return cJSON_AddStringToObject(object, "action", kn_trace_action_name(entry->action)) &&
           add_number(object, entry->action == KN_TRACE_OOM ? "device_free" : "addr", entry->address) &&
           add_number(object, "size", entry->size) && add_number(object, "stream", entry->stream) &&
           add_number(object, "time_us", (uint64_t)entry->time_us) && add_pool_id(object, "pool_id", entry->pool) &&
           cJSON_AddArrayToObject(object, "frames");
}

/* One list per device, so that this one's is at its index. */
static bool add_traces(cJSON *root, const kn_device *device, const kn_memory_trace *trace)
{
    cJSON *traces = cJSON_AddArrayToObject(root, "device_traces"), *own = NULL;
    bool fine = traces != NULL;
    for (int slot = 1; slot <= device->slot && fine; slot++)
        fine = cJSON_AddItemToArray(traces, own = cJSON_CreateArray());
    for (size_t i = 0; i < trace->count && fine; i++)
        fine = add_entry(own, &trace->entries[(trace->next + i) % trace->count]);
    return fine;
}

static bool add_settings(cJSON *root, const kn_pool *pool)
{
    cJSON *settings = cJSON_AddObjectToObject(root, "allocator_settings");
    return settings && cJSON_AddNumberToObject(settings, "max_split_size", -1) &&
           cJSON_AddFalseToObject(settings, "expandable_segments") &&
           add_number(settings, "KOINE_MEMORY_LIMIT", pool->limit) &&
           cJSON_AddNumberToObject(settings, "per_process_memory_fraction", pool->fraction);
}

cJSON *kn_memory_snapshot_json(kn_device *device, const kn_mem_pool *only)
{
    kn_pool *pool = device->pool;
    const kn_memory_trace no_trace = {0};
    cJSON *root = cJSON_CreateObject(), *segments = cJSON_AddArrayToObject(root, "segments");
    kn_lock(&pool->lock);
    if (pool->trace.limit > 0)
        kn_trace_append(pool, KN_TRACE_SNAPSHOT, NULL, NULL, 0);
    bool fine = segments != NULL;
    for (const kn_segment *segment = pool->segments; segment && fine; segment = segment->next)
        if (!only || segment->owner == only)
            fine = add_segment(segments, segment);
    fine = fine && add_traces(root, device, only ? &no_trace : &pool->trace) && add_settings(root, pool);
    kn_unlock(&pool->lock);
    if (fine)
        return root;
    cJSON_Delete(root);
    kn_fail_host_memory(0, "a memory snapshot");
    return NULL;
}

static kn_status save(kn_device *device, const kn_mem_pool *only, const char *path)
{
    cJSON *root = kn_memory_snapshot_json(device, only);
    char *text = root ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    if (!text)
        return root ? kn_fail_host_memory(0, "a memory snapshot") : KN_ERR_MEMORY;
    kn_status status = kn_file_save_text(path, text);
    cJSON_free(text);
    return status;
}

kn_status kn_memory_snapshot(kn_device *device, const char *path)
{
    if (!device || !path)
        return kn_fail_argument_null("kn_memory_snapshot", device ? "path" : "device");
    return save(device, NULL, path);
}

kn_status kn_mem_pool_snapshot(kn_mem_pool *pool, const char *path)
{
    if (!pool || !path)
        return kn_fail_argument_null("kn_mem_pool_snapshot", pool ? "path" : "pool");
    return save(pool->device, pool, path);
}
