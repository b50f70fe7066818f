/* rt/device/quirks.c - the table of quirks: which drivers, which versions, and the evidence. */
#include "rt/device/quirks.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain_numbers.h"
#include "base/text.h"

typedef struct quirk_row {
    const char *platform; /* part of the platform's name */
    bool whole;           /* all of it */
    double first, last;   /* driver versions it holds for; 0: open */
    size_t quirk;         /* which member of kn_quirks: all are bools */
    const char *evidence;
} quirk_row;

#define QUIRK(member) .quirk = offsetof(kn_quirks, member) / sizeof(bool)

static const quirk_row rows[] = {
    {.platform = "Portable Computing Language",
     QUIRK(caches_programs),
     .evidence = "PoCL 3.1: a 30-kernel program builds from PoCL's cache in 18 ms; fetching its binary first compiles "
                 "every kernel for all local sizes, 925 ms. docs/platforms.md"},
    {.platform = "Portable Computing Language",
     QUIRK(compiles_at_first_launch),
     .evidence = "PoCL 3.1: a program that launches one new kernel and returns from main ended in SIGSEGV, 40 times "
                 "of 40, inside clang in a thread of PoCL's. tests/rt/stream/test_exit.c, docs/platforms.md"},
    {.platform = "Portable Computing Language",
     QUIRK(compiles_each_local_size),
     .evidence = "PoCL 3.1: the tests that simulate a GPU compiled conv_im2col for 21 local sizes from 64 to 2048. "
                 "docs/platforms.md"},
    {.platform = "Portable Computing Language",
     .last = 5.9,
     QUIRK(confuses_sizes),
     .evidence =
         "PoCL 3.1: `pocl_release_dlhandle_cache: Assertion `found->ref_count > 0' failed` with eight queues, "
         "on seven of which a kernel runs when it is enqueued on the last with more work-items than ever before; "
         "not with 6.0. tests/rt/stream/test_concurrent_sizes.c, docs/platforms.md"},
    {.platform = "Portable Computing Language",
     .first = 3.1,
     .last = 3.1,
     QUIRK(reads_long_header),
     .evidence = "PoCL 3.1 with LLVM 15 on a Xeon: a one-line kernel takes 27 ms of CPU time from PoCL's cache, 12 ms "
                 "with the declarations of src/rt/program/builtins.c instead. docs/platforms.md"},
    {.platform = "Portable Computing Language",
     QUIRK(splits_vectors),
     .evidence = "PoCL 3.1: vload16 of floats is 26 instructions of LLVM's, vstore16 40, which become three stores. "
                 "With one each, the CNN's cold start takes 5.0 s instead of 5.7 s. docs/startup.md"},
    {.platform = "Portable Computing Language",
     QUIRK(runs_in_process),
     .evidence = "PoCL 3.1 on two cores of a Xeon: a launch takes 3.3 us as a command of the driver and 0.7 us as a "
                 "call, relu of 2^16 floats 10.4 and 4.7 us. docs/platforms.md"},
    {.platform = "Portable Computing Language",
     QUIRK(takes_assembly),
     .evidence = "PoCL 3.1 and 6.0 multiply by `vdpbf16ps` on a Zen 4. Intel's driver, which compiles to SPIR-V first: "
                 "`invalid output constraint '+v' in asm`. tests/ops/test_pairs.c"},
    {.platform = "NVIDIA CUDA",
     .first = 520,
     QUIRK(f16_unannounced),
     .evidence = "Half arithmetic works with `#define cl_khr_fp16` from driver 520 on though the extension is not "
                 "listed. docs/platforms.md"},
    {.platform = "NVIDIA CUDA",
     QUIRK(gives_larger_buffers),
     .evidence = "GeForce GTX 1050: a buffer of 759 MB although the reported maximum is 512 MB, "
                 "https://github.com/adda-team/adda/issues/229"},
    {.platform = "NVIDIA CUDA",
     QUIRK(allocates_lazily),
     .evidence = "Out of memory comes from clEnqueueNDRangeKernel, as CL_MEM_OBJECT_ALLOCATION_FAILURE, not from "
                 "clCreateBuffer, https://github.com/hashcat/hashcat/issues/1640"},
    {.platform = "Intel(R) OpenCL Graphics", /* not their CPU driver, which refuses the option */
     QUIRK(large_buffers_on_demand),
     .evidence = "Arc: no buffer above 4 GiB without CL_MEM_ALLOW_UNRESTRICTED_SIZE_INTEL, and wrong results without "
                 "-cl-intel-greater-than-4GB-buffer-required, which costs speed, "
                 "https://github.com/intel/compute-runtime/issues/627"},
    {.platform = "Intel(R) OpenCL", /* for CPUs */
     .whole = true,
     QUIRK(fails_in_exit_after_fork),
     .evidence = "2026.22: a child forked while threads of its parent used the device hung in exit, in dll_fini, "
                 "FinishAllActiveQueues, task_group_base::wait of TBB. tests/rt/stream/test_fork.c, docs/platforms.md"},
    {.platform = "Intel(R) OpenCL", /* for CPUs */
     .whole = true,
     QUIRK(runs_in_process),
     .evidence = "2026.22 on two cores of a Xeon: a launch takes 2.4 us as a command of the driver and 0.9 us as a "
                 "call, relu of 2^18 floats 17.7 and 14.0 us. docs/platforms.md"},
    {.platform = "Intel(R) OpenCL HD Graphics",
     QUIRK(large_buffers_on_demand),
     .evidence = "The same driver until 2022, https://github.com/intel/compute-runtime/issues/627"},
    {.platform = "rusticl",
     QUIRK(drives_any_vendor),
     .evidence =
         "One Radeon under Clover, rusticl and ROCm at once, https://github.com/Khanattila/KNLMeansCL/issues/55"},
    {.platform = "rusticl",
     QUIRK(translates_to_spirv),
     .evidence = "Mesa 25.0.7 with LLVM 19, llvmpipe: koine doctor ended with `InvalidFunctionCall: Unexpected llvm "
                 "intrinsic: llvm.prefetch.p0` of the translator to SPIR-V, test_ops with `InvalidBitWidth: Invalid "
                 "bit width in input: 4`. tests/drivers.sh --only rusticl"},
    {.platform = "rusticl",
     QUIRK(drops_struct_copies),
     .evidence =
         "Mesa 25.0.7, llvmpipe: after `copy = source; source.a = 5;` copy.a is undefined, since "
         "nir_opt_dead_write_vars does not count OpCopyMemorySized as a read of what it copies; with Clang's -O2 "
         "there is no such copy. docs/platforms.md, src/rt/device/struct_copies.c"},
    {.platform = "rusticl",
     QUIRK(fails_in_exit_after_fork),
     .evidence = "Mesa 25.0.7, llvmpipe: SIGSEGV in exit of a forked child, in pthread_join, which Mesa's handler "
                 "calls for the parent's threads. tests/rt/stream/test_fork.c, docs/platforms.md"},
    {.platform = "Clover", QUIRK(drives_any_vendor), .evidence = "As for rusticl."},
    {.platform = "Portable Computing Language",
     QUIRK(drives_any_vendor),
     .evidence = "PoCL built with its CUDA or Level Zero device shows GPUs that their vendors' drivers show, too: "
                 "https://portablecl.org/docs/html/cuda.html"},
    {.platform = "AMD Accelerated Parallel Processing",
     QUIRK(allocation_limit_by_environment),
     .evidence = "8 GB cards: less than 4 GB in one buffer, 4 GB with GPU_SINGLE_ALLOC_PERCENT and "
                 "GPU_MAX_ALLOC_PERCENT at 100, https://github.com/ethereum-mining/ethminer/issues/1966"},
};

