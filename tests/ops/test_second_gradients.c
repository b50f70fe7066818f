/* test_second_gradients.c - kn_autograd_grad: gradients with respect to certain tensors, and second gradients for every
 * operator that claims them. */
#include "cli/op_samples.h"
#include "ops/dispatch/operators.h"
#include "support/check.h"

#include <string.h>

/* --- kn_autograd_grad --------------------------------------------------------------------------------------------- */

static kn_tensor *leaf(double value) { return kn_full(KN_SHAPE(1), value, .dtype = KN_F64, .requires_grad = true); }

TENSOR_TEST(a_gradient_is_given_and_leaves_keep_theirs)
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

TENSOR_TEST(gradients_of_results_and_of_several_outputs)
{
    kn_tensor *x = leaf(3), *square = kn_mul(x, x), *cube = kn_mul(square, x), *outputs[] = {square, cube};
    kn_tensor *gradients[2], *weights[] = {kn_full(KN_SHAPE(1), 10, .dtype = KN_F64), NULL};
    CHECK_OK(kn_autograd_grad(outputs, 2, ((kn_tensor *[]){x, square}), 2, gradients, .grad_outputs = weights));
    CHECK_VALUES(gradients[0], 87); /* 10 * 6 + 27 */
    CHECK_VALUES(gradients[1], 13); /* 10 + 3 */
}

TENSOR_TEST(third_derivatives)
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
TENSOR_TEST(a_gradient_penalty)
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

TENSOR_TEST(what_is_not_used_is_an_error_or_null)
{
    kn_tensor *x = leaf(3), *other = leaf(1), *y = kn_mul(x, x), *gradients[2] = {NULL, NULL};
    kn_tensor *const inputs[] = {x, other};
    assert_int_equal(kn_autograd_grad(&y, 1, inputs, 2, gradients, .retain_graph = true), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "input 1 was not used", "allow_unused");
    CHECK_OK(kn_autograd_grad(&y, 1, inputs, 2, gradients, .allow_unused = true));
    CHECK_VALUES(gradients[0], 6);
    assert_null(gradients[1]);
}

TENSOR_TEST(only_what_lies_between_is_run)
{
    kn_tensor *x = leaf(3), *middle = kn_mul(x, x), *y = kn_mul(middle, middle), *gradient;
    CHECK_OK(kn_autograd_grad(&y, 1, &middle, 1, &gradient));
    CHECK_VALUES(gradient, 18);
    CHECK_OK(kn_backward(middle)); /* its graph was not freed */
    CHECK_VALUES(kn_grad(x), 6);
}

TENSOR_TEST(bad_arguments)
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

TENSOR_TEST(an_operator_without_second_gradients_is_named)
{
    kn_tensor *x = kn_rand(KN_SHAPE(2, 3), .requires_grad = true), *y = kn_sum(kn_prod_dim(x, 0, false)), *gradient;
    assert_int_equal(kn_autograd_grad(&y, 1, &x, 1, &gradient, .create_graph = true), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "backward of prod", "create_graph");
}

/* --- every operator ----------------------------------------------------------------------------------------------- */

typedef struct one {
    const kn_op *op;
    const kn_op_sample *sample;
} one;

/* The sample's floating inputs come from the checker. */
static kn_tensor *apply(kn_tensor *const *leaves, void *user)
{
    const one *o = user;
    kn_tensor *inputs[KN_SAMPLE_INPUTS], *y = NULL;
    for (int i = 0; i < o->sample->num_inputs; i++) {
        inputs[i] = o->sample->inputs[i];
        if (inputs[i] && kn_dtype_is_floating(kn_dtype_of(inputs[i])))
            inputs[i] = *leaves++;
    }
    if (kn_op_describe(o->op).in_place)
        inputs[0] = kn_clone(inputs[0]); /* a leaf is not changed */
    kn_manual_seed(1);
    return kn_op_call(o->op, inputs, o->sample->num_inputs, o->sample->params, &y, 1) == KN_OK ? y : NULL;
}

static void check_one(const kn_op *op, bool second)
{
    kn_op_sample sample;
    kn_tensor *leaves[KN_SAMPLE_INPUTS];
    int count = 0;
    kn_manual_seed(7);
    CHECK_OK(kn_op_sample_make(&sample, op, KN_F64, true));
    for (int i = 0; i < sample.num_inputs; i++)
        if (sample.inputs[i] && kn_dtype_is_floating(kn_dtype_of(sample.inputs[i])))
            leaves[count++] = sample.inputs[i];
    one o = {op, &sample};
    if ((second ? kn_gradgradcheck : kn_gradcheck)(apply, &o, leaves, count, NULL) != KN_OK)
        fail_msg("%s: %s", kn_op_describe(op).name, kn_error_message());
    kn_op_sample_free(&sample);
}

TENSOR_TEST(every_operator_has_the_gradients_that_it_says)
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
        TEST(an_operator_without_second_gradients_is_named),
        TEST(every_operator_has_the_gradients_that_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
