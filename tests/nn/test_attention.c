/* test_attention.c - modules with attention beyond PyTorch's values (tests/golden/test_golden_attention.c): containers,
 * refused arguments, causal calls, dropout, training. */
#include "support/check.h"

static kn_module *relu_layer(void) { return kn_nn_relu(); }

TENSOR_TEST(a_list_holds_modules_by_number)
{
    kn_module *list = kn_nn_module_list(relu_layer(), kn_nn_linear(.in_features = 2, .out_features = 3));
    CHECK_NEW(list);
    CHECK_OK(kn_nn_append(list, relu_layer()));
    assert_int_equal(kn_module_child_count(list), 3);
    assert_string_equal(kn_module_type_name(kn_module_named_child(list, "1")), "Linear");
    CHECK_TENSOR(kn_module_get(list, "1.weight"));
    assert_null(kn_forward(list, kn_ones(KN_SHAPE(2))));
    CHECK_ERROR(KN_ERR_STATE, "ModuleList", "no forward");
    assert_null(kn_module_named_child(list, "3"));
    CHECK_ERROR(KN_ERR_ARGUMENT, "ModuleList", "\"3\"");
    kn_module_free(list);
    assert_null(kn_nn_module_list(relu_layer(), NULL, relu_layer()));
    CHECK_ERROR(KN_ERR_ARGUMENT, "ModuleList", "NULL");
}

