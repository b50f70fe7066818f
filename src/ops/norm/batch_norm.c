/* ops/norm/batch_norm.c - batch normalisation. The formulas are in cl/norm/batch.cl and batch_backward.cl. */
#include <koine/norm.h>
#include <string.h>

#include "autograd/view.h"
#include "autograd/work.h"
#include "ops/dispatch/backward.h"
#include "ops/dispatch/reference.h"
#include "ops/norm/norm.h"
#include "ops/pointwise/activation.h"

enum { X, WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR, COUNTER, INPUTS };
static const char *const input_names[] = {"x", "weight", "bias", "running_mean", "running_var", "the counter"};

/* --- shape rule --------------------------------------------------------------------------------------------------- */

/* Weight, bias and running estimates have one element per channel. */
static kn_status check_channels(const kn_call *call)
{
    const int64_t channels = call->inputs[X]->shape[1];

    for (int i = WEIGHT; i <= RUNNING_VAR; i++) {
        const kn_tensor *t = call->inputs[i];
        char text[KN_DESCRIBE];
        if (t && (t->ndim != 1 || t->shape[0] != channels))
            return kn_fail(KN_ERR_SHAPE, "%s should contain %lld elements, one per channel, but is %s", input_names[i],
                           (long long)channels, kn_tensor_describe(text, sizeof text, t));
    }
    return KN_OK;
}

/* The running estimates are changed in place and must not require gradients. */
static kn_status check_running(const kn_call *call)
{
    const kn_batch_norm_op_params *params = call->params;

    for (int i = RUNNING_MEAN; i <= RUNNING_VAR; i++) {
        const kn_tensor *t = call->inputs[i];
        if (t && !kn_dtype_is_floating(t->dtype))
            return kn_fail(KN_ERR_DTYPE, "%s is %s: it must be floating", input_names[i], kn_dtype_name(t->dtype));
        if (t && params->training && kn_change_wants_record(t))
            return kn_fail(KN_ERR_STATE, "%s, which is changed in place, requires gradients: use kn_detach",
                           input_names[i]);
    }
    if (!call->inputs[RUNNING_MEAN] != !call->inputs[RUNNING_VAR])
        return kn_fail(KN_ERR_ARGUMENT, "running_mean and running_var belong together: give both or neither");
    if (!params->training && !call->inputs[RUNNING_MEAN] && kn_numel(call->inputs[X]) > 0)
        return kn_fail(KN_ERR_ARGUMENT, "expected running_mean and running_var to be given when not training");
    const kn_tensor *counter = call->inputs[COUNTER];
    if (counter && (counter->dtype != KN_I64 || kn_numel(counter) != 1))
        return kn_fail(KN_ERR_ARGUMENT, "the counter of batches must be one int64");
    return KN_OK;
}

