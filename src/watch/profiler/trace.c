/* watch/profiler/trace.c - the events of a trace: making and writing them. */
#include "watch/profiler/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

/* Microseconds with three decimals, that is, exact nanoseconds, so that nesting is preserved. Uses integers, because
 * the program's locale may have another decimal point. */
void kn_trace_add_time(cJSON *event, const char *key, double us)
{
    char text[48];
    int64_t ns = llround(us * 1e3), size = ns < 0 ? -ns : ns;
    snprintf(text, sizeof text, "%s%" PRId64 ".%03d", ns < 0 ? "-" : "", size / 1000, (int)(size % 1000));
    cJSON_AddRawToObject(event, key, text);
}

/* JSON is UTF-8; names of ranges or devices may not be. */
void kn_trace_add_text(cJSON *object, const char *key, const char *value)
{
    kn_text text = {0};
    kn_text_append_utf8(&text, value);
    char *sound = kn_text_finish(&text);
    cJSON_AddStringToObject(object, key, sound ? sound : "(out of memory)");
    kn_free(sound);
}

/* Tracks of one rank's processes have numbers apart. */
#define TRACKS 1000

cJSON *kn_trace_event(const kn_trace *t, const char *phase, const char *category, const char *name, int process,
                      int track, double time)
{
    cJSON *event = cJSON_CreateObject();
    if (!event)
        return NULL;
    cJSON_AddStringToObject(event, "ph", phase);
    if (category)
        cJSON_AddStringToObject(event, "cat", category);
    kn_trace_add_text(event, "name", name);
    cJSON_AddNumberToObject(event, "pid", t->of ? t->of->rank : process);
    cJSON_AddNumberToObject(event, "tid", t->of ? TRACKS * process + track : track);
    kn_trace_add_time(event, "ts", time);
    return event;
}

/* What joins events: a number of its own in each rank. */
void kn_trace_add_id(cJSON *event, const kn_trace *t, size_t number)
{
    cJSON_AddNumberToObject(event, "id", (t->of ? t->of->rank * 4294967296.0 : 0) + (double)number);
}

/* Writes the event and frees it. */
kn_status kn_trace_emit(kn_trace *t, cJSON *event)
{
    char *text = event ? cJSON_PrintUnformatted(event) : NULL;
    cJSON_Delete(event);
    if (!text)
        return kn_fail_host_memory(0, "a trace");
    kn_status status = KN_OK;
    if (t->events++ > 0)
        status = t->write(t->to, ",\n");
    if (status == KN_OK)
        status = t->write(t->to, text);
    cJSON_free(text);
    return status;
}

kn_status kn_trace_name(kn_trace *t, const char *what, int process, int track, const char *text)
{
    cJSON *event = kn_trace_event(t, "M", NULL, what, process, track, 0);
    kn_trace_add_text(cJSON_AddObjectToObject(event, "args"), "name", text);
    return kn_trace_emit(t, event);
}

kn_status kn_trace_name_process(kn_trace *t, int process, const char *text)
{
    return t->of ? KN_OK : kn_trace_name(t, "process_name", process, 0, text);
}

/* `of`: what its process is called where that is not shown. */
kn_status kn_trace_name_track(kn_trace *t, int process, int track, const char *of, const char *text)
{
    char both[224];
    snprintf(both, sizeof both, "%s%s%s", t->of ? of : "", t->of && of[0] ? " " : "", text);
    return kn_trace_name(t, "thread_name", process, track, both);
}

double kn_trace_host_time(const kn_trace *t, int64_t time) { return (double)(time - t->origin) * 1e-3; }

/* From figures, which count from the profile's start. */
double kn_trace_time(const kn_trace *t, double us) { return us + kn_trace_host_time(t, t->profile->started); }

void kn_trace_add_work(cJSON *args, double flops, double bytes)
{
    if (flops > 0)
        cJSON_AddNumberToObject(args, "flops", flops);
    if (bytes > 0)
        cJSON_AddNumberToObject(args, "bytes", bytes);
}
