/* loops/operand.h - tensor operands of the engines. */
#pragma once

#include <koine/dtype.h>

#include "rt/rt.h"

typedef struct kn_operand {
    const kn_buffer *buffer;
    int64_t offset; /* elements */
    kn_dtype dtype; /* in memory; 0 in a problem: unwanted output, or an input that only those need */
    /* a dtype that values are rounded to on load (float16 or bfloat16, when computing in float32); 0: none */
    kn_dtype rounded;
    int64_t strides[KN_MAX_DIMS]; /* elements, along the problem's dimensions; 0 where broadcast */
} kn_operand;

/* Do strides address the same elements? */
static inline bool kn_strides_match(const int64_t *a, const int64_t *b, int ndim, const int64_t *shape)
{
    for (int d = 0; d < ndim; d++)
        if (shape[d] != 1 && a[d] != b[d])
            return false;
    return true;
}

/* Are they the same elements, of the same dtype? */
static inline bool kn_operand_is_same(const kn_operand *a, const kn_operand *b, int ndim, const int64_t *shape)
{
    return a->buffer == b->buffer && a->offset == b->offset && a->dtype == b->dtype &&
           kn_strides_match(a->strides, b->strides, ndim, shape);
}

static inline kn_arg kn_operand_argument(const kn_operand *operand)
{
    return kn_arg_buffer(operand->buffer, operand->offset * (int64_t)kn_dtype_size(operand->dtype));
}
