/* rt/device/limits.h - a device's capabilities, queried once. Ops depend on these, never on a vendor's name. */
#pragma once

#include <koine/common.h>

typedef struct kn_limits {
    bool is_cpu; /* a CPU device: few work-items with long loops and explicit vectors; no local memory, no barriers */
    bool is_gpu;
    bool has_f64; /* double arithmetic */
    bool has_f16; /* half arithmetic (half storage works everywhere through vload_half) */
    bool has_subgroups;
    bool has_entries; /* the host can call kernels (rt/direct/direct.h), which get addresses instead of memory objects
                             (cl/common/gathered.clh) */
    bool rounds_division; /* f32 division and square root are correctly rounded if a program asks for it */
    bool unified_memory;  /* the device's memory is the host's */
    bool shares_memory;   /* fine-grained SVM: between commands the host may use it without mapping */
    int opencl_version;   /* 120, 200, 300, ... */
    int capability_major, capability_minor; /* NVIDIA's compute capability; else the OpenCL C version */
    int ptx_capability; /* for PTX in kernels: 10 times NVIDIA's compute capability, 80 for 8.0; else 0 */
    int slot;           /* the device's slot, under which measurements are stored; 0: none */
    int compute_units;
    int lanes_per_unit; /* f32 multiply-adds per clock of a compute unit, about: to compare GPUs, nothing else */
    int clock_mhz;
    int vector_width_f32; /* native, in elements: 16 with AVX-512, 8 with AVX2, 4 with NEON, 1 on most GPUs */
    int vector_width_f64;
    int vector_registers;       /* of a CPU device: 32 with AVX-512 and on 64-bit Arm, 16 elsewhere; of others 16 */
    bool multiplies_pairs;      /* a CPU device that adds two products of bf16 to an f32 at a time (AVX512_BF16) */
    size_t max_work_group_size; /* work-items */
    size_t core_cache;          /* of a CPU device: bytes of the largest cache that a core has for itself, about */
    size_t first_cache;         /* of a CPU device: bytes of a core's first cache of data; 0: unknown */
    uint64_t global_cache;      /* bytes of the global memory's cache, the largest there is; 0: unknown */
    size_t local_memory;        /* bytes per work-group */
    size_t argument_bytes;      /* of a kernel's arguments, in all; 0: unknown */
    size_t address_align;       /* bytes: alignment of buffers and of sub-allocations */
    uint64_t global_memory;     /* bytes */
    uint64_t max_allocation;    /* bytes of one buffer */
} kn_limits;

/* Elements of the vectors that CPU kernels are written in: 16, 8 or 4 of f32, half as many of f64. */
static inline int kn_limits_vector_width(const kn_limits *limits, bool f64)
{
    int width = f64 ? limits->vector_width_f64 : limits->vector_width_f32, widest = f64 ? 8 : 16;
    return width >= widest ? widest : width >= widest / 2 ? widest / 2 : widest / 4;
}

/* Does the processor take vectors of 16 floats in two halves (Zen 4)? Then multiply-adds are as dear as with vectors of
 * 8, next to loads and to what it takes to have fewer of them. Where they are taken whole the first cache is of 48 KiB,
 * but for processors of 2017 to 2020, for which this is wrong. */
static inline bool kn_limits_halves_vectors(const kn_limits *limits)
{
    return limits->vector_width_f32 >= 16 && limits->first_cache > 0 && limits->first_cache < 48 << 10;
}
