/* support/as_gpu.h - options of all test programs: "--as-gpu" runs GPU kernels and launch shapes on a CPU device,
 * "--tensor-cores" those of a GPU with tensor cores and TF32 allowed, "--as-avx2" and "--as-neon" those of other
 * processors. */
#pragma once

#include <koine/flags.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/dispatch/choice.h"
#include "rt/rt.h"
#include "support/full.h"

/* Is the CPU device simulating a GPU? */
static inline bool simulates_gpu(void)
{
    kn_device *device = kn_device_current();
    return kn_device_get_type(device) == KN_DEVICE_CPU && !kn_device_limits(device)->is_cpu;
}

static bool simulates_vectors; /* of another processor */

/* The step through a list of sizes: 1, or 2 if a GPU or another processor is simulated, whose kernels no other test
 * compiles, unless KOINE_TEST_FULL is set. */
static inline int next_size(void) { return (simulates_gpu() || simulates_vectors) && !test_full() ? 2 : 1; }

/* The portable minimum of limits. */
static inline void simulate_gpu(kn_limits *limits)
{
    limits->is_cpu = limits->has_entries = limits->multiplies_pairs = false;
    limits->is_gpu = true;
    limits->unified_memory = false;
    limits->vector_width_f32 = limits->vector_width_f64 = 1;
    limits->vector_registers = 16;
    limits->max_work_group_size = limits->max_work_group_size < 256 ? limits->max_work_group_size : 256;
    limits->local_memory = limits->local_memory < 32768 ? limits->local_memory : 32768;
}

/* Tensor cores in TF32, for a device without them: the test's environment emulates their instructions
 * (KOINE_KERNEL_DIR, tests/ops/tensor_cores). */
#define EMULATION_BYTES ((size_t)64 << 10)
static inline void simulate_tensor_cores(kn_limits *limits)
{
    if (limits->ptx_capability == 0 && limits->local_memory < EMULATION_BYTES) {
        printf("skipped: emulated tensor cores need 64 KiB of local memory\n");
        exit(77);
    }
    simulate_gpu(limits);
    if (limits->ptx_capability == 0)
        limits->ptx_capability = 80;
    limits->local_memory = 48 << 10; /* like devices with tensor cores */
    kn_set_allow_reduced_precision(KN_MATMUL_ALLOW_TF32 | KN_CONV_ALLOW_TF32, true);
}

/* Can the library choose the row on this kind of device? CPU kernels are not used on GPUs, and vice versa. The
 * reference, the last row, runs on both. */
static inline bool is_for_device(const kn_implementation_table *table, const kn_implementation *row)
{
    const bool cpu = kn_device_limits(kn_device_current())->is_cpu;
    return row->timed_on == KN_TIMED_ANYWHERE || (row->timed_on == KN_TIMED_ON_CPUS) == cpu ||
           row == &table->rows[table->count - 1];
}

/* Is the row relevant to this run? With emulated tensor cores (KOINE_KERNEL_DIR) only rows that use them, and the
 * reference; the others are unaffected. */
static inline bool is_in_question(const kn_implementation_table *table, const kn_implementation *row)
{
    return !getenv("KOINE_KERNEL_DIR") || row->works || row == &table->rows[table->count - 1];
}

/* Should the row be forced? The flags must allow it, and its `works` check must pass. Without KOINE_TEST_FULL=1 it must
 * also be meant for such a device (KOINE_IMPL can force it on others), and relevant. */
static inline bool can_force(const kn_implementation_table *table, const kn_implementation *row)
{
    const kn_limits *limits = kn_device_limits(kn_device_current());
    return kn_implementation_allowed(row, kn_implementation_flags(table)) &&
           (!row->works || limits->ptx_capability >= 80 || limits->is_cpu) &&
           (test_full() || (is_for_device(table, row) && is_in_question(table, row)));
}

/* The same of the row that has this name. */
static inline bool can_force_row(const char *operation, const char *name)
{
    const kn_implementation_table *table = kn_implementation_table_find(operation);
    for (int i = 0; table && i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return can_force(table, &table->rows[i]);
    printf("%s has no row %s\n", operation, name);
    exit(1);
}

/* With "--as-gpu" or "--tensor-cores" on the command line the library treats every device as a GPU with minimal limits.
 * Call it first in main. */
static inline void obey_as_gpu(int argc, char **argv)
{
    const bool tensor_cores = argc > 1 && strcmp(argv[1], "--tensor-cores") == 0;
    if (argc < 2 || (strcmp(argv[1], "--as-gpu") != 0 && !tensor_cores))
        return;
    for (int i = 0; i < kn_device_count(); i++) {
        kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(kn_device_at(i));
        if (tensor_cores)
            simulate_tensor_cores(limits);
        else
            simulate_gpu(limits);
    }
}

/* 256-bit vectors and 16 registers, as with AVX2, or 128-bit and 32, as with NEON. */
static inline void simulate_vectors(kn_limits *limits, bool avx2)
{
    limits->is_cpu = true; /* Oclgrind's device says it is a GPU */
    limits->is_gpu = limits->multiplies_pairs = false;
    limits->vector_width_f32 = avx2 ? 8 : 4;
    limits->vector_width_f64 = avx2 ? 4 : 2;
    limits->vector_registers = avx2 ? 16 : 32;
}

static inline void obey_vector_width(int argc, char **argv)
{
    bool avx2 = argc > 1 && strcmp(argv[1], "--as-avx2") == 0, neon = argc > 1 && strcmp(argv[1], "--as-neon") == 0;
    simulates_vectors = avx2 || neon;
    for (int i = 0; simulates_vectors && i < kn_device_count(); i++)
        simulate_vectors((kn_limits *)(uintptr_t)kn_device_limits(kn_device_at(i)), avx2);
}
