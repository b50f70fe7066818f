/* nn/norm.c - batch and layer normalisation with their parameters and buffers. */
#include "nn/norm.h"

#include <string.h>

#include "base/error.h"
#include "ops/norm/norm.h"
#include "tensor/tensor.h"

bool kn_norm_add(kn_module *module, kn_tensor **slot, const char *name, bool is_buffer, kn_dtype dtype, int ndim,
                 const int64_t *shape, double value)
{
    kn_tensor *tensor = kn_full_with(ndim, shape, kn_scalar_real(value), &(kn_tensor_options){.dtype = dtype});

    if (tensor == NULL)
        return false;
    *slot = is_buffer ? kn_module_register_buffer(module, name, tensor)
                      : kn_module_register_parameter(module, name, tensor);
    return *slot != NULL;
}

kn_status kn_norm_check_eps(const char *name, double eps)
{
    if (eps >= 0)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "%s: eps must not be negative: %g", name, eps);
}

/* --- batch normalisation ------------------------------------------------------------------------------------------ */

static kn_status check_dims(const kn_module *module, const kn_batch_norm_layer *self, const kn_tensor *x)
{
    char text[KN_DESCRIBE];

    if (x->ndim >= self->least_dims && x->ndim <= self->most_dims)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "%s: expected %s input, got %s", module->type_name,
                   self->synced           ? "at least 2-dimensional"
                   : self->most_dims == 5 ? "5-dimensional"
                   : self->most_dims == 4 ? "4-dimensional"
                                          : "2- or 3-dimensional",
                   kn_tensor_describe(text, sizeof text, x));
}

static kn_tensor *batch_forward(kn_module *module, kn_tensor *x, kn_activation activation)
{
    const kn_batch_norm_layer *self = module->self;
    const bool tracks = module->training && self->running_mean != NULL;

    if (check_dims(module, self, x) != KN_OK)
        return kn_error_make_sticky();
    if (self->synced && module->training)
        return self->synced(self, x, activation);
    return kn_batch_norm_counted(x, tracks ? self->num_batches_tracked : NULL, self->params.cumulative_average,
                                 &(kn_batch_norm_params){.running_mean = self->running_mean,
                                                         .running_var = self->running_var,
                                                         .weight = self->weight,
                                                         .bias = self->bias,
                                                         .training = module->training || self->running_mean == NULL,
                                                         .momentum = self->params.momentum,
                                                         .eps = self->params.eps,
                                                         .activation = activation});
}

static void describe_batch(kn_module *module, kn_text *text)
{
    const kn_nn_batch_norm_params *p = &((const kn_batch_norm_layer *)module->self)->params;

    kn_text_format(text, "%lld, eps=%g, momentum=", (long long)p->num_features, p->eps);
    if (p->cumulative_average)
        kn_text_append(text, "None");
    else
        kn_text_format(text, "%g", p->momentum);
    kn_text_format(text, ", affine=%s, track_running_stats=%s", kn_python_bool(p->affine),
                   kn_python_bool(p->track_running_stats));
}

