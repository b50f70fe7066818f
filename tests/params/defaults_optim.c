/* defaults_optim.c - further optimizers, schedules, random numbers, initialisation, gradients. */
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
CALLS(kn_optim_adafactor, kn_adafactor_params, show_optim, kn_optim_adafactor_with(some_parameters(), params),
      kn_optim_adafactor(some_parameters()))
CALLS(kn_optim_lbfgs, kn_lbfgs_params, show_optim, kn_optim_lbfgs_with(some_parameters(), params),
      kn_optim_lbfgs(some_parameters()))
static kn_parameter_list some_matrix(void)
{
    const kn_parameter_list all = some_parameters();
    return (kn_parameter_list){all.tensors, all.names, 1};
}
CALLS(kn_optim_muon, kn_muon_params, show_optim, kn_optim_muon_with(some_matrix(), params),
      kn_optim_muon(some_matrix()))

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

/* --- random numbers, initialisation, gradients --- */

CALLS(kn_log_normal_, kn_random_params, show_tensor, kn_log_normal_with_(matrix(), 0, 1, params),
      kn_log_normal_(matrix(), 0, 1))
CALLS(kn_exponential_, kn_random_params, show_tensor, kn_exponential_with_(matrix(), 2, params),
      kn_exponential_(matrix(), 2))
CALLS(kn_geometric_, kn_random_params, show_tensor, kn_geometric_with_(matrix(), 0.4, params),
      kn_geometric_(matrix(), 0.4))
CALLS(kn_cauchy_, kn_random_params, show_tensor, kn_cauchy_with_(matrix(), 0, 1, params), kn_cauchy_(matrix(), 0, 1))
CALLS(kn_truncated_normal_, kn_random_params, show_tensor, kn_truncated_normal_with_(matrix(), 0, 1, -1, 2, params),
      kn_truncated_normal_(matrix(), 0, 1, -1, 2))
CALLS(kn_random_, kn_random_params, show_tensor, kn_random_with_(matrix(), 2, 9, params), kn_random_(matrix(), 2, 9))
CALLS(kn_randint_like, kn_random_params, show_tensor, kn_randint_like_with(matrix(), 2, 9, params),
      kn_randint_like(matrix(), 2, 9))
CALLS(kn_init_xavier_normal_, kn_random_params, show_tensor, kn_init_xavier_normal_with_(matrix(), 1, params),
      kn_init_xavier_normal_(matrix(), 1))
CALLS(kn_init_trunc_normal_, kn_random_params, show_tensor, kn_init_trunc_normal_with_(matrix(), 0, 1, -2, 2, params),
      kn_init_trunc_normal_(matrix(), 0, 1, -2, 2))
CALLS(kn_init_orthogonal_, kn_random_params, show_tensor, kn_init_orthogonal_with_(matrix(), 1, params),
      kn_init_orthogonal_(matrix(), 1))
CALLS(kn_init_sparse_, kn_random_params, show_tensor, kn_init_sparse_with_(matrix(), 0.5, 1, params),
      kn_init_sparse_(matrix(), 0.5, 1))
CALLS(kn_init_kaiming_normal_, kn_init_kaiming_params, show_tensor, kn_init_kaiming_normal_with_(matrix(), 0, params),
      kn_init_kaiming_normal_(matrix(), 0))
static kn_tensor *halves(void) { return kn_full(KN_SHAPE(4, 3), 0.5); }
CALLS(kn_normal, kn_random_params, show_tensor, kn_normal_with(matrix(), halves(), params),
      kn_normal(matrix(), halves()))
CALLS(kn_bernoulli, kn_random_params, show_tensor, kn_bernoulli_with(halves(), params), kn_bernoulli(halves()))
CALLS(kn_poisson, kn_random_params, show_tensor, kn_poisson_with(halves(), params), kn_poisson(halves()))
CALLS(kn_binomial, kn_random_params, show_tensor, kn_binomial_with(halves(), halves(), params),
      kn_binomial(halves(), halves()))
