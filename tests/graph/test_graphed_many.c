/* test_graphed_many.c - a graphed module with several inputs and outputs trains as without graphs, whichever outputs
 * the loss uses, and rejects inputs unlike the recorded ones. */
#include "support/check.h"

#include "support/many.h"

#define WIDTH 4

typedef struct many_case {
    kn_module *net;
    kn_optim *optim;
    kn_tensor *x, *scale, *shift; /* the first two require gradients */
} many_case;

static many_case case_make(bool with_shift)
{
    many_case c = {.net = gate_module(WIDTH)};
    kn_manual_seed(5);
    c.optim = kn_optim_adam(kn_module_parameters(c.net), .lr = 0.1);
    c.x = kn_randn(KN_SHAPE(3, WIDTH), .requires_grad = true);
    c.scale = kn_randn(KN_SHAPE(WIDTH), .requires_grad = true);
    c.shift = with_shift ? kn_randn(KN_SHAPE(3, WIDTH)) : NULL;
    CHECK_TENSOR((void *)c.optim);
    return c;
}

static void case_free(many_case *c)
{
    kn_optim_free(c->optim);
    kn_module_free(c->net);
}

/* The outputs that the loss uses. */
typedef enum choice { FIRST, SECOND, BOTH } choice;

static double step(many_case *c, choice which)
{
    KN_SCOPE;
    kn_tensor *outputs[2] = {NULL};
    kn_optim_zero_grad(c->optim);
    CHECK_OK(kn_set_grad(c->x, NULL));
    CHECK_OK(kn_set_grad(c->scale, NULL));
    CHECK_OK(kn_forward_many(c->net, KN_TENSORS(c->x, c->scale, c->shift), outputs, 2));
    kn_tensor *first = kn_sum(kn_mul(outputs[0], outputs[0])), *second = kn_sum(kn_mul(outputs[1], outputs[1]));
    kn_tensor *loss = which == FIRST ? first : which == SECOND ? second : kn_add(first, second);
    CHECK_OK(kn_backward(loss));
    CHECK_OK(kn_optim_step(c->optim));
    double value;
    CHECK_OK(kn_item(loss, &value));
    return value;
}

/* The gradients of both outputs meet in the inputs; with two terms the order of the sum does not matter. */
static void learn_alike(bool with_shift)
{
    many_case eager = case_make(with_shift), graphed = case_make(with_shift);
    CHECK_OK(kn_make_graphed_callable_many(graphed.net, KN_TENSORS(graphed.x, graphed.scale, graphed.shift)));
    for (int i = 0; i < 9; i++) {
        double one = step(&eager, i % 2 ? BOTH : FIRST), other = step(&graphed, i % 2 ? BOTH : FIRST);
        if (one != other)
            fail_msg("step %d: %.17g and %.17g", i, one, other);
        check_same_bits(kn_grad(eager.x), kn_grad(graphed.x));
        check_same_bits(kn_grad(eager.scale), kn_grad(graphed.scale));
        check_same_bits(kn_module_get(eager.net, "gate.weight"), kn_module_get(graphed.net, "gate.weight"));
    }
    case_free(&eager);
    case_free(&graphed);
}

TENSOR_TEST(all_inputs) { learn_alike(true); }
TENSOR_TEST(an_input_left_out) { learn_alike(false); }

/* Inputs of the unused output get zero gradients. */
TENSOR_TEST(an_output_that_no_gradient_reaches)
{
    many_case eager = case_make(true), graphed = case_make(true);
    CHECK_OK(kn_make_graphed_callable_many(graphed.net, KN_TENSORS(graphed.x, graphed.scale, graphed.shift)));
    assert_true(step(&eager, SECOND) == step(&graphed, SECOND));
    check_same_bits(kn_grad(eager.x), kn_grad(graphed.x));
    check_same_bits(kn_grad(eager.scale), kn_grad(graphed.scale));
    assert_null(kn_grad(kn_module_get(eager.net, "gate.weight")));
    CHECK_VALUES(kn_sum(kn_abs(kn_grad(kn_module_get(graphed.net, "gate.weight")))), 0);
    case_free(&eager);
    case_free(&graphed);
}

TENSOR_TEST(what_was_not_recorded_is_refused)
{
    many_case c = case_make(true);
    kn_tensor *outputs[2] = {NULL}, *narrow = kn_ones(KN_SHAPE(3, 1));
    assert_int_equal(kn_make_graphed_callable(c.net, c.x), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "1 samples were given for the 3 inputs of this Gate");
    assert_int_equal(kn_make_graphed_callable_many(c.net, KN_TENSORS(c.x, NULL)), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "sample");
    assert_int_equal(kn_make_graphed_callable_many(c.net, NULL, 2), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "samples");
    CHECK_OK(kn_make_graphed_callable_many(c.net, KN_TENSORS(c.x, c.scale)));
    assert_int_equal(kn_forward_many(c.net, KN_TENSORS(c.x, c.scale, c.shift), outputs, 2), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "NULL for input 2");
    assert_int_equal(kn_forward_many(c.net, KN_TENSORS(c.x, narrow), outputs, 2), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "like those it was recorded with");
    CHECK_OK(kn_forward_many(c.net, KN_TENSORS(c.x, c.scale), outputs, 2));
    kn_module_train(c.net, false); /* the other mode runs eagerly */
    CHECK_OK(kn_forward_many(c.net, KN_TENSORS(c.x, c.scale, c.shift), outputs, 2));
    case_free(&c);
}

TENSOR_TEST(a_sequence_that_grew)
{
    kn_module *net = kn_nn_sequential(kn_nn_relu());
    kn_tensor *x = kn_ones(KN_SHAPE(3, WIDTH)), *outputs[2] = {NULL};
    CHECK_OK(kn_make_graphed_callable(net, x));
    CHECK_TENSOR(kn_forward(net, x));
    CHECK_OK(kn_nn_add_module(net, "gate", gate_module(WIDTH))); /* with two outputs */
    assert_int_equal(kn_forward_many(net, &x, 1, outputs, 2), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "added to a graphed module");
    kn_module_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_inputs),
        TEST(an_input_left_out),
        TEST(an_output_that_no_gradient_reaches),
        TEST(what_was_not_recorded_is_refused),
        TEST(a_sequence_that_grew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
