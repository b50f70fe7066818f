/* cli/self_test.h - does a device compute what it should? */
#ifndef KN_CLI_SELF_TEST_H
#define KN_CLI_SELF_TEST_H

#include <koine/device.h>

#include "watch/doctor/diagnose.h"

/* Copies data to the device and back, runs a handful of operations of every kind against their references in plain C,
 * and checks a gradient where there is f64. Adds one finding per failure, or a good one. */
void kn_self_test(kn_diagnosis *diagnosis, kn_device *device);

#endif
