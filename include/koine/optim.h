/* koine/optim.h - optimizers. One step updates all parameters in few launches, without waiting for the device.
 *
 * An optimizer keeps references to its parameters; parameters without a gradient are not changed. Formulas and defaults
 * are PyTorch's (torch.optim). Parameters are floating; state has their device and, except for float16 and bfloat16,
 * their dtype: for these it is float32, in which steps are computed.
 *
 * Options of all optimizers:
 * - maximize: false; true: ascends instead of descending.
 * - master_weights: false; true: for float16 and bfloat16 parameters the optimizer keeps float32 copies, which its
 *   steps change, and of which the parameters are the roundings. They are taken from the parameters when state is
 *   first made (the first step): loading other weights into a module later needs a new optimizer, or kn_optim_load. */
#ifndef KOINE_OPTIM_H
#define KOINE_OPTIM_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- the optimizers ----------------------------------------------------------------------------------------------- */

typedef struct kn_sgd_params {
    double lr;           /* default 1e-3 */
    double momentum;     /* default 0 */
    double dampening;    /* default 0 */
    double weight_decay; /* default 0: an L2 penalty added to the gradient */
    bool nesterov;       /* default false; needs momentum > 0 and no dampening */
    bool maximize, master_weights;
} kn_sgd_params;
#define KN_SGD_DEFAULTS .lr = 1e-3
KN_API kn_sgd_params kn_sgd_params_init(void);
KN_API kn_optim *kn_optim_sgd_with(kn_parameter_list parameters, const kn_sgd_params *params);
#define kn_optim_sgd(parameters, ...)                                                                                  \
    KN_CALL(kn_optim_sgd_with(parameters, &(kn_sgd_params){KN_SGD_DEFAULTS, __VA_ARGS__}))

/* Kingma and Ba, "Adam" (2015): bias-corrected moments, eps outside the root. */
typedef struct kn_adam_params {
    double lr;           /* default 1e-3 */
    double beta1, beta2; /* default 0.9, 0.999 */
    double eps;          /* default 1e-8 */
    double weight_decay; /* default 0 (AdamW: 0.01) */
    bool amsgrad;        /* default false */
    bool maximize, master_weights;
    bool decoupled_weight_decay; /* default false: an L2 penalty added to the gradient (AdamW: true) */
} kn_adam_params;
#define KN_ADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
KN_API kn_adam_params kn_adam_params_init(void);
KN_API kn_optim *kn_optim_adam_with(kn_parameter_list parameters, const kn_adam_params *params);
#define kn_optim_adam(parameters, ...)                                                                                 \
    KN_CALL(kn_optim_adam_with(parameters, &(kn_adam_params){KN_ADAM_DEFAULTS, __VA_ARGS__}))

/* Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019): p *= 1 - lr weight_decay before Adam's
 * step. */
typedef kn_adam_params kn_adamw_params;
#define KN_ADAMW_DEFAULTS KN_ADAM_DEFAULTS, .weight_decay = 1e-2, .decoupled_weight_decay = true
KN_API kn_adamw_params kn_adamw_params_init(void);
KN_API kn_optim *kn_optim_adamw_with(kn_parameter_list parameters, const kn_adamw_params *params);
#define kn_optim_adamw(parameters, ...)                                                                                \
    KN_CALL(kn_optim_adamw_with(parameters, &(kn_adamw_params){KN_ADAMW_DEFAULTS, __VA_ARGS__}))

/* Hinton's lecture; centered: Graves, "Generating Sequences With Recurrent Neural Networks" (2013). */
typedef struct kn_rmsprop_params {
    double lr;           /* default 1e-2 */
    double alpha;        /* default 0.99 */
    double eps;          /* default 1e-8 */
    double weight_decay; /* default 0: an L2 penalty added to the gradient */
    double momentum;     /* default 0 */
    bool centered;       /* default false; true: divides by an estimate of the variance */
    bool maximize, master_weights;
} kn_rmsprop_params;
#define KN_RMSPROP_DEFAULTS .lr = 1e-2, .alpha = 0.99, .eps = 1e-8
KN_API kn_rmsprop_params kn_rmsprop_params_init(void);
KN_API kn_optim *kn_optim_rmsprop_with(kn_parameter_list parameters, const kn_rmsprop_params *params);
#define kn_optim_rmsprop(parameters, ...)                                                                              \
    KN_CALL(kn_optim_rmsprop_with(parameters, &(kn_rmsprop_params){KN_RMSPROP_DEFAULTS, __VA_ARGS__}))

