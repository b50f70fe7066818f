/* watch/profiler/timeline_calls.c - the calls of groups in the trace: for each group's thread four tracks, with the
 * calls and their waiting, copies down, exchanges, copies up. */
#include <string.h>

#include "base/error.h"
#include "watch/profiler/trace.h"

enum { CALLS, COPIES_DOWN, EXCHANGES, COPIES_UP, TRACKS_OF_CALLS };

static int track_of_call(const kn_span_record *span)
{
    const int first = TRACKS_OF_CALLS * span->thread;
    if (span->kind == KN_SPAN_CALL || strcmp(span->name, KN_PART_WAIT) == 0)
        return first + CALLS;
    return first + (strcmp(span->name, KN_PART_COPY_DOWN) == 0 ? COPIES_DOWN
                    : strcmp(span->name, KN_PART_COPY_UP) == 0 ? COPIES_UP
                                                               : EXCHANGES);
}

/* Copies are written with the device's times. */
kn_status kn_trace_write_call_span(kn_trace *t, size_t number)
{
    const kn_span_record *span = &t->profile->spans[number];
    const int track = track_of_call(span), kind = track % TRACKS_OF_CALLS;
    if (kind == COPIES_DOWN || kind == COPIES_UP)
        return KN_OK;
    cJSON *event =
        kn_trace_event(t, "X", "communication", span->name, KN_TRACE_CALLS, track, kn_trace_host_time(t, span->start));
    kn_trace_add_time(event, "dur", t->analysis->spans[number].cpu);
    if (span->kind == KN_SPAN_CALL)
        kn_trace_add_work(cJSON_AddObjectToObject(event, "args"), 0, span->work.bytes);
    return kn_trace_emit(t, event);
}

kn_status kn_trace_write_copies(kn_trace *t)
{
    for (size_t i = 0; i < t->profile->num_commands; i++) {
        const kn_command_record *command = &t->profile->commands[i];
        const kn_span_record *span = command->parent >= 0 ? &t->profile->spans[command->parent] : NULL;
        if (!span || span->kind != KN_SPAN_PART || !command->is_timed)
            continue;
        cJSON *event = kn_trace_event(t, "X", "communication", span->name, KN_TRACE_CALLS, track_of_call(span),
                                      kn_trace_time(t, t->analysis->commands[i].start));
        kn_trace_add_time(event, "dur", t->analysis->commands[i].time);
        kn_trace_add_work(cJSON_AddObjectToObject(event, "args"), 0, (double)command->bytes);
        KN_TRY(kn_trace_emit(t, event));
    }
    return KN_OK;
}

kn_status kn_trace_name_calls(kn_trace *t)
{
    static const char *const names[] = {"calls", "copies down", "exchanges", "copies up"};
    int named = -1;
    if (t->communication->count > 0)
        KN_TRY(kn_trace_name_process(t, KN_TRACE_CALLS, "communication"));
    for (int i = 0; i < t->communication->count; i++) {
        const int thread = t->profile->spans[t->communication->calls[i].span].thread;
        if (thread == named)
            continue;
        for (int track = 0; track < TRACKS_OF_CALLS; track++)
            KN_TRY(kn_trace_name_track(t, KN_TRACE_CALLS, TRACKS_OF_CALLS * thread + track, "communication",
                                       names[track]));
        named = thread;
    }
    return KN_OK;
}
