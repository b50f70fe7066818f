/* test_bad_parameters.c - every layer refuses parameters that PyTorch refuses, or that cannot be meant, when it is
 * made, in a sentence with the layer, the parameter, its value and what is allowed. */
#include "support/check.h"

#include <string.h>

static int wrong;

/* The layer was refused, and the message has all of these pieces. */
static void refused(kn_module *module, const char *call, const char *const *pieces)
{
    const bool is_argument = !module && kn_error_status() == KN_ERR_ARGUMENT;
    for (int i = 0; pieces[i]; i++)
        if (!is_argument || !strstr(kn_error_message(), pieces[i])) {
            print_error("%s: %s; expected \"%s\" in it\n", call, module ? "accepted" : kn_error_message(), pieces[i]);
            wrong++;
            break;
        }
    kn_module_free(module);
    kn_error_clear();
}
#define BAD(call, ...) refused(call, #call, (const char *const[]){__VA_ARGS__, NULL})

#define ONE "at least 1"
#define PROBABILITY "from 0 to 1, not"

TENSOR_TEST(linear_layers)
{
    const int64_t falling[] = {5, 3}, far[] = {3, 10}, cuts[] = {2, 5};
    wrong = 0;
    BAD(kn_nn_linear(.in_features = -1, .out_features = 2), "Linear: in_features", "-1", ONE);
    BAD(kn_nn_linear(.in_features = 2, .out_features = 0), "Linear: ", "out_features (0)", ONE);
    BAD(kn_nn_bilinear(.in1_features = 0, .in2_features = 1, .out_features = 1), "Bilinear: in1_features (0)", ONE);
    BAD(kn_nn_bilinear(.in1_features = 1, .in2_features = -2, .out_features = 1), "in2_features (-2)", ONE);
    BAD(kn_nn_embedding(.num_embeddings = 0, .embedding_dim = 2), "Embedding: num_embeddings (0)", ONE);
    BAD(kn_nn_embedding(.num_embeddings = 3, .embedding_dim = 0), "Embedding: ", "embedding_dim (0)", ONE);
    BAD(kn_nn_embedding(.num_embeddings = 3, .embedding_dim = 2, .padding_idx = 3),
        "Embedding: padding_idx must be from -3 to 2, not 3");
    BAD(kn_nn_embedding(.num_embeddings = 3, .embedding_dim = 2, .max_norm = -1), "Embedding: max_norm", "not -1");
    BAD(kn_nn_embedding_bag(.num_embeddings = 3, .embedding_dim = 2, .mode = (kn_embedding_bag_mode)7),
        "EmbeddingBag: mode", "sum, mean, max", "not 7");
    BAD(kn_nn_embedding_bag(.num_embeddings = 3, .embedding_dim = 2, .padding_idx = -4),
        "EmbeddingBag: padding_idx must be from -3 to 2, not -4");
#define ADAPTIVE(...)                                                                                                  \
    kn_nn_adaptive_log_softmax_with_loss(.in_features = 8, .n_classes = 10, .cutoffs = cuts, .num_cutoffs = 2,         \
                                         __VA_ARGS__)
    BAD(kn_nn_adaptive_log_softmax_with_loss(.in_features = 8, .n_classes = 10),
        "AdaptiveLogSoftmaxWithLoss: there must be 1 to 32 cutoffs, not 0");
    KN_OVERRIDE_BEGIN
    BAD(ADAPTIVE(.in_features = 0), "AdaptiveLogSoftmaxWithLoss: in_features must be at least 1, not 0");
    BAD(ADAPTIVE(.n_classes = 1), "AdaptiveLogSoftmaxWithLoss: n_classes must be at least 2, not 1");
    BAD(ADAPTIVE(.cutoffs = falling), "cutoffs must ascend from 1 to n_classes - 1 (9), but cutoff 1 is 3");
    BAD(ADAPTIVE(.cutoffs = far), "cutoffs must ascend from 1 to n_classes - 1 (9), but cutoff 1 is 10");
    BAD(ADAPTIVE(.div_value = 0), "div_value must be greater than 0, not 0");
    KN_OVERRIDE_END
    BAD(ADAPTIVE(.head_bias = true), "in_features (8) divided 2 times by div_value (4) leaves no feature");
    assert_int_equal(wrong, 0);
}

