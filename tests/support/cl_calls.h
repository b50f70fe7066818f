/* support/cl_calls.h - a wrapper of each OpenCL function that the library or CLBlast calls, for layers that treat all
 * of them alike: the wrapper on_NAME calls `called(N_NAME)` and fails with the error that this returns; without one it
 * calls `next.NAME`. For one file of a layer, which defines `called` and calls wrap_calls. */
#pragma once

#include "support/layer.h"

#define CL_CALLS(X)                                                                                                    \
    X(clGetPlatformIDs)                                                                                                \
    X(clGetPlatformInfo)                                                                                               \
    X(clGetDeviceIDs)                                                                                                  \
    X(clGetDeviceInfo)                                                                                                 \
    X(clGetDeviceAndHostTimer)                                                                                         \
    X(clCreateContext)                                                                                                 \
    X(clReleaseContext)                                                                                                \
    X(clGetContextInfo)                                                                                                \
    X(clCreateCommandQueue)                                                                                            \
    X(clCreateCommandQueueWithProperties)                                                                              \
    X(clRetainCommandQueue)                                                                                            \
    X(clReleaseCommandQueue)                                                                                           \
    X(clGetCommandQueueInfo)                                                                                           \
    X(clCreateBuffer)                                                                                                  \
    X(clCreateSubBuffer)                                                                                               \
    X(clRetainMemObject)                                                                                               \
    X(clReleaseMemObject)                                                                                              \
    X(clGetMemObjectInfo)                                                                                              \
    X(clCreateProgramWithSource)                                                                                       \
    X(clCreateProgramWithBinary)                                                                                       \
    X(clBuildProgram)                                                                                                  \
    X(clGetProgramInfo)                                                                                                \
    X(clGetProgramBuildInfo)                                                                                           \
    X(clReleaseProgram)                                                                                                \
    X(clCreateKernel)                                                                                                  \
    X(clReleaseKernel)                                                                                                 \
    X(clSetKernelArg)                                                                                                  \
    X(clGetKernelInfo)                                                                                                 \
    X(clGetKernelArgInfo)                                                                                              \
    X(clGetKernelWorkGroupInfo)                                                                                        \
    X(clWaitForEvents)                                                                                                 \
    X(clGetEventInfo)                                                                                                  \
    X(clRetainEvent)                                                                                                   \
    X(clReleaseEvent)                                                                                                  \
    X(clGetEventProfilingInfo)                                                                                         \
    X(clCreateUserEvent)                                                                                               \
    X(clSetUserEventStatus)                                                                                            \
    X(clSetEventCallback)                                                                                              \
    X(clFlush)                                                                                                         \
    X(clFinish)                                                                                                        \
    X(clEnqueueReadBuffer)                                                                                             \
    X(clEnqueueWriteBuffer)                                                                                            \
    X(clEnqueueCopyBuffer)                                                                                             \
    X(clEnqueueFillBuffer)                                                                                             \
    X(clEnqueueMapBuffer)                                                                                              \
    X(clEnqueueUnmapMemObject)                                                                                         \
    X(clEnqueueNDRangeKernel)                                                                                          \
    X(clEnqueueMarkerWithWaitList)                                                                                     \
    X(clEnqueueBarrierWithWaitList)

#define CL_NUMBER(name) N_##name,
#define CL_TEXT(name) #name,
enum { CL_CALLS(CL_NUMBER) CL_CALL_COUNT };
static const char *const cl_call_names[] = {CL_CALLS(CL_TEXT)};

static struct _cl_icd_dispatch next; /* below the wrappers */
static cl_int called(int name);

