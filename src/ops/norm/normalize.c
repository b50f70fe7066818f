/* ops/norm/normalize.c - compositions: vectors of norm 1, local responses, softmin, Gumbel softmax. */
#include <koine/autograd.h>
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/pool.h>
#include <koine/random.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/dispatch/invoke.h"

static kn_status give(kn_entry *entry, kn_tensor *result)
{
    entry->result = result;
    return result ? KN_OK : kn_error_status();
}

/* --- vectors of norm 1 -------------------------------------------------------------------------------------------- */

static kn_status normalize_enter(kn_entry *entry)
{
    const kn_normalize_params *params = entry->params;
    kn_tensor *x = entry->inputs[0];
    return give(entry, kn_div(x, kn_clamp(kn_norm_dims(x, params->p, &params->dim, 1, true), .min = params->eps)));
}

static const kn_op_param normalize_rows[] = {KN_PARAM(kn_normalize_params, p), KN_PARAM(kn_normalize_params, dim),
                                             KN_PARAM(kn_normalize_params, eps)};
const kn_op kn_normalize_op = {.name = "normalize",
                               .inputs = {"x"},
                               .dtypes = {KN_DTYPES_FLOATING},
                               .params = KN_PARAMS(kn_normalize_params, normalize_rows, KN_NORMALIZE_DEFAULTS),
                               .composes = true,
                               .enter = normalize_enter};

kn_normalize_params kn_normalize_params_init(void) { return (kn_normalize_params){KN_NORMALIZE_DEFAULTS}; }
kn_tensor *kn_normalize_with(kn_tensor *x, const kn_normalize_params *params)
{
    return kn_invoke(&kn_normalize_op, params, x);
}

/* --- local responses ---------------------------------------------------------------------------------------------- */

/* The mean over a window of channels is average pooling of [N, 1, C, rest]. With an even size the last window is one
 * too many. */
static kn_tensor *mean_of_neighbours(kn_tensor *x, int64_t size)
{
    const int64_t channels = x->shape[1], rest = kn_numel(x) / (x->shape[0] * channels);
    kn_tensor *image = kn_reshape(x, 4, (const int64_t[]){x->shape[0], 1, channels, rest});
    kn_tensor *mean = kn_avg_pool2d(image, .kernel_sizes = {size, 1}, .stride = 1, .paddings = {size / 2, 0});
    return kn_reshape(kn_narrow(mean, 2, 0, channels), x->ndim, x->shape);
}

static kn_status local_response_enter(kn_entry *entry)
{
    const kn_local_response_norm_args *args = entry->params;
    kn_tensor *x = entry->inputs[0];
    char text[KN_DESCRIBE];

    if (x->ndim < 3)
        return kn_fail(KN_ERR_SHAPE, "expected [N, C, d...], got %s", kn_tensor_describe(text, sizeof text, x));
    if (kn_numel(x) == 0)
        return kn_entry_return_input(entry);
    kn_tensor *squares = kn_square(x), *mean = squares ? mean_of_neighbours(squares, args->size) : NULL;
    kn_tensor *base = kn_add_scalar(kn_mul_scalar(mean, args->alpha), args->k);
    return give(entry, kn_div(x, kn_pow_scalar(base, args->beta)));
}

static const kn_op_param local_response_rows[] = {
    KN_PARAM(kn_local_response_norm_args, size, .min = 1, .max = (double)INFINITY),
    KN_PARAM(kn_local_response_norm_args, alpha), KN_PARAM(kn_local_response_norm_args, beta),
    KN_PARAM(kn_local_response_norm_args, k)};
const kn_op kn_local_response_norm_op = {
    .name = "local_response_norm",
    .inputs = {"x"},
    .dtypes = {KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_local_response_norm_args, local_response_rows, KN_LOCAL_RESPONSE_NORM_DEFAULTS),
    .composes = true,
    .enter = local_response_enter};

kn_local_response_norm_params kn_local_response_norm_params_init(void)
{
    return (kn_local_response_norm_params){KN_LOCAL_RESPONSE_NORM_DEFAULTS};
}

kn_tensor *kn_local_response_norm_with(kn_tensor *x, int64_t size, const kn_local_response_norm_params *params)
{
    params = params ? params : &(kn_local_response_norm_params){KN_LOCAL_RESPONSE_NORM_DEFAULTS};
    const kn_local_response_norm_args args = {size, params->alpha, params->beta, params->k};
    return kn_invoke(&kn_local_response_norm_op, &args, x);
}

