/* koine/nn/adaptive.h - a softmax over many classes by frequency (Grave et al., "Efficient softmax approximation for
 * GPUs", 2017). Constructors as in koine/module.h. */
#ifndef KOINE_NN_ADAPTIVE_H
#define KOINE_NN_ADAPTIVE_H

#include <koine/common.h>
#include <koine/module.h>

KN_BEGIN_DECLS

/* torch.nn.AdaptiveLogSoftmaxWithLoss: classes are numbered from frequent to rare. The head tells apart the first
 * cutoffs[0] of them and clusters of the others, which begin at each cutoff; cluster i has projections to in_features /
 * div_value^(i + 1) features, then to its classes. Two inputs, features [N, in_features] and classes [N], int64, or one
 * sample of each, and two outputs: the logarithms of the classes' probabilities, and the loss, their negative mean:
 *
 *     const int64_t cutoffs[] = {10, 100};
 *     kn_module *loss = kn_nn_adaptive_log_softmax_with_loss(.in_features = 64, .n_classes = 1000, .cutoffs = cutoffs,
 *                                                            .num_cutoffs = 2);
 *     kn_forward_many(loss, KN_TENSORS(x, target), outputs, 2);
 *
 * Computes a cluster only for the samples that are in it, for whose number it waits. */
#define KN_ADAPTIVE_MAX_CUTOFFS 32
typedef struct kn_nn_adaptive_log_softmax_with_loss_params {
    int64_t in_features, n_classes;
    const int64_t *cutoffs; /* ascending, from 1 to n_classes - 1 */
    int num_cutoffs;        /* from 1 to KN_ADAPTIVE_MAX_CUTOFFS */
    double div_value;       /* default 4 */
    bool head_bias;         /* default false */
} kn_nn_adaptive_log_softmax_with_loss_params;
#define KN_NN_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS_DEFAULTS .div_value = 4
/* clang-format off */
KN_API kn_nn_adaptive_log_softmax_with_loss_params kn_nn_adaptive_log_softmax_with_loss_params_init(void);
KN_API kn_module *kn_nn_adaptive_log_softmax_with_loss_with(
    const kn_nn_adaptive_log_softmax_with_loss_params *params);
/* clang-format on */
#define kn_nn_adaptive_log_softmax_with_loss(...)                                                                      \
    KN_CALL(kn_nn_adaptive_log_softmax_with_loss_with(                                                                 \
        &(kn_nn_adaptive_log_softmax_with_loss_params){KN_NN_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS_DEFAULTS, __VA_ARGS__}))

/* Of such a module: the logarithms of all classes' probabilities, [N, n_classes], and the most probable class of each
 * sample, [N]. */
KN_API kn_tensor *kn_adaptive_log_softmax_log_prob(kn_module *module, kn_tensor *x);
KN_API kn_tensor *kn_adaptive_log_softmax_predict(kn_module *module, kn_tensor *x);

KN_END_DECLS

#endif
