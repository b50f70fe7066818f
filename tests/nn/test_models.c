/* test_models.c - the networks of koine/models.h: as many parameters as torchvision's, results of the right shape, and
 * names. tests/compare_models.py compares their values with PyTorch's. */
#include "support/check.h"

#include <koine/koine.h>
#include <string.h>

#include "support/full.h"

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
    {"alexnet", 61100840, 16, true},
    {"vgg11", 132863336, 22, true},
    {"vgg16_bn", 138365992, 97, true},
};

TENSOR_TEST(they_have_as_many_parameters_as_torchvisions)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        if (networks[i].full && !test_full())
            continue;
        kn_module *net = kn_models_new(networks[i].name);
        assert_non_null(net);
        assert_int_equal(kn_module_parameter_count(net), networks[i].parameters);
        assert_int_equal(kn_module_parameters(net).count + kn_module_buffers(net).count, networks[i].tensors);
        kn_module_free(net);
    }
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
    kn_tensor *image = kn_zeros(KN_SHAPE(2, 3, 64, 64)), *small = kn_zeros(KN_SHAPE(2, 1, 32, 32));
    check_result(kn_models_resnet18(.num_classes = 17), image, "[2, 17]");
    check_result(kn_models_resnet18(.num_classes = 17, .in_channels = 1, .small_images = true), small, "[2, 17]");
    check_result(kn_models_mobilenet_v2(.num_classes = 17, .in_channels = 1, .small_images = true), small, "[2, 17]");
    check_result(kn_models_efficientnet_b0(.num_classes = 17), image, "[2, 17]");
    check_result(kn_models_densenet121(.num_classes = 17), image, "[2, 17]");
    check_result(kn_models_lenet5(.num_classes = 17, .in_channels = 1), small, "[2, 17]");
    check_result(kn_models_unet(.num_classes = 17), image, "[2, 17, 64, 64]");
    check_result(kn_models_mlp(KN_SIZES(1024, 32, 17)), small, "[2, 17]");
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
        TEST(an_unknown_name_lists_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