TENSOR_TEST(convolutions)
{
    static kn_module *(*const all[])(const kn_nn_conv_params *) = {
        kn_nn_conv1d_with,           kn_nn_conv2d_with,           kn_nn_conv3d_with,
        kn_nn_conv_transpose1d_with, kn_nn_conv_transpose2d_with, kn_nn_conv_transpose3d_with};
    wrong = 0;
    for (int i = 0; i < 6; i++) {
        const kn_nn_conv_params good = {KN_NN_CONV_DEFAULTS, .in_channels = 2, .out_channels = 4, .kernel_size = 3};
        kn_nn_conv_params p = good;
        p.in_channels = 0;
        BAD(all[i](&p), "Conv", "in_channels (0)", ONE);
        p = good, p.out_channels = -1;
        BAD(all[i](&p), "out_channels (-1)", ONE);
        p = good, p.groups = 0;
        BAD(all[i](&p), "groups (0)", ONE);
        p = good, p.groups = 3;
        BAD(all[i](&p), "groups (3) must divide in_channels (2)", "out_channels (4)");
        p = good, p.kernel_size = 0;
        BAD(all[i](&p), "kernel_size (0", ONE);
        p = good, p.stride = 0;
        BAD(all[i](&p), "stride", "0", ONE);
        p = good, p.dilation = -1;
        BAD(all[i](&p), "dilation", "-1", ONE);
        p = good, p.padding = -7;
        BAD(all[i](&p), "padding must be 0 or more", "-7");
        p = good, p.padding_mode = (kn_padding_mode)9;
        BAD(all[i](&p), "padding_mode", "9", "zeros");
        p = good, p.output_padding = 1;
        if (i < 3)
            BAD(all[i](&p), "output_padding", "1", "transposed");
        else
            BAD(all[i](&p), "output_padding", "1", "stride");
        p = good, p.padding = KN_PADDING_SAME, p.stride = 2;
        BAD(all[i](&p), "KN_PADDING_SAME");
    }
    assert_int_equal(wrong, 0);
}

TENSOR_TEST(pooling)
{
    static kn_module *(*const all[])(const kn_pool_params *) = {
        kn_nn_max_pool1d_with, kn_nn_max_pool2d_with, kn_nn_max_pool3d_with, kn_nn_max_pool2d_with_indices_with,
        kn_nn_avg_pool1d_with, kn_nn_avg_pool2d_with, kn_nn_avg_pool3d_with};
    wrong = 0;
    for (int i = 0; i < 7; i++) {
        const kn_pool_params good = {KN_POOL_DEFAULTS, .kernel_size = 3};
        kn_pool_params p = good;
        p.kernel_size = 0;
        BAD(all[i](&p), "Pool", "kernel_size 0", "1 or more");
        p = good, p.stride = -1;
        BAD(all[i](&p), "stride", "-1");
        p = good, p.padding = 2;
        BAD(all[i](&p), "padding", "2", "half");
        p = good, p.padding = -1;
        BAD(all[i](&p), "padding -1", "from 0 to half");
        p = good, p.dilation = 0;
        BAD(all[i](&p), "dilation", "0");
    }
    BAD(kn_nn_lp_pool1d(0, .kernel_size = 2), "LPPool1d: norm_type", "0");
    BAD(kn_nn_lp_pool2d(2, .kernel_size = 0), "LPPool2d: kernel_size (0", ONE);
    BAD(kn_nn_max_unpool2d(.kernel_size = 0), "MaxUnpool2d: kernel_size 0", "1 or more");
    BAD(kn_nn_max_unpool1d(.kernel_size = 2, .stride = -1), "MaxUnpool1d: ", "stride -1", "1 or more");
    BAD(kn_nn_adaptive_avg_pool1d(0), "AdaptiveAvgPool1d: output_size (0", ONE);
    BAD(kn_nn_adaptive_max_pool2d(2, -3), "AdaptiveMaxPool2d: output_size (-3", ONE);
    BAD(kn_nn_fractional_max_pool2d(.kernel_size = 0, .output_size = 2), "FractionalMaxPool2d: kernel_size", "0", ONE);
    BAD(kn_nn_fractional_max_pool2d(.kernel_size = 2), "FractionalMaxPool2d: ", "output_size", "output_ratio");
    BAD(kn_nn_fractional_max_pool2d(.kernel_size = 2, .output_ratio = 1.5), "output_ratio", "1.5", "0", "1");
    BAD(kn_nn_fractional_max_pool3d(.kernel_size = 2, .output_size = 2, .output_ratio = 0.5),
        "FractionalMaxPool3d: ", "output_size", "output_ratio");
    assert_int_equal(wrong, 0);
}

