/* watch/profiler/trace.h - what the parts of the trace share. */
#pragma once

#include <cjson/cJSON.h>

#include "watch/profiler/communication.h"
#include "watch/profiler/timeline.h"

/* Processes; devices have the numbers of their slots. */
#define KN_TRACE_HOST 0
#define KN_TRACE_CALLS KN_MAX_DEVICES

typedef struct kn_trace {
    kn_status (*write)(void *to, const char *text);
    void *to;
    const kn_profile *profile;
    const kn_analysis *analysis;
    const kn_communication *communication;
    int64_t origin;          /* of the times written */
    const kn_trace_rank *of; /* NULL: the trace is of one process */
    int64_t events;
} kn_trace;

/* Microseconds of the trace: of a host time; of a time since the profile's start. */
double kn_trace_host_time(const kn_trace *t, int64_t time);
double kn_trace_time(const kn_trace *t, double us);

cJSON *kn_trace_event(const kn_trace *t, const char *phase, const char *category, const char *name, int process,
                      int track, double time);
void kn_trace_add_time(cJSON *event, const char *key, double us);
void kn_trace_add_text(cJSON *object, const char *key, const char *value);
void kn_trace_add_id(cJSON *event, const kn_trace *t, size_t number); /* joins events */
void kn_trace_add_work(cJSON *args, double flops, double bytes);
kn_status kn_trace_emit(kn_trace *t, cJSON *event); /* takes the event */

kn_status kn_trace_name(kn_trace *t, const char *what, int process, int track, const char *text);
kn_status kn_trace_name_process(kn_trace *t, int process, const char *text); /* nothing in a trace of ranks */
/* `of`: what the process is called, for a trace of ranks. */
kn_status kn_trace_name_track(kn_trace *t, int process, int track, const char *of, const char *text);

/* timeline_calls.c */
kn_status kn_trace_name_calls(kn_trace *t);
kn_status kn_trace_write_call_span(kn_trace *t, size_t number);
kn_status kn_trace_write_copies(kn_trace *t);
