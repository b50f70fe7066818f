/* ops/loss/class_loss.c - cross entropy of logits and negative log-likelihood of log-probabilities, with class
 * indices. */
#include "ops/loss/class_loss.h"

#include <math.h>
#include <string.h>

#include "autograd/work.h"
#include "ops/dispatch/reference.h"
#include "ops/loss/element_loss.h"
#include "ops/norm/norm.h"
#include "ops/shape/reduce.h"

enum { X, TARGET, WEIGHT, INPUTS };

/* The input as [outer, classes, inner]. */
static kn_along layout_of(int ndim, const int64_t *shape) { return kn_along_dim(ndim, shape, ndim == 1 ? 0 : 1); }

/* --- shape ------------------------------------------------------------------------------------------------------- */

/* x [C] needs target [], x [N, C, d...] needs target [N, d...]. */
static bool target_fits(const kn_tensor *x, const kn_tensor *target)
{
    bool fits = target->ndim == x->ndim - 1;
    for (int d = 0; fits && d < target->ndim; d++)
        fits = target->shape[d] == x->shape[d == 0 ? 0 : d + 1];
    return fits;
}

kn_status kn_class_loss_shape(kn_call *call)
{
    const kn_class_loss_params *params = call->params;
    const kn_tensor *x = call->inputs[0], *target = call->inputs[1],
                    *weight = call->num_inputs > 2 ? call->inputs[2] : NULL;
    char text_x[KN_DESCRIBE], text_target[KN_DESCRIBE];

    KN_TRY(kn_call_check_floating(call, 0));
    if (x->ndim == 0 || !target_fits(x, target))
        return kn_fail(KN_ERR_SHAPE, "target %s does not fit input %s: [N, C, ...] needs [N, ...]",
                       kn_tensor_describe(text_target, sizeof text_target, target),
                       kn_tensor_describe(text_x, sizeof text_x, x));
    if (weight && (weight->ndim != 1 || weight->shape[0] != x->shape[x->ndim == 1 ? 0 : 1]))
        return kn_fail(KN_ERR_SHAPE, "weight %s must hold one number for each of the %lld classes",
                       kn_tensor_describe(text_x, sizeof text_x, weight), (long long)x->shape[x->ndim == 1 ? 0 : 1]);
    if (weight && weight->dtype != x->dtype)
        return kn_fail(KN_ERR_DTYPE, "the weight is %s, but the input is %s", kn_dtype_name(weight->dtype),
                       kn_dtype_name(x->dtype));
    if (params->reduction != KN_REDUCTION_NONE)
        return kn_call_output(call, x->dtype, 0, NULL);
    return kn_call_output(call, x->dtype, target->ndim, target->shape);
}

/* Logits: a maximum, a difference, an exponential and a sum per class, and the same for the gradient.
 * Log-probabilities: one element per row is selected and added, and its gradient set. */
kn_span_work kn_class_loss_work(const kn_call *call)
{
    const kn_class_loss_params *params = call->params;
    if (params->logits)
        return kn_work_of_input(call, 4);
    kn_span_work work = kn_work_memory_bound(call);
    work.flops = (double)kn_numel(call->inputs[1]);
    return work;
}

kn_span_work kn_class_loss_backward_work(const kn_grad_call *grad)
{
    const kn_class_loss_params *params = grad->params;
    double rows = (double)kn_shape_numel(grad->input[1].ndim, grad->input[1].shape);
    return kn_grad_work(grad, params->logits ? 4 * kn_grad_work_elements(grad, 0) : rows);
}

void kn_class_loss_enter(kn_entry *entry, bool logits)
{
    const kn_class_loss_args *args = entry->params;
    kn_class_loss_params *own = kn_entry_record(entry, sizeof *own);
    *own = (kn_class_loss_params){.ignore_index = args->ignore_index,
                                  .label_smoothing = logits ? args->label_smoothing : 0,
                                  .reduction = args->reduction,
                                  .logits = logits};
}

/* --- what is computed of a row ------------------------------------------------------------------------------------ */

