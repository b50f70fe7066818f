/* nn/operator_layer.h - layers without parameters that apply one operator: activations, pooling, losses, ... */
#pragma once

#include "autograd/op.h"
#include "nn/module.h"

/* A layer that applies `op` with a copy of `params`, of the operator's own struct (NULL: the defaults), to as many
 * tensors as the operator has inputs, and returns its first output. Parameters out of range are KN_ERR_ARGUMENT here,
 * with the layer's name. The layer is printed with the parameters named in `shown`, blank-separated, in that order:
 * "kernel_size stride", or "=lambd" for the value alone; NULL: none. */
kn_module *kn_layer_of_operator(const char *type_name, const kn_op *op, const void *params, const char *shown);

/* The same for an operator whose last `count` inputs are tensors of the layer: buffers with the inputs' names. NULL
 * ones are left out. */
kn_module *kn_layer_with_buffers(const char *type_name, const kn_op *op, const void *params, const char *shown,
                                 kn_tensor *const *tensors, int count);

/* kn_nn_ID(void): a layer without parameters, of the operator of that name. */
#define KN_LAYER_OF_OPERATOR(id, operator_, type_name)                                                                 \
    extern const kn_op kn_##operator_##_op;                                                                            \
    kn_module *kn_nn_##id(void) { return kn_layer_of_operator(type_name, &kn_##operator_##_op, NULL, NULL); }
