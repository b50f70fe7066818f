/* test_models.c - the networks of koine/models.h: as many parameters as torchvision's, results of the right shape, and
 * names. tests/compare_models.py compares their values with PyTorch's. */
#include "support/check.h"

#include <koine/koine.h>
#include <string.h>

#include "support/full.h"
#include "support/no_kernels.h"

static const struct {
    const char *name;
    int64_t parameters; /* with 1000 classes; torchvision's numbers */
    int tensors;        /* parameters and buffers */
    bool full;
} networks[] = {
    {"resnet18", 11689512, 122, false},
    {"resnet50", 25557032, 320, false},
    {"resnext50_32x4d", 25028904, 320, true},
    {"wide_resnet50_2", 68883240, 320, true},
    {"mobilenet_v2", 3504872, 314, false},
    {"mobilenet_v3_small", 2542856, 244, false},
    {"mobilenet_v3_large", 5483032, 312, true},
    {"efficientnet_b0", 5288548, 360, false},
    {"densenet121", 7978856, 727, false},
    {"convnext_tiny", 28589128, 182, true},
    {"convnext_small", 50223688, 344, true},
    {"vit_b_16", 86567656, 152, true},
    {"vit_b_32", 88224232, 152, true},
    {"alexnet", 61100840, 16, true},
    {"vgg11", 132863336, 22, true},
    {"vgg16_bn", 138365992, 97, true},
};

TENSOR_TEST(they_have_as_many_parameters_as_torchvisions)
{
    kernels_off();
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        if (networks[i].full && !test_full())
            continue;
        kn_module *net = kn_models_new(networks[i].name);
        assert_non_null(net);
        assert_int_equal(kn_module_parameter_count(net), networks[i].parameters);
        assert_int_equal(kn_module_parameters(net).count + kn_module_buffers(net).count, networks[i].tensors);
        kn_module_free(net);
    }
    kernels_on();
}

/* Shapes from a pass that computes nothing. */
static void check_result(kn_module *net, kn_tensor *x, const char *shape)
{
    char *text = kn_module_summary_with(net, &(kn_module_summary_params){.input = x, .width = KN_WIDE});
    assert_non_null(text);
    if (!strstr(text, shape))
        fail_msg("no result %s in\n%s", shape, text);
    kn_free(text);
    kn_module_free(net);
}

TENSOR_TEST(results_are_logits)
{
    kernels_off();
    kn_tensor *image = kn_zeros(KN_SHAPE(2, 3, 64, 64)), *small = kn_zeros(KN_SHAPE(2, 1, 32, 32));
    check_result(kn_models_resnet18(.num_classes = 17), image, "[2, 17]");
    check_result(kn_models_resnet18(.num_classes = 17, .in_channels = 1, .small_images = true), small, "[2, 17]");
    check_result(kn_models_mobilenet_v2(.num_classes = 17, .in_channels = 1, .small_images = true), small, "[2, 17]");
    check_result(kn_models_efficientnet_b0(.num_classes = 17), image, "[2, 17]");
    check_result(kn_models_densenet121(.num_classes = 17), image, "[2, 17]");
    check_result(kn_models_convnext_tiny(.num_classes = 17, .small_images = true, .in_channels = 1), small, "[2, 17]");
    check_result(kn_models_vit(.num_classes = 17, .image_size = 64, .patch_size = 8, .hidden_dim = 8, .num_heads = 2,
                               .num_layers = 1, .mlp_dim = 8),
                 image, "[2, 17]");
    check_result(kn_models_lenet5(.num_classes = 17, .in_channels = 1), small, "[2, 17]");
    check_result(kn_models_unet(.num_classes = 17), image, "[2, 17, 64, 64]");
    check_result(kn_models_mlp(KN_SIZES(1024, 32, 17)), small, "[2, 17]");
    kernels_on();
}

