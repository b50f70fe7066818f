/* ops/conv/gpu/blocked.h - convolution on GPUs as implicit GEMM: how the gradient of the weights is divided. */
#pragma once

#include "ops/conv/common/conv.h"

/* Shares of the pixels of all images, each with a sum of its own. Depends on the shape alone. */
int64_t kn_conv_blocked_shares(const kn_conv_shape *shape);
