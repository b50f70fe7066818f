/* optim/moments.c - the relatives of Adam: NAdam (Dozat 2016), RAdam (Liu et al. 2020) and Adamax (Kingma and Ba 2015)
 * as in torch.optim, and LAMB (You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
 * 2020). Their scalars are computed here in double, whatever the parameters' dtype. */
#include <math.h>
#include <string.h>

#include "optim/optim.h"

enum { LR = KN_OPTIM_LR, BETA1, BETA2, EPS, WEIGHT_DECAY, MAXIMIZE, OWN };

/* The rows of all; the last are each one's own. */
#define ROWS(type)                                                                                                     \
    KN_HYPER(type, lr), KN_HYPER(type, beta1, .kind = KN_HYPER_BELOW_1, .list = "betas"),                              \
        KN_HYPER(type, beta2, .kind = KN_HYPER_BELOW_1, .list = "betas"), KN_HYPER(type, eps),                         \
        KN_HYPER(type, weight_decay, .flops = 2),                                                                      \
        KN_HYPER(type, maximize, .kind = KN_HYPER_FLAG, .define = " -DMAXIMIZE")
#define DECOUPLED_ROW(type) KN_HYPER(type, decoupled_weight_decay, .kind = KN_HYPER_FLAG, .define = " -DDECOUPLED")
#define DECOUPLED OWN

static const kn_optim_state two_moments[] = {KN_STATE("exp_avg"), KN_STATE("exp_avg_sq"), {0}};

/* What cl/optim/moments.clh takes. Decoupled decay is a factor of the parameters, in place of the decay. */
static int common_scalars(const double *hyper, double *out)
{
    const bool decoupled = hyper[DECOUPLED] != 0;
    const double values[] = {hyper[BETA1], 1 - hyper[BETA1],
                             hyper[BETA2], 1 - hyper[BETA2],
                             hyper[EPS],   decoupled ? 1 - hyper[LR] * hyper[WEIGHT_DECAY] : hyper[WEIGHT_DECAY]};
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

static double correction(double beta, int64_t step) { return 1 - pow(beta, (double)step); }

/* --- NAdam -------------------------------------------------------------------------------------------------------- */

enum { MOMENTUM_DECAY = OWN + 1 };

static const kn_optim_hyper nadam_rows[] = {
    ROWS(kn_nadam_params), DECOUPLED_ROW(kn_nadam_params), KN_HYPER(kn_nadam_params, momentum_decay), {0}};

static void nadam_start(const double *hyper, double *carried)
{
    (void)hyper;
    carried[0] = 1;
}

static double nadam_momentum(const double *hyper, int64_t step)
{
    return hyper[BETA1] * (1 - 0.5 * pow(0.96, (double)step * hyper[MOMENTUM_DECAY]));
}

static int nadam_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    const double mu = nadam_momentum(hyper, course->step), next = nadam_momentum(hyper, course->step + 1);
    double *product = &course->carried[0];
    int n = common_scalars(hyper, out);
    *product *= mu;
    out[n++] = sqrt(correction(hyper[BETA2], course->step));
    out[n++] = hyper[LR] * (1 - mu) / (1 - *product);
    out[n++] = hyper[LR] * next / (1 - *product * next);
    return n;
}

const kn_optim_algorithm kn_optim_row_nadam = {
    KN_OPTIM_PARAMS(kn_nadam_params, KN_NADAM_DEFAULTS),
    .name = "NAdam",
    .step = "Optimizer.step#NAdam.step",
    .hyper = nadam_rows,
    .states = two_moments,
    .carried = (const char *const[]){"mu_product", NULL},
    .source = "optim/nadam.cl",
    .kernel = "nadam",
    .flops = 16,
    .counts_steps = true,
    .start = nadam_start,
    .scalars = nadam_scalars,
};

