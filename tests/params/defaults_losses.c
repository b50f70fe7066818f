/* defaults_losses.c - losses, distances and normalisations. */
#include "defaults.h"

static kn_tensor *shares(void) { return kn_softmax(matrix(), 1); }
static kn_tensor *signs(void) { return kn_sign(matrix()); }
static kn_tensor *labels(void) { return kn_from_data(((int64_t[]){2, 0, 1, 1}), KN_SHAPE(4), .dtype = KN_I64); }
static const int64_t rows_of_3[] = {3};

CALLS(kn_smooth_l1_loss, kn_smooth_l1_loss_params, show_tensor, kn_smooth_l1_loss_with(matrix(), shares(), params),
      kn_smooth_l1_loss(matrix(), shares()))
CALLS(kn_huber_loss, kn_huber_loss_params, show_tensor, kn_huber_loss_with(matrix(), shares(), params),
      kn_huber_loss(matrix(), shares()))
CALLS(kn_binary_cross_entropy, kn_loss_params, show_tensor, kn_binary_cross_entropy_with(shares(), shares(), params),
      kn_binary_cross_entropy(shares(), shares()))
CALLS(kn_multilabel_soft_margin_loss, kn_loss_params, show_tensor,
      kn_multilabel_soft_margin_loss_with(matrix(), shares(), params),
      kn_multilabel_soft_margin_loss(matrix(), shares()))
CALLS(kn_multi_margin_loss, kn_multi_margin_loss_params, show_tensor,
      kn_multi_margin_loss_with(matrix(), labels(), params), kn_multi_margin_loss(matrix(), labels()))
CALLS(kn_linear_cross_entropy, kn_linear_cross_entropy_params, show_tensor,
      kn_linear_cross_entropy_with(matrix(), matrix(), labels(), params),
      kn_linear_cross_entropy(matrix(), matrix(), labels()))
CALLS(kn_kl_div, kn_kl_div_params, show_tensor, kn_kl_div_with(matrix(), shares(), params),
      kn_kl_div(matrix(), shares()))
CALLS(kn_poisson_nll_loss, kn_poisson_nll_loss_params, show_tensor,
      kn_poisson_nll_loss_with(matrix(), shares(), params), kn_poisson_nll_loss(matrix(), shares()))
CALLS(kn_hinge_embedding_loss, kn_hinge_embedding_loss_params, show_tensor,
      kn_hinge_embedding_loss_with(matrix(), signs(), params), kn_hinge_embedding_loss(matrix(), signs()))
CALLS(kn_cosine_similarity, kn_cosine_similarity_params, show_tensor,
      kn_cosine_similarity_with(matrix(), shares(), params), kn_cosine_similarity(matrix(), shares()))
CALLS(kn_pairwise_distance, kn_pairwise_distance_params, show_tensor,
      kn_pairwise_distance_with(matrix(), shares(), params), kn_pairwise_distance(matrix(), shares()))
CALLS(kn_gaussian_nll_loss, kn_gaussian_nll_loss_params, show_tensor,
      kn_gaussian_nll_loss_with(matrix(), shares(), shares(), params),
      kn_gaussian_nll_loss(matrix(), shares(), shares()))
CALLS(kn_margin_ranking_loss, kn_margin_ranking_loss_params, show_tensor,
      kn_margin_ranking_loss_with(matrix(), shares(), signs(), params),
      kn_margin_ranking_loss(matrix(), shares(), signs()))
CALLS(kn_cosine_embedding_loss, kn_cosine_embedding_loss_params, show_tensor,
      kn_cosine_embedding_loss_with(matrix(), shares(), labels(), params),
      kn_cosine_embedding_loss(matrix(), shares(), labels()))
CALLS(kn_triplet_margin_loss, kn_triplet_margin_loss_params, show_tensor,
      kn_triplet_margin_loss_with(matrix(), shares(), signs(), params),
      kn_triplet_margin_loss(matrix(), shares(), signs()))
CALLS(kn_triplet_margin_with_distance_loss, kn_triplet_margin_with_distance_loss_params, show_tensor,
      kn_triplet_margin_with_distance_loss_with(matrix(), shares(), signs(), params),
      kn_triplet_margin_with_distance_loss(matrix(), shares(), signs()))
CALLS(kn_rms_norm, kn_rms_norm_params, show_tensor, kn_rms_norm_with(matrix(), 1, rows_of_3, params),
      kn_rms_norm(matrix(), KN_SHAPE(3)))
