/* defaults_modules.c - modules and optimizers. */
#include "defaults.h"

static const int64_t shape23[] = {2, 3};

CALLS(kn_nn_linear, kn_nn_linear_params, show_module, kn_nn_linear_with(params), kn_nn_linear())
CALLS(linear_of_3, kn_nn_linear_params, show_module, kn_nn_linear_with(params),
      kn_nn_linear(.in_features = 3, .out_features = 2))
static void give_features(void *params)
{
    ((kn_nn_linear_params *)params)->in_features = 3;
    ((kn_nn_linear_params *)params)->out_features = 2;
}
CALLS(kn_nn_conv2d, kn_nn_conv_params, show_module, kn_nn_conv2d_with(params), kn_nn_conv2d())
CALLS(conv2d_of_3, kn_nn_conv_params, show_module, kn_nn_conv2d_with(params),
      kn_nn_conv2d(.in_channels = 2, .out_channels = 4, .kernel_size = 3))
static void give_channels(void *params)
{
    ((kn_nn_conv_params *)params)->in_channels = 2;
    ((kn_nn_conv_params *)params)->out_channels = 4;
    ((kn_nn_conv_params *)params)->kernel_size = 3;
}
CALLS(kn_nn_conv1d, kn_nn_conv_params, show_module, kn_nn_conv1d_with(params), kn_nn_conv1d())
CALLS(kn_nn_conv3d, kn_nn_conv_params, show_module, kn_nn_conv3d_with(params), kn_nn_conv3d())
CALLS(kn_nn_conv_transpose1d, kn_nn_conv_params, show_module, kn_nn_conv_transpose1d_with(params),
      kn_nn_conv_transpose1d())
CALLS(kn_nn_conv_transpose2d, kn_nn_conv_params, show_module, kn_nn_conv_transpose2d_with(params),
      kn_nn_conv_transpose2d())
CALLS(kn_nn_conv_transpose3d, kn_nn_conv_params, show_module, kn_nn_conv_transpose3d_with(params),
      kn_nn_conv_transpose3d())
CALLS(conv1d_of_3, kn_nn_conv_params, show_module, kn_nn_conv1d_with(params),
      kn_nn_conv1d(.in_channels = 2, .out_channels = 4, .kernel_size = 3))
CALLS(conv_transpose3d_of_3, kn_nn_conv_params, show_module, kn_nn_conv_transpose3d_with(params),
      kn_nn_conv_transpose3d(.in_channels = 2, .out_channels = 4, .kernel_size = 3))
CALLS(kn_nn_max_pool1d, kn_pool_params, show_module, kn_nn_max_pool1d_with(params), kn_nn_max_pool1d())
CALLS(kn_nn_max_pool3d, kn_pool_params, show_module, kn_nn_max_pool3d_with(params), kn_nn_max_pool3d())
CALLS(kn_nn_avg_pool1d, kn_pool_params, show_module, kn_nn_avg_pool1d_with(params), kn_nn_avg_pool1d())
CALLS(kn_nn_avg_pool3d, kn_pool_params, show_module, kn_nn_avg_pool3d_with(params), kn_nn_avg_pool3d())
CALLS(kn_nn_max_pool2d, kn_pool_params, show_module, kn_nn_max_pool2d_with(params), kn_nn_max_pool2d())
CALLS(kn_nn_avg_pool2d, kn_pool_params, show_module, kn_nn_avg_pool2d_with(params), kn_nn_avg_pool2d())
CALLS(nn_max_pool2d_of_2, kn_pool_params, show_module, kn_nn_max_pool2d_with(params),
      kn_nn_max_pool2d(.kernel_size = 2))
CALLS(nn_avg_pool2d_of_2, kn_pool_params, show_module, kn_nn_avg_pool2d_with(params),
      kn_nn_avg_pool2d(.kernel_size = 2))
CALLS(kn_nn_batch_norm1d, kn_nn_batch_norm_params, show_module, kn_nn_batch_norm1d_with(params), kn_nn_batch_norm1d())
CALLS(kn_nn_batch_norm2d, kn_nn_batch_norm_params, show_module, kn_nn_batch_norm2d_with(params), kn_nn_batch_norm2d())
CALLS(batch_norm1d_of_2, kn_nn_batch_norm_params, show_module, kn_nn_batch_norm1d_with(params),
      kn_nn_batch_norm1d(.num_features = 2))
CALLS(batch_norm2d_of_2, kn_nn_batch_norm_params, show_module, kn_nn_batch_norm2d_with(params),
      kn_nn_batch_norm2d(.num_features = 2))
