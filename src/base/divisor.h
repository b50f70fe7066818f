/* base/divisor.h - what kernels need for fast integer division; cl/common/divide.clh has the formula. */
#pragma once

#include "common/divisor.h"

/* For 1 <= d < 2^31. Smaller values (of empty shapes, where nothing is divided) count as 1. */
static inline kn_divisor kn_divisor_of(int64_t d)
{
    const uint64_t divisor = d < 1 ? 1 : (uint64_t)d;
    uint32_t shift = 0;
    while (((uint64_t)1 << shift) < divisor)
        shift++;
    const uint64_t multiplier = (((uint64_t)1 << 32) * (((uint64_t)1 << shift) - divisor)) / divisor + 1;
    return (kn_divisor){(uint32_t)divisor, (uint32_t)multiplier, shift};
}

static inline uint32_t kn_quotient(uint32_t n, kn_divisor d)
{
    return ((uint32_t)((uint64_t)n * d.multiplier >> 32) + n) >> d.shift;
}
