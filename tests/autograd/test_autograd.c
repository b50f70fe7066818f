/* test_autograd.c - the tape and the backward pass: accumulation, detach, no-grad, retain_graph, in-place changes,
 * hooks. */
#include "support/check.h"

#include <string.h>

static kn_tensor *leaf(double value) { return kn_full(KN_SHAPE(2), value, .requires_grad = true); }

TENSOR_TEST(test_leaves)
{
    kn_tensor *x = leaf(3), *plain = kn_ones(KN_SHAPE(2)), *y = kn_mul(x, plain);
    assert_true(kn_is_leaf(x) && kn_requires_grad(x));
    assert_true(kn_is_leaf(plain) && !kn_requires_grad(plain));
    assert_true(!kn_is_leaf(y) && kn_requires_grad(y));
    assert_string_equal(kn_grad_fn_name(y), "mul");
    assert_true(!kn_grad_fn_name(x) && !kn_grad_fn_name(plain) && !kn_grad_fn_name(kn_detach(y)) &&
                !kn_grad_fn_name(NULL));
    assert_null(kn_grad(x));
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(x), 1, 1);
    assert_null(kn_grad(plain));
    assert_null(kn_grad(y));
    CHECK_OK(kn_set_requires_grad(plain, true));
    assert_true(kn_requires_grad(plain));
    CHECK_OK(kn_set_requires_grad(plain, false));
    assert_int_equal(kn_set_requires_grad(y, false), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "kn_detach");
    assert_int_equal(kn_set_requires_grad(kn_ones(KN_SHAPE(2), .dtype = KN_I64), true), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "int64");
}

TENSOR_TEST(test_accumulation)
{
    kn_tensor *x = leaf(3);
    for (int i = 1; i <= 3; i++) {
        CHECK_OK(kn_backward(kn_sum(kn_mul(x, x))));
        CHECK_VALUES(kn_grad(x), 6 * i, 6 * i);
    }
    CHECK_OK(kn_set_grad(x, NULL));
    assert_null(kn_grad(x));
    CHECK_OK(kn_backward(kn_sum(x)));
    CHECK_VALUES(kn_grad(x), 1, 1);
    CHECK_OK(kn_set_grad(x, kn_full(KN_SHAPE(2), 5)));
    CHECK_VALUES(kn_grad(x), 5, 5);
    assert_int_equal(kn_set_grad(x, kn_ones(KN_SHAPE(3))), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "[2]", "[3]");
}

/* Two leaves that receive the same gradient tensor do not share its memory. */
TENSOR_TEST(test_gradients_are_separate)
{
    kn_tensor *x = leaf(1), *y = leaf(2);
    CHECK_OK(kn_backward(kn_sum(kn_add(x, y))));
    kn_mul_scalar_(kn_grad(x), 7);
    CHECK_VALUES(kn_grad(x), 7, 7);
    CHECK_VALUES(kn_grad(y), 1, 1);
    CHECK_OK(kn_backward(kn_sum(x)));
    CHECK_VALUES(kn_grad(x), 8, 8);
    CHECK_VALUES(kn_grad(y), 1, 1);
    /* Nor with the caller's gradient. */
    kn_tensor *given = kn_ones(KN_SHAPE(2)), *z = leaf(3);
    CHECK_OK(kn_backward_with(kn_add_scalar(z, 1), given, false));
    kn_zero_(kn_grad(z));
    CHECK_VALUES(given, 1, 1);
}

/* A diamond: gradients of both paths are added, and each node runs once, after all that depend on it. */
TENSOR_TEST(test_shared_values)
{
    kn_tensor *x = leaf(2);
    kn_tensor *a = kn_mul(x, x), *b = kn_mul_scalar(a, 3), *c = kn_mul(a, b); /* 3 x^4 */
    CHECK_OK(kn_backward(kn_sum(kn_add(c, a))));
    CHECK_VALUES(kn_grad(x), 12 * 8 + 2 * 2, 12 * 8 + 2 * 2);
}

TENSOR_TEST(test_detach)
{
    kn_tensor *x = leaf(3), *y = kn_mul(x, x), *cut = kn_detach(y);
    assert_false(kn_requires_grad(cut));
    CHECK_VALUES(cut, 9, 9);
    CHECK_OK(kn_backward(kn_sum(kn_mul(x, cut))));
    CHECK_VALUES(kn_grad(x), 9, 9);
    kn_tensor *alias = kn_detach(x); /* the same storage */
    kn_fill_(alias, 4);
    CHECK_VALUES(x, 4, 4);
}

