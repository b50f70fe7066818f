/* ops/conv/cpu/line.h - describes a problem's taps along one dimension (cl/conv/cpu/line.h). */
#pragma once

#include "conv/cpu/line.h"
#include "ops/conv/common/correlation.h"

static inline kn_conv_line kn_conv_line_of(const kn_conv_problem *problem, int d)
{
    const kn_conv_shape *s = &problem->shape;
    const bool data = problem->pass == KN_CONV_DATA;
    return (kn_conv_line){.from = kn_conv_from(problem).size[d],
                          .to = kn_conv_to(problem).size[d],
                          .taps = s->kernel_size[d],
                          .step = data ? 1 : s->stride[d],
                          .origin = data ? s->padding[d] : -s->padding[d],
                          .distance = data ? -s->dilation[d] : s->dilation[d],
                          .division = data ? s->stride[d] : 1};
}