CALLS(kn_group_norm, kn_group_norm_params, show_tensor, kn_group_norm_with(image(), 2, params),
      kn_group_norm(image(), 2))
CALLS(kn_instance_norm, kn_instance_norm_params, show_tensor, kn_instance_norm_with(image(), params),
      kn_instance_norm(image()))
CALLS(kn_local_response_norm, kn_local_response_norm_params, show_tensor,
      kn_local_response_norm_with(image(), 2, params), kn_local_response_norm(image(), 2))
CALLS(kn_normalize, kn_normalize_params, show_tensor, kn_normalize_with(matrix(), params), kn_normalize(matrix()))
CALLS(kn_gumbel_softmax, kn_gumbel_softmax_params, show_tensor, kn_gumbel_softmax_with(matrix(), params),
      kn_gumbel_softmax(matrix()))

static kn_tensor *sequence(void) { return kn_log_softmax(ramp(KN_SHAPE(5, 2, 3)), 2); }
static kn_tensor *pair(int64_t value) { return kn_full(KN_SHAPE(2), value, .dtype = KN_I64); }
CALLS(kn_ctc_loss, kn_ctc_loss_params, show_tensor,
      kn_ctc_loss_with(sequence(), kn_ones(KN_SHAPE(2, 2), .dtype = KN_I64), pair(5), pair(2), params),
      kn_ctc_loss(sequence(), kn_ones(KN_SHAPE(2, 2), .dtype = KN_I64), pair(5), pair(2)))
CALLS(kn_nn_smooth_l1_loss, kn_smooth_l1_loss_params, show_module, kn_nn_smooth_l1_loss_with(params),
      kn_nn_smooth_l1_loss())
CALLS(kn_nn_huber_loss, kn_huber_loss_params, show_module, kn_nn_huber_loss_with(params), kn_nn_huber_loss())
CALLS(kn_nn_cross_entropy_loss, kn_cross_entropy_params, show_module, kn_nn_cross_entropy_loss_with(params),
      kn_nn_cross_entropy_loss())
CALLS(kn_nn_nll_loss, kn_cross_entropy_params, show_module, kn_nn_nll_loss_with(params), kn_nn_nll_loss())
CALLS(kn_nn_multi_margin_loss, kn_multi_margin_loss_params, show_module, kn_nn_multi_margin_loss_with(params),
      kn_nn_multi_margin_loss())
CALLS(kn_nn_multilabel_soft_margin_loss, kn_loss_params, show_module, kn_nn_multilabel_soft_margin_loss_with(params),
      kn_nn_multilabel_soft_margin_loss())
CALLS(kn_nn_bce_loss, kn_loss_params, show_module, kn_nn_bce_loss_with(params), kn_nn_bce_loss())
CALLS(kn_nn_kl_div_loss, kn_kl_div_params, show_module, kn_nn_kl_div_loss_with(params), kn_nn_kl_div_loss())
CALLS(kn_nn_poisson_nll_loss, kn_poisson_nll_loss_params, show_module, kn_nn_poisson_nll_loss_with(params),
      kn_nn_poisson_nll_loss())
CALLS(kn_nn_hinge_embedding_loss, kn_hinge_embedding_loss_params, show_module, kn_nn_hinge_embedding_loss_with(params),
      kn_nn_hinge_embedding_loss())
CALLS(kn_nn_bce_with_logits_loss, kn_nn_bce_with_logits_loss_params, show_module,
      kn_nn_bce_with_logits_loss_with(params), kn_nn_bce_with_logits_loss())
CALLS(kn_nn_gaussian_nll_loss, kn_gaussian_nll_loss_params, show_module, kn_nn_gaussian_nll_loss_with(params),
      kn_nn_gaussian_nll_loss())
CALLS(kn_nn_margin_ranking_loss, kn_margin_ranking_loss_params, show_module, kn_nn_margin_ranking_loss_with(params),
      kn_nn_margin_ranking_loss())
CALLS(kn_nn_cosine_embedding_loss, kn_cosine_embedding_loss_params, show_module,
      kn_nn_cosine_embedding_loss_with(params), kn_nn_cosine_embedding_loss())
CALLS(kn_nn_triplet_margin_loss, kn_triplet_margin_loss_params, show_module, kn_nn_triplet_margin_loss_with(params),
      kn_nn_triplet_margin_loss())
