/* support/odd_driver/events.c - times that are wrong or missing, callbacks that come late. */
#include "support/odd_driver/odd.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* --- times -------------------------------------------------------------------------------------------------------- */

static bool is_marker(cl_event event)
{
    cl_command_type type = 0;
    below->clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL);
    return type == CL_COMMAND_MARKER || type == CL_COMMAND_BARRIER;
}

static cl_int CL_API_CALL get_time(cl_event event, cl_profiling_info what, size_t size, void *to, size_t *size_ret)
{
    if (odd[ODD_NO_TIMES].is_on)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    cl_int error = below->clGetEventProfilingInfo(event, what, size, to, size_ret);
    const bool is_odd = (odd[ODD_MARKER_ZERO].is_on || odd[ODD_MARKER_MIXED].is_on) && is_marker(event);
    if (error == CL_SUCCESS && is_odd && to) {
        cl_ulong time = *(cl_ulong *)to;
        time = odd[ODD_MARKER_ZERO].is_on ? 0 : time ^ 0xFFFFFFFF; /* in reverse within four seconds */
        memcpy(to, &time, sizeof time);
    }
    return error;
}

/* --- callbacks ---------------------------------------------------------------------------------------------------- */

typedef struct late_call {
    void(CL_CALLBACK *function)(cl_event, cl_int, void *);
    void *user;
    cl_event event;
    cl_int state;
} late_call;

static _Thread_local bool in_callback;
bool odd_in_callback(void) { return in_callback; }

static void *call_late(void *argument)
{
    static unsigned calls;
    late_call *call = argument;
    const long ms = (long)odd[ODD_LATE].number / (1 + __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 3);
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
    in_callback = true;
    call->function(call->event, call->state, call->user);
    in_callback = false;
    below->clReleaseEvent(call->event);
    free(call);
    return NULL;
}

static void CL_CALLBACK on_time(cl_event event, cl_int state, void *user)
{
    late_call *call = user;
    pthread_t thread;
    (void)event;
    call->state = state;
    if (pthread_create(&thread, NULL, call_late, call) == 0)
        pthread_detach(thread);
    else
        call_late(call);
}

static cl_int CL_API_CALL set_callback(cl_event event, cl_int state,
                                       void(CL_CALLBACK *function)(cl_event, cl_int, void *), void *user)
{
    late_call *call = odd[ODD_LATE].is_on ? malloc(sizeof *call) : NULL;
    if (!call)
        return below->clSetEventCallback(event, state, function, user);
    *call = (late_call){.function = function, .user = user, .event = event};
    below->clRetainEvent(event);
    cl_int error = below->clSetEventCallback(event, state, on_time, call);
    if (error != CL_SUCCESS) {
        below->clReleaseEvent(event);
        free(call);
    }
    return error;
}

void odd_install_events(void)
{
    ours.clGetEventProfilingInfo = get_time;
    ours.clSetEventCallback = set_callback;
}
