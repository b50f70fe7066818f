/* optim/sgd.c - stochastic gradient descent with momentum, as in torch.optim.SGD. */
#include <string.h>

#include <koine/fused_optim.h>

#include "base/error.h"
#include "optim/optim.h"

enum { LR = KN_OPTIM_LR, MOMENTUM, DAMPENING, WEIGHT_DECAY, NESTEROV, MAXIMIZE };

#define ROWS(type)                                                                                                     \
    {                                                                                                                  \
        KN_HYPER(type, lr), KN_HYPER(type, momentum, .define = " -DMOMENTUM", .flops = 3),                             \
            KN_HYPER(type, dampening, .kind = KN_HYPER_NUMBER), KN_HYPER(type, weight_decay, .flops = 2),              \
            KN_HYPER(type, nesterov, .kind = KN_HYPER_FLAG, .define = " -DNESTEROV", .flops = 2),                      \
            KN_HYPER(type, maximize, .kind = KN_HYPER_FLAG, .define = " -DMAXIMIZE"),                                  \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
static const kn_optim_hyper hyper_rows[] = ROWS(kn_sgd_params), fused_hyper_rows[] = ROWS(kn_fused_sgd_params);
static const kn_optim_state states[] = {KN_STATE("momentum_buffer", .needs = MOMENTUM), {0}};

static kn_status check(const double *hyper)
{
    if (hyper[NESTEROV] != 0 && (hyper[MOMENTUM] <= 0 || hyper[DAMPENING] != 0))
        return kn_fail(KN_ERR_ARGUMENT, "SGD: nesterov needs momentum above 0 (it is %g) and dampening 0 (it is %g)",
                       hyper[MOMENTUM], hyper[DAMPENING]);
    return KN_OK;
}

/* buffer = decay buffer + scale gradient. The first step sets the buffer to the gradient itself, whatever the
 * dampening: with steps counted by the slots, step 0 here, the kernel does. */
static int scalars(const double *hyper, kn_optim_course *course, double *out)
{
    const bool first = course->step == 1;
    const double values[] = {
        hyper[LR], hyper[MOMENTUM], first ? 0 : hyper[MOMENTUM], first ? 1 : 1 - hyper[DAMPENING], hyper[WEIGHT_DECAY],
    };
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

const kn_optim_algorithm kn_optim_row_sgd = {
    KN_OPTIM_PARAMS(kn_sgd_params, KN_SGD_DEFAULTS),
    .name = "SGD",
    .step = "Optimizer.step#SGD.step",
    .hyper = hyper_rows,
    .states = states,
    .source = "optim/sgd.cl",
    .kernel = "sgd",
    .flops = 2,
    .counts_on_device = true,
    .check = check,
    .scalars = scalars,
};

kn_sgd_params kn_sgd_params_init(void) { return (kn_sgd_params){KN_SGD_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(sgd)

kn_fused_sgd_params kn_fused_sgd_params_init(void) { return (kn_fused_sgd_params){KN_FUSED_SGD_DEFAULTS}; }

kn_status kn_fused_sgd_with(kn_tensor *const *parameters, kn_tensor *const *gradients,
                            kn_tensor *const *momentum_buffers, int count, const kn_fused_sgd_params *params)
{
    params = params ? params : &(kn_fused_sgd_params){KN_FUSED_SGD_DEFAULTS};
    const kn_optim_lists lists = {.function = "kn_fused_sgd",
                                  .step = params->is_first_step ? 1 : 2,
                                  .clears_states = params->is_first_step,
                                  .grad_scale = params->grad_scale,
                                  .found_inf = params->found_inf,
                                  .count = count,
                                  .parameters = parameters,
                                  .gradients = gradients,
                                  .states = {momentum_buffers},
                                  .names = {"momentum_buffers"}};
    return kn_optim_step_lists(&lists, &kn_optim_row_sgd, fused_hyper_rows, params);
}
