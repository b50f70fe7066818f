/* tensor/hooks.h - the interface between the tensor layer, which knows nothing of gradients, and the autograd layer. */
#pragma once

#include "tensor/tensor.h"

/* What the autograd layer does for this one. It registers its functions when the library is loaded. */
typedef struct kn_tensor_hooks {
    void (*free)(struct kn_autograd *autograd); /* frees a dying tensor's part */
    kn_status (*require)(kn_tensor *tensor);    /* makes a new tensor a leaf that requires gradients */
    /* KN_ERR_STATE if `function`, which is not recorded, would change or read values that require gradients */
    kn_status (*check_unrecorded)(const char *function, const kn_tensor *tensor);
} kn_tensor_hooks;

extern const kn_tensor_hooks *kn_tensor_autograd;

/* The text of kn_to_string, ending in `suffix` ("requires_grad=True", or NULL). The caller frees it. */
char *kn_tensor_format(const kn_tensor *tensor, const char *suffix);
