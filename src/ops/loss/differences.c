/* ops/loss/differences.c - losses of the difference of input and target: absolute, squared, and both (smooth L1,
 * Huber): one or two launches forward, one per gradient backward. */
#include <koine/loss.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <string.h>

#include "autograd/work.h"
#include "ops/loss/element_loss.h"

/* The gradient of the target is the negative of the input's. */
#define CODES(id, numbers, term, slope, opposite)                                                                      \
    {                                                                                                                  \
        KN_LOSS_CODES(id, "xt", numbers, KN_NO_VECTORS, term,                                                          \
                      KN_LOSS_SLOPE(id "_backward", "xt", numbers, KN_NO_VECTORS, slope),                              \
                      KN_LOSS_SLOPE(id "_target", "xt", numbers, KN_NO_VECTORS, opposite))                             \
    }

static kn_element_codes l1_codes[] = CODES("l1", "", "fabs(x - t)", "x - t > 0 ? (T)1 : x - t < 0 ? -(T)1 : (T)0",
                                           "x - t > 0 ? -(T)1 : x - t < 0 ? (T)1 : (T)0");
static kn_element_codes mse_codes[] = CODES("mse", "", "(x - t) * (x - t)", "(T)2 * (x - t)", "(T)2 * (t - x)");

/* With d = x - t: d^2 / (2 p) up to p, then |d| - p / 2. For p = 0 this is L1. */
static kn_element_codes smooth_codes[] =
    CODES("smooth_l1", "p", "fabs(x - t) < p ? (T)0.5 * (x - t) * (x - t) / p : fabs(x - t) - (T)0.5 * p",
          "x - t <= -p ? (x - t < 0 ? -(T)1 : (T)0) : x - t >= p ? (T)1 : (x - t) / p",
          "x - t <= -p ? (x - t < 0 ? (T)1 : (T)0) : x - t >= p ? -(T)1 : (t - x) / p");

/* d^2 / 2 up to p, then p (|d| - p / 2). */
static kn_element_codes huber_codes[] =
    CODES("huber", "p", "fabs(x - t) <= p ? (T)0.5 * (x - t) * (x - t) : p * (fabs(x - t) - (T)0.5 * p)",
          "x - t <= -p ? -p : x - t >= p ? p : x - t", "x - t <= -p ? p : x - t >= p ? -p : t - x");

