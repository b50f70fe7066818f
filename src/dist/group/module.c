/* dist/group/module.c - loading a back end. It is looked for beside the library or program that holds this code, then
 * where the dynamic loader looks; KOINE_MODULE_PATH names another folder. Once loaded it stays. */
#include "dist/group/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/own_files.h"
#include "base/system.h"

static bool is_name(const char *name)
{
    return name[0] && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

static void *load_from(const char *folder, const char *name)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s%slibkoine_%s.so", folder, folder[0] ? "/" : "", name);
    /* The names in it are global: MPI's own plug-ins look for those of MPI. */
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/* A program lies in bin, its libraries beside that in lib. */
static void *load(const char *name)
{
    const char *chosen = kn_trusted_environment("KOINE_MODULE_PATH");
    if (chosen && chosen[0])
        return load_from(chosen, name);
    char folder[PATH_MAX + 8];
    kn_own_folder(folder);
    void *module = folder[0] ? load_from(folder, name) : NULL;
    if (!module && folder[0])
        module = load_from(strcat(folder, "/../lib"), name);
    return module ? module : load_from("", name);
}

/* A function of a back end, into *function. */
static kn_status find(const char *name, const char *symbol, void **function)
{
    void *module = is_name(name) ? load(name) : NULL;
    if (!module)
        return kn_fail(KN_ERR_DEVICE,
                       "the back end \"%s\" cannot be loaded: %s; build Koine where MPI's development "
                       "files are installed (libopenmpi-dev or libmpich-dev)",
                       name, is_name(name) ? dlerror() : "no such name");
    *function = dlsym(module, symbol);
    if (!*function)
        return kn_fail(KN_ERR_DEVICE, "libkoine_%s.so is not a back end of Koine: %s", name, dlerror());
    return KN_OK;
}

static kn_status find_open(const char *name, kn_transport_open *open)
{
    return find(name, KN_TRANSPORT_OPEN_NAME, (void **)open);
}

kn_status kn_module_describe(const char *name, char *text, size_t size)
{
    kn_transport_describe describe;
    KN_TRY(find(name, KN_TRANSPORT_DESCRIBE_NAME, (void **)&describe));
    describe(text, size);
    return KN_OK;
}

kn_status kn_module_transport_open(const char *name, const kn_group_params *params, kn_transport **transport)
{
    static const kn_transport_host host = {
        .version = KN_TRANSPORT_VERSION, .fail = kn_fail, .reduce = kn_host_reduce, .dtype_size = kn_dtype_size};
    kn_transport_open open_transport;
    KN_TRY(find_open(name, &open_transport));
    return open_transport(&host, params, transport);
}

bool kn_module_is_available(const char *name, const char **reason)
{
    static _Thread_local char text[512];
    kn_transport_open open_transport;
    KN_PRESERVE_ERROR;
    if (find_open(name, &open_transport) == KN_OK)
        return true;
    snprintf(text, sizeof text, "%s", kn_error_message());
    if (reason)
        *reason = text;
    return false;
}
