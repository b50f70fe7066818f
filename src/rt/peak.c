/* rt/peak.c - the device's limits, measured with cl/device/peak.cl. */
#include "rt/peak.h"

#include <koine/memory.h>
#include <stdio.h>
#include <time.h>

#include "base/error.h"
#include "base/threads.h"

#define REPETITIONS 7
#define CHAINS 10 /* of fma, in the kernel */
#define COPY_BYTES ((size_t)256 << 20)

/* 0: not measured yet. The lock is held while measuring: two measurements at once would share the machine. */
static struct {
    double f32, f64, bytes;
} peaks[KN_MAX_DEVICES];
static kn_mutex lock = KN_MUTEX_INIT;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int vector_width(const kn_limits *limits, bool f64)
{
    int width = f64 ? limits->vector_width_f64 : limits->vector_width_f32;
    return width > 16 ? 16 : width;
}

static void vector_options(char options[96], const kn_limits *limits, bool f64)
{
    const char *type = f64 ? "double" : "float", *needed = f64 ? " -DKN_USE_F64" : "";
    int width = vector_width(limits, f64);
    if (width > 1)
        snprintf(options, 96, "-DT=%s%s -DV=%s%d", type, needed, type, width);
    else
        snprintf(options, 96, "-DT=%s%s -DV=%s", type, needed, type);
}

/* The best rate of several runs, each doing `work`. */
static kn_status best_rate(kn_stream *stream, const kn_launch_params *launch, double work, double *rate)
{
    double best = 0;
    for (int repetition = 0; repetition < REPETITIONS; repetition++) {
        double start = seconds_now();
        KN_TRY(kn_launch(stream, launch));
        KN_TRY(kn_stream_synchronize(stream));
        double one = work / (seconds_now() - start);
        best = one > best ? one : best;
    }
    *rate = best;
    return KN_OK;
}

static kn_status measure_flops(kn_device *device, bool f64, double *rate)
{
    const kn_limits *limits = kn_device_limits(device);
    kn_stream *stream = kn_stream_current(device);
    size_t items = limits->is_cpu ? (size_t)limits->compute_units : (size_t)limits->compute_units * 1024;
    int64_t steps = limits->is_cpu ? 4000000 : 20000;
    char options[96];
    kn_buffer *sink;
    if (!stream)
        return kn_error_status();
    vector_options(options, limits, f64);
    KN_TRY(kn_buffer_alloc(&sink, stream, items * (f64 ? sizeof(double) : sizeof(float))));
    const kn_arg args[] = {kn_arg_buffer(sink, 0), kn_arg_i64(steps), kn_arg_f32(0.5)};
    const kn_launch_params launch = {.source = "device/peak.cl",
                                     .options = options,
                                     .kernel = "fma_peak",
                                     .dims = 1,
                                     .global = {items},
                                     .args = args,
                                     .num_args = 3};
    double work = 2.0 * CHAINS * vector_width(limits, f64) * (double)steps * (double)items;
    kn_status status = best_rate(stream, &launch, work, rate);
    kn_buffer_free(sink);
    return status;
}

static kn_status measure_copy(kn_stream *stream, const kn_limits *limits, const kn_buffer *from, kn_buffer *to,
                              size_t bytes, double *rate)
{
    const float zero = 0;
    int64_t vectors = (int64_t)(bytes / sizeof(float)) / vector_width(limits, false);
    char options[96];
    vector_options(options, limits, false);
    KN_TRY(kn_buffer_fill(stream, to, 0, &zero, sizeof zero, bytes)); /* pages are there before the clock runs */
    const kn_arg args[] = {kn_arg_buffer(from, 0), kn_arg_buffer(to, 0), kn_arg_i64(vectors)};
    const kn_launch_params launch = {.source = "device/peak.cl",
                                     .options = options,
                                     .kernel = "copy_peak",
                                     .dims = 1,
                                     .global = {kn_work_items(limits, vectors, 1)},
                                     .args = args,
                                     .num_args = 3};
    return best_rate(stream, &launch, 2.0 * (double)bytes, rate);
}

static kn_status measure_bytes(kn_device *device, double *rate)
{
    const kn_limits *limits = kn_device_limits(device);
    kn_stream *stream = kn_stream_current(device);
    size_t bytes = COPY_BYTES;
    const float zero = 0;
    kn_buffer *from = NULL, *to = NULL;
    uint64_t free_bytes, total;
    if (!stream)
        return kn_error_status();
    KN_TRY(kn_mem_get_info(device, &free_bytes, &total)); /* a limit on the pool counts there */
    while (bytes > limits->max_allocation || bytes > limits->global_memory / 16 || bytes > free_bytes / 4)
        bytes /= 2;
    bytes = bytes < 4096 ? 4096 : bytes;
    kn_status status = kn_buffer_alloc(&from, stream, bytes);
    if (status == KN_OK)
        status = kn_buffer_alloc(&to, stream, bytes);
    if (status == KN_OK)
        status = kn_buffer_fill(stream, from, 0, &zero, sizeof zero, bytes);
    if (status == KN_OK)
        status = measure_copy(stream, limits, from, to, bytes, rate);
    kn_buffer_free(from);
    kn_buffer_free(to);
    return status;
}

kn_status kn_peak_flops(kn_device *device, bool f64, double *flops_per_second)
{
    int slot = kn_device_slot(device);
    kn_lock(&lock);
    double *kept = f64 ? &peaks[slot].f64 : &peaks[slot].f32;
    kn_status status = *kept > 0 ? KN_OK : measure_flops(device, f64, kept);
    *flops_per_second = *kept;
    kn_unlock(&lock);
    return status;
}

kn_status kn_peak_bytes(kn_device *device, double *bytes_per_second)
{
    int slot = kn_device_slot(device);
    kn_lock(&lock);
    kn_status status = peaks[slot].bytes > 0 ? KN_OK : measure_bytes(device, &peaks[slot].bytes);
    *bytes_per_second = peaks[slot].bytes;
    kn_unlock(&lock);
    return status;
}