kn_nadam_params kn_nadam_params_init(void) { return (kn_nadam_params){KN_NADAM_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(nadam)

/* --- RAdam -------------------------------------------------------------------------------------------------------- */

static const kn_optim_hyper radam_rows[] = {ROWS(kn_radam_params), DECOUPLED_ROW(kn_radam_params), {0}};

/* rho: the length of the approximated simple moving average; above 5 its variance is tractable. */
static int radam_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    const double correction2 = correction(hyper[BETA2], course->step), most = 2 / (1 - hyper[BETA2]) - 1;
    const double rho = most - 2 * (double)course->step * (1 - correction2) / correction2;
    const bool rectified = rho > 5;
    const double rectification = rectified ? sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho)) : 1;
    int n = common_scalars(hyper, out);
    out[n++] = hyper[LR] / correction(hyper[BETA1], course->step) * rectification;
    out[n++] = sqrt(correction2);
    out[n++] = rectified;
    return n;
}

const kn_optim_algorithm kn_optim_row_radam = {
    KN_OPTIM_PARAMS(kn_radam_params, KN_RADAM_DEFAULTS),
    .name = "RAdam",
    .step = "Optimizer.step#RAdam.step",
    .hyper = radam_rows,
    .states = two_moments,
    .source = "optim/radam.cl",
    .kernel = "radam",
    .flops = 13,
    .counts_steps = true,
    .scalars = radam_scalars,
};

kn_radam_params kn_radam_params_init(void) { return (kn_radam_params){KN_RADAM_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(radam)

/* --- Adamax ------------------------------------------------------------------------------------------------------- */

static const kn_optim_hyper adamax_rows[] = {ROWS(kn_adamax_params), {0}};

static int adamax_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    const double values[] = {hyper[LR] / correction(hyper[BETA1], course->step), 1 - hyper[BETA1], hyper[BETA2],
                             hyper[EPS], hyper[WEIGHT_DECAY]};
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

const kn_optim_algorithm kn_optim_row_adamax = {
    KN_OPTIM_PARAMS(kn_adamax_params, KN_ADAMAX_DEFAULTS),
    .name = "Adamax",
    .step = "Optimizer.step#Adamax.step",
    .hyper = adamax_rows,
    .states = (const kn_optim_state[]){KN_STATE("exp_avg"), KN_STATE("exp_inf"), {0}},
    .source = "optim/adamax.cl",
    .kernel = "adamax",
    .flops = 9,
    .counts_steps = true,
    .scalars = adamax_scalars,
};

kn_adamax_params kn_adamax_params_init(void) { return (kn_adamax_params){KN_ADAMAX_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(adamax)

/* --- LAMB --------------------------------------------------------------------------------------------------------- */

static const kn_optim_hyper lamb_rows[] = {
    ROWS(kn_lamb_params), KN_HYPER(kn_lamb_params, bias_correction, .kind = KN_HYPER_FLAG), {0}};

static int lamb_scalars(const double *hyper, kn_optim_course *course, double *out)
{
    const bool corrected = hyper[OWN] != 0;
    const double values[] = {hyper[BETA1],
                             1 - hyper[BETA1],
                             hyper[BETA2],
                             1 - hyper[BETA2],
                             corrected ? correction(hyper[BETA1], course->step) : 1,
                             corrected ? sqrt(correction(hyper[BETA2], course->step)) : 1,
                             hyper[EPS],
                             hyper[WEIGHT_DECAY],
                             hyper[LR]};
    memcpy(out, values, sizeof values);
    return sizeof values / sizeof values[0];
}

const kn_optim_algorithm kn_optim_row_lamb = {
    KN_OPTIM_PARAMS(kn_lamb_params, KN_LAMB_DEFAULTS),
    .name = "LAMB",
    .step = "Optimizer.step#LAMB.step",
    .hyper = lamb_rows,
    .states = two_moments,
    .source = "optim/lamb.cl",
    .kernel = "lamb",
    .flops = 34,
    .counts_steps = true,
    .measure = "lamb_measure",
    .scalars = lamb_scalars,
};

kn_lamb_params kn_lamb_params_init(void) { return (kn_lamb_params){KN_LAMB_DEFAULTS}; }
KN_OPTIM_CONSTRUCTOR(lamb)
