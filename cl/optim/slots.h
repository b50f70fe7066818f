/* optim/slots.h - the parameters of one launch of an optimizer (optim/slots.clh). */
#pragma once

#include "common/shared.h"

#define KN_OPTIM_SLOTS 16 /* 8 on CPU devices, where launches are cheap */

/* The index of the next slot's first work-group. */
typedef struct kn_slot_ends {
    kn_uint end[KN_OPTIM_SLOTS];
} kn_slot_ends;
KN_SHARED_SIZE(kn_slot_ends, KN_OPTIM_SLOTS * 4);