CALLS(kn_multinomial, kn_multinomial_params, show_tensor, kn_multinomial_with(halves(), 2, params),
      kn_multinomial(halves(), 2))
static kn_tensor *const *list(void)
{
    static kn_tensor *tensors[1];
    tensors[0] = matrix();
    return tensors;
}
CALLS(kn_get_total_norm, kn_clip_grad_params, show_tensor, kn_get_total_norm_with(list(), 1, params),
      kn_get_total_norm(list(), 1))
static kn_parameter_list with_gradient(void)
{
    static kn_tensor *tensors[1];
    tensors[0] = kn_zeros(KN_SHAPE(4, 3), .requires_grad = true);
    return kn_set_grad(tensors[0], matrix()) == KN_OK ? (kn_parameter_list){tensors, NULL, 1} : (kn_parameter_list){0};
}
CALLS(kn_clip_grad_norm_, kn_clip_grad_params, show_tensor, kn_clip_grad_norm_with_(with_gradient(), 1, params),
      kn_clip_grad_norm_(with_gradient(), 1))
static char *show_scaler(kn_grad_scaler *scaler)
{
    double scale = 0;
    char text[40];
    if (kn_grad_scaler_get_scale(scaler, &scale) != KN_OK)
        return show_error();
    kn_grad_scaler_free(scaler);
    snprintf(text, sizeof text, "%g", scale);
    return strdup(text);
}
static char *show_average(kn_averaged_model *model)
{
    for (int i = 0; i < 2; i++) {
        kn_fill_(kn_averaged_model_parameter(model, 0), i);
        if (kn_averaged_model_update(model) != KN_OK)
            return show_error();
    }
    char *text = show_tensor(kn_averaged_model_parameter(model, 0));
    kn_averaged_model_free(model);
    return text;
}
CALLS(kn_averaged_model_new, kn_averaged_model_params, show_average,
      kn_averaged_model_new_with(some_parameters(), params), kn_averaged_model_new(some_parameters()))
CALLS(kn_grad_scaler_new, kn_grad_scaler_params, show_scaler, kn_grad_scaler_new_with(params), kn_grad_scaler_new())

DEFAULTS(optim_defaults, ROW(kn_log_normal_), ROW(kn_exponential_), ROW(kn_geometric_), ROW(kn_cauchy_),
         ROW(kn_truncated_normal_), ROW(kn_random_), ROW(kn_randint_like), ROW(kn_init_xavier_normal_),
         ROW(kn_init_trunc_normal_), ROW(kn_init_orthogonal_), ROW(kn_init_sparse_), ROW(kn_init_kaiming_normal_),
         ROW(kn_normal), ROW(kn_bernoulli), ROW(kn_poisson), ROW(kn_binomial), ROW(kn_multinomial),
         ROW(kn_get_total_norm), ROW(kn_clip_grad_norm_), ROW(kn_grad_scaler_new), ROW(kn_averaged_model_new),
         ROW(kn_optim_adamw), ROW(kn_optim_rmsprop), ROW(kn_optim_adagrad), ROW(kn_optim_adadelta), ROW(kn_optim_nadam),
         ROW(kn_optim_radam), ROW(kn_optim_adamax), ROW(kn_optim_asgd), ROW(kn_optim_rprop), ROW(kn_optim_lamb),
         ROW(kn_optim_lion), ROW(kn_optim_adafactor), ROW(kn_optim_lbfgs), ROW(kn_optim_muon), ROW(kn_lambda_lr),
         ROW(kn_multiplicative_lr), ROW(kn_exponential_lr), ROW(kn_step_lr), ROW(kn_multi_step_lr), ROW(kn_constant_lr),
         ROW(kn_linear_lr), ROW(kn_polynomial_lr), ROW(kn_cosine_annealing_lr), ROW(kn_cosine_annealing_warm_restarts),
         ROW(kn_cyclic_lr), ROW(kn_one_cycle_lr), ROW(kn_reduce_lr_on_plateau))
