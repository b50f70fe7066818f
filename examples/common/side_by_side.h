/* common/side_by_side.h - which devices an example compares, and a clock to compare them with. */
#pragma once

#include <koine/koine.h>

#define MAX_DEVICES 2

/* The device called `name` or, for NULL, the CPU device and the best GPU, as far as they exist. Returns their number; 0
 * with an error. */
int devices_to_compare(kn_device *devices[MAX_DEVICES], const char *name);

double seconds_now(void);
