/* mpi_ranks.c - the cases of groups as one process of several: mpirun -n 3 mpi_ranks FOLDER. */
#include <stdio.h>
#include <stdlib.h>

#include "dist/group/distributed_cases.h"
#include "dist/group/group_cases.h"
#include "dist/group/profile_cases.h"
#include "dist/group/rank_case.h"
#include "dist/group/trainer_cases.h"
#include "dist/group/unified.h"

/* With copies from and to the device, with its memory mapped, and by MPI's own functions. */
static int other_ways(kn_group *group, kn_device *device)
{
    kn_group *without = NULL;
    set_unified_memory(device, false);
    int failures = group_cases(group, device) + profile_cases(group, device);
    set_unified_memory(device, true);
    const bool shares = set_shared_memory(device, false);
    failures += group_cases(group, device);
    set_shared_memory(device, shares);
    setenv("KOINE_SHARED_MEMORY", "0", 1);
    if (kn_group_split(group, 0, kn_group_rank(group), &without) != KN_OK)
        return failures + 1;
    unsetenv("KOINE_SHARED_MEMORY");
    failures += group_cases(without, kn_device_host()) + (has_f64(device) ? distributed_cases(without, device) : 0);
    kn_group_free(without);
    return failures;
}

int main(int argc, char **argv)
{
    kn_group *group = kn_group_open(.backend = "mpi");
    kn_device *device = group ? kn_device_open("auto") : NULL;
    if (!device) {
        fprintf(stderr, "%s\n", kn_error_message());
        return 1;
    }
    static int (*const cases[])(kn_group *, kn_device *) = {distributed_cases, option_cases, join_cases,
                                                            sync_batch_norm_cases, zero_cases};
    int failures = group_cases(group, kn_device_host()) + profile_cases(group, kn_device_host());
    failures += group_cases(group, device) + profile_cases(group, device);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && has_f64(device); i++)
        failures += cases[i](group, device);
    failures += other_ways(group, device);
    if (argc > 1 && has_f64(device))
        failures += trainer_cases(group, device, argv[1]);
    if (kn_group_rank(group) == 0)
        printf("%d ranks over %s\n", kn_group_size(group), kn_group_backend(group));
    kn_group_free(group);
    return failures > 0;
}
