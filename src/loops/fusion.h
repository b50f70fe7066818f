/* loops/fusion.h - chains of elementwise work run as one kernel.
 *
 * While fusion is on, kn_pointwise_run only notes its problem. The noted ones of a stream form a graph: an input that a
 * noted problem makes is linked to it. Something is enqueued when a value is needed: by another kernel, a copy or the
 * host (rt/stream/deferral.h). It is then computed by one kernel, with all that it depends on; the values between are
 * rounded as in memory, but stay in registers. A value that nobody refers to any more when its readers run is never
 * written, and one that is cheap to compute again, such as those that the tape keeps of a chain for its gradient, is
 * computed again by the kernel that needs it.
 *
 * Results are those of the separate kernels, bit for bit. */
#pragma once

#include "loops/pointwise.h"

/* Notes the problem, if fusion is on for the calling thread and the problem suits it: then `deferred` is true. */
kn_status kn_fusion_take(kn_stream *stream, const kn_pointwise_problem *problem, bool *deferred);
