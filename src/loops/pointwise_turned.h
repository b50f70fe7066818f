/* loops/pointwise_turned.h - inputs of elementwise work that are dense in another dimension than the outputs, such as
 * the transposed one of a + b^T, on CPU devices. Along the outputs' rows each of its elements is in another cache line,
 * so it is copied first, in tiles (loops/transpose.h). */
#pragma once

#include "loops/pointwise.h"

/* The problem with such inputs replaced by copies. Kept by the caller until the problem's kernel is enqueued. */
typedef struct kn_turned {
    kn_pointwise_problem p;
    kn_buffer *copies[KN_POINTWISE_INPUTS];
} kn_turned;

/* Has the problem such an input? */
bool kn_pointwise_turns(const kn_limits *limits, const kn_pointwise_problem *problem);

/* Enqueues the copies. Call kn_turned_end also after an error. */
kn_status kn_turned_begin(kn_turned *turned, kn_stream *stream, const kn_pointwise_problem *problem);
void kn_turned_end(kn_turned *turned);
