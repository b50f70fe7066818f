/* defaults_functions.c - operators. */
#include "defaults.h"

static const int64_t shape23[] = {2, 3};
static kn_tensor *square(void) { return ramp(KN_SHAPE(2, 2)); }
static kn_tensor *batch(void) { return ramp(KN_SHAPE(3, 2, 2)); }

CALLS(kn_clamp, kn_clamp_params, show_tensor, kn_clamp_with(matrix(), params), kn_clamp(matrix()))
CALLS(kn_linear, kn_linear_params, show_tensor, kn_linear_with(matrix(), matrix(), NULL, params),
      kn_linear(matrix(), matrix(), NULL))
CALLS(kn_addmm, kn_addmm_params, show_tensor, kn_addmm_with(mean(), square(), square(), params),
      kn_addmm(mean(), square(), square()))
CALLS(kn_addmv, kn_addmm_params, show_tensor, kn_addmv_with(mean(), square(), mean(), params),
      kn_addmv(mean(), square(), mean()))
CALLS(kn_addr, kn_addmm_params, show_tensor, kn_addr_with(mean(), mean(), mean(), params),
      kn_addr(mean(), mean(), mean()))
CALLS(kn_baddbmm, kn_addmm_params, show_tensor, kn_baddbmm_with(mean(), batch(), batch(), params),
      kn_baddbmm(mean(), batch(), batch()))
CALLS(kn_addbmm, kn_addmm_params, show_tensor, kn_addbmm_with(mean(), batch(), batch(), params),
      kn_addbmm(mean(), batch(), batch()))
CALLS(kn_scaled_dot_product_attention, kn_scaled_dot_product_attention_params, show_tensor,
      kn_scaled_dot_product_attention_with(matrix(), matrix(), matrix(), params),
      kn_scaled_dot_product_attention(matrix(), matrix(), matrix()))
CALLS(kn_conv2d, kn_conv_params, show_tensor, kn_conv2d_with(image(), weight(), NULL, params),
      kn_conv2d(image(), weight(), NULL))
CALLS(kn_conv1d, kn_conv_params, show_tensor, kn_conv1d_with(signal(), weight1d(), NULL, params),
      kn_conv1d(signal(), weight1d(), NULL))
CALLS(kn_conv3d, kn_conv_params, show_tensor, kn_conv3d_with(volume(), weight3d(), NULL, params),
      kn_conv3d(volume(), weight3d(), NULL))
CALLS(kn_conv_transpose1d, kn_conv_params, show_tensor, kn_conv_transpose1d_with(signal(), weight1d(), NULL, params),
      kn_conv_transpose1d(signal(), weight1d(), NULL))
CALLS(kn_conv_transpose2d, kn_conv_params, show_tensor,
      kn_conv_transpose2d_with(image(), kn_transpose(weight(), 0, 1), NULL, params),
      kn_conv_transpose2d(image(), kn_transpose(weight(), 0, 1), NULL))
CALLS(kn_conv_transpose3d, kn_conv_params, show_tensor, kn_conv_transpose3d_with(volume(), weight3d(), NULL, params),
      kn_conv_transpose3d(volume(), weight3d(), NULL))
CALLS(kn_max_pool1d, kn_pool_params, show_tensor, kn_max_pool1d_with(signal(), params), kn_max_pool1d(signal()))
CALLS(kn_max_pool3d, kn_pool_params, show_tensor, kn_max_pool3d_with(volume(), params), kn_max_pool3d(volume()))
CALLS(kn_avg_pool1d, kn_pool_params, show_tensor, kn_avg_pool1d_with(signal(), params), kn_avg_pool1d(signal()))
CALLS(kn_avg_pool3d, kn_pool_params, show_tensor, kn_avg_pool3d_with(volume(), params), kn_avg_pool3d(volume()))
static kn_tensor *places;
CALLS(kn_max_pool1d_with_indices, kn_pool_params, show_tensor,
      kn_max_pool1d_with_indices_with(signal(), &places, params), kn_max_pool1d_with_indices(signal(), &places))
