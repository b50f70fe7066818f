/* ops/loss/bce.c - binary cross entropy of logits and of probabilities. */
#include <koine/loss.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "autograd/work.h"
#include "ops/loss/element_loss.h"

enum { LOGITS, TARGET, WEIGHT, POSITIVE };

/* The target has the input's shape, weights broadcast to it; all are converted to the dtype that the input is computed
 * in. */
static kn_status join(kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[LOGITS], *target = entry->inputs[TARGET];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    if (!kn_same_shape(x, target))
        return kn_fail(KN_ERR_SHAPE, "target %s does not have the shape of input %s",
                       kn_tensor_describe(b, sizeof b, target), kn_tensor_describe(a, sizeof a, x));
    if (!kn_dtype_is_floating(x->dtype))
        return kn_fail(KN_ERR_DTYPE, "the input is %s; it must be floating", kn_dtype_name(x->dtype));
    for (int i = LOGITS; i < entry->num_inputs; i++) {
        kn_tensor **in = &entry->inputs[i];
        if (!*in)
            continue;
        if (i >= WEIGHT && !(*in = kn_expand(*in, x->ndim, x->shape)))
            return kn_error_status();
        if (i > LOGITS && !(*in = kn_to_dtype(*in, kn_compute_type(x->dtype))))
            return kn_error_status();
    }
    return KN_OK;
}

/* --- of logits ---------------------------------------------------------------------------------------------------- */

/* With weights w of the elements and v of the positives, and log(1 + exp(-x)) written so that it cannot overflow:
 *
 *     l = w ((1 - t) x + (1 + (v - 1) t) log(1 + exp(-x)))
 *     dl/dx = w ((1 - t) - (1 + (v - 1) t) / (1 + exp(x)))
 *     dl/dt = w (-x + (v - 1) log(1 + exp(-x))), without 0 * inf where v is 1 */
#define SOFTPLUS "(log1p(exp(-fabs(x))) + fmax(-x, (T)0))"
#define LOSS(w, v) w "(((T)1 - t) * x + " v " * " SOFTPLUS ")"
#define WEIGHT_OF_POSITIVE "((T)1 + (v - (T)1) * t)"

#define CODES(letters, w, v, slope_of_target)                                                                          \
    KN_LOSS_CODES(                                                                                                     \
        "bce", "xt" letters, "", KN_VECTORS, LOSS(w, v),                                                               \
        KN_LOSS_SLOPE("bce_backward", "xt" letters, "", KN_VECTORS, w "(((T)1 - t) - " v " / ((T)1 + exp(x)))"),       \
        KN_LOSS_SLOPE("bce_target", "xt" letters, "", KN_VECTORS, w "(" slope_of_target ")"))
#define TARGET_SLOPE "v * fmax(-x, (T)0) - fmax(x, (T)0) + (v - (T)1) * log1p(exp(-fabs(x)))"

/* By whether there is a weight (2), and one of the positives (1). */
static kn_element_codes codes[] = {CODES("", "", "(T)1", "-x"), CODES("v", "", WEIGHT_OF_POSITIVE, TARGET_SLOPE),
                                   CODES("w", "w * ", "(T)1", "-x"),
                                   CODES("wv", "w * ", WEIGHT_OF_POSITIVE, TARGET_SLOPE)};

static double bce_term(const double *in, int variant, const double *numbers)
{
    (void)variant, (void)numbers;
    const double x = in[LOGITS], t = in[TARGET];
    return in[WEIGHT] * ((1 - t) * x + (1 + (in[POSITIVE] - 1) * t) * (log1p(exp(-fabs(x))) + fmax(-x, 0)));
}

static const kn_element_loss bce = {.codes = codes, .term = bce_term};

/* With l = 1 + (v - 1) t: d/dx = w (1 - t + l (sigmoid(x) - 1)), and d/dt = w (log sigmoid(-x) - v log sigmoid(x)), in
 * which no infinities cancel each other. */
static kn_status bce_backward_recorded(kn_grad_call *grad)
{
    kn_tensor *x = kn_grad_saved_input(grad, LOGITS, LOGITS), *t = kn_grad_saved_input(grad, TARGET, TARGET);
    kn_tensor *weight = grad->saved[WEIGHT], *v = grad->saved[POSITIVE], *g = grad->grad_outputs[0];
    if (kn_numel(grad->saved[LOGITS]) == 0)
        return grad->op->backward(grad);
    g = kn_mul_scalar(g, 1 / ((const kn_element_record *)grad->params)->divisor);
    g = weight ? kn_mul(g, weight) : g;
    if (grad->needs[LOGITS]) {
        kn_tensor *rise = kn_add_scalar(kn_sigmoid(x), -1);
        rise = v ? kn_mul(kn_add_scalar(kn_mul(kn_add_scalar(v, -1), t), 1), rise) : rise;
        grad->grad_inputs[LOGITS] = kn_mul(g, kn_sub(rise, kn_add_scalar(t, -1)));
    }
    if (grad->needs[TARGET]) {
        kn_tensor *slope = kn_neg(x);
        slope = v ? kn_sub(kn_logsigmoid(slope), kn_mul(v, kn_logsigmoid(x))) : slope;
        grad->grad_inputs[TARGET] = kn_mul(g, slope);
    }
    for (int i = LOGITS; i <= TARGET; i++)
        if (grad->needs[i] && !grad->grad_inputs[i])
            return kn_error_status();
    return KN_OK;
}

