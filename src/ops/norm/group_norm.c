/* ops/norm/group_norm.c - group normalisation, and that of instances: groups of one channel.
 *
 * A row is a group of a sample: C / groups channels of `segment` elements, each with its weight. */
#include <koine/autograd.h>
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>

#include "autograd/work.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "ops/norm/norm.h"
#include "ops/shape/reduce.h"

enum { X = KN_NORM_X, WEIGHT = KN_NORM_WEIGHT, BIAS = KN_NORM_BIAS };

static kn_norm_rows rows_of(const kn_group_norm_args *params, int ndim, const int64_t *shape)
{
    const int64_t inner = kn_shape_numel(ndim - 2, shape + 2);
    return (kn_norm_rows){.rows = shape[0] * params->num_groups,
                          .n = shape[1] / params->num_groups * inner,
                          .segment = inner,
                          .segments = shape[1]};
}

static kn_status group_norm_shape(kn_call *call)
{
    const kn_group_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X];
    char text[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, X));
    KN_TRY(kn_call_check_same_dtype(call, X, BIAS));
    if (x->ndim < 2)
        return kn_fail(KN_ERR_SHAPE, "expected [N, C, ...], got %s", kn_tensor_describe(text, sizeof text, x));
    if (x->shape[1] % params->num_groups != 0)
        return kn_fail(KN_ERR_SHAPE, "the %lld channels of %s are not divisible by num_groups (%lld)",
                       (long long)x->shape[1], kn_tensor_describe(text, sizeof text, x), (long long)params->num_groups);
    for (int i = WEIGHT; i <= BIAS; i++)
        if (call->inputs[i] && (call->inputs[i]->ndim != 1 || call->inputs[i]->shape[0] != x->shape[1]))
            return kn_fail(KN_ERR_SHAPE, "%s must hold one number for each of the %lld channels, not %s",
                           i == WEIGHT ? "weight" : "bias", (long long)x->shape[1],
                           kn_tensor_describe(text, sizeof text, call->inputs[i]));
    KN_TRY(kn_call_output(call, x->dtype, x->ndim, x->shape));
    return kn_norm_statistics_shape(call, 2, (const int64_t[]){x->shape[0], params->num_groups});
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

#define FORWARD(letters, factor, term) KN_ROW_NORM("group_norm", letters, per_segment, factor, term)
static kn_rows_code forward_codes[2][2] = {{FORWARD("a", "", ""), FORWARD("ab", "", " + b")},
                                           {FORWARD("aw", " * w", ""), FORWARD("awb", " * w", " + b")}};
static const kn_row_norm norm = {forward_codes, 3};

