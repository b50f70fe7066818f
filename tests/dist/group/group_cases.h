/* group_cases.h - what every back end of groups must do. Called by all ranks of a group at once, by threads or
 * processes, so that cmocka cannot be used: failures are counted and printed. */
#pragma once

#include <koine/koine.h>

/* Returns the number of failures on this rank. The tensors are on `device`, which may be the host. */
int group_cases(kn_group *group, kn_device *device);
int message_cases(kn_group *group, kn_device *device); /* a part of them */
