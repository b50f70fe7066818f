/* conv/cpu/weights.h - the shares of the sums of a gradient of weights (conv/cpu/weights.cl). */
#pragma once

#include "conv/common/correlation.h"
#include "conv/cpu/parts.h"

/* Of a set of blocks `set_units` units cover all pixels; a share is some consecutive ones of these. */
typedef struct kn_conv_weights_layout {
    kn_conv_parts parts;
    kn_conv_tap_list taps; /* of a chunk, in the copy */
    kn_long set_units, shares;
    kn_long shares_per_item; /* counting those of all sets */
    kn_long panel_pixels;    /* room for a unit's in each of its packed blocks of dy */
    kn_long has_bias;
    kn_long scratch_size; /* elements per work-item, of the copy, the packed dy, the starts and the taps */
} kn_conv_weights_layout;
KN_SHARED_SIZE(kn_conv_weights_layout, sizeof(kn_conv_parts) + sizeof(kn_conv_tap_list) + 6 * 8);
