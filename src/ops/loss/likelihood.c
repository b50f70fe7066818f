/* ops/loss/likelihood.c - divergence and negative log-likelihoods of distributions: Kullback-Leibler, Poisson, Gauss.
 */
#include <koine/loss.h>
#include <koine/shape.h>
#include <string.h>

#include "autograd/work.h"
#include "ops/loss/element_loss.h"

#define PI 3.14159265358979323846
#define CODES(id, numbers, term, slope, slope_of_target)                                                               \
    KN_LOSS_CODES(id, "xt", numbers, KN_VECTORS, term,                                                                 \
                  KN_LOSS_SLOPE(id "_backward", "xt", numbers, KN_VECTORS, slope),                                     \
                  KN_LOSS_SLOPE(id "_target", "xt", numbers, KN_VECTORS, slope_of_target))

/* Exponential or logarithm, products, sum; half of that for each gradient. */
static kn_span_work work(const kn_call *call) { return kn_work_of_input(call, 4); }
static kn_span_work backward_work(const kn_grad_call *grad)
{
    return kn_grad_work(grad, 2 * (kn_grad_work_elements(grad, 0) + kn_grad_work_elements(grad, 1)));
}

#define LIKELIHOOD(op_name, enter_, table)                                                                             \
    .name = op_name, KN_ELEMENT_LOSS(table), .enter = enter_, .backward_recorded = kn_element_loss_backward_recorded,  \
    .work = work, .backward_work = backward_work
#define OF_TWO .inputs = {"input", "target"}, .saved = {"input", "target"}
#define BACKWARD_OF_TWO(of)                                                                                            \
    {                                                                                                                  \
        KN_ELEMENT_LOSS_BACKWARD(of), .inputs = {"grad", "input", "target"}, .outputs = {                              \
            "grad_input",                                                                                              \
            "grad_target"                                                                                              \
        }                                                                                                              \
    }

/* --- Kullback-Leibler --------------------------------------------------------------------------------------------- */

/* Of a target, and of its logarithm. 0 log 0 is 0, and so is its difference to an input that is finite. */
static kn_element_codes kl_codes[] = {
    CODES("kl_div", "", "(t == 0 ? (T)0 : t * log(t)) - t * x", "-t", "log(t) + (T)1 - x"),
    CODES("kl_div_of_logs", "", "exp(t) * (t - x)", "-exp(t)", "exp(t) * (t - x + (T)1)")};

static double kl_term(const double *in, int variant, const double *numbers)
{
    const double x = in[0], t = in[1];
    (void)numbers;
    return variant ? exp(t) * (t - x) : (t == 0 ? 0 : t * log(t)) - t * x;
}

static const kn_element_loss kl = {.codes = kl_codes, .term = kl_term};

static kn_status kl_enter(kn_entry *entry)
{
    const kn_kl_div_params *params = entry->params;
    KN_TRY(kn_element_loss_join(entry, 2));
    kn_element_loss_enter(entry, params->reduction, params->log_target, 0, 0);
    return KN_OK;
}

static const char *const kl_reductions[] = {"mean", "sum", "none", "batchmean", NULL};
static const kn_op_param kl_rows[] = {KN_PARAM(kn_kl_div_params, reduction, .values = kl_reductions),
                                      KN_PARAM(kn_kl_div_params, log_target)};
const kn_op kn_kl_div_op = {LIKELIHOOD("kl_div", kl_enter, &kl), OF_TWO,
                            .params = KN_PARAMS(kn_kl_div_params, kl_rows, KN_KL_DIV_DEFAULTS)};
const kn_op kn_kl_div_backward_op = BACKWARD_OF_TWO(kl_div);

kn_kl_div_params kn_kl_div_params_init(void) { return (kn_kl_div_params){KN_KL_DIV_DEFAULTS}; }

kn_tensor *kn_kl_div_with(kn_tensor *input, kn_tensor *target, const kn_kl_div_params *params)
{
    return kn_invoke(&kn_kl_div_op, params, input, target);
}

/* --- Poisson ------------------------------------------------------------------------------------------------------ */

/* By whether the input is a logarithm (2) and whether Stirling's term is added (1); p is eps, q is 2 pi. */
enum { STIRLING = 1, LOG_INPUT = 2 };
#define STIRLING_TERM " + (t > 1 ? t * log(t) - t + (T)0.5 * log(q * t) : (T)0)"
#define STIRLING_SLOPE " + (t > 1 ? log(t) + (T)0.5 / t : (T)0)"
#define OF_MEAN(term, slope)                                                                                           \
    CODES("poisson_nll", "pq", "x - t * log(x + p)" term, "(T)1 - t / (x + p)", "-log(x + p)" slope)
#define OF_LOG(term, slope) CODES("poisson_nll_of_logs", "pq", "exp(x) - t * x" term, "exp(x) - t", "-x" slope)
static kn_element_codes poisson_codes[] = {OF_MEAN("", ""), OF_MEAN(STIRLING_TERM, STIRLING_SLOPE), OF_LOG("", ""),
                                           OF_LOG(STIRLING_TERM, STIRLING_SLOPE)};

static double poisson_term(const double *in, int variant, const double *numbers)
{
    const double x = in[0], t = in[1];
    const double stirling = (variant & STIRLING) && t > 1 ? t * log(t) - t + 0.5 * log(2 * PI * t) : 0;
    return (variant & LOG_INPUT ? exp(x) - t * x : x - t * log(x + numbers[0])) + stirling;
}

static const kn_element_loss poisson = {.codes = poisson_codes, .term = poisson_term};

static kn_status poisson_enter(kn_entry *entry)
{
    const kn_poisson_nll_loss_params *params = entry->params;
    KN_TRY(kn_element_loss_join(entry, 2));
    kn_element_loss_enter(entry, params->reduction, (params->log_input ? LOG_INPUT : 0) | (params->full ? STIRLING : 0),
                          params->eps, 2 * PI);
    return KN_OK;
}