static void give_num_features(void *params) { ((kn_nn_batch_norm_params *)params)->num_features = 2; }
CALLS(kn_nn_multihead_attention, kn_nn_multihead_attention_params, show_module, kn_nn_multihead_attention_with(params),
      kn_nn_multihead_attention())
CALLS(kn_nn_transformer_encoder_layer, kn_nn_transformer_layer_params, show_module,
      kn_nn_transformer_encoder_layer_with(params), kn_nn_transformer_encoder_layer())
CALLS(kn_nn_transformer_decoder_layer, kn_nn_transformer_layer_params, show_module,
      kn_nn_transformer_decoder_layer_with(params), kn_nn_transformer_decoder_layer())
CALLS(kn_nn_transformer_encoder, kn_nn_transformer_layer_params, show_module,
      kn_nn_transformer_encoder_with(1, NULL, params), kn_nn_transformer_encoder(1, NULL))
CALLS(kn_nn_transformer_decoder, kn_nn_transformer_layer_params, show_module,
      kn_nn_transformer_decoder_with(1, NULL, params), kn_nn_transformer_decoder(1, NULL))
CALLS(kn_nn_square_subsequent_mask, kn_tensor_options, show_tensor, kn_nn_square_subsequent_mask_with(3, params),
      kn_nn_square_subsequent_mask(3))
CALLS(small_transformer, kn_nn_transformer_params, show_module, kn_nn_transformer_with(params),
      kn_nn_transformer(.d_model = 8, .num_encoder_layers = 1, .num_decoder_layers = 1, .dim_feedforward = 4))
static void give_small(void *params)
{
    kn_nn_transformer_params *p = params;
    p->d_model = 8;
    p->num_encoder_layers = p->num_decoder_layers = 1;
    p->dim_feedforward = 4;
}
static kn_module *small_attention(void) { return kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 2); }
static kn_tensor *attended(const kn_multihead_attention_params *params)
{
    kn_module *module = small_attention();
    kn_init_uniform_with_(kn_module_get(module, "in_proj_weight"), 0.5, 0.5, NULL);
    kn_init_uniform_with_(kn_module_get(module, "out_proj.weight"), 0.5, 0.5, NULL);
    kn_tensor *x = ramp(KN_SHAPE(2, 3, 4));
    kn_tensor *y =
        params ? kn_multihead_attention_with(module, x, x, x, params) : kn_multihead_attention(module, x, x, x);
    kn_module_free(module);
    return y;
}
CALLS(kn_multihead_attention, kn_multihead_attention_params, show_tensor, attended(params), attended(NULL))
CALLS(kn_nn_layer_norm, kn_nn_layer_norm_params, show_module, kn_nn_layer_norm_with(2, shape23, params),
      kn_nn_layer_norm(KN_SHAPE(2, 3)))
CALLS(kn_nn_dropout, kn_nn_dropout_params, show_module, kn_nn_dropout_with(params), kn_nn_dropout())
CALLS(kn_nn_dropout2d, kn_nn_dropout_params, show_module, kn_nn_dropout2d_with(params), kn_nn_dropout2d())
CALLS(kn_nn_elu, kn_elu_params, show_module, kn_nn_elu_with(params), kn_nn_elu())
CALLS(kn_nn_celu, kn_celu_params, show_module, kn_nn_celu_with(params), kn_nn_celu())
CALLS(kn_nn_leaky_relu, kn_leaky_relu_params, show_module, kn_nn_leaky_relu_with(params), kn_nn_leaky_relu())
CALLS(kn_nn_softplus, kn_softplus_params, show_module, kn_nn_softplus_with(params), kn_nn_softplus())
CALLS(kn_nn_hardshrink, kn_hardshrink_params, show_module, kn_nn_hardshrink_with(params), kn_nn_hardshrink())
CALLS(kn_nn_softshrink, kn_softshrink_params, show_module, kn_nn_softshrink_with(params), kn_nn_softshrink())
CALLS(kn_nn_gelu, kn_gelu_params, show_module, kn_nn_gelu_with(params), kn_nn_gelu())
CALLS(kn_nn_rrelu, kn_rrelu_params, show_module, kn_nn_rrelu_with(params), kn_nn_rrelu())
CALLS(kn_nn_prelu, kn_nn_prelu_params, show_module, kn_nn_prelu_with(params), kn_nn_prelu())
CALLS(kn_nn_dropout1d, kn_nn_dropout_params, show_module, kn_nn_dropout1d_with(params), kn_nn_dropout1d())
CALLS(kn_nn_dropout3d, kn_nn_dropout_params, show_module, kn_nn_dropout3d_with(params), kn_nn_dropout3d())
CALLS(kn_nn_alpha_dropout, kn_nn_dropout_params, show_module, kn_nn_alpha_dropout_with(params), kn_nn_alpha_dropout())
CALLS(kn_nn_feature_alpha_dropout, kn_nn_dropout_params, show_module, kn_nn_feature_alpha_dropout_with(params),
      kn_nn_feature_alpha_dropout())
