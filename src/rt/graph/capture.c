/* rt/graph/capture.c - recording commands instead of enqueueing them. */
#include "rt/graph/capture.h"

#include <string.h>

#include "base/memory.h"
#include "rt/device/lost.h"
#include "rt/direct/entry.h"
#include "rt/graph/recording.h"
#include "rt/graph/variable.h"

#define APPEND(recording, list, count, value)                                                                          \
    append((void **)&(recording)->list, &(recording)->count, sizeof *(recording)->list, value)
/* The capacity is the next power of two. */
static kn_status append(void **array, int *count, size_t element, const void *value)
{
    const bool is_full = (*count & (*count - 1)) == 0;
    void *grown = is_full ? kn_realloc(*array, (*count ? (size_t)*count * 2 : 1) * element) : *array;
    if (!grown)
        return KN_ERR_MEMORY;
    *array = grown;
    memcpy((char *)grown + (size_t)*count * element, value, element);
    (*count)++;
    return KN_OK;
}

/* Every capture is one of a graph. */
static kn_graph_capture *whole(kn_capture *capture) { return (kn_graph_capture *)capture; }

kn_status kn_capture_fail(kn_stream *stream, kn_status status)
{
    kn_capture *capture = kn_stream_own_capture(stream);
    return capture ? kn_capture_note(capture, status) : status; /* another thread's capture is not failed */
}

/* --- memory ----------------------------------------------------------------------------------- */

static void buffer_is_gone(kn_buffer_watcher *watcher) { atomic_store(&((kn_outside *)watcher)->gone, true); }

/* The graph's own pool keeps its memory; any other buffer is watched. */
static kn_status note_buffer(const kn_graph_capture *capture, const kn_buffer *used)
{
    kn_buffer *buffer = (kn_buffer *)(uintptr_t)used;
    kn_recording *recording = capture->recording;
    if (kn_buffer_in_pool(buffer, capture->pool))
        return KN_OK;
    for (int i = 0; i < recording->num_outside; i++)
        if (recording->outside[i]->buffer == buffer && !atomic_load(&recording->outside[i]->gone))
            return KN_OK;
    kn_outside *outside = kn_calloc(1, sizeof *outside);
    if (!outside)
        return KN_ERR_MEMORY;
    outside->watcher.freed = buffer_is_gone;
    outside->buffer = buffer;
    kn_status status = kn_buffer_watch(buffer, &outside->watcher);
    if (status == KN_OK) {
        status = APPEND(recording, outside, num_outside, &outside);
        if (status != KN_OK)
            kn_buffer_unwatch(&outside->watcher);
    }
    if (status != KN_OK)
        kn_free(outside);
    return status;
}

/* --- variables -------------------------------------------------------------------------------- */

/* Takes ownership of a reference, also on failure. */
static kn_status add_variable(kn_recording *recording, const void *memory)
{
    size_t size = kn_variable_size(memory);
    kn_variable variable = {.memory = memory, .size = size, .offset = recording->snapshot_bytes};
    kn_status status = APPEND(recording, variables, num_variables, &variable);
    if (status == KN_OK)
        recording->snapshot_bytes += (size + 15) / 16 * 16;
    else
        kn_variable_drop(memory);
    return status;
}

void *kn_capture_variable(kn_stream *stream, size_t bytes)
{
    kn_graph_capture *capture = whole(kn_stream_require_capture(stream));
    void *memory = capture ? kn_variable_new(bytes) : NULL;
    return memory && add_variable(capture->recording, memory) == KN_OK ? memory : NULL;
}

kn_status kn_capture_on_replay(kn_stream *stream, kn_status (*prepare)(void *user), void *user,
                               void (*drop)(void *user))
{
    kn_graph_capture *capture = whole(kn_stream_require_capture(stream));
    kn_replay_hook hook = {prepare, user, drop};
    kn_status status = capture ? APPEND(capture->recording, hooks, num_hooks, &hook) : KN_ERR_STATE;
    if (status != KN_OK && drop)
        drop(user);
    return status;
}

static int find_variable(const kn_recording *recording, const void *memory)
{
    int i = recording->num_variables - 1;
    while (i >= 0 && recording->variables[i].memory != memory)
        i--;
    return i;
}

/* A variable may be another recording's: a backward pass that draws the mask of a forward pass recorded before it. */
static kn_status note_variable(kn_recording *recording, kn_command *command, size_t place, const kn_arg *arg)
{
    int variable = find_variable(recording, arg->variable);
    if (variable < 0) {
        kn_variable_keep(arg->variable);
        KN_TRY(add_variable(recording, arg->variable));
        variable = recording->num_variables - 1;
    }
    size_t inside = (size_t)((const char *)arg->pointer - (const char *)arg->variable);
    kn_variable_argument argument = {
        .place = place, .offset = recording->variables[variable].offset + inside, .size = arg->size};
    KN_TRY(APPEND(recording, arguments, num_arguments, &argument));
    command->num_variables++;
    return KN_OK;
}

/* --- commands --------------------------------------------------------------------------------- */

/* From an argument's place to that of the next. */
static size_t room_of(const kn_arg *arg, bool is_gathered)
{
    const bool is_buffer = arg->kind == KN_ARG_BUFFER, is_fault = arg->kind == KN_ARG_FAULT;
    if (!is_gathered)
        return is_buffer || is_fault ? 2 : 1;
    return is_buffer  ? kn_value_room(sizeof(void *)) + kn_value_room(sizeof(cl_long))
           : is_fault ? kn_value_room(sizeof(void *)) + kn_value_room(sizeof(cl_int))
                      : kn_value_room(arg->size);
}

