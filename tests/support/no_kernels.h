/* support/no_kernels.h - for tests that make large networks and ask for no value: without their hundreds of millions of
 * random numbers. */
#pragma once

#include "rt/compile/rehearsal.h"

static inline bool takes_none(uint64_t kernel, void *user)
{
    (void)kernel;
    (void)user;
    return false;
}

/* Between these nothing is computed: whatever the host reads is zeros. */
static inline void kernels_off(void)
{
    static kn_rehearsal rehearsal = {.takes = takes_none};
    kn_rehearse(&rehearsal);
}
static inline void kernels_on(void) { kn_rehearse(NULL); }
