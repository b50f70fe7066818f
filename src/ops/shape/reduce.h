/* ops/shape/reduce.h - shared by reductions and losses: resolving dimensions, and sums of contiguous data. */
#pragma once

#include "loops/rows.h"
#include "ops/dispatch/invoke.h"
#include "ops/shape/broadcast.h"

/* The dimensions that a reduction reduces. */
typedef struct kn_reduce_params {
    bool over[KN_MAX_DIMS];
    bool keepdim;
} kn_reduce_params;

/* The caller's list of dimensions. False with a sticky error if it is NULL though num_dims is not 0. */
bool kn_reduce_named(kn_ints *list, const char *function, const int *dims, int num_dims);

/* Resolves the list for a tensor of `ndim` dimensions; an empty list means all. */
kn_status kn_reduce_enter(kn_reduce_params *params, const kn_ints *dims, bool keepdim, int ndim);

/* Declares the output of a reduction of input 0. */
kn_status kn_reduce_output(kn_call *call, const kn_reduce_params *params, kn_dtype dtype);

/* How many elements are reduced to one. */
int64_t kn_reduce_count(const kn_reduce_params *params, int ndim, const int64_t *shape);

/* The gradient of a reduction, broadcast from the output's to the input's shape: a view. */
kn_tensor *kn_reduce_spread(kn_tensor *gradient, const kn_reduce_params *params, int ndim, const int64_t *shape);

/* How the engine for rows sees a reduction over some dimensions of a tensor, in any layout: see kn_rows_problem. */
typedef struct kn_reduce_rows {
    kn_tensor *x; /* the tensor or a contiguous copy; owned */
    int64_t outer, n, inner, pitch, step;
} kn_reduce_rows;

/* False: the strides do not allow it without a copy. The order of the elements of a row is that in memory. */
bool kn_reduce_in_place(kn_reduce_rows *rows, kn_tensor *x, const bool *over);

/* The rows of a contiguous copy: [outer, n, inner] if the reduced dimensions are neighbours, otherwise permuted so that
 * they come last. */
kn_status kn_reduce_copy(kn_reduce_rows *rows, kn_tensor *x, const bool *over);

/* Contiguous data as [outer, n, inner] round dimension `dim`; without dimensions it is one element. */
typedef struct kn_along {
    int64_t outer, n, inner;
} kn_along;
kn_along kn_along_dim(int ndim, const int64_t *shape, int dim);

/* A contiguous tensor as an operand of the engine for rows. */
static inline kn_rows_operand kn_row_operand(const kn_tensor *t)
{
    return (kn_rows_operand){.buffer = t->storage->buffer, .offset = t->offset, .dtype = t->dtype};
}

/* The problem of `rows`, without inputs and outputs. */
static inline kn_rows_problem kn_reduce_problem(kn_rows_code *code, const char *operation, kn_dtype compute,
                                                const kn_reduce_rows *rows)
{
    return (kn_rows_problem){.code = code,
                             .operation = operation,
                             .compute = compute,
                             .outer = rows->outer,
                             .n = rows->n,
                             .inner = rows->inner,
                             .has_strides = true,
                             .pitch = rows->pitch,
                             .step = rows->step};
}

/* y [outer, inner] = sums over the middle of contiguous x [outer, n, inner], divided by `divisor`; at most two
 * launches. y's dtype is x's for floating dtypes, otherwise int64. */
kn_status kn_sum_middle(kn_stream *stream, const char *operation, kn_tensor *x, int64_t outer, int64_t n, int64_t inner,
                        double divisor, kn_tensor *y);

/* The code of that, for floating dtypes: p is the divisor. */
extern kn_rows_code kn_mean_code;

/* --- what sum and mean share (sum.c) ------------------------------------------------------------------------------ */

/* Their parameters, a kn_reduce_args, and what becomes of them: a kn_reduce_params. */
extern const kn_op_param kn_sum_rows[2];
kn_status kn_sum_enter(kn_entry *entry);

/* Output 0 = the sums of input 0, divided. */
kn_status kn_sum_divided(kn_call *call, double divisor);
kn_status kn_sum_reference(const kn_call *call, double divisor);

kn_tensor *kn_sum_invoke(const kn_op *op, kn_tensor *x, const int *dims, int num_dims, bool keepdim);
