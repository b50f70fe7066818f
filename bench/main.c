/* main.c - koine-bench: runs benchmarks, one JSON object per line; see docs/performance.md. Without --only it runs all
 * that are sized for the device (on a CPU those not called gpu/..., on a GPU all) but those on request (bench.h),
 * which --list also names only if --only does: "" is everything. With --serve it answers requests of
 * bench/compare.py (serve.c); with --profile it also prints the profiler's table of each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "bench.h"
#include "watch/peak.h"

#define MAX_REPETITIONS 200
#define MIN_SECONDS 1.0
#define MIN_REPETITIONS 5
#define MAX_PREFIXES 64
#define BURST_SECONDS 0.005 /* of consecutive runs, so that the wait for the device after them is negligible */
#define MAX_BURST 100

typedef struct options {
    const char *device;
    const char *only[MAX_PREFIXES];
    int prefixes; /* 0: all benchmarks */
    bool json, serve, list, first_step, profile;
    int repetitions; /* 0: until MIN_SECONDS have passed */
} options;

typedef struct peaks {
    double f32, f64, bytes;
} peaks;

bool bench_is_for_gpus(const bench_case *c) { return strncmp(c->name, "gpu/", 4) == 0; }

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#define ADDRESS(family) &bench_##family,
const bench_list *const bench_families[] = {BENCH_FAMILIES(ADDRESS)};
const int bench_family_count = sizeof bench_families / sizeof bench_families[0];

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

kn_status bench_burst(const bench_case *c, bench_state *state, int count, double *seconds)
{
    double start = bench_now();
    kn_status status = KN_OK;
    for (int i = 0; i < count && status == KN_OK; i++)
        status = c->run(c, state);
    double enqueued = bench_now();
    if (status == KN_OK)
        status = kn_synchronize(state->device);
    *seconds = ((c->enqueue_only ? enqueued : bench_now()) - start) / (count > 0 ? count : 1);
    return status;
}

static bool wants_more(const options *o, const bench_case *c, int count, double total)
{
    if (count >= MAX_REPETITIONS || (c->most && count + 1 >= c->most))
        return false;
    return o->repetitions ? count < o->repetitions : total < MIN_SECONDS || count < MIN_REPETITIONS;
}

/* Operations are timed in bursts, as in compare.py: a wait after each would cost as much as a short operation. */
static int burst_length(const bench_case *c, double seconds)
{
    if (!c->operation || seconds >= BURST_SECONDS)
        return 1;
    return seconds * MAX_BURST > BURST_SECONDS ? (int)(BURST_SECONDS / seconds) : MAX_BURST;
}

/* The first repetition compiles kernels: it is reported separately, unless it is the only one. */
static kn_status measure(const options *o, const bench_case *c, bench_state *state, double *first, double *times,
                         int *count)
{
    kn_status status = bench_burst(c, state, 1, first);
    double total = 0;
    int length = 1;
    for (*count = 0; status == KN_OK && wants_more(o, c, *count, total); (*count)++) {
        status = bench_burst(c, state, length, &times[*count]);
        total += times[*count] * length;
        length = burst_length(c, times[*count]);
    }
    if (*count == 0)
        times[(*count)++] = *first;
    qsort(times, (size_t)*count, sizeof *times, by_value);
    return status;
}

static void report(const bench_case *c, const peaks *p, double flops, double first, const double *times, int count)
{
    double median = times[count / 2], gflops = flops / median * 1e-9, gbytes = c->bytes / median * 1e-9;
    double peak = c->dtype == KN_F64 ? p->f64 : p->f32;
    double of_compute = peak > 0 ? gflops * 1e9 / peak : 0, of_memory = p->bytes > 0 ? gbytes * 1e9 / p->bytes : 0;
    printf("{\"name\": \"%s\", \"shape\": \"%s\", \"dtype\": \"%s\", \"seconds_first\": %.6g, \"seconds_min\": %.6g, "
           "\"seconds_median\": %.6g, \"flops\": %.6g, \"bytes\": %.6g, \"gflops\": %.4g, \"gbytes_per_s\": %.4g, "
           "\"fraction_of_peak\": %.3f}\n",
           c->name, c->shape, kn_dtype_name(c->dtype), first, times[0], median, flops, c->bytes, gflops, gbytes,
           of_compute > of_memory ? of_compute : of_memory);
    fflush(stdout);
}

static int fail(const char *name)
{
    fprintf(stderr, "koine-bench: %s: %s\n", name, kn_error_message());
    return 1;
}

enum { PROFILED = 3 }; /* repetitions */

/* The profiler's table of a few repetitions. */
static kn_status profile(const bench_case *c, bench_state *state)
{
    double seconds = 0;
    KN_TRY(kn_profiler_start(.with_flops = true));
    const kn_status status = bench_burst(c, state, PROFILED, &seconds);
    KN_TRY(kn_profiler_stop());
    char *table = kn_profiler_table(.row_limit = 50);
    if (table)
        puts(table);
    kn_free(table);
    return table ? status : kn_error_status();
}

static int run_case(const options *o, const bench_case *c, kn_device *device, const peaks *p)
{
    static double times[MAX_REPETITIONS];
    bench_state state = {.device = device};
    double first;
    int count = 0;
    kn_status status = c->setup(c, &state);
    if (status == KN_OK)
        status = measure(o, c, &state, &first, times, &count);
    if (status == KN_OK)
        report(c, p, state.flops > 0 ? state.flops : c->flops, first, times, count);
    if (status == KN_OK && o->profile)
        status = profile(c, &state);
    c->teardown(&state);
    return status == KN_OK ? 0 : fail(c->name);
}

