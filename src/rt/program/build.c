/* rt/program/build.c - builds a program: from its binary on disk, else from its source. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/device/struct_copies.h"
#include "rt/program/build_progress.h"
#include "rt/program/builtins.h"
#include "rt/program/cold.h"
#include "rt/program/program.h"
#include "rt/program/user_source.h"

/* What takes the place of the driver's own: declarations of its functions, and vload and vstore. */
typedef struct replacement {
    bool declarations, vector_access;
} replacement;

/* User code may call any function, with any overload. */
static replacement replacement_for(const kn_device *device, const kn_program *program)
{
    return (replacement){device->quirks.reads_long_header && !kn_user_source_has_user_code(program->source),
                         device->quirks.splits_vectors};
}

/* The text that is compiled. */
static kn_status program_text(char **text, const kn_device *device, const kn_program *program, replacement ours)
{
    const size_t *group = program->group;
    KN_TRY(kn_kernel_source_text(text, program->source));
    if (!ours.declarations && !ours.vector_access && !group[0])
        return KN_OK;
    kn_text whole = {0};
    const kn_program_words words = {*text, program->options, device->limits.has_f64};
    if (ours.declarations)
        kn_declare_builtins(&whole, &words);
    if (ours.vector_access)
        kn_define_vector_access(&whole, &words);
    if (group[0]) /* a macro that names itself is not expanded again */
        kn_text_format(&whole,
                       "#define __kernel __kernel __attribute__((reqd_work_group_size(%zu, %zu, %zu)))\n"
                       "#define kernel __kernel\n",
                       group[0], group[1], group[2]);
    kn_text_append(&whole, *text);
    kn_free(*text);
    *text = kn_text_finish(&whole);
    return *text ? KN_OK : KN_ERR_MEMORY;
}

static cl_program build_from_binary(kn_device *device, const kn_program *program, const char *key)
{
    size_t size;
    unsigned char *binary = kn_program_cache_load(key, &size);
    if (!binary)
        return NULL;
    cl_int error, loaded;
    cl_program handle = clCreateProgramWithBinary(device->context, 1, &device->id, &size,
                                                  (const unsigned char **)&binary, &loaded, &error);
    if (error == CL_SUCCESS && loaded == CL_SUCCESS)
        error = clBuildProgram(handle, 1, &device->id, program->options, NULL, NULL);
    kn_free(binary);
    if (error == CL_SUCCESS && loaded == CL_SUCCESS)
        return handle;
    if (handle)
        clReleaseProgram(handle);
    kn_log_message(KN_LOG_INFO, "the driver rejected the cached binary of %s: rebuilding it", program->source);
    return NULL;
}

