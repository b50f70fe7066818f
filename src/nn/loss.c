/* nn/loss.c - losses and distances: modules of one operator each, whose weights are buffers. */

#include "base/error.h"
#include "nn/operator_layer.h"
#include "ops/dispatch/operators.h"

/* --- of parameters that are the operator's ------------------------------------------------------------------------ */

#define OF_REDUCTION(id, operator_, name)                                                                              \
    kn_module *kn_nn_##id(kn_reduction reduction)                                                                      \
    {                                                                                                                  \
        return kn_layer_of_operator(name, &kn_##operator_##_op, &(kn_reduction_args){reduction}, NULL);                \
    }
OF_REDUCTION(l1_loss, l1_loss, "L1Loss")
OF_REDUCTION(mse_loss, mse_loss, "MSELoss")
OF_REDUCTION(soft_margin_loss, soft_margin_loss, "SoftMarginLoss")
OF_REDUCTION(multilabel_margin_loss, multilabel_margin_loss, "MultiLabelMarginLoss")

#define OF_PARAMS(id, operator_, type, name)                                                                           \
    kn_module *kn_nn_##id##_with(const type *params)                                                                   \
    {                                                                                                                  \
        return kn_layer_of_operator(name, &kn_##operator_##_op, params, NULL);                                         \
    }
OF_PARAMS(smooth_l1_loss, smooth_l1_loss, kn_smooth_l1_loss_params, "SmoothL1Loss")
OF_PARAMS(kl_div_loss, kl_div, kn_kl_div_params, "KLDivLoss")
OF_PARAMS(poisson_nll_loss, poisson_nll_loss, kn_poisson_nll_loss_params, "PoissonNLLLoss")
OF_PARAMS(hinge_embedding_loss, hinge_embedding_loss, kn_hinge_embedding_loss_params, "HingeEmbeddingLoss")
OF_PARAMS(gaussian_nll_loss, gaussian_nll_loss, kn_gaussian_nll_loss_params, "GaussianNLLLoss")
OF_PARAMS(margin_ranking_loss, margin_ranking_loss, kn_margin_ranking_loss_params, "MarginRankingLoss")
OF_PARAMS(cosine_embedding_loss, cosine_embedding_loss, kn_cosine_embedding_loss_params, "CosineEmbeddingLoss")
OF_PARAMS(triplet_margin_loss, triplet_margin_loss, kn_triplet_margin_loss_params, "TripletMarginLoss")
OF_PARAMS(ctc_loss, ctc_loss, kn_ctc_loss_params, "CTCLoss")
OF_PARAMS(cosine_similarity, cosine_similarity, kn_cosine_similarity_params, "CosineSimilarity")
OF_PARAMS(pairwise_distance, pairwise_distance, kn_pairwise_distance_params, "PairwiseDistance")

/* --- with weights ------------------------------------------------------------------------------------------------- */

#define OF_WEIGHT(name, op, args, weight) kn_layer_with_buffers(name, op, args, NULL, (kn_tensor *const[]){weight}, 1)

kn_module *kn_nn_huber_loss_with(const kn_huber_loss_params *params)
{
    params = params ? params : &(const kn_huber_loss_params){KN_HUBER_LOSS_DEFAULTS};
    const kn_huber_loss_args args = {params->reduction, params->delta};
    return OF_WEIGHT("HuberLoss", &kn_huber_loss_op, &args, params->weight);
}

static kn_module *of_classes(const char *name, const kn_op *op, const kn_cross_entropy_params *params)
{
    params = params ? params : &(const kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS};
    const kn_class_loss_args args = {params->ignore_index, params->label_smoothing, params->reduction};
    return OF_WEIGHT(name, op, &args, params->weight);
}

kn_module *kn_nn_cross_entropy_loss_with(const kn_cross_entropy_params *params)
{
    return of_classes("CrossEntropyLoss", &kn_cross_entropy_op, params);
}

kn_module *kn_nn_nll_loss_with(const kn_cross_entropy_params *params)
{
    return of_classes("NLLLoss", &kn_nll_loss_op, params);
}

kn_module *kn_nn_multi_margin_loss_with(const kn_multi_margin_loss_params *params)
{
    params = params ? params : &(const kn_multi_margin_loss_params){KN_MULTI_MARGIN_LOSS_DEFAULTS};
    const kn_multi_margin_loss_args args = {params->p, params->reduction, params->margin};
    return OF_WEIGHT("MultiMarginLoss", &kn_multi_margin_loss_op, &args, params->weight);
}

static kn_module *of_elements(const char *name, const kn_op *op, const kn_loss_params *params)
{
    params = params ? params : &(const kn_loss_params){KN_LOSS_DEFAULTS};
    return OF_WEIGHT(name, op, &(kn_reduction_args){params->reduction}, params->weight);
}

kn_module *kn_nn_bce_loss_with(const kn_loss_params *params)
{
    return of_elements("BCELoss", &kn_binary_cross_entropy_op, params);
}

kn_module *kn_nn_multilabel_soft_margin_loss_with(const kn_loss_params *params)
{
    return of_elements("MultiLabelSoftMarginLoss", &kn_multilabel_soft_margin_loss_op, params);
}

kn_nn_bce_with_logits_loss_params kn_nn_bce_with_logits_loss_params_init(void)
{
    return (kn_nn_bce_with_logits_loss_params){KN_NN_BCE_WITH_LOGITS_LOSS_DEFAULTS};
}

kn_module *kn_nn_bce_with_logits_loss_with(const kn_nn_bce_with_logits_loss_params *params)
{
    params = params ? params : &(const kn_nn_bce_with_logits_loss_params){KN_NN_BCE_WITH_LOGITS_LOSS_DEFAULTS};
    return kn_layer_with_buffers("BCEWithLogitsLoss", &kn_binary_cross_entropy_with_logits_op,
                                 &(kn_reduction_args){params->reduction}, NULL,
                                 (kn_tensor *const[]){params->weight, params->pos_weight}, 2);
}

/* --- with a function ---------------------------------------------------------------------------------------------- */

static kn_status triplet_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    outputs[0] = kn_triplet_margin_with_distance_loss_with(inputs[0], inputs[1], inputs[2], module->self);
    return outputs[0] ? KN_OK : kn_error_status();
}

kn_module *kn_nn_triplet_margin_with_distance_loss_with(const kn_triplet_margin_with_distance_loss_params *params)
{
    static const char name[] = "TripletMarginWithDistanceLoss";
    const kn_module_kind kind = {
        .forward_many = triplet_forward, .signature = {.inputs = 3, .outputs = 1}, .is_layer = true};
    params = params
                 ? params
                 : &(const kn_triplet_margin_with_distance_loss_params){KN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_DEFAULTS};
    if (!(params->margin > 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: margin (%g) must be greater than 0", name, params->margin);
    return kn_layer_new_kind(name, &kind, params, sizeof *params);
}
