/* optim/lr_plateau.c - ReduceLROnPlateau. */
#include <math.h>

#include "base/error.h"
#include "optim/lr_scheduler.h"

enum { MAX, FACTOR, PATIENCE, THRESHOLD, ABSOLUTE, COOLDOWN, EPS };
enum { BEST, BAD_EPOCHS, COOLING }; /* of the state */

const kn_lr_row kn_lr_plateau = {.name = "ReduceLROnPlateau"};

kn_reduce_lr_on_plateau_params kn_reduce_lr_on_plateau_params_init(void)
{
    return (kn_reduce_lr_on_plateau_params){KN_REDUCE_LR_ON_PLATEAU_DEFAULTS};
}

kn_lr_scheduler *kn_reduce_lr_on_plateau_with(kn_optim *optim, const kn_reduce_lr_on_plateau_params *params)
{
    params = params ? params : &(kn_reduce_lr_on_plateau_params){KN_REDUCE_LR_ON_PLATEAU_DEFAULTS};
    if (!(params->factor < 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "ReduceLROnPlateau: factor (%g) must be below 1", params->factor);
    const double numbers[] = {params->mode_max,  params->factor,   (double)params->patience,
                              params->threshold, params->absolute, (double)params->cooldown,
                              params->eps};
    kn_lr_scheduler *s = kn_lr_new(&kn_lr_plateau, optim, -1, numbers, sizeof numbers / sizeof numbers[0]);
    if (s == NULL)
        return NULL;
    s->last_epoch = 0;
    s->state[BEST] = params->mode_max ? -(double)INFINITY : (double)INFINITY;
    s->max_lrs = kn_lr_per_group(optim, params->min_lr, params->min_lrs);
    kn_lr_note(s);
    if (s->max_lrs != NULL)
        return s;
    kn_lr_scheduler_free(s);
    return NULL;
}

static bool is_better(const kn_lr_scheduler *s, double metric)
{
    const double best = s->state[BEST], threshold = s->numbers[THRESHOLD];
    if (s->numbers[MAX] != 0)
        return metric > (s->numbers[ABSOLUTE] != 0 ? best + threshold : best * (threshold + 1));
    return metric < (s->numbers[ABSOLUTE] != 0 ? best - threshold : best * (1 - threshold));
}

static void reduce(kn_lr_scheduler *s)
{
    for (int g = 0; g < s->groups; g++) {
        double *lr = &s->optim->groups[g].hyper[KN_OPTIM_LR];
        const double reduced = fmax(*lr * s->numbers[FACTOR], s->max_lrs[g]);
        if (*lr - reduced > s->numbers[EPS])
            *lr = reduced;
    }
}

kn_status kn_lr_scheduler_step_metric(kn_lr_scheduler *s, double metric)
{
    if (s == NULL)
        return kn_fail_argument_null("lr_scheduler_step_metric", "scheduler");
    if (s->row != &kn_lr_plateau)
        return kn_fail(KN_ERR_STATE, "%s: takes no metric: call kn_lr_scheduler_step", s->row->name);
    s->last_epoch++;
    const bool better = is_better(s, metric);
    s->state[BEST] = better ? metric : s->state[BEST];
    s->state[BAD_EPOCHS] = better ? 0 : s->state[BAD_EPOCHS] + 1;
    if (s->state[COOLING] > 0) {
        s->state[COOLING]--;
        s->state[BAD_EPOCHS] = 0;
    }
    if (s->state[BAD_EPOCHS] > s->numbers[PATIENCE]) {
        reduce(s);
        s->state[COOLING] = s->numbers[COOLDOWN];
        s->state[BAD_EPOCHS] = 0;
    }
    kn_lr_note(s);
    return KN_OK;
}
