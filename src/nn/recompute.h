/* nn/recompute.h - modules that keep only their inputs for the backward pass: see kn_module_checkpoint. */
#pragma once

#include "nn/module.h"

/* kn_module_call, without a record of the operations inside. The arrays have the signature's lengths. */
kn_status kn_recomputed_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs);
