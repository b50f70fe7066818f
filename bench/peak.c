/* peak.c - the device's limits, measured with cl/bench/peak.cl: what benchmarks are held against. */
#include <stdio.h>

#include "bench.h"
#include "rt/rt.h"
#include "tensor/tensor.h"

#define REPETITIONS 7

static int vector_width(const kn_limits *limits, kn_dtype dtype)
{
    int width = dtype == KN_F64 ? limits->vector_width_f64 : limits->vector_width_f32;
    return width > 16 ? 16 : width;
}

static void vector_options(char options[96], const kn_limits *limits, kn_dtype dtype)
{
    int width = vector_width(limits, dtype);
    if (width > 1)
        snprintf(options, 96, "%s -DV=%s%d", kn_dtype_options(dtype), kn_dtype_cl(dtype), width);
    else
        snprintf(options, 96, "%s -DV=%s", kn_dtype_options(dtype), kn_dtype_cl(dtype));
}

kn_status bench_peak_flops(kn_device *device, kn_dtype dtype, double *flops_per_second)
{
    const kn_limits *limits = kn_device_limits(device);
    char options[96];
    vector_options(options, limits, dtype);
    size_t items = limits->is_cpu ? (size_t)limits->compute_units : (size_t)limits->compute_units * 1024;
    int64_t steps = limits->is_cpu ? 4000000 : 20000, shape = (int64_t)items;
    double best = 0;
    KN_SCOPE
    {
        kn_tensor *sink = kn_empty_with(1, &shape, &(kn_tensor_options){.dtype = dtype, .device = device});
        if (!sink)
            return kn_error_status();
        for (int repetition = 0; repetition < REPETITIONS; repetition++) {
            double start = bench_now();
            kn_status status =
                kn_run(kn_tensor_stream(sink), .source = "bench/peak.cl", .options = options, .kernel = "fma_peak",
                       .dims = 1, .global = {items}, KN_ARGS(kn_arg_tensor(sink), kn_arg_i64(steps), kn_arg_f32(0.5)));
            if (status == KN_OK)
                status = kn_synchronize(device);
            if (status != KN_OK)
                return status;
            double rate =
                2.0 * 10 * vector_width(limits, dtype) * (double)steps * (double)items / (bench_now() - start);
            best = rate > best ? rate : best;
        }
    }
    *flops_per_second = best;
    return KN_OK;
}

kn_status bench_peak_bytes(kn_device *device, double *bytes_per_second)
{
    const kn_limits *limits = kn_device_limits(device);
    char options[96];
    vector_options(options, limits, KN_F32);
    const int64_t elements = (int64_t)1 << 26, vectors = elements / vector_width(limits, KN_F32);
    double best = 0;
    KN_SCOPE
    {
        kn_tensor *from = kn_zeros_with(1, &elements, &(kn_tensor_options){.device = device});
        kn_tensor *to = kn_zeros_with(1, &elements, &(kn_tensor_options){.device = device});
        if (!from || !to)
            return kn_error_status();
        for (int repetition = 0; repetition < REPETITIONS; repetition++) {
            double start = bench_now();
            kn_status status = kn_run(kn_tensor_stream(to), .source = "bench/peak.cl", .options = options,
                                      .kernel = "copy_peak", .dims = 1, .global = {kn_work_items(limits, vectors, 1)},
                                      KN_ARGS(kn_arg_tensor(from), kn_arg_tensor(to), kn_arg_i64(vectors)));
            if (status == KN_OK)
                status = kn_synchronize(device);
            if (status != KN_OK)
                return status;
            double rate = 2.0 * 4 * (double)elements / (bench_now() - start);
            best = rate > best ? rate : best;
        }
    }
    *bytes_per_second = best;
    return KN_OK;
}
