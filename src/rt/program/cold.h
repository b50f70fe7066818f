/* rt/program/cold.h - whether a device is cold: kernels are being compiled, rather than found in a cache on disk. Then
 * rt/compile takes over the launches of those that are not ready yet. */
#pragma once

#include <stdatomic.h>

#include "rt/device/device_struct.h"
#include "rt/trace/watching.h"

struct kn_launch_params; /* rt/command/launch.h */
struct kn_transfer;      /* rt/command/recorder.h */

struct kn_cold {
    atomic_bool is_cold;
    /* Building a program took so long. */
    void (*end_build)(kn_device *device, double seconds);
    /* Is the launch to be made by `launch`? */
    bool (*takes)(kn_stream *stream, const struct kn_launch_params *params);
    /* Makes it later, in the stream's order. */
    kn_status (*launch)(kn_stream *stream, const struct kn_launch_params *params, const size_t global[3],
                        const size_t local[3]);
    /* The same of copies and fills on the device. */
    bool (*takes_transfer)(kn_stream *stream);
    kn_status (*transfer)(kn_stream *stream, kn_command_kind kind, const struct kn_transfer *transfer);
};

static inline bool kn_device_is_cold(const kn_device *device)
{
    return device->cold && atomic_load_explicit(&device->cold->is_cold, memory_order_acquire);
}
