/* koine/optim.h - optimizers. One step updates all parameters in few launches, without waiting for the device (except
 * LBFGS; Muon and Adafactor need some launches for each matrix).
 *
 * An optimizer keeps references to its parameters; parameters without a gradient are not changed. Formulas and defaults
 * are PyTorch's (torch.optim). Parameters are floating; state has their device and, except for float16 and bfloat16,
 * their dtype: for these it is float32, in which steps are computed.
 *
 * Options of all optimizers (LBFGS has no master_weights):
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

/* Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost" (2018). The second moment of a
 * matrix [..., m, n] is kept as its means over rows and over columns, "row_var" [..., m, 1] and "col_var" [..., 1, n];
 * that of other parameters whole, "variance". As in PyTorch, eps1 bounds the estimate instead of being added to it. */
typedef struct kn_adafactor_params {
    double lr;           /* default 1e-2: the largest relative step size, and the factor of the weight decay */
    double beta2_decay;  /* default -0.8; 0 or less: step t has beta2 = 1 - t^beta2_decay */
    double eps1;         /* default -1: the parameter dtype's machine epsilon (None in PyTorch); else 0 or more */
    double eps2;         /* default 1e-3: the least root mean square of a parameter, to which steps are relative */
    double d;            /* default 1; at least 1: updates of a larger root mean square are scaled down to it */
    double weight_decay; /* default 0: decoupled, as in AdamW */
    bool maximize, master_weights;
} kn_adafactor_params;
#define KN_ADAFACTOR_DEFAULTS .lr = 1e-2, .beta2_decay = -0.8, .eps1 = -1, .eps2 = 1e-3, .d = 1
KN_API kn_adafactor_params kn_adafactor_params_init(void);
KN_API kn_optim *kn_optim_adafactor_with(kn_parameter_list parameters, const kn_adafactor_params *params);
#define kn_optim_adafactor(parameters, ...)                                                                            \
    KN_CALL(kn_optim_adafactor_with(parameters, &(kn_adafactor_params){KN_ADAFACTOR_DEFAULTS, __VA_ARGS__}))

/* Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024): the momentum of a matrix is replaced
 * by a nearly orthogonal one, by a Newton-Schulz iteration in bfloat16. All parameters are matrices (else
 * KN_ERR_SHAPE); biases, embeddings and the last layer are for another optimizer, such as AdamW. */
typedef enum kn_muon_adjust_lr {                            /* the factor of lr for a matrix [a, b] */
                                 KN_MUON_DEFAULT,           /* as KN_MUON_ORIGINAL */
                                 KN_MUON_ORIGINAL,          /* sqrt(max(1, a / b)) */
                                 KN_MUON_MATCH_RMS_ADAMW,   /* 0.2 sqrt(max(a, b)) */
                                 KN_MUON_SPECTRAL_UNCLAMPED /* sqrt(a / b) */
} kn_muon_adjust_lr;
typedef struct kn_muon_params {
    double lr;               /* default 1e-3 */
    double weight_decay;     /* default 0.1: decoupled, as in AdamW */
    double momentum;         /* default 0.95 */
    bool nesterov;           /* default true */
    double ns_a, ns_b, ns_c; /* default 3.4445, -4.775, 2.0315: the iteration x = a x + (b g + c g g) x, g = x x^T */
    double eps;              /* default 1e-7: the least norm to divide by before it */
    int ns_steps;            /* default 5; below 100 */
    kn_muon_adjust_lr adjust_lr_fn;
    bool maximize, master_weights;
} kn_muon_params;
#define KN_MUON_DEFAULTS                                                                                               \
    .lr = 1e-3, .weight_decay = 0.1, .momentum = 0.95, .nesterov = true, .ns_a = 3.4445, .ns_b = -4.775,               \
    .ns_c = 2.0315, .eps = 1e-7, .ns_steps = 5
KN_API kn_muon_params kn_muon_params_init(void);
KN_API kn_optim *kn_optim_muon_with(kn_parameter_list parameters, const kn_muon_params *params);
#define kn_optim_muon(parameters, ...)                                                                                 \
    KN_CALL(kn_optim_muon_with(parameters, &(kn_muon_params){KN_MUON_DEFAULTS, __VA_ARGS__}))

