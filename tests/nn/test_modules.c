/* test_modules.c - layers and sequences: names, lists, modes, forward, errors, printing. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/values.h"

/* --- lists and names ------------------------------------------------------------------------------------------- */

static kn_module *small_network(void)
{
    return kn_nn_sequential(kn_nn_linear(.in_features = 3, .out_features = 4), kn_nn_relu(),
                            kn_nn_sequential(kn_nn_linear(.in_features = 4, .out_features = 2, .bias = false)));
}

TENSOR_TEST(parameters_are_listed_in_order_with_dotted_names)
{
    kn_module *net = small_network();
    CHECK_TENSOR(net);
    kn_parameter_list list = kn_module_parameters(net);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.names[0], "0.weight");
    assert_string_equal(list.names[1], "0.bias");
    assert_string_equal(list.names[2], "2.0.weight");
    CHECK_SHAPE(list.tensors[2], 2, 4);
    assert_true(kn_requires_grad(list.tensors[0]));
    assert_int_equal(kn_module_parameter_count(net), 3 * 4 + 4 + 4 * 2);
    assert_ptr_equal(kn_module_get(net, "2.0.weight"), list.tensors[2]);
    assert_int_equal(kn_module_buffers(net).count, 0);
    assert_null(kn_module_get(net, "2.0.bias"));
    CHECK_ERROR(KN_ERR_ARGUMENT, "2.0.bias");
    kn_module_free(net);
}

TENSOR_TEST(the_list_follows_what_is_added_later)
{
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    assert_int_equal(kn_module_parameters(net).count, 0);
    CHECK_OK(kn_nn_add_module(net, "first", kn_nn_linear(.in_features = 1, .out_features = 1)));
    assert_int_equal(kn_module_parameters(net).count, 2);
    kn_module *inner = kn_nn_sequential_of(NULL, 0);
    CHECK_OK(kn_nn_add_module(net, "inner", inner));
    CHECK_OK(kn_nn_add_module(inner, "deep", kn_nn_linear(.in_features = 1, .out_features = 1)));
    kn_parameter_list list = kn_module_parameters(net);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.names[3], "inner.deep.bias");
    assert_int_equal(kn_module_child_count(net), 2);
    assert_ptr_equal(kn_module_child(net, 1), inner);
    assert_null(kn_module_child(net, 2));
    kn_module_free(net);
}

static kn_tensor *identity(kn_module *module, kn_tensor *x)
{
    (void)module;
    return x;
}

TENSOR_TEST(a_shared_parameter_is_listed_once)
{
    kn_module *net = kn_module_new("Tied", identity, 0, NULL);
    kn_tensor *w = kn_zeros(KN_SHAPE(2));
    CHECK_TENSOR(kn_module_register_parameter(net, "a", w));
    CHECK_TENSOR(kn_module_register_parameter(net, "b", w));
    CHECK_TENSOR(kn_module_register_buffer(net, "mean", kn_zeros(KN_SHAPE(3))));
    assert_int_equal(kn_module_parameters(net).count, 1);
    assert_int_equal(kn_module_buffers(net).count, 1);
    assert_string_equal(kn_module_buffers(net).names[0], "mean");
    assert_false(kn_requires_grad(kn_module_get(net, "mean")));
    kn_module_free(net);
}

