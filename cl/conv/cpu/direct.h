/* conv/cpu/direct.h - the sums of direct convolution and where they go (conv/cpu/direct.cl). */
#pragma once

#include "conv/cpu/parts.h"

/* Output columns that are KN_CONV_DIRECT_CLASSES or fewer apart and share a copy of the image: in backward-data with a
 * stride they have taps and weights of their own, and alternate in y. */
#define KN_CONV_DIRECT_CLASSES 8
typedef struct kn_conv_direct_class {
    kn_long out;            /* number of output columns, at most one less than the first class has */
    kn_long taps;           /* per input channel */
    kn_long weights, table; /* where they start, in elements of `packed` and `table` */
} kn_conv_direct_class;
KN_SHARED_SIZE(kn_conv_direct_class, 4 * 8);

typedef struct kn_conv_direct_layout {
    kn_conv_parts parts;
    kn_conv_direct_class of[KN_CONV_DIRECT_CLASSES];
    kn_long classes;
    kn_long sums;                         /* pixels per block and class: a unit's, and PX - 1 that fill the last tile */
    kn_long units_per_item, scratch_size; /* scratch: elements per work-item, of the copy, the sums and the starts */
} kn_conv_direct_layout;
KN_SHARED_SIZE(kn_conv_direct_layout, sizeof(kn_conv_parts) + (KN_CONV_DIRECT_CLASSES * 4 + 4) * 8);
