/* mpi_ranks.c - the cases of groups as one process of several: mpirun -n 3 mpi_ranks FOLDER. */
#include <stdio.h>

#include "dist/group/distributed_cases.h"
#include "dist/group/group_cases.h"
#include "dist/group/profile_cases.h"
#include "dist/group/trainer_cases.h"

int main(int argc, char **argv)
{
    kn_group *group = kn_group_open(.backend = "mpi");
    kn_device *device = group ? kn_device_open("auto") : NULL;
    if (!device) {
        fprintf(stderr, "%s\n", kn_error_message());
        return 1;
    }
    static int (*const cases[])(kn_group *, kn_device *) = {
        group_cases, profile_cases, distributed_cases, option_cases, join_cases, sync_batch_norm_cases, zero_cases};
    int failures = group_cases(group, kn_device_host()) + profile_cases(group, kn_device_host());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        failures += cases[i](group, device);
    if (argc > 1)
        failures += trainer_cases(group, device, argv[1]);
    if (kn_group_rank(group) == 0)
        printf("%d ranks over %s\n", kn_group_size(group), kn_group_backend(group));
    kn_group_free(group);
    return failures > 0;
}
