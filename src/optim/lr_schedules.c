/* optim/lr_schedules.c - the formulas of the schedules that go by the epoch alone, as in torch.optim.lr_scheduler. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "optim/lr_scheduler.h"

#define PI 3.14159265358979323846
#define COUNT(numbers) ((int)(sizeof(numbers) / sizeof(numbers)[0]))

/* --- LambdaLR, MultiplicativeLR, ExponentialLR -------------------------------------------------------------------- */

static double lambda_lr(const kn_lr_scheduler *s, int group, double lr)
{
    (void)lr;
    return s->base_lrs[group] * s->lambda(s->last_epoch, group, s->user);
}
static double multiplicative_lr(const kn_lr_scheduler *s, int group, double lr)
{
    return s->is_initial ? lr : lr * s->lambda(s->last_epoch, group, s->user);
}
static double exponential_lr(const kn_lr_scheduler *s, int group, double lr)
{
    (void)group;
    return s->is_initial ? lr : lr * s->numbers[0];
}
static double exponential_closed(const kn_lr_scheduler *s, int group)
{
    return s->base_lrs[group] * pow(s->numbers[0], (double)s->last_epoch);
}

static const kn_lr_row lambda_row = {.name = "LambdaLR", .chained = lambda_lr},
                       multiplicative_row = {.name = "MultiplicativeLR", .chained = multiplicative_lr},
                       exponential_row = {
                           .name = "ExponentialLR", .chained = exponential_lr, .closed = exponential_closed};

kn_lr_params kn_lr_params_init(void) { return (kn_lr_params){KN_LR_DEFAULTS}; }

static kn_lr_scheduler *of_lambda(const kn_lr_row *row, kn_optim *optim, kn_lr_lambda lambda, void *user,
                                  const kn_lr_params *params)
{
    if (lambda == NULL)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: lambda is NULL", row->name);
    kn_lr_scheduler *s = kn_lr_new(row, optim, params ? params->last_epoch : -1, NULL, 0);
    if (s != NULL) {
        s->lambda = lambda;
        s->user = user;
    }
    return kn_lr_start(s);
}

kn_lr_scheduler *kn_lambda_lr_with(kn_optim *optim, kn_lr_lambda lambda, void *user, const kn_lr_params *params)
{
    return of_lambda(&lambda_row, optim, lambda, user, params);
}

kn_lr_scheduler *kn_multiplicative_lr_with(kn_optim *optim, kn_lr_lambda lambda, void *user, const kn_lr_params *params)
{
    return of_lambda(&multiplicative_row, optim, lambda, user, params);
}

kn_lr_scheduler *kn_exponential_lr_with(kn_optim *optim, double gamma, const kn_lr_params *params)
{
    return kn_lr_start(kn_lr_new(&exponential_row, optim, params ? params->last_epoch : -1, &gamma, 1));
}

/* --- StepLR, MultiStepLR ------------------------------------------------------------------------------------------ */

enum { GAMMA, STEP_SIZE };

static double step_lr(const kn_lr_scheduler *s, int group, double lr)
{
    (void)group;
    return s->last_epoch == 0 || s->last_epoch % (int64_t)s->numbers[STEP_SIZE] != 0 ? lr : lr * s->numbers[GAMMA];
}
static double step_closed(const kn_lr_scheduler *s, int group)
{
    return s->base_lrs[group] * pow(s->numbers[GAMMA], (double)(s->last_epoch / (int64_t)s->numbers[STEP_SIZE]));
}

/* The milestones at the epoch, or up to it. */
static double count_milestones(const kn_lr_scheduler *s, bool earlier)
{
    int count = 0;
    for (int i = 0; i < s->num_milestones; i++)
        count += s->milestones[i] == s->last_epoch || (earlier && s->milestones[i] < s->last_epoch);
    return count;
}
static double multi_step_lr(const kn_lr_scheduler *s, int group, double lr)
{
    (void)group;
    const double here = count_milestones(s, false);
    return here > 0 ? lr * pow(s->numbers[GAMMA], here) : lr;
}
static double multi_step_closed(const kn_lr_scheduler *s, int group)
{
    return s->base_lrs[group] * pow(s->numbers[GAMMA], count_milestones(s, true));
}

