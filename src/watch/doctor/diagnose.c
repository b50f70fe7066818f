/* watch/doctor/diagnose.c - the list of findings, and helpers of the probes. */
#include "watch/doctor/diagnose.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/text.h"
#include "base/utf8.h"
#include "rt/device/driver_cache.h"

const kn_driver_row kn_driver_rows[] = {
    {.name = "NVIDIA",
     .library = "libnvidia-opencl.so.1",
     .icd_file = "nvidia.icd",
     .install = "apt-get install nvidia-opencl-icd (Ubuntu: the libnvidia-compute package of your driver's version)",
     .vendor = "NVIDIA",
     .pci_vendor = 0x10de,
     .compilers = {"libnvidia-nvvm.so.4", "libnvidia-ptxjitcompiler.so.1"},
     .in_container = "set NVIDIA_DRIVER_CAPABILITIES=compute,utility and update the container toolkit"},
    {.name = "AMD",
     .library = "libamdocl64.so",
     .icd_file = "amdocl64.icd",
     .install = "apt-get install mesa-opencl-icd, or AMD's own rocm-opencl-runtime",
     .vendor = "Advanced Micro Devices",
     .pci_vendor = 0x1002},
    {.name = "Intel",
     .library = "libigdrcl.so",
     .icd_file = "intel.icd",
     .install = "apt-get install intel-opencl-icd",
     .vendor = "Intel",
     .pci_vendor = 0x8086},
    {.name = "Mesa rusticl",
     .library = "libRusticlOpenCL.so.1",
     .icd_file = "rusticl.icd",
     .install = "apt-get install mesa-opencl-icd"},
    {.name = "PoCL", .library = "libpocl.so.2", .icd_file = "pocl.icd", .install = "apt-get install pocl-opencl-icd"},
    {.name = NULL},
};

char *kn_formatted(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length >= 0 ? kn_malloc((size_t)length + 1) : NULL;
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    if (!text)
        return NULL;
    kn_text printable = {0}; /* it may contain text from files and the environment */
    kn_text_append_printable(&printable, text, true);
    kn_free(text);
    return kn_text_finish(&printable);
}

/* A compiler's log ends with a newline; a sentence does not. */
static void trim_end(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
}

void kn_diagnosis_add(kn_diagnosis *diagnosis, kn_finding_kind kind, char *what, char *remedy)
{
    if (!what || KN_GROW(diagnosis->findings, diagnosis->count, diagnosis->capacity) != KN_OK) {
        diagnosis->failed = true;
        kn_free(what);
        kn_free(remedy);
        return;
    }
    trim_end(what);
    diagnosis->findings[diagnosis->count++] = (kn_finding){.kind = kind, .what = what, .remedy = remedy};
}

int kn_diagnosis_problems(const kn_diagnosis *diagnosis)
{
    int problems = 0;
    for (int i = 0; i < diagnosis->count; i++)
        problems += diagnosis->findings[i].kind == KN_FINDING_PROBLEM;
    return problems;
}

void kn_diagnosis_free(kn_diagnosis *diagnosis)
{
    for (int i = 0; i < diagnosis->count; i++) {
        kn_free(diagnosis->findings[i].what);
        kn_free(diagnosis->findings[i].remedy);
    }
    kn_free(diagnosis->findings);
    *diagnosis = (kn_diagnosis){0};
}

void kn_diagnose_environment(kn_diagnosis *diagnosis)
{
    static const char *const variables[] = {"KOINE_KERNEL_DIR", "KOINE_IMPL", "KOINE_FAIL_ALLOC", "KOINE_FAIL_CL",
                                            "KOINE_FAIL_IO"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            kn_diagnosis_add(diagnosis, KN_FINDING_NOTE, kn_formatted("%s is set to %s", variables[i], value),
                             kn_formatted("it is meant for work on Koine itself; unset it if that is not what you do"));
    }
}

static void check_driver_cache(kn_diagnosis *diagnosis)
{
    kn_driver_cache_prepare();
    char *folder = kn_driver_cache_folder();
    if (folder && !kn_driver_cache_is_usable(folder))
        kn_diagnosis_add(diagnosis, KN_FINDING_PROBLEM,
                         kn_formatted("%s cannot be written: PoCL, the driver for CPUs, does not work without", folder),
                         kn_formatted("make it writable, or set POCL_CACHE_DIR to a folder that is"));
    kn_free(folder);
}

void kn_diagnose_cache(kn_diagnosis *diagnosis)
{
    KN_PRESERVE_ERROR;
    check_driver_cache(diagnosis);
    char *directory = kn_cache_directory();
    if (!directory) {
        kn_diagnosis_add(diagnosis, KN_FINDING_NOTE,
                         kn_formatted("there is no folder for compiled kernels: every run compiles them again"),
                         kn_formatted("set HOME, or KOINE_CACHE_DIR to a folder that can be written"));
        return;
    }
    const char *objection = kn_folder_objection(directory);
    if (objection) {
        kn_diagnosis_add(
            diagnosis, KN_FINDING_PROBLEM,
            kn_formatted("compiled kernels are not cached in %s, because %s: every run compiles its kernels again",
                         directory, objection),
            kn_formatted("chmod go-w it, or set KOINE_CACHE_DIR to a folder of your own"));
    } else if (kn_make_private_directories(directory) == KN_OK && access(directory, W_OK | X_OK) == 0) {
        kn_diagnosis_add(diagnosis, KN_FINDING_GOOD, kn_formatted("compiled kernels are kept in %s", directory), NULL);
    } else {
        kn_diagnosis_add(
            diagnosis, KN_FINDING_NOTE,
            kn_formatted("%s cannot be written: every run compiles its kernels again, which takes seconds", directory),
            kn_formatted("make it writable, or set KOINE_CACHE_DIR to a folder that is"));
    }
    kn_free(directory);
}

/* --- what the probes share -------------------------------------------------------------------- */

const char *kn_probe_path(char buffer[KN_PROBE_PATH], const char *path)
{
    const char *root = kn_trusted_environment("KOINE_DOCTOR_ROOT");
    int length = snprintf(buffer, KN_PROBE_PATH, "%s%s", root ? root : "", path);
    if (length < 0 || length >= KN_PROBE_PATH)
        buffer[0] = '\0';
    return buffer;
}
