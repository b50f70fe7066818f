/* ops/sort/engine.h - the order of the elements in each row of a matrix, or the first k of each in that order.
 *
 * The order is stable: equal elements keep theirs. Every NaN is equal to the others and larger than all numbers; -0.0
 * is equal to 0.0. So the result is the same on all devices, whichever of these ways the sizes select (engine.c):
 *
 *     CPU devices   few of each row wanted     selection: each work-item keeps the best of a chunk; again on those
 *                   many rows, or short ones   a work-item sorts a row, by digits of 8 bits
 *                   few long rows              all work-items sort a row together, by digits of 8 bits
 *     GPUs          rows of up to 2048         a work-group sorts one, or several short ones, in local memory
 *                   few of each row wanted     selection: the best of tiles of 2048; again on those
 *                   long rows                  all work-groups sort them together, by digits of 4 bits */
#pragma once

#include "tensor/tensor.h"

typedef struct kn_sort_problem {
    const char *operation; /* for messages and profiles */
    const kn_tensor *x;    /* contiguous, rows of n; any dtype */
    int64_t rows, n, k;    /* k from 0 to n: how many results per row */
    bool descending;
    kn_tensor *values, *indices; /* contiguous, rows of k, x's dtype and int64; NULL: unwanted */
} kn_sort_problem;

kn_status kn_sort_run(kn_stream *stream, const kn_sort_problem *problem);

/* The build options of kernels that use sort/keys.clh. */
const char *kn_sort_options(char *buffer, size_t size, kn_dtype dtype, const kn_limits *limits);

/* For references: the indices 0 .. n - 1 of elements of x, a host tensor, `step` apart from `first` on, in their order.
 * Freed with kn_free. NULL if out of memory. */
int64_t *kn_sort_reference_order(const kn_tensor *x, int64_t first, int64_t step, int64_t n, bool descending);
