/* rt/command/launch.c - kernel launches. */
#include "rt/command/launch.h"

#include <string.h>

#include "rt/command/enqueue.h"
#include "rt/command/launch_now.h"
#include "rt/command/recorder.h"
#include "rt/command/rehearsing.h"
#include "rt/device/await.h"
#include "rt/device/lost.h"
#include "rt/direct/direct.h"
#include "rt/direct/entry.h"
#include "rt/memory/place.h"
#include "rt/memory/pool.h"
#include "rt/program/build_progress.h"
#include "rt/program/cold.h"
#include "rt/stream/fault.h"
#include "rt/stream/open.h"
#include "rt/stream/queue.h"
#include "rt/stream/settle.h"
#include "rt/stream/submit.h"
#include "rt/trace/watch.h"

/* Where arguments are set. A kernel object keeps them from launch to launch, and setting one may cost as much as a
 * small part of a launch (PoCL allocates memory for each): numbers and structs are set only when they change. */
typedef struct setter {
    cl_kernel kernel;
    kn_known_argument *known; /* NULL: what was set before is not known */
    kn_values *values;        /* of a kernel that gathers them, else NULL */
    cl_uint index;            /* of the next parameter */
} setter;

static cl_int set_value(setter *to, const void *value, size_t size)
{
    if (to->values)
        return kn_values_add(to->values, value, size) ? CL_SUCCESS : CL_INVALID_ARG_SIZE;
    const cl_uint index = to->index++;
    kn_known_argument *known =
        to->known && index < KN_KNOWN_ARGUMENTS && size <= sizeof to->known->value ? &to->known[index] : NULL;
    if (known && known->size == size && memcmp(known->value, value, size) == 0)
        return CL_SUCCESS;
    const cl_int error = clSetKernelArg(to->kernel, index, size, value);
    if (known) {
        known->size = error == CL_SUCCESS ? size : 0;
        memcpy(known->value, value, size);
    }
    return error;
}

/* Always set: another object may have the same handle once this one is gone. `start`: its address in kernels. */
static cl_int set_memory(setter *to, cl_mem memory, const void *start)
{
    return to->values ? set_value(to, &start, sizeof start)
                      : clSetKernelArg(to->kernel, to->index++, sizeof memory, &memory);
}

/* Buffers and faults take two kernel parameters each; see cl/common/koine.clh. */
static cl_int set_argument(setter *to, const kn_arg *arg, const kn_stream *stream, int operation)
{
    cl_long offset = arg->offset;
    cl_mem memory = (cl_mem)(uintptr_t)arg->pointer;
    const void *start = arg->start;
    cl_int error;
    switch (arg->kind) {
    case KN_ARG_BUFFER:
        memory = kn_buffer_memory(arg->buffer);
        start = kn_buffer_start(arg->buffer);
        offset += (cl_long)kn_buffer_offset(arg->buffer);
        /* fallthrough */
    case KN_ARG_MEMORY:
        error = set_memory(to, memory, start);
        return error == CL_SUCCESS ? set_value(to, &offset, sizeof offset) : error;
    case KN_ARG_BYTES:
        return set_value(to, arg->pointer ? arg->pointer : &arg->value, arg->size);
    case KN_ARG_LOCAL:
        return clSetKernelArg(to->kernel, to->index++, arg->size, NULL);
    case KN_ARG_FAULT:
        error = arg->pointer ? set_memory(to, memory, start) : set_memory(to, stream->fault, stream->fault_start);
        return error == CL_SUCCESS ? set_value(to, &(cl_int){operation}, sizeof(cl_int)) : error;
    }
    return CL_SUCCESS;
}

/* More are rare. */
#define MAX_BUFFERS 32

static const char *operation_of(const kn_launch_params *params)
{
    return params->operation ? params->operation : params->kernel;
}

kn_status kn_kernel_set_arguments(cl_kernel handle, kn_known_argument *known, kn_values *values, kn_stream *stream,
                                  const kn_launch_params *params)
{
    setter to = {handle, known, values, 0};
    for (int i = 0; i < params->num_args; i++) {
        const kn_arg *arg = &params->args[i];
        if (arg->kind == KN_ARG_BUFFER && !arg->buffer) /* kn_storage_resize */
            return kn_fail(KN_ERR_STATE, "%s: the storage of a tensor was resized to 0 bytes; resize it back first",
                           operation_of(params));
        int number = arg->kind == KN_ARG_FAULT ? kn_operation_number(operation_of(params)) : 0;
        cl_int error = set_argument(&to, arg, stream, number);
        if (error != CL_SUCCESS)
            return kn_cl_fail(error, stream->device, "%s: setting argument %d of kernel `%s`", operation_of(params), i,
                              params->kernel);
    }
    return KN_OK;
}

