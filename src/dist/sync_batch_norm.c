/* dist/sync_batch_norm.c - batch normalisation over the joint batch of a group.
 *
 * Forward: every rank's count, means and variances go to all, which combine them in the order of the ranks, by Chan et
 * al., "Updating formulae and a pairwise algorithm for computing sample variances" (1979). Backward: with N values per
 * channel, n = (x - mean) rstd and g the gradient of y,
 *     dx = weight rstd (g - sum(g) / N - n sum(g n) / N),
 * where the two sums are over all ranks. */
#include <koine/distributed.h>
#include <koine/function.h>
#include <koine/in_place.h>
#include <koine/join.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "dist/distributed.h"
#include "nn/norm.h"
#include "ops/norm/norm.h"

/* --- exchanging numbers ------------------------------------------------------------------------------------------- */

static kn_tensor *new_numbers(int64_t count)
{
    return kn_zeros(KN_SHAPE(count), .dtype = KN_F64, .device = kn_device_host());
}

/* The values of [C] tensors, one after another, on the host in float64. */
static kn_tensor *to_host(kn_tensor *const *tensors, int count)
{
    return kn_to_device(kn_cat(tensors, count, 0), kn_device_host(), .dtype = KN_F64);
}

/* Like `like` in dtype and device. */
static kn_tensor *to_device(kn_tensor *numbers, int64_t first, int64_t count, const kn_tensor *like)
{
    double *values = kn_data(numbers);
    kn_tensor *part = new_numbers(count);
    if (!values || !part)
        return NULL;
    memcpy(kn_data(part), values + first, (size_t)count * sizeof *values);
    return kn_to_device(part, kn_device_of(like), .dtype = like->dtype);
}

/* --- statistics --------------------------------------------------------------------------------------------------- */

/* [means C, variances C, count] of this rank's x. */
static kn_tensor *own_statistics(kn_tensor *x)
{
    const int64_t channels = x->shape[1];
    kn_tensor *own = new_numbers(2 * channels + 1), *mean = NULL;
    if (!own || kn_numel(x) == 0)
        return own;
    int dims[KN_MAX_DIMS] = {0}, count = 1;
    for (int d = 2; d < x->ndim; d++)
        dims[count++] = d;
    kn_tensor *var = kn_var_mean_dims(x, dims, count, 0, false, &mean);
    kn_tensor *values = to_host((kn_tensor *const[]){mean, var}, 2);
    const double *from = values ? kn_data(values) : NULL;
    double *to = kn_data(own);
    if (!from || !to)
        return NULL;
    memcpy(to, from, 2 * (size_t)channels * sizeof *to);
    to[2 * channels] = (double)(kn_numel(x) / channels);
    return own;
}

/* Adds a rank's statistics to the joint ones. */
static void combine(double *joint, const double *own, int64_t channels)
{
    const double n = own[2 * channels], before = joint[2 * channels], total = before + n;
    if (n == 0)
        return;
    for (int64_t c = 0; c < channels; c++) {
        const double d = own[c] - joint[c];
        joint[c] += d * n / total;
        joint[channels + c] =
            (joint[channels + c] * before + own[channels + c] * n + d * d * before * n / total) / total;
    }
    joint[2 * channels] = total;
}

/* Of all ranks. NULL with an error. */
static kn_tensor *joint_statistics(kn_group *group, kn_tensor *x)
{
    const int size = kn_group_size(group);
    const int64_t channels = x->shape[1];
    kn_tensor *own = own_statistics(x), *joint = new_numbers(2 * channels + 1);
    kn_tensor **all = kn_calloc((size_t)size, sizeof *all);
    kn_status status = own && joint && all ? KN_OK : KN_ERR_MEMORY;
    for (int r = 0; r < size && status == KN_OK; r++)
        status = (all[r] = new_numbers(2 * channels + 1)) ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = kn_group_all_gather(group, all, own);
    for (int r = 0; r < size && status == KN_OK; r++)
        combine(kn_data(joint), kn_data(all[r]), channels);
    kn_free(all);
    return status == KN_OK ? joint : NULL;
}

