/* ops/pointwise/dropout.h - dropout with a given draw, for operators that drop elements themselves. */
#pragma once

#include <math.h>

#include "tensor/tensor.h"

/* What the tape records of a dropout. */
typedef struct kn_dropout_record {
    kn_philox draw;
    double p;
    int64_t inner; /* elements that share a random word: 1, or a channel's */
} kn_dropout_record;

/* An element is dropped if its word's upper 24 bits are below this, that is, if (word >> 8) / 2^24 < p. */
static inline uint32_t kn_dropout_threshold(double p) { return (uint32_t)ceil(p * 0x1p24); }

/* The factor of elements that are kept. */
static inline double kn_dropout_scale(double p) { return p < 1 ? 1 / (1 - p) : 0; }

/* x with the mask of that draw: word i decides over element i. Recorded. */
kn_tensor *kn_dropout_again(kn_tensor *x, const kn_philox *draw, double p);
