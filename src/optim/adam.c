/* optim/adam.c - Kingma and Ba, "Adam: A Method for Stochastic Optimization" (ICLR 2015), with torch.optim.Adam's
 * defaults and formulas. */
#include <math.h>
#include <string.h>

#include <koine/fused_optim.h>

#include "base/error.h"
#include "optim/optim.h"

enum { LR = KN_OPTIM_LR, BETA1, BETA2, EPS, WEIGHT_DECAY, AMSGRAD };

static const char *const hyper_names[] = {"lr", "beta1", "beta2", "eps", "weight_decay", "amsgrad", NULL};
static const char *const state_names[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};

static kn_status check(const double *hyper)
{
    if (!(hyper[LR] >= 0) || !(hyper[EPS] >= 0) || !(hyper[WEIGHT_DECAY] >= 0))
        return kn_fail(KN_ERR_ARGUMENT, "Adam: lr (%g), eps (%g) and weight_decay (%g) must be 0 or more", hyper[LR],
                       hyper[EPS], hyper[WEIGHT_DECAY]);
    if (!(hyper[BETA1] >= 0 && hyper[BETA1] < 1) || !(hyper[BETA2] >= 0 && hyper[BETA2] < 1))
        return kn_fail(KN_ERR_ARGUMENT, "Adam: beta1 (%g) and beta2 (%g) must be at least 0 and below 1", hyper[BETA1],
                       hyper[BETA2]);
    return KN_OK;
}

static int count_states(const double *hyper) { return hyper[AMSGRAD] != 0 ? 3 : 2; }

/* The kernel makes -expm1(step log(beta)) = 1 - beta^step of these, which is exact near 0 too. */
static int scalars_of_own_steps(const double *hyper, double *out)
{
    const double values[] = {
        hyper[BETA1],      1 - hyper[BETA1],  hyper[BETA2], 1 - hyper[BETA2],    hyper[LR],
        log(hyper[BETA1]), log(hyper[BETA2]), hyper[EPS],   hyper[WEIGHT_DECAY],
    };
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

/* The bias corrections 1 - beta^step are near 0 in the first steps, so they are computed here in double, whatever the
 * parameters' dtype. */
static int scalars(const double *hyper, int64_t step, double *out)
{
    if (step == 0)
        return scalars_of_own_steps(hyper, out);
    double correction1 = 1 - pow(hyper[BETA1], (double)step);
    double correction2 = 1 - pow(hyper[BETA2], (double)step);
    const double values[] = {
        hyper[BETA1],      1 - hyper[BETA1], hyper[BETA2],        1 - hyper[BETA2], hyper[LR] / correction1,
        sqrt(correction2), hyper[EPS],       hyper[WEIGHT_DECAY],
    };
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

static const char *flags(const double *hyper) { return hyper[AMSGRAD] != 0 ? " -DAMSGRAD" : ""; }

/* Two moments (3 and 4), the root, quotient and eps (3), the update (3); weight decay 2 more, the largest second
 * moment 1.
 */
static double flops(const double *hyper) { return 13 + (hyper[WEIGHT_DECAY] != 0 ? 2 : 0) + (hyper[AMSGRAD] != 0); }

static const kn_optim_algorithm adam = {
    .name = "Adam",
    .step = "Optimizer.step#Adam.step",
    .states = state_names,
    .hyper = hyper_names,
    .check = check,
    .count_states = count_states,
    .flops = flops,
    .source = "optim/adam.cl",
    .kernel = "adam",
    .flags = flags,
    .scalars = scalars,
};

/* Of a kn_adam_params or kn_fused_adam_params. */
#define HYPER(params)                                                                                                  \
    {                                                                                                                  \
        [LR] = (params)->lr, [BETA1] = (params)->beta1, [BETA2] = (params)->beta2, [EPS] = (params)->eps,              \
        [WEIGHT_DECAY] = (params)->weight_decay, [AMSGRAD] = (params)->amsgrad                                         \
    }

kn_adam_params kn_adam_params_init(void) { return (kn_adam_params){KN_ADAM_DEFAULTS}; }

kn_optim *kn_optim_adam_with(kn_parameter_list parameters, const kn_adam_params *params)
{
    params = params ? params : &(kn_adam_params){KN_ADAM_DEFAULTS};
    const double hyper[KN_OPTIM_MAX_HYPER] = HYPER(params);
    return kn_optim_new(&adam, parameters, hyper);
}

kn_fused_adam_params kn_fused_adam_params_init(void) { return (kn_fused_adam_params){KN_FUSED_ADAM_DEFAULTS}; }

/* Decoupled decay is a factor of the parameters, in place of the decay. */
static kn_status step_lists(kn_optim_lists *lists, const kn_fused_adam_params *params)
{
    double hyper[KN_OPTIM_MAX_HYPER] = HYPER(params);
    static const char *const options[2][2] = {{" -DOWN_STATES", " -DOWN_STATES -DMAXIMIZE"},
                                              {" -DOWN_STATES -DDECOUPLED", " -DOWN_STATES -DDECOUPLED -DMAXIMIZE"}};
    KN_TRY(check(hyper));
    if (params->decoupled_weight_decay)
        hyper[WEIGHT_DECAY] = 1 - params->lr * params->weight_decay;
    lists->hyper = hyper;
    lists->grad_scale = params->grad_scale;
    lists->found_inf = params->found_inf;
    lists->num_states = count_states(hyper);
    lists->options = options[params->decoupled_weight_decay][params->maximize];
    return kn_optim_step_lists(lists);
}

kn_status kn_fused_adam_with(kn_tensor *const *parameters, kn_tensor *const *gradients, kn_tensor *const *exp_avgs,
                             kn_tensor *const *exp_avg_sqs, kn_tensor *const *max_exp_avg_sqs,
                             kn_tensor *const *state_steps, int count, const kn_fused_adam_params *params)
{
    return step_lists(&(kn_optim_lists){.function = "kn_fused_adam",
                                        .algorithm = &adam,
                                        .has_steps = true,
                                        .count = count,
                                        .parameters = parameters,
                                        .gradients = gradients,
                                        .states = {exp_avgs, exp_avg_sqs, max_exp_avg_sqs},
                                        .names = {"exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"},
                                        .steps = state_steps},
                      params ? params : &(kn_fused_adam_params){KN_FUSED_ADAM_DEFAULTS});
}
