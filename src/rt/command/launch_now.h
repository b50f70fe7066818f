/* rt/command/launch_now.h - the parts of a launch and of a transfer, for rt/compile. */
#pragma once

#include "rt/command/launch.h"
#include "rt/command/recorder.h"
#include "rt/program/program.h"

/* The launch's kernel, built if necessary. */
kn_status kn_launch_kernel(kn_kernel **kernel, kn_device *device, const kn_launch_params *params,
                           const size_t local[3]);

/* Enqueues it, whatever is captured, deferred or rehearsed, with these work sizes. */
kn_status kn_launch_now(kn_stream *stream, const kn_launch_params *params, const size_t global[3],
                        const size_t local[3]);

/* Enqueues a copy or a fill. */
kn_status kn_transfer_now(kn_stream *stream, kn_command_kind kind, const kn_transfer *transfer);
