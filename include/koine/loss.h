/* koine/loss.h - losses. Floating inputs. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_LOSS_H
#define KOINE_LOSS_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef enum kn_reduction {
    KN_REDUCTION_MEAN = 0,
    KN_REDUCTION_SUM,
    KN_REDUCTION_NONE
} kn_reduction; /* the mean of no elements is NaN */

typedef struct kn_cross_entropy_params {
    kn_tensor *weight;      /* [C], default NULL: 1; the mean is then the weighted mean */
    int64_t ignore_index;   /* default -100 */
    double label_smoothing; /* default 0 */
    kn_reduction reduction; /* default mean */
} kn_cross_entropy_params;
#define KN_CROSS_ENTROPY_DEFAULTS .ignore_index = -100
KN_API kn_cross_entropy_params kn_cross_entropy_params_init(void);

/* cross_entropy: -log softmax(input)[target]; nll_loss: -input[target]. input: logits (nll_loss: log-probabilities) [N,
 * C] or [N, C, d...]. target: class indices [N] or [N, d...], int64 (or int32, uint8); cross_entropy also takes
 * probabilities of the input's shape and dtype. A class outside 0 .. C - 1 is reported when the device is next
 * synchronised or read. */
KN_API kn_tensor *kn_cross_entropy_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params);
KN_API kn_tensor *kn_nll_loss_with(kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params);
#define kn_cross_entropy(input, target, ...)                                                                           \
    KN_CALL(kn_cross_entropy_with(input, target, &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}))
#define kn_nll_loss(input, target, ...)                                                                                \
    KN_CALL(kn_nll_loss_with(input, target, &(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}))

/* (input - target)^2; shapes broadcast. */
KN_API kn_tensor *kn_mse_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction);

/* max(x, 0) - x target + log(1 + exp(-|x|)), with pos_weight w: (1 - t) x + (1 + (w - 1) t) (log(1 + exp(-|x|)) +
 * max(-x, 0)). weight and pos_weight broadcast to the input; both may be NULL. */
KN_API kn_tensor *kn_binary_cross_entropy_with_logits(kn_tensor *input, kn_tensor *target, kn_tensor *weight,
                                                      kn_tensor *pos_weight, kn_reduction reduction);

KN_END_DECLS

#endif
