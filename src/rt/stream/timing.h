/* rt/stream/timing.h - times of commands and events on the device: which of the driver's can be used.
 *
 * Drivers have given markers no time, times out of order or in another unit
 * (https://github.com/CHIP-SPV/chipStar/issues/1549). So before the first use on a device markers and fills are tried.
 * An event is a marker, or a small fill if only those have proper times; if neither has, its time is an error. */
#pragma once

#include "rt/stream/stream_struct.h"

/* Tries, at the first call for a device; takes some milliseconds. */
kn_status kn_timing_try(kn_device *device);

/* For the profiler: can the times of commands be used? Tries, too. */
bool kn_timing_has_commands(kn_device *device);

/* Enqueues the command whose end is the event's time: after kn_timing_try and kn_stream_enter. */
cl_int kn_timing_mark(kn_stream *stream, cl_event *event);

/* The end of a command that is done, in nanoseconds of the device's clock; false when there is none. */
bool kn_timing_read(const kn_device *device, cl_event event, cl_ulong *end);
