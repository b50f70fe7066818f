/* tests/ops/sample_leaves.h - the inputs of an operator's sample that get gradients. */
#pragma once

#include <koine/autograd.h>

#include "cli/op_samples.h"

/* Returns how many there are. */
static inline int sample_leaves(const kn_op_sample *sample, kn_tensor *leaves[KN_SAMPLE_INPUTS])
{
    int count = 0;
    for (int i = 0; i < sample->num_inputs; i++)
        if (sample->inputs[i] && kn_requires_grad(sample->inputs[i]))
            leaves[count++] = sample->inputs[i];
    return count;
}
