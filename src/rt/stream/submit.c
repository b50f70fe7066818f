/* rt/stream/submit.c - recorded commands onto a queue, and the thread that does it. */
#include "rt/stream/submit.h"

#include <string.h>

#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/lost.h"

/* Replays that may be handed over and not enqueued yet; more make the caller wait. The queue itself is bounded by
 * kn_stream_count_launch. */
#define MAX_JOBS 4

/* A recording shorter than this is enqueued by the caller: waking a thread costs as much. */
#define FEW_COMMANDS 6

typedef struct job {
    kn_recording *recording;
    unsigned char *snapshot; /* the variables' values when the replay was asked for */
    size_t capacity;
} job;

struct kn_submitter {
    kn_stream *stream;
    kn_mutex lock;
    pthread_cond_t arrived, done;
    job jobs[MAX_JOBS]; /* a ring */
    unsigned taken, given;
    atomic_int pending; /* given, not enqueued */
    kn_status failure;  /* of replays, not reported yet */
    char message[512];
};

/* --- one command ------------------------------------------------------------------------------ */

static cl_int set_variables(kn_stream *stream, const kn_recording *recording, const kn_command *command,
                            const unsigned char *snapshot)
{
    cl_int error = CL_SUCCESS;
    for (int i = 0; i < command->num_variables && error == CL_SUCCESS; i++) {
        const kn_variable_argument *argument = &recording->arguments[command->first_variable + i];
        error = clSetKernelArg(command->kernel, argument->index, argument->size, snapshot + argument->offset);
    }
    if (command->fault_argument >= 0 && recording->bound != stream && error == CL_SUCCESS)
        error = clSetKernelArg(command->kernel, (cl_uint)command->fault_argument, sizeof stream->fault, &stream->fault);
    return error;
}

static cl_int run_transfer(kn_stream *stream, const kn_command *command, cl_event *event)
{
    const kn_transfer *t = &command->transfer;
    if (command->kind == KN_COMMAND_FILL)
        return KN_CL(KN_CL_COPY, clEnqueueFillBuffer(stream->queue, t->to, t->pattern, t->pattern_bytes, t->to_offset,
                                                     t->bytes, 0, NULL, event));
    return KN_CL(KN_CL_COPY, clEnqueueCopyBuffer(stream->queue, t->from, t->to, t->from_offset, t->to_offset, t->bytes,
                                                 0, NULL, event));
}

static kn_status run_command(kn_stream *stream, const kn_recording *recording, const kn_command *command,
                             const unsigned char *snapshot)
{
    KN_TRY(kn_device_check_lost(stream->device));
    if (command->is_gemm)
        return kn_clblast_enqueue(stream, &command->gemm);
    cl_event event;
    cl_int error = set_variables(stream, recording, command, snapshot);
    if (error == CL_SUCCESS && command->kind == KN_COMMAND_KERNEL)
        error = KN_CL(KN_CL_LAUNCH, clEnqueueNDRangeKernel(stream->queue, command->kernel, (cl_uint)command->dims, NULL,
                                                           command->global, command->local[0] ? command->local : NULL,
                                                           0, NULL, kn_watch_event(&event)));
    else if (error == CL_SUCCESS)
        error = run_transfer(stream, command, kn_watch_event(&event));
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, stream->device, "replaying %s", kn_command_operation(command));
    kn_watch(stream, event, .kind = command->kind, .operation = kn_command_operation(command),
             .kernel = command->kernel_name, .dims = command->dims,
             .global = {command->global[0], command->global[1], command->global[2]},
             .local = {command->local[0], command->local[1], command->local[2]}, .bytes = command->transfer.bytes);
    return kn_stream_count_launch(stream);
}

static kn_status run(kn_stream *stream, kn_recording *recording, const unsigned char *snapshot)
{
    kn_status status = KN_OK;
    for (int i = 0; i < recording->num_commands && status == KN_OK; i++)
        status = run_command(stream, recording, &recording->commands[i], snapshot);
    if (recording->has_faults) /* after the commands, as rt/command/launch.c does */
        atomic_store(&stream->fault_armed, true);
    recording->bound = status == KN_OK ? stream : NULL;
    cl_int error = kn_device_is_lost(stream->device) ? CL_SUCCESS : clFlush(stream->queue);
    if (status == KN_OK && error != CL_SUCCESS)
        status = kn_cl_fail(error, stream->device, "submitting a replay");
    return status;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void *submit(void *argument)
{
    kn_submitter *submitter = argument;
    kn_lock(&submitter->lock);
    for (;;) {
        while (submitter->taken == submitter->given)
            pthread_cond_wait(&submitter->arrived, &submitter->lock);
        job *next = &submitter->jobs[submitter->taken % MAX_JOBS];
        bool failed = submitter->failure != KN_OK;
        kn_unlock(&submitter->lock);
        kn_status status = failed ? KN_OK : run(submitter->stream, next->recording, next->snapshot);
        kn_lock(&submitter->lock);
        if (status != KN_OK) {
            submitter->failure = status;
            strncpy(submitter->message, kn_error_message(), sizeof submitter->message - 1);
            kn_error_clear();
        }
        submitter->taken++;
        atomic_fetch_sub_explicit(&submitter->pending, 1, memory_order_release);
        pthread_cond_broadcast(&submitter->done);
    }
    return NULL;
}

static kn_submitter *start(kn_stream *stream)
{
    kn_submitter *submitter = kn_calloc(1, sizeof *submitter);
    if (!submitter)
        return NULL;
    submitter->stream = stream;
    kn_mutex_init(&submitter->lock);
    pthread_cond_init(&submitter->arrived, NULL);
    pthread_cond_init(&submitter->done, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, submit, submitter) == 0) {
        pthread_detach(thread); /* it lives as long as the stream's struct: until the process ends */
        return submitter;
    }
    pthread_cond_destroy(&submitter->arrived);
    pthread_cond_destroy(&submitter->done);
    kn_mutex_destroy(&submitter->lock);
    kn_free(submitter);
    return kn_fail_null(KN_ERR_MEMORY, "no thread could be started to replay graphs on %s", stream->device->label);
}

