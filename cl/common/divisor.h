/* common/divisor.h - a precomputed divisor for kernels: common/divide.clh has the formula, base/divisor.h computes
 * it. */
#pragma once

#include "common/shared.h"

typedef struct kn_divisor {
    kn_uint divisor, multiplier, shift;
} kn_divisor;
KN_SHARED_SIZE(kn_divisor, 12);
