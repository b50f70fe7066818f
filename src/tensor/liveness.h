/* tensor/liveness.h - checks tensor arguments; in guard mode (KOINE_GUARD=1) also detects tensors used after their last
 * reference was released. */
#pragma once

#include <koine/tensor.h>

/* For public functions: KN_ERR_ARGUMENT for NULL (or the error that made it NULL), KN_ERR_STATE in guard mode for a
 * tensor that has been released; `name` is the parameter's. */
kn_status kn_check_tensor(const char *function, const char *name, const kn_tensor *tensor);

/* Only the guard mode check; `tensor` may be NULL. */
kn_status kn_tensor_check_live(const kn_tensor *tensor, const char *name);
kn_status kn_tensor_check_live_input(const kn_tensor *tensor, int index); /* named "input 3" */

bool kn_tensors_are_guarded(void);

/* Guard mode's replacement for freeing a tensor: keeps it for a while, so that its use is detected. */
void kn_tensor_keep_released(kn_tensor *tensor, kn_device *device);