static kn_status group_norm_forward(kn_call *call)
{
    const kn_group_norm_args *params = call->params;
    return kn_row_norm_forward(call, &norm, rows_of(params, call->inputs[X]->ndim, call->inputs[X]->shape),
                               params->eps);
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

#define BACKWARD(letters, factor) KN_ROW_NORM_BACKWARD("group_norm_backward", letters, per_segment, factor, "")
static kn_rows_code backward_codes[2] = {BACKWARD("gahlr", ""), BACKWARD("gahlrw", " * w")};

/* Over each channel of a sample: sum g c r and sum g. */
static kn_rows_code sums_of_channels = {.name = "group_norm_sums",
                                        .inputs = "gahlr",
                                        .per_row = "hlr",
                                        KN_TWO_SUMS_BY("u += g * " KN_CENTRED "; v += g;"),
                                        .values = {"u * r", "v"}};

/* The statistics of each channel's group. */
static kn_tensor *of_channels(kn_tensor *table, int64_t samples, int64_t groups, int64_t channels)
{
    if (groups == channels)
        return table;
    kn_tensor *spread = kn_expand(kn_reshape(table, 3, (const int64_t[]){3, samples * groups, 1}), 3,
                                  (const int64_t[]){3, samples * groups, channels / groups});
    return kn_reshape(kn_contiguous(spread), 2, (const int64_t[]){3, samples * channels});
}

/* The gradients of weight and bias, [C]: sums for each sample, then over the samples. */
static kn_status run_for_weights(kn_grad_call *grad, kn_norm_rows r)
{
    const kn_tensor *x = grad->saved[0];
    const int64_t samples = x->shape[0], channels = x->shape[1];
    const kn_tensor_options like = {.dtype = x->dtype, .device = x->storage->device};
    kn_tensor *table = of_channels(grad->saved[1], samples, r.rows / samples, channels);
    kn_tensor *sums = kn_empty_with(2, (const int64_t[]){2, samples * channels}, &like);
    if (!table || !sums)
        return kn_error_status();
    kn_rows_problem p = {.code = &sums_of_channels,
                         .operation = grad->op->name,
                         .compute = x->dtype,
                         .outer = samples * channels,
                         .n = r.segment,
                         .inner = 1,
                         .inputs = {kn_row_operand(grad->grad_outputs[0]), kn_row_operand(x)}};
    for (int i = 0; i < norm.statistics; i++)
        p.inputs[2 + i] = kn_row_norm_part(table, i);
    for (int i = WEIGHT; i <= BIAS; i++)
        if (grad->needs[i])
            p.outputs[i - WEIGHT] = kn_row_norm_part(sums, i - WEIGHT);
    KN_TRY(kn_rows_run(grad->stream, &p));
    for (int i = WEIGHT; i <= BIAS; i++)
        if (grad->needs[i])
            KN_TRY(kn_sum_middle(grad->stream, grad->op->name, kn_select(sums, 0, i - WEIGHT), 1, samples, channels, 1,
                                 grad->grad_inputs[i]));
    return KN_OK;
}

static kn_status group_norm_backward(kn_grad_call *grad)
{
    const kn_tensor *x = grad->saved[0];
    const kn_norm_rows r = rows_of(grad->params, x->ndim, x->shape);

    KN_TRY(kn_norm_new_gradients(grad));
    if (kn_numel(x) == 0)
        return KN_OK;
    if (grad->needs[X]) {
        kn_rows_problem p = kn_row_norm_backward(grad, backward_codes, norm.statistics, r);
        p.mapped = kn_row_operand(grad->grad_inputs[X]);
        KN_TRY(kn_rows_run(grad->stream, &p));
    }
    return grad->needs[WEIGHT] || grad->needs[BIAS] ? run_for_weights(grad, r) : KN_OK;
}

/* --- reference and op --------------------------------------------------------------------------------------------- */

static kn_status group_norm_reference(const kn_call *call)
{
    const kn_group_norm_args *params = call->params;
    const kn_tensor *x = call->inputs[X], *weight = call->inputs[WEIGHT], *bias = call->inputs[BIAS];
    const kn_norm_rows r = rows_of(params, x->ndim, x->shape);

    for (int64_t from = 0; from < r.rows * r.n; from += r.n) {
        double mean = 0, variance = 0;
        for (int64_t i = from; i < from + r.n; i++)
            mean += kn_reference_get(x, i) / (double)r.n;
        for (int64_t i = from; i < from + r.n; i++)
            variance += pow(kn_reference_get(x, i) - mean, 2) / (double)r.n;
        if (call->num_outputs > 1) {
            kn_reference_set(call->outputs[1], from / r.n, mean);
            kn_reference_set(call->outputs[2], from / r.n, 1 / sqrt(variance + params->eps));
        }
        for (int64_t i = from; i < from + r.n; i++) {
            const int64_t channel = i / r.segment % r.segments;
            kn_reference_set(call->outputs[0], i,
                             (kn_reference_get(x, i) - mean) / sqrt(variance + params->eps) *
                                     (weight ? kn_reference_get(weight, channel) : 1) +
                                 (bias ? kn_reference_get(bias, channel) : 0));
        }
    }
    return KN_OK;
}

/* As layer normalisation's. */
static kn_span_work group_norm_work(const kn_call *call) { return kn_work_of_input(call, 8); }
static kn_span_work group_norm_backward_work(const kn_grad_call *grad)
{
    const double n = (double)kn_shape_numel(grad->input[X].ndim, grad->input[X].shape);
    return kn_grad_work(grad, n * ((grad->needs[X] ? 10 : 0) + (grad->needs[WEIGHT] ? 4 : 0) + grad->needs[BIAS]));
}

static kn_status check_dtypes(const kn_entry *entry)
{
    for (int i = WEIGHT; i <= BIAS; i++)
        if (entry->inputs[i] && kn_compute_type(entry->inputs[i]->dtype) != kn_compute_type(entry->inputs[X]->dtype))
            return kn_fail(KN_ERR_DTYPE, "%s is %s and the input is %s: convert one with kn_to_dtype",
                           i == WEIGHT ? "weight" : "bias", kn_dtype_name(entry->inputs[i]->dtype),
                           kn_dtype_name(entry->inputs[X]->dtype));
    return KN_OK;
}

static kn_status group_norm_enter(kn_entry *entry)
{
    const kn_group_norm_args *args = entry->params;
    if (args->num_groups < 1)
        return kn_fail(KN_ERR_ARGUMENT, "num_groups (%lld) must be at least 1", (long long)args->num_groups);
    return check_dtypes(entry);
}

static const kn_op_param group_norm_rows[] = {KN_PARAM(kn_group_norm_args, num_groups),
                                              KN_PARAM(kn_group_norm_args, eps, .min = 0, .max = (double)INFINITY)};
const kn_op kn_group_norm_op = {.name = "group_norm",
                                .inputs = {"x", "?weight", "?bias"},
                                .dtypes = {KN_DTYPES_FLOATING},
                                KN_NORM_OUTPUTS,
                                .params = KN_PARAMS(kn_group_norm_args, group_norm_rows, KN_GROUP_NORM_DEFAULTS),
                                .widens_halves = true,
                                .enter = group_norm_enter,
                                .shape = group_norm_shape,
                                .forward = group_norm_forward,
                                .backward = group_norm_backward,
                                .backward_recorded = kn_group_norm_backward_recorded,
                                .reference = group_norm_reference,
                                .work = group_norm_work,
                                .backward_work = group_norm_backward_work};

const kn_op kn_group_norm_backward_op = {KN_BACKWARD_OP(group_norm),
                                         .inputs = {"grad", "x", "?weight", "?bias", "?mean", "?rstd"},
                                         .outputs = {"grad_x", "grad_weight", "grad_bias"},
                                         .widens_halves = true,
                                         .repeats_forward = true,
                                         .restore = kn_norm_restore_rows};

kn_group_norm_params kn_group_norm_params_init(void) { return (kn_group_norm_params){KN_GROUP_NORM_DEFAULTS}; }

kn_tensor *kn_group_norm_with(kn_tensor *x, int64_t num_groups, const kn_group_norm_params *params)
{
    params = params ? params : &(kn_group_norm_params){KN_GROUP_NORM_DEFAULTS};
    const kn_group_norm_args args = {num_groups, params->eps};
    return kn_norm_invoke(&kn_group_norm_op, (kn_tensor *[]){x, params->weight, params->bias}, KN_NORM_INPUTS, &args,
                          NULL, NULL);
}

/* --- instances ---------------------------------------------------------------------------------------------------- */

enum { RUNNING_MEAN = BIAS + 1, RUNNING_VAR };

/* running = (1 - momentum) running + momentum statistic */
static void update(kn_tensor *running, double momentum, kn_tensor *statistic)
{
    kn_copy_(running, kn_lerp_scalar(running, kn_to_dtype(statistic, running->dtype), momentum));
}

static kn_status update_running(const kn_entry *entry)
{
    const double momentum = ((const kn_instance_norm_args *)entry->params)->momentum;
    kn_tensor *x = entry->inputs[X];
    int dims[KN_MAX_DIMS] = {0};
    const int first = 0;

    KN_NO_GRAD;
    for (int d = 2; d < x->ndim; d++)
        dims[d - 1] = d;
    update(entry->inputs[RUNNING_MEAN], momentum, kn_mean_dims(x, dims, x->ndim - 1, false));
    kn_tensor *variances = kn_var_dims(x, dims + 1, x->ndim - 2, 1, false); /* [N, C] */
    update(entry->inputs[RUNNING_VAR], momentum, kn_mean_dims(variances, &first, 1, false));
    return kn_error_is_sticky() ? kn_error_status() : KN_OK;
}

static kn_status check_instances(const kn_entry *entry)
{
    const kn_instance_norm_args *args = entry->params;
    const kn_tensor *x = entry->inputs[X], *mean = entry->inputs[RUNNING_MEAN], *var = entry->inputs[RUNNING_VAR];
    char text[KN_DESCRIBE];

    if (x->ndim < 3)
        return kn_fail(KN_ERR_SHAPE, "expected [N, C, ...], got %s", kn_tensor_describe(text, sizeof text, x));
    if (!mean != !var || (!mean && !args->use_input_stats))
        return kn_fail(KN_ERR_ARGUMENT, mean || var
                                            ? "running_mean and running_var are given both or neither"
                                            : "without use_input_stats, running_mean and running_var are needed");
    for (int i = RUNNING_MEAN; mean && i <= RUNNING_VAR; i++)
        if (entry->inputs[i]->ndim != 1 || entry->inputs[i]->shape[0] != x->shape[1])
            return kn_fail(KN_ERR_SHAPE, "%s must hold one number for each of the %lld channels, not %s",
                           entry->op->inputs[i] + 1, (long long)x->shape[1],
                           kn_tensor_describe(text, sizeof text, entry->inputs[i]));
    if (args->use_input_stats && kn_shape_numel(x->ndim - 2, x->shape + 2) == 1)
        return kn_fail(KN_ERR_SHAPE, "expected more than 1 value per channel of a sample, got %s",
                       kn_tensor_describe(text, sizeof text, x));
    return check_dtypes(entry);
}

static kn_status instance_norm_enter(kn_entry *entry)
{
    const kn_instance_norm_args *args = entry->params;
    kn_tensor *const *in = entry->inputs;

    KN_TRY(check_instances(entry));
    if (!args->use_input_stats)
        entry->result = kn_batch_norm(in[X], .weight = in[WEIGHT], .bias = in[BIAS], .running_mean = in[RUNNING_MEAN],
                                      .running_var = in[RUNNING_VAR], .eps = args->eps);
    else if (in[X]->shape[1] == 0)
        return kn_entry_return_input(entry);
    else
        entry->result = kn_group_norm(in[X], in[X]->shape[1], .weight = in[WEIGHT], .bias = in[BIAS], .eps = args->eps);
    if (!entry->result)
        return kn_error_status();
    return args->use_input_stats && in[RUNNING_MEAN] && kn_numel(in[X]) > 0 ? update_running(entry) : KN_OK;
}

static const kn_op_param instance_norm_rows[] = {
    KN_PARAM(kn_instance_norm_args, use_input_stats),
    KN_PARAM(kn_instance_norm_args, momentum, .min = 0, .max = (double)INFINITY),
    KN_PARAM(kn_instance_norm_args, eps, .min = 0, .max = (double)INFINITY)};
const kn_op kn_instance_norm_op = {.name = "instance_norm",
                                   .inputs = {"x", "?weight", "?bias", "?running_mean", "?running_var"},
                                   .dtypes = {KN_DTYPES_FLOATING},
                                   .params =
                                       KN_PARAMS(kn_instance_norm_args, instance_norm_rows, KN_INSTANCE_NORM_DEFAULTS),
                                   .composes = true,
                                   .enter = instance_norm_enter};

kn_instance_norm_params kn_instance_norm_params_init(void)
{
    return (kn_instance_norm_params){KN_INSTANCE_NORM_DEFAULTS};
}

kn_tensor *kn_instance_norm_with(kn_tensor *x, const kn_instance_norm_params *params)
{
    params = params ? params : &(kn_instance_norm_params){KN_INSTANCE_NORM_DEFAULTS};
    const kn_instance_norm_args args = {params->use_input_stats, params->momentum, params->eps};
    return kn_invoke(&kn_instance_norm_op, &args, x, params->weight, params->bias, params->running_mean,
                     params->running_var);
}