TENSOR_TEST(normalisation)
{
    wrong = 0;
    BAD(kn_nn_batch_norm1d(.num_features = 0), "BatchNorm1d: num_features (0)", ONE);
    BAD(kn_nn_batch_norm2d(.num_features = 2, .eps = -1), "BatchNorm2d: eps must not be negative: -1");
    BAD(kn_nn_batch_norm3d(.num_features = 2, .momentum = -2), "BatchNorm3d: momentum", "-2");
    BAD(kn_nn_instance_norm1d(.num_features = -1), "InstanceNorm1d: num_features (-1)", ONE);
    BAD(kn_nn_instance_norm2d(.num_features = 2, .eps = -1), "InstanceNorm2d: eps must not be negative: -1");
    BAD(kn_nn_instance_norm3d(.num_features = 2, .momentum = -1), "InstanceNorm3d: momentum", "-1");
    BAD(kn_nn_group_norm(.num_groups = 3, .num_channels = 4),
        "GroupNorm: num_channels (4) must be divisible by num_groups (3)");
    BAD(kn_nn_group_norm(.num_groups = 0, .num_channels = 4), "GroupNorm: ", "num_groups (0)");
    BAD(kn_nn_group_norm(.num_groups = 2, .num_channels = 4, .eps = -1), "GroupNorm: eps must not be negative: -1");
    BAD(kn_nn_layer_norm(KN_SHAPE(0)), "LayerNorm: size 0 of the normalised shape (0)", ONE);
    BAD(kn_nn_layer_norm_with(0, (int64_t[]){1}, NULL), "LayerNorm: the normalised shape has 0 dimensions", "1 to");
    BAD(kn_nn_layer_norm(KN_SHAPE(3), .eps = -1), "LayerNorm: eps must not be negative: -1");
    BAD(kn_nn_rms_norm(KN_SHAPE(3, -1)), "RMSNorm: size 1 of the normalised shape (-1)", ONE);
    BAD(kn_nn_local_response_norm(0), "LocalResponseNorm: size must be at least 1, not 0");
    assert_int_equal(wrong, 0);
}

TENSOR_TEST(recurrent_layers)
{
    static kn_module *(*const all[])(const kn_nn_rnn_params *) = {kn_nn_rnn_with, kn_nn_lstm_with, kn_nn_gru_with};
    static kn_module *(*const cells[])(const kn_nn_rnn_cell_params *) = {kn_nn_rnn_cell_with, kn_nn_lstm_cell_with,
                                                                         kn_nn_gru_cell_with};
    wrong = 0;
    for (int i = 0; i < 3; i++) {
        const kn_nn_rnn_params good = {KN_NN_RNN_DEFAULTS, .input_size = 2, .hidden_size = 3};
        kn_nn_rnn_params p = good;
        p.input_size = 0;
        BAD(all[i](&p), "input_size (0)", ONE);
        p = good, p.hidden_size = -1;
        BAD(all[i](&p), "hidden_size (-1)", ONE);
        p = good, p.hidden_size = INT64_MAX / 2; /* four gates of this size are no int64 */
        BAD(all[i](&p), "hidden_size (4611686018427387903) is too large");
        p = good, p.num_layers = 0;
        BAD(all[i](&p), "num_layers (0)", ONE);
        p = good, p.dropout = 1.5;
        BAD(all[i](&p), "dropout", "from 0 to 1, not 1.5");
        p = good, p.proj_size = 3;
        BAD(all[i](&p), i == 1 ? "proj_size (3) must be from 1 to hidden_size - 1" : "only LSTM has proj_size");
        p = good, p.nonlinearity = (kn_rnn_nonlinearity)5;
        BAD(all[i](&p), "nonlinearity", i == 0 ? "tanh or relu, not 5" : "only RNN");
        kn_nn_rnn_cell_params cell = {KN_NN_RNN_CELL_DEFAULTS, .input_size = 0, .hidden_size = 3};
        BAD(cells[i](&cell), "Cell: input_size (0)", ONE);
        cell.input_size = 2, cell.hidden_size = 0;
        BAD(cells[i](&cell), "hidden_size (0)", ONE);
        cell.hidden_size = 3, cell.nonlinearity = (kn_rnn_nonlinearity)5;
        BAD(cells[i](&cell), "nonlinearity", i == 0 ? "tanh or relu, not 5" : "only RNNCell");
    }
    assert_int_equal(wrong, 0);
}

