/* koine/fused_optim.h - optimizer steps on the caller's tensors: torch._fused_adam_, _fused_adamw_ and _fused_sgd_;
 * and the check of their gradients for mixed precision.
 *
 * For bindings that keep an optimizer's state themselves; programs use koine/optim.h. A step takes lists of `count`
 * tensors each and changes parameters and states in place. Nothing is recorded, and the call does not wait. One launch
 * updates up to eight consecutive parameters of the same device and dtype. Parameters are float32 or float64, on a
 * device, and leaves unless inside KN_NO_GRAD; the gradient and states of a parameter have its shape, dtype and device.
 * No tensor may occur twice in a list. Invalid arguments change nothing; after any other failure, such as running out
 * of memory, some parameters may have been updated.
 *
 * For mixed precision, `grad_scale` and `found_inf` are tensors of one float32 element on the parameters' device, read
 * there without waiting. The step divides the gradients by `grad_scale`, in place. If `found_inf` is not 0, it changes
 * nothing, except that buffers of SGD's first step become 0. */
#ifndef KOINE_FUSED_OPTIM_H
#define KOINE_FUSED_OPTIM_H

#include <koine/common.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* The formulas of torch.optim.Adam and AdamW; bias corrections are computed on the device. */
typedef struct kn_fused_adam_params {
    double lr;                   /* default 1e-3 */
    double beta1, beta2;         /* default 0.9, 0.999 */
    double eps;                  /* default 1e-8 */
    double weight_decay;         /* default 0 */
    bool amsgrad;                /* default false */
    bool maximize;               /* default false: minimize */
    bool decoupled_weight_decay; /* default false: an L2 penalty added to the gradient; true: AdamW */
    kn_tensor *grad_scale;       /* default NULL; see above */
    kn_tensor *found_inf;        /* default NULL; see above */
} kn_fused_adam_params;
#define KN_FUSED_ADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
KN_API kn_fused_adam_params kn_fused_adam_params_init(void);

/* `max_exp_avg_sqs` is NULL without amsgrad. `state_steps`: for each parameter a float32 tensor of one element on its
 * device, the number of this step, from 1; the caller increments it before the call. */
KN_API kn_status kn_fused_adam_with(kn_tensor *const *parameters, kn_tensor *const *gradients,
                                    kn_tensor *const *exp_avgs, kn_tensor *const *exp_avg_sqs,
                                    kn_tensor *const *max_exp_avg_sqs, kn_tensor *const *state_steps, int count,
                                    const kn_fused_adam_params *params);
#define kn_fused_adam(parameters, gradients, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, count, ...)          \
    KN_CALL(kn_fused_adam_with(parameters, gradients, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, count,      \
                               &(kn_fused_adam_params){KN_FUSED_ADAM_DEFAULTS, __VA_ARGS__}))

typedef struct kn_fused_sgd_params {
    double lr;             /* default 1e-3 */
    double momentum;       /* default 0 */
    double dampening;      /* default 0 */
    double weight_decay;   /* default 0: an L2 penalty added to the gradient */
    bool nesterov;         /* default false; needs momentum > 0 and no dampening */
    bool maximize;         /* default false: minimize */
    bool is_first_step;    /* default false; true: sets the buffers, which may be uninitialised, to the gradients */
    kn_tensor *grad_scale; /* default NULL; see above */
    kn_tensor *found_inf;  /* default NULL; see above */
} kn_fused_sgd_params;
#define KN_FUSED_SGD_DEFAULTS .lr = 1e-3
KN_API kn_fused_sgd_params kn_fused_sgd_params_init(void);

/* `momentum_buffers` is NULL without momentum. */
KN_API kn_status kn_fused_sgd_with(kn_tensor *const *parameters, kn_tensor *const *gradients,
                                   kn_tensor *const *momentum_buffers, int count, const kn_fused_sgd_params *params);
#define kn_fused_sgd(parameters, gradients, momentum_buffers, count, ...)                                              \
    KN_CALL(kn_fused_sgd_with(parameters, gradients, momentum_buffers, count,                                          \
                              &(kn_fused_sgd_params){KN_FUSED_SGD_DEFAULTS, __VA_ARGS__}))

/* torch._amp_foreach_non_finite_check_and_unscale_: multiplies the tensors, floating and of one device, by `inv_scale`
 * in place, and sets `found_inf` to 1 if a result is infinite or NaN; it is not set to 0. */
KN_API kn_status kn_fused_unscale(kn_tensor *const *gradients, int count, kn_tensor *inv_scale, kn_tensor *found_inf);

KN_END_DECLS

#endif
