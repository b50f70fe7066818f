/* rt/graph/capture.h - what other layers add to a recording.
 *
 * Some arguments of a recorded launch change from replay to replay: where random numbers go on, the step of an
 * optimizer. They live in variables of the recording. While a stream is captured, kn_capture_variable gives memory that
 * stays where it is as long as the graph (and whoever holds it by rt/graph/variable.h); an argument made by
 * kn_arg_variable has at each replay the value that is there once the functions given to kn_capture_on_replay have run,
 * in their order, on the thread that replays. */
#ifndef KN_RT_GRAPH_CAPTURE_H
#define KN_RT_GRAPH_CAPTURE_H

#include <koine/graph.h>

/* NULL with an error when memory is exhausted */
void *kn_capture_variable(kn_stream *stream, size_t bytes);
/* fails the capture with the thread's error; returns `status` */
kn_status kn_capture_fail(kn_stream *stream, kn_status status);
/* `drop` (NULL allowed) is called with `user` when the graph is gone, also when this fails */
kn_status kn_capture_on_replay(kn_stream *stream, kn_status (*prepare)(void *user), void *user,
                               void (*drop)(void *user));

#endif
