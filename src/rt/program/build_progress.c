/* rt/program/build_progress.c - see rt/program/build_progress.h. */
#include "rt/program/build_progress.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "rt/program/program.h"

#define LONG_LAUNCH 0.01 /* seconds: the launch of a kernel that is ready takes a thousandth of that */

static _Thread_local kn_build_observer observer;

kn_build_observer kn_build_observe(kn_build_observer wanted)
{
    kn_build_observer before = observer;
    observer = wanted;
    return before;
}

static void report(const char *kernel, bool is_over, double seconds)
{
    if (observer.notice)
        observer.notice(&(kn_build_notice){kernel, observer.done, is_over, seconds}, observer.user);
}

kn_build_wait kn_build_begin(const char *kernel)
{
    report(kernel, false, 0);
    return (kn_build_wait){.kernel = kernel, .started = kn_clock_seconds()};
}

double kn_build_end(kn_build_wait wait, bool is_ready)
{
    double seconds = kn_clock_seconds() - wait.started;
    observer.done += is_ready;
    report(wait.kernel, true, seconds);
    return seconds;
}

/* --- the log ------------------------------------------------------------------------------------------------------ */

/* "softmax;softmax_backward"; the caller frees it. NULL if the driver does not report them. */
static char *kernel_names(cl_program program)
{
    size_t size = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &size) != CL_SUCCESS || size == 0)
        return NULL;
    char *names = kn_calloc(size + 1, 1);
    if (names && clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, size, names, NULL) == CL_SUCCESS)
        return names;
    kn_free(names);
    return NULL;
}

void kn_build_log_program(const kn_device *device, const kn_program *program, kn_build_origin origin, double seconds)
{
    if (!kn_log_enabled(KN_LOG_DEBUG))
        return;
    const char *from = origin == KN_BUILT_FROM_CACHE    ? "from the disk cache"
                       : device->quirks.caches_programs ? "compiled, or from the driver's own cache"
                                                        : "compiled";
    char *names = kernel_names(program->handle);
    kn_log_message(KN_LOG_DEBUG, "%s: %s built in %.3f s, %s; options: %s; kernels: %s", kn_device_string(device),
                   program->source, seconds, from, program->options, names ? names : "unknown");
    kn_free(names);
}

void kn_build_log_launch(const kn_device *device, const char *source, const char *kernel, double seconds)
{
    if (seconds >= LONG_LAUNCH)
        kn_log_message(KN_LOG_DEBUG, "%s: the first launch of %s (%s) took %.3f s%s", kn_device_string(device), kernel,
                       source, seconds, device->quirks.compiles_at_first_launch ? "; its driver compiles then" : "");
}