#define REFERENCE(name, value)                                                                                         \
    static double name##_term(const double *in, int variant, const double *numbers)                                    \
    {                                                                                                                  \
        const double d = fabs(in[0] - in[1]), p = numbers[0];                                                          \
        (void)variant, (void)p;                                                                                        \
        return value;                                                                                                  \
    }                                                                                                                  \
    static const kn_element_loss name = {.codes = name##_codes, .term = name##_term};
REFERENCE(l1, d)
REFERENCE(mse, d *d)
REFERENCE(smooth, d < p ? 0.5 * d * d / p : d - 0.5 * p)
REFERENCE(huber, d <= p ? 0.5 * d * d : p * (d - 0.5 * p))

/* Difference, square or absolute value, sum; difference and factor for each gradient. */
static kn_span_work work(const kn_call *call) { return kn_work_of_input(call, 3); }
static kn_span_work backward_work(const kn_grad_call *grad)
{
    return kn_grad_work(grad, 2 * (kn_grad_work_elements(grad, 0) + kn_grad_work_elements(grad, 1)));
}

/* --- entering ----------------------------------------------------------------------------------------------------- */

enum { X, TARGET, WEIGHT };

/* With weights of the elements the loss is composed. As in PyTorch, their mean divides by the sum of the weights, but
 * Huber's by the number of elements. */
static kn_status enter_weighted(kn_entry *entry, kn_reduction reduction, bool divides_by_weights)
{
    kn_tensor *weight = entry->inputs[WEIGHT];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    if (!kn_same_shape(weight, entry->inputs[X]))
        return kn_fail(KN_ERR_SHAPE, "the weight %s does not have the shape of input %s",
                       kn_tensor_describe(b, sizeof b, weight), kn_tensor_describe(a, sizeof a, entry->inputs[X]));
    unsigned char params[sizeof(kn_huber_loss_args)]; /* the largest; all begin with the reduction */
    memcpy(params, entry->params, entry->op->params.size);
    memcpy(params, &(kn_reduction){KN_REDUCTION_NONE}, sizeof(kn_reduction));
    kn_tensor *loss = kn_mul(kn_invoke(entry->op, params, entry->inputs[X], entry->inputs[TARGET]), weight);
    entry->result = reduction == KN_REDUCTION_MEAN && divides_by_weights ? kn_div(kn_sum(loss), kn_sum(weight))
                                                                         : kn_loss_reduced(loss, reduction);
    return entry->result ? KN_OK : kn_error_status();
}

static kn_status enter(kn_entry *entry, kn_reduction reduction, double p, bool divides_by_weights)
{
    KN_TRY(kn_element_loss_join(entry, 2));
    if (entry->num_inputs > WEIGHT && entry->inputs[WEIGHT])
        return enter_weighted(entry, reduction, divides_by_weights);
    kn_element_loss_enter(entry, reduction, 0, p, 0);
    return KN_OK;
}

static kn_status enter_plain(kn_entry *entry)
{
    return enter(entry, ((const kn_reduction_args *)entry->params)->reduction, 0, true);
}

static kn_status smooth_enter(kn_entry *entry)
{
    const kn_smooth_l1_loss_params *params = entry->params;
    return enter(entry, params->reduction, params->beta, true);
}

static kn_status huber_enter(kn_entry *entry)
{
    const kn_huber_loss_args *args = entry->params;
    return enter(entry, args->reduction, args->delta, false);
}

/* --- descriptors and public functions ----------------------------------------------------------------------------- */

static const kn_op_param smooth_rows[] = {KN_REDUCTION_ROW(kn_smooth_l1_loss_params),
                                          KN_PARAM(kn_smooth_l1_loss_params, beta, .min = 0, .max = (double)INFINITY)};
static const kn_op_param huber_rows[] = {KN_REDUCTION_ROW(kn_huber_loss_args),
                                         KN_PARAM(kn_huber_loss_args, delta, KN_POSITIVE)};

#define DIFFERENCE(op_name, enter_, table)                                                                             \
    .name = op_name, KN_ELEMENT_LOSS(table), .enter = enter_, .backward_recorded = kn_element_loss_backward_recorded,  \
    .saved = {"input", "target"}, .work = work, .backward_work = backward_work
#define BACKWARD(of)                                                                                                   \
    {                                                                                                                  \
        KN_ELEMENT_LOSS_BACKWARD(of), .inputs = {"grad", "input", "target"}, .outputs = {                              \
            "grad_input",                                                                                              \
            "grad_target"                                                                                              \
        }                                                                                                              \
    }
#define REDUCED KN_PARAMS(kn_reduction_args, kn_reduction_rows, .reduction = KN_REDUCTION_MEAN)
#define WEIGHTED                                                                                                       \
    {                                                                                                                  \
        "input", "target", "?weight"                                                                                   \
    }

const kn_op kn_l1_loss_op = {DIFFERENCE("l1_loss", enter_plain, &l1), .inputs = WEIGHTED, .params = REDUCED};
const kn_op kn_mse_loss_op = {DIFFERENCE("mse_loss", enter_plain, &mse), .inputs = WEIGHTED, .params = REDUCED};
const kn_op kn_smooth_l1_loss_op = {DIFFERENCE("smooth_l1_loss", smooth_enter, &smooth), .inputs = {"input", "target"},
                                    .params =
                                        KN_PARAMS(kn_smooth_l1_loss_params, smooth_rows, KN_SMOOTH_L1_LOSS_DEFAULTS)};
const kn_op kn_huber_loss_op = {DIFFERENCE("huber_loss", huber_enter, &huber), .inputs = WEIGHTED,
                                .params = KN_PARAMS(kn_huber_loss_args, huber_rows, .delta = 1)};

const kn_op kn_l1_loss_backward_op = BACKWARD(l1_loss), kn_mse_loss_backward_op = BACKWARD(mse_loss),
            kn_smooth_l1_loss_backward_op = BACKWARD(smooth_l1_loss), kn_huber_loss_backward_op = BACKWARD(huber_loss);

kn_smooth_l1_loss_params kn_smooth_l1_loss_params_init(void)
{
    return (kn_smooth_l1_loss_params){KN_SMOOTH_L1_LOSS_DEFAULTS};
}
kn_huber_loss_params kn_huber_loss_params_init(void) { return (kn_huber_loss_params){KN_HUBER_LOSS_DEFAULTS}; }

kn_tensor *kn_l1_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction)
{
    return kn_invoke(&kn_l1_loss_op, &(kn_reduction_args){reduction}, input, target);
}

kn_tensor *kn_mse_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction)
{
    return kn_invoke(&kn_mse_loss_op, &(kn_reduction_args){reduction}, input, target);
}

kn_tensor *kn_smooth_l1_loss_with(kn_tensor *input, kn_tensor *target, const kn_smooth_l1_loss_params *params)
{
    return kn_invoke(&kn_smooth_l1_loss_op, params, input, target);
}

kn_tensor *kn_huber_loss_with(kn_tensor *input, kn_tensor *target, const kn_huber_loss_params *params)
{
    params = params ? params : &(kn_huber_loss_params){KN_HUBER_LOSS_DEFAULTS};
    const kn_huber_loss_args args = {params->reduction, params->delta};
    return kn_invoke(&kn_huber_loss_op, &args, input, target, params->weight);
}
