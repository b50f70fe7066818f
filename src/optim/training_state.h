/* optim/training_state.h - the state of gradient scalers and averages as tensors by name, for io/training_state.c.
 * Lists get more entries; `origin` names the source in messages, and a failure changes nothing. */
#pragma once

#include <koine/averaged_model.h>
#include <koine/grad_scaler.h>

#include "nn/tensor_list.h"

kn_status kn_grad_scaler_state_list(const kn_grad_scaler *scaler, kn_tensor_list *list);
kn_status kn_grad_scaler_state_load(kn_grad_scaler *scaler, const kn_tensor_list *list, const char *origin);

kn_status kn_averaged_model_state_list(const kn_averaged_model *model, kn_tensor_list *list);
kn_status kn_averaged_model_state_load(kn_averaged_model *model, const kn_tensor_list *list, const char *origin);
