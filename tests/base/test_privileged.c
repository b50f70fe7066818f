/* test_privileged.c - a program with more privileges than its user ignores environment variables that name files and
 * libraries. Runs a set-user-ID copy of itself, so only as root. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/plot.h"
#include "base/system.h"
#include <koine/status.h>

#define SKIPPED 77

static const char *const names[] = {
    "KOINE_CACHE_DIR",      "XDG_CACHE_HOME",        "HOME",
    "KOINE_KERNEL_DIR",     "KOINE_TUNE_FILE",       "KOINE_NVML_LIBRARY",
    "KOINE_NVTX_LIBRARY",   "NVTX_INJECTION64_PATH", "KOINE_FAIL_IO",
    "INTEL_LIBITTNOTIFY64",
};

/* Runs in the privileged copy. */
static int look(void)
{
    if (!getauxval(AT_SECURE))
        return SKIPPED; /* the file system ignores set-user-ID */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!getenv(names[i]) || kn_trusted_environment(names[i])) {
            fprintf(stderr, "%s is believed\n", names[i]);
            return 1;
        }
    char *cache = kn_cache_directory();
    if (cache && strstr(cache, "/of/the/user")) {
        fprintf(stderr, "the cache is %s\n", cache);
        return 1;
    }
    kn_free(cache);
    kn_error_clear();
    if (kn_gnuplot_run("", 1, NULL) != KN_ERR_IO || !strstr(kn_error_message(), "gnuplot is not searched for")) {
        fprintf(stderr, "gnuplot is looked for: %s\n", kn_error_message());
        return 1;
    }
    return 0;
}

static int run_copy(const char *program)
{
    char copy[] = "/tmp/koine-privileged-XXXXXX", line[2048];
    int made = mkstemp(copy), ended;
    if (made < 0)
        return SKIPPED;
    close(made);
    snprintf(line, sizeof line, "cp '%s' '%s' && chown 65534:65534 '%s' && chmod 6755 '%s'", program, copy, copy, copy);
    if (system(line) != 0) {
        unlink(copy);
        return SKIPPED;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        setenv(names[i], "/of/the/user", 1);
    snprintf(line, sizeof line, "'%s' look", copy);
    ended = system(line);
    unlink(copy);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return look();
    if (geteuid() != 0) {
        puts("skipped: only root can make a program that has more rights than its user");
        return SKIPPED;
    }
    return run_copy(argv[0]);
}
