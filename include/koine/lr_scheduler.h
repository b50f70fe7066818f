/* koine/lr_scheduler.h - learning rate schedules: torch.optim.lr_scheduler, with its formulas, in float64.
 *
 * A schedule sets the learning rates of all groups of an optimizer, first when it is made, which is its epoch 0, and
 * then with each kn_lr_scheduler_step, after an epoch or after a step, as the program likes:
 *
 *     kn_lr_scheduler *schedule = kn_cosine_annealing_lr(optim, 100);
 *     for (...) {
 *         train_epoch(...);
 *         kn_lr_scheduler_step(schedule);
 *     }
 *
 * As in PyTorch, most compute the next learning rate from the current one, so that several schedules of one optimizer
 * may be chained and the program may change it in between. The base learning rates are those of the groups when the
 * optimizer's first schedule was made ("initial_lr", koine/optim.h).
 *
 * A schedule borrows its optimizer, which must outlive it, and must not get further groups. Constructors return NULL
 * with a sticky error. last_epoch: default -1, a new schedule; otherwise one that continues after this epoch, which
 * needs the initial_lr of a loaded optimizer. */
#ifndef KOINE_LR_SCHEDULER_H
#define KOINE_LR_SCHEDULER_H

#include <koine/common.h>
#include <koine/optim.h>

KN_BEGIN_DECLS

typedef struct kn_lr_scheduler kn_lr_scheduler;

KN_API void kn_lr_scheduler_free(kn_lr_scheduler *scheduler); /* NULL allowed */
KN_API kn_status kn_lr_scheduler_step(kn_lr_scheduler *scheduler);
/* To this epoch, 0 or more, forward or back, by the formula of the epoch where there is one. With warm restarts it may
 * have a fraction, as in a loop over batches: epoch + batch / batches. Not for schedules that need a metric, and for
 * several in one. */
KN_API kn_status kn_lr_scheduler_step_to(kn_lr_scheduler *scheduler, double epoch);
/* For kn_reduce_lr_on_plateau, which needs the monitored value. */
KN_API kn_status kn_lr_scheduler_step_metric(kn_lr_scheduler *scheduler, double metric);
KN_API bool kn_lr_scheduler_takes_metric(const kn_lr_scheduler *scheduler);
KN_API int64_t kn_lr_scheduler_last_epoch(const kn_lr_scheduler *scheduler);
/* The learning rate that it set last for this group; NaN if there is no such group. */
KN_API double kn_lr_scheduler_last_lr(const kn_lr_scheduler *scheduler, int group);

/* Saves and restores the state, without the parameters, which must be the same: a resumed schedule gives the same bits.
 * The optimizer's learning rates are part of the optimizer's own state. */
KN_API kn_status kn_lr_scheduler_save(const kn_lr_scheduler *scheduler, const char *path);
KN_API kn_status kn_lr_scheduler_load(kn_lr_scheduler *scheduler, const char *path);

/* --- schedules without further options ---------------------------------------------------------------------------- */

typedef struct kn_lr_params {
    int64_t last_epoch; /* default -1 */
} kn_lr_params;
#define KN_LR_DEFAULTS .last_epoch = -1
KN_API kn_lr_params kn_lr_params_init(void);

/* LambdaLR: base_lr lambda(epoch, group) / MultiplicativeLR: lr lambda(epoch, group), from epoch 1. */
typedef double (*kn_lr_lambda)(int64_t epoch, int group, void *user);
KN_API kn_lr_scheduler *kn_lambda_lr_with(kn_optim *optim, kn_lr_lambda lambda, void *user, const kn_lr_params *params);
KN_API kn_lr_scheduler *kn_multiplicative_lr_with(kn_optim *optim, kn_lr_lambda lambda, void *user,
                                                  const kn_lr_params *params);
#define kn_lambda_lr(optim, lambda, user, ...)                                                                         \
    KN_CALL(kn_lambda_lr_with(optim, lambda, user, &(kn_lr_params){KN_LR_DEFAULTS, __VA_ARGS__}))
#define kn_multiplicative_lr(optim, lambda, user, ...)                                                                 \
    KN_CALL(kn_multiplicative_lr_with(optim, lambda, user, &(kn_lr_params){KN_LR_DEFAULTS, __VA_ARGS__}))