TENSOR_TEST(names_are_checked)
{
    kn_module *net = kn_module_new("Named", identity, 0, NULL);
    kn_tensor *w = kn_zeros(KN_SHAPE(1));
    CHECK_TENSOR(kn_module_register_parameter(net, "w", w));
    assert_null(kn_module_register_parameter(net, "w", kn_zeros(KN_SHAPE(1))));
    CHECK_ERROR(KN_ERR_ARGUMENT, "\"w\"", "taken");
    assert_null(kn_module_register_parameter(net, "a.b", w));
    CHECK_ERROR(KN_ERR_ARGUMENT, "a.b", "dot");
    assert_null(kn_module_register_parameter(net, "", w));
    CHECK_ERROR(KN_ERR_ARGUMENT, "name");
    assert_null(kn_module_register_parameter(net, "whole", kn_zeros(KN_SHAPE(1), .dtype = KN_I64)));
    CHECK_ERROR(KN_ERR_DTYPE, "whole", "int64");
    assert_null(kn_module_register_parameter(net, "result", kn_add(w, w)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "result", "leaf");
    assert_int_equal(kn_module_parameters(net).count, 1);
    kn_module_free(net);
}

/* --- ownership ------------------------------------------------------------------------------------------------- */

/* --- forward --------------------------------------------------------------------------------------------------- */

static int destroyed;
static void count_destroyed(void *self)
{
    (void)self;
    destroyed++;
}

typedef struct regression {
    kn_tensor *w, *b;
} regression;

static kn_tensor *regress(kn_module *module, kn_tensor *x)
{
    regression *self = kn_module_self(module);
    return kn_add(kn_matmul(x, kn_t(self->w)), self->b);
}

TENSOR_TEST(a_module_of_ones_own_trains)
{
    destroyed = 0;
    kn_module *module = kn_module_new("Regression", regress, sizeof(regression), count_destroyed);
    CHECK_TENSOR(module);
    regression *self = kn_module_self(module);
    assert_null(self->w);
    self->w = kn_module_register_parameter(module, "w", kn_from_data(((float[]){2, -3}), KN_SHAPE(1, 2)));
    self->b = kn_module_register_parameter(module, "b", kn_from_data(((float[]){10}), KN_SHAPE(1)));
    kn_tensor *x = kn_from_data(((float[]){1, 1, 0, 2}), KN_SHAPE(2, 2));
    kn_tensor *y = kn_forward(module, x);
    CHECK_VALUES(y, 9, 4);
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(self->w), 1, 3);
    CHECK_VALUES(kn_grad(self->b), 2);
    kn_module_zero_grad(module);
    assert_null(kn_grad(self->w));
    assert_string_equal(kn_module_type_name(module), "Regression");
    kn_module_free(module);
    assert_int_equal(destroyed, 1);
}

TENSOR_TEST(linear_and_its_gradient)
{
    kn_module *layer = kn_nn_linear(.in_features = 2, .out_features = 3);
    kn_tensor *w = kn_module_get(layer, "weight"), *b = kn_module_get(layer, "bias");
    CHECK_OK(kn_write(w, (float[]){1, 2, 3, 4, 5, 6}, 6 * sizeof(float)));
    CHECK_OK(kn_write(b, (float[]){0.5f, 0, -1}, 3 * sizeof(float)));
    kn_tensor *y = kn_forward(layer, kn_from_data(((float[]){1, -1}), KN_SHAPE(1, 2)));
    CHECK_VALUES(y, -0.5, -1, -2);
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(w), 1, -1, 1, -1, 1, -1);
    kn_module_free(layer);
}

TENSOR_TEST(dropout_obeys_the_mode)
{
    kn_module *net = kn_nn_sequential(kn_nn_dropout(.p = 0.5), kn_nn_sequential(kn_nn_dropout2d(.p = 1)));
    kn_tensor *x = kn_ones(KN_SHAPE(2, 3, 2, 2));
    assert_true(kn_module_is_training(net));
    double *dropped = read_doubles(kn_forward(net, x));
    for (int i = 0; i < 24; i++)
        assert_true(dropped[i] == 0);
    free(dropped);
    kn_module_train(net, false);
    assert_false(kn_module_is_training(kn_module_child(net, 1)));
    kn_tensor *same = kn_forward(net, x);
    CHECK_TENSOR(same);
    double *kept = read_doubles(same);
    for (int i = 0; i < 24; i++)
        assert_true(kept[i] == 1);
    free(kept);
    kn_module_train(net, true);
    assert_true(kn_module_is_training(kn_module_child(kn_module_child(net, 1), 0)));
    kn_module_free(net);
}

/* Without an open scope the caller owns results; a module that returns its argument returns a further reference. */
static void forward_without_a_scope(void **state)
{
    (void)state;
    kn_module *net = kn_nn_sequential(kn_nn_relu(), kn_nn_flatten());
    kn_module *empty = kn_nn_sequential_of(NULL, 0);
    kn_tensor *x = kn_from_data(((float[]){1, -2, 3, -4}), KN_SHAPE(1, 2, 2));
    kn_tensor *y = kn_forward(net, x), *z = kn_forward(empty, y);
    CHECK_SHAPE(y, 1, 4);
    assert_ptr_equal(y, z);
    kn_release(z);
    CHECK_VALUES(y, 1, 0, 3, 0);
    kn_release(y);
    kn_release(x);
    kn_module_free(net);
    kn_module_free(empty);
}

static kn_tensor *silent(kn_module *module, kn_tensor *x)
{
    (void)module;
    (void)x;
    return NULL;
}