TENSOR_TEST(attention)
{
    wrong = 0;
    BAD(kn_nn_multihead_attention(.embed_dim = 0, .num_heads = 1), "MultiheadAttention: ", "embed_dim", "0", ONE);
    BAD(kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 0), "MultiheadAttention: ", "num_heads", "0", ONE);
    BAD(kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 3), "embed_dim (4)", "num_heads (3)", "multiple");
    BAD(kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 2, .dropout = -1), "dropout must be " PROBABILITY " -1");
    BAD(kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 2, .kdim = -1), "kdim", "-1");
    BAD(kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 2, .vdim = -1), "vdim", "-1");
    BAD(kn_nn_transformer_encoder_layer(.d_model = 4, .nhead = 3), "TransformerEncoderLayer", "d_model (4)",
        "nhead (3)");
    BAD(kn_nn_transformer_encoder_layer(.d_model = 0, .nhead = 1), "TransformerEncoderLayer", "d_model", "0", ONE);
    BAD(kn_nn_transformer_decoder_layer(.d_model = 4, .nhead = 0), "TransformerDecoderLayer", "nhead", "0", ONE);
    BAD(kn_nn_transformer_decoder_layer(.d_model = 4, .nhead = 2, .dim_feedforward = -1), "dim_feedforward", "-1", ONE);
    BAD(kn_nn_transformer_encoder_layer(.d_model = 4, .nhead = 2, .dropout = 2), "dropout", PROBABILITY " 2");
    BAD(kn_nn_transformer_encoder_layer(.d_model = 4, .nhead = 2, .layer_norm_eps = -1), "layer_norm_eps", "-1",
        "negative");
    BAD(kn_nn_transformer_encoder(-1, NULL, .d_model = 4, .nhead = 2),
        "TransformerEncoder: num_layers must be at least 0, not -1");
    BAD(kn_nn_transformer(.d_model = 4, .nhead = 3), "d_model (4)", "nhead (3)");
    BAD(kn_nn_transformer(.d_model = 4, .nhead = 2, .num_decoder_layers = -2), "num_decoder_layers", "-2");
    assert_int_equal(wrong, 0);
}

TENSOR_TEST(dropout_and_activations)
{
    wrong = 0;
    BAD(kn_nn_dropout(.p = -0.5), "Dropout: p must be a probability from 0 to 1, not -0.5");
    BAD(kn_nn_dropout1d(.p = 2), "Dropout1d: p must be a probability from 0 to 1, not 2");
    BAD(kn_nn_dropout2d(.p = 2), "Dropout2d: p must be a probability from 0 to 1, not 2");
    BAD(kn_nn_dropout3d(.p = (double)NAN), "Dropout3d: p must be a probability from 0 to 1, not ");
    BAD(kn_nn_alpha_dropout(.p = 2), "AlphaDropout: p must be", "from 0 to 1, not 2");
    BAD(kn_nn_feature_alpha_dropout(.p = 2), "FeatureAlphaDropout: p must be", "from 0 to 1, not 2");
    BAD(kn_nn_stochastic_depth(1.5, KN_STOCHASTIC_DEPTH_ROW), "StochasticDepth: p must be a probability from 0 to 1");
    BAD(kn_nn_stochastic_depth(0.5, (kn_stochastic_depth_mode)3), "StochasticDepth: mode must be batch or row, not 3");
    BAD(kn_nn_hardtanh(2, 1), "Hardtanh: min_val (2) must not be greater than max_val (1)");
    BAD(kn_nn_rrelu(.lower = 2, .upper = 1), "RReLU: lower (2) must not be greater than upper (1)");
    BAD(kn_nn_prelu(.num_parameters = 0), "PReLU: num_parameters must be at least 1, not 0");
    BAD(kn_nn_celu(.alpha = 0), "CELU: alpha must not be 0");
    BAD(kn_nn_softshrink(.lambd = -1), "Softshrink: lambd must be at least 0, not -1");
    BAD(kn_nn_gelu(.approximate = (kn_gelu_approximation)4), "GELU: approximate must be one of", "none", "tanh",
        "not 4");
    assert_int_equal(wrong, 0);
}