/* Of logits a, with h = max a and r = log sum exp(a - h), the log-probabilities are a - h - r; h and r are kept apart
 * because their sum would be rounded to h's precision. The target is class t, with input x and weight w; v are the
 * weights of all classes. Smoothing takes p of the target and q of each class. The loss of a row is l, and its weight
 * k, both 0 if it does not count:
 *
 *     l = - p w (x - h - r) - q sum v (a - h - r)
 *     dl/da = (p w + q sum v) exp(a - h - r) - q v - [i = t] p w; of log-probabilities - [i = t] w
 *
 * The mean divides by the sum of the weights. */
static kn_rows_code sum_of_rows = {.name = "class_loss_sum",
                                   .inputs = "lk",
                                   .state = "yz",
                                   .init = "y = 0; z = 0;",
                                   .step = "y += l; z += k;",
                                   .merge = "y += Y; z += Z;",
                                   .is_sum = true,
                                   .values = {"y / z", "y", "z"}};

enum { OF_LIKELIHOOD, OF_LOGITS, SMOOTHED, KINDS };
#define WEIGHT_OF_ROW "k = t < 0 ? (T)0 : w;"
#define LOSS_OF_TARGET "-w * (x - h - r)"
#define FORWARD(letters, row_, ...)                                                                                    \
    {                                                                                                                  \
        .name = "class_loss", .inputs = letters, .index = 't', .picked = "xw", .per_place = "wv", .row = row_ "lk",    \
        .total = &sum_of_rows, __VA_ARGS__                                                                             \
    }
static kn_rows_code forward_codes[KINDS] = {
    FORWARD("txw", "", .finish = "l = t < 0 ? (T)0 : -w * x; " WEIGHT_OF_ROW, .values = {"l"}),
    FORWARD("txwa", "r", .prepass = &kn_softmax_maximum, KN_SUM_OF("KN_EXP(a - h)"),
            .finish = "r = log(s); l = t < 0 ? (T)0 : " LOSS_OF_TARGET "; " WEIGHT_OF_ROW, .values = {"l", "h", "r"}),
    FORWARD("txwav", "r", .prepass = &kn_softmax_maximum, .numbers = "pq", .state = "sbu",
            .init = "s = 0; b = 0; u = 0;", .step = "s += KN_EXP(a - h); b += v * (a - h); u += v;",
            .merge = "s += S; b += B; u += U;", .is_sum = true,
            .finish = "r = log(s); l = t < 0 ? (T)0 : p * (" LOSS_OF_TARGET ") - q * (b - r * u); " WEIGHT_OF_ROW,
            .values = {"l", "h", "r"})};

/* g is the gradient of each row, o that of their sum or, with the sum d of the weights, of their mean. */
#define BACKWARD(letters, ...)                                                                                         \
    {                                                                                                                  \
        .name = "class_loss_backward", .inputs = letters, .index = 't', .picked = "w", .per_place = "wv",              \
        .per_row = "ghr", .single = "od", __VA_ARGS__                                                                  \
    }
static kn_rows_code backward_codes[KINDS] = {
    BACKWARD("twgod", .row = "k", .finish = "k = g * o / d * w;", .map = "i == t ? -k : (T)0"),
    BACKWARD("twgodhra", .row = "k", .finish = "k = g * o / d * w;",
             .map = "t < 0 ? (T)0 : k * KN_EXP(a - h - r) - (i == t ? k : (T)0)"),
    BACKWARD("twgodhrav", .numbers = "pq", KN_SUM_OF("v"), .row = "kmn",
             .finish = "n = g * o / d; m = n * p * w; n = n * q; k = m + n * s;",
             .map = "t < 0 ? (T)0 : k * KN_EXP(a - h - r) - n * v - (i == t ? m : (T)0)")};

static int kind_of(const kn_class_loss_params *params)
{
    return !params->logits ? OF_LIKELIHOOD : params->label_smoothing != 0 ? SMOOTHED : OF_LOGITS;
}

static kn_rows_problem problem_of(kn_rows_code *codes, const kn_op *op, const kn_class_loss_params *params,
                                  kn_dtype compute, const kn_along *l)
{
    return (kn_rows_problem){.code = &codes[kind_of(params)],
                             .operation = op->name,
                             .compute = compute,
                             .outer = l->outer,
                             .n = l->n,
                             .inner = l->inner,
                             .ignored = params->ignore_index,
                             .numbers = {1 - params->label_smoothing, params->label_smoothing / (double)l->n}};
}