CALLS(kn_max_pool2d_with_indices, kn_pool_params, show_tensor,
      kn_max_pool2d_with_indices_with(image(), &places, params), kn_max_pool2d_with_indices(image(), &places))
CALLS(kn_max_pool3d_with_indices, kn_pool_params, show_tensor,
      kn_max_pool3d_with_indices_with(volume(), &places, params), kn_max_pool3d_with_indices(volume(), &places))
CALLS(max_pool1d_of_2, kn_pool_params, show_tensor, kn_max_pool1d_with(signal(), params),
      kn_max_pool1d(signal(), .kernel_size = 2))
CALLS(max_pool3d_of_2, kn_pool_params, show_tensor, kn_max_pool3d_with(volume(), params),
      kn_max_pool3d(volume(), .kernel_size = 2))
CALLS(avg_pool1d_of_3, kn_pool_params, show_tensor, kn_avg_pool1d_with(signal(), params),
      kn_avg_pool1d(signal(), .kernel_size = 3, .padding = 1))
CALLS(avg_pool3d_of_3, kn_pool_params, show_tensor, kn_avg_pool3d_with(volume(), params),
      kn_avg_pool3d(volume(), .kernel_size = 3, .padding = 1))
CALLS(places_of_2, kn_pool_params, show_tensor, kn_max_pool2d_with_indices_with(image(), &places, params),
      kn_max_pool2d_with_indices(image(), &places, .kernel_size = 2))
CALLS(kn_max_pool2d, kn_pool_params, show_tensor, kn_max_pool2d_with(image(), params), kn_max_pool2d(image()))
CALLS(kn_avg_pool2d, kn_pool_params, show_tensor, kn_avg_pool2d_with(image(), params), kn_avg_pool2d(image()))
CALLS(max_pool2d_of_2, kn_pool_params, show_tensor, kn_max_pool2d_with(image(), params),
      kn_max_pool2d(image(), .kernel_size = 2))
CALLS(avg_pool2d_of_3, kn_pool_params, show_tensor, kn_avg_pool2d_with(image(), params),
      kn_avg_pool2d(image(), .kernel_size = 3, .padding = 1))
CALLS(kn_batch_norm, kn_batch_norm_params, show_tensor, kn_batch_norm_with(image(), params), kn_batch_norm(image()))
CALLS(batch_norm_training, kn_batch_norm_params, show_tensor, kn_batch_norm_with(image(), params),
      kn_batch_norm(image(), .training = true, .running_mean = mean(), .running_var = mean()))
static void give_training(void *params)
{
    kn_batch_norm_params *p = params;
    p->training = true;
    p->running_mean = mean();
    p->running_var = mean();
}
CALLS(kn_lstm, kn_rnn_params, show_tensor,
      kn_lstm_with(signal(), kn_ones(KN_SHAPE(8, kn_size(signal(), 2))), kn_ones(KN_SHAPE(8, 2)), params),
      kn_lstm(signal(), kn_ones(KN_SHAPE(8, kn_size(signal(), 2))), kn_ones(KN_SHAPE(8, 2))))
CALLS(kn_gru, kn_rnn_params, show_tensor,
      kn_gru_with(signal(), kn_ones(KN_SHAPE(6, kn_size(signal(), 2))), kn_ones(KN_SHAPE(6, 2)), params),
      kn_gru(signal(), kn_ones(KN_SHAPE(6, kn_size(signal(), 2))), kn_ones(KN_SHAPE(6, 2))))
CALLS(kn_rnn_tanh, kn_rnn_params, show_tensor,
      kn_rnn_tanh_with(signal(), kn_ones(KN_SHAPE(2, kn_size(signal(), 2))), kn_ones(KN_SHAPE(2, 2)), params),
      kn_rnn_tanh(signal(), kn_ones(KN_SHAPE(2, kn_size(signal(), 2))), kn_ones(KN_SHAPE(2, 2))))
