/* ops/loss/margin.c - losses of elements whose targets are signs. */
#include <koine/loss.h>

#include "autograd/work.h"
#include "ops/loss/element_loss.h"

/* Product or difference, comparison, sum; the same for each gradient. */
static kn_span_work work(const kn_call *call) { return kn_work_of_input(call, 4); }

#define MARGIN(op_name, enter_, table)                                                                                 \
    .name = op_name, KN_ELEMENT_LOSS(table), .enter = enter_, .backward_recorded = kn_element_loss_backward_recorded,  \
    .work = work
#define OF_TWO .inputs = {"input", "target"}, .saved = {"input", "target"}
#define BACKWARD_OF_TWO(of)                                                                                            \
    {                                                                                                                  \
        KN_ELEMENT_LOSS_BACKWARD(of), .inputs = {"grad", "input", "target"}, .outputs = {                              \
            "grad_input",                                                                                              \
            "grad_target"                                                                                              \
        }                                                                                                              \
    }

/* --- soft margin -------------------------------------------------------------------------------------------------- */

/* log(1 + exp(-t x)), written so that it cannot overflow. */
#define SOFT_SLOPE(id, factor) KN_LOSS_SLOPE(id, "xt", "", KN_VECTORS, "-" factor " * KN_SIGMOID(-t * x)")
static kn_element_codes soft_codes[] = {
    KN_LOSS_CODES("soft_margin", "xt", "", KN_VECTORS, "log1p(exp(-fabs(t * x))) + fmax(-t * x, (T)0)",
                  SOFT_SLOPE("soft_margin_backward", "t"), SOFT_SLOPE("soft_margin_target", "x"))};

static double soft_term(const double *in, int variant, const double *numbers)
{
    const double z = -in[1] * in[0];
    (void)variant, (void)numbers;
    return z > 0 ? z + log1p(exp(-z)) : log1p(exp(z));
}

static const kn_element_loss soft = {.codes = soft_codes, .term = soft_term};

static kn_status soft_enter(kn_entry *entry)
{
    KN_TRY(kn_element_loss_join(entry, 2));
    kn_element_loss_enter(entry, ((const kn_reduction_args *)entry->params)->reduction, 0, 0, 0);
    return KN_OK;
}

const kn_op kn_soft_margin_loss_op = {
    MARGIN("soft_margin_loss", soft_enter, &soft), OF_TWO,
    .params = KN_PARAMS(kn_reduction_args, kn_reduction_rows, .reduction = KN_REDUCTION_MEAN)};
const kn_op kn_soft_margin_loss_backward_op = BACKWARD_OF_TWO(soft_margin_loss);

kn_tensor *kn_soft_margin_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction)
{
    return kn_invoke(&kn_soft_margin_loss_op, &(kn_reduction_args){reduction}, input, target);
}

/* --- hinge embedding ---------------------------------------------------------------------------------------------- */

/* As in PyTorch, targets other than 1 and -1 add both terms. */
static kn_element_codes hinge_codes[] = {KN_LOSS_CODES(
    "hinge_embedding", "xt", "p", KN_NO_VECTORS, "(t == 1 ? (T)0 : p - x < 0 ? (T)0 : p - x) + (t == -1 ? (T)0 : x)",
    KN_LOSS_SLOPE("hinge_embedding_backward", "xt", "p", KN_NO_VECTORS,
                  "(t == -1 ? (T)0 : (T)1) - (t == 1 ? (T)0 : p - x > 0 ? (T)1 : (T)0)"))};

static double hinge_term(const double *in, int variant, const double *numbers)
{
    const double x = in[0], t = in[1], below = numbers[0] - x;
    (void)variant;
    return (t == 1 ? 0 : below < 0 ? 0 : below) + (t == -1 ? 0 : x);
}

static const kn_element_loss hinge = {.codes = hinge_codes, .term = hinge_term};

static kn_status hinge_enter(kn_entry *entry)
{
    const kn_hinge_embedding_loss_params *params = entry->params;
    KN_TRY(kn_element_loss_join(entry, 2));
    kn_element_loss_enter(entry, params->reduction, 0, params->margin, 0);
    return KN_OK;
}