/* running = (1 - factor) running + factor statistics, with the unbiased variance. */
static kn_status track(const kn_batch_norm_layer *layer, kn_tensor *mean, kn_tensor *var, double total)
{
    int64_t batches = 0;
    if (!layer->running_mean || total == 0)
        return KN_OK;
    if (!kn_add_scalar_(layer->num_batches_tracked, 1))
        return kn_error_status();
    if (layer->params.cumulative_average)
        KN_TRY(kn_read(layer->num_batches_tracked, &batches, sizeof batches));
    const double factor = layer->params.cumulative_average ? 1 / (double)batches : layer->params.momentum;
    kn_tensor *const running[] = {layer->running_mean, layer->running_var}, *const batch[] = {mean, var};
    const double scales[] = {factor, factor * total / (total - 1)};
    for (int i = 0; i < 2; i++) {
        kn_tensor *part = kn_mul_scalar(kn_to_dtype(batch[i], running[i]->dtype), scales[i]);
        if (!kn_add_(kn_mul_scalar_(running[i], 1 - factor), part))
            return kn_error_status();
    }
    return KN_OK;
}

/* --- the recorded function ---------------------------------------------------------------------------------------- */

enum { X, MEAN, VAR, WEIGHT, BIAS }; /* its inputs; weight and bias may be absent */

typedef struct sync_params {
    kn_group *group;
    double eps, total;
} sync_params;

static kn_tensor *normalise(kn_tensor *x, kn_tensor *mean, kn_tensor *var, kn_tensor *weight, kn_tensor *bias,
                            double eps)
{
    return kn_batch_norm(x, .running_mean = mean, .running_var = var, .weight = weight, .bias = bias, .eps = eps);
}

static kn_status sync_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const sync_params *params = kn_function_params(context);
    const bool is_affine = kn_function_num_inputs(context) > WEIGHT;
    for (int i = X; i <= VAR; i++)
        KN_TRY(kn_function_save(context, inputs[i]));
    if (is_affine)
        KN_TRY(kn_function_save(context, inputs[WEIGHT]));
    outputs[0] = normalise(inputs[X], inputs[MEAN], inputs[VAR], is_affine ? inputs[WEIGHT] : NULL,
                           is_affine ? inputs[BIAS] : NULL, params->eps);
    return outputs[0] ? KN_OK : kn_error_status();
}

/* As if the statistics were constants: gradients[] of x, weight and bias. */
static kn_status constant_gradients(kn_tensor *x, kn_tensor *g, kn_tensor *mean, kn_tensor *rstd, kn_tensor *weight,
                                    kn_tensor *gradients[3])
{
    gradients[0] = kn_empty_like(x);
    gradients[1] = kn_zeros_like(mean);
    gradients[2] = kn_zeros_like(mean);
    kn_tensor *table = kn_contiguous(kn_stack(((kn_tensor *[]){mean, kn_zeros_like(mean), rstd}), 3, 1));
    kn_tensor *contiguous = kn_contiguous(x);
    if (!gradients[0] || !gradients[1] || !gradients[2] || !table || !contiguous)
        return kn_error_status();
    if (kn_numel(x) == 0)
        return KN_OK;
    const kn_batch_pass pass = {.x = contiguous,
                                .tensors = {weight, NULL, table, g, gradients[0], gradients[1], gradients[2]},
                                .is_backward = true,
                                .flags = (weight ? KN_NORM_HAS_WEIGHT : 0) | KN_NORM_WANTS_X | KN_NORM_WANTS_WEIGHT |
                                         KN_NORM_WANTS_BIAS,
                                .activation = KN_ACTIVATION_NONE};
    return kn_batch_norm_run(kn_tensor_stream(x), &pass);
}

/* The terms of dx with the sums of all ranks: again a normalisation of x, with other weights. */
static kn_tensor *sum_terms(const sync_params *params, kn_tensor *const saved[4], kn_tensor *rstd,
                            kn_tensor *const gradients[3])
{
    const int64_t channels = kn_numel(rstd);
    kn_tensor *sums = to_host((kn_tensor *const[]){gradients[1], gradients[2]}, 2);
    if (!sums || kn_group_all_reduce(params->group, sums) != KN_OK)
        return NULL;
    kn_tensor *factor = kn_mul_scalar(saved[WEIGHT] ? kn_mul(saved[WEIGHT], rstd) : rstd, -1 / params->total);
    return normalise(saved[X], saved[MEAN], saved[VAR], kn_mul(factor, to_device(sums, 0, channels, rstd)),
                     kn_mul(factor, to_device(sums, channels, channels, rstd)), params->eps);
}

