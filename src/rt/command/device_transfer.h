/* rt/command/device_transfer.h - copies from device to device.
 *
 * Each device has its own context, so the bytes go through pinned host memory: the source's stream fills it, and the
 * streams of any number of other devices read it, each in its own order. The host never waits. */
#pragma once

#include "rt/memory/buffer.h"

typedef struct kn_device_transfer kn_device_transfer;
kn_status kn_device_transfer_start(kn_device_transfer **transfer, kn_stream *from, const kn_buffer *source,
                                   size_t offset, size_t bytes);
/* to the device of `to`; at most KN_MAX_DEVICES times */
kn_status kn_device_transfer_deliver(kn_device_transfer *transfer, kn_stream *to, kn_buffer *destination,
                                     size_t offset);
/* after the last delivery: the memory is used again once all are done; NULL allowed */
void kn_device_transfer_end(kn_device_transfer *transfer);