TENSOR_TEST(losses)
{
    const kn_reduction none = (kn_reduction)9;
    wrong = 0;
    BAD(kn_nn_l1_loss(none), "L1Loss: reduction must be one of", "not 9");
    BAD(kn_nn_mse_loss(none), "MSELoss: reduction must be one of", "not 9");
    BAD(kn_nn_soft_margin_loss(none), "SoftMarginLoss: reduction", "not 9");
    BAD(kn_nn_multilabel_margin_loss(none), "MultiLabelMarginLoss: reduction", "not 9");
    BAD(kn_nn_smooth_l1_loss(.beta = -1), "SmoothL1Loss: beta must be at least 0, not -1");
    BAD(kn_nn_huber_loss(.delta = 0), "HuberLoss: delta must be greater than 0, not 0");
    BAD(kn_nn_cross_entropy_loss(.label_smoothing = 2), "CrossEntropyLoss: label_smoothing must be from 0 to 1, not 2");
    BAD(kn_nn_cross_entropy_loss(.reduction = none), "CrossEntropyLoss: reduction must be", "not 9");
    BAD(kn_nn_nll_loss(.reduction = none), "NLLLoss: reduction must be", "not 9");
    BAD(kn_nn_multi_margin_loss(.p = 3), "MultiMarginLoss: p must be from 1 to 2, not 3");
    BAD(kn_nn_bce_loss(.reduction = none), "BCELoss: reduction", "not 9");
    BAD(kn_nn_bce_with_logits_loss(.reduction = none), "BCEWithLogitsLoss: reduction", "not 9");
    BAD(kn_nn_multilabel_soft_margin_loss(.reduction = none), "MultiLabelSoftMarginLoss: reduction", "not 9");
    BAD(kn_nn_kl_div_loss(.reduction = none), "KLDivLoss: reduction", "not 9");
    BAD(kn_nn_poisson_nll_loss(.reduction = none), "PoissonNLLLoss: reduction", "not 9");
    BAD(kn_nn_gaussian_nll_loss(.eps = 0), "GaussianNLLLoss: eps must be greater than 0, not 0");
    BAD(kn_nn_hinge_embedding_loss(.reduction = none), "HingeEmbeddingLoss: reduction", "not 9");
    BAD(kn_nn_margin_ranking_loss(.reduction = none), "MarginRankingLoss: reduction", "not 9");
    BAD(kn_nn_cosine_embedding_loss(.reduction = none), "CosineEmbeddingLoss: reduction", "not 9");
    BAD(kn_nn_triplet_margin_loss(.margin = 0), "TripletMarginLoss: margin must be greater than 0, not 0");
    BAD(kn_nn_triplet_margin_with_distance_loss(.margin = -1), "TripletMarginWithDistanceLoss: margin",
        "greater than 0");
    BAD(kn_nn_ctc_loss(.blank = -1), "CTCLoss: blank must be at least 0, not -1");
    assert_int_equal(wrong, 0);
}