/* Before a launch. */
static void note_use(kn_stream *stream, const kn_launch_params *params)
{
    for (int i = 0; i < params->num_args; i++)
        if (params->args[i].kind == KN_ARG_BUFFER)
            kn_buffer_mark_use(params->args[i].buffer, stream);
}

/* After a launch: a thread that sees the mark and then waits also waits for this launch. */
static void note_fault(kn_stream *stream, const kn_launch_params *params)
{
    for (int i = 0; i < params->num_args; i++)
        if (params->args[i].kind == KN_ARG_FAULT && !params->args[i].pointer)
            atomic_store(&stream->fault_armed, true);
}

/* Work-items of GPUs come in units of 32 or 64, and drivers that choose the local size want a divisor of the global
 * one. */
enum { UNIT = 64 };

/* The local size of a dimension where none is given: 1 on CPU devices, elsewhere 0, the driver's choice, unless that
 * means compiling the kernel again for other global sizes (rt/device/quirks.h). */
static size_t default_local(const kn_device *device, int dim, size_t global)
{
    if (device->limits.is_cpu)
        return 1;
    if (!device->quirks.compiles_each_local_size)
        return 0;
    size_t local = dim == 0 ? UNIT : 1;
    while (local > 1 && (local > device->limits.max_work_group_size || global % local != 0))
        local /= 2;
    return local;
}

/* Work sizes in OpenCL's form: global a multiple of local. Returns false when there is nothing to do. */
static bool work_sizes(const kn_device *device, const kn_launch_params *params, size_t global[3], size_t local[3])
{
    for (int i = 0; i < params->dims; i++) {
        if (params->local[0] == 0)
            local[i] = default_local(device, i, params->global[i]);
        else
            local[i] = params->local[i] ? params->local[i] : 1;
        size_t unit = local[i] ? local[i] : 1;
        global[i] = (params->global[i] + unit - 1) / unit * unit;
        if (global[i] == 0)
            return false;
    }
    return true;
}

static cl_int enqueue(kn_stream *stream, kn_kernel *kernel, const kn_values *values, const kn_launch_params *params,
                      const size_t global[3], const size_t local[3])
{
    cl_event event;
    cl_int error =
        kn_enqueue_kernel(stream, kn_stream_turn(stream), kernel->handle, values, params->dims, global, local, &event);
    if (error != CL_SUCCESS)
        return error;
    kn_watch(stream, event, .kind = KN_COMMAND_KERNEL, .operation = operation_of(params), .kernel = params->kernel,
             .dims = params->dims, .global = {global[0], global[1], global[2]},
             .local = {local[0], local[1], local[2]});
    return error;
}

static kn_status fail(cl_int error, const kn_stream *stream, const kn_launch_params *params)
{
    return kn_cl_fail(error, stream->device, "%s: running kernel `%s`",
                      params->operation ? params->operation : params->source, params->kernel);
}

static kn_status launch_locked(kn_stream *stream, kn_kernel *kernel, const kn_launch_params *params,
                               const size_t global[3], const size_t local[3])
{
    kn_values gathered, *values = kernel->calling.is_gathered ? &gathered : NULL;
    gathered.size = 0;
    KN_TRY(kn_kernel_set_arguments(kernel->handle, kernel->known, values, stream, params));
    note_use(stream, params);
    cl_int error = enqueue(stream, kernel, values, params, global, local);
    /* drivers may allocate memory at first use, and our cache may leave too little; its lock may be another thread's,
     * which waits for this one */
    if (kn_cl_is_out_of_memory(error) && !kn_is_submitter()) {
        kn_pool_empty_cache(stream->device);
        error = enqueue(stream, kernel, values, params, global, local);
    }
    if (error != CL_SUCCESS)
        return fail(error, stream, params);
    note_fault(stream, params);
    return KN_OK;
}

/* Waits for drivers that compile a kernel when it first runs (rt/device/quirks.h): once per kernel and process. */
static kn_status launch_first(kn_stream *stream, kn_kernel *kernel, const kn_launch_params *params,
                              const size_t global[3], const size_t local[3])
{
    kn_build_wait wait = kn_build_begin(kernel->name);
    kn_status status = launch_locked(stream, kernel, params, global, local);
    if (status == KN_OK && stream->device->quirks.compiles_at_first_launch)
        kn_await_queue(kn_stream_turn(stream).queue);
    if (status == KN_OK)
        kn_entry_find(kernel, kn_stream_turn(stream).queue);
    kernel->launched = status == KN_OK;
    double seconds = kn_build_end(wait, kernel->launched);
    if (kn_device_is_cold(stream->device))
        kn_finish_at_exit();
    kn_build_log_launch(stream->device, params->source, kernel->name, seconds);
    return status;
}

