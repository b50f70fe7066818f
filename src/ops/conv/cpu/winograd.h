/* ops/conv/cpu/winograd.h - when Winograd's convolution pays off on CPU devices. */
#pragma once

#include "ops/conv/common/winograd.h"

/* Are there enough channels to make up for the transforms? Of the weights' gradient those written are the more. */
bool kn_conv_has_winograd_channels(const kn_limits *limits, const kn_winograd_tile *tile, int64_t read,
                                   int64_t written);
