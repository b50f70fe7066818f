/* rt/device/quirks.h - driver behaviour that no query reports. The only place where drivers are distinguished by
 * name. */
#pragma once

#include <koine/common.h>

#include "base/text.h"

typedef struct kn_quirks {
    /* Caches compiled programs itself, and creates binaries slowly: fetching one costs more than rebuilding from its
     * cache. */
    bool caches_programs;
    /* Compiles a kernel in its own thread when the kernel first runs. A process that exits meanwhile crashes, because
     * the compiler's global objects are destroyed while it runs. */
    bool compiles_at_first_launch;
    /* Compiles a kernel anew for each local size, also for those that it chooses itself, which follow the global one:
     * kernels that may run in work-groups of any size run in groups of one size. */
    bool compiles_each_local_size;
    /* Keeps a kernel's code once more for a launch of more work-items than before, and counts the launches that use
     * each copy, but takes one for another when a launch ends: if launches of different sizes run at a time, the count
     * may fall below 0, and the process is aborted. */
    bool confuses_sizes;
    /* Supports f16 arithmetic without announcing the extension. */
    bool f16_unannounced;
    /* Allows buffers larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE, so that figure does not explain a failure. */
    bool gives_larger_buffers;
    /* Allocates a buffer's memory on first use: running out of memory would appear in some later kernel. So the pool
     * uses each buffer immediately. */
    bool allocates_lazily;
    /* Allows buffers of more than CL_DEVICE_MAX_MEM_ALLOC_SIZE only with a special flag and a compile option that makes
     * all kernels slower: both are used with KOINE_LARGE_BUFFERS=1. */
    bool large_buffers_on_demand;
    /* Declares OpenCL C's functions in a header of all functions for all types, and compiles it with every program. The
     * option KN_QUIRK_NO_HEADER makes it empty. */
    bool reads_long_header;
    /* Its vload and vstore are several accesses to parts of a vector, and shuffles: tens of instructions, which an
     * optimiser joins again at best, and which take time to compile. */
    bool splits_vectors;
    /* Drives GPUs of several vendors: for a GPU that it shows beside its vendor's driver, the latter is used. */
    bool drives_any_vendor;
    /* CL_DEVICE_MAX_MEM_ALLOC_SIZE depends on environment variables of the driver. */
    bool allocation_limit_by_environment;
    /* Its compiler ends the process where LLVM's code has no translation to SPIR-V: at __builtin_prefetch, and at the
     * integers of as many bits as a vector has elements that LLVM makes of __builtin_reduce_and. */
    bool translates_to_spirv;
    /* Its compiler drops writes to a struct that is copied and then written again, unless an optimiser has replaced the
     * copy. A trial finds out whether it does (rt/device/struct_copies.h). */
    bool drops_struct_copies;
    /* Its own handler in exit waits for commands or threads; a forked child, which has none, hangs or crashes in it. */
    bool fails_in_exit_after_fork;
    /* Of a CPU device: a kernel is code in this process's memory, linked by the system's linker, and may be called as a
     * C function is; a memory object is memory of this process, and stays where it is. */
    bool runs_in_process;
    /* Of a CPU device: kernels are compiled for its processor at once, so they may contain assembly for it. */
    bool takes_assembly;
} kn_quirks;

/* The quirks of a platform's driver: all rows of the table that match. */
kn_quirks kn_quirks_of(const char *platform, const char *driver_version);

/* Of reads_long_header: the include guard of Clang's opencl-c.h. */
#define KN_QUIRK_NO_HEADER "-D_OPENCL_H_"

/* Options for all programs, each after a space. */
void kn_quirk_add_options(kn_text *text, const kn_quirks *quirks);

/* For large_buffers_on_demand: the cl_mem_flags for a buffer. */
uint64_t kn_quirk_buffer_flags(const kn_quirks *quirks, uint64_t bytes, uint64_t max_allocation);

/* How to get buffers larger than max_allocation on a device with this much memory, for a message; NULL if
 * impossible. */
const char *kn_quirk_larger_buffers(const kn_quirks *quirks, uint64_t max_allocation, uint64_t memory);