static const kn_op_param poisson_rows[] = {
    KN_REDUCTION_ROW(kn_poisson_nll_loss_params), KN_PARAM(kn_poisson_nll_loss_params, log_input),
    KN_PARAM(kn_poisson_nll_loss_params, full), KN_PARAM(kn_poisson_nll_loss_params, eps)};
const kn_op kn_poisson_nll_loss_op = {
    LIKELIHOOD("poisson_nll_loss", poisson_enter, &poisson), OF_TWO,
    .params = KN_PARAMS(kn_poisson_nll_loss_params, poisson_rows, KN_POISSON_NLL_LOSS_DEFAULTS)};
const kn_op kn_poisson_nll_loss_backward_op = BACKWARD_OF_TWO(poisson_nll_loss);

kn_poisson_nll_loss_params kn_poisson_nll_loss_params_init(void)
{
    return (kn_poisson_nll_loss_params){KN_POISSON_NLL_LOSS_DEFAULTS};
}

kn_tensor *kn_poisson_nll_loss_with(kn_tensor *input, kn_tensor *target, const kn_poisson_nll_loss_params *params)
{
    return kn_invoke(&kn_poisson_nll_loss_op, params, input, target);
}

/* --- Gauss -------------------------------------------------------------------------------------------------------- */

/* With the variance v, at least p; the gradient passes through that bound. q is the constant. */
enum { X, TARGET, VARIANCE };
#define BOUNDED "(v < p ? p : v)"
#define GAUSS_SLOPE(id, text) KN_LOSS_SLOPE(id, "xtv", "pq", KN_VECTORS, text)
static kn_element_codes gauss_codes[] = {KN_LOSS_CODES(
    "gaussian_nll", "xtv", "pq", KN_VECTORS, "(T)0.5 * (log(" BOUNDED ") + (x - t) * (x - t) / " BOUNDED ") + q",
    GAUSS_SLOPE("gaussian_nll_backward", "(x - t) / " BOUNDED),
    GAUSS_SLOPE("gaussian_nll_target", "(t - x) / " BOUNDED),
    GAUSS_SLOPE("gaussian_nll_variance", "(T)0.5 * ((T)1 - (x - t) * (x - t) / " BOUNDED ") / " BOUNDED))};

static double gauss_term(const double *in, int variant, const double *numbers)
{
    const double d = in[X] - in[TARGET], v = in[VARIANCE] < numbers[0] ? numbers[0] : in[VARIANCE];
    (void)variant;
    return 0.5 * (log(v) + d * d / v) + numbers[1];
}

static const kn_element_loss gauss = {.codes = gauss_codes, .term = gauss_term};

/* As PyTorch allows: the input's shape, or without its last dimension, or with 1 instead of one size. */
static kn_status fit_variance(kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[X], *v = entry->inputs[VARIANCE];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    int ones = 0, others = 0;

    if (v->ndim == x->ndim - 1 && memcmp(v->shape, x->shape, (size_t)v->ndim * sizeof v->shape[0]) == 0)
        return (entry->inputs[VARIANCE] = kn_unsqueeze(entry->inputs[VARIANCE], -1)) ? KN_OK : kn_error_status();
    for (int d = 0; v->ndim == x->ndim && d < x->ndim; d++) {
        ones += v->shape[d] != x->shape[d] && v->shape[d] == 1;
        others += v->shape[d] != x->shape[d] && v->shape[d] != 1;
    }
    if (v->ndim == x->ndim && ones <= 1 && others == 0)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE,
                   "var %s does not fit input %s: the same shape, 1 instead of one size, or no last dimension",
                   kn_tensor_describe(b, sizeof b, v), kn_tensor_describe(a, sizeof a, x));
}

static kn_status gauss_enter(kn_entry *entry)
{
    const kn_gaussian_nll_loss_params *params = entry->params;
    KN_TRY(fit_variance(entry));
    KN_TRY(kn_element_loss_join(entry, 3));
    kn_element_loss_enter(entry, params->reduction, 0, params->eps, params->full ? 0.5 * log(2 * PI) : 0);
    return KN_OK;
}

static const kn_op_param gauss_rows[] = {KN_REDUCTION_ROW(kn_gaussian_nll_loss_params),
                                         KN_PARAM(kn_gaussian_nll_loss_params, full),
                                         KN_PARAM(kn_gaussian_nll_loss_params, eps, KN_POSITIVE)};
const kn_op kn_gaussian_nll_loss_op = {
    LIKELIHOOD("gaussian_nll_loss", gauss_enter, &gauss), .inputs = {"input", "target", "var"},
    .saved = {"input", "target", "var"},
    .params = KN_PARAMS(kn_gaussian_nll_loss_params, gauss_rows, KN_GAUSSIAN_NLL_LOSS_DEFAULTS)};
const kn_op kn_gaussian_nll_loss_backward_op = {KN_ELEMENT_LOSS_BACKWARD(gaussian_nll_loss),
                                                .inputs = {"grad", "input", "target", "var"},
                                                .outputs = {"grad_input", "grad_target", "grad_var"}};

kn_gaussian_nll_loss_params kn_gaussian_nll_loss_params_init(void)
{
    return (kn_gaussian_nll_loss_params){KN_GAUSSIAN_NLL_LOSS_DEFAULTS};
}

kn_tensor *kn_gaussian_nll_loss_with(kn_tensor *input, kn_tensor *target, kn_tensor *var,
                                     const kn_gaussian_nll_loss_params *params)
{
    return kn_invoke(&kn_gaussian_nll_loss_op, params, input, target, var);
}