TENSOR_TEST(language_models)
{
    kn_tensor *tokens = kn_zeros(KN_SHAPE(2, 6), .dtype = KN_I64),
              *long_ones = kn_zeros(KN_SHAPE(2, 7), .dtype = KN_I64);
    kn_module *gpt = kn_models_gpt2(.vocab_size = 5, .n_positions = 6, .n_embd = 8, .n_layer = 2, .n_head = 2);
    assert_non_null(kn_module_get(gpt, "h.1.attn.c_attn.weight"));
    assert_int_equal(kn_module_parameter_count(gpt), 5 * 8 + 6 * 8 + 2 * 872 + 16);
    assert_null(kn_forward(gpt, long_ones));
    CHECK_ERROR(KN_ERR_SHAPE, "7 tokens", "6 positions");
    check_result(gpt, tokens, "[2, 6, 5]");
    assert_null(kn_models_gpt2(.n_embd = 8, .n_head = 3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "n_embd (8)", "n_head (3)");
    kn_module *bert = kn_models_bert(.vocab_size = 5, .hidden_size = 8, .num_hidden_layers = 1,
                                     .num_attention_heads = 2, .intermediate_size = 16);
    assert_non_null(kn_module_get(bert, "encoder.layer.0.attention.output.LayerNorm.weight"));
    check_result(bert, tokens, "[2, 6, 8]");
    assert_null(kn_models_bert(.hidden_size = 8, .num_attention_heads = 3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "hidden_size (8)");
}

TENSOR_TEST(vision_transformers_check_their_sizes)
{
    kn_tensor *image = kn_zeros(KN_SHAPE(1, 3, 12, 8));
    kn_module *net =
        kn_models_vit(.image_size = 8, .patch_size = 4, .num_layers = 1, .num_heads = 2, .hidden_dim = 4, .mlp_dim = 4);
    assert_non_null(kn_module_get(net, "encoder.layers.encoder_layer_0.self_attention.in_proj_weight"));
    assert_null(kn_forward(net, image));
    CHECK_ERROR(KN_ERR_SHAPE, "[N, C, 8, 8]", "height 12");
    assert_null(kn_models_vit(.image_size = 30));
    CHECK_ERROR(KN_ERR_ARGUMENT, "image_size (30)", "patch_size (16)");
    assert_null(kn_models_vit(.hidden_dim = 7));
    CHECK_ERROR(KN_ERR_ARGUMENT, "hidden_dim (7)", "num_heads (12)");
    kn_module_free(net);
}

static void check_equal(kn_tensor *a, kn_tensor *b)
{
    bool equal = false;
    assert_int_equal(kn_equal(a, b, &equal), KN_OK);
    assert_true(equal);
}

/* What is behind a text's end has no influence. */
TENSOR_TEST(texts_of_several_lengths_are_classified)
{
    const int64_t tokens[] = {1, 2, 3, 4, 1, 2, 4, 4}, others[] = {1, 2, 3, 4, 1, 2, 0, 3}, lengths[] = {4, 2};
    kn_module *net = kn_models_lstm_classifier(.vocab_size = 5, .num_classes = 3, .embedding_dim = 4, .hidden_size = 6,
                                               .bidirectional = true);
    kn_tensor *y[2], *n = kn_from_data(lengths, KN_SHAPE(2), .dtype = KN_I64);
    for (int i = 0; i < 2; i++) {
        kn_tensor *x = kn_from_data(i ? others : tokens, KN_SHAPE(2, 4), .dtype = KN_I64);
        assert_int_equal(kn_forward_many(net, KN_TENSORS(x, n), &y[i], 1), KN_OK);
    }
    assert_int_equal(kn_size(y[0], 1), 3);
    check_equal(y[0], y[1]);
    kn_module_free(net);
    assert_null(kn_models_lstm_classifier());
    CHECK_ERROR(KN_ERR_ARGUMENT, "vocab_size (0)");
}

/* Whole samples are dropped, the others scaled. */
TENSOR_TEST(stochastic_depth_drops_samples)
{
    kn_module *layer = kn_nn_stochastic_depth(0.5, KN_STOCHASTIC_DEPTH_ROW);
    kn_tensor *x = kn_ones(KN_SHAPE(64, 3)), *y = kn_forward(layer, x);
    float values[64][3];
    int kept = 0;
    kn_read(y, values, sizeof values);
    for (int i = 0; i < 64; i++) {
        assert_true(values[i][0] == 0 || values[i][0] == 2);
        assert_true(values[i][1] == values[i][0] && values[i][2] == values[i][0]);
        kept += values[i][0] != 0;
    }
    assert_in_range(kept, 16, 48);
    kn_module_train(layer, false);
    check_equal(kn_forward(layer, x), x);
    char *text = kn_module_summary(layer);
    assert_non_null(strstr(text, "StochasticDepth(p=0.5, mode=row)"));
    kn_free(text);
    kn_module_free(layer);
    assert_null(kn_nn_stochastic_depth(1.5, KN_STOCHASTIC_DEPTH_ROW));
    CHECK_ERROR(KN_ERR_ARGUMENT, "p must be", "1.5");
    assert_null(kn_stochastic_depth(kn_ones(KN_SCALAR), 0.5, KN_STOCHASTIC_DEPTH_ROW));
    CHECK_ERROR(KN_ERR_SHAPE, "row", "batch");
}

TENSOR_TEST(an_unknown_name_lists_the_others)
{
    assert_null(kn_models_new("resnet19"));
    CHECK_ERROR(KN_ERR_ARGUMENT, "resnet19", "resnet18");
    assert_null(kn_models_new(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "name");
    assert_null(kn_models_resnet18(.num_classes = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "num_classes (0)");
    assert_null(kn_models_mlp(KN_SIZES(3)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "1 sizes");
    int count = 0;
    while (kn_models_name(count))
        count++;
    assert_true(count > 20);
    assert_null(kn_models_name(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(they_have_as_many_parameters_as_torchvisions),
        TEST(results_are_logits),
        TEST(language_models),
        TEST(vision_transformers_check_their_sizes),
        TEST(texts_of_several_lengths_are_classified),
        TEST(stochastic_depth_drops_samples),
        TEST(an_unknown_name_lists_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
