/* support/busy.h - for tests of what happens while a device is busy, however fast it is. */
#pragma once

#include <koine/koine.h>

/* Holds the device's current stream, which is not being captured, until it is let go. */
typedef struct held held;
held *hold(kn_device *device);
void let_go(held *stream);

/* Holds it for some tens of milliseconds. */
void keep_busy(kn_device *device);

/* Do copies that are not to block wait, by the driver or because memory is guarded? Then they may be done when they
 * return. */
bool copies_block(kn_device *device);
