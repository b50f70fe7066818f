/* rt/graph/replay.h - running a recording. */
#pragma once

#include "rt/graph/recording.h"

/* Enqueues the recording on the stream, with the values that its hooks give the variables now: they are called once
 * nothing else can run out of memory. Waits only when several replays are not enqueued yet. With `here` the calling
 * thread enqueues it before returning. */
kn_status kn_recording_replay(kn_stream *stream, kn_recording *recording, bool here);
