/* conv/common/shape.h - the shape of a convolution, as the library describes it and as kernels that take any shape read
 * it (conv/common/shape.clh). */
#pragma once

#include "common/shared.h"

/* Arrays are {depth, height, width}. The padding after the data follows from the output size. */
typedef struct kn_conv_shape {
    kn_long f64; /* float64, otherwise float32 */
    kn_long images, in_channels, in_size[3];
    kn_long out_channels, kernel_size[3], out_size[3];
    kn_long stride[3], padding[3], dilation[3];
    kn_long groups;
} kn_conv_shape;
KN_SHARED_SIZE(kn_conv_shape, 23 * 8);
