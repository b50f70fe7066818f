/* rt/device/driver_threads.c - see driver_threads.h. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "rt/device/driver_threads.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system.h"

/* The variable's number, or `otherwise` if it is unset. */
static long number_of(const char *variable, long otherwise)
{
    const char *text = kn_trusted_environment(variable);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* The number of cores if this process may use all: PoCL binds its n-th thread to core n. 0: it may not. */
static long all_cores(void)
{
#ifdef __linux__
    cpu_set_t set;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != online)
        return 0;
    for (long core = 0; core < online; core++)
        if (!CPU_ISSET(core, &set))
            return 0;
    return online;
#else
    return 0;
#endif
}

int kn_ranks_beside(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_SIZE",
                                            "SLURM_NTASKS"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const long ranks = number_of(variables[i], 1);
        if (ranks > 1)
            return ranks < INT_MAX ? (int)ranks : INT_MAX;
    }
    return 1;
}

void kn_driver_threads_prepare(void)
{
    const long cores = all_cores();
    if (cores > 1 && kn_ranks_beside() == 1 && number_of("POCL_MAX_PTHREAD_COUNT", cores) == cores &&
        number_of("POCL_CPU_MAX_CU_COUNT", cores) == cores)
        setenv("POCL_AFFINITY", "1", 0);
}

bool kn_driver_threads_are_bound(void) { return number_of("POCL_AFFINITY", 0) == 1; }
