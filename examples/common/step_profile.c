/* common/step_profile.c - profiling steps 3 to 5 of a training run. */
#include "common/step_profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The first step compiles kernels; the second is a warm-up. */
#define WAIT 1
#define WARMUP 1
#define ACTIVE 3

static kn_status write_profile(step_profile *profile)
{
    char path[4096];
    char *table = kn_profiler_table(.width = profile->width);
    if (table == NULL)
        return kn_error_status();
    printf("\n%d training steps:\n%s", ACTIVE, table);
    fflush(stdout);
    kn_free(table);
    snprintf(path, sizeof path, "%s/trace.json", profile->directory);
    kn_status status = kn_profiler_export_chrome_trace(path);
    if (status == KN_OK)
        printf("trace for https://ui.perfetto.dev: %s\n\n", path);
    return status;
}

static void on_trace_ready(void *user)
{
    step_profile *profile = user;
    profile->is_written = true;
    profile->status = write_profile(profile);
}

static kn_status on_step_end(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    const step_profile *profile = user;
    (void)trainer, (void)epoch, (void)step, (void)loss;
    kn_status status = profile->is_written ? KN_OK : kn_profiler_step();
    return status == KN_OK ? profile->status : status;
}

kn_status step_profile_begin(step_profile *profile, kn_trainer *trainer)
{
    if (profile->directory == NULL)
        return KN_OK;
    if (mkdir(profile->directory, 0777) != 0 && errno != EEXIST)
        return kn_error_set(KN_ERR_IO, "cannot create the folder %s: %s", profile->directory, strerror(errno));
    kn_status status = kn_trainer_add_callback(trainer, &(kn_callback){.on_step_end = on_step_end, .user = profile});
    if (status != KN_OK)
        return status;
    return kn_profiler_start(.wait = WAIT, .warmup = WARMUP, .active = ACTIVE, .repeat = 1, .record_shapes = true,
                             .with_flops = true, .profile_memory = true, .on_trace_ready = on_trace_ready,
                             .user = profile);
}

kn_status step_profile_end(step_profile *profile)
{
    if (profile->directory == NULL || !kn_profiler_is_running())
        return KN_OK;
    kn_status status = kn_profiler_stop();
    if (status == KN_OK && !profile->is_written)
        printf("no profile: there were fewer than %d training steps\n", WAIT + WARMUP + 1);
    return status == KN_OK ? profile->status : status;
}
