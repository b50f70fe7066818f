/* rt/command/recorder.h - how a command is recorded instead of enqueued.
 *
 * A capture on a stream provides the functions that record its commands (rt/graph/capture.c). */
#pragma once

#include "rt/command/launch.h"
#include "rt/program/program.h"
#include "rt/stream/capturing.h"
#include "rt/trace/watching.h"

struct kn_gemm_call; /* rt/clblast/gemm_call.h */

/* A copy or a fill, with its memory objects. */
typedef struct kn_transfer {
    cl_mem from, to;
    char *from_start, *to_start; /* their addresses in the host's memory; NULL: unknown */
    size_t from_offset, to_offset, bytes;
    unsigned char pattern[16]; /* of a fill */
    size_t pattern_bytes;
} kn_transfer;

/* Each records one command instead of enqueueing it. An error fails the capture for good. */
typedef struct kn_recorder {
    kn_status (*kernel)(kn_capture *capture, kn_stream *stream, kn_kernel *kernel, const kn_launch_params *params,
                        const size_t global[3], const size_t local[3]);
    kn_status (*transfer)(kn_capture *capture, kn_stream *stream, kn_command_kind kind, const kn_transfer *transfer,
                          const kn_buffer *from, const kn_buffer *to);
    kn_status (*gemm)(kn_capture *capture, const struct kn_gemm_call *call);
} kn_recorder;

/* Copies or fills at once, if nothing has to come first (rt/direct/direct.h); else false. */
bool kn_transfer_directly(kn_stream *stream, kn_command_kind kind, const kn_transfer *transfer);

/* Enqueues a copy or a fill; `event`: for kn_watch. */
cl_int kn_transfer_enqueue(kn_stream *stream, kn_command_kind kind, const kn_transfer *transfer, cl_event *event);

/* Sets the arguments of a kernel, or, of one that gathers them, `values`.
 * `known`: those that it has, if this is the only way that they are set; else NULL. */
kn_status kn_kernel_set_arguments(cl_kernel handle, kn_known_argument *known, kn_values *values, kn_stream *stream,
                                  const kn_launch_params *params);
