/* rt/compile/cold.c - see rt/compile/cold.h. */
#include "rt/compile/cold.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system.h"
#include "rt/command/launch_now.h"
#include "rt/compile/compile.h"
#include "rt/compile/helper.h"
#include "rt/compile/request.h"
#include "rt/device/driver_cache.h"
#include "rt/device/lost.h"
#include "rt/device/ranks_beside.h"
#include "rt/memory/place.h"
#include "rt/program/build_progress.h"
#include "rt/program/user_source.h"
#include "rt/stream/capturing.h"
#include "rt/stream/open.h"
#include "rt/stream/queue.h"
#include "rt/stream/submit.h"

/* Processes that compile; each takes 250 MB. */
#define MOST_PROCESSES 8
#define MEMORY_PER_PROCESS ((uint64_t)1 << 30)

/* After so many launches in a row of kernels that were ready, the device is not cold any more. */
#define MOST_HOT 1000

static kn_compiles *compiles_of(const kn_device *device) { return (kn_compiles *)device->cold; }

/* --- a command for later ------------------------------------------------------------------------------------------ */

typedef struct later {
    kn_compiles *compiles;
    kn_compile_job *job;                     /* NULL: the launch compiles its kernel */
    const char *source, *kernel, *operation; /* which live for ever, as those of launches do */
    char *request;                           /* of a launch; NULL: it is a transfer */
    size_t size;
    kn_command_kind kind;
    kn_transfer transfer;
    int num_objects;
    cl_mem objects[]; /* retained: what the host frees, the driver keeps */
} later;

static void discard(void *subject)
{
    later *l = subject;
    for (int i = 0; i < l->num_objects; i++)
        clReleaseMemObject(l->objects[i]);
    kn_free(l->request);
    kn_free(l);
}

static later *new_later(const kn_stream *stream, int num_objects)
{
    later *l = kn_calloc(1, sizeof *l + (size_t)num_objects * sizeof *l->objects);
    if (l)
        l->compiles = compiles_of(stream->device);
    return l;
}

static void retain(later *l, cl_mem memory)
{
    if (memory && clRetainMemObject(memory) == CL_SUCCESS)
        l->objects[l->num_objects++] = memory;
}

static later *new_launch(kn_stream *stream, const kn_launch_params *params, const size_t global[3],
                         const size_t local[3])
{
    kn_text bytes = {0};
    later *l = new_later(stream, params->num_args);
    if (!l || kn_request_write(&bytes, params, global, local) != KN_OK) {
        kn_text_free(&bytes);
        kn_free(l);
        return NULL;
    }
    l->source = params->source;
    l->kernel = params->kernel;
    l->operation = params->operation;
    l->size = bytes.length;
    l->request = kn_text_finish(&bytes);
    for (int i = 0; i < params->num_args; i++) {
        if (params->args[i].kind != KN_ARG_BUFFER)
            continue;
        kn_buffer_mark_use(params->args[i].buffer, stream);
        retain(l, kn_buffer_memory(params->args[i].buffer));
    }
    return l;
}

/* --- by the stream's thread --------------------------------------------------------------------------------------- */

/* What fails here is compiled again by its own launch, which reports it. */
static void compile_meanwhile(kn_stream *stream, const kn_compile_job *job)
{
    KN_PRESERVE_ERROR;
    kn_request request;
    size_t size;
    const char *bytes = kn_job_request(job, &size);
    if (kn_request_read(&request, bytes, size) != KN_OK)
        return;
    kn_compile_launch(stream, &request.params, request.global, request.local);
    kn_free(request.args);
}

/* Returns once the launch can be made; is the job the caller's to finish? */
static bool prepare(kn_stream *stream, const later *l)
{
    kn_compile_job *other;
    kn_claim claim = KN_CLAIM_NONE;
    while (l->job && (claim = kn_jobs_claim(l->compiles, l->job, &other)) == KN_CLAIM_OTHER) {
        compile_meanwhile(stream, other);
        kn_jobs_finish(l->compiles, other);
    }
    return claim == KN_CLAIM_IT;
}

static kn_status run_launch(kn_stream *stream, const later *l)
{
    kn_request request;
    const bool is_mine = prepare(stream, l);
    kn_status status = kn_request_read(&request, l->request, l->size);
    if (status == KN_OK) {
        request.params.source = l->source;
        request.params.kernel = l->kernel;
        request.params.operation = l->operation;
        status = kn_launch_now(stream, &request.params, request.global, request.local);
        kn_free(request.args);
    }
    if (is_mine)
        kn_jobs_finish(l->compiles, l->job);
    return status;
}

static kn_status run(kn_stream *stream, void *subject, const unsigned char *snapshot)
{
    later *l = subject;
    (void)snapshot;
    const kn_status status = l->request ? run_launch(stream, l) : kn_transfer_now(stream, l->kind, &l->transfer);
    discard(l);
    return status;
}

/* --- by the thread that launches ---------------------------------------------------------------------------------- */

static bool has_all_buffers(const kn_launch_params *params)
{
    for (int i = 0; i < params->num_args; i++)
        if (params->args[i].kind == KN_ARG_BUFFER && !params->args[i].buffer)
            return false;
    return true;
}