static bool begins_with(const bench_case *c, const char *prefix)
{
    return strncmp(c->name, prefix, strlen(prefix)) == 0;
}

static bool wanted(const options *o, const bench_case *c)
{
    bool matches = o->prefixes == 0 && !c->on_request;
    for (int i = 0; i < o->prefixes && !matches; i++)
        matches = begins_with(c, o->only[i]);
    return matches;
}

/* Does each prefix name a benchmark? */
static bool prefixes_are_known(const options *o)
{
    for (int p = 0; p < o->prefixes; p++) {
        bool known = false;
        for (int f = 0; f < bench_family_count && !known; f++)
            for (int i = 0; i < bench_families[f]->count && !known; i++)
                known = begins_with(&bench_families[f]->cases[i], o->only[p]);
        if (!known) {
            fprintf(stderr,
                    "koine-bench: no benchmark's name begins with \"%s\"; `koine-bench --list --only \"\"` names all\n",
                    o->only[p]);
            return false;
        }
    }
    return true;
}

/* Is it sized for such a device, or explicitly requested? */
static bool fits(const options *o, const bench_case *c, kn_device_type type)
{
    return o->prefixes > 0 || type != KN_DEVICE_CPU || !bench_is_for_gpus(c);
}

static int run_all(const options *o, kn_device *device)
{
    peaks p = {0};
    int failures = 0;
    kn_device_properties properties = {0};
    kn_status status = kn_device_get_properties(device, &properties);
    if (status == KN_OK)
        status = kn_peak_flops(device, false, &p.f32);
    if (status == KN_OK && properties.has_f64)
        status = kn_peak_flops(device, true, &p.f64);
    if (status == KN_OK)
        status = kn_peak_bytes(device, &p.bytes);
    if (status != KN_OK)
        return fail("peak");
    printf("{\"name\": \"peak\", \"device\": \"%s\", \"gflops_f32\": %.4g, \"gflops_f64\": %.4g, \"gbytes_per_s\": "
           "%.4g}\n",
           kn_device_name(device), p.f32 * 1e-9, p.f64 * 1e-9, p.bytes * 1e-9);
    for (int f = 0; f < bench_family_count; f++)
        for (int i = 0; i < bench_families[f]->count; i++)
            if (wanted(o, &bench_families[f]->cases[i]) && fits(o, &bench_families[f]->cases[i], properties.type))
                failures += run_case(o, &bench_families[f]->cases[i], device, &p);
    return failures ? 1 : 0;
}

/* --- the list --------------------------------------------------------------------------------- */

static void describe_operation(const bench_operation *op)
{
    printf(", \"operation\": \"%s\", \"gradients\": %u, \"tf32\": %s, \"parameters\": [",
           op->peer ? op->peer : op->name, op->gradients, op->tf32 ? "true" : "false");
    for (int i = 0; i < BENCH_PARAMETERS; i++)
        printf("%s%.17g", i ? ", " : "", op->parameters[i]);
    printf("], \"transposed\": [");
    for (int i = 0; i < BENCH_INPUTS && op->inputs[i].ndim > 0; i++)
        printf("%s%s", i ? ", " : "", op->inputs[i].transposed ? "true" : "false");
    printf("]");
}

static void describe(const bench_case *c)
{
    printf("{\"name\": \"%s\", \"shape\": \"%s\", \"dtype\": \"%s\", \"flops\": %.9g, \"bytes\": %.9g, \"most\": %d, "
           "\"replayed\": %s, \"size\": [%lld, %lld, %lld, %lld]",
           c->name, c->shape, kn_dtype_name(c->dtype), c->flops, c->bytes, c->most, c->replayed ? "true" : "false",
           (long long)c->size[0], (long long)c->size[1], (long long)c->size[2], (long long)c->size[3]);
    if (c->operation)
        describe_operation(c->operation);
    puts("}");
}

static int list(const options *o)
{
    for (int f = 0; f < bench_family_count; f++)
        for (int i = 0; i < bench_families[f]->count; i++) {
            const bench_case *c = &bench_families[f]->cases[i];
            if (!wanted(o, c))
                continue;
            if (o->json)
                describe(c);
            else
                puts(c->name);
        }
    return 0;
}

/* --- the command line ------------------------------------------------------------------------- */

static const char usage[] =
    "usage: koine-bench [--device D] [--only PREFIX]... [--repetitions N] [--json] [--profile]\n"
    "       koine-bench --list [--only PREFIX]... [--json]\n"
    "       koine-bench --serve [--device D]\n";

static bool parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            o->device = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc && o->prefixes < MAX_PREFIXES)
            o->only[o->prefixes++] = argv[++i];
        else if (strcmp(argv[i], "--json") == 0)
            o->json = true; /* the results are always JSON */
        else if (strcmp(argv[i], "--list") == 0)
            o->list = true;
        else if (strcmp(argv[i], "--serve") == 0)
            o->serve = true;
        else if (strcmp(argv[i], "--profile") == 0)
            o->profile = true;
        else if (strcmp(argv[i], "--first-step") == 0)
            o->first_step = true;
        else if (strcmp(argv[i], "--repetitions") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0)
            o->repetitions = atoi(argv[++i]);
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    options o = {0};
    kn_device *device;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (!parse(&o, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (!prefixes_are_known(&o))
        return 2;
    if (o.list)
        return list(&o);
    device = kn_device_open(o.device);
    if (!device)
        return fail("device");
    kn_device_set_current(device);
    bench_program = argv[0];
    return o.first_step ? bench_first_step(device) : o.serve ? bench_serve(device) : run_all(&o, device);
}
