/* ops/pointwise/epilogue.h - the epilogue of products, convolutions, normalisations and poolings: the bias, then the
 * activation. All supported activations clamp to [low, high]; NaN stays NaN. Kernels write
 *
 *     v = v < low ? low : v > high ? high : v
 *
 * (KN_CLAMP in common/koine.clh for scalars and vectors), which is free next to the store. The gradient is 0 where the
 * result is <= low or >= high. Absent bounds are NaN: comparisons with NaN are false, so the same kernel works, forward
 * and backward, with and without an activation. */
#pragma once

#include <koine/pointwise.h>
#include <math.h>

typedef struct kn_bounds {
    double low, high;
} kn_bounds;

static inline double kn_clamp_value(kn_bounds bounds, double v)
{
    return v < bounds.low ? bounds.low : v > bounds.high ? bounds.high : v;
}

static inline kn_bounds kn_bounds_of(kn_activation activation)
{
    switch (activation) {
    case KN_ACTIVATION_RELU:
        return (kn_bounds){0, NAN};
    case KN_ACTIVATION_RELU6:
        return (kn_bounds){0, 6};
    default:
        return (kn_bounds){NAN, NAN};
    }
}
