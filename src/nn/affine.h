/* nn/affine.h - what linear and convolution layers share: a weight and an optional bias with PyTorch's initial values.
 */
#pragma once

#include "nn/module.h"

typedef struct kn_affine {
    kn_tensor *weight, *bias; /* borrowed: the module holds the references; bias may be NULL */
} kn_affine;

/* Makes float32 `weight` of the given shape and, unless bias_size is 0, `bias` [bias_size] on the current device, both
 * uniform in +-1/sqrt(fan_in), and registers them. This is PyTorch's reset_parameters, kaiming_uniform(a = sqrt(5));
 * fan_in is the number of elements of weight[0]. */
kn_status kn_affine_make(kn_module *module, kn_affine *affine, int ndim, const int64_t *shape, int64_t bias_size);

/* The same, uniform in +-bound. */
kn_status kn_affine_make_within(kn_module *module, kn_affine *affine, int ndim, const int64_t *shape, int64_t bias_size,
                                double bound);

/* What nn/fusion.c has to know of a layer. */
typedef struct kn_affine_layer {
    kn_affine *affine; /* in its self; NULL: the module is another layer */
    bool *has_bias;    /* as it is described */
    bool is_transposed;
    int64_t groups;
} kn_affine_layer;
kn_affine_layer kn_conv_affine(kn_module *module);
kn_affine_layer kn_linear_affine(kn_module *module);
