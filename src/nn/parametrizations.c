/* nn/parametrizations.c - weight normalisation and spectral normalisation. */
#include <koine/autograd.h>
#include <koine/matmul.h>
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/random.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "base/error.h"
#include "nn/parametrize.h"
#include "tensor/tensor.h"

/* All dimensions but `dim`; returns how many. */
static int other_dims(int *others, int ndim, int dim)
{
    int count = 0;
    for (int d = 0; d < ndim; d++)
        if (d != dim)
            others[count++] = d;
    return count;
}

/* --- weight normalisation ----------------------------------------------------------------------------------------- */

typedef struct weight_norm {
    int dim; /* -1: the whole tensor */
} weight_norm;

static kn_tensor *norm_except_dim(kn_tensor *v, int dim)
{
    int others[KN_MAX_DIMS];
    if (dim == -1)
        return kn_norm(v, 2);
    const int count = other_dims(others, v->ndim, dim);
    return count > 0 ? kn_norm_dims(v, 2, others, count, true) : kn_abs(v);
}

static kn_status weight_norm_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const weight_norm *self = module->self;
    kn_tensor *g = inputs[0], *v = inputs[1];
    outputs[0] = kn_mul(v, kn_div(g, norm_except_dim(v, self->dim)));
    return KN_OK;
}

static kn_status weight_norm_inverse(kn_module *module, kn_tensor *value, kn_tensor **originals)
{
    originals[0] = norm_except_dim(value, ((const weight_norm *)module->self)->dim);
    originals[1] = value;
    return KN_OK;
}

kn_weight_norm_params kn_weight_norm_params_init(void) { return (kn_weight_norm_params){KN_WEIGHT_NORM_DEFAULTS}; }

kn_status kn_parametrizations_weight_norm_with(kn_module *module, const char *name, const kn_weight_norm_params *params)
{
    static const char function[] = "parametrizations_weight_norm";
    static const kn_module_kind kind = {
        .forward_many = weight_norm_forward, .signature = {.inputs = 2, .outputs = 1}, .is_layer = true};
    params = params ? params : &(kn_weight_norm_params){KN_WEIGHT_NORM_DEFAULTS};
    KN_SCOPE;
    const kn_tensor *target = kn_parametrize_target(function, module, name);
    KN_TRY(kn_status_of(target));
    if (params->dim < -1 || params->dim >= target->ndim)
        return kn_fail(KN_ERR_ARGUMENT, "%s: dim must be from 0 to %d, or -1 for the whole tensor, not %d", function,
                       target->ndim - 1, params->dim);
    const weight_norm self = {params->dim};
    return kn_parametrize_with(function, module, name, kn_layer_new_kind("_WeightNorm", &kind, &self, sizeof self),
                               weight_norm_inverse);
}

/* --- spectral normalisation --------------------------------------------------------------------------------------- */

typedef struct spectral_norm {
    kn_tensor *u, *v; /* buffers: singular vectors; NULL for a vector */
    int n_power_iterations, dim;
    double eps;
} spectral_norm;

static kn_tensor *as_matrix(kn_tensor *weight, int dim)
{
    int order[KN_MAX_DIMS] = {dim};
    if (dim != 0) {
        other_dims(order + 1, weight->ndim, dim);
        weight = kn_permute(weight, order);
    }
    return weight ? kn_reshape(weight, 2, (const int64_t[]){weight->shape[0], weight->shape[0] == 0 ? 0 : -1}) : NULL;
}

static kn_tensor *unit(kn_tensor *vector, double eps) { return kn_normalize(vector, .dim = 0, .eps = eps); }

static kn_status iterate(const spectral_norm *self, kn_tensor *matrix, int times)
{
    KN_NO_GRAD;
    kn_status status = KN_OK;
    matrix = kn_detach(matrix);
    for (int i = 0; i < times && status == KN_OK; i++) {
        kn_tensor *u = unit(kn_mv(matrix, self->v), self->eps), *v = unit(kn_mv(kn_t(matrix), u), self->eps);
        status = v ? kn_copy_(self->u, u) : kn_error_status();
        if (status == KN_OK)
            status = kn_copy_(self->v, v);
    }
    return status;
}

