/* test_second_gradients.c - kn_autograd_grad: gradients with respect to certain tensors, and second gradients for every
 * operator that claims them. */
#include "ops/dispatch/operators.h"
#include "ops/sample_leaves.h"
#include "support/check.h"
#include "support/full.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- kn_autograd_grad --------------------------------------------------------------------------------------------- */

static kn_tensor *leaf(double value) { return kn_full(KN_SHAPE(1), value, .dtype = KN_F64, .requires_grad = true); }

TENSOR_TEST_F64(a_gradient_is_given_and_leaves_keep_theirs)
{
    kn_tensor *x = leaf(3), *z = leaf(5), *y = kn_mul(kn_mul(x, x), z), *gradients[2];
    CHECK_OK(kn_autograd_grad(&y, 1, ((kn_tensor *[]){x, z}), 2, gradients, .retain_graph = true));
    CHECK_VALUES(gradients[0], 30);
    CHECK_VALUES(gradients[1], 9);
    assert_null(kn_grad(x));
    assert_null(kn_grad(z));
    assert_false(kn_requires_grad(gradients[0]));
    CHECK_OK(kn_backward(y));
    CHECK_VALUES(kn_grad(x), 30);
}

TENSOR_TEST_F64(gradients_of_results_and_of_several_outputs)
{
    kn_tensor *x = leaf(3), *square = kn_mul(x, x), *cube = kn_mul(square, x), *outputs[] = {square, cube};
    kn_tensor *gradients[2], *weights[] = {kn_full(KN_SHAPE(1), 10, .dtype = KN_F64), NULL};
    CHECK_OK(kn_autograd_grad(outputs, 2, ((kn_tensor *[]){x, square}), 2, gradients, .grad_outputs = weights));
    CHECK_VALUES(gradients[0], 87); /* 10 * 6 + 27 */
    CHECK_VALUES(gradients[1], 13); /* 10 + 3 */
}

TENSOR_TEST_F64(third_derivatives)
{
    kn_tensor *x = leaf(2), *y = kn_pow_scalar(x, 4), *first, *second, *third;
    CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &first, .create_graph = true));
    CHECK_OK(kn_autograd_grad(&first, 1, &x, 1, &second, .create_graph = true));
    CHECK_OK(kn_autograd_grad(&second, 1, &x, 1, &third));
    CHECK_VALUES(first, 32);
    CHECK_VALUES(second, 48);
    CHECK_VALUES(third, 48);
}

/* The gradient penalty of a small network: differentiates the input gradient with respect to the weights. */
TENSOR_TEST_F64(a_gradient_penalty)
{
    const double values[] = {0.5, -1, 2, 0.25, 1, -0.5};
    kn_tensor *x = kn_from_data(((double[]){1, -2, 3}), KN_SHAPE(1, 3), .dtype = KN_F64, .requires_grad = true);
    kn_tensor *weight = kn_from_data(values, KN_SHAPE(2, 3), .dtype = KN_F64, .requires_grad = true);
    kn_tensor *y = kn_sum(kn_tanh(kn_linear(x, weight, NULL))), *slope;
    CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &slope, .create_graph = true));
    assert_true(kn_requires_grad(slope));
    CHECK_OK(kn_backward(kn_sum(kn_mul(slope, slope))));
    assert_non_null(kn_grad(weight));
}

TENSOR_TEST_F64(what_is_not_used_is_an_error_or_null)
{
    kn_tensor *x = leaf(3), *other = leaf(1), *y = kn_mul(x, x), *gradients[2] = {NULL, NULL};
    kn_tensor *const inputs[] = {x, other};
    assert_int_equal(kn_autograd_grad(&y, 1, inputs, 2, gradients, .retain_graph = true), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "input 1 was not used", "allow_unused");
    CHECK_OK(kn_autograd_grad(&y, 1, inputs, 2, gradients, .allow_unused = true));
    CHECK_VALUES(gradients[0], 6);
    assert_null(gradients[1]);
}

TENSOR_TEST_F64(only_what_lies_between_is_run)
{
    kn_tensor *x = leaf(3), *middle = kn_mul(x, x), *y = kn_mul(middle, middle), *gradient;
    CHECK_OK(kn_autograd_grad(&y, 1, &middle, 1, &gradient));
    CHECK_VALUES(gradient, 18);
    CHECK_OK(kn_backward(middle)); /* its graph was not freed */
    CHECK_VALUES(kn_grad(x), 6);
}

