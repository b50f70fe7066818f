/* ops/loss/distance.h - shared by the compositions of this folder. */
#pragma once

#include "ops/loss/element_loss.h"

/* For `enter`: the result, or the error if it is NULL. */
kn_status kn_composed_give(kn_entry *entry, kn_tensor *result);
