/* ops/sort/along.h - sorting along a dimension of tensors of any strides. */
#pragma once

#include "ops/sort/engine.h"
#include "ops/sort/taken.h"

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
