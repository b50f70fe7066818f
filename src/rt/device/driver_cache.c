/* rt/device/driver_cache.c - a writable folder for PoCL. */
#include "rt/device/driver_cache.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/text.h"

char *kn_driver_cache_folder(void)
{
    const char *own = kn_trusted_environment("POCL_CACHE_DIR"), *xdg = kn_trusted_environment("XDG_CACHE_HOME"),
               *home = kn_trusted_environment("HOME");
    if (own && *own)
        return kn_strdup(own);
    if (xdg && *xdg)
        return kn_path_join(xdg, "pocl");
    return home && *home ? kn_path_join(home, ".cache/pocl") : NULL;
}

/* The nearest existing parent decides whether the rest can be created. */
bool kn_driver_cache_is_usable(const char *folder)
{
    KN_PRESERVE_ERROR;
    char *path = kn_strdup(folder), *slash;
    if (!path)
        return true; /* as far as is known */
    while (!kn_file_exists(path) && (slash = strrchr(path, '/')) && slash > path)
        *slash = '\0';
    bool whole = strcmp(path, folder) == 0;
    bool usable = access(path, W_OK | X_OK) == 0 && (whole || kn_make_private_directories(folder) == KN_OK);
    kn_free(path);
    return usable;
}

/* A program is a folder. Files are temporary. */
bool kn_driver_cache_is_empty(void)
{
    KN_PRESERVE_ERROR;
    char *path = kn_driver_cache_folder();
    DIR *folder = path ? kn_sys_opendir(path) : NULL;
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (folder)
        closedir(folder);
    kn_free(path);
    return path && !found;
}

static bool use(const char *folder)
{
    if (kn_make_private_directories(folder) != KN_OK || kn_folder_objection(folder) ||
        access(folder, W_OK | X_OK) != 0 || setenv("POCL_CACHE_DIR", folder, 1) != 0)
        return false;
    kn_log_message(KN_LOG_INFO, "PoCL caches compiled kernels in %s, because its default folder is not writable",
                   folder);
    return true;
}

static bool use_own_cache(void)
{
    char *cache = kn_cache_directory();
    char *folder = cache ? kn_path_join(cache, "pocl") : NULL;
    bool used = folder && use(folder);
    kn_free(cache);
    kn_free(folder);
    return used;
}

static bool use_temporary_folder(void)
{
    const char *root = kn_trusted_environment("TMPDIR");
    kn_text text = {0};
    kn_text_format(&text, "%s/koine-%lu/pocl", root && *root ? root : "/tmp", (unsigned long)geteuid());
    char *folder = kn_text_finish(&text);
    bool used = folder && use(folder);
    kn_free(folder);
    return used;
}

void kn_driver_cache_prepare(void)
{
    KN_PRESERVE_ERROR;
    const char *chosen = kn_trusted_environment("POCL_CACHE_DIR");
    if (chosen && *chosen)
        return;
    char *usual = kn_driver_cache_folder();
    if (!(usual && kn_driver_cache_is_usable(usual)) && !use_own_cache() && !use_temporary_folder())
        kn_log_message(KN_LOG_WARNING, "PoCL, the driver for CPUs, needs a folder for compiled kernels and has none: "
                                       "set POCL_CACHE_DIR to a writable folder");
    kn_free(usual);
}
