/* nn/group_norm.c - normalisation of groups, instances, root mean squares and local responses. */
#include <koine/norm.h>
#include <koine/shape.h>
#include <string.h>

#include "base/error.h"
#include "nn/norm.h"
#include "nn/operator_layer.h"
#include "ops/dispatch/operators.h"

/* --- groups ------------------------------------------------------------------------------------------------------- */

typedef struct group_norm {
    kn_tensor *weight, *bias; /* NULL without affine */
    kn_nn_group_norm_params params;
} group_norm;

static kn_tensor *group_forward(kn_module *module, kn_tensor *x)
{
    const group_norm *self = module->self;
    char text[KN_DESCRIBE];
    if (x->ndim < 2 || x->shape[1] != self->params.num_channels)
        return kn_fail_null(KN_ERR_SHAPE, "GroupNorm: expected %lld channels, got %s",
                            (long long)self->params.num_channels, kn_tensor_describe(text, sizeof text, x));
    return kn_group_norm(x, self->params.num_groups, .weight = self->weight, .bias = self->bias,
                         .eps = self->params.eps);
}

static void describe_group(kn_module *module, kn_text *text)
{
    const kn_nn_group_norm_params *p = &((const group_norm *)module->self)->params;
    kn_text_format(text, "%lld, %lld, eps=%g, affine=%s", (long long)p->num_groups, (long long)p->num_channels, p->eps,
                   kn_python_bool(p->affine));
}

static bool add_group_tensors(kn_module *module)
{
    group_norm *self = module->self;
    const int64_t shape[] = {self->params.num_channels};
    return !self->params.affine || (kn_norm_add(module, &self->weight, "weight", false, KN_F32, 1, shape, 1) &&
                                    kn_norm_add(module, &self->bias, "bias", false, KN_F32, 1, shape, 0));
}

kn_nn_group_norm_params kn_nn_group_norm_params_init(void)
{
    return (kn_nn_group_norm_params){KN_NN_GROUP_NORM_DEFAULTS};
}

kn_module *kn_nn_group_norm_with(const kn_nn_group_norm_params *params)
{
    static const char name[] = "GroupNorm";
    params = params ? params : &(kn_nn_group_norm_params){KN_NN_GROUP_NORM_DEFAULTS};
    if (params->num_groups < 1 || params->num_channels < 1 || params->num_channels % params->num_groups != 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: num_channels (%lld) must be divisible by num_groups (%lld)", name,
                            (long long)params->num_channels, (long long)params->num_groups);
    if (kn_norm_check_eps(name, params->eps) != KN_OK)
        return kn_error_make_sticky();
    const group_norm self = {.params = *params};
    return kn_norm_finish(kn_layer_new(name, group_forward, describe_group, &self, sizeof self), add_group_tensors);
}

/* --- instances ---------------------------------------------------------------------------------------------------- */

typedef struct instance_norm {
    kn_tensor *weight, *bias;                                    /* NULL without affine */
    kn_tensor *running_mean, *running_var, *num_batches_tracked; /* NULL without tracking */
    kn_nn_instance_norm_params params;
    int dims; /* of a batch */
} instance_norm;

static kn_tensor *normalise_instances(const kn_module *module, kn_tensor *x)
{
    const instance_norm *self = module->self;
    return kn_instance_norm(x, .running_mean = self->running_mean, .running_var = self->running_var,
                            .weight = self->weight, .bias = self->bias,
                            .use_input_stats = module->training || !self->params.track_running_stats,
                            .momentum = self->params.momentum, .eps = self->params.eps);
}

/* A sample alone is a batch of one. */
static kn_tensor *instance_forward(kn_module *module, kn_tensor *x)
{
    const instance_norm *self = module->self;
    const bool has_batch = x->ndim == self->dims;
    char text[KN_DESCRIBE];
    if ((!has_batch && x->ndim != self->dims - 1) || x->shape[has_batch] != self->params.num_features)
        return kn_fail_null(KN_ERR_SHAPE, "%s: expected %d- or %d-dimensional input with %lld channels, got %s",
                            module->type_name, self->dims - 1, self->dims, (long long)self->params.num_features,
                            kn_tensor_describe(text, sizeof text, x));
    return has_batch ? normalise_instances(module, x) : kn_squeeze(normalise_instances(module, kn_unsqueeze(x, 0)), 0);
}

static void describe_instance(kn_module *module, kn_text *text)
{
    const kn_nn_instance_norm_params *p = &((const instance_norm *)module->self)->params;
    kn_text_format(text, "%lld, eps=%g, momentum=%g, affine=%s, track_running_stats=%s", (long long)p->num_features,
                   p->eps, p->momentum, kn_python_bool(p->affine), kn_python_bool(p->track_running_stats));
}

