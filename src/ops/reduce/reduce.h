/* ops/reduce/reduce.h - reductions as the ops and losses share them: which dimensions, and sums of contiguous data. */
#ifndef KN_OPS_REDUCE_REDUCE_H
#define KN_OPS_REDUCE_REDUCE_H

#include "loops/work_size.h"
#include "ops/pointwise/broadcast.h"

/* Which dimensions of its input a reduction goes over. */
typedef struct kn_reduce_params {
    bool over[KN_MAX_DIMS];
    bool keepdim;
} kn_reduce_params;

/* Fills params from the caller's list; none given means all. False with a sticky error when a dimension is out of range
 * or named twice. */
bool kn_reduce_dims(kn_reduce_params *params, const char *function, int ndim, const int *dims, int num_dims,
                    bool keepdim);

/* Declares the output of a reduction of input 0. */
kn_status kn_reduce_output(kn_call *call, const kn_reduce_params *params, kn_dtype dtype);

/* How many elements are reduced to one. */
int64_t kn_reduce_count(const kn_reduce_params *params, int ndim, const int64_t *shape);

/* The gradient of a reduction, of the output's shape, spread over the input's shape: a view. */
kn_tensor *kn_reduce_spread(kn_tensor *gradient, const kn_reduce_params *params, int ndim, const int64_t *shape);

/* y [outer, inner] = sums over the middle of contiguous x [outer, n, inner], divided by `divisor`; at most two
 * launches. y's dtype is x's for floating ones, else int64. */
kn_status kn_sum_middle(kn_stream *stream, const char *operation, const kn_tensor *x, int64_t outer, int64_t n,
                        int64_t inner, double divisor, kn_tensor *y);

/* Into how many chunks of `length` the middle of [outer, n, inner], n > 0, is cut for the first of two launches; one
 * chunk: a launch is enough. Depends on the sizes only, so that the order of a sum is the same on every device. */
typedef struct kn_chunks {
    int64_t length, count;
} kn_chunks;
kn_chunks kn_cut_middle(int64_t outer, int64_t n, int64_t inner);

/* Work-items for `tasks` pieces that a CPU device gives to a work-item each, and the other devices to a work-group of
 * 256 (or fewer, a power of two). */
kn_work_size kn_work_for_groups(const kn_limits *limits, int64_t tasks);

/* How many work-items of a work-group of `local`, a power of two, share a run of `n`: so many that each has `terms` at
 * most, where there are enough. With 16 the tree that joins them costs no more than the terms. */
int kn_team_for(int64_t n, int64_t terms, size_t local);

#endif