/* --- of softmax --------------------------------------------------------------------------------------------------- */

static kn_status softmin_enter(kn_entry *entry)
{
    return give(entry, kn_softmax(kn_neg(entry->inputs[0]), ((const kn_dim_args *)entry->params)->dim));
}

const kn_op kn_softmin_op = {.name = "softmin",
                             .inputs = {"x"},
                             .dtypes = {KN_DTYPES_FLOATING},
                             .params = KN_PARAMS(kn_dim_args, kn_dim_rows, .dim = -1),
                             .composes = true,
                             .enter = softmin_enter};

kn_tensor *kn_softmin(kn_tensor *x, int dim) { return kn_invoke(&kn_softmin_op, &(kn_dim_args){dim}, x); }

/* 1 at the maximum of y along `dim`, the first among equals, 0 elsewhere. */
static kn_tensor *one_hot_maximum(kn_tensor *y, int dim)
{
    int64_t shape[KN_MAX_DIMS] = {1};
    for (int d = 0; d < y->ndim; d++)
        shape[d] = d == dim ? y->shape[d] : 1;
    kn_tensor *places =
        kn_arange_with(0, (double)shape[dim], 1, &(kn_tensor_options){.dtype = KN_I64, .device = y->storage->device});
    return kn_to_dtype(kn_eq(kn_argmax(y, dim, true), kn_reshape(places, y->ndim, shape)), y->dtype);
}

/* log(-log(u)) for each element of x. It is finite: u is not 0, and in float16 and bfloat16, where it would often be 0,
 * it is computed in float32. */
static kn_tensor *gumbel_noise(const kn_tensor *x, kn_generator *generator)
{
    const kn_dtype dtype = kn_compute_type(x->dtype);
    const kn_tensor_options options = {.dtype = dtype, .device = kn_device_of(x), .generator = generator};
    kn_tensor *u = kn_clamp(kn_rand_with(x->ndim, x->shape, &options), .min = dtype == KN_F64 ? 0x1p-54 : 0x1p-25);
    return kn_log(kn_neg(kn_log(u)));
}

static kn_status gumbel_softmax_enter(kn_entry *entry)
{
    const kn_gumbel_softmax_params *params = entry->params;
    kn_tensor *x = entry->inputs[0];
    int dim;

    if (!(params->tau > 0))
        return kn_fail(KN_ERR_ARGUMENT, "tau (%g) must be greater than 0", params->tau);
    KN_TRY(kn_dim_from_front(&dim, params->dim, x->ndim));
    kn_tensor *logits = kn_sub(kn_to_dtype(x, kn_compute_type(x->dtype)), gumbel_noise(x, params->generator));
    kn_tensor *y = kn_softmax(kn_mul_scalar(logits, 1 / params->tau), dim);
    if (params->hard && y) {
        kn_tensor *constant = kn_detach(y); /* the value is exactly one-hot where y - y is 0 */
        y = kn_add(one_hot_maximum(constant, dim), kn_sub(y, constant));
    }
    return give(entry, kn_to_dtype(y, x->dtype));
}

static const kn_op_param gumbel_softmax_rows[] = {
    KN_PARAM(kn_gumbel_softmax_params, tau), KN_PARAM(kn_gumbel_softmax_params, hard),
    KN_PARAM(kn_gumbel_softmax_params, dim), KN_PARAM(kn_gumbel_softmax_params, generator)};
const kn_op kn_gumbel_softmax_op = {
    .name = "gumbel_softmax",
    .inputs = {"x"},
    .dtypes = {KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_gumbel_softmax_params, gumbel_softmax_rows, KN_GUMBEL_SOFTMAX_DEFAULTS),
    .composes = true,
    .enter = gumbel_softmax_enter};

kn_gumbel_softmax_params kn_gumbel_softmax_params_init(void)
{
    return (kn_gumbel_softmax_params){KN_GUMBEL_SOFTMAX_DEFAULTS};
}

kn_tensor *kn_gumbel_softmax_with(kn_tensor *x, const kn_gumbel_softmax_params *params)
{
    return kn_invoke(&kn_gumbel_softmax_op, params, x);
}