CALLS(kn_models_new, kn_models_params, show_module, kn_models_new_with("lenet5", params), kn_models_new("lenet5"))
CALLS(gpt2_of_8, kn_models_gpt2_params, show_module, kn_models_gpt2_with(params),
      kn_models_gpt2(.vocab_size = 5, .n_positions = 6, .n_embd = 8, .n_layer = 1, .n_head = 2))
static void give_gpt2(void *params)
{
    kn_models_gpt2_params *p = params;
    p->vocab_size = 5;
    p->n_positions = 6;
    p->n_embd = 8;
    p->n_layer = 1;
    p->n_head = 2;
}
CALLS(bert_of_8, kn_models_bert_params, show_module, kn_models_bert_with(params),
      kn_models_bert(.vocab_size = 5, .hidden_size = 8, .num_hidden_layers = 1, .num_attention_heads = 2,
                     .intermediate_size = 16))
static void give_bert(void *params)
{
    kn_models_bert_params *p = params;
    p->vocab_size = 5;
    p->hidden_size = 8;
    p->num_hidden_layers = 1;
    p->num_attention_heads = 2;
    p->intermediate_size = 16;
}
CALLS(vit_of_8, kn_models_vit_params, show_module, kn_models_vit_with(params),
      kn_models_vit(.image_size = 4, .patch_size = 2, .num_layers = 1, .num_heads = 2, .hidden_dim = 8, .mlp_dim = 12))
static void give_vit(void *params)
{
    kn_models_vit_params *p = params;
    p->image_size = 4;
    p->patch_size = 2;
    p->num_layers = 1;
    p->num_heads = 2;
    p->hidden_dim = 8;
    p->mlp_dim = 12;
}
CALLS(lstm_classifier_of_5, kn_models_lstm_classifier_params, show_module, kn_models_lstm_classifier_with(params),
      kn_models_lstm_classifier(.vocab_size = 5))
static void give_vocab_size(void *params) { ((kn_models_lstm_classifier_params *)params)->vocab_size = 5; }
CALLS(kn_nn_data_parallel, kn_data_parallel_params, show_module, kn_nn_data_parallel_with(kn_nn_relu(), params),
      kn_nn_data_parallel(kn_nn_relu()))

CALLS(kn_nn_rnn, kn_nn_rnn_params, show_module, kn_nn_rnn_with(params), kn_nn_rnn())
CALLS(kn_nn_lstm, kn_nn_rnn_params, show_module, kn_nn_lstm_with(params), kn_nn_lstm())
CALLS(kn_nn_gru, kn_nn_rnn_params, show_module, kn_nn_gru_with(params), kn_nn_gru())
CALLS(kn_nn_rnn_cell, kn_nn_rnn_cell_params, show_module, kn_nn_rnn_cell_with(params), kn_nn_rnn_cell())
CALLS(kn_nn_lstm_cell, kn_nn_rnn_cell_params, show_module, kn_nn_lstm_cell_with(params), kn_nn_lstm_cell())
CALLS(kn_nn_gru_cell, kn_nn_rnn_cell_params, show_module, kn_nn_gru_cell_with(params), kn_nn_gru_cell())
CALLS(lstm_of_2, kn_nn_rnn_params, show_module, kn_nn_lstm_with(params), kn_nn_lstm(.input_size = 2, .hidden_size = 3))
CALLS(gru_cell_of_2, kn_nn_rnn_cell_params, show_module, kn_nn_gru_cell_with(params),
      kn_nn_gru_cell(.input_size = 2, .hidden_size = 3))
static void give_rnn_sizes(void *params)
{
    ((kn_nn_rnn_params *)params)->input_size = 2;
    ((kn_nn_rnn_params *)params)->hidden_size = 3;
}
static void give_cell_sizes(void *params)
{
    ((kn_nn_rnn_cell_params *)params)->input_size = 2;
    ((kn_nn_rnn_cell_params *)params)->hidden_size = 3;
}

CALLS(kn_optim_sgd, kn_sgd_params, show_optim, kn_optim_sgd_with(some_parameters(), params),
      kn_optim_sgd(some_parameters()))
CALLS(kn_optim_adam, kn_adam_params, show_optim, kn_optim_adam_with(some_parameters(), params),
      kn_optim_adam(some_parameters()))

