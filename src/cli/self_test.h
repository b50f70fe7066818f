/* cli/self_test.h - does a device compute correct results? */
#pragma once

#include <koine/device.h>
#include <stdbool.h>

#include "watch/doctor/diagnose.h"

/* Copies data to the device and back, checks a few operations of every kind against their plain C references, and, if
 * the device has f64, a gradient; with `every_operator` also each of the list on a small sample. Adds one finding per
 * failure, or one saying that all passed. */
void kn_self_test(kn_diagnosis *diagnosis, kn_device *device, bool every_operator);
