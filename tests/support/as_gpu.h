/* support/as_gpu.h - "--as-gpu" for any test program: the kernels and launch shapes that GPUs get, run where there is
 * none; "--tensor-cores": those of a GPU with tensor cores, TF32 allowed; and "--as-avx2", "--as-neon": those that
 * other processors get. */
#ifndef SUPPORT_AS_GPU_H
#define SUPPORT_AS_GPU_H

#include <koine/flags.h>
#include <stdint.h>
#include <string.h>

#include "ops/dispatch/choice.h"
#include "rt/rt.h"
#include "support/full.h"

/* Whether the CPU device plays a GPU. */
static inline bool pretends_gpu(void)
{
    kn_device *device = kn_device_current();
    return kn_device_get_type(device) == KN_DEVICE_CPU && !kn_device_limits(device)->is_cpu;
}

/* How far to go on in a list of sizes: to the next one, or, where a GPU is pretended and its kernels take seconds each,
 * over every other unless all are asked for. */
static inline int next_size(void) { return pretends_gpu() && !test_full() ? 2 : 1; }

/* Tensor cores in TF32, for a device that has none: the test's environment puts code that does what they do in place of
 * their instructions (KOINE_KERNEL_DIR, tests/ops/tensor_cores). */
static inline void pretend_tensor_cores(kn_limits *limits)
{
    if (limits->ptx_capability == 0)
        limits->ptx_capability = 80;
    limits->local_memory = 48 << 10; /* as those that have tensor cores have */
    kn_set_allow_reduced_precision(KN_MATMUL_ALLOW_TF32 | KN_CONV_ALLOW_TF32, true);
}

/* Whether the library may come to choose the row on this kind of device: kernels made for CPUs are of no use to GPUs,
 * and the other way round. The reference, the last row, runs on both. */
static inline bool is_for_device(const kn_implementation_table *table, const kn_implementation *row)
{
    const bool cpu = kn_device_limits(kn_device_current())->is_cpu;
    return row->timed_on == KN_TIMED_ANYWHERE || (row->timed_on == KN_TIMED_ON_CPUS) == cpu ||
           row == &table->rows[table->count - 1];
}

/* Whether the row is what the run is about: where code stands in for the instructions of tensor cores
 * (KOINE_KERNEL_DIR), those that use them, and the reference; the others compute what they do without. */
static inline bool is_in_question(const kn_implementation_table *table, const kn_implementation *row)
{
    return !getenv("KOINE_KERNEL_DIR") || row->works || row == &table->rows[table->count - 1];
}

/* Whether to force the row: the flags let it run, and the device has the units that it tries out. Without
 * KOINE_TEST_FULL=1 it is also made for such a device (KOINE_IMPL can force it on others), and in question. */
static inline bool can_force(const kn_implementation_table *table, const kn_implementation *row)
{
    const kn_limits *limits = kn_device_limits(kn_device_current());
    return kn_implementation_allowed(row, kn_implementation_flags(table)) &&
           (!row->works || limits->ptx_capability >= 80) &&
           (test_full() || (is_for_device(table, row) && is_in_question(table, row)));
}

/* The portable floor of limits. */
static inline void pretend_gpu(kn_limits *limits)
{
    limits->is_cpu = false;
    limits->is_gpu = true;
    limits->unified_memory = false;
    limits->vector_width_f32 = limits->vector_width_f64 = 1;
    limits->vector_registers = 16;
    limits->max_work_group_size = limits->max_work_group_size < 256 ? limits->max_work_group_size : 256;
    limits->local_memory = limits->local_memory < 32768 ? limits->local_memory : 32768;
}

/* With "--as-gpu" or "--tensor-cores" on the command line the library takes every device for a GPU with the portable
 * floor of limits. First thing in main. */
static inline void obey_as_gpu(int argc, char **argv)
{
    const bool tensor_cores = argc > 1 && strcmp(argv[1], "--tensor-cores") == 0;
    if (argc < 2 || (strcmp(argv[1], "--as-gpu") != 0 && !tensor_cores))
        return;
    for (int i = 0; i < kn_device_count(); i++) {
        kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(kn_device_at(i));
        pretend_gpu(limits);
        if (tensor_cores)
            pretend_tensor_cores(limits);
    }
}

/* Vectors of 256 bits and 16 registers, as AVX2 has them, or of 128 and 32, as NEON. */
static inline void pretend_vectors(kn_limits *limits, bool avx2)
{
    limits->vector_width_f32 = avx2 ? 8 : 4;
    limits->vector_width_f64 = avx2 ? 4 : 2;
    limits->vector_registers = avx2 ? 16 : 32;
}

static inline void obey_vector_width(int argc, char **argv)
{
    bool avx2 = argc > 1 && strcmp(argv[1], "--as-avx2") == 0, neon = argc > 1 && strcmp(argv[1], "--as-neon") == 0;
    for (int i = 0; (avx2 || neon) && i < kn_device_count(); i++)
        pretend_vectors((kn_limits *)(uintptr_t)kn_device_limits(kn_device_at(i)), avx2);
}

#endif