static char *show_made(kn_module *module)
{
    if (module == NULL)
        return show_error();
    static char text[64];
    snprintf(text, sizeof text, "%d in, %d out", kn_module_input_count(module), kn_module_output_count(module));
    kn_module_free(module);
    return strdup(text);
}
static kn_status pass_on(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)module;
    outputs[0] = inputs[0];
    return KN_OK;
}
CALLS(kn_module_new_many, kn_module_new_many_params, show_made, kn_module_new_many_with("Any", pass_on, params),
      kn_module_new_many("Any", pass_on))

/* Neither function has a macro with options: uses the plain call instead. */
CALLS(kn_module_summary, kn_module_summary_params, show_text, kn_module_summary_with(some_module(), params),
      kn_module_summary(some_module()))
static char *load_module(const kn_module_load_params *params)
{
    return kn_module_load_with(some_module(), "/nowhere/net.safetensors", params) == KN_OK ? NULL : show_error();
}
static char *load_module_by_macro(void)
{
    return kn_module_load(some_module(), "/nowhere/net.safetensors") == KN_OK ? NULL : show_error();
}
CALLS(kn_module_load, kn_module_load_params, , load_module(params), load_module_by_macro())

/* clang-format off */
DEFAULTS(modules_defaults,
         NEEDS(kn_nn_linear),
         GIVEN(linear_of_3, give_features),
         NEEDS(kn_nn_conv1d),
         NEEDS(kn_nn_conv2d),
         NEEDS(kn_nn_conv3d),
         NEEDS(kn_nn_conv_transpose1d),
         NEEDS(kn_nn_conv_transpose2d),
         NEEDS(kn_nn_conv_transpose3d),
         GIVEN(conv1d_of_3, give_channels),
         GIVEN(conv_transpose3d_of_3, give_channels),
         NEEDS(kn_nn_max_pool1d),
         NEEDS(kn_nn_max_pool3d),
         NEEDS(kn_nn_avg_pool1d),
         NEEDS(kn_nn_avg_pool3d),
         GIVEN(conv2d_of_3, give_channels),
         NEEDS(kn_nn_max_pool2d),
         NEEDS(kn_nn_avg_pool2d),
         GIVEN(nn_max_pool2d_of_2, give_2),
         GIVEN(nn_avg_pool2d_of_2, give_2),
         NEEDS(kn_nn_batch_norm1d),
         NEEDS(kn_nn_batch_norm2d),
         NEEDS(kn_nn_rnn),
         NEEDS(kn_nn_lstm),
         NEEDS(kn_nn_gru),
         NEEDS(kn_nn_rnn_cell),
         NEEDS(kn_nn_lstm_cell),
         NEEDS(kn_nn_gru_cell),
         GIVEN(lstm_of_2, give_rnn_sizes),
         GIVEN(gru_cell_of_2, give_cell_sizes),
         GIVEN(batch_norm1d_of_2, give_num_features),
         GIVEN(batch_norm2d_of_2, give_num_features),
         ROW(kn_nn_layer_norm),
         NEEDS(kn_nn_multihead_attention),
         NEEDS(kn_nn_transformer_encoder_layer),
         NEEDS(kn_nn_transformer_decoder_layer),
         NEEDS(kn_nn_transformer_encoder),
         NEEDS(kn_nn_transformer_decoder),
         GIVEN(small_transformer, give_small),
         ROW(kn_multihead_attention),
         ROW(kn_nn_square_subsequent_mask),
         ROW(kn_nn_dropout),
         ROW(kn_nn_dropout2d),
         ROW(kn_nn_elu),
         ROW(kn_nn_celu),
         ROW(kn_nn_leaky_relu),
         ROW(kn_nn_softplus),
         ROW(kn_nn_hardshrink),
         ROW(kn_nn_softshrink),
         ROW(kn_nn_gelu),
         ROW(kn_nn_rrelu),
         ROW(kn_nn_prelu),
         ROW(kn_nn_dropout1d),
         ROW(kn_nn_dropout3d),
         ROW(kn_nn_alpha_dropout),
         ROW(kn_nn_feature_alpha_dropout),
         ROW(kn_models_new),
         GIVEN(gpt2_of_8, give_gpt2),
         GIVEN(bert_of_8, give_bert),
         GIVEN(vit_of_8, give_vit),
         GIVEN(lstm_classifier_of_5, give_vocab_size),
         ROW(kn_nn_data_parallel),
         ROW(kn_module_summary),
         ROW(kn_module_new_many),
         NEEDS(kn_module_load),
         ROW(kn_optim_sgd),
         ROW(kn_optim_adam))
/* clang-format on */