TENSOR_TEST_F64(bad_arguments)
{
    kn_tensor *x = leaf(3), *plain = kn_ones(KN_SHAPE(1)), *y = kn_mul(x, x), *wide = kn_expand(y, KN_SHAPE(2)),
              *gradient;
    assert_int_equal(kn_autograd_grad(NULL, 1, &x, 1, &gradient), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_autograd_grad", "`outputs` is NULL");
    assert_int_equal(kn_autograd_grad(&y, 0, &x, 1, &gradient), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "0 outputs");
    assert_int_equal(kn_autograd_grad(&y, 1, &plain, 1, &gradient), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "input 0 does not require gradients");
    assert_int_equal(kn_autograd_grad(&plain, 1, &x, 1, &gradient), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "does not require gradients");
    assert_int_equal(kn_autograd_grad(&wide, 1, &x, 1, &gradient), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "must have one element");
    CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &gradient));
    assert_int_equal(kn_autograd_grad(&y, 1, &x, 1, &gradient), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "retain_graph");
}

/* --- every operator ----------------------------------------------------------------------------------------------- */

typedef struct one {
    const kn_op *op;
    const kn_op_sample *sample;
} one;

/* The sample's inputs that require gradients come from the checker. */
static kn_tensor *apply(kn_tensor *const *leaves, void *user)
{
    const one *o = user;
    kn_tensor *inputs[KN_SAMPLE_INPUTS], *y = NULL;
    for (int i = 0; i < o->sample->num_inputs; i++) {
        inputs[i] = o->sample->inputs[i];
        if (inputs[i] && kn_requires_grad(inputs[i]))
            inputs[i] = *leaves++;
    }
    if (kn_op_describe(o->op).in_place)
        inputs[0] = kn_clone(inputs[0]); /* a leaf is not changed */
    if (strcmp(kn_op_describe(o->op).name, "linalg_eigh") == 0)
        inputs[0] = kn_add(inputs[0], kn_t(inputs[0])); /* its gradient is that of a symmetric matrix */
    kn_manual_seed(1);
    return kn_op_call(o->op, inputs, o->sample->num_inputs, o->sample->params, &y, 1) == KN_OK ? y : NULL;
}

static void check_one(const kn_op *op, bool second)
{
    kn_op_sample sample;
    kn_tensor *leaves[KN_SAMPLE_INPUTS];
    kn_manual_seed(7);
    CHECK_OK(kn_op_sample_make(&sample, op, KN_F64, true));
    const int count = sample_leaves(&sample, leaves);
    one o = {op, &sample};
    const kn_gradcheck_params params = {.fast_mode = !test_full()};
    if ((second ? kn_gradgradcheck : kn_gradcheck)(apply, &o, leaves, count, &params) != KN_OK)
        fail_msg("%s: %s", kn_op_describe(op).name, kn_error_message());
    kn_op_sample_free(&sample);
}

TENSOR_TEST_F64(every_operator_has_the_gradients_that_it_says)
{
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op_info info = kn_op_describe(kn_op_at(i));
        KN_SCOPE;
        if (info.is_differentiable)
            check_one(kn_op_at(i), false);
        if (info.is_twice_differentiable)
            check_one(kn_op_at(i), true);
    }
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

/* A function of `in`, all float64, with parameters that the samples do not have. */
typedef struct parameters {
    const char *name;
    kn_gradcheck_function apply;
    const char *shapes; /* of the inputs, one word each */
} parameters;

#define CASE(id, ...)                                                                                                  \
    static kn_tensor *id(kn_tensor *const *in, void *user)                                                             \
    {                                                                                                                  \
        (void)user;                                                                                                    \
        return __VA_ARGS__;                                                                                            \
    }

static kn_tensor *classes(void) { return kn_from_data(((int64_t[]){2, 0, -100, 1}), KN_SHAPE(4), .dtype = KN_I64); }
static kn_tensor *weights(void) { return kn_from_data(((double[]){1, 0.5, 2}), KN_SHAPE(3), .dtype = KN_F64); }
static kn_tensor *ones(void) { return kn_ones(KN_SHAPE(2), .dtype = KN_F64); }

CASE(conv_strided, kn_conv2d(in[0], in[1], in[2], .stride = 2, .padding = 1, .dilation = 2, .groups = 2))
CASE(conv_relu, kn_conv1d(in[0], in[1], NULL, .activation = KN_ACTIVATION_RELU))
CASE(conv_same, kn_conv2d(in[0], in[1], in[2], .padding = KN_PADDING_SAME))
CASE(transposed, kn_conv_transpose2d(in[0], in[1], in[2], .stride = 2, .padding = 1, .output_padding = 1, .groups = 2))
CASE(pooled_relu, kn_max_pool2d(kn_add_scalar(in[0], -0.75), .kernel_size = 3, .stride = 2, .padding = 1,
                                .activation = KN_ACTIVATION_RELU))