static kn_status check_batch(const char *name, const kn_nn_batch_norm_params *p)
{
    if (p->num_features < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: num_features (%lld) must be at least 1", name, (long long)p->num_features);
    if (!p->cumulative_average && !(p->momentum >= 0))
        return kn_fail(KN_ERR_ARGUMENT,
                       "%s: momentum must not be negative: %g; for plain means set .cumulative_average = true", name,
                       p->momentum);
    return kn_norm_check_eps(name, p->eps);
}

static bool add_batch_tensors(kn_module *module)
{
    kn_batch_norm_layer *self = module->self;
    const int64_t shape[] = {self->params.num_features};

    if (self->params.affine && (!kn_norm_add(module, &self->weight, "weight", false, KN_F32, 1, shape, 1) ||
                                !kn_norm_add(module, &self->bias, "bias", false, KN_F32, 1, shape, 0)))
        return false;
    if (!self->params.track_running_stats)
        return true;
    return kn_norm_add(module, &self->running_mean, "running_mean", true, KN_F32, 1, shape, 0) &&
           kn_norm_add(module, &self->running_var, "running_var", true, KN_F32, 1, shape, 1) &&
           kn_norm_add(module, &self->num_batches_tracked, "num_batches_tracked", true, KN_I64, 0, NULL, 0);
}

kn_module *kn_norm_finish(kn_module *module, bool (*add_tensors)(kn_module *module))
{
    /* The scope releases its references, the module keeps its own. */
    const int depth = module != NULL ? kn_scope_begin() : 0;
    bool made = false;

    if (module == NULL)
        return NULL;
    if (depth != 0) {
        made = add_tensors(module);
        kn_scope_end(depth);
    }
    return made ? module : kn_layer_failed(module);
}

kn_batch_norm_layer *kn_batch_norm_layer_of(kn_module *module)
{
    return module->kind.activated == batch_forward ? module->self : NULL;
}

bool *kn_batch_norm_averages(kn_module *module)
{
    kn_batch_norm_layer *self = kn_batch_norm_layer_of(module);
    return self ? &self->params.cumulative_average : NULL;
}

kn_status kn_batch_norm_reset(kn_module *module)
{
    const kn_batch_norm_layer *self = module->self;
    if (!self->running_mean)
        return KN_OK;
    KN_TRY(kn_tensor_fill(self->running_mean, 0));
    KN_TRY(kn_tensor_fill(self->running_var, 1));
    return kn_tensor_fill(self->num_batches_tracked, 0);
}

kn_nn_batch_norm_params kn_nn_batch_norm_params_init(void)
{
    return (kn_nn_batch_norm_params){KN_NN_BATCH_NORM_DEFAULTS};
}

kn_module *kn_batch_norm_layer_new(const char *name, int least_dims, int most_dims,
                                   const kn_nn_batch_norm_params *params)
{
    params = params ? params : &(kn_nn_batch_norm_params){KN_NN_BATCH_NORM_DEFAULTS};
    if (check_batch(name, params) != KN_OK)
        return kn_error_make_sticky();
    kn_batch_norm_layer self = {.params = *params, .least_dims = least_dims, .most_dims = most_dims};
    if (params->cumulative_average)
        self.params.momentum = 0; /* ignored */
    return kn_norm_finish(kn_layer_new_activated(name, batch_forward, describe_batch, &self, sizeof self),
                          add_batch_tensors);
}

bool kn_norm_batch_eps(const kn_module *module, double *eps)
{
    if (module->kind.activated != batch_forward)
        return false;
    *eps = ((const kn_batch_norm_layer *)module->self)->params.eps;
    return true;
}

kn_module *kn_nn_batch_norm1d_with(const kn_nn_batch_norm_params *params)
{
    return kn_batch_norm_layer_new("BatchNorm1d", 2, 3, params);
}

kn_module *kn_nn_batch_norm2d_with(const kn_nn_batch_norm_params *params)
{
    return kn_batch_norm_layer_new("BatchNorm2d", 4, 4, params);
}

kn_module *kn_nn_batch_norm3d_with(const kn_nn_batch_norm_params *params)
{
    return kn_batch_norm_layer_new("BatchNorm3d", 5, 5, params);
}

/* --- layer normalisation ------------------------------------------------------------------------------------------ */

typedef struct layer_norm {
    kn_tensor *weight, *bias; /* NULL without */
    kn_nn_layer_norm_params params;
    int ndim;
    int64_t shape[KN_MAX_DIMS];
} layer_norm;

static kn_tensor *layer_forward(kn_module *module, kn_tensor *x)
{
    const layer_norm *self = module->self;
    return kn_layer_norm_with(
        x, self->ndim, self->shape,
        &(kn_layer_norm_params){.weight = self->weight, .bias = self->bias, .eps = self->params.eps});
}

static void describe_layer(kn_module *module, kn_text *text)
{
    const layer_norm *self = module->self;

    kn_text_append(text, "(");
    for (int i = 0; i < self->ndim; i++)
        kn_text_format(text, "%s%lld", i > 0 ? ", " : "", (long long)self->shape[i]);
    kn_text_format(text, "%s), eps=%g, elementwise_affine=%s", self->ndim == 1 ? "," : "", self->params.eps,
                   kn_python_bool(self->params.elementwise_affine));
}

static bool add_layer_tensors(kn_module *module)
{
    layer_norm *self = module->self;

    if (!self->params.elementwise_affine)
        return true;
    if (!kn_norm_add(module, &self->weight, "weight", false, KN_F32, self->ndim, self->shape, 1))
        return false;
    return !self->params.bias || kn_norm_add(module, &self->bias, "bias", false, KN_F32, self->ndim, self->shape, 0);
}

kn_status kn_norm_check_shape(const char *name, int ndim, const int64_t *shape)
{
    if (shape == NULL)
        return kn_fail_argument_null(name, "shape");
    if (ndim < 1 || ndim > KN_MAX_DIMS)
        return kn_fail(KN_ERR_ARGUMENT, "%s: the normalised shape has %d dimensions; it must have 1 to %d", name, ndim,
                       KN_MAX_DIMS);
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 1)
            return kn_fail(KN_ERR_ARGUMENT, "%s: size %d of the normalised shape (%lld) must be at least 1", name, i,
                           (long long)shape[i]);
    return KN_OK;
}

kn_nn_layer_norm_params kn_nn_layer_norm_params_init(void)
{
    return (kn_nn_layer_norm_params){KN_NN_LAYER_NORM_DEFAULTS};
}

kn_module *kn_nn_layer_norm_with(int ndim, const int64_t *shape, const kn_nn_layer_norm_params *params)
{
    static const char name[] = "LayerNorm";

    params = params ? params : &(kn_nn_layer_norm_params){KN_NN_LAYER_NORM_DEFAULTS};
    if (kn_norm_check_shape(name, ndim, shape) != KN_OK)
        return kn_error_make_sticky();
    if (kn_norm_check_eps(name, params->eps) != KN_OK)
        return kn_error_make_sticky();
    layer_norm self = {.params = *params, .ndim = ndim};
    memcpy(self.shape, shape, (size_t)ndim * sizeof *shape);
    return kn_norm_finish(kn_layer_new(name, layer_forward, describe_layer, &self, sizeof self), add_layer_tensors);
}
