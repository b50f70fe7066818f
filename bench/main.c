/* main.c - koine-bench: runs benchmarks, one JSON object per line; see docs/performance.md. With --serve it answers a
 * peer's requests one repetition at a time, so that bench/compare.py can alternate between the two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "rt/peak.h"

#define MAX_REPETITIONS 200
#define MIN_SECONDS 1.0
#define MIN_REPETITIONS 5

typedef struct options {
    const char *device, *only;
    bool json, serve, list;
} options;

typedef struct peaks {
    double f32, f64, bytes;
} peaks;

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static const bench_list *const families[] = {&bench_seeds,  &bench_gemm,     &bench_conv,    &bench_norm,
                                             &bench_launch, &bench_profiler, &bench_transfer};
#define FAMILIES (sizeof families / sizeof families[0])

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static kn_status once(const bench_case *c, bench_state *state, double *seconds)
{
    double start = bench_now();
    kn_status status = c->run(c, state);
    double enqueued = bench_now();
    if (status == KN_OK)
        status = kn_synchronize(state->device);
    *seconds = (c->enqueue_only ? enqueued : bench_now()) - start;
    return status;
}

/* The first repetition builds kernels: it is reported apart. */
static kn_status measure(const bench_case *c, bench_state *state, double *first, double *times, int *count)
{
    kn_status status = once(c, state, first);
    double total = 0;
    for (*count = 0; status == KN_OK && *count < MAX_REPETITIONS && (total < MIN_SECONDS || *count < MIN_REPETITIONS);
         (*count)++) {
        status = once(c, state, &times[*count]);
        total += times[*count];
    }
    qsort(times, (size_t)*count, sizeof *times, by_value);
    return status;
}

static void report(const bench_case *c, const peaks *p, double first, const double *times, int count)
{
    double median = times[count / 2], gflops = c->flops / median * 1e-9, gbytes = c->bytes / median * 1e-9;
    double peak = c->dtype == KN_F64 ? p->f64 : p->f32;
    double of_compute = peak > 0 ? gflops * 1e9 / peak : 0, of_memory = p->bytes > 0 ? gbytes * 1e9 / p->bytes : 0;
    printf("{\"name\": \"%s\", \"shape\": \"%s\", \"dtype\": \"%s\", \"seconds_first\": %.6g, \"seconds_min\": %.6g, "
           "\"seconds_median\": %.6g, \"flops\": %.6g, \"bytes\": %.6g, \"gflops\": %.4g, \"gbytes_per_s\": %.4g, "
           "\"fraction_of_peak\": %.3f}\n",
           c->name, c->shape, kn_dtype_name(c->dtype), first, times[0], median, c->flops, c->bytes, gflops, gbytes,
           of_compute > of_memory ? of_compute : of_memory);
    fflush(stdout);
}

static int fail(const char *name)
{
    fprintf(stderr, "koine-bench: %s: %s\n", name, kn_error_message());
    return 1;
}

static int run_case(const bench_case *c, kn_device *device, const peaks *p)
{
    static double times[MAX_REPETITIONS];
    bench_state state = {.device = device};
    double first;
    int count = 0;
    kn_status status = c->setup(c, &state);
    if (status == KN_OK)
        status = measure(c, &state, &first, times, &count);
    if (status == KN_OK)
        report(c, p, first, times, count);
    c->teardown(&state);
    return status == KN_OK ? 0 : fail(c->name);
}

static bool wanted(const options *o, const bench_case *c)
{
    return !o->only || strncmp(c->name, o->only, strlen(o->only)) == 0;
}

static int run_all(const options *o, kn_device *device)
{
    peaks p = {0};
    int failures = 0;
    kn_device_properties properties;
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
    for (size_t f = 0; f < FAMILIES; f++)
        for (int i = 0; i < families[f]->count; i++)
            if (wanted(o, &families[f]->cases[i]))
                failures += run_case(&families[f]->cases[i], device, &p);
    return failures ? 1 : 0;
}

static const bench_case *find(const char *name)
{
    for (size_t f = 0; f < FAMILIES; f++)
        for (int i = 0; i < families[f]->count; i++)
            if (strcmp(families[f]->cases[i].name, name) == 0)
                return &families[f]->cases[i];
    return NULL;
}

/* Seconds per repetition, each waited for, of `count` in a row. */
static kn_status burst(const bench_case *c, bench_state *state, int count, double *seconds)
{
    double total = 0, one;
    kn_status status = KN_OK;
    for (int i = 0; i < count && status == KN_OK; i++) {
        status = once(c, state, &one);
        total += one;
    }
    *seconds = total / (count > 0 ? count : 1);
    return status;
}

/* Lines in: "setup NAME", "run COUNT", "teardown". Lines out: seconds of it, or "error MESSAGE". */
static int serve(kn_device *device)
{
    char line[256];
    const bench_case *c = NULL;
    bench_state state = {.device = device};
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        double seconds = 0;
        kn_status status = KN_OK;
        if (strncmp(line, "setup ", 6) == 0) {
            c = find(line + 6);
            state = (bench_state){.device = device};
            double start = bench_now();
            status = c ? c->setup(c, &state) : kn_error_set(KN_ERR_ARGUMENT, "no benchmark `%s`", line + 6);
            seconds = bench_now() - start;
        } else if (strncmp(line, "run ", 4) == 0 && c) {
            status = burst(c, &state, atoi(line + 4), &seconds);
        } else if (strcmp(line, "teardown") == 0 && c) {
            c->teardown(&state);
            c = NULL;
        }
        if (status == KN_OK)
            printf("%.9f\n", seconds);
        else
            printf("error %s\n", kn_error_message());
        fflush(stdout);
    }
    return 0;
}

static const char usage[] = "usage: koine-bench [--device D] [--only PREFIX] [--list] [--serve]\n";

static bool parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            o->device = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            o->only = argv[++i];
        else if (strcmp(argv[i], "--json") == 0)
            o->json = true; /* the output is JSON in any case */
        else if (strcmp(argv[i], "--list") == 0)
            o->list = true;
        else if (strcmp(argv[i], "--serve") == 0)
            o->serve = true;
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    options o = {0};
    kn_device *device;
    if (!parse(&o, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    for (size_t f = 0; o.list && f < FAMILIES; f++)
        for (int i = 0; i < families[f]->count; i++)
            puts(families[f]->cases[i].name);
    if (o.list)
        return 0;
    if (kn_device_open(&device, o.device) != KN_OK)
        return fail("device");
    kn_device_set_current(device);
    return o.serve ? serve(device) : run_all(&o, device);
}
