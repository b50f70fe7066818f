/* watch/peak.h - the measured peak performance of a device, for benchmarks and profiles. */
#pragma once

#include "rt/command/launch.h"

/* Fused multiply-adds on registers, counted as two operations each, and a plain copy, counting bytes read and written;
 * the best of several runs. Measured on the first call for a device and precision and cached; takes a few tenths of a
 * second, and up to 512 MiB from the pool for the copy. The device should be idle. Launches kernels and allocates, so
 * no lock that these take may be held, such as the profiler's. */
kn_status kn_peak_flops(kn_device *device, bool f64, double *flops_per_second);
kn_status kn_peak_bytes(kn_device *device, double *bytes_per_second);

/* The cached value, or 0; takes no lock. */
double kn_peak_known_flops(const kn_device *device, bool f64);
double kn_peak_known_bytes(const kn_device *device);
