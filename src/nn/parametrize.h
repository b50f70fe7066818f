/* nn/parametrize.h - for the library's parametrizations: see koine/parametrize.h. */
#pragma once

#include <koine/parametrize.h>

#include "nn/module.h"

/* The module's parameter or buffer `name`, or its computed value; NULL with an error that begins with `function`. */
kn_tensor *kn_parametrize_target(const char *function, kn_module *module, const char *name);

/* kn_parametrize_register_parametrization of a parametrization that its constructor made, or failed to make. */
kn_status kn_parametrize_with(const char *function, kn_module *module, const char *name, kn_module *parametrization,
                              kn_right_inverse right_inverse);

/* Appends the name that a tensor below "parametrizations" has in files of torch.nn.utils's older weight_norm and
 * spectral_norm: weight_g for parametrizations.weight.original0, for example. false: it has none. */
bool kn_parametrize_older_name(kn_text *older, const char *name);
