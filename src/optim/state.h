/* optim/state.h - an optimizer's state by name, for saving and loading (io/checkpoint.c). */
#pragma once

#include "optim/optim.h"

/* "state.0.step", "state.0.exp_avg", ...: PyTorch's state_dict()["state"], flattened. Tensors are views, numbers are
 * tensors without dimensions. Free with kn_tensor_list_free. On failure the list is empty. */
kn_status kn_optim_state_list(kn_optim *optim, kn_tensor_list *list);

/* Is such a list that of one rank's parameters only? */
bool kn_optim_is_share(const kn_optim *optim, int *rank, int *size);
/* The state of all ranks that a shard may have is no longer that of the optimizer. */
void kn_optim_forget_whole(kn_optim *optim);

/* Appends a number of such a state. */
kn_status kn_optim_append_number(kn_tensor_list *list, const char *name, kn_dtype dtype, double number);

/* PyTorch's state_dict()["param_groups"] as JSON; the caller frees it with kn_free. NULL with an error. */
char *kn_optim_groups_to_json(const kn_optim *optim);

/* Restores a state; names, shapes, groups and the kind of optimizer must match. `groups`: the JSON; NULL: a state of
 * earlier versions, "step" (int64, one per parameter), "hyperparameters" (float64) and "exp_avg.0", ... `origin` names
 * the source in messages. A failure changes nothing. */
kn_status kn_optim_state_load(kn_optim *optim, const kn_tensor_list *state, const char *groups, const char *origin);

const char *kn_optim_type_name(const kn_optim *optim);

/* groups_json.c: reads the hyperparameters of all groups, [group][KN_OPTIM_MAX_HYPER], and their initial learning rates
 * (NaN where there is none); values that the JSON does not have are left. */
kn_status kn_optim_groups_from_json(const kn_optim *optim, const char *json, const char *origin,
                                    double (*hyper)[KN_OPTIM_MAX_HYPER], double *initial_lr);
