/* common/divisor.h - a precomputed divisor for kernels: common/divide.clh has the formula, base/divisor.h computes
 * it. */
#ifndef KN_COMMON_DIVISOR_H
#define KN_COMMON_DIVISOR_H

#include "common/shared.h"

typedef struct kn_divisor {
    kn_uint divisor, multiplier, shift;
} kn_divisor;
KN_SHARED_SIZE(kn_divisor, 12);

#endif
