/* norm/batch.h - what kernels of batch normalisation need besides tensors and numbers. */
#pragma once

#include "common/shared.h"

/* Which optional operands are present, and what to do. */
enum {
    KN_NORM_HAS_WEIGHT = 1,
    KN_NORM_HAS_BIAS = 2,
    KN_NORM_HAS_RUNNING = 4,
    KN_NORM_COUNTS = 8,      /* add one to the counter */
    KN_NORM_CUMULATIVE = 16, /* the factor is 1 / counter */
    KN_NORM_TRAINING = 32,
    KN_NORM_WANTS_X = 64, /* always in the forward pass: its result */
    KN_NORM_WANTS_WEIGHT = 128,
    KN_NORM_WANTS_BIAS = 256
};

/* Contiguous x as [outer, channels, inner], and how its channels are split: norm/batch.clh and norm/batch_gpu.clh.
 * Depends only on the shape and on whether the device is a CPU, so that the order of a sum is the same on all CPUs, and
 * on all others. */
typedef struct kn_batch_shape {
    kn_long outer, channels, inner, tile, length, chunks;
    kn_long group;  /* channels that a CPU device processes together; does not affect any sum */
    kn_long summed; /* `chunks`, or 0 if no sums over the channels are needed */
    kn_long flags;
} kn_batch_shape;
KN_SHARED_SIZE(kn_batch_shape, 72);
