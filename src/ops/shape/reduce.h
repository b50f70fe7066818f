/* ops/shape/reduce.h - reductions as the ops and losses share them: which dimensions, and sums of contiguous data. */
#ifndef KN_OPS_SHAPE_REDUCE_H
#define KN_OPS_SHAPE_REDUCE_H

#include "loops/rows.h"
#include "ops/dispatch/invoke.h"
#include "ops/shape/broadcast.h"

/* Which dimensions of its input a reduction goes over. */
typedef struct kn_reduce_params {
    bool over[KN_MAX_DIMS];
    bool keepdim;
} kn_reduce_params;

/* The caller's list of dimensions. False with a sticky error when there is none though num_dims says so. */
bool kn_reduce_named(kn_ints *list, const char *function, const int *dims, int num_dims);

/* Which dimensions these are of `ndim`; none named means all. */
kn_status kn_reduce_enter(kn_reduce_params *params, const kn_ints *dims, bool keepdim, int ndim);

/* Declares the output of a reduction of input 0. */
kn_status kn_reduce_output(kn_call *call, const kn_reduce_params *params, kn_dtype dtype);

/* How many elements are reduced to one. */
int64_t kn_reduce_count(const kn_reduce_params *params, int ndim, const int64_t *shape);

/* The gradient of a reduction, of the output's shape, spread over the input's shape: a view. */
kn_tensor *kn_reduce_spread(kn_tensor *gradient, const kn_reduce_params *params, int ndim, const int64_t *shape);

/* A contiguous tensor as an operand of the engine for rows. */
static inline kn_operand kn_row_operand(const kn_tensor *t)
{
    return (kn_operand){.buffer = t->storage->buffer, .offset = t->offset, .dtype = t->dtype};
}

/* y [outer, inner] = sums over the middle of contiguous x [outer, n, inner], divided by `divisor`; at most two
 * launches. y's dtype is x's for floating ones, else int64. */
kn_status kn_sum_middle(kn_stream *stream, const char *operation, const kn_tensor *x, int64_t outer, int64_t n,
                        int64_t inner, double divisor, kn_tensor *y);

#endif
