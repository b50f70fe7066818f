/* optim/muon.c - Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024), as torch.optim.Muon:
 * the momentum of a matrix is made nearly orthogonal by a Newton-Schulz iteration in bfloat16. */
#include <math.h>

#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "base/error.h"
#include "ops/pointwise/elementwise.h"
#include "optim/optim.h"

enum { LR = KN_OPTIM_LR, WEIGHT_DECAY, MOMENTUM, NESTEROV, A, B, C, EPS, NS_STEPS, ADJUST, MAXIMIZE };

static const char *const adjustments[] = {NULL, "original", "match_rms_adamw", "spectral_unclamped", ""};

#define COEFFICIENT(name) KN_HYPER(kn_muon_params, name, .kind = KN_HYPER_NUMBER, .list = "ns_coefficients")
static const kn_optim_hyper hyper_rows[] = {
    KN_HYPER(kn_muon_params, lr),
    KN_HYPER(kn_muon_params, weight_decay),
    KN_HYPER(kn_muon_params, momentum),
    KN_HYPER(kn_muon_params, nesterov, .kind = KN_HYPER_FLAG),
    COEFFICIENT(ns_a),
    COEFFICIENT(ns_b),
    COEFFICIENT(ns_c),
    KN_HYPER(kn_muon_params, eps),
    KN_HYPER(kn_muon_params, ns_steps, .kind = KN_HYPER_COUNT),
    KN_HYPER(kn_muon_params, adjust_lr_fn, .kind = KN_HYPER_CHOICE, .choices = adjustments),
    KN_HYPER(kn_muon_params, maximize, .kind = KN_HYPER_FLAG),
    {0},
};

static kn_status check(const double *hyper)
{
    if (hyper[NS_STEPS] >= 100)
        return kn_fail(KN_ERR_ARGUMENT, "Muon: ns_steps (%g) must be below 100", hyper[NS_STEPS]);
    return KN_OK;
}

static kn_status check_parameter(const kn_tensor *parameter, int index)
{
    char text[KN_DESCRIBE];
    if (parameter->ndim == 2)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE,
                   "Muon: parameter %d is %s; it takes matrices: optimize biases, embeddings and others with AdamW",
                   index, kn_tensor_describe(text, sizeof text, parameter));
}

enum { REST, KEPT, RATE }; /* 1 - momentum, 1 - lr weight_decay, lr */

static int scalars(const double *hyper, kn_optim_course *course, double *out)
{
    (void)course;
    out[REST] = 1 - hyper[MOMENTUM];
    out[KEPT] = 1 - hyper[LR] * hyper[WEIGHT_DECAY];
    out[RATE] = hyper[LR];
    return 3;
}

/* The learning rate's factor for a matrix. */
static double adjustment(int which, const kn_tensor *p)
{
    const double rows = (double)p->shape[0], cols = (double)p->shape[1];
    if (which == KN_MUON_MATCH_RMS_ADAMW)
        return 0.2 * sqrt(fmax(rows, cols));
    return sqrt(which == KN_MUON_SPECTRAL_UNCLAMPED ? rows / cols : fmax(1, rows / cols));
}

/* --- one parameter ------------------------------------------------------------------------------------------------ */

/* a: the momentum, b: the gradient, p: its sign, c: 1 - momentum. */
static kn_pointwise_code moment = {
    .name = "muon_moment", .inputs = "abc", .numbers = "p", .values = {"a + c * (p * b - a)"}};
static kn_pointwise_code ahead = {
    .name = "muon_ahead", .inputs = "abc", .numbers = "p", .values = {"a - (a - p * b) * c"}};
/* a: the parameter, b: the direction, c: 1 - lr weight_decay, r: lr, p: the rate's factor */
static kn_pointwise_code move = {
    .name = "muon_move", .inputs = "abcr", .numbers = "p", .values = {"a * c - r * p * b"}};

static kn_status run(const kn_optim_composed *it, kn_pointwise_code *code, kn_tensor *output,
                     const kn_tensor *const *inputs, int count, double number)
{
    for (int i = 0; i < count; i++)
        if (!inputs[i])
            return kn_error_status();
    const kn_scalar numbers[] = {kn_scalar_real(number)};
    return kn_elements(it->stream, code, "Muon", kn_compute_type(it->dtype), output, inputs, count, numbers);
}

/* X = a X + (b G + c G G) X with G = X X^T, for X / |X| with no more rows than columns: each singular value of X goes
 * to about 1. */
static kn_tensor *orthogonalize(const double *hyper, kn_tensor *x)
{
    const bool is_tall = x->shape[0] > x->shape[1];
    x = is_tall ? kn_t(x) : x;
    x = kn_div(x, kn_clamp(kn_norm(x, 2), .min = hyper[EPS]));
    for (int i = 0; i < (int)hyper[NS_STEPS] && x; i++) {
        kn_tensor *gram = kn_matmul(x, kn_t(x));
        x = kn_addmm(x, kn_addmm(gram, gram, gram, .beta = hyper[B], .alpha = hyper[C]), x, .beta = hyper[A]);
    }
    return is_tall ? kn_t(x) : x;
}

static kn_status compose(const kn_optim_composed *it)
{
    const double *hyper = it->hyper;
    kn_tensor *p = it->parameter, *momentum = it->states[0], *direction = NULL;
    const double sign = hyper[MAXIMIZE] != 0 ? -1 : 1;
    const kn_tensor *inputs[] = {momentum, it->gradient, kn_optim_composed_scalar(it, REST)};
    KN_TRY(run(it, &moment, momentum, inputs, 3, sign));
    KN_TRY(kn_tensor_new(&direction, KN_BF16, p->ndim, p->shape, p->storage->device));
    if (!kn_scope_adopt(direction))
        return kn_error_status();
    KN_TRY(hyper[NESTEROV] != 0 ? run(it, &ahead, direction, inputs, 3, sign) : kn_tensor_copy(direction, momentum));
    direction = orthogonalize(hyper, direction);
    const kn_tensor *moved[] = {p, direction, kn_optim_composed_scalar(it, KEPT), kn_optim_composed_scalar(it, RATE)};
    return run(it, &move, p, moved, 4, adjustment((int)hyper[ADJUST], p));
}

const kn_optim_algorithm kn_optim_row_muon = {
    KN_OPTIM_PARAMS(kn_muon_params, KN_MUON_DEFAULTS),
    .name = "Muon",
    .step = "Optimizer.step#Muon.step",
    .hyper = hyper_rows,
    .states = (const kn_optim_state[]){KN_STATE("momentum_buffer"), {0}},
    .flops = 10,
    .compose = compose,
    .check = check,
    .check_parameter = check_parameter,
    .scalars = scalars,
};

kn_muon_params kn_muon_params_init(void) { return (kn_muon_params){KN_MUON_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(muon)
