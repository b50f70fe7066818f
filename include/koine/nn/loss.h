/* koine/nn/loss.h - losses as modules of two or three inputs (kn_forward_many); koine/loss.h has the formulas, and the
 * structs with the parameters. Weights are buffers. Constructors as in koine/module.h. */
#ifndef KOINE_NN_LOSS_H
#define KOINE_NN_LOSS_H

#include <koine/common.h>
#include <koine/loss.h>
#include <koine/module.h>

KN_BEGIN_DECLS

/* Inputs: the output of a network and the target. */
KN_API kn_module *kn_nn_l1_loss(kn_reduction reduction);
KN_API kn_module *kn_nn_mse_loss(kn_reduction reduction);
KN_API kn_module *kn_nn_soft_margin_loss(kn_reduction reduction);
KN_API kn_module *kn_nn_multilabel_margin_loss(kn_reduction reduction);
KN_API kn_module *kn_nn_smooth_l1_loss_with(const kn_smooth_l1_loss_params *params);
KN_API kn_module *kn_nn_huber_loss_with(const kn_huber_loss_params *params);
KN_API kn_module *kn_nn_cross_entropy_loss_with(const kn_cross_entropy_params *params);
KN_API kn_module *kn_nn_nll_loss_with(const kn_cross_entropy_params *params);
KN_API kn_module *kn_nn_multi_margin_loss_with(const kn_multi_margin_loss_params *params);
KN_API kn_module *kn_nn_multilabel_soft_margin_loss_with(const kn_loss_params *params);
KN_API kn_module *kn_nn_bce_loss_with(const kn_loss_params *params);
KN_API kn_module *kn_nn_kl_div_loss_with(const kn_kl_div_params *params);
KN_API kn_module *kn_nn_poisson_nll_loss_with(const kn_poisson_nll_loss_params *params);
KN_API kn_module *kn_nn_hinge_embedding_loss_with(const kn_hinge_embedding_loss_params *params);
#define kn_nn_smooth_l1_loss(...)                                                                                      \
    KN_CALL(kn_nn_smooth_l1_loss_with(&(kn_smooth_l1_loss_params){KN_SMOOTH_L1_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_huber_loss(...)                                                                                          \
    KN_CALL(kn_nn_huber_loss_with(&(kn_huber_loss_params){KN_HUBER_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_cross_entropy_loss(...)                                                                                  \
    KN_CALL(kn_nn_cross_entropy_loss_with(&(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}))
#define kn_nn_nll_loss(...)                                                                                            \
    KN_CALL(kn_nn_nll_loss_with(&(kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}))
#define kn_nn_multi_margin_loss(...)                                                                                   \
    KN_CALL(kn_nn_multi_margin_loss_with(&(kn_multi_margin_loss_params){KN_MULTI_MARGIN_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_multilabel_soft_margin_loss(...)                                                                         \
    KN_CALL(kn_nn_multilabel_soft_margin_loss_with(&(kn_loss_params){KN_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_bce_loss(...) KN_CALL(kn_nn_bce_loss_with(&(kn_loss_params){KN_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_kl_div_loss(...) KN_CALL(kn_nn_kl_div_loss_with(&(kn_kl_div_params){KN_KL_DIV_DEFAULTS, __VA_ARGS__}))
#define kn_nn_poisson_nll_loss(...)                                                                                    \
    KN_CALL(kn_nn_poisson_nll_loss_with(&(kn_poisson_nll_loss_params){KN_POISSON_NLL_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_hinge_embedding_loss(...)                                                                                \
    KN_CALL(kn_nn_hinge_embedding_loss_with(                                                                           \
        &(kn_hinge_embedding_loss_params){KN_HINGE_EMBEDDING_LOSS_DEFAULTS, __VA_ARGS__}))

typedef struct kn_nn_bce_with_logits_loss_params {
    kn_tensor *weight;      /* default NULL: 1 */
    kn_tensor *pos_weight;  /* default NULL: 1 */
    kn_reduction reduction; /* default mean */
} kn_nn_bce_with_logits_loss_params;
#define KN_NN_BCE_WITH_LOGITS_LOSS_DEFAULTS .weight = NULL
KN_API kn_nn_bce_with_logits_loss_params kn_nn_bce_with_logits_loss_params_init(void);
KN_API kn_module *kn_nn_bce_with_logits_loss_with(const kn_nn_bce_with_logits_loss_params *params);
#define kn_nn_bce_with_logits_loss(...)                                                                                \
    KN_CALL(kn_nn_bce_with_logits_loss_with(                                                                           \
        &(kn_nn_bce_with_logits_loss_params){KN_NN_BCE_WITH_LOGITS_LOSS_DEFAULTS, __VA_ARGS__}))

/* Three inputs, those of the functions. */
KN_API kn_module *kn_nn_gaussian_nll_loss_with(const kn_gaussian_nll_loss_params *params);
KN_API kn_module *kn_nn_margin_ranking_loss_with(const kn_margin_ranking_loss_params *params);
KN_API kn_module *kn_nn_cosine_embedding_loss_with(const kn_cosine_embedding_loss_params *params);
KN_API kn_module *kn_nn_triplet_margin_loss_with(const kn_triplet_margin_loss_params *params);
/* clang-format off */
KN_API kn_module *kn_nn_triplet_margin_with_distance_loss_with(
    const kn_triplet_margin_with_distance_loss_params *params);
/* clang-format on */
#define kn_nn_gaussian_nll_loss(...)                                                                                   \
    KN_CALL(kn_nn_gaussian_nll_loss_with(&(kn_gaussian_nll_loss_params){KN_GAUSSIAN_NLL_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_margin_ranking_loss(...)                                                                                 \
    KN_CALL(kn_nn_margin_ranking_loss_with(                                                                            \
        &(kn_margin_ranking_loss_params){KN_MARGIN_RANKING_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_cosine_embedding_loss(...)                                                                               \
    KN_CALL(kn_nn_cosine_embedding_loss_with(                                                                          \
        &(kn_cosine_embedding_loss_params){KN_COSINE_EMBEDDING_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_triplet_margin_loss(...)                                                                                 \
    KN_CALL(kn_nn_triplet_margin_loss_with(                                                                            \
        &(kn_triplet_margin_loss_params){KN_TRIPLET_MARGIN_LOSS_DEFAULTS, __VA_ARGS__}))
#define kn_nn_triplet_margin_with_distance_loss(...)                                                                   \
    KN_CALL(kn_nn_triplet_margin_with_distance_loss_with(                                                              \
        &(kn_triplet_margin_with_distance_loss_params){KN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_DEFAULTS, __VA_ARGS__}))

/* Four inputs: log_probs, target, input_lengths, target_lengths. */
KN_API kn_module *kn_nn_ctc_loss_with(const kn_ctc_loss_params *params);
#define kn_nn_ctc_loss(...) KN_CALL(kn_nn_ctc_loss_with(&(kn_ctc_loss_params){KN_CTC_LOSS_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
