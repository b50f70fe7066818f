/* ops/gemm/epilogue.h - what a product, a convolution, a normalisation or a pooling does to each result before it
 * stores it: after the bias, the activation. All that there are cut off what is outside [low, high]; NaN stays NaN.
 * Kernels write
 *
 *     v = v < low ? low : v > high ? high : v
 *
 * (KN_CUT in common/koine.clh for scalars and vectors), which costs nothing beside the store. The gradient is 0 where
 * the result is <= low or >= high. Bounds that are not there are NaN: no comparison with them holds, so that one kernel
 * serves forward and backward with an activation and without. */
#ifndef KN_OPS_GEMM_EPILOGUE_H
#define KN_OPS_GEMM_EPILOGUE_H

#include <koine/functional.h>
#include <math.h>

typedef struct kn_cut {
    double low, high;
} kn_cut;

static inline double kn_cut_off(kn_cut cut, double v) { return v < cut.low ? cut.low : v > cut.high ? cut.high : v; }

static inline kn_cut kn_cut_of(kn_activation activation)
{
    switch (activation) {
    case KN_ACTIVATION_RELU:
        return (kn_cut){0, NAN};
    case KN_ACTIVATION_RELU6:
        return (kn_cut){0, 6};
    default:
        return (kn_cut){NAN, NAN};
    }
}

#endif