/* Duchi et al., "Adaptive Subgradient Methods" (2011). */
typedef struct kn_adagrad_params {
    double lr;                        /* default 1e-2 */
    double lr_decay;                  /* default 0: step t has lr / (1 + (t - 1) lr_decay) */
    double weight_decay;              /* default 0: an L2 penalty added to the gradient */
    double initial_accumulator_value; /* default 0: of the sum of squares */
    double eps;                       /* default 1e-10 */
    bool maximize, master_weights;
} kn_adagrad_params;
#define KN_ADAGRAD_DEFAULTS .lr = 1e-2, .eps = 1e-10
KN_API kn_adagrad_params kn_adagrad_params_init(void);
KN_API kn_optim *kn_optim_adagrad_with(kn_parameter_list parameters, const kn_adagrad_params *params);
#define kn_optim_adagrad(parameters, ...)                                                                              \
    KN_CALL(kn_optim_adagrad_with(parameters, &(kn_adagrad_params){KN_ADAGRAD_DEFAULTS, __VA_ARGS__}))

/* Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012). */
typedef struct kn_adadelta_params {
    double lr;           /* default 1 */
    double rho;          /* default 0.9 */
    double eps;          /* default 1e-6 */
    double weight_decay; /* default 0: an L2 penalty added to the gradient */
    bool maximize, master_weights;
} kn_adadelta_params;
#define KN_ADADELTA_DEFAULTS .lr = 1, .rho = 0.9, .eps = 1e-6
KN_API kn_adadelta_params kn_adadelta_params_init(void);
KN_API kn_optim *kn_optim_adadelta_with(kn_parameter_list parameters, const kn_adadelta_params *params);
#define kn_optim_adadelta(parameters, ...)                                                                             \
    KN_CALL(kn_optim_adadelta_with(parameters, &(kn_adadelta_params){KN_ADADELTA_DEFAULTS, __VA_ARGS__}))

/* Dozat, "Incorporating Nesterov Momentum into Adam" (2016). */
typedef struct kn_nadam_params {
    double lr;                   /* default 2e-3 */
    double beta1, beta2;         /* default 0.9, 0.999 */
    double eps;                  /* default 1e-8 */
    double weight_decay;         /* default 0 */
    double momentum_decay;       /* default 4e-3 */
    bool decoupled_weight_decay; /* default false: an L2 penalty added to the gradient; true: as in AdamW */
    bool maximize, master_weights;
} kn_nadam_params;
#define KN_NADAM_DEFAULTS .lr = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum_decay = 4e-3
KN_API kn_nadam_params kn_nadam_params_init(void);
KN_API kn_optim *kn_optim_nadam_with(kn_parameter_list parameters, const kn_nadam_params *params);
#define kn_optim_nadam(parameters, ...)                                                                                \
    KN_CALL(kn_optim_nadam_with(parameters, &(kn_nadam_params){KN_NADAM_DEFAULTS, __VA_ARGS__}))

/* Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond" (2020). */
typedef struct kn_radam_params {
    double lr;                   /* default 1e-3 */
    double beta1, beta2;         /* default 0.9, 0.999 */
    double eps;                  /* default 1e-8 */
    double weight_decay;         /* default 0 */
    bool decoupled_weight_decay; /* default false: an L2 penalty added to the gradient; true: as in AdamW */
    bool maximize, master_weights;
} kn_radam_params;
#define KN_RADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
KN_API kn_radam_params kn_radam_params_init(void);
KN_API kn_optim *kn_optim_radam_with(kn_parameter_list parameters, const kn_radam_params *params);
#define kn_optim_radam(parameters, ...)                                                                                \
    KN_CALL(kn_optim_radam_with(parameters, &(kn_radam_params){KN_RADAM_DEFAULTS, __VA_ARGS__}))