/* Fails without reaching the driver. */
#define CALL(name, parameters, arguments)                                                                              \
    static cl_int CL_API_CALL on_##name parameters                                                                     \
    {                                                                                                                  \
        cl_int error = called(N_##name);                                                                               \
        return error ? error : next.name arguments;                                                                    \
    }
/* Fails after releasing, because each failure would leak otherwise. */
#define RELEASE(name, type)                                                                                            \
    static cl_int CL_API_CALL on_##name(type object)                                                                   \
    {                                                                                                                  \
        cl_int error = called(N_##name), released = next.name(object);                                                 \
        return error ? error : released;                                                                               \
    }
/* The last parameter receives the error. */
#define MAKE(type, name, parameters, arguments)                                                                        \
    static type CL_API_CALL on_##name parameters                                                                       \
    {                                                                                                                  \
        cl_int error = called(N_##name);                                                                               \
        if (error && code)                                                                                             \
            *code = error;                                                                                             \
        return error ? NULL : next.name arguments;                                                                     \
    }
#define ASK(name, type)                                                                                                \
    CALL(name, (type o, cl_uint what, size_t size, void *to, size_t *told), (o, what, size, to, told))
#define ASK_OF(name, type, other)                                                                                      \
    CALL(name, (type o, other p, cl_uint what, size_t size, void *to, size_t *told), (o, p, what, size, to, told))
#define WAITS cl_uint n, const cl_event *events, cl_event *made
#define WAIT n, events, made

CALL(clGetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *told), (n, ids, told))
ASK(clGetPlatformInfo, cl_platform_id)
CALL(clGetDeviceIDs, (cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *told),
     (p, type, n, ids, told))
ASK(clGetDeviceInfo, cl_device_id)
CALL(clGetDeviceAndHostTimer, (cl_device_id d, cl_ulong *device, cl_ulong *host), (d, device, host))

MAKE(cl_context, clCreateContext,
     (const cl_context_properties *p, cl_uint n, const cl_device_id *ids,
      void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code),
     (p, n, ids, notify, user, code))
RELEASE(clReleaseContext, cl_context)
ASK(clGetContextInfo, cl_context)
MAKE(cl_command_queue, clCreateCommandQueue,
     (cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *code), (c, d, p, code))
MAKE(cl_command_queue, clCreateCommandQueueWithProperties,
     (cl_context c, cl_device_id d, const cl_queue_properties *p, cl_int *code), (c, d, p, code))
CALL(clRetainCommandQueue, (cl_command_queue q), (q))
RELEASE(clReleaseCommandQueue, cl_command_queue)
ASK(clGetCommandQueueInfo, cl_command_queue)

MAKE(cl_mem, clCreateBuffer, (cl_context c, cl_mem_flags flags, size_t size, void *host, cl_int *code),
     (c, flags, size, host, code))
MAKE(cl_mem, clCreateSubBuffer,
     (cl_mem m, cl_mem_flags flags, cl_buffer_create_type type, const void *region, cl_int *code),
     (m, flags, type, region, code))
CALL(clRetainMemObject, (cl_mem m), (m))
RELEASE(clReleaseMemObject, cl_mem)
ASK(clGetMemObjectInfo, cl_mem)

MAKE(cl_program, clCreateProgramWithSource,
     (cl_context c, cl_uint n, const char **texts, const size_t *lengths, cl_int *code), (c, n, texts, lengths, code))
MAKE(cl_program, clCreateProgramWithBinary,
     (cl_context c, cl_uint n, const cl_device_id *ids, const size_t *lengths, const unsigned char **binaries,
      cl_int *loaded, cl_int *code),
     (c, n, ids, lengths, binaries, loaded, code))
CALL(clBuildProgram,
     (cl_program p, cl_uint n, const cl_device_id *ids, const char *options,
      void(CL_CALLBACK *notify)(cl_program, void *), void *user),
     (p, n, ids, options, notify, user))
ASK(clGetProgramInfo, cl_program)
ASK_OF(clGetProgramBuildInfo, cl_program, cl_device_id)
RELEASE(clReleaseProgram, cl_program)
MAKE(cl_kernel, clCreateKernel, (cl_program p, const char *name, cl_int *code), (p, name, code))
RELEASE(clReleaseKernel, cl_kernel)
CALL(clSetKernelArg, (cl_kernel k, cl_uint index, size_t size, const void *value), (k, index, size, value))
ASK(clGetKernelInfo, cl_kernel)
ASK_OF(clGetKernelArgInfo, cl_kernel, cl_uint)
ASK_OF(clGetKernelWorkGroupInfo, cl_kernel, cl_device_id)

CALL(clWaitForEvents, (cl_uint n, const cl_event *events), (n, events))
ASK(clGetEventInfo, cl_event)
CALL(clRetainEvent, (cl_event e), (e))
RELEASE(clReleaseEvent, cl_event)
ASK(clGetEventProfilingInfo, cl_event)
MAKE(cl_event, clCreateUserEvent, (cl_context c, cl_int *code), (c, code))
CALL(clSetUserEventStatus, (cl_event e, cl_int status), (e, status))
CALL(clSetEventCallback, (cl_event e, cl_int state, void(CL_CALLBACK *notify)(cl_event, cl_int, void *), void *user),
     (e, state, notify, user))

CALL(clFlush, (cl_command_queue q), (q))
CALL(clFinish, (cl_command_queue q), (q))
CALL(clEnqueueReadBuffer, (cl_command_queue q, cl_mem m, cl_bool wait, size_t at, size_t size, void *to, WAITS),
     (q, m, wait, at, size, to, WAIT))
CALL(clEnqueueWriteBuffer,
     (cl_command_queue q, cl_mem m, cl_bool wait, size_t at, size_t size, const void *from, WAITS),
     (q, m, wait, at, size, from, WAIT))
CALL(clEnqueueCopyBuffer,
     (cl_command_queue q, cl_mem from, cl_mem to, size_t from_at, size_t to_at, size_t size, WAITS),
     (q, from, to, from_at, to_at, size, WAIT))
CALL(clEnqueueFillBuffer,
     (cl_command_queue q, cl_mem m, const void *pattern, size_t bytes, size_t at, size_t size, WAITS),
     (q, m, pattern, bytes, at, size, WAIT))
MAKE(void *, clEnqueueMapBuffer,
     (cl_command_queue q, cl_mem m, cl_bool wait, cl_map_flags flags, size_t at, size_t size, WAITS, cl_int *code),
     (q, m, wait, flags, at, size, WAIT, code))
CALL(clEnqueueUnmapMemObject, (cl_command_queue q, cl_mem m, void *data, WAITS), (q, m, data, WAIT))
CALL(clEnqueueNDRangeKernel,
     (cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *offset, const size_t *global, const size_t *local,
      WAITS),
     (q, k, dims, offset, global, local, WAIT))
CALL(clEnqueueMarkerWithWaitList, (cl_command_queue q, WAITS), (q, WAIT))
CALL(clEnqueueBarrierWithWaitList, (cl_command_queue q, WAITS), (q, WAIT))

/* Around the layer's functions so far. */
static inline void wrap_calls(void)
{
    next = ours;
#define CL_WRAP(name) ours.name = on_##name;
    CL_CALLS(CL_WRAP)
}
