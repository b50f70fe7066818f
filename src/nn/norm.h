/* nn/norm.h - shared by the normalisation layers. */
#pragma once

#include "nn/module.h"

static inline const char *kn_python_bool(bool value) { return value ? "True" : "False"; }

/* Registers a tensor filled with `value`; false on failure. `slot` borrows it. */
bool kn_norm_add(kn_module *module, kn_tensor **slot, const char *name, bool is_buffer, kn_dtype dtype, int ndim,
                 const int64_t *shape, double value);

kn_status kn_norm_check_eps(const char *name, double eps);
kn_status kn_norm_check_shape(const char *name, int ndim, const int64_t *shape); /* normalised: no size is 0 */

/* A layer of batch normalisation; `self` of its module. */
typedef struct kn_batch_norm_layer kn_batch_norm_layer;
struct kn_batch_norm_layer {
    kn_tensor *weight, *bias;                                    /* NULL without affine */
    kn_tensor *running_mean, *running_var, *num_batches_tracked; /* NULL without tracking */
    kn_nn_batch_norm_params params;
    int least_dims, most_dims; /* of the input */
    /* The forward pass in training mode, if the statistics are not those of x alone (dist/sync_batch_norm.c). */
    kn_tensor *(*synced)(const kn_batch_norm_layer *layer, kn_tensor *x, kn_activation activation);
    void *group; /* over which they are taken; borrowed */
};
kn_module *kn_batch_norm_layer_new(const char *name, int least_dims, int most_dims,
                                   const kn_nn_batch_norm_params *params);
kn_batch_norm_layer *kn_batch_norm_layer_of(kn_module *module); /* NULL: it is none */

/* Of a layer of batch normalisation: whether its statistics are equal averages over all batches (momentum None); may be
 * changed. NULL for other modules. */
bool *kn_batch_norm_averages(kn_module *module);
kn_status kn_batch_norm_reset(kn_module *module); /* PyTorch's reset_running_stats; nothing without statistics */

/* The module with its tensors, or NULL; NULL in, NULL out. */
kn_module *kn_norm_finish(kn_module *module, bool (*add_tensors)(kn_module *module));

/* The eps of a batch normalisation; false: the module is another. */
bool kn_norm_batch_eps(const kn_module *module, double *eps);