/* The recorded operations get copies of u and v, which the next call changes. */
static kn_tensor *spectral_forward(kn_module *module, kn_tensor *weight)
{
    const spectral_norm *self = module->self;
    if (weight->ndim == 1)
        return unit(weight, self->eps);
    kn_tensor *matrix = as_matrix(weight, self->dim);
    if (matrix && module->training && !module->repeats && iterate(self, matrix, self->n_power_iterations) != KN_OK)
        return NULL;
    kn_tensor *u = kn_clone(self->u), *v = kn_clone(self->v);
    return kn_div(weight, kn_dot(u, kn_mv(matrix, v)));
}

static kn_tensor *add_vector(kn_module *module, const char *name, const kn_tensor *like, int64_t size, double eps)
{
    kn_tensor *random = kn_randn(KN_SHAPE(size), .dtype = like->dtype, .device = like->storage->device);
    kn_tensor *vector = random ? unit(random, eps) : NULL;
    return vector ? kn_module_register_buffer(module, name, vector) : NULL;
}

/* Starts with good estimates. */
static kn_status add_vectors(kn_module *module, kn_tensor *weight)
{
    KN_NO_GRAD;
    spectral_norm *self = module->self;
    kn_tensor *matrix = as_matrix(kn_detach(weight), self->dim);
    KN_TRY(kn_status_of(matrix));
    self->u = add_vector(module, "_u", weight, matrix->shape[0], self->eps);
    self->v = self->u ? add_vector(module, "_v", weight, matrix->shape[1], self->eps) : NULL;
    return self->v ? iterate(self, matrix, 15) : kn_error_status();
}

kn_spectral_norm_params kn_spectral_norm_params_init(void)
{
    return (kn_spectral_norm_params){KN_SPECTRAL_NORM_DEFAULTS};
}

static kn_status check_spectral(const char *function, const kn_tensor *target, int dim,
                                const kn_spectral_norm_params *p)
{
    if (target->ndim < 1 || !kn_dtype_is_floating(target->dtype))
        return kn_fail(KN_ERR_ARGUMENT, "%s: the tensor must be floating and have a dimension", function);
    if (dim < -target->ndim || dim >= target->ndim)
        return kn_fail(KN_ERR_ARGUMENT, "%s: dim must be from %d to %d, not %d", function, -target->ndim,
                       target->ndim - 1, dim);
    if (p->n_power_iterations < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: n_power_iterations must be at least 1, not %d", function,
                       p->n_power_iterations);
    return p->eps >= 0 ? KN_OK : kn_fail(KN_ERR_ARGUMENT, "%s: eps must not be negative: %g", function, p->eps);
}

kn_status kn_parametrizations_spectral_norm_with(kn_module *module, const char *name,
                                                 const kn_spectral_norm_params *params)
{
    static const char function[] = "parametrizations_spectral_norm";
    params = params ? params : &(kn_spectral_norm_params){KN_SPECTRAL_NORM_DEFAULTS};
    KN_SCOPE;
    kn_tensor *target = kn_parametrize_target(function, module, name);
    KN_TRY(kn_status_of(target));
    int dim = params->dim;
    if (dim == KN_SPECTRAL_NORM_DIM)
        dim = strstr(module->type_name, "ConvTranspose") != NULL ? 1 : 0;
    KN_TRY(check_spectral(function, target, dim, params));
    const spectral_norm self = {.n_power_iterations = params->n_power_iterations,
                                .dim = dim < 0 ? dim + target->ndim : dim,
                                .eps = params->eps};
    kn_module *made = kn_layer_new("_SpectralNorm", spectral_forward, NULL, &self, sizeof self);
    kn_status status = made ? KN_OK : kn_error_status();
    if (made && target->ndim > 1)
        status = add_vectors(made, target);
    if (status == KN_OK)
        return kn_parametrize_with(function, module, name, made, NULL);
    kn_module_free(made);
    return status;
}
