/* autograd/whole.h - the gradient of a tensor that is used in parts: q, k and v of one product, the chunks of a gate.
 *
 * While parts of it arrive it is incomplete: each has its range of one dimension, written by the first to arrive there,
 * added to by others. What no part has written is zeroed when the gradient is needed. Before that, an op's backward may
 * ask for the place where the gradient of its input will end up, and write it there: the range is reserved. Every view
 * that has `part` (op.h) passes such requests on, those of all elements too. */
#pragma once

#include "autograd/queue.h"

typedef struct kn_whole kn_whole;

/* Where a gradient of output `output` may be written, uninitialised, with any strides; an owned reference. NULL: it has
 * no place, or with an error. For passes over all leaves: gradients that a caller keeps must not share memory. */
kn_status kn_whole_place(kn_tensor **place, kn_queue *q, kn_node *node, int output);

/* The gradient of a view arrives: *taken if it was put into that of the node's input; otherwise backward must run.
 * may_place: as for kn_whole_place. */
kn_status kn_whole_put(bool *taken, kn_queue *q, kn_node *view, bool may_place);

/* Makes the gradient complete, when all parts have arrived. */
kn_status kn_whole_finish(kn_node *node);
void kn_whole_drop(kn_node *node);

/* Not shared, so that it may be changed in place? */
bool kn_gradient_is_ours(const kn_tensor *gradient);
