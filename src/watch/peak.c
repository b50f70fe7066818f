/* watch/peak.c - the peaks of a device, measured with cl/device/peak.cl. */
#include "watch/peak.h"

#include <koine/memory.h>
#include <koine/stream.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/threads.h"
#include "rt/command/transfer.h"

#define REPETITIONS 7
#define LONG_ENOUGH 0.004 /* seconds of a repetition */
#define CHAINS 10         /* of fma, in the kernel */
#define COPY_BYTES ((size_t)256 << 20)

typedef enum peak { PEAK_F32, PEAK_F64, PEAK_BYTES, PEAKS } peak;

/* 0: not measured yet. The lock is held while measuring: two measurements at once would share the machine. */
static _Atomic double peaks[KN_MAX_DEVICES][PEAKS];
static kn_mutex lock = KN_MUTEX_INIT;

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

/* The best rate of several runs of a kernel of cl/device/peak.cl, each repeating `work` for LONG_ENOUGH: on a large GPU
 * a copy takes 0.12 ms, the launch and the wait 0.02 ms. */
static kn_status best_rate(kn_device *device, const char *kernel, bool f64, size_t items, const kn_arg args[3],
                           double work, int repetitions, double *rate)
{
    kn_stream *stream = kn_stream_current(device);
    char options[96];
    double best = 0;
    int launches = 1;
    vector_options(options, kn_device_limits(device), f64);
    for (int repetition = 0; repetition < repetitions; repetition++) {
        double start = kn_clock_seconds();
        for (int i = 0; i < launches; i++)
            KN_TRY(kn_run(stream, .source = "device/peak.cl", .options = options, .kernel = kernel, .dims = 1,
                          .global = {items}, .args = args, .num_args = 3));
        KN_TRY(kn_stream_synchronize(stream));
        double seconds = kn_clock_seconds() - start, one = work * launches / seconds;
        best = one > best ? one : best;
        launches = seconds < LONG_ENOUGH ? 4 * launches : launches;
    }
    *rate = best;
    return KN_OK;
}

static kn_status measure_flops(kn_device *device, bool f64, double *rate)
{
    const kn_limits *limits = kn_device_limits(device);
    kn_stream *stream = kn_stream_current(device);
    size_t items = limits->is_cpu ? (size_t)limits->compute_units : (size_t)limits->compute_units * 1024;
    const int64_t most = limits->is_cpu ? 4000000 : 20000;
    int64_t steps = most / 64;
    kn_buffer *sink;
    if (!stream)
        return kn_error_status();
    KN_TRY(kn_buffer_alloc(&sink, stream, items * (f64 ? sizeof(double) : sizeof(float))));
    kn_arg args[] = {kn_arg_buffer(sink, 0), kn_arg_i64(steps), kn_arg_f32(0.5)};
    const double work = 2.0 * CHAINS * vector_width(limits, f64) * (double)items; /* of a step */
    /* Few steps tell how many take long enough: the most would take minutes on a slow device. The first compiles. */
    kn_status status = best_rate(device, "fma_peak", f64, items, args, work * (double)steps, 2, rate);
    const double enough = 2 * LONG_ENOUGH * *rate / work;
    steps = enough > (double)most ? most : enough > (double)steps ? (int64_t)enough : steps;
    args[1] = kn_arg_i64(steps);
    if (status == KN_OK)
        status = best_rate(device, "fma_peak", f64, items, args, work * (double)steps, REPETITIONS, rate);
    kn_buffer_free(sink);
    return status;
}

static kn_status measure_copy(kn_device *device, const kn_buffer *from, kn_buffer *to, size_t bytes, double *rate)
{
    const kn_limits *limits = kn_device_limits(device);
    int64_t vectors = (int64_t)(bytes / sizeof(float)) / vector_width(limits, false);
    const kn_arg args[] = {kn_arg_buffer(from, 0), kn_arg_buffer(to, 0), kn_arg_i64(vectors)};
    return best_rate(device, "copy_peak", false, kn_work_items(limits, vectors, 1), args, 2.0 * (double)bytes,
                     REPETITIONS, rate);
}

/* Bytes that the pool may still allocate within the device's limit and the process's fraction. */
static kn_status room_for_copy(kn_device *device, uint64_t *room)
{
    uint64_t total, reserved = kn_memory_reserved(device);
    KN_TRY(kn_mem_get_info(device, room, &total));
    double share = kn_get_per_process_memory_fraction(device) * (double)total - (double)reserved;
    if (share < (double)*room)
        *room = share > 0 ? (uint64_t)share : 0;
    return KN_OK;
}

static kn_status measure_bytes(kn_device *device, double *rate)
{
    const kn_limits *limits = kn_device_limits(device);
    kn_stream *stream = kn_stream_current(device);
    size_t bytes = COPY_BYTES;
    const float zero = 0;
    kn_buffer *from = NULL, *to = NULL;
    uint64_t free_bytes;
    if (!stream)
        return kn_error_status();
    KN_TRY(room_for_copy(device, &free_bytes));
    while (bytes > limits->max_allocation || bytes > limits->global_memory / 16 || bytes > free_bytes / 4)
        bytes /= 2;
    bytes = bytes < 4096 ? 4096 : bytes;
    kn_status status = kn_buffer_alloc(&from, stream, bytes);
    if (status == KN_OK)
        status = kn_buffer_alloc(&to, stream, bytes);
    if (status == KN_OK)
        status = kn_buffer_fill(stream, from, 0, &zero, sizeof zero, bytes);
    if (status == KN_OK) /* its pages must exist before the first run */
        status = kn_buffer_fill(stream, to, 0, &zero, sizeof zero, bytes);
    if (status == KN_OK)
        status = measure_copy(device, from, to, bytes, rate);
    kn_buffer_free(from);
    kn_buffer_free(to);
    return status;
}

/* The peak, measured if not known yet. */
static kn_status find(kn_device *device, peak which, double *rate)
{
    _Atomic double *kept = &peaks[kn_device_slot(device)][which];
    kn_status status = KN_OK;
    kn_lock(&lock);
    *rate = atomic_load(kept);
    if (*rate == 0) {
        status = which == PEAK_BYTES ? measure_bytes(device, rate) : measure_flops(device, which == PEAK_F64, rate);
        if (status == KN_OK)
            atomic_store(kept, *rate);
    }
    kn_unlock(&lock);
    return status;
}

kn_status kn_peak_flops(kn_device *device, bool f64, double *flops_per_second)
{
    return find(device, f64 ? PEAK_F64 : PEAK_F32, flops_per_second);
}

kn_status kn_peak_bytes(kn_device *device, double *bytes_per_second)
{
    return find(device, PEAK_BYTES, bytes_per_second);
}

double kn_peak_known_flops(const kn_device *device, bool f64)
{
    return atomic_load(&peaks[kn_device_slot(device)][f64 ? PEAK_F64 : PEAK_F32]);
}

double kn_peak_known_bytes(const kn_device *device) { return atomic_load(&peaks[kn_device_slot(device)][PEAK_BYTES]); }
