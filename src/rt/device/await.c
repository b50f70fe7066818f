/* rt/device/await.c - see rt/device/await.h. */
#include "rt/device/await.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

#define FIRST_PAUSE 20000 /* nanoseconds */
#define LAST_PAUSE 1000000

typedef enum wait_mode { BY_DRIVER, BY_SLEEP, BY_SPIN } wait_mode;

static wait_mode mode;

static void read_mode(void)
{
    const char *wanted = getenv("KOINE_WAIT");
    if (!wanted || !*wanted || strcmp(wanted, "driver") == 0)
        mode = BY_DRIVER;
    else if (strcmp(wanted, "sleep") == 0)
        mode = BY_SLEEP;
    else if (strcmp(wanted, "spin") == 0)
        mode = BY_SPIN;
    else
        kn_log_message(KN_LOG_ERROR, "KOINE_WAIT: '%s' is not driver, sleep or spin; the driver waits", wanted);
}

static wait_mode mode_now(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_mode);
    return mode;
}

bool kn_awaits_itself(void) { return mode_now() != BY_DRIVER; }
bool kn_wait_sleeps(void) { return mode_now() == BY_SLEEP; }

cl_int kn_await_event(cl_event event)
{
    cl_int state = CL_QUEUED;
    if (!kn_awaits_itself())
        return clWaitForEvents(1, &event);
    for (long pause = FIRST_PAUSE;; pause = pause * 3 / 2 < LAST_PAUSE ? pause * 3 / 2 : LAST_PAUSE) {
        cl_int error = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (error != CL_SUCCESS || state <= CL_COMPLETE)
            return error != CL_SUCCESS ? error : state; /* CL_COMPLETE is CL_SUCCESS, less is an error */
        if (mode == BY_SLEEP)
            nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
    }
}

cl_int kn_mark_queue(cl_command_queue queue, cl_event *last)
{
    cl_int error = clEnqueueMarkerWithWaitList(queue, 0, NULL, last);
    if (error == CL_SUCCESS && (error = clFlush(queue)) != CL_SUCCESS)
        clReleaseEvent(*last);
    return error;
}

cl_int kn_await_queue(cl_command_queue queue)
{
    cl_event last;
    cl_int error = kn_mark_queue(queue, &last);
    if (error != CL_SUCCESS)
        return error;
    error = kn_await_event(last);
    clReleaseEvent(last);
    return error;
}
