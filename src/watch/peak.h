/* watch/peak.h - the most that a device can do, measured: benchmarks and profiles are compared with it. */
#ifndef KN_WATCH_PEAK_H
#define KN_WATCH_PEAK_H

#include "rt/command/launch.h"

/* Fused multiply-adds that depend on nothing outside registers, counted as two operations each, and a plain copy, its
 * bytes counted as read and as written; the best of several runs. Measured at the first call for a device and precision
 * and kept; takes some tenths of a second, and for the copy up to 512 MiB from the pool. The device should be idle. It
 * launches kernels and allocates: no lock may be held that these take, the profiler's among them. */
kn_status kn_peak_flops(kn_device *device, bool f64, double *flops_per_second);
kn_status kn_peak_bytes(kn_device *device, double *bytes_per_second);

/* What has been measured so far, 0 where nothing has: takes no lock. */
double kn_peak_known_flops(const kn_device *device, bool f64);
double kn_peak_known_bytes(const kn_device *device);

#endif