static const kn_lr_row step_row = {.name = "StepLR", .chained = step_lr, .closed = step_closed},
                       multi_step_row = {.name = "MultiStepLR", .chained = multi_step_lr, .closed = multi_step_closed};

kn_step_lr_params kn_step_lr_params_init(void) { return (kn_step_lr_params){KN_STEP_LR_DEFAULTS}; }

kn_lr_scheduler *kn_step_lr_with(kn_optim *optim, int64_t step_size, const kn_step_lr_params *params)
{
    params = params ? params : &(kn_step_lr_params){KN_STEP_LR_DEFAULTS};
    if (step_size < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "StepLR: step_size (%lld) must be 1 or more", (long long)step_size);
    const double numbers[] = {params->gamma, (double)step_size};
    return kn_lr_start(kn_lr_new(&step_row, optim, params->last_epoch, numbers, COUNT(numbers)));
}

kn_lr_scheduler *kn_multi_step_lr_with(kn_optim *optim, const int64_t *milestones, int count,
                                       const kn_step_lr_params *params)
{
    params = params ? params : &(kn_step_lr_params){KN_STEP_LR_DEFAULTS};
    if (count < 0 || (count > 0 && milestones == NULL))
        return kn_fail_null(KN_ERR_ARGUMENT, "MultiStepLR: %d milestones at %s", count,
                            milestones ? "an array" : "NULL");
    kn_lr_scheduler *s = kn_lr_new(&multi_step_row, optim, params->last_epoch, &params->gamma, 1);
    if (s == NULL)
        return NULL;
    s->milestones = kn_calloc((size_t)count + 1, sizeof *s->milestones);
    if (s->milestones == NULL) {
        kn_lr_scheduler_free(s);
        return kn_error_make_sticky();
    }
    s->num_milestones = count;
    if (count > 0)
        memcpy(s->milestones, milestones, (size_t)count * sizeof *milestones);
    return kn_lr_start(s);
}

/* --- ConstantLR, LinearLR, PolynomialLR --------------------------------------------------------------------------- */

enum { TOTAL, FIRST, LAST };
enum { POWER = FIRST };

/* The part of total_iters that has passed: of none, all. */
static double part_passed(const kn_lr_scheduler *s)
{
    const double total = s->numbers[TOTAL];
    return total > 0 ? fmin(total, (double)s->last_epoch) / total : 1;
}

static double constant_lr(const kn_lr_scheduler *s, int group, double lr)
{
    const double epoch = (double)s->last_epoch, factor = s->numbers[FIRST];
    if (epoch != 0 && epoch == s->numbers[TOTAL])
        return factor > 0 ? lr * (1 / factor) : s->base_lrs[group]; /* from 0 no quotient leads back */
    return epoch == 0 ? lr * factor : lr;
}
static double constant_closed(const kn_lr_scheduler *s, int group)
{
    const double factor = s->numbers[FIRST], is_over = (double)s->last_epoch >= s->numbers[TOTAL];
    return s->base_lrs[group] * (factor + is_over * (1 - factor));
}
static double linear_lr(const kn_lr_scheduler *s, int group, double lr)
{
    (void)group;
    const double first = s->numbers[FIRST], rise = s->numbers[LAST] - first, total = s->numbers[TOTAL];
    const double epoch = (double)s->last_epoch;
    if (epoch == 0)
        return lr * first;
    return s->is_initial || epoch > total ? lr : lr * (1 + rise / (total * first + (epoch - 1) * rise));
}
static double linear_closed(const kn_lr_scheduler *s, int group)
{
    const double first = s->numbers[FIRST];
    return s->base_lrs[group] * (first + (s->numbers[LAST] - first) * part_passed(s));
}
static double polynomial_lr(const kn_lr_scheduler *s, int group, double lr)
{
    (void)group;
    const double epoch = (double)s->last_epoch, total = s->numbers[TOTAL];
    if (s->is_initial || epoch > total)
        return lr;
    return lr * pow((1 - epoch / total) / (1 - (epoch - 1) / total), s->numbers[POWER]);
}
static double polynomial_closed(const kn_lr_scheduler *s, int group)
{
    return s->base_lrs[group] * pow(1 - part_passed(s), s->numbers[POWER]);
}