static void store_binary(cl_program handle, const char *key)
{
    KN_PRESERVE_ERROR;
    size_t size = 0;
    if (clGetProgramInfo(handle, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS || size == 0)
        return;
    unsigned char *binary = kn_malloc(size);
    if (binary && clGetProgramInfo(handle, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
        kn_program_cache_store(key, binary, size);
    kn_free(binary);
}

static kn_status build_from_source(cl_program *result, kn_device *device, const kn_program *program, const char *text)
{
    cl_int error;
    cl_program handle = clCreateProgramWithSource(device->context, 1, &text, NULL, &error);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "creating a program from %s", program->source);
    error = clBuildProgram(handle, 1, &device->id, program->options, NULL, NULL);
    if (error != CL_SUCCESS) {
        kn_status status = kn_fail_build(device, program, handle, error, text);
        clReleaseProgram(handle);
        return status;
    }
    *result = handle;
    return KN_OK;
}

/* KOINE_PROGRAM_CACHE=1 or 0, else unless the driver does it itself. */
static bool use_disk_cache(const kn_device *device)
{
    const char *wanted = getenv("KOINE_PROGRAM_CACHE");
    return wanted && *wanted ? strcmp(wanted, "0") != 0 : !device->quirks.caches_programs;
}

bool kn_programs_are_kept(const kn_device *device) { return device->quirks.caches_programs || use_disk_cache(device); }

/* Variables with which PoCL makes other code. */
static const char *const code_variables[] = {"POCL_EXTRA_BUILD_FLAGS", "POCL_LLVM_CPU_NAME", "POCL_WORK_GROUP_METHOD"};

static void cache_key(char key[KN_HASH_TEXT], const kn_device *device, const kn_program *program, const char *text)
{
    const kn_device_properties *p = &device->properties;
    const char *const parts[] = {text,        program->options,  p->name,          p->vendor,
                                 p->platform, p->driver_version, p->opencl_version};
    kn_hash hash = kn_hash_text("koine program cache, format 2");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hash = kn_hash_combine(hash, kn_hash_text(parts[i]));
    for (size_t i = 0; i < sizeof code_variables / sizeof code_variables[0]; i++) {
        const char *value = getenv(code_variables[i]);
        hash = kn_hash_combine(hash, kn_hash_text(value ? value : ""));
    }
    kn_hash_format(key, hash);
}

/* Builds it from the disk cache, otherwise from the source. */
static kn_status make(kn_device *device, kn_program *program, const char *text, kn_build_origin *origin)
{
    char key[KN_HASH_TEXT];
    const bool cached = use_disk_cache(device);
    *origin = KN_BUILT_FROM_CACHE;
    if (cached) {
        cache_key(key, device, program, text);
        program->handle = build_from_binary(device, program, key);
        if (program->handle)
            return KN_OK;
    }
    *origin = KN_BUILT_FROM_SOURCE;
    KN_TRY(build_from_source(&program->handle, device, program, text));
    if (cached)
        store_binary(program->handle, key);
    return KN_OK;
}

/* OpenCL allows f32 division and square root errors of 2.5 and 3 ulp; PyTorch's are correctly rounded. */
static char *full_options(kn_device *device, const kn_program *program, bool declare_builtins)
{
    const char *options = program->asked_options;
    kn_text text = {0};
    kn_quirks quirks = device->quirks;
    quirks.drops_struct_copies = kn_struct_copies_are_dropped(device);
    kn_text_format(&text, "-cl-std=CL1.2%s",
                   device->limits.rounds_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    if (device->limits.is_cpu)
        kn_text_append(&text, " -DKN_CPU");
    if (device->limits.has_entries)
        kn_text_append(&text, " -DKN_GATHERED -cl-kernel-arg-info");
    kn_quirk_add_options(&text, &quirks);
    kn_text_format(&text, "%s%s%s", declare_builtins ? " " KN_QUIRK_NO_HEADER : "", *options ? " " : "", options);
    return kn_text_finish(&text);
}

static kn_status make_with(kn_device *device, kn_program *program, replacement ours, kn_build_origin *origin)
{
    char *text;
    kn_free(program->options);
    program->options = full_options(device, program, ours.declarations);
    if (!program->options)
        return KN_ERR_MEMORY;
    KN_TRY(program_text(&text, device, program, ours));
    kn_status status = make(device, program, text, origin);
    kn_free(text);
    return status;
}

static kn_status make_either_way(kn_device *device, kn_program *program, kn_build_origin *origin)
{
    const replacement ours = replacement_for(device, program);
    if (!ours.declarations && !ours.vector_access)
        return make_with(device, program, ours, origin);
    kn_error_state before;
    kn_error_save(&before);
    const kn_status status = make_with(device, program, ours, origin);
    if (status == KN_ERR_MEMORY)
        return status;
    if (status != KN_OK)
        kn_log_message(KN_LOG_DEBUG, "%s is rebuilt with all of the driver's declarations, because: %s",
                       program->source, kn_error_message());
    kn_error_restore(&before);
    return status == KN_OK ? KN_OK : make_with(device, program, (replacement){false, false}, origin);
}

kn_status kn_program_build(kn_device *device, kn_program *program, const char *kernel)
{
    kn_build_origin origin;
    const cl_int injected = KN_CL(KN_CL_BUILD, CL_SUCCESS); /* all the ways at once */
    if (injected != CL_SUCCESS)
        return kn_cl_fail(injected, device, "building %s", program->source);
    kn_build_wait wait = kn_build_begin(kernel);
    kn_status status = make_either_way(device, program, &origin);
    double seconds = kn_build_end(wait, false);
    if (status == KN_OK)
        kn_build_log_program(device, program, origin, seconds);
    if (status == KN_OK && device->cold)
        device->cold->end_build(device, seconds);
    return status;
}
