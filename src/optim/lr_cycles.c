/* optim/lr_cycles.c - CyclicLR and OneCycleLR, which also move momentum (or Adam's beta1), the other way. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "optim/lr_scheduler.h"

#define PI 3.14159265358979323846
#define COUNT(numbers) ((int)(sizeof(numbers) / sizeof(numbers)[0]))

/* The hyperparameter to be cycled, with its first value in all groups. */
static kn_status take_momentum(kn_lr_scheduler *s, double first)
{
    double value;
    s->momentum = NULL;
    for (int i = 0; s->optim->algorithm->hyper[i].name != NULL; i++) {
        const kn_optim_hyper *row = &s->optim->algorithm->hyper[i];
        if (row->kind != KN_HYPER_FLAG && (strcmp(row->name, "momentum") == 0 || strcmp(row->name, "beta1") == 0))
            s->momentum = row->name;
    }
    if (s->momentum == NULL)
        return kn_fail(KN_ERR_ARGUMENT, "%s: %s has neither momentum nor beta1, which cycle_momentum needs",
                       s->row->name, s->optim->algorithm->name);
    for (int g = 0; g < s->groups && s->last_epoch == -1; g++) {
        KN_TRY(kn_optim_get(s->optim, g, s->momentum, &value));
        KN_TRY(kn_optim_set(s->optim, g, s->momentum, first));
    }
    return KN_OK;
}

static kn_lr_scheduler *start(kn_lr_scheduler *s, bool cycle_momentum, double first)
{
    if (s != NULL && s->max_lrs != NULL && (!cycle_momentum || take_momentum(s, first) == KN_OK))
        return kn_lr_start(s);
    kn_lr_scheduler_free(s);
    return kn_error_make_sticky();
}

/* --- CyclicLR ----------------------------------------------------------------------------------------------------- */

enum { UP_AND_DOWN, RATIO, MODE, GAMMA, SCALE_MODE, BASE_MOMENTUM, MAX_MOMENTUM };

/* How far between the two ends: a triangle, of a height that may fall. */
static double height(const kn_lr_scheduler *s)
{
    const double epoch = (double)s->last_epoch, total = s->numbers[UP_AND_DOWN], ratio = s->numbers[RATIO];
    const double cycle = floor(1 + epoch / total), x = 1 + epoch / total - cycle;
    const double triangle = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
    double scale = 1;
    if (s->scale != NULL)
        scale = s->scale(s->numbers[SCALE_MODE] == KN_SCALE_CYCLE ? cycle : epoch, s->user);
    else if (s->numbers[MODE] == KN_TRIANGULAR2)
        scale = 1 / pow(2, cycle - 1);
    else if (s->numbers[MODE] == KN_EXP_RANGE)
        scale = pow(s->numbers[GAMMA], epoch);
    return triangle * scale;
}
static double cyclic_lr(const kn_lr_scheduler *s, int group, double lr)
{
    (void)lr;
    return s->base_lrs[group] + (s->max_lrs[group] - s->base_lrs[group]) * height(s);
}
static double cyclic_momentum(const kn_lr_scheduler *s, int group)
{
    (void)group;
    return s->numbers[MAX_MOMENTUM] - (s->numbers[MAX_MOMENTUM] - s->numbers[BASE_MOMENTUM]) * height(s);
}

static const kn_lr_row cyclic_row = {.name = "CyclicLR", .chained = cyclic_lr, .momentum = cyclic_momentum};

kn_cyclic_lr_params kn_cyclic_lr_params_init(void) { return (kn_cyclic_lr_params){KN_CYCLIC_LR_DEFAULTS}; }

kn_lr_scheduler *kn_cyclic_lr_with(kn_optim *optim, double base_lr, double max_lr, const kn_cyclic_lr_params *params)
{
    params = params ? params : &(kn_cyclic_lr_params){KN_CYCLIC_LR_DEFAULTS};
    if (params->step_size_up < 1 || params->step_size_down < 0)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "CyclicLR: step_size_up (%lld) must be 1 or more, step_size_down (%lld) 0 or more",
                            (long long)params->step_size_up, (long long)params->step_size_down);
    if (params->mode < KN_TRIANGULAR || params->mode > KN_EXP_RANGE)
        return kn_fail_null(KN_ERR_ARGUMENT, "CyclicLR: mode (%d) is none of kn_cyclic_mode", (int)params->mode);
    const double up = (double)params->step_size_up;
    const double total = up + (params->step_size_down > 0 ? (double)params->step_size_down : up);
    const double numbers[] = {total,
                              up / total,
                              params->mode,
                              params->gamma,
                              params->scale_mode,
                              params->base_momentum,
                              params->max_momentum};
    kn_lr_scheduler *s = kn_lr_new(&cyclic_row, optim, params->last_epoch, numbers, COUNT(numbers));
    if (s == NULL)
        return NULL;
    s->scale = params->scale_fn;
    s->user = params->scale_user;
    s->max_lrs = kn_lr_per_group(optim, max_lr, params->max_lrs);
    s->has_bases = true;
    for (int g = 0; g < s->groups; g++) {
        s->base_lrs[g] = params->base_lrs ? params->base_lrs[g] : base_lr;
        if (s->last_epoch == -1)
            optim->groups[g].hyper[KN_OPTIM_LR] = s->base_lrs[g];
    }
    return start(s, params->cycle_momentum, params->max_momentum);
}

