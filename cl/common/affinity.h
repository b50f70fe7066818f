/* common/affinity.h - what a queue's launches on a CPU device have in common, in the host's memory: one kn_affinity,
 * then its slots. See cl/common/koine.clh, cl/common/affinity.clh and cl/device/linger.cl. */
#pragma once

#include "common/shared.h"

/* A cache line: what different threads write is not in the same one. */
#define KN_AFFINITY_LINE 64

typedef struct kn_affinity {
    kn_uint slots; /* the device's compute units */
    kn_uint unused[KN_AFFINITY_LINE / 4 - 1];

    /* Numbers of launches: the last that runs, which its work-items write, and the last enqueued; the last of a kernel
     * that does not write `started`; and the launch after which device/linger.cl last ended. */
    kn_long started;
    kn_long unused1[KN_AFFINITY_LINE / 8 - 1];
    kn_long enqueued, silent;
    kn_long unused2[KN_AFFINITY_LINE / 8 - 2];
    kn_long lingered;
    kn_long unused3[KN_AFFINITY_LINE / 8 - 1];
} kn_affinity;
KN_SHARED_SIZE(kn_affinity, 4 * KN_AFFINITY_LINE);

/* A slot is a thread's. Of its share of the launch that it last took part in, the number of the work-items taken is in
 * the lowest KN_AFFINITY_ITEM_BITS, that of the launch above. */
#define KN_AFFINITY_ITEM_BITS 24
typedef struct kn_affinity_slot {
    kn_long taken;
    kn_uint thread; /* 0: nobody's yet */
    kn_uint unused[KN_AFFINITY_LINE / 4 - 3];
} kn_affinity_slot;
KN_SHARED_SIZE(kn_affinity_slot, KN_AFFINITY_LINE);
