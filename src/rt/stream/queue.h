/* rt/stream/queue.h - between a stream and its queue: what every command passes before and after it is enqueued. */
#ifndef KN_RT_STREAM_QUEUE_H
#define KN_RT_STREAM_QUEUE_H

#include "rt/stream/stream_struct.h"

/* What every command passes before it goes to the stream's queue: work handed to the submitter goes first. `what`
 * ("reading a tensor") is for the messages: of a stream that is being captured, to which nothing can be enqueued past
 * the recording. */
kn_status kn_stream_enter(kn_stream *stream, const char *what);

/* Counts a launch: now and then hands the queue to the device (some drivers start nothing before that), and waits when
 * the host is too far ahead. */
kn_status kn_stream_count_launch(kn_stream *stream);

/* Waits for all that the stream was given, replays handed to the submitter included. The second for whoever holds the
 * queue of a stream that may be destroyed meanwhile (kn_device_next_stream). */
cl_int kn_stream_finish(kn_stream *stream);
cl_int kn_stream_finish_queue(kn_stream *stream, cl_command_queue queue);

#endif
