/* rt/graph/capture.h - what other layers add to a recording.
 *
 * Some arguments of a recorded launch change with each replay, such as a generator's offset or an optimizer's step.
 * They are stored in variables of the recording. While a stream is captured, kn_capture_variable returns memory that is
 * valid as long as the graph (and other users, see rt/graph/variable.h). At each replay the functions passed to
 * kn_capture_on_replay run first, in order, on the replaying thread; arguments made by kn_arg_variable then have the
 * variables' current values. */
#pragma once

#include <koine/graph.h>

/* NULL with an error when memory is exhausted */
void *kn_capture_variable(kn_stream *stream, size_t bytes);
/* fails the capture with the thread's error; returns `status` */
kn_status kn_capture_fail(kn_stream *stream, kn_status status);
/* `drop` (NULL allowed) is called with `user` when the graph is gone, also when this fails */
kn_status kn_capture_on_replay(kn_stream *stream, kn_status (*prepare)(void *user), void *user,
                               void (*drop)(void *user));
