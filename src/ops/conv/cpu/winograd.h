/* ops/conv/cpu/winograd.h - when Winograd's convolution pays off on CPU devices. */
#pragma once

#include "ops/conv/common/winograd.h"

/* The fewest channels, in and out, that make up for the transforms. */
int64_t kn_conv_least_winograd_channels(const kn_limits *limits, const kn_winograd_tile *tile);