/* Enqueues the deferred launches that this one's buffers depend on. */
static kn_status settle(kn_stream *stream, const kn_launch_params *params)
{
    const kn_buffer *used[MAX_BUFFERS];
    int count = 0;
    if (!kn_stream_deferred(stream))
        return KN_OK;
    for (int i = 0; i < params->num_args; i++) {
        if (params->args[i].kind != KN_ARG_BUFFER || !params->args[i].buffer)
            continue;
        if (count == MAX_BUFFERS)
            return kn_stream_settle(stream);
        used[count++] = params->args[i].buffer;
    }
    return kn_stream_settle_for(stream, used, count);
}

kn_status kn_launch_kernel(kn_kernel **kernel, kn_device *device, const kn_launch_params *params, const size_t local[3])
{
    const size_t group[3] = {local[0], local[1] ? local[1] : 1, local[2] ? local[2] : 1};
    return kn_kernel_get(kernel, device, params->source, params->options, params->kernel, group);
}

static kn_status launch_directly(kn_stream *stream, kn_kernel *kernel, const kn_launch_params *params,
                                 const size_t global[3], const size_t local[3])
{
    kn_values values;
    values.size = 0;
    KN_TRY(kn_kernel_set_arguments(kernel->handle, NULL, &values, stream, params));
    note_use(stream, params);
    kn_stream_note_worker(stream);
    const int64_t began = kn_watch_direct_begin();
    kn_direct_run(stream, kernel->calling.entry, &values, params->dims, global);
    kn_watch_direct(stream, began, .kind = KN_COMMAND_KERNEL, .operation = operation_of(params),
                    .kernel = params->kernel, .dims = params->dims, .global = {global[0], global[1], global[2]},
                    .local = {local[0], local[1], local[2]});
    note_fault(stream, params);
    return KN_OK;
}

static kn_status launch(kn_stream *stream, kn_kernel *kernel, const kn_launch_params *params, const size_t global[3],
                        const size_t local[3])
{
    if (kernel->launched && kn_direct_may_run(stream, kernel->calling.entry))
        return launch_directly(stream, kernel, params, global, local);
    KN_TRY(kn_stream_enter_settled(stream, operation_of(params)));
    kn_lock(&kernel->lock);
    kn_status status = kernel->launched ? launch_locked(stream, kernel, params, global, local)
                                        : launch_first(stream, kernel, params, global, local);
    kn_unlock(&kernel->lock);
    if (status == KN_OK && kn_launches_block()) {
        cl_int error = kn_stream_finish(stream);
        return error == CL_SUCCESS ? KN_OK : fail(error, stream, params);
    }
    return status == KN_OK ? kn_stream_count_launch(stream) : status;
}

kn_status kn_launch_now(kn_stream *stream, const kn_launch_params *params, const size_t global[3],
                        const size_t local[3])
{
    kn_kernel *kernel;
    KN_TRY(kn_launch_kernel(&kernel, stream->device, params, local));
    return launch(stream, kernel, params, global, local);
}

kn_status kn_launch(kn_stream *stream, const kn_launch_params *params)
{
    size_t global[3] = {0}, local[3] = {0};
    if (!work_sizes(stream->device, params, global, local))
        return KN_OK;
    const kn_rehearsal *rehearsal = kn_rehearsal_current();
    kn_kernel *kernel;
    KN_TRY(kn_device_check_lost(stream->device)); /* a dead context builds no programs */
    if (rehearsal) {
        KN_TRY(settle(stream, params));
        return rehearsal->launch(rehearsal, stream, params, global, local);
    }
    if (kn_device_is_cold(stream->device) && stream->device->cold->takes(stream, params)) {
        KN_TRY(settle(stream, params));
        return stream->device->cold->launch(stream, params, global, local);
    }
    KN_TRY(kn_launch_kernel(&kernel, stream->device, params, local));
    if (kn_stream_has_capture(stream)) {
        kn_capture *capture = kn_stream_require_capture(stream);
        if (!capture)
            return KN_ERR_STATE;
        KN_TRY(settle(stream, params));
        return capture->recorder->kernel(capture, stream, kernel, params, global, local);
    }
    KN_TRY(settle(stream, params));
    return launch(stream, kernel, params, global, local);
}

size_t kn_work_items(const kn_limits *limits, int64_t n, int64_t grain)
{
    if (n <= 0)
        return 0;
    int64_t per_unit = limits->is_cpu ? 4 : 2048;
    int64_t most = (int64_t)limits->compute_units * per_unit;
    int64_t wanted = limits->is_cpu ? (n + grain - 1) / grain : (n + UNIT - 1) / UNIT * UNIT;
    return (size_t)(wanted < most ? wanted : most);
}