/* max(x, 0) - x t + log(1 + exp(-|x|)), summed: 8; a sigmoid, a difference and a factor: 5. */
static kn_span_work bce_work(const kn_call *call) { return kn_work_of_input(call, 8); }
static kn_span_work bce_backward_work(const kn_grad_call *grad)
{
    return kn_grad_work(grad, 5 * kn_grad_work_elements(grad, 0));
}

static kn_status bce_enter(kn_entry *entry)
{
    KN_TRY(join(entry));
    kn_element_loss_enter(entry, ((const kn_reduction_args *)entry->params)->reduction,
                          2 * (entry->inputs[WEIGHT] != NULL) + (entry->inputs[POSITIVE] != NULL), 0, 0);
    return KN_OK;
}

const kn_op kn_binary_cross_entropy_with_logits_op = {
    .name = "binary_cross_entropy_with_logits",
    .inputs = {"input", "target", "?weight", "?pos_weight"},
    .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_ALL, KN_DTYPES_ALL, KN_DTYPES_ALL},
    .params = KN_PARAMS(kn_reduction_args, kn_reduction_rows, .reduction = KN_REDUCTION_MEAN),
    .enter = bce_enter,
    KN_ELEMENT_LOSS(&bce),
    .backward_recorded = bce_backward_recorded,
    .saved = {"input", "target", "weight", "pos_weight"},
    .work = bce_work,
    .backward_work = bce_backward_work};

const kn_op kn_binary_cross_entropy_with_logits_backward_op = {
    KN_ELEMENT_LOSS_BACKWARD(binary_cross_entropy_with_logits),
    .inputs = {"grad", "input", "target", "?weight", "?pos_weight"},
    .dtypes[2] = KN_DTYPES_ALL,
    .dtypes[3] = KN_DTYPES_ALL,
    .dtypes[4] = KN_DTYPES_ALL,
    .outputs = {"grad_input", "grad_target"}};

kn_tensor *kn_binary_cross_entropy_with_logits(kn_tensor *input, kn_tensor *target, kn_tensor *weight,
                                               kn_tensor *pos_weight, kn_reduction reduction)
{
    return kn_invoke(&kn_binary_cross_entropy_with_logits_op, &(kn_reduction_args){reduction}, input, target, weight,
                     pos_weight);
}

/* --- of probabilities --------------------------------------------------------------------------------------------- */

/* l = - w (t log(x) + (1 - t) log(1 - x)), dl/dx = w (x - t) / (x (1 - x)), dl/dt = w (log(1 - x) - log(x)). As in
 * PyTorch the logarithms are at least -100 in the first, and the divisor at least p in the second. */
#define CLAMPED(log) "(" log " < -(T)100 ? -(T)100 : " log ")"
#define PROBABILITY_CODES(letters, w)                                                                                  \
    KN_LOSS_CODES(                                                                                                     \
        "bce_of_probabilities", "xt" letters, "p", KN_VECTORS,                                                         \
        w "((t - (T)1) * " CLAMPED("log1p(-x)") " - t * " CLAMPED("log(x)") ")",                                       \
        KN_LOSS_SLOPE("bce_of_probabilities_backward", "xt" letters, "p", KN_VECTORS,                                  \
                      w "((x - t) / (((T)1 - x) * x < p ? p : ((T)1 - x) * x))"),                                      \
        KN_LOSS_SLOPE("bce_of_probabilities_target", "xt" letters, "p", KN_VECTORS, w "(log((T)1 - x) - log(x))"))
static kn_element_codes probability_codes[] = {PROBABILITY_CODES("", ""), PROBABILITY_CODES("w", "w * ")};

static double probability_term(const double *in, int variant, const double *numbers)
{
    const double x = in[LOGITS], t = in[TARGET], positive = log(x), negative = log1p(-x);
    (void)variant, (void)numbers;
    return in[WEIGHT] * ((t - 1) * (negative < -100 ? -100 : negative) - t * (positive < -100 ? -100 : positive));
}

static const kn_element_loss of_probabilities = {.codes = probability_codes, .term = probability_term};

static kn_status probability_enter(kn_entry *entry)
{
    KN_TRY(join(entry));
    kn_element_loss_enter(entry, ((const kn_reduction_args *)entry->params)->reduction, entry->inputs[WEIGHT] != NULL,
                          1e-12, 0);
    return KN_OK;
}

const kn_op kn_binary_cross_entropy_op = {
    .name = "binary_cross_entropy",
    .inputs = {"input", "target", "?weight"},
    .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_ALL, KN_DTYPES_ALL},
    .params = KN_PARAMS(kn_reduction_args, kn_reduction_rows, .reduction = KN_REDUCTION_MEAN),
    .enter = probability_enter,
    KN_ELEMENT_LOSS(&of_probabilities),
    .backward_recorded = kn_element_loss_backward_recorded,
    .saved = {"input", "target", "weight"},
    .work = bce_work,
    .backward_work = bce_backward_work};

const kn_op kn_binary_cross_entropy_backward_op = {
    KN_ELEMENT_LOSS_BACKWARD(binary_cross_entropy), .inputs = {"grad", "input", "target", "?weight"},
    .dtypes[2] = KN_DTYPES_ALL, .dtypes[3] = KN_DTYPES_ALL, .outputs = {"grad_input", "grad_target"}};

kn_loss_params kn_loss_params_init(void) { return (kn_loss_params){KN_LOSS_DEFAULTS}; }

kn_tensor *kn_binary_cross_entropy_with(kn_tensor *input, kn_tensor *target, const kn_loss_params *params)
{
    params = params ? params : &(kn_loss_params){KN_LOSS_DEFAULTS};
    return kn_invoke(&kn_binary_cross_entropy_op, &(kn_reduction_args){params->reduction}, input, target,
                     params->weight);
}
