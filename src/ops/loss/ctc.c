/* ops/loss/ctc.c - connectionist temporal classification. cl/loss/ctc.clh has the formulas. */
#include <koine/loss.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <math.h>

#include "autograd/work.h"
#include "base/memory.h"
#include "loops/rows_plan.h"
#include "loss/ctc.h"
#include "ops/dispatch/reference.h"
#include "ops/loss/distance.h"

enum { LOG_PROBS, TARGET, INPUT_LENGTHS, TARGET_LENGTHS, INPUTS };

/* The record. */
typedef struct kn_ctc_record {
    kn_ctc sizes;
    bool zero_infinity;
} kn_ctc_record;

/* --- entering ----------------------------------------------------------------------------------------------------- */

static kn_status check_shapes(const kn_entry *entry)
{
    kn_tensor *const *in = entry->inputs;
    const kn_ctc_loss_params *params = entry->params;
    const int ndim = in[LOG_PROBS]->ndim;
    const int64_t samples = ndim == 3 ? in[LOG_PROBS]->shape[1] : 1;
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    if (ndim != 2 && ndim != 3)
        return kn_fail(KN_ERR_SHAPE, "log_probs must be [T, N, C] or [T, C], not %s",
                       kn_tensor_describe(a, sizeof a, in[LOG_PROBS]));
    if (params->blank < 0 || params->blank >= in[LOG_PROBS]->shape[ndim - 1])
        return kn_fail(KN_ERR_ARGUMENT, "blank (%lld) must be one of the %lld classes", (long long)params->blank,
                       (long long)in[LOG_PROBS]->shape[ndim - 1]);
    if (in[TARGET]->ndim != 1 && !(ndim == 3 && in[TARGET]->ndim == 2 && in[TARGET]->shape[0] == samples))
        return kn_fail(KN_ERR_SHAPE, "target %s does not fit log_probs %s: [N, S], or one dimension",
                       kn_tensor_describe(b, sizeof b, in[TARGET]), kn_tensor_describe(a, sizeof a, in[LOG_PROBS]));
    for (int i = INPUT_LENGTHS; i <= TARGET_LENGTHS; i++)
        if (kn_numel(in[i]) != samples || in[i]->ndim > 1)
            return kn_fail(KN_ERR_SHAPE, "%s must hold one length for each of the %lld samples, not %s",
                           entry->op->inputs[i], (long long)samples, kn_tensor_describe(a, sizeof a, in[i]));
    return KN_OK;
}

/* The longest of several targets that follow one another: waits for the device. */
static kn_status find_longest(int64_t *longest, const kn_tensor *lengths)
{
    const size_t bytes = (size_t)kn_numel(lengths) * sizeof(int64_t);
    int64_t *values = kn_malloc(bytes ? bytes : 1);
    kn_status status = values ? kn_read(lengths, values, bytes) : KN_ERR_MEMORY;
    *longest = 0;
    for (int64_t i = 0; i < kn_numel(lengths) && status == KN_OK; i++)
        *longest = values[i] > *longest ? values[i] : *longest;
    kn_free(values);
    return status;
}

static kn_status make_record(kn_entry *entry)
{
    const kn_ctc_loss_params *params = entry->params;
    const kn_tensor *x = entry->inputs[LOG_PROBS], *target = entry->inputs[TARGET];
    kn_ctc_record *own = kn_entry_record(entry, sizeof *own);
    const bool is_list = target->ndim == 1 && x->shape[1] > 1;
    int64_t longest = target->shape[target->ndim - 1];

    if (is_list && !kn_op_is_dry_run()) {
        int64_t found;
        KN_TRY(find_longest(&found, entry->inputs[TARGET_LENGTHS]));
        longest = found < longest ? found : longest;
    }
    own->zero_infinity = params->zero_infinity;
    own->sizes = (kn_ctc){.steps = x->shape[0],
                          .samples = x->shape[1],
                          .classes = x->shape[2],
                          .padded = is_list ? 0 : longest,
                          .targets = kn_numel(target),
                          .longest = longest,
                          .width = (2 * longest + 1 + 15) / 16 * 16 + 16,
                          .blank = params->blank};
    return KN_OK;
}