CASE(pooled_volume, kn_max_pool3d(in[0], .kernel_size = 2, .stride = 1))
CASE(averaged, kn_avg_pool2d(in[0], .kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true))
CASE(batch_relu,
     kn_batch_norm(in[0], .weight = in[1], .bias = in[2], .training = true, .activation = KN_ACTIVATION_RELU))
CASE(batch_plain, kn_batch_norm(in[0], .training = true))
CASE(batch_estimated,
     kn_batch_norm(in[0], .weight = in[1], .bias = in[2], .running_mean = ones(), .running_var = ones()))
CASE(layer_plain, kn_layer_norm(in[0], KN_SHAPE(2, 3)))
CASE(entropy_weighted, kn_cross_entropy(in[0], classes(), .weight = weights(), .label_smoothing = 0.1))
CASE(entropy_each, kn_cross_entropy(in[0], classes(), .reduction = KN_REDUCTION_NONE))
CASE(likelihood_sum,
     kn_nll_loss(kn_log_softmax(in[0], 1), classes(), .weight = weights(), .reduction = KN_REDUCTION_SUM))
CASE(binary_weighted, kn_binary_cross_entropy_with_logits(in[0], in[1], weights(), weights(), KN_REDUCTION_NONE))
CASE(norm_1, kn_norm_dims(in[0], 1, (const int[]){0}, 1, false))
CASE(norm_3, kn_norm(in[0], 3))
CASE(norm_largest, kn_norm_dims(in[0], (double)INFINITY, (const int[]){1}, 1, true))
CASE(deviation, kn_std_dims(in[0], (const int[]){1}, 1, 1, false))
CASE(product, kn_prod_dim(in[0], 1, false))
CASE(log_sum, kn_logsumexp(in[0], (const int[]){1}, 1, false))
CASE(largest, kn_max_dim(in[0], 1, true, NULL))
CASE(running, kn_cumsum(in[0], 1))

/* Recurrent layers of three steps and two sequences, with all that they may have. */
static kn_tensor *lengths(void) { return kn_from_data(((int64_t[]){3, 1}), KN_SHAPE(2), .dtype = KN_I64); }

static kn_tensor *lstm_projected(kn_tensor *const *in, void *user)
{
    kn_tensor *c_n, *y;
    (void)user;
    y = kn_lstm(in[0], in[1], kn_narrow(in[1], 1, 0, 2), .lengths = lengths(), .reverse = true, .weight_hr = in[2],
                .c_n = &c_n);
    return kn_cat((kn_tensor *[]){y, kn_unsqueeze(kn_narrow(c_n, 1, 0, 2), 0)}, 2, 0);
}

static kn_tensor *gru_with_states(kn_tensor *const *in, void *user)
{
    kn_tensor *h_n, *y;
    (void)user;
    y = kn_gru(in[0], in[1], in[1], .bias_ih = kn_select(in[1], 1, 0), .bias_hh = kn_select(in[1], 1, 1), .h0 = in[2],
               .lengths = lengths(), .h_n = &h_n);
    return kn_add(y, h_n);
}

CASE(tanh_of_its_input, kn_rnn_tanh(kn_rnn_tanh(in[0], in[1], in[1]), in[1], in[1], .reverse = true))
CASE(lstm_cell, kn_lstm_cell(in[0], in[0], in[1], in[2], in[2], NULL, NULL, NULL))

