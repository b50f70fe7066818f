/* rt/compile/compile.c - see rt/compile/compile.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "rt/compile/compile.h"

#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "rt/command/launch_now.h"
#include "rt/compile/request.h"
#include "rt/device/lost.h"
#include "rt/stream/queue.h"

#define AHEAD 4096                 /* bytes behind a buffer: kernels read ahead */
#define MARGIN ((size_t)64 * 1024) /* bytes on both sides, for kernels that zeros lead astray after all */
#define PAGE ((size_t)4096)

bool kn_compile_is_strict;

typedef struct stand_in {
    cl_mem memory;
    char *pages;
    size_t bytes; /* of the pages */
} stand_in;

/* Fresh pages are zeros, and take memory only when they are written. */
static kn_status make_stand_in(stand_in *made, kn_device *device, size_t bytes)
{
    cl_int error = CL_OUT_OF_HOST_MEMORY;
    const size_t usable = (bytes + AHEAD + PAGE - 1) / PAGE * PAGE;
    made->bytes = MARGIN + usable + MARGIN;
    void *pages = mmap(NULL, made->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages != MAP_FAILED) {
        made->pages = pages;
        made->memory = clCreateBuffer(device->context, CL_MEM_USE_HOST_PTR, usable, made->pages + MARGIN, &error);
    }
    if (made->memory && kn_compile_is_strict) {
        mprotect(made->pages, MARGIN, PROT_NONE);
        mprotect(made->pages + MARGIN + usable, MARGIN, PROT_NONE);
    }
    return made->memory ? KN_OK : kn_cl_fail(error, device, "making a buffer of %zu bytes to compile a kernel", bytes);
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

/* By zeros, what precedes an offset too, since kernels may read backwards from there. */
static kn_status replace_memory(kn_arg *args, stand_in *made, kn_device *device, int count)
{
    for (int i = 0; i < count; i++) {
        const kn_arg arg = kn_arg_as_memory(&args[i]);
        if (arg.kind != KN_ARG_MEMORY && arg.kind != KN_ARG_FAULT)
            continue;
        KN_TRY(make_stand_in(&made[i], device, arg.before + arg.size));
        args[i] = arg;
        args[i].offset = (int64_t)arg.before;
        args[i].pointer = made[i].memory;
        args[i].start = made[i].pages + MARGIN;
    }
    return KN_OK;
}

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
        status = replace_memory(args, made, stream->device, count);
        if (status == KN_OK)
            status = kn_launch_now(stream, &rehearsed, kn_is_large_grid(global, local) ? global : local, local);
        if (status == KN_OK && kn_stream_finish(stream) != CL_SUCCESS)
            status = kn_fail(KN_ERR_DEVICE, "kernel `%s` of %s fails on %s", params->kernel, params->source,
                             stream->device->label);
    }
    free_stand_ins(made, made ? count : 0);
    kn_free(args);
    return status;
}

kn_status kn_compile_launch(kn_stream *stream, const kn_launch_params *params, const size_t global[3],
                            const size_t local[3])
{
    kn_kernel *kernel;
    return stream->device->quirks.compiles_at_first_launch ? run_on_zeros(stream, params, global, local)
                                                           : kn_launch_kernel(&kernel, stream->device, params, local);
}
