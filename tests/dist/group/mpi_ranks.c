/* mpi_ranks.c - the cases of groups as one process of several: mpirun -n 3 mpi_ranks. */
#include <stdio.h>

#include "dist/group/distributed_cases.h"
#include "dist/group/group_cases.h"
#include "dist/group/profile_cases.h"

int main(void)
{
    kn_group *group = kn_group_open(.backend = "mpi");
    kn_device *device = group ? kn_device_open("auto") : NULL;
    if (!device) {
        fprintf(stderr, "%s\n", kn_error_message());
        return 1;
    }
    const int failures = group_cases(group, kn_device_host()) + group_cases(group, device) +
                         distributed_cases(group, device) + profile_cases(group, kn_device_host()) +
                         profile_cases(group, device);
    if (kn_group_rank(group) == 0)
        printf("%d ranks over %s\n", kn_group_size(group), kn_group_backend(group));
    kn_group_free(group);
    return failures > 0;
}
