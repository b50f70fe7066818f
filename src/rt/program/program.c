/* rt/program/program.c - from a kernel's source file and options to a kernel object, built once. */
#include "rt/program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/text.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/device/struct_copies.h"
#include "rt/program/build_progress.h"
#include "rt/program/builtins.h"
#include "rt/program/cold.h"
#include "rt/program/kernel_sources.h"
#include "rt/program/user_source.h"
#include "rt/stream/affinity.h"

#define MAX_SOURCE_BYTES ((size_t)16 << 20)
#define MAX_INCLUDES 64

/* --- source text ------------------------------------------------------------------------------ */

static kn_status read_source(kn_text *text, const char *path)
{
    if (kn_user_source_is(path))
        return kn_user_source_append(text, path);
    const char *folder = kn_trusted_environment("KOINE_KERNEL_DIR");
    if (folder && *folder) {
        char *full = kn_path_join(folder, path);
        if (!full)
            return KN_ERR_MEMORY;
        char *data = NULL;
        size_t size = 0;
        bool there = kn_file_exists(full);
        kn_status status = there ? kn_file_read_all(&data, &size, full, MAX_SOURCE_BYTES) : KN_OK;
        kn_free(full);
        if (there && status == KN_OK)
            kn_text_append_bytes(text, data, size);
        kn_free(data);
        if (there)
            return status;
    }
    for (const kn_kernel_source *source = kn_kernel_sources; source->path; source++) {
        if (strcmp(source->path, path) != 0)
            continue;
        for (const char *const *line = source->lines; *line; line++)
            kn_text_append(text, *line);
        return KN_OK;
    }
    return kn_fail(KN_ERR_INTERNAL, "there is no kernel source `%s`", path);
}

typedef struct include_list {
    char paths[MAX_INCLUDES][128];
    int count;
} include_list;

static bool included_before(include_list *seen, const char *path, size_t length)
{
    for (int i = 0; i < seen->count; i++)
        if (strlen(seen->paths[i]) == length && memcmp(seen->paths[i], path, length) == 0)
            return true;
    if (seen->count < MAX_INCLUDES && length < sizeof seen->paths[0]) {
        memcpy(seen->paths[seen->count], path, length);
        seen->paths[seen->count++][length] = '\0';
    }
    return false;
}

/* Does the line end inside a multi-line comment? `inside`: it starts inside one. */
static bool ends_in_comment(const char *line, size_t length, bool inside)
{
    char quote = 0;
    for (size_t i = 0; i + 1 < length; i++) {
        if (inside) {
            inside = !(line[i] == '*' && line[i + 1] == '/');
            i += !inside;
        } else if (quote) {
            if (line[i] == quote)
                quote = 0;
            i += line[i] == '\\';
        } else if (line[i] == '"' || line[i] == '\'') {
            quote = line[i];
        } else if (line[i] == '/' && line[i + 1] == '/') {
            return false;
        } else if (line[i] == '/' && line[i + 1] == '*') {
            inside = true;
            i++;
        }
    }
    return inside;
}

/* Replaces each `#include "path"` by the file's text, once per path. Done here so that the driver needs no -I, and the
 * cache's key covers everything that is compiled. Lines are counted from the source's last `#line`, if it has one
 * (rt/program/user_source.h). */
static kn_status expand(kn_text *out, const char *path, include_list *seen)
{
    kn_text raw = {0};
    kn_status status = read_source(&raw, path);
    if (status == KN_OK && raw.failed)
        status = KN_ERR_MEMORY; /* what was read is cut short */
    kn_text_format(out, "#line 1 \"%s\"\n", path);
    char name[128];
    snprintf(name, sizeof name, "%s", path);
    int line_number = 1;
    bool in_comment = false;
    for (const char *line = raw.data; status == KN_OK && line && *line; line_number++) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) + 1 : strlen(line);
        bool directive = *line == '#' && !in_comment; /* sscanf would read the text to its end, however long it is */
        char included[128];
        in_comment = ends_in_comment(line, length, in_comment);
        if (directive && sscanf(line, "#include \"%127[^\"]\"", included) == 1) {
            if (!included_before(seen, included, strlen(included)))
                status = expand(out, included, seen);
            if (status == KN_ERR_INTERNAL && kn_user_source_is(path)) /* the user's mistake, not ours */
                status =
                    kn_fail(KN_ERR_ARGUMENT, "line %d of `%s` includes \"%s\", which is not a header of the library",
                            line_number, name, included);
            kn_text_format(out, "#line %d \"%s\"\n", line_number + 1, name);
        } else if (directive && strncmp(line, "#pragma once", 12) == 0) {
            kn_text_append_bytes(out, "\n", 1); /* true of every file; compilers warn of it outside of headers */
        } else {
            if (directive && sscanf(line, "#line %d \"%127[^\"]\"", &line_number, name) == 2)
                line_number--;
            kn_text_append_bytes(out, line, length);
        }
        line += length;
    }
    kn_text_free(&raw);
    return status;
}

