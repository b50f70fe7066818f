/* test_golden_attention.c - modules and networks with attention: PyTorch's weights load, and give the same outputs and
 * gradients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "support/values.h"

enum { MOST_INPUTS = 8, TERMS = 64 };

#define LAYER .d_model = 8, .nhead = 2, .dim_feedforward = 12, .dropout = 0

static kn_module *build_modules(void)
{
    static const char *const names[] = {"plain",   "other_sizes", "no_bias", "encoder", "first",
                                        "decoder", "transformer", "gpt2",    "vit"};
    kn_module *const modules[] = {
        kn_nn_multihead_attention(.embed_dim = 8, .num_heads = 2),
        kn_nn_multihead_attention(.embed_dim = 6, .num_heads = 3, .add_bias_kv = true, .add_zero_attn = true, .kdim = 5,
                                  .vdim = 7, .batch_first = true),
        kn_nn_multihead_attention(.embed_dim = 6, .num_heads = 2, .bias = false, .batch_first = true),
        kn_nn_transformer_encoder(2, kn_nn_layer_norm(KN_SHAPE(8)), LAYER, .batch_first = true),
        kn_nn_transformer_encoder_layer(LAYER, .activation = KN_TRANSFORMER_GELU, .norm_first = true, .bias = false),
        kn_nn_transformer_decoder(2, NULL, LAYER),
        kn_nn_transformer(.d_model = 8, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 1,
                          .dim_feedforward = 12, .dropout = 0, .batch_first = true),
        kn_models_gpt2(.vocab_size = 7, .n_positions = 6, .n_embd = 8, .n_layer = 2, .n_head = 2, .dropout = 0),
        kn_models_vit(.image_size = 8, .patch_size = 4, .num_layers = 2, .num_heads = 2, .hidden_dim = 8, .mlp_dim = 12,
                      .num_classes = 3),
    };
    return kn_nn_module_dict_of(names, modules, (int)(sizeof names / sizeof names[0]));
}

static void check(const golden_case *c, kn_tensor *actual, const char *role, int number)
{
    char message[400];
    kn_tensor *expected = golden_tensor(c, role, number);
    if (!actual)
        fail_msg("%s: %s: %s", c->name, role, kn_error_message());
    assert_non_null(expected);
    double *a = read_doubles(actual), *b = read_doubles(expected);
    assert_true(a && b && kn_numel(actual) == kn_numel(expected));
    if (!values_close(a, b, kn_numel(expected), closeness_of(KN_F32, TERMS), message, sizeof message))
        fail_msg("%s: %s: %s", c->name, role, message);
    free(a);
    free(b);
}

/* The result; `weights` is set if the case has them. */
static kn_tensor *apply(const golden_case *c, kn_module *module, kn_tensor *const *x, kn_tensor **weights)
{
    kn_tensor *y = NULL;
    if (golden_tensor(c, "out", 1))
        return kn_multihead_attention(module, x[0], x[1], x[2], .weights = weights,
                                      .average_attn_weights = strcmp(c->name, "weights_of_heads") != 0);
    if (strcmp(c->name, "self") == 0)
        return kn_multihead_attention(module, x[0], x[0], x[0]);
    if (strcmp(c->name, "causal") == 0)
        return kn_transformer_encode_causal(module, x[0], NULL);
    return kn_forward_many(module, x, kn_module_input_count(module), &y, 1) == KN_OK ? y : NULL;
}

static void run_case(kn_module *modules, const golden_case *c)
{
    char name[32] = "";
    kn_tensor *x[MOST_INPUTS] = {NULL}, *weights = NULL;
    KN_SCOPE;
    golden_text(c, "module", name, sizeof name);
    kn_module *module = kn_module_named_child(modules, name);
    assert_non_null(module);
    for (int i = 0; i < MOST_INPUTS; i++)
        if (golden_tensor(c, "in", i))
            x[i] = golden_on_device(golden_tensor(c, "in", i), KN_F32);
    kn_tensor *leaf = kn_dtype_of(x[0]) == KN_F32 ? x[0] : kn_module_get(module, "wte.weight");
    assert_int_equal(kn_set_requires_grad(leaf, true), KN_OK);
    kn_tensor *y = apply(c, module, x, &weights);
    check(c, y, "out", -1);
    if (golden_tensor(c, "out", 1))
        check(c, weights, "out", 1);
    kn_tensor *gradient = golden_on_device(golden_tensor(c, "gout", -1), KN_F32);
    if (kn_backward_with(y, gradient, false) != KN_OK)
        fail_msg("%s: %s", c->name, kn_error_message());
    check(c, kn_grad(leaf), "grad", 0);
}

static void modules_with_attention_are_pytorchs(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/attention_weights.safetensors", KOINE_SOURCE_DIR);
    kn_tensor_file *file = golden_open("attention_run");
    kn_module *modules = build_modules();
    assert_non_null(file);
    if (!modules || kn_module_load(modules, path) != KN_OK)
        fail_msg("%s", kn_error_message());
    char *words = golden_words(file, "cases");
    for (const char *word = words; *word; word = GOLDEN_NEXT(word)) {
        const golden_case c = golden_case_of(file, word);
        run_case(modules, &c);
    }
    free(words);
    kn_module_free(modules);
    kn_tensor_file_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(modules_with_attention_are_pytorchs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