static const kn_op_param hinge_rows[] = {KN_REDUCTION_ROW(kn_hinge_embedding_loss_params),
                                         KN_PARAM(kn_hinge_embedding_loss_params, margin)};
const kn_op kn_hinge_embedding_loss_op = {
    MARGIN("hinge_embedding_loss", hinge_enter, &hinge), OF_TWO,
    .params = KN_PARAMS(kn_hinge_embedding_loss_params, hinge_rows, KN_HINGE_EMBEDDING_LOSS_DEFAULTS)};
const kn_op kn_hinge_embedding_loss_backward_op = {KN_ELEMENT_LOSS_BACKWARD(hinge_embedding_loss),
                                                   .inputs = {"grad", "input", "target"}, .outputs = {"grad_input"}};

kn_hinge_embedding_loss_params kn_hinge_embedding_loss_params_init(void)
{
    return (kn_hinge_embedding_loss_params){KN_HINGE_EMBEDDING_LOSS_DEFAULTS};
}

kn_tensor *kn_hinge_embedding_loss_with(kn_tensor *input, kn_tensor *target,
                                        const kn_hinge_embedding_loss_params *params)
{
    return kn_invoke(&kn_hinge_embedding_loss_op, params, input, target);
}

/* --- margin ranking ----------------------------------------------------------------------------------------------- */

/* max(0, u) with u = p - t (x - y). */
#define RANKED "(p - t * (x - y))"
#define RANKING_SLOPE(id, value) KN_LOSS_SLOPE(id, "xyt", "p", KN_NO_VECTORS, RANKED " > 0 ? " value " : (T)0")
static kn_element_codes ranking_codes[] = {
    KN_LOSS_CODES("margin_ranking", "xyt", "p", KN_NO_VECTORS, RANKED " < 0 ? (T)0 : " RANKED,
                  RANKING_SLOPE("margin_ranking_backward", "-t"), RANKING_SLOPE("margin_ranking_other", "t"),
                  RANKING_SLOPE("margin_ranking_target", "y - x"))};

static double ranking_term(const double *in, int variant, const double *numbers)
{
    const double u = numbers[0] - in[2] * (in[0] - in[1]);
    (void)variant;
    return u < 0 ? 0 : u;
}

static const kn_element_loss ranking = {.codes = ranking_codes, .term = ranking_term};

static kn_status ranking_enter(kn_entry *entry)
{
    const kn_margin_ranking_loss_params *params = entry->params;
    KN_TRY(kn_element_loss_join(entry, 3));
    kn_element_loss_enter(entry, params->reduction, 0, params->margin, 0);
    return KN_OK;
}

static const kn_op_param ranking_rows[] = {KN_REDUCTION_ROW(kn_margin_ranking_loss_params),
                                           KN_PARAM(kn_margin_ranking_loss_params, margin)};
const kn_op kn_margin_ranking_loss_op = {
    MARGIN("margin_ranking_loss", ranking_enter, &ranking), .inputs = {"input1", "input2", "target"},
    .saved = {"input1", "input2", "target"},
    .params = KN_PARAMS(kn_margin_ranking_loss_params, ranking_rows, KN_MARGIN_RANKING_LOSS_DEFAULTS)};
const kn_op kn_margin_ranking_loss_backward_op = {KN_ELEMENT_LOSS_BACKWARD(margin_ranking_loss),
                                                  .inputs = {"grad", "input1", "input2", "target"},
                                                  .outputs = {"grad_input1", "grad_input2", "grad_target"}};

kn_margin_ranking_loss_params kn_margin_ranking_loss_params_init(void)
{
    return (kn_margin_ranking_loss_params){KN_MARGIN_RANKING_LOSS_DEFAULTS};
}

kn_tensor *kn_margin_ranking_loss_with(kn_tensor *input1, kn_tensor *input2, kn_tensor *target,
                                       const kn_margin_ranking_loss_params *params)
{
    return kn_invoke(&kn_margin_ranking_loss_op, params, input1, input2, target);
}
