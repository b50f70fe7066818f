/* pool.c - koine-bench-pool: the cost of an allocation from the caching pool and directly from the driver, and the
 * pool's fragmentation after a long random workload. One JSON object per line.
 *
 * The workload: sizes log-uniform from 512 bytes to 8 MiB; one of LIVE slots is picked at random, and its block is
 * freed or, if it has none, allocated. On average half of the slots have a block. All runs use the same seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <koine/koine.h>

#include "rt/memory/snapshot.h"
#include "rt/rt.h"
#include "watch/memory/snapshot_read.h"

typedef struct workload {
    kn_stream *stream;
    kn_buffer **places;
    int live;
    uint64_t random;
} workload;

typedef struct bench_pool_case {
    const char *name;
    int live;
    long steps;
    bool cached; /* else each block is allocated by the driver: clCreateBuffer, clReleaseMemObject */
} bench_pool_case;

/* CPU time of this thread, unaffected by other programs. */
static double cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A step of the generator of Knuth's MMIX; the high bits are used. */
static double next_random(workload *w)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(w->random >> 11) / 9007199254740992.0;
}

static kn_status step(workload *w)
{
    kn_buffer **place = &w->places[(int)(next_random(w) * w->live)];
    if (*place) {
        kn_buffer_free(*place);
        *place = NULL;
        return KN_OK;
    }
    size_t bytes = (size_t)(512 * exp2(14 * next_random(w)));
    return kn_buffer_alloc(place, w->stream, bytes);
}

static kn_status run(workload *w, long steps, double *seconds)
{
    kn_status status = KN_OK;
    double start = cpu_now();
    for (long i = 0; i < steps && status == KN_OK; i++)
        status = step(w);
    *seconds = cpu_now() - start;
    return status;
}

static int64_t stat(kn_device *device, const char *key)
{
    int64_t value = 0;
    kn_memory_stat(device, key, &value);
    return value;
}

/* 1 - largest free block / free memory; negative if unknown. */
static double fragmentation(kn_device *device)
{
    kn_snapshot_figures figures = {0};
    cJSON *snapshot = kn_memory_snapshot_json(device, NULL);
    bool fine = snapshot && kn_snapshot_read(&figures, snapshot, "the pool") == KN_OK && figures.free_bytes > 0;
    cJSON_Delete(snapshot);
    kn_free(figures.points);
    return fine ? 1 - figures.largest_free / figures.free_bytes : -1;
}

static void report(kn_device *device, const bench_pool_case *c, double seconds)
{
    int64_t reserved = stat(device, "reserved_bytes.all.current"), peak = stat(device, "allocated_bytes.all.peak");
    int64_t used = stat(device, "allocated_bytes.all.current"), asked = stat(device, "requested_bytes.all.current");
    int64_t split = stat(device, "inactive_split_bytes.all.current");
    printf("{\"name\": \"%s\", \"places\": %d, \"live\": %lld, \"nanoseconds_per_call\": %.0f", c->name, c->live,
           (long long)stat(device, "allocation.all.current"), seconds / (double)c->steps * 1e9);
    if (c->cached)
        printf(", \"allocated_bytes\": %lld, \"reserved_bytes\": %lld, \"allocated_per_requested\": %.3f, "
               "\"reserved_per_peak_allocated\": %.3f, \"inactive_split_share\": %.3f, \"fragmentation\": %.3f, "
               "\"driver_calls\": %lld",
               (long long)used, (long long)reserved, (double)used / (double)asked, (double)reserved / (double)peak,
               (double)split / (double)reserved, fragmentation(device), (long long)stat(device, "num_device_alloc"));
    printf("}\n");
    fflush(stdout);
}

/* The first half of the steps fills the slots; the second is timed. */
static kn_status measure(kn_device *device, const bench_pool_case *c)
{
    workload w = {.stream = kn_stream_default(device), .live = c->live, .random = 1};
    w.places = calloc((size_t)c->live, sizeof(kn_buffer *));
    if (!w.places || !w.stream)
        return KN_ERR_MEMORY;
    kn_caching_allocator_enable(c->cached);
    kn_reset_accumulated_memory_stats(device);
    kn_reset_peak_memory_stats(device);
    double seconds;
    kn_status status = run(&w, c->steps, &seconds);
    if (status == KN_OK)
        status = run(&w, c->steps, &seconds);
    if (status == KN_OK)
        report(device, c, seconds);
    for (int i = 0; i < c->live; i++)
        kn_buffer_free(w.places[i]);
    free(w.places);
    kn_caching_allocator_enable(true);
    return status == KN_OK ? kn_empty_cache(device) : status;
}

int main(int argc, char **argv)
{
    if (argc > 3 || (argc > 1 && (argc != 3 || strcmp(argv[1], "--device") != 0))) {
        fprintf(stderr, "usage: koine-bench-pool [--device D]\n");
        return 2;
    }
    static const bench_pool_case cases[] = {
        {"pool", 100, 50000, true},     {"driver", 100, 50000, false}, {"pool", 1000, 50000, true},
        {"driver", 1000, 50000, false}, {"pool", 10000, 200000, true}, {"driver", 10000, 200000, false},
    };
    kn_device *device = kn_device_open(argc == 3 ? argv[2] : "auto");
    kn_status status = kn_status_of(device);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && status == KN_OK; i++)
        status = measure(device, &cases[i]);
    if (status != KN_OK)
        fprintf(stderr, "koine-bench-pool: %s\n", kn_error_message());
    return status == KN_OK ? 0 : 1;
}
