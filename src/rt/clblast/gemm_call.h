/* rt/clblast/gemm_call.h - a matrix product ready to be enqueued, at once or at each replay. */
#ifndef KN_RT_CLBLAST_GEMM_CALL_H
#define KN_RT_CLBLAST_GEMM_CALL_H

#include "rt/clblast/gemm.h"
#include "rt/stream/stream_struct.h"

/* A matrix product with its operands' memory found: buffers may be gone when it is replayed, memory is not. */
typedef struct kn_gemm_call {
    kn_gemm_params params; /* the buffers are not looked at */
    cl_mem a, b, c;
    size_t a_offset, b_offset, c_offset; /* elements */
    cl_mem scratch;                      /* NULL: none needed */
    size_t scratch_offset, scratch_bytes;
} kn_gemm_call;

/* The profiler gets the event of the last of CLBlast's kernels. */
kn_status kn_clblast_enqueue(kn_stream *stream, const kn_gemm_call *call);

#endif