/* The mean is that of the losses divided by the lengths of their targets. */
static kn_status enter_reduced(kn_entry *entry)
{
    kn_ctc_loss_params params = *(const kn_ctc_loss_params *)entry->params;
    kn_tensor **in = entry->inputs;
    const kn_reduction reduction = params.reduction;
    const bool has_batch = in[LOG_PROBS]->ndim == 3;

    params.reduction = KN_REDUCTION_NONE;
    kn_tensor *x = has_batch ? in[LOG_PROBS] : kn_unsqueeze(in[LOG_PROBS], 1);
    kn_tensor *loss = kn_invoke(entry->op, &params, x, in[TARGET], in[INPUT_LENGTHS], in[TARGET_LENGTHS]);
    if (!loss)
        return kn_error_status();
    if (reduction == KN_REDUCTION_MEAN)
        loss =
            kn_div(loss, kn_to_dtype(kn_clamp(kn_reshape(in[TARGET_LENGTHS], 1, loss->shape), .min = 1), loss->dtype));
    if (!has_batch && reduction == KN_REDUCTION_NONE)
        return kn_composed_give(entry, kn_reshape(loss, 0, NULL));
    return kn_composed_give(entry, kn_loss_reduced(loss, reduction));
}

static kn_status ctc_enter(kn_entry *entry)
{
    const kn_ctc_loss_params *params = entry->params;
    KN_TRY(check_shapes(entry));
    for (int i = TARGET; i < INPUTS; i++)
        if (!(entry->inputs[i] = kn_to_dtype(entry->inputs[i], KN_I64)))
            return kn_error_status();
    if (params->reduction != KN_REDUCTION_NONE || entry->inputs[LOG_PROBS]->ndim == 2)
        return enter_reduced(entry);
    return make_record(entry);
}

