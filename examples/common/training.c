/* common/training.c - see training.h. */
#include "common/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device_list.h"

/* --- ranks -------------------------------------------------------------------------------------------------------- */

static int own_rank;

kn_group *training_ranks(void)
{
    kn_group *group = kn_group_open();
    if (group != NULL)
        own_rank = kn_group_rank(group);
    if (own_rank > 0 && freopen("/dev/null", "w", stdout) == NULL)
        fprintf(stderr, "rank %d: cannot close stdout\n", own_rank);
    if (kn_group_size(group) > 1)
        printf("ranks: %d over %s\n", kn_group_size(group), kn_group_backend(group));
    return group;
}

kn_module *training_module(kn_module *net, kn_group *group, uint64_t seed)
{
    if (net == NULL || kn_group_size(group) < 2)
        return net;
    kn_manual_seed(seed + (uint64_t)kn_group_rank(group));
    return kn_nn_distributed(net, group);
}

int64_t training_batches(const kn_loader *loader, int64_t batch_size, bool drop_last, const kn_group *group)
{
    const int64_t ranks = kn_group_size(group);
    if (ranks < 2)
        return kn_loader_batches(loader);
    const int64_t samples = (kn_loader_samples(loader) + ranks - 1) / ranks;
    return (samples + (drop_last ? 0 : batch_size - 1)) / batch_size;
}

void training_leave(kn_group *group, bool together)
{
    if (together || kn_group_size(group) < 2)
        kn_group_free(group);
}

bool training_is_alone(const char *program)
{
    kn_group *group = kn_group_open();
    const int size = kn_group_size(group);
    if (group == NULL)
        fprintf(stderr, "%s: %s\n", program, kn_error_message());
    else if (size > 1 && kn_group_rank(group) == 0)
        fprintf(stderr, "%s: this program trains in one process, but %d were started: start it without mpirun\n",
                program, size);
    kn_group_free(group);
    return size == 1;
}

/* --- options and status ------------------------------------------------------------------------------------------- */

/* KOINE_DEVICE says what "auto" is. */
static kn_device *gpu_of_rank(int local_rank)
{
    kn_device *all[LONGEST_LIST];
    const int found = kn_try_all_gpus(all, LONGEST_LIST), count = found < LONGEST_LIST ? found : LONGEST_LIST;
    return count > 0 ? all[local_rank % count] : NULL;
}

kn_device *training_device(const char *name, const kn_group *group)
{
    const bool is_any = strcmp(name, "gpu") == 0 || (strcmp(name, "auto") == 0 && getenv("KOINE_DEVICE") == NULL);
    kn_device *device =
        is_any && kn_group_size(group) > 1 ? gpu_of_rank(kn_group_local_rank(group)) : kn_device_open(name);
    if (device == NULL || kn_device_set_current(device) != KN_OK)
        return NULL;
    printf("device: %s (%s)\n", kn_device_string(device), kn_device_name(device));
    return device;
}

kn_dtype training_precision(const char *choice)
{
    return strcmp(choice, "f16") == 0 ? KN_F16 : strcmp(choice, "bf16") == 0 ? KN_BF16 : KN_F32;
}

int training_status(const char *program, kn_status status, const kn_trainer *trainer)
{
    if (status == KN_OK)
        return 0;
    if (own_rank == 0 || trainer == NULL || status == KN_ERR_DEVICE)
        fprintf(stderr, "%s: %s\n", program, kn_error_message());
    if (status == KN_ERR_INTERRUPTED && own_rank == 0)
        fprintf(stderr, "%s: --resume continues after the last finished epoch\n", program);
    const int signal_number = kn_trainer_signal(trainer);
    return signal_number > 0 ? 128 + signal_number : 1;
}
