/* ops/vision/resize.h - resizing images along each dimension; interpolate.c makes the record. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "autograd/op.h"

/* What `enter` makes of the caller's parameters, for the last `dims` dimensions. */
typedef struct kn_resize_record {
    int dims, kind;
    bool align_corners;
    int64_t out_size[3];
    double factor[3]; /* the caller's, if the step is its inverse; 0: the step is the ratio of the sizes */
} kn_resize_record;

/* Forward, or the transposed passes from the result's gradient to the input's; `size`: the input's last dimensions. */
kn_status kn_resize_run(kn_stream *stream, const kn_resize_record *r, const int64_t *size, bool transposed,
                        kn_tensor *from, kn_tensor *to);

/* The plain C reference of the forward pass. */
kn_status kn_resize_reference(const kn_call *call);
