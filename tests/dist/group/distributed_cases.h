/* distributed_cases.h - cases of distributed training, called as those of group_cases.h are. */
#pragma once

#include <koine/koine.h>

/* Each returns the number of failures on this rank. The device is not the host. */
int distributed_cases(kn_group *group, kn_device *device);
int option_cases(kn_group *group, kn_device *device);
int join_cases(kn_group *group, kn_device *device);
int sync_batch_norm_cases(kn_group *group, kn_device *device);
int zero_cases(kn_group *group, kn_device *device);
