/* tensor/hooks.h - the interface between the tensor layer, which knows nothing of gradients, and the autograd layer. */
#ifndef KN_TENSOR_HOOKS_H
#define KN_TENSOR_HOOKS_H

#include "tensor/tensor.h"

/* Defined by the autograd layer: frees a tensor's autograd part; makes a new tensor a leaf that requires a gradient. */
void kn_autograd_free(struct kn_autograd *autograd);
kn_status kn_autograd_require(kn_tensor *tensor);

/* KN_ERR_STATE if `function`, which is not recorded, would change or read values that require a gradient. */
kn_status kn_autograd_check_unrecorded(const char *function, const kn_tensor *tensor);

/* The text of kn_to_string, ending in `suffix` ("requires_grad=True", or NULL). The caller frees it. */
char *kn_tensor_format(const kn_tensor *tensor, const char *suffix);

#endif
