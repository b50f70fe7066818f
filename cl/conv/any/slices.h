/* conv/any/slices.h - slices of volumes as images (conv/any/slices.cl). */
#pragma once

#include "common/shared.h"

/* `images` images of channels * taps planes, from image `first` of all on. A volume gives `slices` images: in image i,
 * tap u of a channel is the channel's slice origin + i * step + u * distance. */
typedef struct kn_conv_slices {
    kn_long first, images, slices;
    kn_long channels, taps;
    kn_long volume, depth; /* planes per volume, and per channel of it */
    kn_long origin, step, distance;
    kn_long plane; /* elements */
} kn_conv_slices;
KN_SHARED_SIZE(kn_conv_slices, 11 * 8);
