/* ops/sort/taken.h - operators along a dimension whose results are elements of their input, given back with int64
 * indices: maxima, cumulative ones, sorted elements. */
#pragma once

#include "ops/reduce/taken.h"
#include "ops/shape/reduce.h"

/* kn_taken_backward of recorded operations. */
kn_status kn_taken_backward_recorded(kn_grad_call *grad, kn_tensor *gradient, kn_tensor *indices, int dim);

/* Gives up the indices, output 1, in `indices` if that is not NULL. */
kn_tensor *kn_invoke_with_indices(const kn_op *op, kn_tensor *x, const void *params, kn_tensor **indices);

/* A backward pass as an operator. */
#define KN_TAKEN_BACKWARD_OP(of)                                                                                       \
    {                                                                                                                  \
        KN_BACKWARD_OP(of), .inputs = {"grad", "x", "indices"}, .dtypes[2] = 1u << KN_I64, .outputs = { "grad_x" }     \
    }