/* Not what is timed, or whose errors are looked for. */
static bool may_wait(kn_stream *stream)
{
    return !kn_stream_has_capture(stream) && !kn_launches_block() && !kn_timing_is_wanted();
}

/* Not user code, whose errors are reported by the call that launches it. */
static bool takes(kn_stream *stream, const kn_launch_params *params)
{
    kn_compiles *compiles = compiles_of(stream->device);
    if (!may_wait(stream) || !has_all_buffers(params) || kn_user_source_has_user_code(params->source))
        return false;
    if (kn_submitter_is_busy(stream) ||
        !kn_kernel_has_run(stream->device, params->source, params->options, params->kernel)) {
        atomic_store_explicit(&compiles->hot, 0, memory_order_relaxed);
        return true;
    }
    if (atomic_fetch_add_explicit(&compiles->hot, 1, memory_order_relaxed) >= MOST_HOT)
        atomic_store(&compiles->cold.is_cold, false);
    return false;
}

/* What precedes it is still to be enqueued. */
static bool takes_transfer(kn_stream *stream) { return may_wait(stream) && kn_submitter_is_busy(stream); }

/* For the progress of who waits. */
static void notice(const char *kernel, double began)
{
    if (began == 0)
        kn_build_begin(kernel);
    else
        kn_build_end((kn_build_wait){kernel, began}, true);
}

static kn_status submit(kn_stream *stream, later *l, bool is_new)
{
    const kn_submission work = {.subject = l,
                                .run = run,
                                .discard = discard,
                                .most_pending = KN_MOST_JOBS,
                                .notice = is_new ? notice : NULL,
                                .label = l->kernel};
    const kn_status status = kn_submit(stream, &work);
    kn_drain_at_exit();
    if (status != KN_OK)
        discard(l);
    return status;
}

static kn_status launch(kn_stream *stream, const kn_launch_params *params, const size_t global[3],
                        const size_t local[3])
{
    kn_compiles *compiles = compiles_of(stream->device);
    later *l = new_launch(stream, params, global, local);
    bool is_new;
    if (!l)
        return KN_ERR_MEMORY;
    const kn_job_key key = {kn_request_key(stream->device, params, global, local), kn_request_program(params)};
    l->job = kn_jobs_ask(compiles, key, l->request, l->size, &is_new);
    kn_helper_offer(stream->device, compiles);
    return submit(stream, l, is_new);
}

static kn_status transfer(kn_stream *stream, kn_command_kind kind, const kn_transfer *t)
{
    later *l = new_later(stream, 2);
    if (!l)
        return KN_ERR_MEMORY;
    l->kind = kind;
    l->transfer = *t;
    retain(l, t->from);
    retain(l, t->to);
    return submit(stream, l, false);
}

/* --- a device ----------------------------------------------------------------------------------------------------- */

/* Where the driver's cache is empty, the first launch of all is put off, too. */
static bool is_cold_from_the_start(const kn_device *device)
{
    return device->quirks.caches_programs && kn_driver_cache_is_empty();
}

/* How long a program takes to build that no cache had. */
#define COLD_SECONDS 0.05

static void end_build(kn_device *device, double seconds)
{
    kn_compiles *compiles = compiles_of(device);
    if (seconds < COLD_SECONDS)
        return;
    atomic_store(&compiles->hot, 0);
    atomic_store(&compiles->cold.is_cold, compiles->most_helpers > 0);
}

/* On a GPU, whose memory they would take, none but this one. */
static int usual_processes(const kn_device *device)
{
    const int ranks = kn_ranks_beside(), processors = kn_sys_processors() / ranks;
    const uint64_t fitting = device->limits.global_memory / MEMORY_PER_PROCESS / (uint64_t)ranks;
    const int most = processors < MOST_PROCESSES ? processors : MOST_PROCESSES;
    return !device->limits.is_cpu ? 1 : fitting < (uint64_t)most ? (int)fitting : most;
}

/* KOINE_COMPILE_JOBS: how many processes compile, this one included. */
static int most_processes(const kn_device *device)
{
    const char *wanted = getenv("KOINE_COMPILE_JOBS");
    char *end;
    if (!wanted || !*wanted)
        return usual_processes(device);
    const long number = strtol(wanted, &end, 10);
    if (!*end && number >= 1 && number <= KN_MOST_COMPILE_JOBS)
        return (int)number;
    kn_log_message(KN_LOG_WARNING, "KOINE_COMPILE_JOBS=%s is ignored: it is a number of processes from 1 to %d", wanted,
                   KN_MOST_COMPILE_JOBS);
    return usual_processes(device);
}

kn_cold *kn_cold_new(const kn_device *device)
{
    KN_PRESERVE_ERROR;
    const int processes = kn_programs_are_kept(device) ? most_processes(device) : 1;
    kn_compiles *compiles = processes > 1 ? kn_calloc(1, sizeof *compiles) : NULL;
    if (!compiles)
        return NULL;
    kn_jobs_init(compiles);
    compiles->cold = (kn_cold){.is_cold = is_cold_from_the_start(device),
                               .end_build = end_build,
                               .takes = takes,
                               .launch = launch,
                               .takes_transfer = takes_transfer,
                               .transfer = transfer};
    compiles->most_helpers = processes - 1;
    return &compiles->cold;
}

void kn_cold_free(kn_cold *cold) { kn_free(cold); }
