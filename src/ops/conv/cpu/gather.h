/* ops/conv/cpu/gather.h - where a 1 x 1 convolution of images reads. */
#pragma once

#include "conv/cpu/gather.h"
#include "ops/conv/common/conv.h"

static inline kn_conv_sampling kn_conv_sampling_of(const kn_conv_shape *s)
{
    return (kn_conv_sampling){.images = s->images,
                              .rows = s->out_size[1],
                              .columns = s->out_size[2],
                              .height = s->in_size[1],
                              .width = s->in_size[2],
                              .row_step = s->stride[1],
                              .column_step = s->stride[2],
                              .top = s->padding[1],
                              .left = s->padding[2]};
}
