/* rt/device/quirks.h - driver behaviour that no query reports. The one place where drivers are told apart by name. */
#ifndef KN_RT_DEVICE_QUIRKS_H
#define KN_RT_DEVICE_QUIRKS_H

#include <koine/common.h>

typedef struct kn_quirks {
    /* Keeps compiled programs itself, and makes its binaries slowly: fetching one costs more than building again from
     * its cache. */
    bool caches_programs;
    /* Compiles a kernel in its own thread when the kernel first runs. A process that exits meanwhile crashes, because
     * the compiler's global objects are destroyed while it runs. */
    bool compiles_at_first_launch;
    /* Does f16 arithmetic although it does not announce the extension. */
    bool f16_unannounced;
    /* Gives buffers larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE: that figure explains no refusal. */
    bool gives_larger_buffers;
    /* Takes memory for a buffer when it is first used: running out of memory would show in some later kernel. So the
     * pool uses each buffer at once. */
    bool allocates_lazily;
    /* Gives buffers of more than CL_DEVICE_MAX_MEM_ALLOC_SIZE only if they are asked for with a flag of its own and
     * kernels are compiled with an option, which makes all of them slower: with KOINE_LARGE_BUFFERS=1 both are. */
    bool large_buffers_on_demand;
    /* Declares OpenCL C's functions in a header of all functions for all types, and compiles it with every program. The
     * option KN_QUIRK_NO_HEADER makes it empty. */
    bool reads_long_header;
    /* CL_DEVICE_MAX_MEM_ALLOC_SIZE depends on environment variables of the driver. */
    bool allocation_limit_by_environment;
} kn_quirks;

/* The quirks of a platform's driver: all rows of the table that match. */
kn_quirks kn_quirks_of(const char *platform, const char *driver_version);

/* Of reads_long_header: the include guard of Clang's opencl-c.h. */
#define KN_QUIRK_NO_HEADER "-D_OPENCL_H_"

/* Of large_buffers_on_demand: the option for programs, "" for none, and the cl_mem_flags for a buffer. */
const char *kn_quirk_build_option(const kn_quirks *quirks);
uint64_t kn_quirk_buffer_flags(const kn_quirks *quirks, uint64_t bytes, uint64_t max_allocation);

/* How to get buffers larger than max_allocation on a device with so much memory, for a message; NULL where that is not
 * possible. */
const char *kn_quirk_larger_buffers(const kn_quirks *quirks, uint64_t max_allocation, uint64_t memory);

#endif
