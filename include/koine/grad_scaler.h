/* koine/grad_scaler.h - torch.amp.GradScaler: gradients of float16 that would underflow are kept large by a factor of
 * the loss, which adapts itself.
 *
 *     kn_grad_scaler *scaler = kn_grad_scaler_new();
 *     ...
 *     kn_backward(kn_grad_scaler_scale(scaler, loss));
 *     kn_grad_scaler_unscale_(scaler, optim);            // only to look at or to clip the gradients
 *     kn_clip_grad_norm_(kn_module_parameters(net), 1);
 *     kn_grad_scaler_step(scaler, optim);                // no step if a gradient is infinite or NaN
 *     kn_grad_scaler_update(scaler);
 *
 * The factor is on the device, and nothing waits: a step is skipped there. (NAdam, RAdam, Adamax, ASGD, LAMB, Adagrad,
 * Adafactor and Muon compute with the number of the step on the host, so for these kn_grad_scaler_step does wait. LBFGS
 * cannot be stepped by a scaler, as in PyTorch.) An optimizer that has been stepped by a scaler counts its steps on
 * the device. */
#ifndef KOINE_GRAD_SCALER_H
#define KOINE_GRAD_SCALER_H

#include <koine/common.h>
#include <koine/optim.h>

KN_BEGIN_DECLS

typedef struct kn_grad_scaler kn_grad_scaler;

typedef struct kn_grad_scaler_params {
    double init_scale;     /* default 65536 */
    double growth_factor;  /* default 2; above 1 */
    double backoff_factor; /* default 0.5; above 0 and below 1 */
    int growth_interval;   /* default 2000: good steps in a row before the scale grows */
    bool disabled;         /* default false; true: all functions do what they would without a scaler */
} kn_grad_scaler_params;
#define KN_GRAD_SCALER_DEFAULTS .init_scale = 65536, .growth_factor = 2, .backoff_factor = 0.5, .growth_interval = 2000
KN_API kn_grad_scaler_params kn_grad_scaler_params_init(void);
KN_API kn_grad_scaler *kn_grad_scaler_new_with(const kn_grad_scaler_params *params); /* NULL with a sticky error */
#define kn_grad_scaler_new(...)                                                                                        \
    KN_CALL(kn_grad_scaler_new_with(&(kn_grad_scaler_params){KN_GRAD_SCALER_DEFAULTS, __VA_ARGS__}))
KN_API void kn_grad_scaler_free(kn_grad_scaler *scaler); /* NULL allowed */

KN_API kn_tensor *kn_grad_scaler_scale(kn_grad_scaler *scaler, kn_tensor *loss); /* recorded */
/* Divides the gradients of the optimizer's parameters. KN_ERR_STATE if that has been done since the last update. */
KN_API kn_status kn_grad_scaler_unscale_(kn_grad_scaler *scaler, kn_optim *optim);
/* Unscales first, if need be. With several optimizers only those whose own gradients are not finite are not stepped.
 * KN_ERR_STATE if the optimizer has been stepped since the last update. */
KN_API kn_status kn_grad_scaler_step(kn_grad_scaler *scaler, kn_optim *optim);
KN_API kn_status kn_grad_scaler_update(kn_grad_scaler *scaler); /* once after all optimizers' steps */

KN_API kn_status kn_grad_scaler_get_scale(const kn_grad_scaler *scaler, double *scale); /* waits */
/* The state (scale and growth tracker) to and from a safetensors file: "scale", "_growth_tracker". */
KN_API kn_status kn_grad_scaler_save(const kn_grad_scaler *scaler, const char *path);
KN_API kn_status kn_grad_scaler_load(kn_grad_scaler *scaler, const char *path);

KN_END_DECLS

#endif
