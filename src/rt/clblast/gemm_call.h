/* rt/clblast/gemm_call.h - a matrix product ready to be enqueued, at once or at each replay. */
#pragma once

#include "rt/clblast/gemm.h"
#include "rt/stream/stream_struct.h"

/* A matrix product with its operands' memory objects: at a replay the buffers may be freed, but the memory is not. */
typedef struct kn_gemm_call {
    kn_gemm_params params; /* the buffers are not used */
    cl_mem a, b, c;
    size_t a_offset, b_offset, c_offset; /* elements */
    cl_mem scratch;                      /* NULL: none needed */
    size_t scratch_offset, scratch_bytes;
} kn_gemm_call;

/* The profiler gets the event of CLBlast's last kernel. */
kn_status kn_clblast_enqueue(kn_stream *stream, const kn_gemm_call *call);
