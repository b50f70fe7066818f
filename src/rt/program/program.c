/* rt/program/program.c - from a kernel's source file and options to a kernel object, built once. */
#include "rt/program/program.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "rt/device/lost.h"

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

static void free_kernel(kn_kernel *kernel)
{
    if (!kernel)
        return;
    if (kernel->handle)
        clReleaseKernel(kernel->handle);
    kn_free(kernel->name);
    kn_free(kernel);
}

static kn_status make_kernel(kn_kernel *kernel, kn_device *device, const kn_program *program, const char *name)
{
    cl_int error;
    if (!kernel || !(kernel->name = kn_strdup(name)))
        return KN_ERR_MEMORY;
    kernel->handle = clCreateKernel(program->handle, name, &error);
    if (error == CL_SUCCESS)
        error = kn_calling_find(&kernel->calling, kernel->handle, device);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "creating kernel `%s` of %s", name, program->source);
    if (clGetKernelWorkGroupInfo(kernel->handle, device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof kernel->most_items,
                                 &kernel->most_items, NULL) != CL_SUCCESS)
        kernel->most_items = SIZE_MAX; /* the launch tells */
    if (!kernel->calling.is_gathered && !(kernel->known = kn_calloc(KN_KNOWN_ARGUMENTS, sizeof *kernel->known)))
        return KN_ERR_MEMORY;
    return KN_OK;
}

static kn_status new_kernel(kn_kernel **result, kn_device *device, kn_program *program, const char *name)
{
    kn_kernel *kernel = kn_calloc(1, sizeof *kernel);
    const kn_status status = make_kernel(kernel, device, program, name);
    if (status != KN_OK) {
        free_kernel(kernel);
        return status;
    }
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
        status = kn_program_build(device, program, name);
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