TENSOR_TEST(a_dictionary_holds_modules_by_name)
{
    const char *const names[] = {"first", "second"};
    kn_module *dict = kn_nn_module_dict_of(
        names, (kn_module *const[]){relu_layer(), kn_nn_linear(.in_features = 2, .out_features = 3)}, 2);
    CHECK_NEW(dict);
    CHECK_OK(kn_nn_add_module(dict, "third", relu_layer()));
    assert_ptr_equal(kn_module_named_child(dict, "third"), kn_module_child(dict, 2));
    CHECK_TENSOR(kn_module_get(dict, "second.bias"));
    kn_module_free(dict);
    const char *const twice[] = {"same", "same"};
    assert_null(kn_nn_module_dict_of(twice, (kn_module *const[]){relu_layer(), relu_layer()}, 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "same");
}

TENSOR_TEST(constructors_check_their_arguments)
{
    assert_null(kn_nn_multihead_attention(.embed_dim = 8, .num_heads = 3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "MultiheadAttention", "embed_dim (8)", "num_heads (3)");
    assert_null(kn_nn_multihead_attention(.embed_dim = 8, .num_heads = 2, .dropout = 1.5));
    CHECK_ERROR(KN_ERR_ARGUMENT, "dropout", "1.5");
    assert_null(kn_nn_multihead_attention(.embed_dim = 8, .num_heads = 2, .kdim = -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kdim (-1)");
    assert_null(kn_nn_transformer_encoder_layer(.d_model = 8, .nhead = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "TransformerEncoderLayer", "nhead (0)");
    assert_null(kn_nn_transformer_decoder_layer(.d_model = 8, .nhead = 2, .activation = (kn_transformer_activation)7));
    CHECK_ERROR(KN_ERR_ARGUMENT, "TransformerDecoderLayer", "activation", "7");
    assert_null(kn_nn_transformer_encoder(-1, relu_layer(), .d_model = 8, .nhead = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "num_layers", "-1");
    kn_module *wrong[] = {relu_layer()};
    assert_null(kn_nn_transformer_decoder_of(wrong, 1, relu_layer()));
    CHECK_ERROR(KN_ERR_ARGUMENT, "TransformerDecoderLayer", "ReLU");
    assert_null(kn_nn_transformer(.d_model = 9));
    CHECK_ERROR(KN_ERR_ARGUMENT, "d_model (9)", "nhead (8)");
}

TENSOR_TEST(inputs_are_checked)
{
    kn_module *attention = kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 2, .batch_first = true);
    kn_tensor *x = kn_ones(KN_SHAPE(2, 3, 4));
    assert_null(kn_multihead_attention(attention, kn_ones(KN_SHAPE(2, 3, 5)), x, x));
    CHECK_ERROR(KN_ERR_SHAPE, "query", "4", "[2, 3, 5]");
    assert_null(kn_multihead_attention(attention, x, kn_ones(KN_SHAPE(3, 4)), x));
    CHECK_ERROR(KN_ERR_SHAPE, "key", "[3, 4]");
    assert_null(kn_multihead_attention(attention, x, x, kn_ones(KN_SHAPE(2, 5, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "value", "length", "[2, 5, 4]");
    assert_null(kn_multihead_attention(attention, x, kn_ones(KN_SHAPE(3, 3, 4)), kn_ones(KN_SHAPE(3, 3, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "batch size", "2", "[3, 3, 4]");
    assert_null(kn_multihead_attention(attention, x, x, x, .attn_mask = kn_ones(KN_SHAPE(3, 2))));
    CHECK_ERROR(KN_ERR_SHAPE, "attn_mask", "[3, 3]", "[3, 2]");
    assert_null(kn_multihead_attention(attention, x, x, x, .attn_mask = kn_ones(KN_SHAPE(3, 3), .dtype = KN_I64)));
    CHECK_ERROR(KN_ERR_DTYPE, "attn_mask", "int64");
    assert_null(kn_multihead_attention(attention, x, x, x, .key_padding_mask = kn_ones(KN_SHAPE(3))));
    CHECK_ERROR(KN_ERR_SHAPE, "key_padding_mask", "[2, 3]", "[3]");
    kn_module *relu = relu_layer();
    assert_null(kn_multihead_attention(relu, x, x, x));
    CHECK_ERROR(KN_ERR_ARGUMENT, "MultiheadAttention", "ReLU");
    assert_null(kn_transformer_encode_causal(relu, x, NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "TransformerEncoder", "ReLU");
    kn_module_free(relu);
    kn_module_free(attention);
}

static void check_close(kn_tensor *a, kn_tensor *b)
{
    double difference = 1;
    CHECK_TENSOR(a);
    CHECK_TENSOR(b);
    CHECK_OK(kn_item(kn_max(kn_abs(kn_sub(a, b))), &difference));
    assert_true(difference < 1e-5);
}

/* With a mask of keys, or weights, the causal mask is a matrix; without, none. */
TENSOR_TEST(causal_calls_equal_those_with_a_mask)
{
    kn_module *attention = kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 2, .batch_first = true);
    kn_tensor *x = kn_randn(KN_SHAPE(2, 5, 4)), *mask = kn_nn_square_subsequent_mask(5), *weights = NULL;
    kn_tensor *expected = kn_multihead_attention(attention, x, x, x, .attn_mask = mask);
    check_close(kn_multihead_attention(attention, x, x, x, .is_causal = true), expected);
    check_close(kn_multihead_attention(attention, x, x, x, .is_causal = true, .weights = &weights), expected);
    CHECK_SHAPE(weights, 2, 5, 5);
    kn_tensor *padding = kn_zeros(KN_SHAPE(2, 5), .dtype = KN_BOOL);
    check_close(kn_multihead_attention(attention, x, x, x, .is_causal = true, .key_padding_mask = padding), expected);
    kn_module_free(attention);
    kn_module *decoder = kn_nn_transformer_decoder(1, NULL, .d_model = 4, .nhead = 2, .batch_first = true);
    kn_module_train(decoder, false);
    kn_tensor *y = NULL;
    CHECK_OK(kn_forward_many(decoder, KN_TENSORS(x, x, mask), &y, 1));
    check_close(kn_transformer_decode_causal(decoder, x, x, NULL, NULL), y);
    kn_module_free(decoder);
}

TENSOR_TEST(dropout_is_drawn_in_training_only)
{
    kn_module *attention = kn_nn_multihead_attention(.embed_dim = 4, .num_heads = 2, .dropout = 0.9);
    kn_tensor *x = kn_randn(KN_SHAPE(5, 2, 4));
    double largest = 0;
    kn_tensor *first = kn_multihead_attention(attention, x, x, x), *second = kn_multihead_attention(attention, x, x, x);
    CHECK_OK(kn_item(kn_max(kn_abs(kn_sub(first, second))), &largest));
    assert_true(largest > 0);
    kn_module_train(attention, false);
    first = kn_multihead_attention(attention, x, x, x);
    check_close(first, kn_multihead_attention(attention, x, x, x));
    kn_module_free(attention);
}

/* A step changes every parameter, and lowers the loss. */
TENSOR_TEST(a_transformer_trains)
{
    kn_manual_seed(1);
    kn_module *net = kn_nn_transformer(.d_model = 8, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 1,
                                       .dim_feedforward = 8, .dropout = 0, .batch_first = true);
    CHECK_NEW(net);
    kn_optim *optimizer = kn_optim_adam(kn_module_parameters(net), .lr = 0.01);
    kn_tensor *src = kn_randn(KN_SHAPE(2, 5, 8)), *tgt = kn_randn(KN_SHAPE(2, 3, 8)),
              *wanted = kn_randn(KN_SHAPE(2, 3, 8));
    double before = 0, after = 0;
    for (int step = 0; step < 5; step++) {
        kn_tensor *y = NULL;
        CHECK_OK(kn_forward_many(net, KN_TENSORS(src, tgt), &y, 1));
        kn_tensor *loss = kn_mse_loss(y, wanted, KN_REDUCTION_MEAN);
        CHECK_OK(kn_item(loss, step == 0 ? &before : &after));
        kn_optim_zero_grad(optimizer);
        CHECK_OK(kn_backward(loss));
        CHECK_OK(kn_optim_step(optimizer));
    }
    assert_true(after < before);
    kn_optim_free(optimizer);
    kn_module_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_list_holds_modules_by_number),
        TEST(a_dictionary_holds_modules_by_name),
        TEST(constructors_check_their_arguments),
        TEST(inputs_are_checked),
        TEST(causal_calls_equal_those_with_a_mask),
        TEST(dropout_is_drawn_in_training_only),
        TEST(a_transformer_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