/* ExponentialLR: base_lr gamma^epoch. */
KN_API kn_lr_scheduler *kn_exponential_lr_with(kn_optim *optim, double gamma, const kn_lr_params *params);
#define kn_exponential_lr(optim, gamma, ...)                                                                           \
    KN_CALL(kn_exponential_lr_with(optim, gamma, &(kn_lr_params){KN_LR_DEFAULTS, __VA_ARGS__}))

/* --- steps -------------------------------------------------------------------------------------------------------- */

typedef struct kn_step_lr_params {
    double gamma;       /* default 0.1 */
    int64_t last_epoch; /* default -1 */
} kn_step_lr_params;
#define KN_STEP_LR_DEFAULTS .gamma = 0.1, .last_epoch = -1
KN_API kn_step_lr_params kn_step_lr_params_init(void);

/* StepLR: times gamma every `step_size` epochs / MultiStepLR: at each of `count` milestones (copied), of which equal
 * ones count several times. */
KN_API kn_lr_scheduler *kn_step_lr_with(kn_optim *optim, int64_t step_size, const kn_step_lr_params *params);
KN_API kn_lr_scheduler *kn_multi_step_lr_with(kn_optim *optim, const int64_t *milestones, int count,
                                              const kn_step_lr_params *params);
#define kn_step_lr(optim, step_size, ...)                                                                              \
    KN_CALL(kn_step_lr_with(optim, step_size, &(kn_step_lr_params){KN_STEP_LR_DEFAULTS, __VA_ARGS__}))
#define kn_multi_step_lr(optim, milestones, count, ...)                                                                \
    KN_CALL(kn_multi_step_lr_with(optim, milestones, count, &(kn_step_lr_params){KN_STEP_LR_DEFAULTS, __VA_ARGS__}))

typedef struct kn_constant_lr_params {
    double factor;       /* default 1/3; from 0 to 1 */
    int64_t total_iters; /* default 5 */
    int64_t last_epoch;  /* default -1 */
} kn_constant_lr_params;
#define KN_CONSTANT_LR_DEFAULTS .factor = 1.0 / 3, .total_iters = 5, .last_epoch = -1
KN_API kn_constant_lr_params kn_constant_lr_params_init(void);
/* ConstantLR: base_lr factor until epoch total_iters, base_lr from then on. */
KN_API kn_lr_scheduler *kn_constant_lr_with(kn_optim *optim, const kn_constant_lr_params *params);
#define kn_constant_lr(optim, ...)                                                                                     \
    KN_CALL(kn_constant_lr_with(optim, &(kn_constant_lr_params){KN_CONSTANT_LR_DEFAULTS, __VA_ARGS__}))

/* --- lines and curves --------------------------------------------------------------------------------------------- */

typedef struct kn_linear_lr_params {
    double start_factor; /* default 1/3; above 0, at most 1 */
    double end_factor;   /* default 1; from 0 to 1 */
    int64_t total_iters; /* default 5 */
    int64_t last_epoch;  /* default -1 */
} kn_linear_lr_params;
#define KN_LINEAR_LR_DEFAULTS .start_factor = 1.0 / 3, .end_factor = 1, .total_iters = 5, .last_epoch = -1
KN_API kn_linear_lr_params kn_linear_lr_params_init(void);
/* LinearLR: base_lr times a factor that goes from start_factor to end_factor in total_iters epochs. */
KN_API kn_lr_scheduler *kn_linear_lr_with(kn_optim *optim, const kn_linear_lr_params *params);
#define kn_linear_lr(optim, ...)                                                                                       \
    KN_CALL(kn_linear_lr_with(optim, &(kn_linear_lr_params){KN_LINEAR_LR_DEFAULTS, __VA_ARGS__}))

typedef struct kn_polynomial_lr_params {
    int64_t total_iters; /* default 5 */
    double power;        /* default 1 */
    int64_t last_epoch;  /* default -1 */
} kn_polynomial_lr_params;
#define KN_POLYNOMIAL_LR_DEFAULTS .total_iters = 5, .power = 1, .last_epoch = -1
KN_API kn_polynomial_lr_params kn_polynomial_lr_params_init(void);
/* PolynomialLR: base_lr (1 - epoch / total_iters)^power, 0 after total_iters epochs. */
KN_API kn_lr_scheduler *kn_polynomial_lr_with(kn_optim *optim, const kn_polynomial_lr_params *params);
#define kn_polynomial_lr(optim, ...)                                                                                   \
    KN_CALL(kn_polynomial_lr_with(optim, &(kn_polynomial_lr_params){KN_POLYNOMIAL_LR_DEFAULTS, __VA_ARGS__}))

