/* rt/trace/watch.h - reports commands to the profiler as they are enqueued. */
#pragma once

#include <koine/common.h>

#include "base/clock.h"
#include "rt/stream/queue.h"
#include "rt/trace/watching.h"

/* A command was enqueued; takes ownership of its `event`. */
void kn_watch_command(kn_stream *stream, const kn_command_info *info, cl_event event);

/* The event argument of an enqueue: NULL unless the profiler is watching. A replay that began before the profiler has a
 * queue without times: the rest of it is not recorded. */
static inline cl_event *kn_watch_event(kn_turn turn, cl_event *event)
{
    *event = NULL;
    return kn_is_watched() && kn_turn_is_timed(turn) ? event : NULL;
}

/* A command that the host ran itself since then (rt/direct/direct.h). */
void kn_watch_direct_command(kn_stream *stream, const kn_command_info *info, int64_t began);

/* Before such a command: the time, if the profiler is watching, else 0. */
static inline int64_t kn_watch_direct_begin(void) { return kn_is_watched() ? kn_clock_now() : 0; }

#define kn_watch_direct(stream, began, ...)                                                                            \
    do {                                                                                                               \
        if (began)                                                                                                     \
            kn_watch_direct_command(stream, &(kn_command_info){__VA_ARGS__}, began);                                   \
    } while (0)

#define kn_watch(stream, event, ...)                                                                                   \
    do {                                                                                                               \
        if (event)                                                                                                     \
            kn_watch_command(stream, &(kn_command_info){__VA_ARGS__}, event);                                          \
    } while (0)