static kn_submitter *submitter_of(kn_stream *stream)
{
    kn_lock(&stream->lock);
    kn_submitter *submitter = atomic_load(&stream->submitter);
    if (!submitter) {
        submitter = start(stream);
        atomic_store_explicit(&stream->submitter, submitter, memory_order_release);
    }
    kn_unlock(&stream->lock);
    return submitter;
}

/* --- handing over ----------------------------------------------------------------------------- */

void kn_submitter_wait(kn_submitter *submitter)
{
    if (atomic_load_explicit(&submitter->pending, memory_order_acquire) == 0 || kn_is_forked())
        return;
    kn_lock(&submitter->lock);
    const unsigned last = submitter->given; /* another thread may go on handing over */
    while ((int)(last - submitter->taken) > 0)
        pthread_cond_wait(&submitter->done, &submitter->lock);
    kn_unlock(&submitter->lock);
}

kn_status kn_submitter_report(kn_stream *stream)
{
    kn_submitter *submitter = atomic_load_explicit(&stream->submitter, memory_order_acquire);
    if (!submitter)
        return KN_OK;
    kn_lock(&submitter->lock);
    kn_status failure = submitter->failure;
    if (failure != KN_OK)
        kn_fail(failure, "%s", submitter->message);
    submitter->failure = KN_OK;
    kn_unlock(&submitter->lock);
    return failure;
}

/* A step more: the generator moves on, optimizers count. So nothing of the replay's may fail for want of memory after
 * it. */
static kn_status take_snapshot(unsigned char *snapshot, const kn_recording *recording)
{
    for (int i = 0; i < recording->num_hooks; i++)
        KN_TRY(recording->hooks[i].prepare(recording->hooks[i].user));
    for (int i = 0; i < recording->num_variables; i++)
        memcpy(snapshot + recording->variables[i].offset, recording->variables[i].memory, recording->variables[i].size);
    return KN_OK;
}

/* Runs from the variables' own memory would need no copy, but one layout serves both ways. */
static kn_status submit_here(kn_stream *stream, kn_recording *recording)
{
    unsigned char few[512], *snapshot = few;
    if (recording->snapshot_bytes > sizeof few && !(snapshot = kn_malloc(recording->snapshot_bytes)))
        return KN_ERR_MEMORY;
    kn_submitter_drain(stream);
    kn_status status = take_snapshot(snapshot, recording);
    if (status == KN_OK)
        status = run(stream, recording, snapshot);
    if (snapshot != few)
        kn_free(snapshot);
    return status;
}

static kn_status hand_over(kn_submitter *submitter, kn_recording *recording)
{
    kn_status status = KN_OK;
    kn_lock(&submitter->lock);
    while (submitter->given - submitter->taken == MAX_JOBS)
        pthread_cond_wait(&submitter->done, &submitter->lock);
    job *free_job = &submitter->jobs[submitter->given % MAX_JOBS];
    if (free_job->capacity < recording->snapshot_bytes) {
        unsigned char *larger = kn_realloc(free_job->snapshot, recording->snapshot_bytes);
        if (larger) {
            free_job->snapshot = larger;
            free_job->capacity = recording->snapshot_bytes;
        } else {
            status = KN_ERR_MEMORY;
        }
    }
    if (status == KN_OK)
        status = take_snapshot(free_job->snapshot, recording);
    if (status == KN_OK) {
        free_job->recording = recording;
        submitter->given++;
        atomic_fetch_add_explicit(&submitter->pending, 1, memory_order_release);
        pthread_cond_signal(&submitter->arrived);
    }
    kn_unlock(&submitter->lock);
    return status;
}

kn_status kn_submit(kn_stream *stream, kn_recording *recording, bool here)
{
    KN_TRY(kn_device_check_lost(stream->device));
    kn_stream_note_busy(stream);
    if (here || recording->num_commands < FEW_COMMANDS)
        return submit_here(stream, recording);
    kn_submitter *submitter = submitter_of(stream);
    if (!submitter)
        return kn_error_status();
    KN_TRY(kn_submitter_report(stream));
    return hand_over(submitter, recording);
}