static kn_rows_operand operand_of(const kn_tensor *t)
{
    return t ? kn_row_operand(t) : (kn_rows_operand){.buffer = NULL};
}

/* h or r of all rows: norms [2, rows], NULL without logits. */
static kn_rows_operand norm_of(const kn_tensor *norms, int64_t part, int64_t rows)
{
    kn_rows_operand operand = operand_of(norms);
    operand.offset += part * rows;
    return operand;
}

/* --- forward ----------------------------------------------------------------------------------------------------- */

static kn_status run_forward(kn_call *call, kn_tensor *const in[INPUTS], const kn_tensor *norms, const kn_tensor *total)
{
    const kn_class_loss_params *params = call->params;
    const kn_along l = layout_of(in[X]->ndim, in[X]->shape);
    kn_rows_problem p = problem_of(forward_codes, call->op, params, in[X]->dtype, &l);
    const kn_rows_operand x = operand_of(in[X]), weight = operand_of(in[WEIGHT]), y = operand_of(call->outputs[0]);
    const kn_rows_operand inputs[] = {operand_of(in[TARGET]), x, weight, x, weight};

    memcpy(p.inputs, inputs, strlen(p.code->inputs) * sizeof inputs[0]);
    if (params->reduction == KN_REDUCTION_NONE)
        p.outputs[0] = y;
    for (int i = 0; i < 2; i++)
        p.outputs[1 + i] = norm_of(norms, i, l.outer * l.inner);
    if (params->reduction != KN_REDUCTION_NONE)
        p.totals[params->reduction == KN_REDUCTION_MEAN ? 0 : 1] = y;
    p.totals[2] = operand_of(total);
    return kn_rows_run(call->stream, &p);
}

/* Allocates the norms of logits, and the sum of weights for the mean; unneeded ones stay NULL. */
static kn_status make_results(kn_call *call, int64_t rows, kn_tensor **norms, kn_tensor **total)
{
    const kn_class_loss_params *params = call->params;
    const kn_dtype dtype = call->inputs[X]->dtype;
    kn_device *device = call->inputs[X]->storage->device;
    if (params->logits)
        KN_TRY(kn_tensor_new(norms, dtype, 2, (const int64_t[]){2, rows}, device));
    return params->reduction == KN_REDUCTION_MEAN ? kn_tensor_new(total, dtype, 0, NULL, device) : KN_OK;
}

/* Saves the input, the target, the norms, the sum of weights, the weight. */
static kn_status save(kn_call *call, kn_tensor *const in[INPUTS], kn_tensor *norms, kn_tensor *total)
{
    kn_tensor *const saved[] = {in[X], in[TARGET], norms, total, in[WEIGHT]};
    for (size_t i = 0; i < sizeof saved / sizeof saved[0] && call->needs_grad; i++)
        KN_TRY(kn_call_save(call, saved[i]));
    return KN_OK;
}

kn_status kn_class_loss_forward(kn_call *call)
{
    const kn_class_loss_params *params = call->params;
    const int64_t rows = kn_numel(call->inputs[TARGET]);
    kn_tensor *in[INPUTS] = {NULL}, *norms = NULL, *total = NULL;
    kn_status status = make_results(call, rows, &norms, &total);

    for (int i = X; i < call->num_inputs && status == KN_OK; i++)
        if (call->inputs[i])
            status = kn_tensor_contiguous(&in[i], call->inputs[i]);
    if (status == KN_OK)
        status = save(call, in, norms, total);
    if (status == KN_OK && rows > 0)
        status = run_forward(call, in, norms, total);
    else if (status == KN_OK && params->reduction != KN_REDUCTION_NONE) /* no rows: the mean is NaN */
        status = kn_tensor_fill(call->outputs[0], params->reduction == KN_REDUCTION_MEAN ? NAN : 0);
    for (int i = X; i < INPUTS; i++)
        kn_release(in[i]);
    kn_release(norms);
    kn_release(total);
    return status;
}