static const kn_lr_row constant_row = {.name = "ConstantLR", .chained = constant_lr, .closed = constant_closed},
                       linear_row = {.name = "LinearLR", .chained = linear_lr, .closed = linear_closed},
                       polynomial_row = {.name = "PolynomialLR", .chained = polynomial_lr, .closed = polynomial_closed};

kn_constant_lr_params kn_constant_lr_params_init(void) { return (kn_constant_lr_params){KN_CONSTANT_LR_DEFAULTS}; }
kn_linear_lr_params kn_linear_lr_params_init(void) { return (kn_linear_lr_params){KN_LINEAR_LR_DEFAULTS}; }
kn_polynomial_lr_params kn_polynomial_lr_params_init(void)
{
    return (kn_polynomial_lr_params){KN_POLYNOMIAL_LR_DEFAULTS};
}

kn_lr_scheduler *kn_constant_lr_with(kn_optim *optim, const kn_constant_lr_params *params)
{
    params = params ? params : &(kn_constant_lr_params){KN_CONSTANT_LR_DEFAULTS};
    if (!(params->factor >= 0 && params->factor <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "ConstantLR: factor (%g) must be between 0 and 1", params->factor);
    const double numbers[] = {(double)params->total_iters, params->factor};
    return kn_lr_start(kn_lr_new(&constant_row, optim, params->last_epoch, numbers, COUNT(numbers)));
}

kn_lr_scheduler *kn_linear_lr_with(kn_optim *optim, const kn_linear_lr_params *params)
{
    params = params ? params : &(kn_linear_lr_params){KN_LINEAR_LR_DEFAULTS};
    if (!(params->start_factor > 0 && params->start_factor <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "LinearLR: start_factor (%g) must be above 0 and at most 1",
                            params->start_factor);
    if (!(params->end_factor >= 0 && params->end_factor <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "LinearLR: end_factor (%g) must be between 0 and 1", params->end_factor);
    const double numbers[] = {(double)params->total_iters, params->start_factor, params->end_factor};
    return kn_lr_start(kn_lr_new(&linear_row, optim, params->last_epoch, numbers, COUNT(numbers)));
}

kn_lr_scheduler *kn_polynomial_lr_with(kn_optim *optim, const kn_polynomial_lr_params *params)
{
    params = params ? params : &(kn_polynomial_lr_params){KN_POLYNOMIAL_LR_DEFAULTS};
    const double numbers[] = {(double)params->total_iters, params->power};
    return kn_lr_start(kn_lr_new(&polynomial_row, optim, params->last_epoch, numbers, COUNT(numbers)));
}

/* --- CosineAnnealingLR, CosineAnnealingWarmRestarts --------------------------------------------------------------- */

enum { T_MAX, ETA_MIN, T_MULT };
enum { T_CUR, T_I }; /* of the state of restarts */

static double cosine(double base, double least, double part)
{
    return least + (base - least) * (1 + cos(PI * part)) / 2;
}

static double cosine_closed(const kn_lr_scheduler *s, int group)
{
    return cosine(s->base_lrs[group], s->numbers[ETA_MIN], (double)s->last_epoch / s->numbers[T_MAX]);
}
/* The ratio of two points of the curve; at its lowest point, which no factor leaves, the rise. */
static double cosine_lr(const kn_lr_scheduler *s, int group, double lr)
{
    const double epoch = (double)s->last_epoch, t_max = s->numbers[T_MAX], least = s->numbers[ETA_MIN];
    if (s->is_initial)
        return lr;
    if (fmod(epoch - 1 - t_max, 2 * t_max) == 0)
        return lr + (s->base_lrs[group] - least) * (1 - cos(PI / t_max)) / 2;
    return (1 + cos(PI * epoch / t_max)) / (1 + cos(PI * (epoch - 1) / t_max)) * (lr - least) + least;
}
static double restarts_lr(const kn_lr_scheduler *s, int group, double lr)
{
    (void)lr;
    return cosine(s->base_lrs[group], s->numbers[ETA_MIN], s->state[T_CUR] / s->state[T_I]);
}
static void restarts_advance(kn_lr_scheduler *s)
{
    if (s->last_epoch == 0) {
        s->state[T_CUR] = 0;
        s->state[T_I] = s->numbers[T_MAX];
        return;
    }
    if (++s->state[T_CUR] >= s->state[T_I]) {
        s->state[T_CUR] = fmod(s->state[T_CUR], s->state[T_I]);
        s->state[T_I] *= s->numbers[T_MULT];
    }
}
static void restarts_seek(kn_lr_scheduler *s, double epoch)
{
    double length = s->numbers[T_MAX];
    if (s->numbers[T_MULT] == 1)
        epoch = fmod(epoch, length);
    while (epoch >= length) {
        epoch -= length;
        length *= s->numbers[T_MULT];
    }
    s->state[T_CUR] = epoch;
    s->state[T_I] = length;
}

static const kn_lr_row cosine_row = {.name = "CosineAnnealingLR", .chained = cosine_lr, .closed = cosine_closed},
                       restarts_row = {.name = "CosineAnnealingWarmRestarts",
                                       .chained = restarts_lr,
                                       .advance = restarts_advance,
                                       .seek = restarts_seek};

kn_cosine_annealing_lr_params kn_cosine_annealing_lr_params_init(void)
{
    return (kn_cosine_annealing_lr_params){KN_COSINE_ANNEALING_LR_DEFAULTS};
}
kn_cosine_annealing_warm_restarts_params kn_cosine_annealing_warm_restarts_params_init(void)
{
    return (kn_cosine_annealing_warm_restarts_params){KN_COSINE_ANNEALING_WARM_RESTARTS_DEFAULTS};
}

kn_lr_scheduler *kn_cosine_annealing_lr_with(kn_optim *optim, int64_t t_max,
                                             const kn_cosine_annealing_lr_params *params)
{
    params = params ? params : &(kn_cosine_annealing_lr_params){KN_COSINE_ANNEALING_LR_DEFAULTS};
    if (t_max < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "CosineAnnealingLR: T_max (%lld) must be 1 or more", (long long)t_max);
    const double numbers[] = {(double)t_max, params->eta_min};
    return kn_lr_start(kn_lr_new(&cosine_row, optim, params->last_epoch, numbers, COUNT(numbers)));
}

kn_lr_scheduler *kn_cosine_annealing_warm_restarts_with(kn_optim *optim, int64_t t_0,
                                                        const kn_cosine_annealing_warm_restarts_params *params)
{
    params = params ? params : &(kn_cosine_annealing_warm_restarts_params){KN_COSINE_ANNEALING_WARM_RESTARTS_DEFAULTS};
    if (t_0 < 1 || params->T_mult < 1)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "CosineAnnealingWarmRestarts: T_0 (%lld) and T_mult (%lld) must be 1 or more",
                            (long long)t_0, (long long)params->T_mult);
    const double numbers[] = {(double)t_0, params->eta_min, (double)params->T_mult};
    kn_lr_scheduler *s = kn_lr_new(&restarts_row, optim, params->last_epoch, numbers, COUNT(numbers));
    if (s != NULL) {
        s->state[T_CUR] = (double)params->last_epoch;
        s->state[T_I] = (double)t_0;
    }
    return kn_lr_start(s);
}
