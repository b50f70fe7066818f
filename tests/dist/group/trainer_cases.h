/* trainer_cases.h - what a trainer over the ranks of a group must do: as group_cases.h. */
#pragma once

#include <koine/koine.h>

/* Returns the number of failures on this rank; `device` is current. `folder`: for the trainer's files. */
int trainer_cases(kn_group *group, kn_device *device, const char *folder);
