/* rt/graph/replay.c - running a recording. */
#include "rt/graph/recording.h"

#include <string.h>

#include "rt/command/enqueue.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/direct/direct.h"
#include "rt/stream/queue.h"
#include "rt/stream/submit.h"
#include "rt/trace/watch.h"

/* A recording shorter than this is enqueued by the caller: waking a thread costs as much. */
#define FEW_COMMANDS 6
/* More replays waiting to be enqueued make the caller wait. The queue itself is bounded by kn_stream_count_launch. */
#define MOST_PENDING 4

/* Gathered ones stay in the command, whose replays are enqueued one at a time. */
static cl_int set_argument(const kn_command *command, size_t place, const void *value, size_t size)
{
    if (!command->values)
        return clSetKernelArg(command->kernel, (cl_uint)place, size, value);
    memcpy(command->values->bytes + place, value, size);
    return CL_SUCCESS;
}

static cl_int set_fault(const kn_command *command, const kn_stream *stream)
{
    return command->values ? set_argument(command, (size_t)command->fault_place, &stream->fault_start, sizeof(int *))
                           : set_argument(command, (size_t)command->fault_place, &stream->fault, sizeof(cl_mem));
}

static cl_int set_variables(kn_stream *stream, const kn_recording *recording, const kn_command *command,
                            const unsigned char *snapshot)
{
    cl_int error = CL_SUCCESS;
    for (int i = 0; i < command->num_variables && error == CL_SUCCESS; i++) {
        const kn_variable_argument *argument = &recording->arguments[command->first_variable + i];
        error = set_argument(command, argument->place, snapshot + argument->offset, argument->size);
    }
    if (command->fault_place >= 0 && recording->bound != stream && error == CL_SUCCESS)
        error = set_fault(command, stream);
    return error;
}

static bool run_directly(kn_stream *stream, const kn_recording *recording, const kn_command *command,
                         const unsigned char *snapshot)
{
    if (command->kind != KN_COMMAND_KERNEL)
        return kn_transfer_directly(stream, command->kind, &command->transfer);
    if (!kn_direct_may_run(stream, command->calling.entry))
        return false;
    set_variables(stream, recording, command, snapshot);
    const int64_t began = kn_watch_direct_begin();
    kn_direct_run(stream, command->calling.entry, command->values, command->dims, command->global);
    kn_watch_direct(stream, began, .kind = KN_COMMAND_KERNEL, .operation = kn_command_operation(command),
                    .kernel = command->kernel_name, .dims = command->dims,
                    .global = {command->global[0], command->global[1], command->global[2]},
                    .local = {command->local[0], command->local[1], command->local[2]});
    return true;
}

static kn_status run_command(kn_stream *stream, const kn_recording *recording, const kn_command *command,
                             const unsigned char *snapshot)
{
    KN_TRY(kn_device_check_lost(stream->device));
    if (command->is_gemm)
        return kn_clblast_enqueue(stream, &command->gemm);
    if (run_directly(stream, recording, command, snapshot))
        return KN_OK;
    cl_event event;
    const kn_turn turn = kn_stream_turn(stream);
    cl_int error = set_variables(stream, recording, command, snapshot);
    if (error == CL_SUCCESS && command->kind == KN_COMMAND_KERNEL)
        error = kn_enqueue_kernel(stream, turn, command->kernel, command->values, command->dims, command->global,
                                  command->local, &event);
    else if (error == CL_SUCCESS)
        error = kn_transfer_enqueue(stream, command->kind, &command->transfer, &event);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, stream->device, "replaying %s", kn_command_operation(command));
    kn_watch(stream, event, .kind = command->kind, .operation = kn_command_operation(command),
             .kernel = command->kernel_name, .dims = command->dims,
             .global = {command->global[0], command->global[1], command->global[2]},
             .local = {command->local[0], command->local[1], command->local[2]}, .bytes = command->transfer.bytes);
    if (kn_launches_block() && (error = KN_CL(KN_CL_WAIT, clFinish(turn.queue))) != CL_SUCCESS)
        return kn_cl_fail(error, stream->device, "replaying %s: running kernel `%s`", kn_command_operation(command),
                          command->kernel_name ? command->kernel_name : "");
    return kn_stream_count_launch(stream);
}

static kn_status run(kn_stream *stream, void *subject, const unsigned char *snapshot)
{
    kn_recording *recording = subject;
    memcpy(&kn_profile_correlation, snapshot + recording->snapshot_bytes, sizeof kn_profile_correlation);
    kn_status status = kn_stream_follow_timing(stream);
    for (int i = 0; i < recording->num_commands && status == KN_OK; i++)
        status = run_command(stream, recording, &recording->commands[i], snapshot);
    if (recording->has_faults) /* after the commands, as a launch does */
        atomic_store(&stream->fault_armed, true);
    recording->bound = status == KN_OK ? stream : NULL;
    cl_int error = kn_device_is_lost(stream->device) ? CL_SUCCESS : clFlush(kn_stream_turn(stream).queue);
    if (status == KN_OK && error != CL_SUCCESS)
        status = kn_cl_fail(error, stream->device, "submitting a replay");
    return status;
}

/* The variables, then the caller's number for the profiler. The hooks change state: generators advance, optimizers
 * count a step. So nothing after them may fail for lack of memory. */
static kn_status take_snapshot(void *subject, unsigned char *snapshot)
{
    const kn_recording *recording = subject;
    for (int i = 0; i < recording->num_hooks; i++)
        KN_TRY(recording->hooks[i].prepare(recording->hooks[i].user));
    for (int i = 0; i < recording->num_variables; i++)
        memcpy(snapshot + recording->variables[i].offset, recording->variables[i].memory, recording->variables[i].size);
    memcpy(snapshot + recording->snapshot_bytes, &kn_profile_correlation, sizeof kn_profile_correlation);
    return KN_OK;
}

kn_status kn_recording_replay(kn_stream *stream, kn_recording *recording, bool here)
{
    const kn_submission work = {.subject = recording,
                                .snapshot_bytes = recording->snapshot_bytes + sizeof kn_profile_correlation,
                                .prepare = take_snapshot,
                                .run = run,
                                .most_pending = MOST_PENDING};
    const bool by_caller =
        here || recording->num_commands < FEW_COMMANDS || kn_direct_may_run(stream, recording->entry);
    return by_caller ? kn_submit_here(stream, &work) : kn_submit(stream, &work);
}