/* Nocedal and Wright, "Numerical Optimization" (2006), algorithms 7.4 and 3.5: a quasi-Newton method, for full batches.
 * A step evaluates the loss several times: it is made with kn_optim_step_closure. One group of parameters, on one
 * device; the history takes 2 history_size times the memory of the parameters. Steps wait for the device, and graphs
 * cannot record them (KN_ERR_STATE). */
typedef enum kn_lbfgs_line_search { KN_LBFGS_FIXED_STEP, KN_LBFGS_STRONG_WOLFE } kn_lbfgs_line_search;
typedef struct kn_lbfgs_params {
    double lr;               /* default 1: the length of a move in directions, or the search's first guess */
    int max_iter;            /* default 20: moves of a step */
    int max_eval;            /* default 0: 5 max_iter / 4; evaluations of the loss in a step */
    double tolerance_grad;   /* default 1e-7: the largest gradient at which a step ends */
    double tolerance_change; /* default 1e-9: the change of the loss or of the parameters likewise */
    int history_size;        /* default 100; at least 1 */
    kn_lbfgs_line_search line_search_fn; /* default KN_LBFGS_FIXED_STEP, PyTorch's None */
    bool maximize;                       /* default false; there are no master weights */
} kn_lbfgs_params;
#define KN_LBFGS_DEFAULTS .lr = 1, .max_iter = 20, .tolerance_grad = 1e-7, .tolerance_change = 1e-9, .history_size = 100
KN_API kn_lbfgs_params kn_lbfgs_params_init(void);
KN_API kn_optim *kn_optim_lbfgs_with(kn_parameter_list parameters, const kn_lbfgs_params *params);
#define kn_optim_lbfgs(parameters, ...)                                                                                \
    KN_CALL(kn_optim_lbfgs_with(parameters, &(kn_lbfgs_params){KN_LBFGS_DEFAULTS, __VA_ARGS__}))

/* --- all of them -------------------------------------------------------------------------------------------------- */

KN_API void kn_optim_free(kn_optim *optim); /* NULL allowed */
KN_API kn_status kn_optim_step(kn_optim *optim);

/* PyTorch's step(closure), for all optimizers. The closure drops the gradients (kn_optim_zero_grad), computes the loss,
 * calls kn_backward and returns the loss, one element; NULL with an error ends the step. It is called once, before the
 * step, with the recording of gradients enabled; by LBFGS several times, each in a scope of its own. Returns the loss
 * of the first call, which belongs to the innermost scope; NULL with a sticky error. After a failure of LBFGS some
 * parameters may have changed, and its history is forgotten. */
typedef kn_tensor *(*kn_optim_closure)(void *user);
KN_API kn_tensor *kn_optim_step_closure(kn_optim *optim, kn_optim_closure closure, void *user);

KN_API void kn_optim_zero_grad(kn_optim *optim); /* drops the parameters' gradients */

/* Bytes of the state on devices, 0 before the first step. LBFGS's history is not counted. */
KN_API int64_t kn_optim_state_bytes(const kn_optim *optim);

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
/* `options` ends with a NULL name, those with the name "" are skipped; NULL: none. A group may be empty, but for the
 * first one. */
KN_API kn_status kn_optim_add_group_with(kn_optim *optim, kn_parameter_list parameters, const kn_optim_option *options);
#define kn_optim_add_group(optim, parameters, ...)                                                                     \
    kn_optim_add_group_with(optim, parameters, (const kn_optim_option[KN_OPTIM_MAX_OPTIONS + 2]){{"", 0}, __VA_ARGS__})
/* An optimizer by its name, PyTorch's ("AdamW"), with options in place of some defaults, also "master_weights":
 * kn_optim_named("SGD", list, {"lr", 0.1}, {"momentum", 0.9}). */
KN_API kn_optim *kn_optim_named_with(const char *name, kn_parameter_list parameters, const kn_optim_option *options);
#define kn_optim_named(name, parameters, ...)                                                                          \
    kn_optim_named_with(name, parameters, (const kn_optim_option[KN_OPTIM_MAX_OPTIONS + 2]){{"", 0}, __VA_ARGS__})
KN_API int kn_optim_num_groups(const kn_optim *optim);
/* Borrowed, without names; valid until a group is added. Empty if there is no such group. */
KN_API kn_parameter_list kn_optim_group_parameters(const kn_optim *optim, int group);
/* Reads or sets a hyperparameter of a group. After the first step, setting one that needs other state, such as amsgrad,
 * is KN_ERR_STATE. "initial_lr" is what schedules have noted (NaN: nothing). */
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
