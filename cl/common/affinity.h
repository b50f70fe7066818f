/* common/affinity.h - the memory of cl/common/affinity.clh: one kn_affinity for a queue, then its slots. */
#pragma once

#include "common/shared.h"

/* A cache line: threads write their own only. */
#define KN_AFFINITY_LINE 64

typedef struct kn_affinity {
    kn_uint slots; /* the device's compute units */
    kn_uint unused[KN_AFFINITY_LINE / 4 - 1];
} kn_affinity;
KN_SHARED_SIZE(kn_affinity, KN_AFFINITY_LINE);

/* A slot is a thread's. Of its share of the launch that it last took part in, the number of the work-items taken is in
 * the lowest KN_AFFINITY_ITEM_BITS, that of the launch above. */
#define KN_AFFINITY_ITEM_BITS 24
typedef struct kn_affinity_slot {
    kn_long taken;
    kn_uint thread; /* 0: nobody's yet */
    kn_uint unused[KN_AFFINITY_LINE / 4 - 3];
} kn_affinity_slot;
KN_SHARED_SIZE(kn_affinity_slot, KN_AFFINITY_LINE);
