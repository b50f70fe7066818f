/* rt/compile/cold.h - launches of kernels that are still to be compiled (rt/program/cold.h) go to the stream's thread
 * (rt/stream/submit.h), in its order, so that the host goes on and comes to the next ones. Meanwhile processes compile
 * them side by side (rt/compile/helper.h). */
#pragma once

#include "rt/program/cold.h"

#define KN_MOST_COMPILE_JOBS 64

/* For a device; NULL, without an error, where it would not help or is not wanted (KOINE_COMPILE_JOBS=1). */
kn_cold *kn_cold_new(const kn_device *device);
void kn_cold_free(kn_cold *cold); /* NULL allowed; not once it was used */
