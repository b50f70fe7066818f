/* common/side_by_side.h - which devices an example compares, and a clock to compare them with. */
#ifndef EXAMPLES_COMMON_SIDE_BY_SIDE_H
#define EXAMPLES_COMMON_SIDE_BY_SIDE_H

#include <koine/koine.h>

#define MAX_DEVICES 2

/* The device called `name` or, for NULL, the CPU device and the best GPU, as far as they exist. Returns their number; 0
 * with an error. */
int devices_to_compare(kn_device *devices[MAX_DEVICES], const char *name);

double seconds_now(void);

#endif
