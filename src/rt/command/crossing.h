/* rt/command/crossing.h - copies from device to device.
 *
 * Each device has a context of its own, so the bytes go by way of pinned host memory: the source's stream fills it, and
 * the streams of any number of other devices take them from there, each in its order. Nothing here waits. */
#ifndef KN_RT_COMMAND_CROSSING_H
#define KN_RT_COMMAND_CROSSING_H

#include "rt/memory/buffer.h"

typedef struct kn_crossing kn_crossing;
kn_status kn_crossing_start(kn_crossing **crossing, kn_stream *from, const kn_buffer *source, size_t offset,
                            size_t bytes);
/* to the device of `to`; at most KN_MAX_DEVICES times */
kn_status kn_crossing_deliver(kn_crossing *crossing, kn_stream *to, kn_buffer *destination, size_t offset);
/* after the last delivery: the memory is used again once all are done; NULL allowed */
void kn_crossing_end(kn_crossing *crossing);

#endif
