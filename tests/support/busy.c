/* support/busy.c - see support/busy.h. */
#include "support/busy.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "rt/stream/queue.h"

#define MILLISECONDS 60

struct held {
    cl_event gate;
};

held *hold(kn_device *device)
{
    cl_int error = CL_SUCCESS;
    held *stream = malloc(sizeof *stream);
    kn_stream *current = kn_stream_current(device);
    if (!stream || !current || kn_stream_enter(current, "a test's hold") != KN_OK)
        abort();
    stream->gate = clCreateUserEvent(device->context, &error);
    if (error == CL_SUCCESS)
        error = clEnqueueBarrierWithWaitList(kn_stream_turn(current).queue, 1, &stream->gate, NULL);
    if (error != CL_SUCCESS)
        abort();
    kn_stream_note_others(current); /* as after kn_stream_wait_event */
    return stream;
}

void let_go(held *stream)
{
    clSetUserEventStatus(stream->gate, CL_COMPLETE);
    clReleaseEvent(stream->gate);
    free(stream);
}

static void *let_go_later(void *stream)
{
    nanosleep(&(struct timespec){.tv_nsec = MILLISECONDS * 1000000}, NULL);
    let_go(stream);
    return NULL;
}

void keep_busy(kn_device *device)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, let_go_later, hold(device)) != 0)
        abort();
    pthread_detach(thread);
}

bool copies_block(kn_device *device)
{
    cl_int error = CL_SUCCESS, word = 0, state = CL_QUEUED;
    cl_event copied = NULL;
    if (getenv("KOINE_GUARD"))
        return true;
    keep_busy(device);
    cl_command_queue queue = kn_stream_turn(kn_stream_current(device)).queue;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof word, NULL, &error);
    if (error == CL_SUCCESS)
        error = clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, sizeof word, &word, 0, NULL, &copied);
    if (error == CL_SUCCESS)
        error = clGetEventInfo(copied, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (error != CL_SUCCESS || clFinish(queue) != CL_SUCCESS)
        abort();
    clReleaseEvent(copied);
    clReleaseMemObject(memory);
    return state == CL_COMPLETE;
}