typedef struct kn_cosine_annealing_lr_params {
    double eta_min;     /* default 0 */
    int64_t last_epoch; /* default -1 */
} kn_cosine_annealing_lr_params;
#define KN_COSINE_ANNEALING_LR_DEFAULTS .eta_min = 0, .last_epoch = -1
KN_API kn_cosine_annealing_lr_params kn_cosine_annealing_lr_params_init(void);
/* CosineAnnealingLR (Loshchilov and Hutter, "SGDR", 2017, without restarts): eta_min + (base_lr - eta_min) (1 + cos(pi
 * epoch / t_max)) / 2. */
KN_API kn_lr_scheduler *kn_cosine_annealing_lr_with(kn_optim *optim, int64_t t_max,
                                                    const kn_cosine_annealing_lr_params *params);
#define kn_cosine_annealing_lr(optim, t_max, ...)                                                                      \
    KN_CALL(kn_cosine_annealing_lr_with(                                                                               \
        optim, t_max, &(kn_cosine_annealing_lr_params){KN_COSINE_ANNEALING_LR_DEFAULTS, __VA_ARGS__}))

typedef struct kn_cosine_annealing_warm_restarts_params {
    int64_t T_mult;     /* default 1; 1 or more: factor of the length after each restart */
    double eta_min;     /* default 0 */
    int64_t last_epoch; /* default -1 */
} kn_cosine_annealing_warm_restarts_params;
#define KN_COSINE_ANNEALING_WARM_RESTARTS_DEFAULTS .T_mult = 1, .last_epoch = -1
KN_API kn_cosine_annealing_warm_restarts_params kn_cosine_annealing_warm_restarts_params_init(void);
/* CosineAnnealingWarmRestarts (Loshchilov and Hutter, "SGDR", 2017): the same curve over t_0 epochs, then from the
 * start. */
KN_API kn_lr_scheduler *kn_cosine_annealing_warm_restarts_with(kn_optim *optim, int64_t t_0,
                                                               const kn_cosine_annealing_warm_restarts_params *params);
#define kn_cosine_annealing_warm_restarts(optim, t_0, ...)                                                             \
    KN_CALL(kn_cosine_annealing_warm_restarts_with(                                                                    \
        optim, t_0,                                                                                                    \
        &(kn_cosine_annealing_warm_restarts_params){KN_COSINE_ANNEALING_WARM_RESTARTS_DEFAULTS, __VA_ARGS__}))

/* --- cycles ------------------------------------------------------------------------------------------------------- */

typedef enum kn_cyclic_mode { KN_TRIANGULAR = 0, KN_TRIANGULAR2, KN_EXP_RANGE } kn_cyclic_mode;
typedef enum kn_cyclic_scale_mode { KN_SCALE_CYCLE = 0, KN_SCALE_ITERATIONS } kn_cyclic_scale_mode;
typedef struct kn_cyclic_lr_params {
    int64_t step_size_up;                     /* default 2000 */
    int64_t step_size_down;                   /* default 0: step_size_up */
    kn_cyclic_mode mode;                      /* default triangular; ignored with scale_fn */
    double gamma;                             /* default 1: of KN_EXP_RANGE */
    double (*scale_fn)(double x, void *user); /* default NULL; of the cycle, from 1, or of the iteration: scale_mode */
    void *scale_user;
    kn_cyclic_scale_mode scale_mode;    /* default cycle; with scale_fn only */
    bool cycle_momentum;                /* default true: momentum or beta1 goes the other way */
    double base_momentum, max_momentum; /* default 0.8, 0.9 */
    const double *base_lrs, *max_lrs;   /* default NULL; one number for each group, in place of the arguments */
    int64_t last_epoch;                 /* default -1 */
} kn_cyclic_lr_params;
#define KN_CYCLIC_LR_DEFAULTS                                                                                          \
    .step_size_up = 2000, .gamma = 1, .cycle_momentum = true, .base_momentum = 0.8, .max_momentum = 0.9,               \
    .last_epoch = -1
KN_API kn_cyclic_lr_params kn_cyclic_lr_params_init(void);
/* CyclicLR (Smith, "Cyclical Learning Rates for Training Neural Networks", 2017): from base_lr to max_lr and back. */
KN_API kn_lr_scheduler *kn_cyclic_lr_with(kn_optim *optim, double base_lr, double max_lr,
                                          const kn_cyclic_lr_params *params);
