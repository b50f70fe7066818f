/* loops/fusion_kernel.h - one kernel of several fused operations, between its files: fusion_kernel.c gathers its
 * operands and runs it, fusion_code.c writes its code. */
#pragma once

#include <string.h>

#include "loops/fusion_parts.h"
#include "loops/pointwise_source.h"

/* The kernel in the making: the problem without its code. */
typedef struct kn_fused {
    kn_part *members[KN_FUSION_MEMBERS];
    int count;
    kn_pointwise_problem p;
    uint8_t input[KN_FUSION_MEMBERS][KN_POINTWISE_INPUTS]; /* of p, where it is memory */
    int number[KN_FUSION_MEMBERS];                         /* the first of each member's */
    char number_types[KN_POINTWISE_NUMBERS + 1];
    bool raw[KN_POINTWISE_INPUTS];
    int num_numbers;
    kn_part_link outputs[KN_POINTWISE_OUTPUTS];
    bool vectors;
} kn_fused;

/* Does the part's code take input i as it is in memory? */
static inline bool kn_part_reads_raw(const kn_part *part, int i)
{
    const kn_pointwise_code *code = part->p.code;
    return code->raw && strchr(code->raw, code->inputs[i]);
}

/* Of a part among the members. */
int kn_fused_index_of(const kn_fused *k, const kn_part *part);

/* Is an output of the part stored, or read by another member? */
bool kn_fused_is_used(const kn_fused *k, const kn_part *part, int output);

/* Sets the problem's code and operation. They are made once and kept for good, like their kernels: the same chain again
 * finds its code. Thread-safe. */
kn_status kn_fused_find_code(kn_fused *k, const kn_limits *limits);