/* --- OneCycleLR --------------------------------------------------------------------------------------------------- */

enum { TOTAL, PCT_START, LINEAR, LOW, HIGH, DIVISOR, FINAL_DIVISOR, THREE_PHASE };

static double anneal(const kn_lr_scheduler *s, double from, double to, double part)
{
    if (s->numbers[LINEAR] != 0)
        return (to - from) * part + from;
    return to + (from - to) / 2 * (cos(PI * part) + 1);
}

/* The phase of last_epoch: 0 up, 1 down, 2 further down, and how far it is. A loop's last call is a step beyond the
 * end, where PyTorch's line goes on to a rate below 0, which no optimizer takes: here it stays. */
static int phase_at(const kn_lr_scheduler *s, double *part)
{
    const double total = s->numbers[TOTAL], rise = s->numbers[PCT_START] * total, epoch = (double)s->last_epoch;
    const bool three = s->numbers[THREE_PHASE] != 0;
    const double ends[] = {rise - 1, three ? 2 * rise - 2 : total - 1, total - 1};
    const int last = three ? 2 : 1;
    int phase = 0;
    while (phase < last && epoch > ends[phase])
        phase++;
    const double begin = phase > 0 ? ends[phase - 1] : 0;
    *part = ends[phase] > begin ? (epoch - begin) / (ends[phase] - begin) : 1;
    if (s->numbers[LINEAR] != 0)
        *part = fmin(*part, 1);
    return phase;
}
static double one_cycle_lr(const kn_lr_scheduler *s, int group, double lr)
{
    (void)lr;
    double part;
    const int phase = phase_at(s, &part);
    const double most = s->max_lrs[group], first = most / s->numbers[DIVISOR],
                 least = first / s->numbers[FINAL_DIVISOR];
    const bool three = s->numbers[THREE_PHASE] != 0;
    const double from = phase == 1 ? most : first, to = phase == 0 ? most : phase == 1 && three ? first : least;
    return anneal(s, from, to, part);
}
static double one_cycle_momentum(const kn_lr_scheduler *s, int group)
{
    (void)group;
    double part;
    const int phase = phase_at(s, &part);
    return anneal(s, s->numbers[phase == 1 ? LOW : HIGH], s->numbers[phase == 0 ? LOW : HIGH], part);
}
static kn_status check_total(const kn_lr_scheduler *s)
{
    if ((double)s->last_epoch <= s->numbers[TOTAL])
        return KN_OK;
    return kn_fail(KN_ERR_STATE, "OneCycleLR: this would be step %lld of %g", (long long)s->last_epoch,
                   s->numbers[TOTAL]);
}

static const kn_lr_row one_cycle_row = {
    .name = "OneCycleLR", .chained = one_cycle_lr, .check = check_total, .momentum = one_cycle_momentum};

kn_one_cycle_lr_params kn_one_cycle_lr_params_init(void) { return (kn_one_cycle_lr_params){KN_ONE_CYCLE_LR_DEFAULTS}; }

kn_lr_scheduler *kn_one_cycle_lr_with(kn_optim *optim, double max_lr, int64_t total_steps,
                                      const kn_one_cycle_lr_params *params)
{
    params = params ? params : &(kn_one_cycle_lr_params){KN_ONE_CYCLE_LR_DEFAULTS};
    if (total_steps < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "OneCycleLR: total_steps (%lld) must be 1 or more",
                            (long long)total_steps);
    if (!(params->pct_start >= 0 && params->pct_start <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "OneCycleLR: pct_start (%g) must be between 0 and 1", params->pct_start);
    if (!(params->div_factor > 0 && params->final_div_factor > 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "OneCycleLR: div_factor (%g) and final_div_factor (%g) must be above 0",
                            params->div_factor, params->final_div_factor);
    const double numbers[] = {(double)total_steps,  params->pct_start,  params->anneal_linearly,  params->base_momentum,
                              params->max_momentum, params->div_factor, params->final_div_factor, params->three_phase};
    kn_lr_scheduler *s = kn_lr_new(&one_cycle_row, optim, params->last_epoch, numbers, COUNT(numbers));
    if (s == NULL)
        return NULL;
    s->max_lrs = kn_lr_per_group(optim, max_lr, params->max_lrs);
    for (int g = 0; g < s->groups && s->last_epoch == -1 && s->max_lrs != NULL; g++)
        optim->groups[g].initial_lr = s->max_lrs[g] / params->div_factor;
    return start(s, params->cycle_momentum, params->max_momentum);
}