TENSOR_TEST(shapes_and_images)
{
    wrong = 0;
    BAD(kn_nn_zero_pad2d(3, (int64_t[]){1, 1, 1}), "ZeroPad2d: padding has 3 numbers; it needs 1 or 4");
    BAD(kn_nn_constant_pad1d(0, NULL, 1), "ConstantPad1d: padding has 0 numbers; it needs 1 or 2");
    BAD(kn_nn_reflection_pad3d(2, (int64_t[]){1, 1}), "ReflectionPad3d: padding has 2 numbers; it needs 1 or 6");
    BAD(kn_nn_pixel_shuffle(0), "PixelShuffle: upscale_factor (0) must be at least 1");
    BAD(kn_nn_pixel_unshuffle(-2), "PixelUnshuffle: downscale_factor (-2) must be at least 1");
    BAD(kn_nn_channel_shuffle(0), "ChannelShuffle: groups (0) must be at least 1");
    BAD(kn_nn_unflatten(1, 0, NULL), "Unflatten: unflattened_size must have 1 to");
    BAD(kn_nn_unflatten(1, KN_SHAPE(-1, -1)), "Unflatten: unflattened_size", "-1");
    BAD(kn_nn_unflatten(1, KN_SHAPE(-3, 2)), "Unflatten: unflattened_size", "-3");
    BAD(kn_nn_unfold(.kernel_size = 0), "Unfold: kernel_size", "0", ONE);
    BAD(kn_nn_unfold(.kernel_size = 2, .stride = 0), "Unfold: stride", "0", ONE);
    BAD(kn_nn_unfold(.kernel_size = 2, .padding = -1), "Unfold: padding", "-1", "at least 0");
    BAD(kn_nn_fold(0, 2, .kernel_size = 2), "Fold: output_size (0, 2)", ONE);
    BAD(kn_nn_fold(4, 4, .kernel_size = 2, .dilation = 0), "Fold: dilation", "0", ONE);
    BAD(kn_nn_upsample(.mode = KN_INTERPOLATE_NEAREST), "Upsample: one of size and scale_factor must be given");
    BAD(kn_nn_upsample(.size = 2, .scale_factor = 2), "Upsample: only one of size and scale_factor must be given");
    BAD(kn_nn_upsample(.size = -2), "Upsample: size", "-2", ONE);
    BAD(kn_nn_upsample(.scale_factor = -1), "Upsample: scale_factor", "-1", "greater than 0");
    BAD(kn_nn_upsample(.size = 2, .mode = (kn_interpolate_mode)20), "Upsample: mode must be one of", "not 20");
    BAD(kn_nn_upsample(.size = 2, .align_corners = true), "Upsample: align_corners", "nearest");
    assert_int_equal(wrong, 0);
}

/* The same of functions. */
static void refused_call(kn_tensor *result, const char *call, const char *const *pieces)
{
    for (int i = 0; pieces[i]; i++)
        if (result || !strstr(kn_error_message(), pieces[i])) {
            print_error("%s: %s; expected \"%s\" in it\n", call, result ? "accepted" : kn_error_message(), pieces[i]);
            wrong++;
            break;
        }
    kn_error_clear();
}
#define BAD_CALL(call, ...) refused_call(call, #call, (const char *const[]){__VA_ARGS__, NULL})

static kn_tensor *of(int ndim, const int64_t *shape) { return kn_empty_with(ndim, shape, NULL); }
#define OF(...) of(KN_SHAPE(__VA_ARGS__))
static kn_tensor *classes(int64_t n) { return kn_empty_with(1, &n, &(kn_tensor_options){.dtype = KN_I64}); }