static const parameters cases[] = {
    {"conv2d, strided, dilated, grouped", conv_strided, "2,4,6,5 4,2,2,2 4"},
    {"conv1d with an activation", conv_relu, "1,2,5 2,2,2"},
    {"conv2d, padded by the same", conv_same, "1,3,4 2,1,2,3 2"},
    {"conv_transpose2d", transposed, "1,4,3,2 4,1,3,3 2"},
    {"max_pool2d with an activation", pooled_relu, "1,2,5,5"},
    {"max_pool3d", pooled_volume, "1,1,3,3,3"},
    {"avg_pool2d", averaged, "1,1,5,6"},
    {"batch_norm with an activation", batch_relu, "3,2,2 2 2"},
    {"batch_norm without weights", batch_plain, "4,2"},
    {"batch_norm with estimates", batch_estimated, "3,2,2 2 2"},
    {"layer_norm over two dimensions", layer_plain, "2,2,3"},
    {"cross_entropy, weighted, smoothed", entropy_weighted, "4,3"},
    {"cross_entropy of each", entropy_each, "4,3"},
    {"nll_loss", likelihood_sum, "4,3"},
    {"binary cross entropy, weighted", binary_weighted, "2,3 2,3"},
    {"norm, p = 1", norm_1, "2,3"},
    {"norm, p = 3", norm_3, "2,3"},
    {"norm, p = infinity", norm_largest, "2,3"},
    {"std", deviation, "2,3"},
    {"prod", product, "2,3"},
    {"logsumexp", log_sum, "2,3"},
    {"max_dim", largest, "2,3"},
    {"cumsum", running, "2,3"},
    {"lstm, projected", lstm_projected, "3,2,3 12,3 2,3"},
    {"gru, with states", gru_with_states, "3,2,2 6,2 2,2"},
    {"rnn_tanh of one with the same weights", tanh_of_its_input, "3,2,2 2,2"},
    {"lstm_cell", lstm_cell, "2,2 2,2 8,2"},
};

static kn_tensor *random_leaf(const char *word)
{
    int64_t shape[KN_MAX_DIMS];
    int ndim = 0;
    for (char *at = (char *)(uintptr_t)word;; at++) {
        shape[ndim++] = strtoll(at, &at, 10);
        if (*at != ',')
            break;
    }
    return kn_rand_with(ndim, shape, &(kn_tensor_options){.dtype = KN_F64, .requires_grad = true});
}

TENSOR_TEST_F64(with_parameters)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        KN_SCOPE;
        kn_tensor *in[3] = {NULL};
        int count = 0;
        kn_manual_seed(11);
        for (const char *word = cases[i].shapes; word; word = strchr(word, ' ') ? strchr(word, ' ') + 1 : NULL)
            in[count++] = random_leaf(word);
        if (kn_gradgradcheck(cases[i].apply, NULL, in, count, NULL) != KN_OK)
            fail_msg("%s: %s", cases[i].name, kn_error_message());
    }
}

/* The product's gradient at zeros has a gradient: that of a b c is the other factor. */
TENSOR_TEST_F64(products_with_zeros)
{
    for (int scattered = 0; scattered < 2; scattered++) {
        const double values[] = {0, 0, 5, 0, 2, 3};
        kn_tensor *x = kn_from_data(values, KN_SHAPE(2, 3), .dtype = KN_F64, .requires_grad = true), *first, *second;
        kn_tensor *product = scattered
                                 ? kn_scatter_reduce(kn_ones(KN_SHAPE(2, 1), .dtype = KN_F64), 1,
                                                     kn_zeros(KN_SHAPE(2, 3), .dtype = KN_I64), x, KN_SCATTER_PROD)
                                 : kn_prod_dim(x, 1, false);
        kn_tensor *y = kn_sum(product);
        CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &first, .create_graph = true));
        CHECK_VALUES(first, 0, 0, 0, 6, 0, 0);
        kn_tensor *weight = kn_from_data(((double[]){1, 10, 100, 1, 10, 100}), KN_SHAPE(2, 3), .dtype = KN_F64);
        y = kn_sum(kn_mul(first, weight));
        CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &second));
        CHECK_VALUES(second, 50, 5, 0, 230, 3, 2);
    }
}

/* Both gradients of a norm are 0 at a zero vector. */
TENSOR_TEST_F64(norms_of_zeros)
{
    for (int p = 2; p <= 3; p++) {
        kn_tensor *x = kn_zeros(KN_SHAPE(3), .dtype = KN_F64, .requires_grad = true);
        kn_tensor *y = kn_norm(x, p), *first, *second;
        CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &first, .create_graph = true));
        CHECK_VALUES(first, 0, 0, 0);
        y = kn_sum(first);
        CHECK_OK(kn_autograd_grad(&y, 1, &x, 1, &second));
        CHECK_VALUES(second, 0, 0, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_gradient_is_given_and_leaves_keep_theirs),
        TEST(gradients_of_results_and_of_several_outputs),
        TEST(third_derivatives),
        TEST(a_gradient_penalty),
        TEST(what_is_not_used_is_an_error_or_null),
        TEST(only_what_lies_between_is_run),
        TEST(bad_arguments),
        TEST(every_operator_has_the_gradients_that_it_says),
        TEST(with_parameters),
        TEST(products_with_zeros),
        TEST(norms_of_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
