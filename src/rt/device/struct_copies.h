/* rt/device/struct_copies.h - whether the device's compiler has the defect of the quirk drops_struct_copies. */
#pragma once

#include "rt/device/device_struct.h"

/* True unless the device's quirks exclude it, or a trial, once per device, gives the right values. */
bool kn_struct_copies_are_dropped(kn_device *device);
