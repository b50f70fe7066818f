/* cli/warm.c - `koine warm`: compiles the kernels of common training steps into the caches on disk, in several
 * processes, so that the programs that run next need not (docs/startup.md).
 *
 * Each process rehearses all models (rt/compile/rehearsal.h) and compiles the kernels that it comes to first: a table
 * in memory that all share says which are taken. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/system.h"
#include "cli/cli.h"
#include "cli/warm_models.h"
#include "rt/compile/rehearsal.h"

enum { MOST_JOBS = 256, MOST_JOBS_ON_GPU = 8, MOST_MODELS = 32, SLOTS = 1 << 14 };

typedef struct request {
    const char *device, *jobs;
    bool all;
    int num_jobs, num_models;
    kn_warm_model models[MOST_MODELS];
} request;

/* Shared by all processes. */
typedef struct shared {
    _Atomic uint64_t taken[SLOTS]; /* hashes; 0: free */
    atomic_int job;                /* of the first that failed, plus 1 */
} shared;

/* --- a process ---------------------------------------------------------------------------------------------------- */

typedef struct worker {
    shared *all;
    atomic_int kernels; /* taken for the present model */
} worker;

/* Is this process the first to come for it? With a full table, every one is. */
static bool take(uint64_t kernel, void *user)
{
    worker *w = user;
    const uint64_t key = kernel ? kernel : 1;
    for (int i = 0; i < SLOTS; i++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&w->all->taken[(key + (uint64_t)i) % SLOTS], &there, key))
            break;
        if (there == key)
            return false;
    }
    atomic_fetch_add(&w->kernels, 1);
    return true;
}

/* The error is printed by the process that fails first: the others' are alike. */
static int fail(shared *all, int job, const char *model)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&all->job, &none, job + 1))
        return KN_EXIT_FAILED;
    if (model)
        fprintf(stderr, "koine: %s: %s\n", model, kn_error_message());
    else
        kn_report_error();
    return KN_EXIT_FAILED;
}

/* What a process tells of each model. */
typedef struct report {
    int model, kernels;
} report;

static int work(const request *r, shared *all, int job, int out)
{
    worker w = {.all = all};
    kn_rehearsal rehearsal = {.takes = take, .user = &w};
    if (job > 0)
        setenv("KOINE_LOG", "error", 0); /* the first process's warnings are enough */
    kn_device *device = kn_device_open(r->device ? r->device : "auto");
    if (!device || kn_device_set_current(device) != KN_OK || kn_rehearsal_check_cache(device) != KN_OK)
        return fail(all, job, NULL);
    const bool helps = job < MOST_JOBS_ON_GPU || kn_device_limits(device)->is_cpu;
    kn_rehearse(&rehearsal);
    for (int i = 0; i < r->num_models; i++) {
        if (helps && kn_warm_model_train(&r->models[i]) != KN_OK)
            return fail(all, job, r->models[i].name);
        const report told = {i, atomic_exchange(&w.kernels, 0)};
        if (write(out, &told, sizeof told) != sizeof told)
            return KN_EXIT_FAILED;
    }
    return KN_EXIT_DONE;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static int start(pid_t *pids, const request *r, shared *all, const int ends[2])
{
    int started = 0;
    while (started < r->num_jobs) {
        const pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0) {
            close(ends[0]);
            _exit(work(r, all, started, ends[1]));
        }
        pids[started++] = pid;
    }
    return started;
}

/* A line for each model that all processes are done with. */
static void print_lines(const request *r, int in, int jobs, double began)
{
    int done[MOST_MODELS] = {0}, kernels[MOST_MODELS] = {0};
    double before = began;
    report told;
    for (ssize_t got; (got = read(in, &told, sizeof told)) == sizeof told || (got < 0 && errno == EINTR);) {
        if (got < 0)
            continue;
        kernels[told.model] += told.kernels;
        if (++done[told.model] < jobs)
            continue;
        const double now = kn_clock_seconds();
        printf("%-20s %3d kernels %7.2f s\n", r->models[told.model].name, kernels[told.model], now - before);
        fflush(stdout);
        before = now;
    }
}