/* --- backward ---------------------------------------------------------------------------------------------------- */

kn_status kn_class_loss_backward(kn_grad_call *grad)
{
    const kn_class_loss_params *params = grad->params;
    const kn_along l = layout_of(grad->input[X].ndim, grad->input[X].shape);
    const bool per_row = params->reduction == KN_REDUCTION_NONE;
    const kn_rows_operand given = operand_of(grad->grad_outputs[0]), none = {.buffer = NULL};
    const kn_rows_operand x = operand_of(grad->saved[0]), weight = operand_of(grad->saved[4]);
    const kn_tensor *norms = grad->saved[2];
    const kn_rows_operand inputs[] = {operand_of(grad->saved[1]),
                                      weight,
                                      per_row ? given : none,
                                      per_row ? none : given,
                                      operand_of(grad->saved[3]),
                                      norm_of(norms, 0, l.outer * l.inner),
                                      norm_of(norms, 1, l.outer * l.inner),
                                      x,
                                      weight};
    kn_tensor *out = kn_grad_new(grad, X);

    if (!out)
        return kn_error_status();
    if (kn_numel(out) == 0)
        return KN_OK;
    kn_rows_problem p = problem_of(backward_codes, grad->op, params, out->dtype, &l);
    memcpy(p.inputs, inputs, strlen(p.code->inputs) * sizeof inputs[0]);
    p.mapped = kn_row_operand(out);
    return kn_rows_run(grad->stream, &p);
}

/* --- reference --------------------------------------------------------------------------------------------------- */

static double reference_lse(const kn_tensor *x, const kn_along *p, int64_t from)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < p->n; c++)
        largest = fmax(largest, kn_reference_get(x, from + c * p->inner));
    for (int64_t c = 0; c < p->n; c++)
        sum += exp(kn_reference_get(x, from + c * p->inner) - largest);
    return largest + log(sum);
}

kn_status kn_class_loss_reference(const kn_call *call)
{
    const kn_class_loss_params *params = call->params;
    const kn_tensor *x = call->inputs[0], *weight = call->num_inputs > 2 ? call->inputs[2] : NULL;
    const kn_along p = layout_of(x->ndim, x->shape);
    double sum = 0, total = 0;

    for (int64_t row = 0; row < p.outer * p.inner; row++) {
        const int64_t from = row / p.inner * p.n * p.inner + row % p.inner;
        const int64_t t = (int64_t)kn_reference_get(call->inputs[1], row);
        const double lse = params->logits ? reference_lse(x, &p, from) : 0;
        double loss = 0, smooth = 0;
        if (t != params->ignore_index) {
            const double w = weight ? kn_reference_get(weight, t) : 1;
            for (int64_t c = 0; c < p.n; c++)
                smooth += (weight ? kn_reference_get(weight, c) : 1) * (lse - kn_reference_get(x, from + c * p.inner));
            loss = (1 - params->label_smoothing) * w * (lse - kn_reference_get(x, from + t * p.inner)) +
                   (params->label_smoothing != 0 ? params->label_smoothing / (double)p.n * smooth : 0);
            total += w;
        }
        if (params->reduction == KN_REDUCTION_NONE)
            kn_reference_set(call->outputs[0], row, loss);
        sum += loss;
    }
    if (params->reduction != KN_REDUCTION_NONE)
        kn_reference_set(call->outputs[0], 0, params->reduction == KN_REDUCTION_MEAN ? sum / total : sum);
    return KN_OK;
}

/* --- descriptors and public functions ---------------------------------------------------------------------------- */

const kn_op_param kn_class_loss_rows[] = {KN_PARAM(kn_class_loss_args, ignore_index),
                                          KN_PARAM(kn_class_loss_args, label_smoothing, .min = 0, .max = 1),
                                          KN_REDUCTION_ROW(kn_class_loss_args)};

kn_tensor *kn_class_loss(const kn_op *op, kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params)
{
    params = params ? params : &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS};
    const kn_class_loss_args args = {params->ignore_index, params->label_smoothing, params->reduction};
    return kn_invoke(op, &args, input, target, params->weight);
}
