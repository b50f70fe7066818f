/* rt/command/fill.c - see rt/device/fill.h. */
#include "rt/device/fill.h"

#include "rt/device/inject.h"

#define MOST_BYTES ((size_t)1 << 30) /* a multiple of all pattern sizes */

cl_int kn_fill_enqueue(cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes, size_t offset,
                       size_t bytes, cl_event *event)
{
    cl_int error = CL_SUCCESS;
    while (error == CL_SUCCESS && bytes > 0) {
        const size_t piece = bytes < MOST_BYTES ? bytes : MOST_BYTES;
        error = KN_CL(KN_CL_COPY, clEnqueueFillBuffer(queue, memory, pattern, pattern_bytes, offset, piece, 0, NULL,
                                                      piece == bytes ? event : NULL));
        offset += piece;
        bytes -= piece;
    }
    return error;
}
