/* ops/sort/along.h - shared by operators that sort along a dimension: rows of memory from tensors of any strides, and the
 * gradients of what a row's places select. */
#pragma once

#include "ops/dispatch/backward.h"
#include "ops/shape/reduce.h"
#include "ops/sort/engine.h"

/* A tensor with one dimension moved last, contiguous: rows of n. Owned. */
typedef struct kn_sorted_rows {
    kn_tensor *x;
    int64_t rows, n;
} kn_sorted_rows;
kn_status kn_sorted_rows_of(kn_sorted_rows *rows, kn_tensor *x, int dim);

/* Sorts rows of x along `dim` into `values` and `indices`, which have k elements in that dimension, or, if k is 1, may
 * be without it; NULL: unwanted. */
kn_status kn_sort_along(kn_stream *stream, const char *operation, kn_tensor *x, int dim, int64_t k, bool descending,
                        kn_tensor *values, kn_tensor *indices);

/* The gradient of outputs whose elements were taken from input 0 along a dimension, at int64 `indices` of the gradient's
 * shape: all different in each row, so that each gradient goes to one place, the other places are 0. */
kn_status kn_taken_backward(kn_grad_call *grad, kn_tensor *gradient, kn_tensor *indices, int dim);

/* The same of recorded operations. */
kn_status kn_taken_backward_recorded(kn_grad_call *grad, kn_tensor *gradient, kn_tensor *indices, int dim);

/* Gives up the indices, output 1, in `indices` if that is not NULL. */
kn_tensor *kn_invoke_with_indices(const kn_op *op, kn_tensor *x, const void *params, kn_tensor **indices);

/* A backward pass as an operator. */
#define KN_TAKEN_BACKWARD_OP(of)                                                                                       \
    {                                                                                                                  \
        KN_BACKWARD_OP(of), .inputs = {"grad", "x", "indices"}, .dtypes[2] = 1u << KN_I64, .outputs = { "grad_x" }     \
    }
