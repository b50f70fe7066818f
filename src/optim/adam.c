/* optim/adam.c - Kingma and Ba, "Adam: A Method for Stochastic Optimization" (ICLR 2015), and AdamW (Loshchilov and
 * Hutter, "Decoupled Weight Decay Regularization", ICLR 2019), with torch.optim's defaults and formulas. */
#include <math.h>
#include <string.h>

#include <koine/fused_optim.h>

#include "optim/optim.h"

enum { LR = KN_OPTIM_LR, BETA1, BETA2, EPS, WEIGHT_DECAY, AMSGRAD, MAXIMIZE, DECOUPLED };

#define ROWS(type)                                                                                                     \
    {                                                                                                                  \
        KN_HYPER(type, lr), KN_HYPER(type, beta1, .kind = KN_HYPER_BELOW_1, .list = "betas"),                          \
            KN_HYPER(type, beta2, .kind = KN_HYPER_BELOW_1, .list = "betas"), KN_HYPER(type, eps),                     \
            KN_HYPER(type, weight_decay, .flops = 2),                                                                  \
            KN_HYPER(type, amsgrad, .kind = KN_HYPER_FLAG, .define = " -DAMSGRAD", .flops = 1),                        \
            KN_HYPER(type, maximize, .kind = KN_HYPER_FLAG, .define = " -DMAXIMIZE"),                                  \
            KN_HYPER(type, decoupled_weight_decay, .kind = KN_HYPER_FLAG, .define = " -DDECOUPLED"),                   \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
static const kn_optim_hyper hyper_rows[] = ROWS(kn_adam_params), fused_hyper_rows[] = ROWS(kn_fused_adam_params);
static const kn_optim_state states[] = {
    KN_STATE("exp_avg"), KN_STATE("exp_avg_sq"), KN_STATE("max_exp_avg_sq", .needs = AMSGRAD), {0}};

/* Decoupled decay is a factor of the parameters, in place of the decay. */
static double decay(const double *hyper)
{
    return hyper[DECOUPLED] != 0 ? 1 - hyper[LR] * hyper[WEIGHT_DECAY] : hyper[WEIGHT_DECAY];
}

/* The kernel makes -expm1(step log(beta)) = 1 - beta^step of these, which is exact near 0 too. */
static int scalars_of_own_steps(const double *hyper, double *out)
{
    const double values[] = {
        hyper[BETA1],      1 - hyper[BETA1],  hyper[BETA2], 1 - hyper[BETA2], hyper[LR],
        log(hyper[BETA1]), log(hyper[BETA2]), hyper[EPS],   decay(hyper),
    };
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

/* The bias corrections 1 - beta^step are near 0 in the first steps, so they are computed here in double, whatever the
 * parameters' dtype. */
static int scalars(const double *hyper, kn_optim_course *course, double *out)
{
    if (course->step == 0)
        return scalars_of_own_steps(hyper, out);
    double correction1 = 1 - pow(hyper[BETA1], (double)course->step);
    double correction2 = 1 - pow(hyper[BETA2], (double)course->step);
    const double values[] = {
        hyper[BETA1],      1 - hyper[BETA1], hyper[BETA2], 1 - hyper[BETA2], hyper[LR] / correction1,
        sqrt(correction2), hyper[EPS],       decay(hyper),
    };
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

/* Two moments (3 and 4), the root, quotient and eps (3), the update (3). */
#define ALGORITHM(title, type, values)                                                                                 \
    {                                                                                                                  \
        KN_OPTIM_PARAMS(type, values), .name = title, .step = "Optimizer.step#" title ".step", .hyper = hyper_rows,    \
                                       .states = states, .source = "optim/adam.cl", .kernel = "adam", .flops = 13,     \
                                       .counts_steps = true, .counts_on_device = true, .scalars = scalars              \
    }
const kn_optim_algorithm kn_optim_row_adam = ALGORITHM("Adam", kn_adam_params, KN_ADAM_DEFAULTS);
const kn_optim_algorithm kn_optim_row_adamw = ALGORITHM("AdamW", kn_adamw_params, KN_ADAMW_DEFAULTS);

kn_adam_params kn_adam_params_init(void) { return (kn_adam_params){KN_ADAM_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(adam)

kn_adamw_params kn_adamw_params_init(void) { return (kn_adamw_params){KN_ADAMW_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(adamw)

kn_fused_adam_params kn_fused_adam_params_init(void) { return (kn_fused_adam_params){KN_FUSED_ADAM_DEFAULTS}; }

kn_status kn_fused_adam_with(kn_tensor *const *parameters, kn_tensor *const *gradients, kn_tensor *const *exp_avgs,
                             kn_tensor *const *exp_avg_sqs, kn_tensor *const *max_exp_avg_sqs,
                             kn_tensor *const *state_steps, int count, const kn_fused_adam_params *params)
{
    params = params ? params : &(kn_fused_adam_params){KN_FUSED_ADAM_DEFAULTS};
    const kn_optim_lists lists = {.function = "kn_fused_adam",
                                  .has_steps = true,
                                  .grad_scale = params->grad_scale,
                                  .found_inf = params->found_inf,
                                  .count = count,
                                  .parameters = parameters,
                                  .gradients = gradients,
                                  .states = {exp_avgs, exp_avg_sqs, max_exp_avg_sqs},
                                  .names = {"exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"},
                                  .steps = state_steps};
    return kn_optim_step_lists(&lists, &kn_optim_row_adam, fused_hyper_rows, params);
}
