/* optim/state.h - an optimizer's state by name, for saving and loading (io/checkpoint.c). */
#pragma once

#include "optim/optim.h"

/* "step" (int64, one per parameter), "hyperparameters" (float64: lr and the rest in the algorithm's order), and
 * "exp_avg.0", "exp_avg_sq.0", ...: views of the state of parameter 0, 1, ... Free with kn_tensor_list_free. On failure
 * the list is empty. */
kn_status kn_optim_state_list(kn_optim *optim, kn_tensor_list *list);

/* Restores a state from kn_optim_state_list; names, shapes and the kind of optimizer must match. `origin` names the
 * source in messages. A failure changes nothing. */
kn_status kn_optim_state_load(kn_optim *optim, const kn_tensor_list *state, const char *origin);

const char *kn_optim_type_name(const kn_optim *optim);
