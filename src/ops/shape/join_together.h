/* ops/shape/join_together.h - cat and stack of several contiguous tensors at once, on CPU devices. */
#pragma once

#include "autograd/op.h"

/* Should the inputs be joined so? `outer`: the product of the output's sizes before the dimension. */
bool kn_joins_together(const kn_call *call, int64_t outer);
kn_status kn_join_together(const kn_call *call, int64_t outer);