static int wait_for(const pid_t *pids, int count)
{
    int result = KN_EXIT_DONE;
    for (int i = 0; i < count; i++) {
        int status;
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            ;
        if (WIFSIGNALED(status))
            fprintf(stderr, "koine warm: a process ended by signal %d (%s), probably in the driver's compiler\n",
                    WTERMSIG(status), strsignal(WTERMSIG(status)));
        if (!WIFEXITED(status) || WEXITSTATUS(status) != KN_EXIT_DONE)
            result = KN_EXIT_FAILED;
    }
    return result;
}

static int warm(const request *r)
{
    const double began = kn_clock_seconds();
    pid_t pids[MOST_JOBS];
    int ends[2];
    shared *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || kn_sys_pipe(ends) != 0) {
        perror("koine warm");
        return KN_EXIT_FAILED;
    }
    const int started = start(pids, r, all, ends);
    if (started == 0)
        perror("koine warm: no process can be started");
    close(ends[1]);
    print_lines(r, ends[0], started, began);
    close(ends[0]);
    const int status = wait_for(pids, started);
    munmap(all, sizeof *all);
    return started == 0 ? KN_EXIT_FAILED : status;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int parse_jobs(request *r)
{
    char *end = NULL;
    const long jobs = r->jobs ? strtol(r->jobs, &end, 10) : kn_sys_processors();
    if (jobs < 1 || (end && (*end || end == r->jobs)))
        return kn_usage_error(kn_command_warm.usage, "koine warm: --jobs takes a number of processes, not `%s`",
                              r->jobs);
    r->num_jobs = jobs < MOST_JOBS ? (int)jobs : MOST_JOBS;
    return -1;
}

static int parse_models(request *r, const char *const *names)
{
    const kn_warm_model *common;
    for (int i = 0; names[i]; i++)
        if (!kn_warm_model_find(&r->models[r->num_models++], names[i]))
            return kn_usage_error(kn_command_warm.usage, "koine warm: no model is called `%s`", names[i]);
    for (int i = 0; !names[0] && (common = kn_warm_model_at(i)); i++)
        if (r->all || common->usual)
            r->models[r->num_models++] = *common;
    return -1;
}

static int run(int argc, char **argv)
{
    request r = {.device = NULL};
    const char *names[MOST_MODELS + 1] = {NULL};
    const kn_option options[] = {{.name = "--device", .value = &r.device},
                                 {.name = "--jobs", .value = &r.jobs},
                                 {.name = "--all", .flag = &r.all}};
    int status = kn_parse_options(&kn_command_warm, argc, argv, options, 3, names, MOST_MODELS);
    if (status < 0)
        status = parse_jobs(&r);
    if (status < 0)
        status = parse_models(&r, names);
    return status < 0 ? warm(&r) : status;
}

const kn_command kn_command_warm = {
    .name = "warm",
    .summary = "compile the kernels of common training steps ahead, into the caches on disk",
    .usage =
        "usage: koine warm [--device D] [--jobs N] [--all | MODEL...]\n\n"
        "Compiles the kernels of these models' training steps, so that the first steps of programs need not wait\n"
        "for the driver's compiler. Prints how many kernels each model needs that those before it did not, and the\n"
        "seconds. What is compiled already is only loaded. docs/startup.md\n\n"
        "  --device D   auto, gpu, cpu, nvidia, pocl:0, 0:1, ... (see `koine devices`)\n"
        "  --jobs N     processes that compile (default: one per processor)\n"
        "  --all        cnn, mlp, lenet5, resnet18, mobilenet_v2 and gpt, instead of cnn alone\n"
        "  MODEL        one of these, or another image network of koine/models.h, such as resnet50\n",
    .run = run,
};
