/* defaults_optim.c - further optimizers, and learning rate schedules. */
#include "defaults.h"

CALLS(kn_optim_adamw, kn_adamw_params, show_optim, kn_optim_adamw_with(some_parameters(), params),
      kn_optim_adamw(some_parameters()))
CALLS(kn_optim_rmsprop, kn_rmsprop_params, show_optim, kn_optim_rmsprop_with(some_parameters(), params),
      kn_optim_rmsprop(some_parameters()))
CALLS(kn_optim_adagrad, kn_adagrad_params, show_optim, kn_optim_adagrad_with(some_parameters(), params),
      kn_optim_adagrad(some_parameters()))
CALLS(kn_optim_adadelta, kn_adadelta_params, show_optim, kn_optim_adadelta_with(some_parameters(), params),
      kn_optim_adadelta(some_parameters()))
CALLS(kn_optim_nadam, kn_nadam_params, show_optim, kn_optim_nadam_with(some_parameters(), params),
      kn_optim_nadam(some_parameters()))
CALLS(kn_optim_radam, kn_radam_params, show_optim, kn_optim_radam_with(some_parameters(), params),
      kn_optim_radam(some_parameters()))
CALLS(kn_optim_adamax, kn_adamax_params, show_optim, kn_optim_adamax_with(some_parameters(), params),
      kn_optim_adamax(some_parameters()))
CALLS(kn_optim_asgd, kn_asgd_params, show_optim, kn_optim_asgd_with(some_parameters(), params),
      kn_optim_asgd(some_parameters()))
CALLS(kn_optim_rprop, kn_rprop_params, show_optim, kn_optim_rprop_with(some_parameters(), params),
      kn_optim_rprop(some_parameters()))
CALLS(kn_optim_lamb, kn_lamb_params, show_optim, kn_optim_lamb_with(some_parameters(), params),
      kn_optim_lamb(some_parameters()))
CALLS(kn_optim_lion, kn_lion_params, show_optim, kn_optim_lion_with(some_parameters(), params),
      kn_optim_lion(some_parameters()))

/* --- schedules --- */

/* The learning rates of some steps, and momentum. */
static char *show_schedule(kn_lr_scheduler *s)
{
    static char text[400];
    if (s == NULL)
        return show_error();
    int length = 0;
    for (int i = 0; i < 14; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%.17g ", kn_lr_scheduler_last_lr(s, 0));
        kn_status status =
            kn_lr_scheduler_takes_metric(s) ? kn_lr_scheduler_step_metric(s, 1) : kn_lr_scheduler_step(s);
        if (status != KN_OK)
            return show_error();
    }
    kn_lr_scheduler_free(s);
    return strdup(text);
}
static kn_optim *momentum(void)
{
    some_module();
    kn_optim *optim = some_optim();
    return kn_optim_set(optim, 0, "momentum", 0) == KN_OK ? optim : NULL;
}
static double halved(int64_t epoch, int group, void *user)
{
    (void)group, (void)user;
    return 1 / (1 + (double)epoch);
}
static const int64_t milestones[] = {2, 5};

CALLS(kn_lambda_lr, kn_lr_params, show_schedule, kn_lambda_lr_with(momentum(), halved, NULL, params),
      kn_lambda_lr(momentum(), halved, NULL))
CALLS(kn_multiplicative_lr, kn_lr_params, show_schedule, kn_multiplicative_lr_with(momentum(), halved, NULL, params),
      kn_multiplicative_lr(momentum(), halved, NULL))
CALLS(kn_exponential_lr, kn_lr_params, show_schedule, kn_exponential_lr_with(momentum(), 0.9, params),
      kn_exponential_lr(momentum(), 0.9))
CALLS(kn_step_lr, kn_step_lr_params, show_schedule, kn_step_lr_with(momentum(), 3, params), kn_step_lr(momentum(), 3))
CALLS(kn_multi_step_lr, kn_step_lr_params, show_schedule, kn_multi_step_lr_with(momentum(), milestones, 2, params),
      kn_multi_step_lr(momentum(), milestones, 2))
CALLS(kn_constant_lr, kn_constant_lr_params, show_schedule, kn_constant_lr_with(momentum(), params),
      kn_constant_lr(momentum()))
CALLS(kn_linear_lr, kn_linear_lr_params, show_schedule, kn_linear_lr_with(momentum(), params), kn_linear_lr(momentum()))
CALLS(kn_polynomial_lr, kn_polynomial_lr_params, show_schedule, kn_polynomial_lr_with(momentum(), params),
      kn_polynomial_lr(momentum()))
CALLS(kn_cosine_annealing_lr, kn_cosine_annealing_lr_params, show_schedule,
      kn_cosine_annealing_lr_with(momentum(), 6, params), kn_cosine_annealing_lr(momentum(), 6))
CALLS(kn_cosine_annealing_warm_restarts, kn_cosine_annealing_warm_restarts_params, show_schedule,
      kn_cosine_annealing_warm_restarts_with(momentum(), 4, params), kn_cosine_annealing_warm_restarts(momentum(), 4))
CALLS(kn_cyclic_lr, kn_cyclic_lr_params, show_schedule, kn_cyclic_lr_with(momentum(), 0.1, 1, params),
      kn_cyclic_lr(momentum(), 0.1, 1))
CALLS(kn_one_cycle_lr, kn_one_cycle_lr_params, show_schedule, kn_one_cycle_lr_with(momentum(), 1, 20, params),
      kn_one_cycle_lr(momentum(), 1, 20))
CALLS(kn_reduce_lr_on_plateau, kn_reduce_lr_on_plateau_params, show_schedule,
      kn_reduce_lr_on_plateau_with(momentum(), params), kn_reduce_lr_on_plateau(momentum()))

DEFAULTS(optim_defaults, ROW(kn_optim_adamw), ROW(kn_optim_rmsprop), ROW(kn_optim_adagrad), ROW(kn_optim_adadelta),
         ROW(kn_optim_nadam), ROW(kn_optim_radam), ROW(kn_optim_adamax), ROW(kn_optim_asgd), ROW(kn_optim_rprop),
         ROW(kn_optim_lamb), ROW(kn_optim_lion), ROW(kn_lambda_lr), ROW(kn_multiplicative_lr), ROW(kn_exponential_lr),
         ROW(kn_step_lr), ROW(kn_multi_step_lr), ROW(kn_constant_lr), ROW(kn_linear_lr), ROW(kn_polynomial_lr),
         ROW(kn_cosine_annealing_lr), ROW(kn_cosine_annealing_warm_restarts), NEEDS(kn_cyclic_lr),
         NEEDS(kn_one_cycle_lr), ROW(kn_reduce_lr_on_plateau))
