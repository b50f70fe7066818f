/* startup.c - the time to the end of the first training step: a separate process (`koine-bench --first-step`) opens the
 * device, builds the examples' network and makes one step. Cold: no kernel has been compiled; warm: all are in the
 * caches on disk. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

const char *bench_program = "koine-bench";

int bench_first_step(kn_device *device)
{
    const bench_case batch = {.name = "first step", .size = {128}};
    bench_state state = {.device = device};
    kn_status status = bench_cnn_setup(&batch, &state);
    if (status == KN_OK)
        status = bench_training_run(&batch, &state);
    if (status == KN_OK)
        status = kn_synchronize(device);
    bench_training_teardown(&state);
    if (status != KN_OK)
        fprintf(stderr, "koine-bench: first step: %s\n", kn_error_message());
    return status == KN_OK ? 0 : 1;
}

/* state->data: the cache folder. */
static kn_status make_folder(bench_state *state)
{
    const char *parent = getenv("TMPDIR");
    char path[512];
    int length = snprintf(path, sizeof path, "%s/koine-bench-XXXXXX", parent && *parent ? parent : "/tmp");
    if (length >= (int)sizeof path || !mkdtemp(path))
        return kn_error_set(KN_ERR_IO, "startup: no temporary folder %s: %s", path, strerror(errno));
    state->data = strdup(path);
    return state->data ? KN_OK : KN_ERR_MEMORY;
}

static int remove_entry(const char *path, const struct stat *entry, int type, struct FTW *where)
{
    (void)entry, (void)type, (void)where;
    return remove(path);
}

static void remove_folder(const char *path) { nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

/* `env` sets the cache folders for the child only: this process's driver has already read its own. */
static kn_status first_step(const char *folder, const char *device)
{
    char koine[600], pocl[600], nvidia[600];
    snprintf(koine, sizeof koine, "KOINE_CACHE_DIR=%s/koine", folder);
    snprintf(pocl, sizeof pocl, "POCL_CACHE_DIR=%s/pocl", folder);
    snprintf(nvidia, sizeof nvidia, "CUDA_CACHE_PATH=%s/nvidia", folder);
    char *arguments[] = {
        (char[]){"env"},      koine,          pocl, nvidia, (char *)bench_program, (char[]){"--first-step"},
        (char[]){"--device"}, (char *)device, NULL};
    pid_t child;
    int status = posix_spawnp(&child, "env", NULL, NULL, arguments, environ);
    if (status != 0)
        return kn_error_set(KN_ERR_IO, "startup: %s could not be started: %s", bench_program, strerror(status));
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return kn_error_set(KN_ERR_IO, "startup: waiting for the first step: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return KN_OK;
    return kn_error_set(KN_ERR_STATE, "startup: the first step failed, see above");
}

static kn_status cold_setup(const bench_case *self, bench_state *state)
{
    (void)self;
    return make_folder(state);
}

static kn_status warm_setup(const bench_case *self, bench_state *state)
{
    kn_status status = cold_setup(self, state);
    return status == KN_OK ? first_step(state->data, kn_device_string(state->device)) : status;
}

static kn_status run(const bench_case *self, bench_state *state)
{
    if (self->size[0])
        remove_folder(state->data);
    return first_step(state->data, kn_device_string(state->device));
}

static void teardown(bench_state *state)
{
    if (!state->data)
        return;
    remove_folder(state->data);
    free(state->data);
}

static const bench_case cases[] = {
    {.name = "startup/cold",
     .shape = "cnn, batch 128",
     .dtype = KN_F32,
     .setup = cold_setup,
     .run = run,
     .teardown = teardown,
     .size = {1},
     .most = 1},
    {.name = "startup/warm",
     .shape = "cnn, batch 128",
     .dtype = KN_F32,
     .setup = warm_setup,
     .run = run,
     .teardown = teardown,
     .most = 5},
};
const bench_list bench_startup = {cases, sizeof cases / sizeof cases[0]};
