/* rt/device/limits.c - queries the device limits that ops depend on. */
#include "rt/device/limits.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "rt/device/query.h"

/* From cl_ext.h; named here because older headers lack them. */
#define NV_COMPUTE_CAPABILITY_MAJOR 0x4000
#define NV_COMPUTE_CAPABILITY_MINOR 0x4001
#define AMD_SIMD_PER_COMPUTE_UNIT 0x4040
#define AMD_SIMD_WIDTH 0x4041
#define AMD_SIMD_INSTRUCTION_WIDTH 0x4042

/* "OpenCL 3.0 PoCL ..." or "OpenCL C 1.2 ..." gives 300 or 120. */
static int parse_version(const char *text)
{
    int major = 1, minor = 0;
    const char *digits = strpbrk(text, "0123456789");
    if (!digits || sscanf(digits, "%d.%d", &major, &minor) < 1)
        return 100;
    return major * 100 + minor * 10;
}

int kn_query_version(const kn_device *device) { return parse_version(device->properties.opencl_version); }

/* OpenCL has no query for this. A CPU device is the processor that this code runs on. */
static int count_vector_registers(const kn_limits *limits)
{
#if defined(__aarch64__) || defined(_M_ARM64)
    bool arm = true;
#else
    bool arm = false;
#endif
    return limits->is_cpu && (arm || limits->vector_width_f32 >= 16) ? 32 : 16;
}

static bool multiplies_pairs(const kn_device *device)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return device->limits.is_cpu && device->limits.vector_width_f32 >= 16 && device->quirks.takes_assembly &&
           __builtin_cpu_supports("avx512bf16");
#else
    (void)device;
    return false;
#endif
}

/* OpenCL tells the size of one cache, but not whose it is. The system's answers may be 0, as on Arm. */
static void query_caches(kn_limits *limits)
{
    long first = 0, second = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
    if (limits->is_cpu) {
        first = sysconf(_SC_LEVEL1_DCACHE_SIZE);
        second = sysconf(_SC_LEVEL2_CACHE_SIZE);
    }
#endif
    limits->first_cache = first > 0 ? (size_t)first : 0;
    limits->core_cache = second > 0 ? (size_t)second : 1 << 20;
}

static int at_least_one(uint64_t number) { return number < 1 ? 1 : (int)number; }

static void query_capability(kn_query *query, kn_device *device)
{
    kn_limits *limits = &device->limits;
    if (kn_has_word(device->extensions, "cl_nv_device_attribute_query")) {
        limits->capability_major = (int)kn_query_number(query, NV_COMPUTE_CAPABILITY_MAJOR);
        limits->capability_minor = (int)kn_query_number(query, NV_COMPUTE_CAPABILITY_MINOR);
        limits->ptx_capability = 10 * limits->capability_major + limits->capability_minor;
        return;
    }
    char *text = kn_query_string(query, CL_DEVICE_OPENCL_C_VERSION);
    int version = parse_version(text);
    limits->capability_major = version / 100;
    limits->capability_minor = version / 10 % 10;
    kn_query_free(text);
}

/* A compute unit is a multiprocessor of NVIDIA's, 64 to 128 lanes, a pair of vector units of AMD's, 64, or an execution
 * unit of Intel's, 8. */
static int count_lanes(const kn_query *query, const kn_device *device)
{
    const kn_limits *limits = &device->limits;
    kn_query attempt = {.id = query->id}; /* a driver that does not know its lanes is not refused */
    if (!limits->is_gpu)
        return limits->vector_width_f32;
    if (limits->ptx_capability > 0)
        return limits->ptx_capability == 60 || (limits->ptx_capability >= 70 && limits->ptx_capability <= 80) ? 64
                                                                                                              : 128;
    if (kn_has_word(device->extensions, "cl_intel_device_attribute_query"))
        return 8;
    if (kn_has_word(device->extensions, "cl_amd_device_attribute_query")) {
        const uint64_t lanes = kn_query_number(&attempt, AMD_SIMD_PER_COMPUTE_UNIT) *
                               kn_query_number(&attempt, AMD_SIMD_WIDTH) *
                               kn_query_number(&attempt, AMD_SIMD_INSTRUCTION_WIDTH);
        if (attempt.error == CL_SUCCESS && lanes >= 16 && lanes <= 1024)
            return (int)lanes;
    }
    return 64;
}

void kn_query_limits(kn_query *query, kn_device *device)
{
    kn_limits *limits = &device->limits;
    cl_device_type type = (cl_device_type)kn_query_number(query, CL_DEVICE_TYPE);
    limits->is_cpu = type & CL_DEVICE_TYPE_CPU;
    limits->is_gpu = type & CL_DEVICE_TYPE_GPU;
    limits->has_f64 = kn_query_number_if_known(query, CL_DEVICE_DOUBLE_FP_CONFIG) != 0 ||
                      kn_has_word(device->extensions, "cl_khr_fp64");
    limits->has_f16 = kn_has_word(device->extensions, "cl_khr_fp16") || device->quirks.f16_unannounced;
    limits->has_subgroups = kn_has_word(device->extensions, "cl_khr_subgroups");
    limits->has_entries = limits->is_cpu && device->quirks.runs_in_process;
    limits->rounds_division = kn_query_number(query, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    limits->unified_memory = kn_query_number_if_known(query, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0; /* not in 2.0 */
    limits->opencl_version = kn_query_version(device);
    limits->shares_memory =
        limits->opencl_version >= 200 &&
        kn_query_number_if_known(query, CL_DEVICE_SVM_CAPABILITIES) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
    limits->compute_units = at_least_one(kn_query_number(query, CL_DEVICE_MAX_COMPUTE_UNITS));
    limits->clock_mhz = (int)kn_query_number(query, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    limits->vector_width_f32 = at_least_one(kn_query_number(query, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT));
    limits->vector_width_f64 = at_least_one(kn_query_number(query, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE));
    limits->max_work_group_size = (size_t)kn_query_number(query, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    limits->local_memory = (size_t)kn_query_number(query, CL_DEVICE_LOCAL_MEM_SIZE);
    limits->argument_bytes = (size_t)kn_query_number_if_known(query, CL_DEVICE_MAX_PARAMETER_SIZE);
    limits->address_align = (size_t)at_least_one(kn_query_number(query, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);
    limits->global_memory = kn_query_number(query, CL_DEVICE_GLOBAL_MEM_SIZE);
    limits->max_allocation = kn_query_number(query, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    limits->vector_registers = count_vector_registers(limits);
    limits->multiplies_pairs = multiplies_pairs(device);
    query_caches(limits);
    limits->global_cache = kn_query_number(query, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    query_capability(query, device);
    limits->lanes_per_unit = count_lanes(query, device);
}