kn_status kn_kernel_source_text(char **text, const char *path)
{
    kn_text whole = {0};
    include_list seen = {.count = 0};
    kn_status status = expand(&whole, path, &seen);
    if (status != KN_OK) {
        kn_text_free(&whole);
        return status;
    }
    *text = kn_text_finish(&whole);
    return *text ? KN_OK : KN_ERR_MEMORY;
}

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

/* --- building --------------------------------------------------------------------------------- */

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

static void cache_key(char key[KN_HASH_TEXT], const kn_device *device, const kn_program *program, const char *text)
{
    const kn_device_properties *p = &device->properties;
    const char *const parts[] = {text,        program->options,  p->name,          p->vendor,
                                 p->platform, p->driver_version, p->opencl_version};
    kn_hash hash = kn_hash_text("koine program cache, format 1");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hash = kn_hash_combine(hash, kn_hash_text(parts[i]));
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
static char *full_options(kn_device *device, const char *options, bool declare_builtins)
{
    kn_text text = {0};
    kn_quirks quirks = device->quirks;
    quirks.drops_struct_copies = kn_struct_copies_are_dropped(device);
    kn_text_format(&text, "-cl-std=CL1.2%s",
                   device->limits.rounds_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    if (device->limits.is_cpu)
        kn_text_format(&text, " -DKN_CPU%s", device->limits.has_affinity ? " -DKN_AFFINITY -cl-kernel-arg-info" : "");
    kn_quirk_add_options(&text, &quirks);
    kn_text_format(&text, "%s%s%s", declare_builtins ? " " KN_QUIRK_NO_HEADER : "", *options ? " " : "", options);
    return kn_text_finish(&text);
}

static kn_status make_with(kn_device *device, kn_program *program, replacement ours, kn_build_origin *origin)
{
    char *text;
    kn_free(program->options);
    program->options = full_options(device, program->asked_options, ours.declarations);
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

/* `kernel` is the requested one; its name is reported to waiting threads. */
static kn_status build(kn_device *device, kn_program *program, const char *kernel)
{
    kn_build_origin origin;
    const cl_int injected = KN_CL(KN_CL_BUILD, CL_SUCCESS); /* all the ways at once */
    if (injected != CL_SUCCESS)
        return kn_cl_fail(injected, device, "building %s", program->source);
    if (device->cold)
        device->cold->begin_build(device);
    kn_build_wait wait = kn_build_begin(kernel);
    kn_status status = make_either_way(device, program, &origin);
    double seconds = kn_build_end(wait, false);
    if (status == KN_OK)
        kn_build_log_program(device, program, origin, seconds);
    if (status == KN_OK && device->cold)
        device->cold->end_build(device, seconds);
    return status;
}

/* --- the table -------------------------------------------------------------------------------- */

kn_program_table *kn_program_table_new(void)
{
    kn_program_table *table = kn_calloc(1, sizeof *table);
    if (table)
        kn_mutex_init(&table->lock);
    return table;
}

static kn_program *new_program(const char *source, const char *options, const size_t group[3], uint32_t key)
{
    kn_program *program = kn_calloc(1, sizeof *program);
    if (!program)
        return NULL;
    program->source = kn_strdup(source);
    program->asked_options = kn_strdup(options);
    program->key = key;
    memcpy(program->group, group, sizeof program->group);
    kn_mutex_init(&program->lock);
    if (program->source && program->asked_options)
        return program;
    kn_free(program->source);
    kn_free(program->asked_options);
    kn_free(program);
    return NULL;
}

static kn_program *find_program(kn_device *device, const char *source, const char *options, const size_t group[3])
{
    kn_program_table *table = device->programs;
    const uint32_t key = kn_hash_name(options, kn_hash_name(source, 0));
    kn_lock(&table->lock);
    kn_program **bucket = &table->buckets[key % KN_PROGRAM_BUCKETS];
    kn_program *program = *bucket;
    while (program &&
           (program->key != key || strcmp(program->source, source) != 0 ||
            strcmp(program->asked_options, options) != 0 || memcmp(program->group, group, sizeof program->group) != 0))
        program = program->next;
    if (!program && (program = new_program(source, options, group, key))) {
        program->next = *bucket;
        *bucket = program;
    }
    kn_unlock(&table->lock);
    return program;
}

static void free_kernel(kn_kernel *kernel, char *name, kn_known_argument *known)
{
    kn_free(kernel);
    kn_free(name);
    kn_free(known);
}

static kn_status new_kernel(kn_kernel **result, kn_device *device, kn_program *program, const char *name)
{
    cl_int error;
    kn_kernel *kernel = kn_calloc(1, sizeof *kernel);
    char *copy = kn_strdup(name);
    kn_known_argument *known = kn_calloc(KN_KNOWN_ARGUMENTS, sizeof *known);
    if (!kernel || !copy || !known) {
        free_kernel(kernel, copy, known);
        return KN_ERR_MEMORY;
    }
    kernel->handle = clCreateKernel(program->handle, name, &error);
    if (error != CL_SUCCESS) {
        free_kernel(kernel, copy, known);
        return kn_cl_fail(error, device, "creating kernel `%s` of %s", name, program->source);
    }
    kernel->name = copy;
    kernel->known = known;
    if (clGetKernelWorkGroupInfo(kernel->handle, device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof kernel->most_items,
                                 &kernel->most_items, NULL) != CL_SUCCESS)
        kernel->most_items = SIZE_MAX; /* the launch tells */
    kernel->affinity = kn_affinity_parameter(kernel->handle, device);
    kn_mutex_init(&kernel->lock);
    kernel->next = program->kernels;
    program->kernels = kernel;
    *result = kernel;
    return KN_OK;
}

/* `group`: that its program is compiled for. */
static kn_status get_for(kn_kernel **kernel, kn_device *device, const char *source, const char *options,
                         const char *name, const size_t group[3])
{
    kn_program *program = find_program(device, source, options ? options : "", group);
    if (!program)
        return KN_ERR_MEMORY;
    kn_status status = KN_OK;
    kn_lock(&program->lock);
    if (!program->handle)
        status = build(device, program, name);
    kn_kernel *found = program->kernels;
    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    if (status == KN_OK && !found)
        status = new_kernel(&found, device, program, name);
    kn_unlock(&program->lock);
    if (status == KN_OK)
        *kernel = found;
    return status;
}

bool kn_kernel_has_run(kn_device *device, const char *source, const char *options, const char *name)
{
    static const size_t any[3] = {0};
    kn_program *program = find_program(device, source, options ? options : "", any);
    if (!program || !kn_try_lock(&program->lock)) /* it is being built */
        return false;
    const kn_kernel *found = program->kernels;
    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    kn_unlock(&program->lock);
    return found && atomic_load_explicit(&found->launched, memory_order_relaxed);
}

kn_status kn_kernel_get(kn_kernel **kernel, kn_device *device, const char *source, const char *options,
                        const char *name, const size_t group[3])
{
    static const size_t any[3] = {0};
    KN_TRY(get_for(kernel, device, source, options, name, any));
    const size_t items = group ? group[0] * group[1] * group[2] : 0, most = (*kernel)->most_items;
    if (items <= most)
        return KN_OK;
    kn_status status = get_for(kernel, device, source, options, name, group);
    if (status != KN_OK)
        kn_error_prefix("kernel `%s`, for work-groups of %zu work-items instead of at most %zu", name, items, most);
    else if (items > (*kernel)->most_items)
        status = kn_fail(KN_ERR_DEVICE,
                         "kernel `%s` of %s needs work-groups of %zu work-items, of which %s runs at most %zu", name,
                         source, items, device->label, (*kernel)->most_items);
    return status;
}
