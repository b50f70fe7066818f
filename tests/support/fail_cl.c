/* support/fail_cl.c - the layer of support/fail_cl.h: one wrapper per OpenCL function that the library or CLBlast
 * calls.
 */
#include "support/fail_cl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/layer.h"

/* --- which call fails --------------------------------------------------------------------------------------------- */

#define NAMES(X)                                                                                                       \
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

#define NUMBER(name) N_##name,
#define TEXT(name) #name,
enum { NAMES(NUMBER) COUNT };
static const char *const names[] = {NAMES(TEXT)};

static atomic_long counts[COUNT];
static struct {
    atomic_int name, error, for_good, failures;
    atomic_long left; /* calls of the name until the one that fails */
} plan = {.name = -1};

/* Counts a call; returns the error to fail with, or CL_SUCCESS. */
static cl_int called(int name)
{
    atomic_fetch_add(&counts[name], 1);
    if (atomic_load(&plan.name) != name)
        return CL_SUCCESS;
    const long before = atomic_fetch_sub(&plan.left, 1);
    if (before != 1 && !(before < 1 && atomic_load(&plan.for_good)))
        return CL_SUCCESS;
    atomic_fetch_add(&plan.failures, 1);
    return atomic_load(&plan.error);
}

static void set_plan(int name, long nth, int error)
{
    atomic_store(&plan.name, -1);
    for (int i = 0; i < COUNT; i++)
        atomic_store(&counts[i], 0);
    atomic_store(&plan.failures, 0);
    atomic_store(&plan.error, error);
    atomic_store(&plan.left, nth);
    atomic_store(&plan.name, nth > 0 ? name : -1);
}

static bool has_failed(void) { return atomic_load(&plan.failures) > 0; }
static long count_of(int name) { return atomic_load(&counts[name]); }
static const char *name_of(int name) { return name >= 0 && name < COUNT ? names[name] : NULL; }

EXPORT const fail_cl fail_cl_functions = {set_plan, has_failed, count_of, name_of};

static void read_environment(void)
{
    const char *wanted = getenv("FAIL_CL");
    char name[64], on[8] = "";
    long nth;
    int error;
    if (!wanted || sscanf(wanted, "%63[^:]:%ld:%d:%7s", name, &nth, &error, on) < 3)
        return;
    for (int i = 0; i < COUNT; i++)
        if (strcmp(names[i], name) == 0)
            set_plan(i, nth, error);
    atomic_store(&plan.for_good, strcmp(on, "on") == 0);
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("FAIL_CL_COUNTS");
    FILE *file = path && *path ? fopen(path, "w") : NULL;
    for (int i = 0; i < COUNT && file; i++)
        fprintf(file, "%s %ld\n", names[i], atomic_load(&counts[i]));
    if (file)
        fclose(file);
}

/* --- the wrappers ------------------------------------------------------------------------------------------------- */

/* Fails without reaching the driver. */
#define CALL(name, parameters, arguments)                                                                              \
    static cl_int CL_API_CALL on_##name parameters                                                                     \
    {                                                                                                                  \
        cl_int error = called(N_##name);                                                                               \
        return error ? error : below->name arguments;                                                                  \
    }
/* Fails after releasing, because each failure would leak otherwise. */
#define RELEASE(name, type)                                                                                            \
    static cl_int CL_API_CALL on_##name(type object)                                                                   \
    {                                                                                                                  \
        cl_int error = called(N_##name), released = below->name(object);                                               \
        return error ? error : released;                                                                               \
    }
/* The last parameter receives the error. */
#define MAKE(type, name, parameters, arguments)                                                                        \
    static type CL_API_CALL on_##name parameters                                                                       \
    {                                                                                                                  \
        cl_int error = called(N_##name);                                                                               \
        if (error && code)                                                                                             \
            *code = error;                                                                                             \
        return error ? NULL : below->name arguments;                                                                   \
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

/* --- the layer ---------------------------------------------------------------------------------------------------- */

static void install(void)
{
#define WRAP(name) ours.name = on_##name;
    NAMES(WRAP)
    read_environment();
}

LAYER("fail_cl", install)