static kn_status note_arguments(const kn_graph_capture *capture, kn_command *command, const kn_launch_params *params)
{
    kn_recording *recording = capture->recording;
    size_t place = 0;
    command->fault_place = -1;
    command->first_variable = recording->num_arguments;
    for (int i = 0; i < params->num_args; i++) {
        const kn_arg *arg = &params->args[i];
        if (arg->kind == KN_ARG_BUFFER)
            KN_TRY(note_buffer(capture, arg->buffer));
        if (arg->variable)
            KN_TRY(note_variable(recording, command, place, arg));
        if (arg->kind == KN_ARG_FAULT)
            command->fault_place = (int)place;
        place += room_of(arg, command->calling.is_gathered);
    }
    recording->has_faults |= command->fault_place >= 0;
    return KN_OK;
}

/* Each command has its own kernel object, which keeps its arguments. */
static kn_status new_kernel(kn_command *command, const kn_device *device, const kn_kernel *kernel)
{
    cl_program program;
    cl_int error = clGetKernelInfo(kernel->handle, CL_KERNEL_PROGRAM, sizeof program, &program, NULL);
    if (error == CL_SUCCESS)
        command->kernel = clCreateKernel(program, kernel->name, &error);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, device, "recording kernel `%s`", kernel->name);
}

static kn_status record_kernel(kn_graph_capture *capture, kn_stream *stream, kn_kernel *kernel, kn_command *command,
                               const kn_launch_params *params)
{
    command->operation = kn_strdup(params->operation ? params->operation : params->kernel);
    command->kernel_name = kn_strdup(params->kernel);
    if (!command->operation || !command->kernel_name)
        return KN_ERR_MEMORY;
    KN_TRY(new_kernel(command, stream->device, kernel));
    if (command->calling.is_gathered && !(command->values = kn_calloc(1, sizeof *command->values)))
        return KN_ERR_MEMORY;
    KN_TRY(kn_kernel_set_arguments(command->kernel, NULL, command->values, stream, params));
    KN_TRY(note_arguments(capture, command, params));
    if (command->calling.entry)
        capture->recording->entry = command->calling.entry;
    return APPEND(capture->recording, commands, num_commands, command);
}

/* Of a kernel that has not been launched, too: replays run it. Launches read it without the lock. */
static kn_calling find_calling(kn_stream *stream, kn_kernel *kernel)
{
    kn_lock(&kernel->lock);
    if (!kernel->launched)
        kn_entry_find(kernel, stream->device->service);
    const kn_calling calling = kernel->calling;
    kn_unlock(&kernel->lock);
    return calling;
}

static kn_status take_kernel(kn_capture *capture, kn_stream *stream, kn_kernel *kernel, const kn_launch_params *params,
                             const size_t global[3], const size_t local[3])
{
    kn_command command = {.kind = KN_COMMAND_KERNEL, .dims = params->dims, .calling = find_calling(stream, kernel)};
    memcpy(command.global, global, sizeof command.global);
    memcpy(command.local, local, sizeof command.local);
    kn_status status = record_kernel(whole(capture), stream, kernel, &command, params);
    if (status != KN_OK)
        kn_command_free(&command);
    return kn_capture_note(capture, status);
}

/* kn_command_free releases both. */
static kn_status retain_memory(const kn_stream *stream, const kn_transfer *transfer)
{
    cl_int error = transfer->from ? clRetainMemObject(transfer->from) : CL_SUCCESS;
    if (error == CL_SUCCESS && (error = clRetainMemObject(transfer->to)) != CL_SUCCESS && transfer->from)
        clReleaseMemObject(transfer->from);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "recording a transfer");
}

static kn_status take_transfer(kn_capture *capture, kn_stream *stream, kn_command_kind kind,
                               const kn_transfer *transfer, const kn_buffer *from, const kn_buffer *to)
{
    kn_command command = {.kind = kind, .fault_place = -1, .transfer = *transfer};
    kn_status status = from ? note_buffer(whole(capture), from) : KN_OK;
    if (status == KN_OK)
        status = note_buffer(whole(capture), to);
    if (status == KN_OK)
        status = retain_memory(stream, transfer);
    if (status == KN_OK && (status = APPEND(whole(capture)->recording, commands, num_commands, &command)) != KN_OK)
        kn_command_free(&command);
    return kn_capture_note(capture, status);
}

static kn_status take_gemm(kn_capture *capture, const kn_gemm_call *call)
{
    kn_command command = {.kind = KN_COMMAND_KERNEL, .is_gemm = true, .fault_place = -1, .gemm = *call};
    const kn_buffer *buffers[] = {call->params.a.buffer, call->params.b.buffer, call->params.c.buffer};
    kn_status status = KN_OK;
    for (int i = 0; i < 3 && status == KN_OK; i++)
        status = note_buffer(whole(capture), buffers[i]);
    if (status == KN_OK)
        status = APPEND(whole(capture)->recording, commands, num_commands, &command);
    return kn_capture_note(capture, status);
}

kn_graph_capture *kn_graph_capture_new(kn_device *device, kn_mem_pool *pool)
{
    static const kn_recorder recorder = {.kernel = take_kernel, .transfer = take_transfer, .gemm = take_gemm};
    kn_graph_capture *capture = kn_calloc(1, sizeof *capture);
    kn_recording *recording = capture ? kn_calloc(1, sizeof *recording) : NULL;
    if (!recording) {
        kn_free(capture);
        return NULL;
    }
    recording->device = device;
    capture->base = (kn_capture){.recorder = &recorder, .blind = kn_error_is_sticky()};
    capture->recording = recording;
    capture->pool = pool;
    return capture;
}
