/* optim/adagrad.c - optimizers that divide by a root of past gradients' squares, as in torch.optim: Adagrad (Duchi et
 * al. 2011), Adadelta (Zeiler 2012), RMSprop (Hinton 2012; centered: Graves 2013). */
#include <string.h>

#include "base/error.h"
#include "optim/optim.h"

#define FLAG .kind = KN_HYPER_FLAG
#define MAXIMIZE_ROW(type) KN_HYPER(type, maximize, FLAG, .define = " -DMAXIMIZE")

/* --- Adagrad ------------------------------------------------------------------------------------------------------ */

enum { LR = KN_OPTIM_LR, LR_DECAY, ADAGRAD_DECAY, INITIAL, ADAGRAD_EPS };

static const kn_optim_hyper adagrad_rows[] = {
    KN_HYPER(kn_adagrad_params, lr),
    KN_HYPER(kn_adagrad_params, lr_decay),
    KN_HYPER(kn_adagrad_params, weight_decay, .flops = 2),
    KN_HYPER(kn_adagrad_params, initial_accumulator_value),
    KN_HYPER(kn_adagrad_params, eps),
    MAXIMIZE_ROW(kn_adagrad_params),
    {0},
};

static double adagrad_initial(const double *hyper, int state)
{
    (void)state;
    return hyper[INITIAL];
}

static int adagrad_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    out[0] = hyper[LR] / (1 + (double)(course->step - 1) * hyper[LR_DECAY]);
    out[1] = hyper[ADAGRAD_EPS];
    out[2] = hyper[ADAGRAD_DECAY];
    return 3;
}

const kn_optim_algorithm kn_optim_row_adagrad = {
    KN_OPTIM_PARAMS(kn_adagrad_params, KN_ADAGRAD_DEFAULTS),
    .name = "Adagrad",
    .step = "Optimizer.step#Adagrad.step",
    .hyper = adagrad_rows,
    .states = (const kn_optim_state[]){KN_STATE("sum"), {0}},
    .source = "optim/adagrad.cl",
    .kernel = "adagrad",
    .flops = 7,
    .counts_steps = true,
    .initial = adagrad_initial,
    .scalars = adagrad_scalars,
};

kn_adagrad_params kn_adagrad_params_init(void) { return (kn_adagrad_params){KN_ADAGRAD_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(adagrad)

/* --- Adadelta ----------------------------------------------------------------------------------------------------- */

enum { RHO = 1, ADADELTA_EPS, ADADELTA_DECAY };

static const kn_optim_hyper adadelta_rows[] = {
    KN_HYPER(kn_adadelta_params, lr),  KN_HYPER(kn_adadelta_params, rho, .kind = KN_HYPER_NUMBER),
    KN_HYPER(kn_adadelta_params, eps), KN_HYPER(kn_adadelta_params, weight_decay, .flops = 2),
    MAXIMIZE_ROW(kn_adadelta_params),  {0},
};

static kn_status adadelta_check(const double *hyper)
{
    if (!(hyper[RHO] >= 0 && hyper[RHO] <= 1))
        return kn_fail(KN_ERR_ARGUMENT, "Adadelta: rho (%g) must be from 0 to 1", hyper[RHO]);
    return KN_OK;
}

static int adadelta_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    (void)course;
    const double values[] = {hyper[LR], hyper[RHO], 1 - hyper[RHO], hyper[ADADELTA_EPS], hyper[ADADELTA_DECAY]};
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

const kn_optim_algorithm kn_optim_row_adadelta = {
    KN_OPTIM_PARAMS(kn_adadelta_params, KN_ADADELTA_DEFAULTS),
    .name = "Adadelta",
    .step = "Optimizer.step#Adadelta.step",
    .hyper = adadelta_rows,
    .states = (const kn_optim_state[]){KN_STATE("square_avg"), KN_STATE("acc_delta"), {0}},
    .source = "optim/adadelta.cl",
    .kernel = "adadelta",
    .flops = 16,
    .counts_steps = true,
    .is_same_each_step = true,
    .check = adadelta_check,
    .scalars = adadelta_scalars,
};

kn_adadelta_params kn_adadelta_params_init(void) { return (kn_adadelta_params){KN_ADADELTA_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(adadelta)

/* --- RMSprop ------------------------------------------------------------------------------------------------------ */

enum { ALPHA = 1, RMSPROP_EPS, RMSPROP_DECAY, MOMENTUM, CENTERED };

static const kn_optim_hyper rmsprop_rows[] = {
    KN_HYPER(kn_rmsprop_params, lr),
    KN_HYPER(kn_rmsprop_params, alpha),
    KN_HYPER(kn_rmsprop_params, eps),
    KN_HYPER(kn_rmsprop_params, weight_decay, .flops = 2),
    KN_HYPER(kn_rmsprop_params, momentum, .define = " -DMOMENTUM", .flops = 2),
    KN_HYPER(kn_rmsprop_params, centered, FLAG, .define = " -DCENTERED", .flops = 5),
    MAXIMIZE_ROW(kn_rmsprop_params),
    {0},
};

static int rmsprop_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    (void)course;
    const double values[] = {hyper[LR],          hyper[ALPHA],         1 - hyper[ALPHA],
                             hyper[RMSPROP_EPS], hyper[RMSPROP_DECAY], hyper[MOMENTUM]};
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

const kn_optim_algorithm kn_optim_row_rmsprop = {
    KN_OPTIM_PARAMS(kn_rmsprop_params, KN_RMSPROP_DEFAULTS),
    .name = "RMSprop",
    .step = "Optimizer.step#RMSprop.step",
    .hyper = rmsprop_rows,
    .states = (const kn_optim_state[]){KN_STATE("square_avg"),
                                       KN_STATE("momentum_buffer", .needs = MOMENTUM),
                                       KN_STATE("grad_avg", .needs = CENTERED),
                                       {0}},
    .source = "optim/rmsprop.cl",
    .kernel = "rmsprop",
    .flops = 9,
    .counts_steps = true,
    .is_same_each_step = true,
    .scalars = rmsprop_scalars,
};

kn_rmsprop_params kn_rmsprop_params_init(void) { return (kn_rmsprop_params){KN_RMSPROP_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(rmsprop)
