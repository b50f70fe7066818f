/* rt/device/ranks_beside.c - see ranks_beside.h. */
#include "rt/device/ranks_beside.h"

#include <limits.h>
#include <stdlib.h>

#include "base/system.h"

int kn_ranks_beside(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_SIZE",
                                            "SLURM_NTASKS"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *text = kn_trusted_environment(variables[i]);
        const long ranks = text ? strtol(text, NULL, 10) : 0;
        if (ranks > 1)
            return ranks < INT_MAX ? (int)ranks : INT_MAX;
    }
    return 1;
}
