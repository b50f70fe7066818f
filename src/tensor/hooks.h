/* tensor/hooks.h - where the tensor layer, which knows no gradients, and the autograd layer meet. */
#ifndef KN_TENSOR_HOOKS_H
#define KN_TENSOR_HOOKS_H

#include "tensor/tensor.h"

/* Defined by the autograd layer: frees a dying tensor's part; makes a new tensor a leaf that requires gradients. */
void kn_autograd_free(struct kn_autograd *autograd);
kn_status kn_autograd_require(kn_tensor *tensor);

/* KN_ERR_STATE where `function`, which is not recorded, would change or read values whose gradients are wanted. */
kn_status kn_autograd_check_unrecorded(const char *function, const kn_tensor *tensor);

/* The text of kn_to_string with `suffix` ("requires_grad=True", or NULL) as its last part. The caller frees it. */
char *kn_tensor_format(const kn_tensor *tensor, const char *suffix);

#endif
