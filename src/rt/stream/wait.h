/* rt/stream/wait.h - waiting for streams and events, for any layer; koine/stream.h has what users call. */
#pragma once

#include <koine/stream.h>

kn_status kn_event_new_recorded(kn_event **event, kn_stream *stream); /* made and recorded */
bool kn_event_has_passed(kn_event *event);                            /* does not wait; failed work is over, too */
bool kn_event_has_failed(const kn_event *event);                      /* the work before it; or the device was lost */
kn_status kn_event_await(kn_event *event); /* waits, but does not count as a host wait (kn_host_wait_count) */

/* Waits for all work enqueued on the stream, before memory is freed. Never rejected, not counted as a host wait,
 * reports no errors. */
void kn_stream_drain(kn_stream *stream);

/* Like kn_synchronize, for a non-NULL device. */
kn_status kn_device_synchronize(kn_device *device);

/* Calls so far that made the host wait until device work was done: reads, synchronizes, writes too large to be staged.
 */
uint64_t kn_host_wait_count(void);

/* Counts a call; `what` is for the message. An error if kn_set_sync_debug_mode demands one. */
kn_status kn_note_host_wait(const char *what);