static kn_status ctc_shape(kn_call *call)
{
    const kn_tensor *x = call->inputs[LOG_PROBS];
    KN_TRY(kn_call_check_floating(call, LOG_PROBS));
    return kn_call_output(call, x->dtype, 1, &x->shape[1]);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_pointwise_code zeroed = {
    .name = "ctc_finite", .inputs = "a", .vectors = KN_NO_VECTORS, .values = {"a == INFINITY ? (T)0 : a"}};

static const char *source_for(const kn_tensor *x)
{
    return kn_tensor_limits(x)->is_cpu ? "loss/ctc_cpu.cl" : "loss/ctc_gpu.cl";
}

/* Of contiguous inputs: the states' probabilities, their labels and the losses. */
static kn_status launch_forward(kn_call *call, kn_tensor *const *in, const kn_tensor *alpha, const kn_tensor *label,
                                const kn_tensor *loss)
{
    const kn_ctc_record *record = call->params;
    const kn_work_size work = kn_work_for_groups(kn_tensor_limits(loss), record->sizes.samples);
    return kn_run(call->stream, .source = source_for(loss), .options = kn_dtype_options(loss->dtype),
                  .kernel = "ctc_forward", .operation = "ctc_loss", .dims = 1, .global = {work.global},
                  .local = {work.local},
                  KN_ARGS(kn_arg_tensor(in[LOG_PROBS]), kn_arg_tensor(in[TARGET]), kn_arg_tensor(in[INPUT_LENGTHS]),
                          kn_arg_tensor(in[TARGET_LENGTHS]), kn_arg_tensor(alpha), kn_arg_tensor(label),
                          kn_arg_tensor(loss), kn_arg_struct(&record->sizes, sizeof record->sizes), kn_arg_fault()));
}

/* Saves the input, the lengths, alpha, the labels and the losses, before infinite ones become 0. */
enum { SAVED_X, SAVED_INPUT_LENGTHS, SAVED_TARGET_LENGTHS, ALPHA, LABEL, LOSS, SAVED };

static kn_status run_forward(kn_call *call, kn_tensor *in[INPUTS], kn_tensor *made[SAVED])
{
    const kn_ctc_record *record = call->params;
    const kn_ctc *sizes = &record->sizes;
    kn_device *device = call->inputs[LOG_PROBS]->storage->device;
    const kn_dtype dtype = call->inputs[LOG_PROBS]->dtype;

    for (int i = LOG_PROBS; i < INPUTS; i++)
        KN_TRY(kn_tensor_contiguous(&in[i], call->inputs[i]));
    KN_TRY(kn_tensor_new(&made[ALPHA], dtype, 3, (const int64_t[]){sizes->samples, sizes->steps + 1, sizes->width},
                         device));
    KN_TRY(kn_tensor_new(&made[LABEL], KN_I32, 2, (const int64_t[]){sizes->samples, sizes->width}, device));
    if (record->zero_infinity)
        KN_TRY(kn_tensor_new(&made[LOSS], dtype, 1, &sizes->samples, device));
    else
        made[LOSS] = kn_retain(call->outputs[0]);
    if (call->needs_grad) {
        kn_tensor *const saved[SAVED] = {in[LOG_PROBS], in[INPUT_LENGTHS], in[TARGET_LENGTHS],
                                         made[ALPHA],   made[LABEL],       made[LOSS]};
        for (int i = 0; i < SAVED; i++)
            KN_TRY(kn_call_save(call, saved[i]));
    }
    if (sizes->samples == 0)
        return KN_OK;
    KN_TRY(launch_forward(call, in, made[ALPHA], made[LABEL], made[LOSS]));
    return record->zero_infinity ? kn_elements(call->stream, &zeroed, "ctc_loss", dtype, call->outputs[0],
                                               (const kn_tensor *const[]){made[LOSS]}, 1, NULL)
                                 : KN_OK;
}

static kn_status ctc_forward(kn_call *call)
{
    kn_tensor *in[INPUTS] = {NULL}, *made[SAVED] = {NULL};
    const kn_status status = run_forward(call, in, made);
    for (int i = 0; i < INPUTS; i++)
        kn_release(in[i]);
    for (int i = 0; i < SAVED; i++)
        kn_release(made[i]);
    return status;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static kn_status ctc_backward(kn_grad_call *grad)
{
    const kn_ctc_record *record = grad->params;
    const kn_ctc *sizes = &record->sizes;
    kn_tensor *const *saved = grad->saved, *out = grad->needs[LOG_PROBS] ? kn_grad_new(grad, LOG_PROBS) : NULL;
    if (!grad->needs[LOG_PROBS])
        return KN_OK;
    if (!out)
        return kn_error_status();
    if (kn_numel(out) == 0)
        return KN_OK;
    const kn_limits *limits = kn_tensor_limits(out);
    const kn_tensor_options like = {.dtype = out->dtype, .device = out->storage->device};
    const int64_t shape[] = {sizes->samples, limits->is_cpu ? 2 : 3, sizes->width};
    const kn_tensor *beta = kn_empty_with(3, shape, &like);
    const kn_work_size work = kn_work_for_groups(limits, sizes->samples);
    if (!beta)
        return kn_error_status();
    return kn_run(
        grad->stream, .source = source_for(out), .options = kn_dtype_options(out->dtype), .kernel = "ctc_backward",
        .operation = "ctc_loss_backward", .dims = 1, .global = {work.global}, .local = {work.local},
        KN_ARGS(kn_arg_tensor(saved[SAVED_X]), kn_arg_tensor(saved[SAVED_INPUT_LENGTHS]),
                kn_arg_tensor(saved[SAVED_TARGET_LENGTHS]), kn_arg_tensor(saved[ALPHA]), kn_arg_tensor(saved[LABEL]),
                kn_arg_tensor(saved[LOSS]), kn_arg_tensor(grad->grad_outputs[0]), kn_arg_tensor(beta),
                kn_arg_tensor(out), kn_arg_struct(sizes, sizeof *sizes), kn_arg_i32(record->zero_infinity)));
}

/* --- reference ---------------------------------------------------------------------------------------------------- */

static double log_sum(double a, double b)
{
    const double most = fmax(a, b), shift = most == -INFINITY ? 0 : most;
    return most + log(exp(a - shift) + exp(b - shift));
}

/* Of one sample whose labels begin at `first`: the recurrence in place, from the last state down. */
static double reference_of(const kn_call *call, int64_t sample, int64_t first, double *alpha)
{
    const kn_ctc *p = &((const kn_ctc_record *)call->params)->sizes;
    const int64_t steps = (int64_t)kn_reference_get(call->inputs[INPUT_LENGTHS], sample);
    const int64_t labels = (int64_t)kn_reference_get(call->inputs[TARGET_LENGTHS], sample), last = 2 * labels;

    for (int64_t t = 0; t < steps; t++)
        for (int64_t s = last; s >= 0; s--) {
            const double own = s % 2 ? kn_reference_get(call->inputs[TARGET], first + s / 2) : (double)p->blank;
            double sum = t == 0 ? 0 : alpha[s];
            if (t > 0 && s >= 1)
                sum = log_sum(sum, alpha[s - 1]);
            if (t > 0 && s % 2 && s >= 3 && own != kn_reference_get(call->inputs[TARGET], first + s / 2 - 1))
                sum = log_sum(sum, alpha[s - 2]);
            const int64_t at = (t * p->samples + sample) * p->classes + (int64_t)own;
            alpha[s] = t == 0 && s > 1 ? -INFINITY : sum + kn_reference_get(call->inputs[LOG_PROBS], at);
        }
    if (steps == 0)
        return labels == 0 ? 0 : (double)INFINITY;
    return -log_sum(alpha[last], labels > 0 ? alpha[last - 1] : -INFINITY);
}

static kn_status ctc_reference(const kn_call *call)
{
    const kn_ctc_record *record = call->params;
    double *alpha = kn_malloc((size_t)(2 * record->sizes.longest + 1) * sizeof *alpha);
    int64_t first = 0;
    if (!alpha)
        return KN_ERR_MEMORY;
    for (int64_t n = 0; n < record->sizes.samples; n++) {
        const double loss = reference_of(call, n, record->sizes.padded ? n * record->sizes.padded : first, alpha);
        kn_reference_set(call->outputs[0], n, record->zero_infinity && loss == INFINITY ? 0 : loss);
        first += (int64_t)kn_reference_get(call->inputs[TARGET_LENGTHS], n);
    }
    kn_free(alpha);
    return KN_OK;
}

/* --- descriptor --------------------------------------------------------------------------------------------------- */

/* Of each state at each time three exponentials, a logarithm and seven more, and as many backward with the posterior's
 * two. */
static double states_of(const void *params)
{
    const kn_ctc *p = &((const kn_ctc_record *)params)->sizes;
    return (double)p->steps * (double)p->samples * (double)(2 * p->longest + 1);
}

static kn_span_work ctc_work(const kn_call *call)
{
    kn_span_work work = kn_work_memory_bound(call);
    work.flops = 11 * states_of(call->params);
    return work;
}

static kn_span_work ctc_backward_work(const kn_grad_call *grad)
{
    return kn_grad_work(grad, 14 * states_of(grad->params));
}

static const kn_op_param ctc_rows[] = {KN_PARAM(kn_ctc_loss_params, blank, .min = 0, .max = (double)INFINITY),
                                       KN_REDUCTION_ROW(kn_ctc_loss_params),
                                       KN_PARAM(kn_ctc_loss_params, zero_infinity)};
const kn_op kn_ctc_loss_op = {.name = "ctc_loss",
                              .inputs = {"log_probs", "target", "input_lengths", "target_lengths"},
                              .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_INDICES, KN_DTYPES_INDICES, KN_DTYPES_INDICES},
                              .params = KN_PARAMS(kn_ctc_loss_params, ctc_rows, KN_CTC_LOSS_DEFAULTS),
                              .widens_halves = true,
                              .composes = true,
                              .enter = ctc_enter,
                              .record_size = sizeof(kn_ctc_record),
                              .shape = ctc_shape,
                              .forward = ctc_forward,
                              .backward = ctc_backward,
                              .reference = ctc_reference,
                              .work = ctc_work,
                              .backward_work = ctc_backward_work};

kn_ctc_loss_params kn_ctc_loss_params_init(void) { return (kn_ctc_loss_params){KN_CTC_LOSS_DEFAULTS}; }

kn_tensor *kn_ctc_loss_with(kn_tensor *log_probs, kn_tensor *target, kn_tensor *input_lengths,
                            kn_tensor *target_lengths, const kn_ctc_loss_params *params)
{
    return kn_invoke(&kn_ctc_loss_op, params, log_probs, target, input_lengths, target_lengths);
}