CALLS(kn_rnn_relu, kn_rnn_params, show_tensor,
      kn_rnn_relu_with(signal(), kn_ones(KN_SHAPE(2, kn_size(signal(), 2))), kn_ones(KN_SHAPE(2, 2)), params),
      kn_rnn_relu(signal(), kn_ones(KN_SHAPE(2, kn_size(signal(), 2))), kn_ones(KN_SHAPE(2, 2))))
CALLS(kn_layer_norm, kn_layer_norm_params, show_tensor, kn_layer_norm_with(matrix(), 1, shape23 + 1, params),
      kn_layer_norm(matrix(), KN_SHAPE(3)))
CALLS(kn_dropout, kn_dropout_params, show_tensor, kn_dropout_with(matrix(), params), kn_dropout(matrix()))
CALLS(kn_dropout2d, kn_dropout_params, show_tensor, kn_dropout2d_with(image(), params), kn_dropout2d(image()))
CALLS(kn_elu, kn_elu_params, show_tensor, kn_elu_with(matrix(), params), kn_elu(matrix()))
CALLS(kn_celu, kn_celu_params, show_tensor, kn_celu_with(matrix(), params), kn_celu(matrix()))
CALLS(kn_leaky_relu, kn_leaky_relu_params, show_tensor, kn_leaky_relu_with(matrix(), params), kn_leaky_relu(matrix()))
CALLS(kn_softplus, kn_softplus_params, show_tensor, kn_softplus_with(matrix(), params), kn_softplus(matrix()))
CALLS(kn_hardshrink, kn_hardshrink_params, show_tensor, kn_hardshrink_with(matrix(), params), kn_hardshrink(matrix()))
CALLS(kn_softshrink, kn_softshrink_params, show_tensor, kn_softshrink_with(matrix(), params), kn_softshrink(matrix()))
CALLS(kn_gelu, kn_gelu_params, show_tensor, kn_gelu_with(matrix(), params), kn_gelu(matrix()))
CALLS(kn_rrelu, kn_rrelu_params, show_tensor, kn_rrelu_with(matrix(), params), kn_rrelu(matrix()))
CALLS(kn_logit, kn_logit_params, show_tensor, kn_logit_with(matrix(), params), kn_logit(matrix()))
CALLS(kn_round, kn_round_params, show_tensor, kn_round_with(matrix(), params), kn_round(matrix()))
CALLS(kn_nan_to_num, kn_nan_to_num_params, show_tensor, kn_nan_to_num_with(matrix(), params), kn_nan_to_num(matrix()))
CALLS(kn_dropout1d, kn_dropout_params, show_tensor, kn_dropout1d_with(signal(), params), kn_dropout1d(signal()))
CALLS(kn_dropout3d, kn_dropout_params, show_tensor, kn_dropout3d_with(volume(), params), kn_dropout3d(volume()))
CALLS(kn_stochastic_depth, kn_stochastic_depth_params, show_tensor,
      kn_stochastic_depth_with(matrix(), 0.5, KN_STOCHASTIC_DEPTH_ROW, params),
      kn_stochastic_depth(matrix(), 0.5, KN_STOCHASTIC_DEPTH_ROW))
CALLS(kn_alpha_dropout, kn_alpha_dropout_params, show_tensor, kn_alpha_dropout_with(image(), params),
      kn_alpha_dropout(image()))
CALLS(kn_feature_alpha_dropout, kn_alpha_dropout_params, show_tensor, kn_feature_alpha_dropout_with(image(), params),
      kn_feature_alpha_dropout(image()))
CALLS(kn_addcmul, kn_addcmul_params, show_tensor, kn_addcmul_with(matrix(), matrix(), matrix(), params),
      kn_addcmul(matrix(), matrix(), matrix()))
CALLS(kn_addcdiv, kn_addcmul_params, show_tensor, kn_addcdiv_with(matrix(), matrix(), matrix(), params),
      kn_addcdiv(matrix(), matrix(), matrix()))
static bool is_close;
static kn_tensor *answer(kn_status status) { return status == KN_OK ? kn_full(KN_SCALAR, is_close) : NULL; }
CALLS(kn_allclose, kn_isclose_params, show_tensor, answer(kn_allclose_with(matrix(), matrix(), &is_close, params)),
      answer(kn_allclose(matrix(), matrix(), &is_close)))