static bool add_instance_tensors(kn_module *module)
{
    instance_norm *self = module->self;
    const int64_t shape[] = {self->params.num_features};
    if (self->params.affine && (!kn_norm_add(module, &self->weight, "weight", false, KN_F32, 1, shape, 1) ||
                                !kn_norm_add(module, &self->bias, "bias", false, KN_F32, 1, shape, 0)))
        return false;
    return !self->params.track_running_stats ||
           (kn_norm_add(module, &self->running_mean, "running_mean", true, KN_F32, 1, shape, 0) &&
            kn_norm_add(module, &self->running_var, "running_var", true, KN_F32, 1, shape, 1) &&
            kn_norm_add(module, &self->num_batches_tracked, "num_batches_tracked", true, KN_I64, 0, NULL, 0));
}

kn_nn_instance_norm_params kn_nn_instance_norm_params_init(void)
{
    return (kn_nn_instance_norm_params){KN_NN_INSTANCE_NORM_DEFAULTS};
}

static kn_module *make_instance(const char *name, int dims, const kn_nn_instance_norm_params *params)
{
    params = params ? params : &(kn_nn_instance_norm_params){KN_NN_INSTANCE_NORM_DEFAULTS};
    if (params->num_features < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: num_features (%lld) must be at least 1", name,
                            (long long)params->num_features);
    if (!(params->momentum >= 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: momentum must not be negative: %g", name, params->momentum);
    if (kn_norm_check_eps(name, params->eps) != KN_OK)
        return kn_error_make_sticky();
    const instance_norm self = {.params = *params, .dims = dims};
    return kn_norm_finish(kn_layer_new(name, instance_forward, describe_instance, &self, sizeof self),
                          add_instance_tensors);
}

kn_module *kn_nn_instance_norm1d_with(const kn_nn_instance_norm_params *params)
{
    return make_instance("InstanceNorm1d", 3, params);
}

kn_module *kn_nn_instance_norm2d_with(const kn_nn_instance_norm_params *params)
{
    return make_instance("InstanceNorm2d", 4, params);
}

kn_module *kn_nn_instance_norm3d_with(const kn_nn_instance_norm_params *params)
{
    return make_instance("InstanceNorm3d", 5, params);
}

/* --- root mean squares -------------------------------------------------------------------------------------------- */

typedef struct rms_norm {
    kn_tensor *weight; /* NULL without */
    kn_nn_rms_norm_params params;
    int ndim;
    int64_t shape[KN_MAX_DIMS];
} rms_norm;

static kn_tensor *rms_forward(kn_module *module, kn_tensor *x)
{
    const rms_norm *self = module->self;
    return kn_rms_norm_with(x, self->ndim, self->shape,
                            &(kn_rms_norm_params){.weight = self->weight, .eps = self->params.eps});
}

static void describe_rms(kn_module *module, kn_text *text)
{
    const rms_norm *self = module->self;
    kn_text_append(text, "(");
    for (int i = 0; i < self->ndim; i++)
        kn_text_format(text, "%s%lld", i > 0 ? ", " : "", (long long)self->shape[i]);
    kn_text_append(text, self->ndim == 1 ? ",), eps=" : "), eps=");
    if (self->params.eps < 0)
        kn_text_append(text, "None");
    else
        kn_text_format(text, "%g", self->params.eps);
    kn_text_format(text, ", elementwise_affine=%s", kn_python_bool(self->params.elementwise_affine));
}

static bool add_rms_tensors(kn_module *module)
{
    rms_norm *self = module->self;
    return !self->params.elementwise_affine ||
           kn_norm_add(module, &self->weight, "weight", false, KN_F32, self->ndim, self->shape, 1);
}

kn_nn_rms_norm_params kn_nn_rms_norm_params_init(void) { return (kn_nn_rms_norm_params){KN_NN_RMS_NORM_DEFAULTS}; }

kn_module *kn_nn_rms_norm_with(int ndim, const int64_t *shape, const kn_nn_rms_norm_params *params)
{
    static const char name[] = "RMSNorm";
    params = params ? params : &(kn_nn_rms_norm_params){KN_NN_RMS_NORM_DEFAULTS};
    rms_norm self = {.params = *params, .ndim = ndim};
    if (kn_norm_check_shape(name, ndim, shape) != KN_OK)
        return kn_error_make_sticky();
    memcpy(self.shape, shape, (size_t)ndim * sizeof *shape);
    return kn_norm_finish(kn_layer_new(name, rms_forward, describe_rms, &self, sizeof self), add_rms_tensors);
}

/* --- local responses ---------------------------------------------------------------------------------------------- */

kn_module *kn_nn_local_response_norm_with(int64_t size, const kn_local_response_norm_params *params)
{
    params = params ? params : &(kn_local_response_norm_params){KN_LOCAL_RESPONSE_NORM_DEFAULTS};
    const kn_local_response_norm_args args = {size, params->alpha, params->beta, params->k};
    return kn_layer_of_operator("LocalResponseNorm", &kn_local_response_norm_op, &args, "=size alpha beta k");
}
