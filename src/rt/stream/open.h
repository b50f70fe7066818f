/* rt/stream/open.h - opening devices and streams: their contexts, queues and fault records. */
#pragma once

#include "rt/stream/stream_struct.h"

/* A context and a default stream for the device; at first use. Fails for the host, saying to move the tensor. */
kn_status kn_device_ensure_open(kn_device *device);

/* Makes the stream's queue and fault record; with `theirs` that is the queue. */
kn_status kn_stream_open(kn_stream *stream, kn_device *device, int priority, cl_command_queue theirs);

/* The driver finishes their work first. */
void kn_stream_release_queues(kn_stream *stream);

/* The device's stream with the smallest id above `*id`, which becomes its id; NULL: none. By id, because positions in
 * the list change when other threads create and destroy streams. The struct outlives a concurrent destroy, and may have
 * another queue then. No lock is held between two calls: a callback, waited for there, may create streams. */
kn_stream *kn_device_next_stream(kn_device *device, unsigned long long *id);

/* Waits for the work of all streams, ignoring errors, and not for callbacks. */
void kn_device_finish_streams(kn_device *device);

/* From now on a process that exits waits for the work of all devices before objects are destroyed that exist now.
 * Called when a device is opened, and after the driver has compiled something, which makes objects of the compiler. */
void kn_finish_at_exit(void);

/* From now on this thread waits, when it ends or exits, until what was handed to the streams' threads is enqueued. They
 * may be within the driver's compiler, whose objects, made since kn_finish_at_exit, are destroyed before the process
 * waits for its devices. */
void kn_drain_at_exit(void);
