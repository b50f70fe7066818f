/* cli/tune.c - `koine tune`: finds the fastest kernel parameters and implementations for a device. Results are saved
 * after each step, so that it can be stopped at any time and resumes where it stopped. */
#include "cli/tune.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/layout.h"
#include "base/memory.h"

/* --- stopping ----------------------------------------------------------------------------------------------------- */

/* SIGINT and SIGTERM are blocked and polled, not handled: a driver's compiler may be a separate process (PoCL's linker
 * is), which receives the terminal's Ctrl-C too and would fail, and PoCL then ends its caller. The child inherits the
 * blocked mask, as do OpenCL's threads: this must run before the first OpenCL call. */
static bool stopped;
static sigset_t ends;

static void block_signals(void)
{
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
}

/* After the first request the signals are unblocked: another one ends the program at once. */
static bool asked_to_stop(void)
{
    const struct timespec no_time = {0, 0};
    if (!stopped && sigtimedwait(&ends, NULL, &no_time) > 0) {
        stopped = true;
        pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
    }
    return stopped;
}

bool kn_tune_should_stop(kn_tuner *tuner)
{
    if (asked_to_stop() || kn_clock_seconds() >= tuner->deadline)
        tuner->is_over = true;
    return tuner->is_over;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

void kn_tune_print(const kn_tuner *tuner, const char *format, ...)
{
    if (tuner->quiet)
        return;
    va_list arguments;
    va_start(arguments, format);
    kn_print_line(format, arguments);
    va_end(arguments);
}

static double rate(double flops, double seconds) { return seconds > 0 && seconds < HUGE_VAL ? flops / seconds : 0; }

kn_status kn_tune_report(kn_tuner *tuner, const char *what, const kn_tuning_result *result, double flops)
{
    kn_tune_line *lines = kn_realloc(tuner->lines, (size_t)(tuner->num_lines + 1) * sizeof *lines);
    if (!lines)
        return KN_ERR_MEMORY;
    tuner->lines = lines;
    kn_tune_line *line = &lines[tuner->num_lines++];
    *line = (kn_tune_line){.before = result->num_figures ? rate(flops, result->figures[0].seconds) * 1e-9 : 0,
                           .after = rate(flops, kn_tuning_seconds(result, result->choice)) * 1e-9};
    snprintf(line->what, sizeof line->what, "%s", what);
    snprintf(line->choice, sizeof line->choice, "%s%s", result->choice, result->complete ? "" : " (so far)");
    return KN_OK;
}

kn_status kn_tune_keep(kn_tuner *tuner, const kn_tuning_result *result)
{
    KN_TRY(kn_tuning_store(tuner->device, result));
    return tuner->out ? kn_tuning_export(tuner->device, tuner->out) : KN_OK;
}

static void print_table(const kn_tuner *tuner)
{
    static const kn_table_column columns[] = {{.title = "what", .shortest = 24},
                                              {.title = "GFLOP/s", .is_number = true, .least = 10},
                                              {.title = "tuned", .is_number = true, .least = 10},
                                              {.title = "choice", .shortest = 24}};
    kn_table table = {.columns = columns, .num_columns = 4};
    kn_text out = {0};
    for (int i = 0; i < tuner->num_lines; i++) {
        const kn_tune_line *line = &tuner->lines[i];
        kn_table_put(&table, "%s", line->what);
        kn_table_put(&table, "%.1f", line->before);
        kn_table_put(&table, "%.1f", line->after);
        kn_table_put(&table, "%s", line->choice);
    }
    if (tuner->num_lines > 0)
        kn_table_append(&out, &table, kn_page_of(STDOUT_FILENO));
    kn_table_free(&table);
    kn_print_text(&out);
}

/* Results timed while the machine was busy are saved too, so the way out is to start over. */
static void warn_if_busy(kn_tuner *tuner, const char *path)
{
    const int processors = tuner->limits->is_cpu ? (int)tuner->limits->compute_units : 1;
    if (tuner->quiet || tuner->was_busy)
        return;
    const double share = kn_tune_processor_share(processors);
    tuner->was_busy = share < 0.9;
    if (tuner->was_busy)
        kn_tune_print(tuner,
                      "warning: other programs are running: koine tune gets only %.0f %% of %d processor%s, and its "
                      "choices may not be the fastest; end them, remove %s and run it again",
                      100 * share, processors, processors > 1 ? "s" : "", path);
}

static void print_end(const kn_tuner *tuner, const char *path)
{
    kn_tune_print(tuner, "%d measured, %d known from earlier runs; saved in %s", tuner->measured, tuner->kept, path);
    if (tuner->is_over)
        kn_tune_print(tuner, "%s: run it again to continue", stopped ? "stopped" : "the time is up");
    else if (tuner->needs_new_process)
        kn_tune_print(tuner,
                      "CLBlast's own parameters are the fastest, and only a new process can restore them: run it "
                      "again to time the implementations");
}

/* --- the steps ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    kn_status (*run)(kn_tuner *tuner);
    bool not_on_cpus; /* unless requested: no implementation that is chosen there uses it */
    bool needs_parameters;
} steps[] = {
    {"clblast", kn_tune_clblast, true, false},
    {"blocked", kn_tune_blocks, true, false},
    {"gemm", kn_tune_gemm, false, true},
    {"conv", kn_tune_conv, false, true},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

static kn_status run_steps(kn_tuner *tuner, const bool wanted[STEPS])
{
    bool any = false;
    for (int i = 0; i < STEPS; i++)
        any = any || wanted[i];
    for (int i = 0; i < STEPS; i++) {
        const bool usual = !any && !(steps[i].not_on_cpus && tuner->limits->is_cpu);
        if ((!wanted[i] && !usual) || (steps[i].needs_parameters && tuner->needs_new_process))
            continue;
        KN_TRY(steps[i].run(tuner));
    }
    return KN_OK;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

typedef struct request {
    const char *device, *budget, *out, *import;
    bool quiet, wanted[STEPS];
    double seconds;
} request;

static int refuse(const char *what, const char *value, const char *wanted)
{
    return kn_usage_error(kn_command_tune.usage, "koine tune: %s takes %s, not `%s`", what, wanted, value);
}

/* "gemm,conv" */
static int parse_steps(request *r, const char *text)
{
    while (text && *text) {
        const size_t length = strcspn(text, ",");
        bool found = false;
        for (int i = 0; i < STEPS; i++)
            if (strlen(steps[i].name) == length && strncmp(steps[i].name, text, length) == 0)
                found = r->wanted[i] = true;
        if (!found)
            return refuse("WHAT", text, "clblast, blocked, gemm and conv, joined by commas");
        text += length + (text[length] == ',');
    }
    return -1;
}

static int parse(request *r, int argc, char **argv)
{
    const char *what = NULL;
    const kn_option options[] = {{.name = "--device", .value = &r->device},
                                 {.name = "--budget", .value = &r->budget},
                                 {.name = "--out", .value = &r->out},
                                 {.name = "--import", .value = &r->import},
                                 {.name = "--quiet", .flag = &r->quiet}};
    int status = kn_parse_options(&kn_command_tune, argc, argv, options, 5, &what, 1);
    if (status >= 0)
        return status;
    char *end;
    r->seconds = r->budget ? strtod(r->budget, &end) : 600;
    if (r->budget && (end == r->budget || *end || !(r->seconds > 0 && r->seconds <= 1e6)))
        return refuse("--budget", r->budget, "seconds");
    return parse_steps(r, what);
}

static kn_status find_device(kn_tuner *tuner, const char *name)
{
    tuner->device = name ? kn_device_open(name) : kn_device_current();
    if (!tuner->device)
        return kn_error_status();
    if (kn_device_get_type(tuner->device) == KN_DEVICE_HOST)
        return kn_error_set(KN_ERR_ARGUMENT,
                            "operations do not run on the host: nothing to tune; choose an OpenCL device");
    KN_TRY(kn_device_set_current(tuner->device));
    tuner->limits = kn_device_limits(tuner->device);
    tuner->stream = kn_stream_current(tuner->device);
    return tuner->stream ? KN_OK : kn_error_status();
}

static kn_status tune(kn_tuner *tuner, const request *r, const char *path)
{
    if (r->import) {
        KN_TRY(kn_tuning_import(tuner->device, r->import));
        kn_tune_print(tuner, "%s: its results for %s are saved in %s", r->import, kn_device_name(tuner->device), path);
        return KN_OK;
    }
    kn_tune_print(tuner, "%s (%s), at most %g s", kn_device_string(tuner->device), kn_device_name(tuner->device),
                  r->seconds);
    warn_if_busy(tuner, path);
    kn_set_benchmark(false); /* turned on only where its choices are wanted */
    kn_status status = run_steps(tuner, r->wanted);
    if (status == KN_OK && tuner->out)
        status = kn_tuning_export(tuner->device, tuner->out);
    print_table(tuner);
    if (status == KN_OK)
        warn_if_busy(tuner, path);
    if (status == KN_OK)
        print_end(tuner, path);
    return status;
}

static int run(int argc, char **argv)
{
    request r = {0};
    int status = parse(&r, argc, argv);
    if (status >= 0)
        return status;
    block_signals();
    kn_tuner tuner = {.out = r.out, .quiet = r.quiet, .deadline = kn_clock_seconds() + r.seconds};
    if (find_device(&tuner, r.device) != KN_OK)
        return kn_report_error();
    char *path = kn_tuning_path(tuner.device);
    kn_status tuned = path ? tune(&tuner, &r, path) : kn_error_status();
    kn_free(path);
    kn_free(tuner.lines);
    if (tuned != KN_OK)
        return kn_report_error();
    return stopped ? KN_EXIT_FAILED : KN_EXIT_DONE;
}

const kn_command kn_command_tune = {
    .name = "tune",
    .summary = "find the fastest settings for a device, and save them for all programs",
    .usage = "usage: koine tune [--device DEVICE] [--budget SECONDS] [--out FILE] [--quiet] [WHAT[,WHAT...]]\n"
             "       koine tune --import FILE [--device DEVICE]\n\n"
             "Times kernel parameters and implementations of operations, after checking that each computes correct "
             "results. Results are saved after each step, under $KOINE_CACHE_DIR/tuning: it can be stopped at any time "
             "and continues when run again.\n\n"
             "WHAT is one of these; the default is all that the device uses:\n"
             "  clblast   the parameters of CLBlast's matrix products\n"
             "  blocked   the block shapes of products and convolutions on GPUs\n"
             "  gemm      the implementation of each product of a list\n"
             "  conv      the implementation of each pass of a list of convolutions\n"
             "From then on all programs use the parameters; the implementations are used in benchmark mode.\n\n"
             "  --device DEVICE    instead of the default device\n"
             "  --budget SECONDS   the time limit (default 600): the candidate being timed is finished, the next run "
             "continues\n"
             "  --out FILE         also write all results for the device to a file, to be shared\n"
             "  --import FILE      import a shared file (KOINE_TUNE_FILE=FILE uses one without importing it)\n"
             "  --quiet            print only the table of results\n\n"
             "Exit status: 0 done or out of time, 1 failed or interrupted, 2 wrong usage.\n",
    .run = run,
};
