/* rt/stream/queue.h - called before and after a command is enqueued on a stream. */
#pragma once

#include "rt/stream/stream_struct.h"

/* Called before every command is enqueued: makes sure that work passed to the submitter is enqueued first. An error if
 * the device is lost, and while the stream is captured: then nothing may bypass the recording, and `what` ("reading a
 * tensor") is for that message. */
kn_status kn_stream_enter(kn_stream *stream, const char *what);

/* Called after every launch: sometimes flushes the queue (some drivers start nothing before that), and waits if the
 * host is too far ahead. */
kn_status kn_stream_count_launch(kn_stream *stream);

/* Waits for all the stream's work, replays handed to the submitter included. The second is for those who retained the
 * queue of a stream that may be destroyed meanwhile (kn_device_next_stream). */
cl_int kn_stream_finish(kn_stream *stream);
cl_int kn_stream_finish_queue(kn_stream *stream, cl_command_queue queue);
