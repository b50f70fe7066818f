/* test_summary.c - a module as text: shapes and multiply-adds, folding, width; the dry run has no side effects. */
#include "support/check.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "rt/program/build_progress.h"

static kn_module *block(void)
{
    return kn_nn_sequential(kn_nn_conv2d(.in_channels = 8, .out_channels = 8, .kernel_size = 3, .padding = 1),
                            kn_nn_batch_norm2d(.num_features = 8), kn_nn_relu());
}

static kn_module *network(void)
{
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    kn_nn_add_module(net, "stem", kn_nn_conv2d(.in_channels = 1, .out_channels = 8, .kernel_size = 3));
    kn_nn_add_module(net, "block1", block());
    kn_nn_add_module(net, "block2", block());
    kn_nn_add_module(net, "block3", block());
    kn_nn_add_module(net, "flatten", kn_nn_flatten());
    kn_nn_add_module(net, "dropout", kn_nn_dropout(.p = 0.5));
    kn_nn_add_module(net, "head", kn_nn_linear(.in_features = 8 * 36, .out_features = 10));
    CHECK_TENSOR((void *)net);
    return net;
}

static void expect(kn_module *net, kn_module_summary_params params, const char *expected)
{
    char *text = kn_module_summary_with(net, &params);
    CHECK_TENSOR(text);
    assert_string_equal(text, expected);
    kn_free(text);
}

/* Mult-adds by hand: 2 x 8 x 6 x 6 outputs of 9 each; of 8 x 9 each; 2 x 10 outputs of 288. */
TENSOR_TEST(shapes_and_work_are_those_of_a_pass)
{
    kn_module *net = network();
    kn_tensor *input = kn_zeros(KN_SHAPE(2, 1, 8, 8));
    expect(net, (kn_module_summary_params){.input = input, .width = 80},
           "                                                 output        params  mult-adds\n"
           "Sequential(                                      [2, 10]\n"
           "  (stem): Conv2d(1, 8, kernel_size=(3, 3), ...)  [2, 8, 6, 6]      80      5.2 K\n"
           "  (block1-block3): 3 x Sequential(               [2, 8, 6, 6]\n"
           "    (0): Conv2d(8, 8, kernel_size=(3, 3), ...)   [2, 8, 6, 6]     584     41.5 K\n"
           "    (1): BatchNorm2d(8, eps=1e-05, ...)          [2, 8, 6, 6]      16\n"
           "    (2): ReLU()                                  [2, 8, 6, 6]\n"
           "  )\n"
           "  (flatten): Flatten(start_dim=1, end_dim=-1)    [2, 288]\n"
           "  (dropout): Dropout(p=0.5, inplace=False)       [2, 288]\n"
           "  (head): Linear(in_features=288, ...)           [2, 10]        2,890      5.8 K\n"
           ")\n"
           "Parameters: 4,770 (18.6 KiB)\n"
           "Multiply-adds: 135.4 K for an input [2, 1, 8, 8]\n");
    kn_module_free(net);
}

TENSOR_TEST(blocks_are_folded_where_they_are_alike)
{
    kn_module *net = kn_nn_sequential(
        kn_nn_relu(), kn_nn_relu(), kn_nn_relu(), kn_nn_linear(.in_features = 3, .out_features = 3),
        kn_nn_linear(.in_features = 3, .out_features = 3, .bias = false), kn_nn_sequential(kn_nn_tanh(), kn_nn_tanh()),
        kn_nn_sequential(kn_nn_tanh(), kn_nn_tanh()), kn_nn_sequential(kn_nn_tanh()));
    expect(net, (kn_module_summary_params){.width = KN_WIDE},
           "Sequential(\n"
           "  (0-2): 3 x ReLU()\n"
           "  (3): Linear(in_features=3, out_features=3, bias=True)           12\n"
           "  (4): Linear(in_features=3, out_features=3, bias=False)           9\n"
           "  (5-6): 2 x Sequential(\n"
           "    (0-1): 2 x Tanh()\n"
           "  )\n"
           "  (7): Sequential(\n"
           "    (0): Tanh()\n"
           "  )\n"
           ")\n"
           "Parameters: 21 (84 B)\n");
    char *text = kn_module_summary_with(net, &(kn_module_summary_params){.expand = true, .width = KN_WIDE});
    assert_non_null(strstr(text, "  (0): ReLU()\n  (1): ReLU()\n  (2): ReLU()\n"));
    assert_null(strstr(text, " x "));
    kn_free(text);
    kn_module_free(net);
}

