/* support/as_gpu.h - "--as-gpu" for any test program: the kernels and launch shapes that GPUs get, run where there is
 * none; and "--as-avx2", "--as-neon": those that other processors get. */
#ifndef SUPPORT_AS_GPU_H
#define SUPPORT_AS_GPU_H

#include <stdint.h>
#include <string.h>

#include "rt/rt.h"

/* With "--as-gpu" on the command line the library takes every device for a GPU with the portable floor of limits. First
 * thing in main. */
static inline void obey_as_gpu(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--as-gpu") != 0)
        return;
    for (int i = 0; i < kn_device_count(); i++) {
        kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(kn_device_at(i));
        limits->is_cpu = false;
        limits->is_gpu = true;
        limits->vector_width_f32 = limits->vector_width_f64 = 1;
        limits->vector_registers = 16;
        limits->max_work_group_size = limits->max_work_group_size < 256 ? limits->max_work_group_size : 256;
        limits->local_memory = limits->local_memory < 32768 ? limits->local_memory : 32768;
    }
}

static inline void obey_vector_width(int argc, char **argv)
{
    bool avx2 = argc > 1 && strcmp(argv[1], "--as-avx2") == 0, neon = argc > 1 && strcmp(argv[1], "--as-neon") == 0;
    for (int i = 0; (avx2 || neon) && i < kn_device_count(); i++) {
        kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(kn_device_at(i));
        limits->vector_width_f32 = avx2 ? 8 : 4;
        limits->vector_width_f64 = avx2 ? 4 : 2;
        limits->vector_registers = avx2 ? 16 : 32;
    }
}

#endif
