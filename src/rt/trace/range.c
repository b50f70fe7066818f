/* rt/trace/range.c - user ranges and marks, for the profiler while it runs, and for NVTX or ITT if a tool is
 * present. */
#include <inttypes.h>
#include <koine/profiler.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "rt/trace/range_tools.h"
#include "rt/trace/spans.h"

/* The thread's open ranges. `depth` counts them all; entries[] has those opened while the profiler or a tool was
 * active, with their depths. */
typedef struct entry {
    int depth;
    bool to_tools;
    kn_span span;
} entry;

#define MAX_REPORTED 256 /* deeper ones are counted but not recorded */

static _Thread_local struct {
    int depth, reported;
    entry entries[MAX_REPORTED];
} here;

static bool tools_listen(void)
{
    if (atomic_load_explicit(&kn_range_tools, memory_order_relaxed) == KN_TOOLS_UNKNOWN)
        kn_range_tools_find();
    return kn_has_range_tools();
}

/* --- push and pop ----------------------------------------------------------------------------- */

kn_status kn_range_push(const char *name)
{
    if (!name)
        return kn_fail_argument_null("kn_range_push", "name");
    here.depth++;
    bool to_tools = tools_listen(), watched = kn_is_watched();
    if ((!to_tools && !watched) || here.reported == MAX_REPORTED)
        return KN_OK;
    entry *opened = &here.entries[here.reported++];
    *opened = (entry){.depth = here.depth, .to_tools = to_tools};
    if (to_tools)
        kn_range_tools_push(name);
    if (watched)
        opened->span = kn_span_begin(&(kn_span_info){.kind = KN_SPAN_RANGE, .name = name});
    return KN_OK;
}

kn_status kn_range_push_format(const char *format, ...)
{
    if (!format)
        return kn_fail_argument_null("kn_range_push_format", "format");
    if (!tools_listen() && !kn_is_watched()) /* nobody would read the text */
        return kn_range_push("");
    char name[512];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return kn_range_push(name);
}

kn_status kn_range_pop(void)
{
    if (here.depth == 0)
        return kn_fail(KN_ERR_STATE, "kn_range_pop: no range is open on this thread: a pop too many");
    int depth = here.depth--;
    if (here.reported == 0 || here.entries[here.reported - 1].depth != depth)
        return KN_OK;
    entry *closed = &here.entries[--here.reported];
    kn_span_end(closed->span, NULL);
    if (closed->to_tools)
        kn_range_tools_pop();
    return KN_OK;
}

int kn_range_depth(void) { return here.depth; }

kn_status kn_mark(const char *name)
{
    if (!name)
        return kn_fail_argument_null("kn_mark", "name");
    if (tools_listen())
        kn_range_tools_mark(name);
    if (kn_is_watched())
        kn_span_begin(&(kn_span_info){.kind = KN_SPAN_MARK, .name = name});
    return KN_OK;
}

/* --- start and end, from any thread ------------------------------------------------------------ */

typedef struct started {
    uint64_t id, tools_id;
    bool to_tools;
    kn_span span;
    struct started *next;
} started;

/* Few are open at a time: a list is enough. */
static struct {
    kn_mutex lock;
    started *first;
    uint64_t last_id;
} open_ranges = {.lock = KN_MUTEX_INIT};

uint64_t kn_range_start(const char *name)
{
    if (!name)
        return kn_fail_argument_null("kn_range_start", "name"), 0;
    started *range = kn_calloc(1, sizeof *range);
    if (!range)
        return 0;
    kn_lock(&open_ranges.lock);
    const uint64_t id = range->id = ++open_ranges.last_id;
    kn_unlock(&open_ranges.lock);
    range->to_tools = tools_listen();
    if (range->to_tools)
        range->tools_id = kn_range_tools_start(range->id, name);
    if (kn_is_watched())
        range->span = kn_span_begin(&(kn_span_info){.kind = KN_SPAN_ASYNC, .name = name});
    kn_lock(&open_ranges.lock);
    range->next = open_ranges.first;
    open_ranges.first = range;
    kn_unlock(&open_ranges.lock);
    return id;
}

kn_status kn_range_end(uint64_t id)
{
    kn_lock(&open_ranges.lock);
    started **link = &open_ranges.first;
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    started *range = *link;
    if (range)
        *link = range->next;
    kn_unlock(&open_ranges.lock);
    if (!range)
        return kn_fail(KN_ERR_STATE, "kn_range_end: range %" PRIu64 " is not open: it has ended or was never started",
                       id);
    kn_span_end(range->span, NULL);
    if (range->to_tools)
        kn_range_tools_end(range->id, range->tools_id);
    kn_free(range);
    return KN_OK;
}