static kn_status sync_backward(kn_function_context *context, kn_tensor *const *grad_outputs, kn_tensor **grad_inputs)
{
    const sync_params *params = kn_function_params(context);
    kn_tensor *saved[WEIGHT + 1] = {NULL}, *gradients[3];
    for (int i = 0; i < kn_function_num_saved(context); i++)
        saved[i] = kn_function_saved(context, i);
    kn_tensor *rstd = kn_rsqrt(kn_add_scalar(saved[VAR], params->eps));
    if (!rstd)
        return kn_error_status();
    KN_TRY(constant_gradients(saved[X], grad_outputs[0], saved[MEAN], rstd, saved[WEIGHT], gradients));
    if (kn_function_needs_grad(context, X)) {
        kn_tensor *terms = sum_terms(params, saved, rstd, gradients);
        grad_inputs[X] = terms ? kn_add_(gradients[0], terms) : NULL;
        if (!grad_inputs[X])
            return kn_error_status();
    }
    for (int i = WEIGHT; i < kn_function_num_inputs(context); i++)
        grad_inputs[i] = gradients[1 + i - WEIGHT];
    return KN_OK;
}

/* --- the layer ---------------------------------------------------------------------------------------------------- */

/* In the dtype to compute in; recorded. */
static kn_tensor *apply(const kn_batch_norm_layer *layer, kn_tensor *x, kn_tensor *mean, kn_tensor *var, double total)
{
    static const kn_function function = {.name = "sync_batch_norm",
                                         .forward = sync_forward,
                                         .backward = sync_backward,
                                         .params_size = sizeof(sync_params)};
    const sync_params params = {.group = layer->group, .eps = layer->params.eps, .total = total};
    kn_tensor *inputs[BIAS + 1] = {x, mean, var};
    if (layer->weight) {
        inputs[WEIGHT] = kn_to_dtype(layer->weight, x->dtype);
        inputs[BIAS] = kn_to_dtype(layer->bias, x->dtype);
    }
    return kn_function_apply(&function, inputs, layer->weight ? BIAS + 1 : WEIGHT, &params);
}

static kn_status prepare(const kn_batch_norm_layer *layer, kn_tensor *x, kn_tensor **mean, kn_tensor **var,
                         double *total)
{
    KN_NO_GRAD;
    const int64_t channels = x->shape[1];
    if (channels != layer->params.num_features)
        return kn_fail(KN_ERR_SHAPE, "SyncBatchNorm: x has %lld channels, the layer %lld", (long long)channels,
                       (long long)layer->params.num_features);
    kn_tensor *joint = joint_statistics(layer->group, x);
    if (!joint)
        return kn_error_status();
    *total = ((const double *)kn_data(joint))[2 * channels];
    if (*total == 1)
        return kn_fail(KN_ERR_SHAPE, "SyncBatchNorm: expected more than 1 value per channel when training, over all "
                                     "ranks");
    *mean = to_device(joint, 0, channels, x);
    *var = to_device(joint, channels, channels, x);
    if (!*mean || !*var)
        return kn_error_status();
    return track(layer, *mean, *var, *total);
}

static kn_tensor *synced(const kn_batch_norm_layer *layer, kn_tensor *x, kn_activation activation)
{
    kn_tensor *mean = NULL, *var = NULL;
    double total = 0;
    if (!x)
        return NULL;
    kn_tensor *wide = kn_to_dtype(x, kn_compute_type(x->dtype));
    if (!wide || prepare(layer, wide, &mean, &var, &total) != KN_OK)
        return kn_error_make_sticky();
    return kn_activate(kn_to_dtype(apply(layer, wide, mean, var, total), x->dtype), activation);
}

static void convert(kn_batch_norm_layer *layer, kn_group *group)
{
    layer->synced = synced;
    layer->group = group;
    layer->least_dims = 2;
    layer->most_dims = KN_MAX_DIMS;
}

kn_module *kn_nn_sync_batch_norm_with(kn_group *group, const kn_nn_batch_norm_params *params)
{
    if (!group) {
        kn_fail_argument_null("SyncBatchNorm", "group");
        return kn_error_make_sticky();
    }
    kn_module *module = kn_batch_norm_layer_new("SyncBatchNorm", 2, KN_MAX_DIMS, params);
    if (module)
        convert(kn_batch_norm_layer_of(module), group);
    return module;
}

static kn_status convert_layer(kn_module *module, void *user)
{
    kn_batch_norm_layer *layer = kn_batch_norm_layer_of(module);
    if (!layer)
        return KN_OK;
    char *name = kn_strdup("SyncBatchNorm");
    if (!name)
        return KN_ERR_MEMORY;
    kn_free(module->type_name);
    module->type_name = name;
    convert(layer, user);
    return KN_OK;
}

kn_module *kn_convert_sync_batchnorm(kn_module *module, kn_group *group)
{
    if (!module || !group) {
        kn_fail_argument_null("convert_sync_batchnorm", module ? "group" : "module");
        return kn_error_make_sticky();
    }
    return kn_module_apply(module, convert_layer, group) == KN_OK ? module : kn_error_make_sticky();
}
