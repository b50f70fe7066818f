/* common/gathered.h - how kernels that gather their arguments (common/gathered.clh) find them: at the address `kn_call`
 * there is a kn_call_head, and behind it each argument at a multiple of 8 bytes, memory objects as their addresses. */
#pragma once

#include "common/shared.h"

/* told: 0; or the address at which the kernel is to store that of its code, instead of running it.
 * size: the work-items, which the work-groups divide among them. */
typedef struct kn_call_head {
    kn_long told, size[3];
} kn_call_head;
#define KN_CALL_BYTES 32
KN_SHARED_SIZE(kn_call_head, KN_CALL_BYTES);