kn_quirks kn_quirks_of(const char *platform, const char *driver_version)
{
    kn_quirks found = {0};
    KN_PLAIN_NUMBERS;
    double version = strtod(driver_version, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const quirk_row *row = &rows[i];
        if (row->whole ? strcmp(platform, row->platform) != 0 : !kn_text_contains_nocase(platform, row->platform))
            continue;
        if ((row->first > 0 && version < row->first) || (row->last > 0 && version > row->last))
            continue;
        ((bool *)&found)[row->quirk] = true;
    }
    return found;
}

/* --- large buffers ------------------------------------------------------------------------------------------------ */

#define ALLOW_UNRESTRICTED_SIZE_INTEL ((uint64_t)1 << 23)

static bool wants_large_buffers(const kn_quirks *quirks)
{
    const char *wanted = getenv("KOINE_LARGE_BUFFERS");
    return quirks->large_buffers_on_demand && wanted && *wanted && strcmp(wanted, "0") != 0;
}

void kn_quirk_add_options(kn_text *text, const kn_quirks *quirks)
{
    if (quirks->translates_to_spirv)
        kn_text_append(text, " -DKN_FOR_SPIRV");
    if (quirks->drops_struct_copies) /* Clang's. With -O1 it would also ask, in a wrong form, not to unroll loops. */
        kn_text_append(text, " -O2");
    if (wants_large_buffers(quirks))
        kn_text_append(text, " -cl-intel-greater-than-4GB-buffer-required");
}

uint64_t kn_quirk_buffer_flags(const kn_quirks *quirks, uint64_t bytes, uint64_t max_allocation)
{
    return bytes > max_allocation && wants_large_buffers(quirks) ? ALLOW_UNRESTRICTED_SIZE_INTEL : 0;
}

const char *kn_quirk_larger_buffers(const kn_quirks *quirks, uint64_t max_allocation, uint64_t memory)
{
    if (max_allocation >= memory / 4 * 3)
        return NULL;
    if (quirks->large_buffers_on_demand)
        return wants_large_buffers(quirks) ? NULL : "KOINE_LARGE_BUFFERS=1 allows larger ones, with slower kernels";
    return quirks->allocation_limit_by_environment
               ? "GPU_MAX_ALLOC_PERCENT=100 GPU_SINGLE_ALLOC_PERCENT=100 may allow larger ones"
               : NULL;
}
