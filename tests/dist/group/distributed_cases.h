/* distributed_cases.h - what distributed data parallel must do: as group_cases.h. */
#pragma once

#include <koine/koine.h>

/* Returns the number of failures on this rank; `device` is current. */
int distributed_cases(kn_group *group, kn_device *device);
