/* rt/program/user_source.c - the registry of kernel sources given at run time, and building them ahead of a launch. */
#include "rt/program/user_source.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "rt/internal.h"

#define PREFIX "user/"
#define NAME_LENGTH 60

typedef struct entry {
    char *text;
    char path[sizeof PREFIX + KN_HASH_TEXT + NAME_LENGTH + 2]; /* its end is the name */
    const char *name;
    struct entry *next;
} entry;

/* Programs build rarely and hold few texts of their own: a list will do. */
static struct {
    kn_mutex lock;
    entry *first;
} registry = {.lock = KN_MUTEX_INIT};

static entry *find(const char *path)
{
    entry *e = registry.first;
    while (e && strcmp(e->path, path) != 0)
        e = e->next;
    return e;
}

static entry *new_entry(const char *path, const char *text)
{
    entry *e = kn_calloc(1, sizeof *e);
    char *copy = e ? kn_strdup(text) : NULL;
    if (!copy) {
        kn_free(e);
        return NULL;
    }
    e->text = copy;
    snprintf(e->path, sizeof e->path, "%s", path);
    e->name = strrchr(e->path, '/') + 1;
    return e;
}

kn_status kn_user_source_add(kn_user_source *source, const char *name, const char *text)
{
    char hash[KN_HASH_TEXT], path[sizeof((entry *)0)->path];
    snprintf(path, sizeof path, PREFIX "%s/%.*s", kn_hash_format(hash, kn_hash_text(text)), NAME_LENGTH, name);
    kn_lock(&registry.lock);
    entry *e = find(path);
    if (e && strcmp(e->text, text) != 0) { /* the hash is not made against adversaries */
        kn_unlock(&registry.lock);
        return kn_fail(KN_ERR_STATE, "another source has the same hash as `%s`: change a blank in it", name);
    }
    if (!e && (e = new_entry(path, text))) {
        e->next = registry.first;
        registry.first = e;
    }
    kn_unlock(&registry.lock);
    if (!e)
        return KN_ERR_MEMORY;
    *source = (kn_user_source){.path = e->path, .name = e->name};
    return KN_OK;
}

bool kn_user_source_is(const char *path) { return strncmp(path, PREFIX, sizeof PREFIX - 1) == 0; }

kn_status kn_user_source_append(kn_text *text, const char *path)
{
    kn_lock(&registry.lock);
    const entry *e = find(path);
    kn_unlock(&registry.lock); /* entries never change and never go */
    if (!e)
        return kn_fail(KN_ERR_INTERNAL, "there is no kernel source `%s`", path);
    kn_text_append(text, e->text);
    return KN_OK;
}

static kn_parameter_kind kind_of(cl_kernel kernel, cl_uint index)
{
    cl_kernel_arg_address_qualifier where;
    if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where, NULL) != CL_SUCCESS)
        return KN_PARAMETER_UNKNOWN;
    return where == CL_KERNEL_ARG_ADDRESS_PRIVATE ? KN_PARAMETER_VALUE
           : where == CL_KERNEL_ARG_ADDRESS_LOCAL ? KN_PARAMETER_LOCAL
                                                  : KN_PARAMETER_MEMORY;
}

kn_status kn_user_source_build(kn_device *device, const char *path, const char *options, const char *kernel,
                               kn_parameters *parameters)
{
    kn_kernel *built;
    cl_uint count = 0;
    KN_TRY(kn_device_ensure_open(device));
    KN_TRY(kn_kernel_get(&built, device, path, options, kernel));
    if (!parameters)
        return KN_OK;
    cl_int error = clGetKernelInfo(built->handle, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "counting the parameters of kernel `%s`", kernel);
    parameters->count = (int)count;
    for (cl_uint i = 0; i < count && i < KN_MOST_PARAMETERS; i++)
        parameters->kinds[i] = kind_of(built->handle, i);
    return KN_OK;
}

bool kn_user_source_tries(kn_device *device, const char *path, const char *options, const char *kernel)
{
    KN_ATTEMPT;
    return kn_user_source_build(device, path, options, kernel, NULL) == KN_OK;
}
