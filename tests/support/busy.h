/* support/busy.h - work for tests of what happens while a device is busy. */
#pragma once

#include <koine/koine.h>

/* Enqueues sums on the device's current stream that take it some tens of milliseconds, with or without the
 * driver's optimiser. The first call measures how many, and waits for the device. */
void keep_busy(kn_device *device);
