/* common/device_list.h - the devices that an option names: "gpu:0,gpu:1", "all". */
#pragma once

#include <koine/koine.h>

#define LONGEST_LIST 64

/* Opens the devices named in `list`, separated by commas; "all" is every GPU, or the CPU device if there is none. */
kn_status device_list(kn_device *devices[LONGEST_LIST], int *count, const char *list);
