/* base/own_files.c - see base/own_files.h. */
#define _GNU_SOURCE /* dladdr */
#include "base/own_files.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system.h"

void kn_own_folder(char folder[PATH_MAX])
{
    Dl_info info;
    folder[0] = '\0';
    if (!dladdr((const void *)(uintptr_t)kn_own_folder, &info) || !info.dli_fname || !realpath(info.dli_fname, folder))
        return;
    char *end = strrchr(folder, '/');
    if (end)
        *end = '\0';
}

static char *if_runs(const char *path) { return strchr(path, '/') && access(path, X_OK) == 0 ? kn_strdup(path) : NULL; }

char *kn_own_program(void)
{
    static const char *const beside[] = {"koine", "../bin/koine"};
    const char *wanted = kn_trusted_environment("KOINE_PROGRAM");
    char folder[PATH_MAX], path[PATH_MAX + 16], *found = NULL;
    if (wanted)
        return if_runs(wanted);
    kn_own_folder(folder);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0] && folder[0] && !found; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, beside[i]);
        found = if_runs(path);
    }
    return found ? found : if_runs(KN_INSTALLED_PROGRAM);
}
