/* koine/optim.h - optimizers. One step updates all parameters in few launches, without waiting for the device.
 *
 * An optimizer keeps references to its parameters; parameters without a gradient are not changed. Formulas are
 * PyTorch's (torch.optim). State has the parameters' device and dtype. */
#ifndef KOINE_OPTIM_H
#define KOINE_OPTIM_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_sgd_params {
    double lr;           /* default 1e-3 */
    double momentum;     /* default 0 */
    double dampening;    /* default 0 */
    double weight_decay; /* default 0: an L2 penalty added to the gradient */
    bool nesterov;       /* default false; needs momentum > 0 and no dampening */
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
    double weight_decay; /* default 0: an L2 penalty added to the gradient */
    bool amsgrad;        /* default false */
} kn_adam_params;
#define KN_ADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
KN_API kn_adam_params kn_adam_params_init(void);
KN_API kn_optim *kn_optim_adam_with(kn_parameter_list parameters, const kn_adam_params *params);
#define kn_optim_adam(parameters, ...)                                                                                 \
    KN_CALL(kn_optim_adam_with(parameters, &(kn_adam_params){KN_ADAM_DEFAULTS, __VA_ARGS__}))

KN_API void kn_optim_free(kn_optim *optim); /* NULL allowed */
KN_API kn_status kn_optim_step(kn_optim *optim);
KN_API void kn_optim_zero_grad(kn_optim *optim); /* drops the parameters' gradients */
KN_API double kn_optim_lr(const kn_optim *optim);
KN_API kn_status kn_optim_set_lr(kn_optim *optim, double lr);

/* Save and restore all state by name ("step", "exp_avg.0", ...) in a safetensors file. */
KN_API kn_status kn_optim_save(kn_optim *optim, const char *path);
KN_API kn_status kn_optim_load(kn_optim *optim, const char *path);

KN_END_DECLS

#endif
