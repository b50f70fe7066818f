/* profile_cases.h - the profiler and the calls of a group, as group_cases.h. */
#pragma once

#include <koine/koine.h>

int profile_cases(kn_group *group, kn_device *device);