TENSOR_TEST(the_tree_fits_the_page)
{
    kn_module *net = network();
    kn_tensor *input = kn_zeros(KN_SHAPE(2, 1, 8, 8));
    static const int widths[] = {120, 100, 80, 60, 50};
    for (int i = 0; i < 10; i++) {
        kn_module_summary_params params = {.input = i < 5 ? input : NULL, .width = widths[i % 5]};
        char *text = kn_module_summary_with(net, &params);
        CHECK_TENSOR(text);
        for (const char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
            if (kn_text_width(line) > widths[i % 5])
                fail_msg("wider than %d: %s", widths[i % 5], line);
        kn_free(text);
    }
    kn_module_free(net);
}

/* User-defined forward functions: several calls of one module, random numbers, an in-place operation. */
static kn_tensor *twice(kn_module *module, kn_tensor *x)
{
    kn_module *linear = kn_module_child(module, 0);
    kn_tensor *noisy = kn_add(kn_forward(linear, x), kn_randn(KN_SHAPE(4, 4)));
    return kn_matmul(kn_forward(linear, noisy), kn_t(noisy));
}

static void count_build(const kn_build_notice *notice, void *user)
{
    (void)notice;
    ++*(int *)user;
}

TENSOR_TEST(the_pass_leaves_no_trace)
{
    kn_module *net = kn_module_new("Twice", twice, 0, NULL);
    CHECK_TENSOR(kn_module_register_module(net, "linear", kn_nn_linear(.in_features = 4, .out_features = 4)));
    kn_tensor *x = kn_ones(KN_SHAPE(4, 4));
    CHECK_TENSOR(kn_add(kn_randn(KN_SHAPE(4, 4)), x)); /* initialises the generator */
    uint8_t before[KN_RNG_STATE_SIZE], after[KN_RNG_STATE_SIZE];
    CHECK_OK(kn_get_rng_state(kn_device_of(x), before));
    kn_module_train(net, true);
    kn_module_train(kn_module_child(net, 0), false);
    int builds = 0;
    kn_build_observer outer = kn_build_observe((kn_build_observer){.notice = count_build, .user = &builds});
    char *text = kn_module_summary_with(net, &(kn_module_summary_params){.input = x, .width = KN_WIDE});
    kn_build_observe(outer);
    CHECK_TENSOR(text);
    assert_int_equal(builds, 0); /* neither the products nor the sum */
    assert_non_null(strstr(text, "Multiply-adds: 192 for "));
    assert_non_null(
        strstr(text, "  (linear): Linear(in_features=4, out_features=4, bias=True)  [4, 4]      20        128"));
    assert_non_null(strstr(text, "Twice("));
    kn_free(text);
    CHECK_OK(kn_get_rng_state(kn_device_of(x), after));
    assert_memory_equal(before, after, sizeof before);
    assert_true(kn_module_is_training(net) && !kn_module_is_training(kn_module_child(net, 0)));
    CHECK_VALUES(kn_sum(kn_mul(x, x)), 16); /* operations compute again */
    kn_module_free(net);
}

TENSOR_TEST(running_estimates_and_gradients_stay)
{
    kn_module *net = network();
    kn_tensor *input = kn_ones(KN_SHAPE(2, 1, 8, 8)), *mean = kn_module_get(net, "block1.1.running_mean");
    char *text = kn_module_summary_with(net, &(kn_module_summary_params){.input = input});
    CHECK_TENSOR(text);
    kn_free(text);
    CHECK_VALUES(mean, 0, 0, 0, 0, 0, 0, 0, 0);
    assert_true(kn_module_is_training(net));
    kn_tensor *output = kn_forward(net, input);
    assert_true(kn_requires_grad(output));
    kn_module_free(net);
}

TENSOR_TEST(an_input_that_does_not_fit_is_told)
{
    kn_module *net = network();
    kn_tensor *input = kn_ones(KN_SHAPE(2, 1, 9, 8));
    assert_null(kn_module_summary_with(net, &(kn_module_summary_params){.input = input}));
    CHECK_ERROR(KN_ERR_SHAPE, "linear", "(in head)");
    assert_null(kn_module_summary_with(NULL, NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "module");
    CHECK_TENSOR(kn_forward(net, kn_ones(KN_SHAPE(2, 1, 8, 8)))); /* and forward works as before */
    kn_module_free(net);
}

static kn_tensor *pass(kn_module *module, kn_tensor *x)
{
    (void)module;
    return x;
}

TENSOR_TEST(a_programs_module_shows_its_arguments)
{
    kn_module *net = kn_module_new("Net", pass, 0, NULL), *part = kn_module_new("Part", pass, 0, NULL);
    assert_ptr_equal(kn_module_register_module(net, "part", part), part);
    const kn_module_summary_params wide = {.width = KN_WIDE};
    expect(net, wide, "Net(\n  (part): Part()\n)\nParameters: 0 (0 B)\n");
    CHECK_OK(kn_module_set_extra_repr(part, "p=1"));
    CHECK_OK(kn_module_set_extra_repr(part, "p=0.5"));
    CHECK_OK(kn_module_set_extra_repr(net, "size=3"));
    expect(net, wide, "Net(\n  size=3\n  (part): Part(p=0.5)\n)\nParameters: 0 (0 B)\n");
    kn_module_free(net);
    net = kn_nn_relu();
    assert_int_equal(kn_module_set_extra_repr(net, "x"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "ReLU", "describe themselves");
    assert_int_equal(kn_module_set_extra_repr(net, NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "text");
    kn_module_free(net);
}

TENSOR_TEST(numbers_do_not_follow_the_locale)
{
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "de_DE") == NULL)
        skip();
    kn_module *layer = kn_nn_dropout(.p = 0.5);
    char *text = kn_module_summary(layer);
    setlocale(LC_NUMERIC, "C");
    assert_non_null(strstr(text, "Dropout(p=0.5, inplace=False)"));
    kn_free(text);
    kn_module_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_pass_leaves_no_trace), /* before anything has compiled its kernels */
        TEST(shapes_and_work_are_those_of_a_pass),
        TEST(blocks_are_folded_where_they_are_alike),
        TEST(the_tree_fits_the_page),
        TEST(running_estimates_and_gradients_stay),
        TEST(an_input_that_does_not_fit_is_told),
        TEST(a_programs_module_shows_its_arguments),
        TEST(numbers_do_not_follow_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
