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

static inline kn_arg kn_operand_argument(const kn_operand *operand)
{
    return kn_arg_buffer(operand->buffer, operand->offset * (int64_t)kn_dtype_size(operand->dtype));
}