CALLS(kn_isclose, kn_isclose_params, show_tensor, kn_isclose_with(matrix(), matrix(), params),
      kn_isclose(matrix(), matrix()))
CALLS(kn_cross_entropy, kn_cross_entropy_params, show_tensor, kn_cross_entropy_with(matrix(), classes(), params),
      kn_cross_entropy(matrix(), classes()))
CALLS(kn_nll_loss, kn_cross_entropy_params, show_tensor, kn_nll_loss_with(matrix(), classes(), params),
      kn_nll_loss(matrix(), classes()))
CALLS(kn_cov, kn_cov_params, show_tensor, kn_cov_with(matrix(), params), kn_cov(matrix()))
CALLS(kn_diagonal_scatter, kn_diagonal_params, show_tensor,
      kn_diagonal_scatter_with(matrix(), ramp(KN_SHAPE(3)), params), kn_diagonal_scatter(matrix(), ramp(KN_SHAPE(3))))

/* clang-format off */
DEFAULTS(functions_defaults,
         ROW(kn_cov),
         ROW(kn_diagonal_scatter),
         ROW(kn_clamp),
         ROW(kn_elu),
         ROW(kn_celu),
         ROW(kn_leaky_relu),
         ROW(kn_softplus),
         ROW(kn_hardshrink),
         ROW(kn_softshrink),
         ROW(kn_gelu),
         ROW(kn_rrelu),
         ROW(kn_logit),
         ROW(kn_round),
         ROW(kn_nan_to_num),
         ROW(kn_dropout1d),
         ROW(kn_dropout3d),
         ROW(kn_stochastic_depth),
         ROW(kn_alpha_dropout),
         ROW(kn_feature_alpha_dropout),
         ROW(kn_addcmul),
         ROW(kn_addcdiv),
         ROW(kn_isclose),
         ROW(kn_allclose),
         ROW(kn_linear),
         ROW(kn_addmm),
         ROW(kn_addmv),
         ROW(kn_addr),
         ROW(kn_baddbmm),
         ROW(kn_addbmm),
         ROW(kn_scaled_dot_product_attention),
         ROW(kn_lstm),
         ROW(kn_gru),
         ROW(kn_rnn_tanh),
         ROW(kn_rnn_relu),
         ROW(kn_clamp),
         ROW(kn_linear),
         ROW(kn_addmm),
         ROW(kn_addmv),
         ROW(kn_addr),
         ROW(kn_baddbmm),
         ROW(kn_addbmm),
         ROW(kn_scaled_dot_product_attention),
         ROW(kn_conv1d),
         ROW(kn_conv2d),
         ROW(kn_conv3d),
         ROW(kn_conv_transpose1d),
         ROW(kn_conv_transpose2d),
         ROW(kn_conv_transpose3d),
         NEEDS(kn_max_pool1d),
         NEEDS(kn_max_pool3d),
         NEEDS(kn_avg_pool1d),
         NEEDS(kn_avg_pool3d),
         NEEDS(kn_max_pool1d_with_indices),
         NEEDS(kn_max_pool2d_with_indices),
         NEEDS(kn_max_pool3d_with_indices),
         GIVEN(max_pool1d_of_2, give_2),
         GIVEN(max_pool3d_of_2, give_2),
         GIVEN(avg_pool1d_of_3, give_3),
         GIVEN(avg_pool3d_of_3, give_3),
         GIVEN(places_of_2, give_2),
         NEEDS(kn_max_pool2d),
         NEEDS(kn_avg_pool2d),
         GIVEN(max_pool2d_of_2, give_2),
         GIVEN(avg_pool2d_of_3, give_3),
         NEEDS(kn_batch_norm),
         GIVEN(batch_norm_training, give_training),
         ROW(kn_layer_norm),
         ROW(kn_dropout),
         ROW(kn_dropout2d),
         ROW(kn_cross_entropy),
         ROW(kn_nll_loss))
/* clang-format on */
