/* conv/common/shape.h - the shape of a convolution, for kernels that take any shape (conv/common/shape.clh). */
#pragma once

#include "common/shared.h"

typedef struct kn_conv_kernel_shape {
    kn_long images, in_channels, depth, height, width;
    kn_long out_channels, kernel_depth, kernel_height, kernel_width, out_depth, out_height, out_width;
    kn_long stride_depth, stride_height, stride_width, front, top, left;
    kn_long dilation_depth, dilation_height, dilation_width, groups;
} kn_conv_kernel_shape;
KN_SHARED_SIZE(kn_conv_kernel_shape, 22 * 8);
