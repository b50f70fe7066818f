/* serve.c - koine-bench as a server: bench/compare.py sends one request per line, so that the two sides can take turns.
 *
 *     setup NAME      sets up a benchmark           -> seconds
 *     inputs PATH     writes its inputs    -> seconds, or "none"
 *     run COUNT       runs that many repetitions         -> seconds of one
 *     results PATH    writes the first results    -> seconds, or "none"
 *     flops           -> operations of a repetition
 *     memory          runs a repetition             -> most bytes of tensors at a time, those of the set-up included
 *     about           -> the device, as a JSON object
 *     peak            -> GFLOP/s f32, GFLOP/s f64, GB/s of a plain copy
 *     teardown        -> 0
 *
 * Files are safetensors. An answer "error MESSAGE" leaves the server ready for a teardown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench.h"
#include "watch/peak.h"

typedef struct server {
    kn_device *device;
    const bench_case *c;
    bench_state state;
    uint64_t allocated_before; /* bytes before the set-up */
    char answer[1024];
} server;

static const bench_case *find(const char *name)
{
    for (int f = 0; f < bench_family_count; f++)
        for (int i = 0; i < bench_families[f]->count; i++)
            if (strcmp(bench_families[f]->cases[i].name, name) == 0)
                return &bench_families[f]->cases[i];
    return NULL;
}

static void say_seconds(server *s, double seconds) { snprintf(s->answer, sizeof s->answer, "%.9f", seconds); }

static kn_status setup(server *s, const char *name)
{
    s->c = find(name);
    s->state = (bench_state){.device = s->device};
    if (!s->c)
        return kn_error_set(KN_ERR_ARGUMENT, "there is no benchmark `%s`", name);
    s->allocated_before = kn_memory_allocated(s->device);
    kn_manual_seed(0); /* always the same starting values */
    double start = bench_now();
    kn_status status = s->c->setup(s->c, &s->state);
    say_seconds(s, bench_now() - start);
    return status;
}

static kn_status run(server *s, const char *count)
{
    double seconds = 0;
    kn_status status = bench_burst(s->c, &s->state, atoi(count), &seconds);
    say_seconds(s, seconds);
    return status;
}

static kn_status memory(server *s)
{
    kn_reset_peak_memory_stats(s->device);
    KN_TRY(s->c->run(s->c, &s->state));
    KN_TRY(kn_synchronize(s->device));
    const uint64_t most = kn_max_memory_allocated(s->device) - s->allocated_before;
    snprintf(s->answer, sizeof s->answer, "%llu", (unsigned long long)most);
    return KN_OK;
}

static kn_status write_file(server *s, const char *path,
                            kn_status (*fill)(const bench_case *, bench_state *, kn_tensor_file *))
{
    if (!fill) {
        snprintf(s->answer, sizeof s->answer, "none");
        return KN_OK;
    }
    double start = bench_now();
    kn_tensor_file *file = kn_tensor_file_new();
    kn_status status = file ? fill(s->c, &s->state, file) : kn_error_status();
    if (status == KN_OK)
        status = kn_save_safetensors(path, file);
    kn_tensor_file_free(file);
    say_seconds(s, bench_now() - start);
    return status;
}

static kn_status about(server *s)
{
    kn_device_properties p;
    KN_TRY(kn_device_get_properties(s->device, &p));
    snprintf(s->answer, sizeof s->answer,
             "{\"device\": \"%s\", \"device_type\": \"%s\", \"platform\": \"%s\", \"driver\": \"%s\"}", p.name,
             p.type == KN_DEVICE_CPU ? "cpu" : "gpu", p.platform, p.driver_version);
    return KN_OK;
}

static kn_status peak(server *s)
{
    double f32 = 0, f64 = 0, bytes = 0;
    kn_device_properties properties;
    kn_status status = kn_device_get_properties(s->device, &properties);
    if (status == KN_OK)
        status = kn_peak_flops(s->device, false, &f32);
    if (status == KN_OK && properties.has_f64)
        status = kn_peak_flops(s->device, true, &f64);
    if (status == KN_OK)
        status = kn_peak_bytes(s->device, &bytes);
    snprintf(s->answer, sizeof s->answer, "%.4g %.4g %.4g", f32 * 1e-9, f64 * 1e-9, bytes * 1e-9);
    return status;
}

static kn_status teardown(server *s)
{
    if (s->c)
        s->c->teardown(&s->state);
    s->c = NULL;
    say_seconds(s, 0);
    return KN_OK;
}

static kn_status serve_line(server *s, const char *line)
{
    if (strncmp(line, "setup ", 6) == 0)
        return teardown(s), setup(s, line + 6);
    if (strcmp(line, "teardown") == 0)
        return teardown(s);
    if (strcmp(line, "about") == 0)
        return about(s);
    if (strcmp(line, "peak") == 0)
        return peak(s);
    if (!s->c)
        return kn_error_set(KN_ERR_STATE, "`%s`: no benchmark is set up", line);
    if (strncmp(line, "run ", 4) == 0)
        return run(s, line + 4);
    if (strncmp(line, "inputs ", 7) == 0)
        return write_file(s, line + 7, s->c->inputs);
    if (strncmp(line, "results ", 8) == 0)
        return write_file(s, line + 8, s->c->results);
    if (strcmp(line, "flops") == 0) {
        snprintf(s->answer, sizeof s->answer, "%.9g", s->state.flops > 0 ? s->state.flops : s->c->flops);
        return KN_OK;
    }
    if (strcmp(line, "memory") == 0)
        return memory(s);
    return kn_error_set(KN_ERR_ARGUMENT, "unknown request `%s`", line);
}

int bench_serve(kn_device *device)
{
    char line[1024];
    server s = {.device = device};
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (serve_line(&s, line) == KN_OK)
            puts(s.answer);
        else
            printf("error %s\n", kn_error_message());
        kn_error_clear();
        fflush(stdout);
    }
    teardown(&s);
    return 0;
}