TENSOR_TEST(functions_of_images)
{
    kn_tensor *x = OF(1, 2, 6, 6), *w = OF(4, 2, 3, 3), *line = OF(1, 2, 6);
    wrong = 0;
    BAD_CALL(kn_conv2d(x, w, NULL, .stride = 0), "conv2d: stride and dilation must be at least 1, not 0 and 1");
    BAD_CALL(kn_conv2d(x, w, NULL, .padding = -7), "conv2d: padding must be 0 or more", "-7");
    BAD_CALL(kn_conv2d(x, w, NULL, .dilation = 0), "conv2d: stride and dilation must be at least 1, not 1 and 0");
    BAD_CALL(kn_conv2d(x, w, NULL, .groups = 3), "conv2d: the weight", "4 output channels", "3 groups");
    BAD_CALL(kn_conv2d(x, w, NULL, .output_padding = 1), "conv2d: output_padding", "transposed");
    BAD_CALL(kn_conv_transpose2d(x, OF(2, 4, 3, 3), NULL, .output_padding = 1), "conv_transpose2d: output_padding");
    BAD_CALL(kn_conv2d(OF(1, 3, 6, 6), w, NULL), "conv2d: ", "[1, 3, 6, 6]", "[4, 2, 3, 3]");
    BAD_CALL(kn_conv2d(x, w, OF(3)), "conv2d: ", "bias", "[3]", "4");
    BAD_CALL(kn_conv1d(x, w, NULL), "conv1d: ", "[1, 2, 6, 6]");
    BAD_CALL(kn_max_pool2d(x, .kernel_size = 0), "max_pool2d: kernel_size 0", "1 or more");
    BAD_CALL(kn_max_pool2d(x, .kernel_size = 2, .padding = 2), "max_pool2d: padding 2", "half the kernel size 2");
    BAD_CALL(kn_max_pool2d(x, .kernel_size = 7), "max_pool2d: ", "7", "6");
    BAD_CALL(kn_avg_pool1d(line, .kernel_size = 2, .dilation = 2), "avg_pool1d: average pooling has no dilation");
    BAD_CALL(kn_adaptive_avg_pool2d(x, 0, 2), "adaptive_avg_pool2d: the output size [0, 2] must be 1 or more");
    BAD_CALL(kn_lp_pool2d(x, 0, .kernel_size = 2), "lp_pool2d: norm_type must not be 0");
    BAD_CALL(kn_fractional_max_pool2d(x, .kernel_size = 2, .output_ratio = 2), "output_ratio must be between 0 and 1");
    BAD_CALL(kn_interpolate(x, .size = -1), "interpolate: size must be at least 1, not -1");
    BAD_CALL(kn_interpolate(x, .scale_factor = 2, .align_corners = true), "interpolate: align_corners is for linear");
    BAD_CALL(kn_interpolate(x, .size = 2, .mode = KN_INTERPOLATE_TRILINEAR),
             "mode trilinear needs 5 dimensions, not 4");
    BAD_CALL(kn_pixel_shuffle(x, 2), "pixel_shuffle: the channels (2)", "upscale_factor (2)");
    BAD_CALL(kn_pixel_unshuffle(x, 4), "pixel_unshuffle: ", "4", "6");
    BAD_CALL(kn_channel_shuffle(x, 3), "channel_shuffle: ", "2", "3");
    BAD_CALL(kn_unfold(x, .kernel_size = 7), "unfold: ", "7", "6");
    BAD_CALL(kn_fold(OF(1, 8, 4), 4, 4, .kernel_size = 3), "fold: dimension 1 of", "[1, 8, 4]", "kernel_size (3, 3)");
    BAD_CALL(kn_pad(x, KN_SHAPE(1, 1, 1)), "pad: ", "3");
    BAD_CALL(kn_pad(x, KN_SHAPE(7, 0), .mode = KN_PAD_REFLECT), "pad: ", "7", "6");
    assert_int_equal(wrong, 0);
}