#define kn_cyclic_lr(optim, base_lr, max_lr, ...)                                                                      \
    KN_CALL(kn_cyclic_lr_with(optim, base_lr, max_lr, &(kn_cyclic_lr_params){KN_CYCLIC_LR_DEFAULTS, __VA_ARGS__}))

typedef struct kn_one_cycle_lr_params {
    double pct_start;                   /* default 0.3: the part of the steps that increases */
    bool anneal_linearly;               /* default false: anneal_strategy 'cos'; true: 'linear' */
    bool cycle_momentum;                /* default true: momentum or beta1 goes the other way */
    double base_momentum, max_momentum; /* default 0.85, 0.95 */
    double div_factor;                  /* default 25: the first learning rate is max_lr / div_factor */
    double final_div_factor;            /* default 1e4: the last is the first / final_div_factor */
    bool three_phase;                   /* default false; true: down to the first as it came up, then to the last */
    const double *max_lrs;              /* default NULL; one number for each group, in place of max_lr */
    int64_t last_epoch;                 /* default -1 */
} kn_one_cycle_lr_params;
#define KN_ONE_CYCLE_LR_DEFAULTS                                                                                       \
    .pct_start = 0.3, .cycle_momentum = true, .base_momentum = 0.85, .max_momentum = 0.95, .div_factor = 25,           \
    .final_div_factor = 1e4, .last_epoch = -1
KN_API kn_one_cycle_lr_params kn_one_cycle_lr_params_init(void);
/* OneCycleLR (Smith and Topin, "Super-Convergence", 2018) over `total_steps` steps; one more is KN_ERR_STATE. */
KN_API kn_lr_scheduler *kn_one_cycle_lr_with(kn_optim *optim, double max_lr, int64_t total_steps,
                                             const kn_one_cycle_lr_params *params);
#define kn_one_cycle_lr(optim, max_lr, total_steps, ...)                                                               \
    KN_CALL(kn_one_cycle_lr_with(optim, max_lr, total_steps,                                                           \
                                 &(kn_one_cycle_lr_params){KN_ONE_CYCLE_LR_DEFAULTS, __VA_ARGS__}))

/* --- by a metric -------------------------------------------------------------------------------------------------- */

typedef struct kn_reduce_lr_on_plateau_params {
    bool mode_max;         /* default false: the metric should fall; true: rise */
    double factor;         /* default 0.1; below 1 */
    int64_t patience;      /* default 10: epochs without improvement that are tolerated */
    double threshold;      /* default 1e-4 */
    bool absolute;         /* default false: threshold_mode 'rel', relative to the best value; true: 'abs' */
    int64_t cooldown;      /* default 0: epochs after a reduction that do not count */
    double min_lr;         /* default 0 */
    const double *min_lrs; /* default NULL; one number for each group, in place of min_lr */
    double eps;            /* default 1e-8: smaller changes are not made */
} kn_reduce_lr_on_plateau_params;
#define KN_REDUCE_LR_ON_PLATEAU_DEFAULTS .factor = 0.1, .patience = 10, .threshold = 1e-4, .eps = 1e-8
KN_API kn_reduce_lr_on_plateau_params kn_reduce_lr_on_plateau_params_init(void);
/* ReduceLROnPlateau: times factor when the metric has stopped improving. */
KN_API kn_lr_scheduler *kn_reduce_lr_on_plateau_with(kn_optim *optim, const kn_reduce_lr_on_plateau_params *params);
#define kn_reduce_lr_on_plateau(optim, ...)                                                                            \
    KN_CALL(kn_reduce_lr_on_plateau_with(                                                                              \
        optim, &(kn_reduce_lr_on_plateau_params){KN_REDUCE_LR_ON_PLATEAU_DEFAULTS, __VA_ARGS__}))

/* --- of several --------------------------------------------------------------------------------------------------- *
 * They take over their schedules, on failure too; all must be different ones of one optimizer, none a
 * kn_reduce_lr_on_plateau. */

/* SequentialLR: one after the other; schedule i + 1 starts at epoch milestones[i]. */
KN_API kn_lr_scheduler *kn_sequential_lr(kn_optim *optim, kn_lr_scheduler *const *schedulers, int count,
                                         const int64_t *milestones);
/* ChainedScheduler: all in each epoch. */
KN_API kn_lr_scheduler *kn_chained_scheduler(kn_lr_scheduler *const *schedulers, int count);

KN_END_DECLS

#endif
