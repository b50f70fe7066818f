/* loops/pointwise_spread.h - elementwise work whose inputs are all broadcast along some dimension, such as the
 * logarithm of an expanded tensor, on CPU devices: computed once and copied along it. */
#pragma once

#include "loops/pointwise.h"

/* The problem of the elements that differ, and the copy of its result to the outputs. Kept by the caller until both are
 * enqueued. */
typedef struct kn_spread {
    kn_pointwise_problem distinct, copy;
    kn_buffer *results;
} kn_spread;

/* Is that worth the second launch? */
bool kn_pointwise_spreads(const kn_limits *limits, const kn_pointwise_problem *problem);

/* Call kn_spread_end also after an error. */
kn_status kn_spread_begin(kn_spread *spread, kn_stream *stream, const kn_pointwise_problem *problem);
void kn_spread_end(kn_spread *spread);