/* Kingma and Ba, "Adam" (2015), section 7.1: the infinity norm in place of the second moment. */
typedef struct kn_adamax_params {
    double lr;           /* default 2e-3 */
    double beta1, beta2; /* default 0.9, 0.999 */
    double eps;          /* default 1e-8 */
    double weight_decay; /* default 0: an L2 penalty added to the gradient */
    bool maximize, master_weights;
} kn_adamax_params;
#define KN_ADAMAX_DEFAULTS .lr = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
KN_API kn_adamax_params kn_adamax_params_init(void);
KN_API kn_optim *kn_optim_adamax_with(kn_parameter_list parameters, const kn_adamax_params *params);
#define kn_optim_adamax(parameters, ...)                                                                               \
    KN_CALL(kn_optim_adamax_with(parameters, &(kn_adamax_params){KN_ADAMAX_DEFAULTS, __VA_ARGS__}))

/* Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992): the state "ax" is the average of
 * the parameters. */
typedef struct kn_asgd_params {
    double lr;           /* default 1e-2 */
    double lambd;        /* default 1e-4 */
    double alpha;        /* default 0.75 */
    double t0;           /* default 1e6: the step at which averaging starts */
    double weight_decay; /* default 0: an L2 penalty added to the gradient */
    bool maximize, master_weights;
} kn_asgd_params;
#define KN_ASGD_DEFAULTS .lr = 1e-2, .lambd = 1e-4, .alpha = 0.75, .t0 = 1e6
KN_API kn_asgd_params kn_asgd_params_init(void);
KN_API kn_optim *kn_optim_asgd_with(kn_parameter_list parameters, const kn_asgd_params *params);
#define kn_optim_asgd(parameters, ...)                                                                                 \
    KN_CALL(kn_optim_asgd_with(parameters, &(kn_asgd_params){KN_ASGD_DEFAULTS, __VA_ARGS__}))

/* Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993), for full batches. */
typedef struct kn_rprop_params {
    double lr;                           /* default 1e-2: the first step size */
    double etaminus, etaplus;            /* default 0.5, 1.2: factors of the step size */
    double step_size_min, step_size_max; /* default 1e-6, 50 */
    bool maximize, master_weights;
} kn_rprop_params;
#define KN_RPROP_DEFAULTS .lr = 1e-2, .etaminus = 0.5, .etaplus = 1.2, .step_size_min = 1e-6, .step_size_max = 50
KN_API kn_rprop_params kn_rprop_params_init(void);
KN_API kn_optim *kn_optim_rprop_with(kn_parameter_list parameters, const kn_rprop_params *params);
#define kn_optim_rprop(parameters, ...)                                                                                \
    KN_CALL(kn_optim_rprop_with(parameters, &(kn_rprop_params){KN_RPROP_DEFAULTS, __VA_ARGS__}))

/* You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes" (2020), algorithm 2: Adam's
 * direction with weight decay, scaled for each parameter to |p| / |direction| (1 if either is 0). */
typedef struct kn_lamb_params {
    double lr;            /* default 1e-3 */
    double beta1, beta2;  /* default 0.9, 0.999 */
    double eps;           /* default 1e-6 */
    double weight_decay;  /* default 0: added to the direction */
    bool bias_correction; /* default true */
    bool maximize, master_weights;
} kn_lamb_params;
#define KN_LAMB_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .bias_correction = true
KN_API kn_lamb_params kn_lamb_params_init(void);
KN_API kn_optim *kn_optim_lamb_with(kn_parameter_list parameters, const kn_lamb_params *params);
#define kn_optim_lamb(parameters, ...)                                                                                 \
    KN_CALL(kn_optim_lamb_with(parameters, &(kn_lamb_params){KN_LAMB_DEFAULTS, __VA_ARGS__}))

/* Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023): the sign of an interpolated momentum. */
typedef struct kn_lion_params {
    double lr;           /* default 1e-4 */
    double beta1, beta2; /* default 0.9, 0.99 */
    double weight_decay; /* default 0: decoupled, as in AdamW */
    bool maximize, master_weights;
} kn_lion_params;
#define KN_LION_DEFAULTS .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99
KN_API kn_lion_params kn_lion_params_init(void);
KN_API kn_optim *kn_optim_lion_with(kn_parameter_list parameters, const kn_lion_params *params);
#define kn_optim_lion(parameters, ...)                                                                                 \
    KN_CALL(kn_optim_lion_with(parameters, &(kn_lion_params){KN_LION_DEFAULTS, __VA_ARGS__}))

/* --- all of them -------------------------------------------------------------------------------------------------- */

KN_API void kn_optim_free(kn_optim *optim); /* NULL allowed */
KN_API kn_status kn_optim_step(kn_optim *optim);
KN_API void kn_optim_zero_grad(kn_optim *optim); /* drops the parameters' gradients */

/* The learning rate of the first group / sets that of every group. */
KN_API double kn_optim_lr(const kn_optim *optim);
KN_API kn_status kn_optim_set_lr(kn_optim *optim, double lr);

/* --- groups ------------------------------------------------------------------------------------------------------- *
 * Parameters with hyperparameters of their own (PyTorch's param_groups). An optimizer is made with group 0; a further
 * one has the hyperparameters that the optimizer was made with, except those given:
 *
 *     kn_optim *optim = kn_optim_adamw(weights, .lr = 1e-3);
 *     kn_optim_add_group(optim, biases, {"weight_decay", 0}, {"lr", 2e-3});
 *
 * Names are those of the parameter structs: "lr", "beta1", "amsgrad" (0 or 1), ... */
typedef struct kn_optim_option {
    const char *name;
    double value;
} kn_optim_option;
#define KN_OPTIM_MAX_OPTIONS 16
/* `options` ends with a NULL name, those with the name "" are skipped; NULL: none. */
KN_API kn_status kn_optim_add_group_with(kn_optim *optim, kn_parameter_list parameters, const kn_optim_option *options);
#define kn_optim_add_group(optim, parameters, ...)                                                                     \
    kn_optim_add_group_with(optim, parameters, (const kn_optim_option[KN_OPTIM_MAX_OPTIONS + 2]){{"", 0}, __VA_ARGS__})
/* An optimizer by its name, PyTorch's ("AdamW"), with options in place of some defaults: kn_optim_named("SGD", list,
 * {"lr", 0.1}, {"momentum", 0.9}). */
KN_API kn_optim *kn_optim_named_with(const char *name, kn_parameter_list parameters, const kn_optim_option *options);
#define kn_optim_named(name, parameters, ...)                                                                          \
    kn_optim_named_with(name, parameters, (const kn_optim_option[KN_OPTIM_MAX_OPTIONS + 2]){{"", 0}, __VA_ARGS__})
KN_API int kn_optim_num_groups(const kn_optim *optim);
/* Borrowed, without names; valid until a group is added. Empty if there is no such group. */
KN_API kn_parameter_list kn_optim_group_parameters(const kn_optim *optim, int group);
/* Reads or sets a hyperparameter of a group. Setting one that needs other state, such as amsgrad, is KN_ERR_STATE.
 * "initial_lr" is what schedules have noted (NaN: nothing). */
KN_API kn_status kn_optim_get(const kn_optim *optim, int group, const char *name, double *value);
KN_API kn_status kn_optim_set(kn_optim *optim, int group, const char *name, double value);

/* --- files -------------------------------------------------------------------------------------------------------- *
 * Saves and restores state and hyperparameters as a safetensors file in the form of PyTorch's state_dict: tensors
 * "state.INDEX.NAME" ("state.0.exp_avg", "state.0.step"), and the metadata "param_groups", which is JSON. docs/optim.md
 * shows how Python reads and writes it. Parameters are numbered from 0, group after group; those that had no step have
 * no state. Loading requires the same kind of optimizer, groups of the same sizes, and the same shapes; a failure
 * changes nothing. Files of earlier versions ("step", "hyperparameters", "exp_avg.0", ...) can be loaded. */
KN_API kn_status kn_optim_save(kn_optim *optim, const char *path);
KN_API kn_status kn_optim_load(kn_optim *optim, const char *path);

KN_END_DECLS

#endif
