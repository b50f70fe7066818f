/* optim/averaged.c - ASGD (Polyak and Juditsky 1992) and Rprop (Riedmiller and Braun 1993) as in torch.optim, and Lion
 * (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023). */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "optim/optim.h"

#define MAXIMIZE_ROW(type) KN_HYPER(type, maximize, .kind = KN_HYPER_FLAG, .define = " -DMAXIMIZE")

/* --- ASGD --------------------------------------------------------------------------------------------------------- */

enum { LR = KN_OPTIM_LR, LAMBD, ALPHA, T0, WEIGHT_DECAY };

static const kn_optim_hyper asgd_rows[] = {
    KN_HYPER(kn_asgd_params, lr),
    KN_HYPER(kn_asgd_params, lambd, .kind = KN_HYPER_NUMBER),
    KN_HYPER(kn_asgd_params, alpha, .kind = KN_HYPER_NUMBER),
    KN_HYPER(kn_asgd_params, t0, .kind = KN_HYPER_NUMBER),
    KN_HYPER(kn_asgd_params, weight_decay, .flops = 2),
    MAXIMIZE_ROW(kn_asgd_params),
    {0},
};

/* Carried: eta and mu, which each step leaves for the next. */
static void asgd_start(const double *hyper, double *carried)
{
    carried[0] = hyper[LR];
    carried[1] = 1;
}

static int asgd_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    const double eta = course->carried[0], mu = course->carried[1], step = (double)course->step;
    const double values[] = {eta, 1 - hyper[LAMBD] * eta, mu, hyper[WEIGHT_DECAY]};
    memcpy(out, values, sizeof values);
    course->carried[0] = hyper[LR] / pow(1 + hyper[LAMBD] * hyper[LR] * step, hyper[ALPHA]);
    course->carried[1] = 1 / fmax(1, step - hyper[T0]);
    return sizeof values / sizeof values[0];
}

const kn_optim_algorithm kn_optim_row_asgd = {
    KN_OPTIM_PARAMS(kn_asgd_params, KN_ASGD_DEFAULTS),
    .name = "ASGD",
    .step = "Optimizer.step#ASGD.step",
    .hyper = asgd_rows,
    .states = (const kn_optim_state[]){KN_STATE("ax"), {0}},
    .carried = (const char *const[]){"eta", "mu", NULL},
    .source = "optim/asgd.cl",
    .kernel = "asgd",
    .flops = 6,
    .counts_steps = true,
    .start = asgd_start,
    .scalars = asgd_scalars,
};

kn_asgd_params kn_asgd_params_init(void) { return (kn_asgd_params){KN_ASGD_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(asgd)

/* --- Rprop -------------------------------------------------------------------------------------------------------- */

enum { ETAMINUS = 1, ETAPLUS, SMALLEST, LARGEST };

static const kn_optim_hyper rprop_rows[] = {
    KN_HYPER(kn_rprop_params, lr),
    KN_HYPER(kn_rprop_params, etaminus, .kind = KN_HYPER_NUMBER, .list = "etas"),
    KN_HYPER(kn_rprop_params, etaplus, .kind = KN_HYPER_NUMBER, .list = "etas"),
    KN_HYPER(kn_rprop_params, step_size_min, .list = "step_sizes"),
    KN_HYPER(kn_rprop_params, step_size_max, .list = "step_sizes"),
    MAXIMIZE_ROW(kn_rprop_params),
    {0},
};

static kn_status rprop_check(const double *hyper)
{
    if (!(hyper[ETAMINUS] > 0 && hyper[ETAMINUS] < 1 && hyper[ETAPLUS] > 1))
        return kn_fail(KN_ERR_ARGUMENT, "Rprop: etaminus (%g) must be above 0 and below 1, etaplus (%g) above 1",
                       hyper[ETAMINUS], hyper[ETAPLUS]);
    if (!(hyper[SMALLEST] <= hyper[LARGEST]))
        return kn_fail(KN_ERR_ARGUMENT, "Rprop: step_size_min (%g) is above step_size_max (%g)", hyper[SMALLEST],
                       hyper[LARGEST]);
    return KN_OK;
}

/* A step_size of -1 stands for the lr of the parameter's first step, which may come after many of others. */
static double rprop_initial(const double *hyper, int state)
{
    (void)hyper;
    return state == 1 ? -1 : 0;
}

static int rprop_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    (void)course;
    memcpy(out, hyper, 5 * sizeof *out);
    return 5;
}

const kn_optim_algorithm kn_optim_row_rprop = {
    KN_OPTIM_PARAMS(kn_rprop_params, KN_RPROP_DEFAULTS),
    .name = "Rprop",
    .step = "Optimizer.step#Rprop.step",
    .hyper = rprop_rows,
    .states = (const kn_optim_state[]){KN_STATE("prev"), KN_STATE("step_size"), {0}},
    .source = "optim/rprop.cl",
    .kernel = "rprop",
    .flops = 3,
    .counts_steps = true,
    .is_same_each_step = true,
    .check = rprop_check,
    .initial = rprop_initial,
    .scalars = rprop_scalars,
};

kn_rprop_params kn_rprop_params_init(void) { return (kn_rprop_params){KN_RPROP_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(rprop)

/* --- Lion --------------------------------------------------------------------------------------------------------- */

enum { BETA1 = 1, BETA2, LION_DECAY };

static const kn_optim_hyper lion_rows[] = {
    KN_HYPER(kn_lion_params, lr),
    KN_HYPER(kn_lion_params, beta1, .kind = KN_HYPER_BELOW_1, .list = "betas"),
    KN_HYPER(kn_lion_params, beta2, .kind = KN_HYPER_BELOW_1, .list = "betas"),
    KN_HYPER(kn_lion_params, weight_decay),
    MAXIMIZE_ROW(kn_lion_params),
    {0},
};

static int lion_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    (void)course;
    const double values[] = {hyper[LR],    hyper[BETA1],     1 - hyper[BETA1],
                             hyper[BETA2], 1 - hyper[BETA2], 1 - hyper[LR] * hyper[LION_DECAY]};
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

const kn_optim_algorithm kn_optim_row_lion = {
    KN_OPTIM_PARAMS(kn_lion_params, KN_LION_DEFAULTS),
    .name = "Lion",
    .step = "Optimizer.step#Lion.step",
    .hyper = lion_rows,
    .states = (const kn_optim_state[]){KN_STATE("exp_avg"), {0}},
    .source = "optim/lion.cl",
    .kernel = "lion",
    .flops = 9,
    .is_same_each_step = true,
    .scalars = lion_scalars,
};

kn_lion_params kn_lion_params_init(void) { return (kn_lion_params){KN_LION_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(lion)
