/* rt/device/fill.c - see rt/device/fill.h. */
#include "rt/device/fill.h"

#include <string.h>

#include "rt/device/inject.h"

#define MOST_COPIED ((size_t)1 << 14)
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

/* Copies what is filled, until that is as long as a part that stays in the cache. */
void kn_fill_memory(void *memory, const void *pattern, size_t pattern_bytes, size_t bytes)
{
    static const unsigned char zeros[16];
    unsigned char *to = memory;
    if (pattern_bytes <= sizeof zeros && memcmp(pattern, zeros, pattern_bytes) == 0) {
        memset(to, 0, bytes);
        return;
    }
    memcpy(to, pattern, pattern_bytes);
    for (size_t done = pattern_bytes, part; done < bytes; done += part) {
        part = done < MOST_COPIED ? done : MOST_COPIED;
        part = part < bytes - done ? part : bytes - done;
        memcpy(to + done, to, part);
    }
}