TENSOR_TEST(test_no_grad)
{
    kn_tensor *x = leaf(3), *y = NULL;
    assert_true(kn_grad_enabled());
    {
        KN_NO_GRAD;
        assert_false(kn_grad_enabled());
        y = kn_mul(x, x);
        assert_false(kn_set_grad_enabled(false)); /* nested: still off */
        kn_mul_scalar_(x, 2);                     /* a leaf may change here: this is how optimizers work */
    }
    assert_true(kn_grad_enabled());
    assert_false(kn_requires_grad(y));
    CHECK_VALUES(x, 6, 6);
    assert_int_equal(kn_backward(kn_sum(y)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "does not require gradients");
    assert_true(kn_set_grad_enabled(false));
    assert_false(kn_set_grad_enabled(true));
}

TENSOR_TEST(test_second_backward)
{
    kn_tensor *x = leaf(3), *loss = kn_sum(kn_mul(x, x));
    CHECK_OK(kn_backward_with(loss, NULL, true));
    CHECK_OK(kn_backward_with(loss, NULL, true));
    CHECK_VALUES(kn_grad(x), 12, 12);
    CHECK_OK(kn_backward(loss));
    CHECK_VALUES(kn_grad(x), 18, 18);
    assert_int_equal(kn_backward(loss), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "freed", "retain_graph");
    CHECK_VALUES(kn_grad(x), 18, 18);
}

TENSOR_TEST_F64(test_gradient_given)
{
    kn_tensor *x = leaf(3), *y = kn_mul(x, x);
    assert_int_equal(kn_backward(y), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "one element", "[2]");
    assert_int_equal(kn_backward_with(y, kn_ones(KN_SHAPE(3)), false), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "[2]", "[3]");
    assert_int_equal(kn_backward_with(y, kn_ones(KN_SHAPE(2), .dtype = KN_F64), false), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "float64");
    const float g[] = {1, 10};
    CHECK_OK(kn_backward_with(y, kn_from_data(g, KN_SHAPE(2)), false));
    CHECK_VALUES(kn_grad(x), 6, 60);
    assert_int_equal(kn_backward(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_backward");
    /* A leaf itself. */
    kn_tensor *one = kn_full(KN_SCALAR, 3, .requires_grad = true);
    CHECK_OK(kn_backward(one));
    CHECK_VALUES(kn_grad(one), 1);
}

/* --- in-place changes -------------------------------------------------------------------------------- */

TENSOR_TEST(test_in_place_on_a_leaf)
{
    kn_tensor *x = leaf(3);
    assert_null(kn_mul_scalar_(x, 2));
    CHECK_ERROR(KN_ERR_STATE, "mul_scalar_", "leaf", "KN_NO_GRAD");
    CHECK_VALUES(x, 3, 3);
}

TENSOR_TEST(test_in_place_on_a_saved_value)
{
    kn_tensor *x = leaf(3), *y = kn_mul_scalar(x, 2), *z = kn_mul(y, y); /* backward of mul needs y */
    kn_add_(y, kn_ones(KN_SHAPE(2)));
    assert_int_equal(kn_backward(kn_sum(z)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "mul", "changed in place", "version");
    assert_null(kn_grad(x));
}

/* The same through a view of the value, and through kn_write and kn_copy_. */
TENSOR_TEST(test_in_place_through_a_view)
{
    kn_tensor *x = leaf(3), *w = kn_full(KN_SHAPE(2), 5), *z = kn_mul(x, w);
    kn_zero_(kn_narrow(w, 0, 0, 1));
    assert_int_equal(kn_backward(kn_sum(z)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "changed in place");
    z = kn_mul(x, w);
    CHECK_OK(kn_copy_(w, kn_ones(KN_SHAPE(2))));
    assert_int_equal(kn_backward(kn_sum(z)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "changed in place");
    z = kn_mul(x, w);
    const float values[] = {1, 2};
    CHECK_OK(kn_write(w, values, sizeof values));
    assert_int_equal(kn_backward(kn_sum(z)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "changed in place");
}

TENSOR_TEST(test_in_place_where_it_is_harmless)
{
    kn_tensor *x = leaf(3), *y = kn_add_scalar(x, 1); /* backward of add needs no value */
    kn_mul_scalar_(y, 5);
    CHECK_VALUES(y, 20, 20);
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(x), 5, 5);
    /* A plain tensor is recorded once it is changed by one that requires gradients. */
    kn_tensor *total = kn_zeros(KN_SHAPE(2));
    kn_add_(total, kn_mul_scalar(x, 2));
    assert_true(kn_requires_grad(total));
    CHECK_OK(kn_set_grad(x, NULL));
    CHECK_OK(kn_backward(kn_sum(total)));
    CHECK_VALUES(kn_grad(x), 2, 2);
}

/* --- hooks ------------------------------------------------------------------------------------------- */

typedef struct hook_log {
    int calls;
    double factor;
} hook_log;

static kn_tensor *scale_hook(kn_tensor *gradient, void *user)
{
    hook_log *log = user;
    log->calls++;
    return kn_mul_scalar(gradient, log->factor);
}

static kn_tensor *plus_one_hook(kn_tensor *gradient, void *user)
{
    ((hook_log *)user)->calls++;
    return kn_add_scalar(gradient, 1);
}

static kn_tensor *failing_hook(kn_tensor *gradient, void *user)
{
    (void)gradient;
    (void)user;
    kn_error_set(KN_ERR_NUMERIC, "the hook found a gradient that it does not like");
    return NULL;
}

TENSOR_TEST(test_hooks)
{
    hook_log scale = {0, 10}, plus = {0, 0}, middle = {0, 2};
    kn_tensor *x = leaf(3), *y = kn_mul_scalar(x, 2);
    CHECK_OK(kn_register_hook(x, scale_hook, &scale)); /* in the order they were added: 10 g + 1 */
    CHECK_OK(kn_register_hook(x, plus_one_hook, &plus));
    CHECK_OK(kn_register_hook(y, scale_hook, &middle));
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(x), 2 * 2 * 10 + 1, 2 * 2 * 10 + 1);
    assert_int_equal(scale.calls, 1);
    assert_int_equal(plus.calls, 1);
    assert_int_equal(middle.calls, 1);
    assert_int_equal(kn_register_hook(kn_ones(KN_SHAPE(1)), scale_hook, &scale), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "does not require gradients");
}

TENSOR_TEST(test_results_that_keep_their_gradient)
{
    kn_tensor *x = leaf(3), *y = kn_mul_scalar(x, 2), *z = kn_square(y), *slope;
    assert_false(kn_retains_grad(y));
    CHECK_OK(kn_retain_grad(y));
    CHECK_OK(kn_retain_grad(y)); /* once is enough */
    CHECK_OK(kn_retain_grad(x));
    assert_true(kn_retains_grad(y) && !kn_retains_grad(x) && !kn_retains_grad(z));
    hook_log twice = {0, 2};
    CHECK_OK(kn_register_hook(y, scale_hook, &twice)); /* what it makes of the gradient is kept */
    kn_tensor *sum = kn_sum(z);
    CHECK_OK(kn_autograd_grad(&sum, 1, &x, 1, &slope, .retain_graph = true));
    assert_null(kn_grad(y)); /* kn_autograd_grad changes no gradient */
    CHECK_OK(kn_backward_with(sum, NULL, true));
    CHECK_VALUES(kn_grad(y), 2 * 2 * 6, 2 * 2 * 6);
    CHECK_VALUES(kn_grad(x), 2 * 2 * 2 * 6, 2 * 2 * 2 * 6);
    assert_null(kn_grad(z));
    CHECK_OK(kn_backward(sum)); /* adds */
    CHECK_VALUES(kn_grad(y), 2 * 2 * 2 * 6, 2 * 2 * 2 * 6);
    assert_int_equal(kn_retain_grad(kn_detach(y)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "kn_retain_grad: the tensor does not require gradients");
}

/* The result that keeps its gradient may be freed before the backward pass, and after it. */
static void test_dead_result(void **state)
{
    (void)state;
    kn_tensor *x = leaf(3), *y = kn_mul_scalar(x, 2), *loss = kn_sum(y);
    CHECK_OK(kn_retain_grad(y));
    kn_release(y);
    CHECK_OK(kn_backward(loss));
    CHECK_VALUES(kn_grad(x), 2, 2);
    kn_release(loss);
    kn_release(x);
}

TENSOR_TEST(test_failing_hook)
{
    kn_tensor *x = leaf(3);
    CHECK_OK(kn_register_hook(x, failing_hook, NULL));
    assert_int_equal(kn_backward(kn_sum(x)), KN_ERR_NUMERIC);
    CHECK_ERROR(KN_ERR_NUMERIC, "does not like");
    assert_null(kn_grad(x));
}

/* A leaf may be freed before the backward pass: its gradient is dropped. */
static void test_dead_leaf(void **state)
{
    (void)state;
    kn_tensor *x = leaf(3), *w = leaf(2);
    kn_tensor *product = kn_mul(x, w), *loss = kn_sum(product);
    kn_release(x);
    kn_release(product);
    CHECK_OK(kn_backward(loss));
    CHECK_VALUES(kn_grad(w), 3, 3);
    kn_release(loss);
    kn_release(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_leaves),
        TEST(test_accumulation),
        TEST(test_gradients_are_separate),
        TEST(test_shared_values),
        TEST(test_detach),
        TEST(test_no_grad),
        TEST(test_second_backward),
        TEST(test_gradient_given),
        TEST(test_in_place_on_a_leaf),
        TEST(test_in_place_on_a_saved_value),
        TEST(test_in_place_through_a_view),
        TEST(test_in_place_where_it_is_harmless),
        TEST(test_hooks),
        TEST(test_results_that_keep_their_gradient),
        TEST(test_dead_result),
        TEST(test_failing_hook),
        TEST(test_dead_leaf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
