/* support/odd_driver/transfers.c - fills that fail, transfers that block or arrive late. */
#include "support/odd_driver/odd.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static cl_bool blocks(cl_bool wanted) { return wanted || odd[ODD_BLOCKING].is_on; }

static cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes,
                                       size_t offset, size_t bytes, cl_uint waits, const cl_event *list,
                                       cl_event *event)
{
    if (odd[ODD_FILL].is_on && bytes >= (size_t)1 << 31)
        return odd_refuse(CL_OUT_OF_RESOURCES, "a fill of %zu bytes", bytes);
    cl_int error = odd_use_memory(memory);
    return error ? error
                 : below->clEnqueueFillBuffer(queue, memory, pattern, pattern_bytes, offset, bytes, waits, list, event);
}

static cl_int CL_API_CALL enqueue_read(cl_command_queue queue, cl_mem memory, cl_bool wait, size_t offset, size_t bytes,
                                       void *to, cl_uint waits, const cl_event *list, cl_event *event)
{
    cl_int error = odd_use_memory(memory);
    return error ? error
                 : below->clEnqueueReadBuffer(queue, memory, blocks(wait), offset, bytes, to, waits, list, event);
}

/* --- writes that have only taken their data ----------------------------------------------------------------------- */

typedef struct posted {
    cl_event gate, written;
    void *data;
} posted;

static void *deliver(void *user)
{
    posted *p = user;
    const size_t milliseconds = odd[ODD_POSTED].number;
    nanosleep(&(struct timespec){.tv_nsec = (long)milliseconds * 1000000}, NULL);
    below->clSetUserEventStatus(p->gate, CL_COMPLETE);
    below->clWaitForEvents(1, &p->written);
    below->clReleaseEvent(p->gate);
    below->clReleaseEvent(p->written);
    free(p->data);
    free(p);
    return NULL;
}

static cl_int post(cl_command_queue queue, cl_mem memory, size_t offset, size_t bytes, const void *from)
{
    cl_context context;
    cl_int error = below->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    posted *p = calloc(1, sizeof *p);
    void *data = malloc(bytes);
    pthread_t thread;
    if (error || !p || !data)
        abort();
    *p = (posted){.gate = below->clCreateUserEvent(context, &error), .data = memcpy(data, from, bytes)};
    if (error == CL_SUCCESS)
        error = below->clEnqueueWriteBuffer(queue, memory, CL_FALSE, offset, bytes, data, 1, &p->gate, &p->written);
    if (error != CL_SUCCESS || pthread_create(&thread, NULL, deliver, p) != 0)
        abort();
    return pthread_detach(thread) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int CL_API_CALL enqueue_write(cl_command_queue queue, cl_mem memory, cl_bool wait, size_t offset,
                                        size_t bytes, const void *from, cl_uint waits, const cl_event *list,
                                        cl_event *event)
{
    cl_int error = odd_use_memory(memory);
    if (error == CL_SUCCESS && odd[ODD_POSTED].is_on && wait && waits == 0 && !event)
        return post(queue, memory, offset, bytes, from);
    return error ? error
                 : below->clEnqueueWriteBuffer(queue, memory, blocks(wait), offset, bytes, from, waits, list, event);
}

static cl_int CL_API_CALL enqueue_copy(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                       size_t to_offset, size_t bytes, cl_uint waits, const cl_event *list,
                                       cl_event *event)
{
    cl_int error = odd_use_memory(from);
    if (error == CL_SUCCESS)
        error = odd_use_memory(to);
    return error ? error
                 : below->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, waits, list, event);
}

static void *CL_API_CALL enqueue_map(cl_command_queue queue, cl_mem memory, cl_bool wait, cl_map_flags flags,
                                     size_t offset, size_t bytes, cl_uint waits, const cl_event *list, cl_event *event,
                                     cl_int *error)
{
    const cl_int lacking = odd_use_memory(memory);
    if (lacking && error)
        *error = lacking;
    return lacking ? NULL
                   : below->clEnqueueMapBuffer(queue, memory, blocks(wait), flags, offset, bytes, waits, list, event,
                                               error);
}

void odd_install_transfers(void)
{
    ours.clEnqueueFillBuffer = enqueue_fill;
    ours.clEnqueueReadBuffer = enqueue_read;
    ours.clEnqueueWriteBuffer = enqueue_write;
    ours.clEnqueueCopyBuffer = enqueue_copy;
    ours.clEnqueueMapBuffer = enqueue_map;
}
