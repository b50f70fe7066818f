/* nn/state_dict.h - a module's state by name, for saving and loading (io/checkpoint.c). */
#pragma once

#include "nn/module.h"

/* Parameters and buffers by PyTorch's names; a tensor registered under two names is listed twice, as in
 * torch.nn.Module.state_dict. Tensors are borrowed. Free with kn_tensor_list_free. On failure the list is empty. */
kn_status kn_state_dict_list(kn_module *module, kn_tensor_list *list);

/* Gives the module the values in `state` (host or device tensors, borrowed). Each name that both have must have the
 * same shape; dtypes are converted. `strict`: the names must be exactly the module's. `prefix` is put before names in
 * messages and keys, `origin` names the source. `keys`, may be NULL, receives missing and unexpected names. Nothing is
 * changed on failure. */
kn_status kn_state_dict_load(kn_module *module, const kn_tensor_list *state, bool strict, const char *prefix,
                             kn_incompatible_keys *keys, const char *origin);