static kn_status batch_norm_shape(kn_call *call)
{
    const kn_batch_norm_op_params *params = call->params;
    const kn_tensor *x = call->inputs[X];
    char text[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating_or_half(call, X));
    KN_TRY(kn_call_check_same_dtype(call, kn_dtype_is_reduced(x->dtype) ? WEIGHT : X, BIAS));
    if (x->ndim < 2)
        return kn_fail(KN_ERR_SHAPE, "the input must be [N, C] or [N, C, d...], not %s",
                       kn_tensor_describe(text, sizeof text, x));
    KN_TRY(check_channels(call));
    KN_TRY(check_running(call));
    if (params->training && x->shape[0] * kn_shape_numel(x->ndim - 2, x->shape + 2) == 1)
        return kn_fail(KN_ERR_SHAPE, "expected more than 1 value per channel when training, got input %s",
                       kn_tensor_describe(text, sizeof text, x));
    KN_TRY(kn_call_output(call, x->dtype, x->ndim, x->shape));
    return kn_norm_statistics_shape(call, 1, &x->shape[1]);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Running estimates with another dtype or layout are updated in a copy, which is copied back. */
static kn_status borrow_running(kn_call *call, int index, kn_tensor **running)
{
    kn_tensor *given = call->inputs[index];
    const kn_dtype dtype = kn_compute_type(call->inputs[X]->dtype);

    if (!given)
        return KN_OK;
    if (given->dtype == dtype && kn_is_contiguous(given)) {
        *running = kn_retain(given);
        return KN_OK;
    }
    return kn_tensor_cast(running, given, dtype, given->storage->device);
}

static kn_status return_running(kn_call *call, int index, kn_tensor *running)
{
    kn_tensor *given = call->inputs[index];

    if (running != given)
        KN_TRY(kn_tensor_copy(given, running));
    kn_tensor_bump_version(given);
    return KN_OK;
}

static int flag_if(const void *operand, int flag) { return operand ? flag : 0; }

/* What both passes have in common. */
static kn_batch_pass pass_of(const kn_batch_norm_op_params *params, const kn_tensor *x, const kn_tensor *const *tensors)
{
    kn_batch_pass pass = {.x = x,
                          .flags = flag_if(tensors[0], KN_NORM_HAS_WEIGHT) | flag_if(tensors[1], KN_NORM_HAS_BIAS) |
                                   (params->training ? KN_NORM_TRAINING : 0),
                          .eps = params->eps,
                          .momentum = params->momentum,
                          .activation = params->activation};
    memcpy(pass.tensors, tensors, sizeof pass.tensors);
    return pass;
}

static kn_status run(kn_call *call, kn_tensor *const in[INPUTS], const kn_tensor *table)
{
    const kn_batch_norm_op_params *params = call->params;
    const kn_tensor *tensors[KN_BATCH_TENSORS] = {in[WEIGHT],       in[BIAS],        table,      call->outputs[0],
                                                  in[RUNNING_MEAN], in[RUNNING_VAR], in[COUNTER]};
    kn_batch_pass pass = pass_of(params, in[X], tensors);

    pass.flags |= KN_NORM_WANTS_X;
    if (params->training)
        pass.flags |= flag_if(in[RUNNING_MEAN], KN_NORM_HAS_RUNNING) |
                      flag_if(in[COUNTER], params->cumulative ? KN_NORM_CUMULATIVE : KN_NORM_COUNTS);
    if (kn_numel(in[X]) > 0)
        KN_TRY(kn_batch_norm_run(call->stream, &pass));
    else if (params->training && in[COUNTER])
        KN_TRY(kn_batch_norm_count(call->stream, in[COUNTER]));
    if (!params->training)
        return KN_OK;
    if (in[COUNTER])
        kn_tensor_bump_version(in[COUNTER]);
    if (kn_numel(in[X]) > 0)
        for (int i = RUNNING_MEAN; i <= RUNNING_VAR; i++)
            if (in[i])
                KN_TRY(return_running(call, i, in[i]));
    return KN_OK;
}

/* Saves x, the statistics, the weight if given and, for the activation, the bias. */
static kn_status save(kn_call *call, kn_tensor *const in[INPUTS], kn_tensor *table)
{
    const kn_batch_norm_op_params *params = call->params;

    KN_TRY(kn_call_save(call, in[X]));
    KN_TRY(kn_call_save(call, table));
    KN_TRY(kn_call_save(call, in[WEIGHT]));
    return kn_call_save(call, params->activation != KN_ACTIVATION_NONE ? in[BIAS] : NULL);
}

static kn_status batch_norm_forward(kn_call *call)
{
    const kn_tensor *x = call->inputs[X];
    kn_tensor *in[INPUTS] = {NULL}, *table = NULL;
    kn_status status =
        kn_tensor_new(&table, kn_compute_type(x->dtype), 2, (const int64_t[]){x->shape[1], 3}, x->storage->device);

    for (int i = X; i <= BIAS && status == KN_OK; i++)
        if (call->inputs[i])
            status = kn_tensor_contiguous(&in[i], call->inputs[i]);
    const bool reads_running = !((const kn_batch_norm_op_params *)call->params)->training;
    for (int i = RUNNING_MEAN; i <= RUNNING_VAR && status == KN_OK && (reads_running || !call->is_repeated); i++)
        status = borrow_running(call, i, &in[i]);
    in[COUNTER] = call->num_inputs > COUNTER ? kn_retain(call->inputs[COUNTER]) : NULL;
    if (status == KN_OK && call->needs_grad)
        status = save(call, in, table);
    if (status == KN_OK)
        status = run(call, in, table);
    if (status == KN_OK && call->num_outputs > 1)
        status = kn_norm_statistics_forward(call, table, 3, 1);
    for (int i = 0; i < INPUTS; i++)
        kn_release(in[i]);
    kn_release(table);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static kn_status batch_norm_backward(kn_grad_call *grad)
{
    const kn_batch_norm_op_params *params = grad->params;
    const kn_tensor *x = grad->saved[0];

    KN_TRY(kn_norm_new_gradients(grad));
    if (kn_numel(x) == 0)
        return KN_OK;
    kn_tensor *const *saved = grad->saved, *const *grads = grad->grad_inputs;
    const kn_tensor *tensors[KN_BATCH_TENSORS] = {saved[2], saved[3],      saved[1],   grad->grad_outputs[0],
                                                  grads[X], grads[WEIGHT], grads[BIAS]};
    kn_batch_pass pass = pass_of(params, x, tensors);
    pass.is_backward = true;
    pass.flags |= flag_if(grads[X], KN_NORM_WANTS_X) | flag_if(grads[WEIGHT], KN_NORM_WANTS_WEIGHT) |
                  flag_if(grads[BIAS], KN_NORM_WANTS_BIAS);
    return kn_batch_norm_run(grad->stream, &pass);
}

/* --- reference ---------------------------------------------------------------------------------------------------- */

/* Mean and biased variance of a channel, by definition. */
static void channel_moments(const kn_tensor *x, int64_t channel, double *mean, double *variance)
{
    const int64_t inner = kn_shape_numel(x->ndim - 2, x->shape + 2), channels = x->shape[1], n = x->shape[0] * inner;
    double sum = 0, squares = 0;

    for (int64_t i = 0; i < n; i++)
        sum += kn_reference_get(x, (i / inner * channels + channel) * inner + i % inner);
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = kn_reference_get(x, (i / inner * channels + channel) * inner + i % inner) - *mean;
        squares += d * d;
    }
    *variance = squares / (double)n;
}

static kn_status batch_norm_reference(const kn_call *call)
{
    const kn_batch_norm_op_params *params = call->params;
    const kn_tensor *x = call->inputs[X];
    const int64_t inner = kn_shape_numel(x->ndim - 2, x->shape + 2), channels = x->shape[1];
    const kn_bounds bounds = kn_bounds_of(params->activation);

    for (int64_t c = 0; c < channels; c++) {
        double mean = (double)NAN, variance = (double)NAN;
        if (kn_numel(x) > 0 && params->training) {
            channel_moments(x, c, &mean, &variance);
        } else if (kn_numel(x) > 0) {
            mean = kn_reference_get(call->inputs[RUNNING_MEAN], c);
            variance = kn_reference_get(call->inputs[RUNNING_VAR], c);
        }
        const double rstd = 1 / sqrt(variance + params->eps);
        const double scale = (call->inputs[WEIGHT] ? kn_reference_get(call->inputs[WEIGHT], c) : 1) * rstd;
        if (call->num_outputs > 1) {
            kn_reference_set(call->outputs[1], c, mean);
            kn_reference_set(call->outputs[2], c, rstd);
        }
        const double bias = call->inputs[BIAS] ? kn_reference_get(call->inputs[BIAS], c) : 0;
        for (int64_t i = 0; i < x->shape[0] * inner; i++) {
            const int64_t at = (i / inner * channels + c) * inner + i % inner;
            kn_reference_set(call->outputs[0], at,
                             kn_clamp_value(bounds, (kn_reference_get(x, at) - mean) * scale + bias));
        }
    }
    return KN_OK;
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

/* Sum, difference, sum of squares; difference, product, sum. */
static kn_span_work batch_norm_work(const kn_call *call)
{
    return kn_work_of_input(call, ((const kn_batch_norm_op_params *)call->params)->training ? 7 : 3);
}

/* Sums: addition, difference, multiply-add; gradient: two differences, multiply-subtract, product. */
static kn_span_work batch_norm_backward_work(const kn_grad_call *grad)
{
    const double n = (double)kn_shape_numel(grad->input[X].ndim, grad->input[X].shape);
    const bool training = ((const kn_batch_norm_op_params *)grad->params)->training;
    const bool sums = grad->needs[WEIGHT] || grad->needs[BIAS] || (training && grad->needs[X]);

    return kn_grad_work(grad, (sums ? 4 * n : 0) + (grad->needs[X] ? (training ? 5 : 1) * n : 0));
}

static kn_status batch_norm_enter(kn_entry *entry)
{
    const kn_batch_norm_args *args = entry->params;
    kn_batch_norm_op_params *own = kn_entry_record(entry, sizeof *own);
    *own = (kn_batch_norm_op_params){.momentum = args->momentum,
                                     .eps = args->eps,
                                     .training = args->training,
                                     .cumulative = args->cumulative && args->training && entry->inputs[COUNTER],
                                     .activation = args->activation};
    return KN_OK;
}

/* In bf16, with weights in f32 as under autocast, on CPU devices. */
static bool batch_norm_reads_halves(const kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[X];
    if (x->dtype != KN_BF16 || kn_device_is_host(x->storage->device) || !kn_tensor_limits(x)->is_cpu)
        return false;
    for (int i = WEIGHT; i <= BIAS; i++)
        if (i < entry->num_inputs && entry->inputs[i] && entry->inputs[i]->dtype != KN_F32)
            return false;
    return true;
}

static const kn_op_param batch_norm_rows[] = {KN_PARAM(kn_batch_norm_args, training),
                                              KN_PARAM(kn_batch_norm_args, cumulative),
                                              KN_PARAM(kn_batch_norm_args, momentum, .min = 0, .max = (double)INFINITY),
                                              KN_PARAM(kn_batch_norm_args, eps, .min = 0, .max = (double)INFINITY),
                                              KN_PARAM(kn_batch_norm_args, activation, .values = kn_activation_names)};
const kn_op kn_batch_norm_op = {
    .name = "batch_norm",
    .inputs = {"x", "?weight", "?bias", "?running_mean", "?running_var", "?num_batches_tracked"},
    .dtypes = {KN_DTYPES_FLOATING, 0, 0, 0, 0, KN_DTYPES_INDICES},
    KN_NORM_OUTPUTS,
    .params = KN_PARAMS(kn_batch_norm_args, batch_norm_rows, KN_BATCH_NORM_DEFAULTS),
    .widens_halves = true,
    .num_widened = BIAS + 1, /* in-place operands keep their dtype */
    .reads_halves = batch_norm_reads_halves,
    .enter = batch_norm_enter,
    .record_size = sizeof(kn_batch_norm_op_params),
    .shape = batch_norm_shape,
    .forward = batch_norm_forward,
    .backward = batch_norm_backward,
    .backward_recorded = kn_batch_norm_backward_recorded,
    .reference = batch_norm_reference,
    .work = batch_norm_work,
    .backward_work = batch_norm_backward_work};

static kn_status batch_norm_restore(const kn_call *call, kn_tensor **saved)
{
    enum { GRAD, INPUT, SCALE, SHIFT, MEAN = 6 };
    const kn_batch_norm_op_params *params = call->params;
    saved[0] = call->inputs[INPUT];
    saved[2] = call->inputs[SCALE];
    saved[3] = params->activation != KN_ACTIVATION_NONE ? call->inputs[SHIFT] : NULL;
    return kn_norm_restore_table(call, MEAN, &saved[1], 3, 1);
}

const kn_op kn_batch_norm_backward_op = {
    KN_BACKWARD_OP(batch_norm),
    .inputs = {"grad", "x", "?weight", "?bias", "?running_mean", "?running_var", "?mean", "?rstd"},
    .outputs = {"grad_x", "grad_weight", "grad_bias"},
    .widens_halves = true,
    .num_widened = 4,
    .repeats_forward = true,
    .restore = batch_norm_restore};

kn_batch_norm_params kn_batch_norm_params_init(void) { return (kn_batch_norm_params){KN_BATCH_NORM_DEFAULTS}; }

kn_tensor *kn_batch_norm_counted(kn_tensor *x, kn_tensor *counter, bool cumulative, const kn_batch_norm_params *params)
{
    params = params ? params : &(kn_batch_norm_params){KN_BATCH_NORM_DEFAULTS};
    const kn_batch_norm_args args = {.training = params->training,
                                     .cumulative = cumulative,
                                     .momentum = params->momentum,
                                     .eps = params->eps,
                                     .activation = params->activation};
    kn_tensor *const inputs[INPUTS] = {x,      params->weight, params->bias, params->running_mean, params->running_var,
                                       counter};
    return kn_norm_invoke(&kn_batch_norm_op, inputs, INPUTS, &args, params->mean, params->rstd);
}

kn_tensor *kn_batch_norm_with(kn_tensor *x, const kn_batch_norm_params *params)
{
    return kn_batch_norm_counted(x, NULL, false, params);
}