CALLS(kn_nn_triplet_margin_with_distance_loss, kn_triplet_margin_with_distance_loss_params, show_module,
      kn_nn_triplet_margin_with_distance_loss_with(params), kn_nn_triplet_margin_with_distance_loss())
CALLS(kn_nn_ctc_loss, kn_ctc_loss_params, show_module, kn_nn_ctc_loss_with(params), kn_nn_ctc_loss())
CALLS(kn_nn_cosine_similarity, kn_cosine_similarity_params, show_module, kn_nn_cosine_similarity_with(params),
      kn_nn_cosine_similarity())
CALLS(kn_nn_pairwise_distance, kn_pairwise_distance_params, show_module, kn_nn_pairwise_distance_with(params),
      kn_nn_pairwise_distance())
CALLS(kn_nn_rms_norm, kn_nn_rms_norm_params, show_module, kn_nn_rms_norm_with(1, rows_of_3, params),
      kn_nn_rms_norm(KN_SHAPE(3)))
CALLS(kn_nn_local_response_norm, kn_local_response_norm_params, show_module, kn_nn_local_response_norm_with(2, params),
      kn_nn_local_response_norm(2))
CALLS(kn_nn_group_norm, kn_nn_group_norm_params, show_module, kn_nn_group_norm_with(params), kn_nn_group_norm())
CALLS(kn_nn_instance_norm1d, kn_nn_instance_norm_params, show_module, kn_nn_instance_norm1d_with(params),
      kn_nn_instance_norm1d())
CALLS(kn_nn_instance_norm2d, kn_nn_instance_norm_params, show_module, kn_nn_instance_norm2d_with(params),
      kn_nn_instance_norm2d())
CALLS(kn_nn_instance_norm3d, kn_nn_instance_norm_params, show_module, kn_nn_instance_norm3d_with(params),
      kn_nn_instance_norm3d())
CALLS(kn_nn_batch_norm3d, kn_nn_batch_norm_params, show_module, kn_nn_batch_norm3d_with(params), kn_nn_batch_norm3d())

/* clang-format off */
DEFAULTS(losses_defaults,
         ROW(kn_smooth_l1_loss),
         ROW(kn_huber_loss),
         ROW(kn_binary_cross_entropy),
         ROW(kn_multilabel_soft_margin_loss),
         ROW(kn_multi_margin_loss),
         ROW(kn_linear_cross_entropy),
         ROW(kn_kl_div),
         ROW(kn_poisson_nll_loss),
         ROW(kn_hinge_embedding_loss),
         ROW(kn_cosine_similarity),
         ROW(kn_pairwise_distance),
         ROW(kn_gaussian_nll_loss),
         ROW(kn_margin_ranking_loss),
         ROW(kn_cosine_embedding_loss),
         ROW(kn_triplet_margin_loss),
         ROW(kn_triplet_margin_with_distance_loss),
         ROW(kn_rms_norm),
         ROW(kn_group_norm),
         ROW(kn_instance_norm),
         ROW(kn_local_response_norm),
         ROW(kn_normalize),
         ROW(kn_gumbel_softmax),
         ROW(kn_ctc_loss),
         ROW(kn_nn_smooth_l1_loss),
         ROW(kn_nn_huber_loss),
         ROW(kn_nn_cross_entropy_loss),
         ROW(kn_nn_nll_loss),
         ROW(kn_nn_multi_margin_loss),
         ROW(kn_nn_multilabel_soft_margin_loss),
         ROW(kn_nn_bce_loss),
         ROW(kn_nn_kl_div_loss),
         ROW(kn_nn_poisson_nll_loss),
         ROW(kn_nn_hinge_embedding_loss),
         ROW(kn_nn_bce_with_logits_loss),
         ROW(kn_nn_gaussian_nll_loss),
         ROW(kn_nn_margin_ranking_loss),
         ROW(kn_nn_cosine_embedding_loss),
         ROW(kn_nn_triplet_margin_loss),
         ROW(kn_nn_triplet_margin_with_distance_loss),
         ROW(kn_nn_ctc_loss),
         ROW(kn_nn_cosine_similarity),
         ROW(kn_nn_pairwise_distance),
         ROW(kn_nn_rms_norm),
         ROW(kn_nn_local_response_norm),
         NEEDS(kn_nn_group_norm),
         NEEDS(kn_nn_instance_norm1d),
         NEEDS(kn_nn_instance_norm2d),
         NEEDS(kn_nn_instance_norm3d),
         NEEDS(kn_nn_batch_norm3d))
/* clang-format on */
