/* optim/sgd.c - stochastic gradient descent with momentum, as in torch.optim.SGD. */
#include <string.h>

#include <koine/fused_optim.h>

#include "base/error.h"
#include "optim/optim.h"

enum { LR = KN_OPTIM_LR, MOMENTUM, DAMPENING, WEIGHT_DECAY, NESTEROV };

static const char *const hyper_names[] = {"lr", "momentum", "dampening", "weight_decay", "nesterov", NULL};
static const char *const state_names[] = {"momentum_buffer"};

static kn_status check(const double *hyper)
{
    if (!(hyper[LR] >= 0) || !(hyper[MOMENTUM] >= 0) || !(hyper[WEIGHT_DECAY] >= 0))
        return kn_fail(KN_ERR_ARGUMENT, "SGD: lr (%g), momentum (%g) and weight_decay (%g) must be 0 or more",
                       hyper[LR], hyper[MOMENTUM], hyper[WEIGHT_DECAY]);
    if (!(hyper[DAMPENING] == hyper[DAMPENING]))
        return kn_fail(KN_ERR_ARGUMENT, "SGD: dampening is not a number");
    if (hyper[NESTEROV] != 0 && (hyper[MOMENTUM] <= 0 || hyper[DAMPENING] != 0))
        return kn_fail(KN_ERR_ARGUMENT, "SGD: nesterov needs momentum above 0 (it is %g) and dampening 0 (it is %g)",
                       hyper[MOMENTUM], hyper[DAMPENING]);
    return KN_OK;
}

static int count_states(const double *hyper) { return hyper[MOMENTUM] != 0 ? 1 : 0; }

/* buffer = decay buffer + scale gradient. The first step sets the buffer to the gradient itself, whatever the
 * dampening. */
static int scalars(const double *hyper, int64_t step, double *out)
{
    bool first = step == 1;
    const double values[] = {
        hyper[LR], hyper[MOMENTUM], first ? 0 : hyper[MOMENTUM], first ? 1 : 1 - hyper[DAMPENING], hyper[WEIGHT_DECAY],
    };
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

static const char *flags(const double *hyper)
{
    return hyper[NESTEROV] != 0 ? " -DMOMENTUM -DNESTEROV" : hyper[MOMENTUM] != 0 ? " -DMOMENTUM" : "";
}

/* 2 for the update, 3 for momentum, 2 each for Nesterov and weight decay. */
static double flops(const double *hyper)
{
    return 2 + (hyper[MOMENTUM] != 0 ? 3 : 0) + (hyper[NESTEROV] != 0 ? 2 : 0) + (hyper[WEIGHT_DECAY] != 0 ? 2 : 0);
}

static const kn_optim_algorithm sgd = {
    .name = "SGD",
    .step = "Optimizer.step#SGD.step",
    .states = state_names,
    .hyper = hyper_names,
    .check = check,
    .count_states = count_states,
    .flops = flops,
    .source = "optim/sgd.cl",
    .kernel = "sgd",
    .flags = flags,
    .scalars = scalars,
};

/* Of a kn_sgd_params or kn_fused_sgd_params. */
#define HYPER(params)                                                                                                  \
    {                                                                                                                  \
        [LR] = (params)->lr, [MOMENTUM] = (params)->momentum, [DAMPENING] = (params)->dampening,                       \
        [WEIGHT_DECAY] = (params)->weight_decay, [NESTEROV] = (params)->nesterov                                       \
    }

kn_sgd_params kn_sgd_params_init(void) { return (kn_sgd_params){KN_SGD_DEFAULTS}; }

kn_optim *kn_optim_sgd_with(kn_parameter_list parameters, const kn_sgd_params *params)
{
    params = params ? params : &(kn_sgd_params){KN_SGD_DEFAULTS};
    const double hyper[KN_OPTIM_MAX_HYPER] = HYPER(params);
    return kn_optim_new(&sgd, parameters, hyper);
}

kn_fused_sgd_params kn_fused_sgd_params_init(void) { return (kn_fused_sgd_params){KN_FUSED_SGD_DEFAULTS}; }

static kn_status step_lists(kn_optim_lists *lists, const kn_fused_sgd_params *params)
{
    const double hyper[KN_OPTIM_MAX_HYPER] = HYPER(params);
    KN_TRY(check(hyper));
    lists->hyper = hyper;
    lists->grad_scale = params->grad_scale;
    lists->found_inf = params->found_inf;
    lists->num_states = count_states(hyper);
    lists->step = params->is_first_step ? 1 : 2;
    lists->clears_states = params->is_first_step;
    lists->options = params->maximize ? " -DOWN_STATES -DMAXIMIZE" : " -DOWN_STATES";
    return kn_optim_step_lists(lists);
}

kn_status kn_fused_sgd_with(kn_tensor *const *parameters, kn_tensor *const *gradients,
                            kn_tensor *const *momentum_buffers, int count, const kn_fused_sgd_params *params)
{
    return step_lists(&(kn_optim_lists){.function = "kn_fused_sgd",
                                        .algorithm = &sgd,
                                        .count = count,
                                        .parameters = parameters,
                                        .gradients = gradients,
                                        .states = {momentum_buffers},
                                        .names = {"momentum_buffers"}},
                      params ? params : &(kn_fused_sgd_params){KN_FUSED_SGD_DEFAULTS});
}
