/* rt/command/rehearsal.c - see rt/command/rehearsal.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "rt/command/rehearsal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/memory.h"
#include "common/affinity.h"
#include "rt/command/launch_now.h"
#include "rt/command/linger.h"
#include "rt/device/driver_cache.h"
#include "rt/device/lost.h"
#include "rt/program/program.h"
#include "rt/stream/queue.h"

#define SPARE_BYTES 4096 /* behind a buffer: kernels read ahead */

/* PoCL compiles kernels once more for larger grids (its grid_width_specialization_limit). */
#define SMALL_GRID USHRT_MAX

static bool is_large(const size_t global[3], const size_t local[3])
{
    for (int i = 0; i < 3; i++)
        if (local[i] > 0 && global[i] / local[i] >= SMALL_GRID)
            return true;
    return false;
}

static uint64_t hash_launch(const kn_device *device, const kn_launch_params *params, const size_t global[3],
                            const size_t local[3])
{
    char sizes[100] = "";
    if (device->quirks.compiles_at_first_launch)
        snprintf(sizes, sizeof sizes, "%s %zu %zu %zu %d", params->kernel, local[0], local[1], local[2],
                 is_large(global, local));
    const char *const parts[] = {params->options ? params->options : "", sizes};
    kn_hash hash = kn_hash_text(params->source);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hash = kn_hash_combine(hash, kn_hash_text(parts[i]));
    return hash.low;
}

/* --- memory of zeros ---------------------------------------------------------------------------------------------- */

typedef struct stand_in {
    cl_mem memory;
    void *pages;
    size_t bytes;
} stand_in;

/* Fresh pages are zeros, and take memory only when they are written. */
static kn_status make_stand_in(stand_in *made, kn_device *device, size_t bytes)
{
    cl_int error = CL_OUT_OF_HOST_MEMORY;
    made->bytes = bytes + SPARE_BYTES;
    void *pages = mmap(NULL, made->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages != MAP_FAILED) {
        made->pages = pages;
        made->memory = clCreateBuffer(device->context, CL_MEM_USE_HOST_PTR, made->bytes, pages, &error);
    }
    return made->memory ? KN_OK : kn_cl_fail(error, device, "making a buffer of %zu bytes for a rehearsal", bytes);
}

static void free_stand_ins(stand_in *made, int count)
{
    for (int i = 0; i < count; i++) {
        if (made[i].memory)
            clReleaseMemObject(made[i].memory);
        if (made[i].pages)
            munmap(made[i].pages, made[i].bytes);
    }
    kn_free(made);
}

static kn_status replace_buffers(kn_arg *args, stand_in *made, kn_device *device, int count)
{
    for (int i = 0; i < count; i++) {
        if (args[i].kind != KN_ARG_BUFFER || !args[i].buffer)
            continue;
        KN_TRY(make_stand_in(&made[i], device, kn_buffer_size(args[i].buffer) - (size_t)args[i].offset));
        args[i] = (kn_arg){.kind = KN_ARG_MEMORY, .pointer = made[i].memory};
    }
    return KN_OK;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* One work-group; all of them where the size decides what is compiled. */
static kn_status run_on_zeros(kn_stream *stream, const kn_launch_params *params, const size_t global[3],
                              const size_t local[3])
{
    const int count = params->num_args;
    stand_in *made = kn_calloc((size_t)count + 1, sizeof *made);
    kn_arg *args = kn_calloc((size_t)count + 1, sizeof *args);
    kn_status status = made && args ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK) {
        kn_launch_params rehearsed = *params;
        memcpy(args, params->args, (size_t)count * sizeof *args);
        rehearsed.args = args;
        status = replace_buffers(args, made, stream->device, count);
        if (status == KN_OK)
            status = kn_launch_now(stream, &rehearsed, is_large(global, local) ? global : local, local);
        if (status == KN_OK && kn_stream_finish(stream) != CL_SUCCESS)
            status = kn_fail(KN_ERR_DEVICE, "kernel `%s` of %s fails on %s", params->kernel, params->source,
                             stream->device->label);
    }
    free_stand_ins(made, made ? count : 0);
    kn_free(args);
    return status;
}

static kn_status rehearse_launch(const kn_rehearsal *rehearsal, kn_stream *stream, const kn_launch_params *params,
                                 const size_t global[3], const size_t local[3])
{
    kn_kernel *kernel;
    if (!rehearsal->takes(hash_launch(stream->device, params, global, local), rehearsal->user))
        return KN_OK;
    if (stream->device->quirks.compiles_at_first_launch)
        return run_on_zeros(stream, params, global, local);
    return kn_launch_kernel(&kernel, stream->device, params, local);
}

void kn_rehearse(kn_rehearsal *rehearsal)
{
    if (rehearsal)
        rehearsal->launch = rehearse_launch;
    atomic_store(&kn_rehearsal_now, rehearsal);
}

kn_status kn_rehearse_own_kernels(kn_device *device)
{
    static const kn_affinity idle; /* nothing was launched: the kernel returns at once */
    kn_stream *stream = kn_stream_current(device);
    if (!stream)
        return kn_error_status();
    if (!device->limits.has_affinity || device->limits.compute_units < 2)
        return KN_OK;
    return kn_run(stream, .source = KN_LINGER_SOURCE, .kernel = KN_LINGER_KERNEL, .operation = KN_LINGER_KERNEL,
                  .dims = 1, .global = {1}, .local = {1},
                  KN_ARGS(kn_arg_i64((int64_t)(uintptr_t)&idle), kn_arg_i64(0)));
}

/* --- the cache ---------------------------------------------------------------------------------------------------- */

static kn_status check_driver_cache(const kn_device *device)
{
    char *folder = kn_driver_cache_folder();
    kn_status status = KN_OK;
    if (!folder || !kn_driver_cache_is_usable(folder))
        status = kn_fail(KN_ERR_IO,
                         "%s's driver cannot write to '%s', where it keeps compiled kernels; make it writable, or set "
                         "POCL_CACHE_DIR to a folder that is",
                         device->label, folder ? folder : "~/.cache/pocl");
    kn_free(folder);
    return status;
}

kn_status kn_rehearsal_check_cache(kn_device *device)
{
    return device->quirks.caches_programs ? check_driver_cache(device) : kn_program_cache_check();
}