TENSOR_TEST(failures_of_forward_are_told)
{
    kn_module *layer = kn_nn_linear(.in_features = 3, .out_features = 2);
    assert_null(kn_forward(layer, kn_ones(KN_SHAPE(4, 5))));
    CHECK_ERROR(KN_ERR_SHAPE, "5", "3");
    assert_null(kn_forward(layer, NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "x");
    assert_null(kn_forward(NULL, kn_ones(KN_SHAPE(1))));
    CHECK_ERROR(KN_ERR_ARGUMENT, "module");
    kn_module *mute = kn_module_new("Mute", silent, 0, NULL);
    kn_error_clear();
    assert_null(kn_forward(mute, kn_ones(KN_SHAPE(1))));
    CHECK_ERROR(KN_ERR_STATE, "Mute", "NULL");
    kn_error_clear();
    kn_module_free(mute);
    kn_module_free(layer);
}

TENSOR_TEST(layers_refuse_impossible_parameters)
{
    assert_null(kn_nn_linear(.in_features = 0, .out_features = 3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "in_features (0)");
    assert_null(kn_nn_conv2d(.in_channels = 3, .out_channels = 4, .kernel_size = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kernel_size");
    assert_null(kn_nn_conv2d(.in_channels = 3, .out_channels = 4, .kernel_size = 1, .groups = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "groups (2)", "(3)");
    assert_null(kn_nn_conv2d(.in_channels = 3, .out_channels = 4, .kernel_size = 1, .stride = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "stride");
    assert_null(kn_nn_max_pool2d(.kernel_size = 2, .padding = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "padding");
    assert_null(kn_nn_max_pool2d(.stride = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kernel_size");
    assert_null(kn_nn_adaptive_avg_pool2d(0, 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "output_size");
    kn_error_clear();
}

/* --- initial values -------------------------------------------------------------------------------------------- */

TENSOR_TEST(initial_values_are_bounded_by_the_fan_in)
{
    kn_manual_seed(1);
    kn_module *layer = kn_nn_conv2d(.in_channels = 4, .out_channels = 8, .kernel_size = 3, .groups = 2);
    kn_tensor *weight = kn_module_get(layer, "weight");
    CHECK_SHAPE(weight, 8, 2, 3, 3);
    double *values = read_doubles(weight), bound = 1 / sqrt(2 * 3 * 3), largest = 0;
    for (int64_t i = 0; i < kn_numel(weight); i++)
        largest = fmax(largest, fabs(values[i]));
    free(values);
    assert_true(largest <= bound && largest > 0.8 * bound);
    /* The same seed gives the same weights. */
    kn_manual_seed(1);
    kn_module *twin = kn_nn_conv2d(.in_channels = 4, .out_channels = 8, .kernel_size = 3, .groups = 2);
    double same = 0;
    CHECK_OK(kn_item(kn_sum(kn_abs(kn_sub(weight, kn_module_get(twin, "weight")))), &same));
    assert_true(same == 0);
    kn_module_free(layer);
    kn_module_free(twin);
}

TENSOR_TEST(initialisers_fill_in_place)
{
    kn_tensor *w = kn_zeros(KN_SHAPE(50, 40), .requires_grad = true);
    assert_ptr_equal(kn_init_kaiming_uniform_(w, 0), w);
    assert_true(kn_is_leaf(w));
    double *values = read_doubles(w), largest = 0;
    for (int i = 0; i < 2000; i++)
        largest = fmax(largest, fabs(values[i]));
    free(values);
    assert_true(largest <= sqrt(6.0 / 40) && largest > 0.95 * sqrt(6.0 / 40));
    CHECK_TENSOR(kn_init_xavier_uniform_(w, 2));
    values = read_doubles(w);
    for (int i = 0; i < 2000; i++)
        assert_true(fabs(values[i]) <= 2 * sqrt(6.0 / 90));
    free(values);
    CHECK_TENSOR(kn_init_normal_(w, 3, 0));
    CHECK_VALUES(kn_narrow(kn_reshape(w, KN_SHAPE(2000)), 0, 0, 2), 3, 3);
    assert_null(kn_init_xavier_uniform_(kn_zeros(KN_SHAPE(3)), 1));
    CHECK_ERROR(KN_ERR_SHAPE, "at least 2 dimensions", "[3]");
    kn_error_clear();
}

/* --- text ------------------------------------------------------------------------------------------------------ */

static void expect_text(kn_module *module, const char *const *lines)
{
    char *text = kn_module_summary(module);
    CHECK_TENSOR(text);
    for (; *lines != NULL; lines++) {
        if (strstr(text, *lines) == NULL)
            fail_msg("expected \"%s\" in:\n%s", *lines, text);
    }
    kn_free(text);
    kn_module_free(module);
}

TENSOR_TEST(a_summary_is_print_net_with_counts)
{
    kn_module *net = kn_nn_sequential_of(NULL, 0);
    kn_nn_add_module(net, "conv1", kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3));
    kn_nn_add_module(net, "pool", kn_nn_max_pool2d(.kernel_size = 2));
    kn_nn_add_module(net, "adaptive", kn_nn_adaptive_max_pool2d(1, 1));
    kn_nn_add_module(net, "dropout", kn_nn_dropout2d(.p = 0.1));
    kn_nn_add_module(net, "flatten", kn_nn_flatten());
    kn_nn_add_module(net, "block",
                     kn_nn_sequential(kn_nn_linear(.in_features = 32, .out_features = 1000), kn_nn_softmax(1),
                                      kn_nn_relu6(), kn_nn_hardtanh(-1, 2)));
    const char *const lines[] = {
        "Sequential(\n",
        "  (conv1): Conv2d(1, 32, kernel_size=(3, 3), stride=(1, 1))",
        "  (pool): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)\n",
        "  (adaptive): AdaptiveMaxPool2d(output_size=(1, 1))\n",
        "  (dropout): Dropout2d(p=0.1, inplace=False)\n",
        "  (flatten): Flatten(start_dim=1, end_dim=-1)\n",
        "  (block): Sequential(\n",
        "    (0): Linear(in_features=32, out_features=1000, bias=True)",
        " 33,000\n",
        "    (1): Softmax(dim=1)\n",
        "    (2): ReLU6()\n",
        "    (3): Hardtanh(min_val=-1.0, max_val=2.0)\n",
        "  )\n)\n",
        "Parameters: 33,320 (",
        NULL,
    };
    expect_text(net, lines);
    const char *const wide[] = {
        "Conv2d(4, 8, kernel_size=(3, 5), stride=(2, 1), padding=(1, 2), dilation=(2, 2), groups=4, bias=False)", NULL};
    expect_text(kn_nn_conv2d(.in_channels = 4, .out_channels = 8, .kernel_sizes = {3, 5}, .strides = {2, 1},
                             .paddings = {1, 2}, .dilation = 2, .groups = 4, .bias = false),
                wide);
    expect_text(kn_nn_conv1d(.in_channels = 4, .out_channels = 8, .kernel_size = 3, .padding = 1),
                (const char *const[]){"Conv1d(4, 8, kernel_size=(3,), stride=(1,), padding=(1,))", NULL});
    expect_text(kn_nn_conv2d(.in_channels = 4, .out_channels = 8, .kernel_size = 3, .padding = KN_PADDING_SAME),
                (const char *const[]){"Conv2d(4, 8, kernel_size=(3, 3), stride=(1, 1), padding=same)", NULL});
    expect_text(
        kn_nn_conv_transpose3d(.in_channels = 4, .out_channels = 8, .kernel_size = 3, .stride = 2, .padding = 1,
                               .dilation = 2, .output_paddings = {1, 0, 1}, .groups = 2, .bias = false),
        (const char *const[]){"ConvTranspose3d(4, 8, kernel_size=(3, 3, 3), stride=(2, 2, 2), padding=(1, 1, 1), "
                              "dilation=(2, 2, 2), output_padding=(1, 0, 1), groups=2, bias=False)",
                              NULL});
    expect_text(kn_nn_max_pool3d(.kernel_sizes = {1, 2, 2}),
                (const char *const[]){"MaxPool3d(kernel_size=(1, 2, 2), stride=(1, 2, 2), padding=0, dilation=1, "
                                      "ceil_mode=False)",
                                      NULL});
    expect_text(kn_nn_avg_pool1d(.kernel_size = 2),
                (const char *const[]){"AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))", NULL});
    expect_text(kn_nn_adaptive_avg_pool1d(5), (const char *const[]){"AdaptiveAvgPool1d(output_size=5)", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parameters_are_listed_in_order_with_dotted_names),
        TEST(the_list_follows_what_is_added_later),
        TEST(a_shared_parameter_is_listed_once),
        TEST(names_are_checked),
        TEST(a_module_of_ones_own_trains),
        TEST(linear_and_its_gradient),
        TEST(dropout_obeys_the_mode),
        TEST(forward_without_a_scope),
        TEST(failures_of_forward_are_told),
        TEST(layers_refuse_impossible_parameters),
        TEST(initial_values_are_bounded_by_the_fan_in),
        TEST(initialisers_fill_in_place),
        TEST(a_summary_is_print_net_with_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