TENSOR_TEST(functions_of_features)
{
    kn_tensor *x = OF(2, 6), *whole = kn_ones(KN_SHAPE(2, 6), .dtype = KN_I64);
    wrong = 0;
    BAD_CALL(kn_dropout(x, .p = 1.5), "dropout: p must be " PROBABILITY " 1.5");
    BAD_CALL(kn_softmax(x, 2), "softmax: dimension 2 is out of range for a tensor of 2 dimensions");
    BAD_CALL(kn_log_softmax(x, -3), "log_softmax: dimension -3 is out of range");
    BAD_CALL(kn_softmax(whole, 1), "softmax: x is int64; it must be floating");
    BAD_CALL(kn_linear(whole, whole, NULL), "linear: x is int64; it must be floating");
    BAD_CALL(kn_addmm(whole, whole, kn_t(whole)), "addmm: input is int64; it must be floating");
    BAD_CALL(kn_batch_norm(whole, .training = true), "batch_norm: x is int64; it must be floating");
    BAD_CALL(kn_conv1d(whole, kn_ones(KN_SHAPE(1, 2, 1), .dtype = KN_I64), NULL),
             "conv1d: x is int64; it must be floating");
    BAD_CALL(kn_gumbel_softmax(x, .tau = 0), "gumbel_softmax: tau", "0");
    BAD_CALL(kn_linear(x, OF(3, 5), NULL), "linear: ", "[3, 5]", "[2, 6]");
    BAD_CALL(kn_linear(x, OF(3, 6), OF(4)), "linear: ", "bias", "[4]", "3");
    BAD_CALL(kn_bilinear(x, x, OF(3, 5, 6), NULL), "bilinear: ", "[3, 5, 6]");
    BAD_CALL(kn_layer_norm(x, KN_SHAPE(5)), "layer_norm: ", "[5]", "[2, 6]");
    BAD_CALL(kn_layer_norm(x, KN_SHAPE(6), .eps = -1), "layer_norm: eps", "-1");
    BAD_CALL(kn_rms_norm(x, KN_SHAPE(6), .weight = OF(5)), "rms_norm: ", "weight", "[5]", "[6]");
    BAD_CALL(kn_group_norm(x, 4), "group_norm: ", "6 channels", "num_groups (4)");
    BAD_CALL(kn_batch_norm(x), "batch_norm: ", "running_mean", "training");
    BAD_CALL(kn_batch_norm(x, .training = true, .weight = OF(5)), "batch_norm: ", "weight", "[5]", "6");
    BAD_CALL(kn_local_response_norm(OF(1, 2, 3), 0), "local_response_norm: size must be at least 1, not 0");
    BAD_CALL(kn_normalize(x, .dim = 2), "normalize: ", "dimension 2 is out of range");
    BAD_CALL(kn_embedding(classes(2), OF(3), .padding_idx = 1), "embedding: the weight must be [rows, columns]", "[3]");
    BAD_CALL(kn_embedding(classes(2), OF(3, 2), .padding_idx = 3), "embedding: padding_idx", "-3 to 2, not 3");
    BAD_CALL(kn_embedding(x, OF(3, 2)), "embedding: ", "float32");
    BAD_CALL(kn_one_hot(classes(2), 0), "one_hot: num_classes must be at least 1, or -1", "not 0");
    BAD_CALL(kn_scaled_dot_product_attention(OF(2, 3), OF(2, 4), OF(2, 4)), "scaled_dot_product_attention: ", "[2, 3]",
             "[2, 4]");
    BAD_CALL(kn_scaled_dot_product_attention(x, x, x, .dropout_p = 2), "dropout_p must be " PROBABILITY " 2");
    BAD_CALL(kn_cosine_similarity(x, x, .dim = 2), "cosine_similarity: ", "dimension 2 is out of range");
    BAD_CALL(kn_cross_entropy(x, classes(3)), "cross_entropy: target", "[3]", "[2, 6]");
    BAD_CALL(kn_cross_entropy(x, classes(2), .weight = OF(5)), "cross_entropy: weight", "[5]", "6 classes");
    BAD_CALL(kn_cross_entropy(x, classes(2), .label_smoothing = -1), "label_smoothing must be " PROBABILITY " -1");
    BAD_CALL(kn_nll_loss(x, x), "nll_loss: targets must be class indices", "float32");
    BAD_CALL(kn_binary_cross_entropy(x, OF(2, 5)), "binary_cross_entropy: target", "[2, 5]", "[2, 6]");
    BAD_CALL(kn_smooth_l1_loss(x, x, .beta = -1), "smooth_l1_loss: beta must be at least 0, not -1");
    BAD_CALL(kn_huber_loss(x, x, .delta = -2), "huber_loss: delta must be greater than 0, not -2");
    BAD_CALL(kn_gaussian_nll_loss(x, x, x, .eps = 0), "gaussian_nll_loss: eps must be greater than 0, not 0");
    BAD_CALL(kn_triplet_margin_loss(x, x, x, .margin = 0), "triplet_margin_loss: margin must be greater than 0, not 0");
    BAD_CALL(kn_mse_loss(x, x, (kn_reduction)9), "mse_loss: reduction must be one of 0 to 2", "not 9");
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(linear_layers),
        TEST(convolutions),
        TEST(pooling),
        TEST(normalisation),
        TEST(attention),
        TEST(dropout_and_activations),
        TEST(recurrent_layers),
        TEST(losses),
        TEST(shapes_and_images),
        TEST(functions_of_images),
        TEST(functions_of_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
