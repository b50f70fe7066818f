/* loops/operand.h - what the engines compute on: tensors as they lie in memory, and numbers. */
#ifndef KN_LOOPS_OPERAND_H
#define KN_LOOPS_OPERAND_H

#include <koine/dtype.h>

#include "rt/rt.h"

/* A tensor as the engines see it. */
typedef struct kn_operand {
    const kn_buffer *buffer;
    int64_t offset; /* elements */
    kn_dtype dtype; /* in memory; 0 in a problem: an output that is not wanted, an input that these do not need */
    /* a dtype that values are rounded to as they are loaded (float16, where it is computed in float32); 0: none */
    kn_dtype rounded;
    int64_t strides[KN_MAX_DIMS]; /* elements, along the problem's dimensions; 0 where it is broadcast */
} kn_operand;

/* A number: whole ones exactly. */
typedef struct kn_number {
    bool is_whole;
    double real;
    int64_t whole;
} kn_number;
static inline kn_number kn_real_number(double value) { return (kn_number){.real = value}; }
static inline kn_number kn_whole_number(int64_t value)
{
    return (kn_number){.is_whole = true, .real = (double)value, .whole = value};
}

static inline kn_arg kn_operand_argument(const kn_operand *operand)
{
    return kn_arg_buffer(operand->buffer, operand->offset * (int64_t)kn_dtype_size(operand->dtype));
}

#endif
