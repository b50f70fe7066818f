/* koine/clip_grad.h - clipping gradients between kn_backward and kn_optim_step: torch.nn.utils.clip_grad_norm_ and its
 * relatives. Nothing is recorded, and no call waits, unless error_if_nonfinite is set.
 *
 * Parameters without a gradient are skipped; all gradients are floating and on one device. */
#ifndef KOINE_CLIP_GRAD_H
#define KOINE_CLIP_GRAD_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_clip_grad_params {
    double norm_type;        /* default 2; above 0, or INFINITY */
    bool error_if_nonfinite; /* default false; true: waits, and a norm that is NaN or infinite is KN_ERR_NUMERIC */
} kn_clip_grad_params;
#define KN_CLIP_GRAD_DEFAULTS .norm_type = 2
KN_API kn_clip_grad_params kn_clip_grad_params_init(void);

/* Multiplies the gradients by min(1, max_norm / (norm + 1e-6)), where norm is that of all gradients taken as one
 * vector. Returns the norm before that, a tensor without dimensions: float64 if a gradient is, else float32. 0 on the
 * current device if there are no gradients. */
KN_API kn_tensor *kn_clip_grad_norm_with_(kn_parameter_list parameters, double max_norm,
                                          const kn_clip_grad_params *params);
#define kn_clip_grad_norm_(parameters, max_norm, ...)                                                                  \
    KN_CALL(kn_clip_grad_norm_with_(parameters, max_norm, &(kn_clip_grad_params){KN_CLIP_GRAD_DEFAULTS, __VA_ARGS__}))

/* The norm of `count` tensors taken as one vector / the second half of kn_clip_grad_norm_, with a norm from it. */
KN_API kn_tensor *kn_get_total_norm_with(kn_tensor *const *tensors, int count, const kn_clip_grad_params *params);
#define kn_get_total_norm(tensors, count, ...)                                                                         \
    KN_CALL(kn_get_total_norm_with(tensors, count, &(kn_clip_grad_params){KN_CLIP_GRAD_DEFAULTS, __VA_ARGS__}))
KN_API kn_status kn_clip_grads_with_norm_(kn_parameter_list parameters, double max_norm, const kn_tensor *total_norm);

/* Limits each element of the gradients to -clip_value .. clip_value. */
KN_API kn_status kn_clip_grad_value_(kn_parameter_list parameters, double clip_value);

KN_END_DECLS

#endif
