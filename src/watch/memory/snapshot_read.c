/* watch/memory/snapshot_read.c - evaluates a memory snapshot: memory in use, number of blocks, and history. Files may
 * come from anywhere, so everything in them is checked. */
#include "watch/memory/snapshot_read.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
    return value > 0 && value < 1e18 ? value : 0;
}

static const char *text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

/* --- segments --------------------------------------------------------------------------------- */

static void read_segment(kn_snapshot_figures *figures, const cJSON *segment)
{
    const cJSON *block, *blocks = cJSON_GetObjectItemCaseSensitive(segment, "blocks");
    figures->segments++;
    figures->reserved += number_of(segment, "total_size");
    cJSON_ArrayForEach(block, blocks)
    {
        double size = number_of(block, "size");
        const char *state = text_of(block, "state");
        if (strcmp(state, "inactive") == 0) {
            figures->free_bytes += size;
            figures->largest_free = size > figures->largest_free ? size : figures->largest_free;
        } else if (strcmp(state, "active_allocated") == 0) {
            figures->blocks++;
            figures->allocated += size;
            figures->requested += number_of(block, "requested_size");
        }
    }
}

/* --- history ---------------------------------------------------------------------------------- */

/* The effect of an entry on allocated and reserved bytes. */
static void effect_of(const cJSON *entry, double *allocated, double *reserved)
{
    const char *action = text_of(entry, "action");
    double size = number_of(entry, "size");
    *allocated = strcmp(action, "alloc") == 0 ? size : strcmp(action, "free_requested") == 0 ? -size : 0;
    *reserved = strcmp(action, "segment_alloc") == 0 ? size : strcmp(action, "segment_free") == 0 ? -size : 0;
}

/* A history may have lost its beginning, but it ends at the segments' state: so it starts at that minus all changes. */
static kn_status read_trace(kn_snapshot_figures *figures, const cJSON *trace)
{
    double allocated = figures->allocated, reserved = figures->reserved, more_allocated, more_reserved;
    const cJSON *entry;
    cJSON_ArrayForEach(entry, trace)
    {
        effect_of(entry, &more_allocated, &more_reserved);
        allocated -= more_allocated;
        reserved -= more_reserved;
    }
    figures->points = kn_malloc((size_t)cJSON_GetArraySize(trace) * sizeof *figures->points);
    if (!figures->points)
        return KN_ERR_MEMORY;
    double start = number_of(trace->child, "time_us");
    cJSON_ArrayForEach(entry, trace)
    {
        effect_of(entry, &more_allocated, &more_reserved);
        allocated += more_allocated;
        reserved += more_reserved;
        if (more_allocated != 0 || more_reserved != 0 || entry == trace->child)
            figures->points[figures->num_points++] =
                (kn_snapshot_point){number_of(entry, "time_us") - start, allocated, reserved};
        figures->peak_allocated = allocated > figures->peak_allocated ? allocated : figures->peak_allocated;
        figures->peak_reserved = reserved > figures->peak_reserved ? reserved : figures->peak_reserved;
    }
    return KN_OK;
}

/* The index of the first device with a history, or -1. */
static int first_traced_device(const cJSON *traces)
{
    int index = 0;
    const cJSON *trace;
    cJSON_ArrayForEach(trace, traces)
    {
        if (cJSON_IsArray(trace) && trace->child)
            return index;
        index++;
    }
    return -1;
}

kn_status kn_snapshot_read(kn_snapshot_figures *figures, const cJSON *root, const char *what)
{
    *figures = (kn_snapshot_figures){0};
    const cJSON *segments = cJSON_GetObjectItemCaseSensitive(root, "segments"), *segment;
    const cJSON *traces = cJSON_GetObjectItemCaseSensitive(root, "device_traces");
    if (!cJSON_IsArray(segments))
        return kn_fail(KN_ERR_FORMAT, "%s is no memory snapshot: it has no list named \"segments\"", what);
    int traced = first_traced_device(traces);
    double device = traced >= 0 ? traced : number_of(segments->child, "device");
    cJSON_ArrayForEach(segment, segments)
    {
        if (number_of(segment, "device") == device)
            read_segment(figures, segment);
    }
    return traced >= 0 ? read_trace(figures, cJSON_GetArrayItem(traces, traced)) : KN_OK;
}
