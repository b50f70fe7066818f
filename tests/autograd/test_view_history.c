/* test_view_history.c - in-place changes and views. All gradients equal PyTorch's. */
#include "support/check.h"

#include <string.h>

static const float one_to_four[] = {1, 2, 3, 4};

static kn_tensor *of(const float *values, int ndim, const int64_t *shape)
{
    return kn_from_data_with(values, ndim, shape, NULL);
}
static kn_tensor *leaf_of(const float *values, int ndim, const int64_t *shape)
{
    return kn_from_data_with(values, ndim, shape, &(kn_tensor_options){.requires_grad = true});
}
static kn_tensor *square(void) { return leaf_of(one_to_four, KN_SHAPE(2, 2)); }
static kn_tensor *pair(float first, float second, bool requires_grad)
{
    const float values[] = {first, second};
    return requires_grad ? leaf_of(values, KN_SHAPE(2)) : of(values, KN_SHAPE(2));
}

/* Backward of the sum of the tensor's elements, weighted with 1, 2, 3, 4. */
static void check_backward(kn_tensor *tensor)
{
    kn_tensor *weights = of(one_to_four, kn_ndim(tensor), kn_shape(tensor));
    CHECK_OK(kn_backward(kn_sum(kn_mul(tensor, weights))));
}

/* --- views follow --------------------------------------------------------------------------------------------------*/

TENSOR_TEST(test_a_view_follows_its_base)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *s = pair(2, 4, true);
    kn_tensor *u = kn_t(y);
    CHECK_TENSOR(kn_mul_(y, s));
    CHECK_VALUES(u, 4, 12, 16, 32);
    assert_true(kn_requires_grad(u) && !kn_is_leaf(u));
    char *text = kn_to_string(u);
    assert_non_null(strstr(text, "as_strided"));
    kn_free(text);
    check_backward(kn_div(u, s)); /* z_ij = 2 x_ji s_i / s_j */
    CHECK_VALUES(kn_grad(x), 2, 12, 2, 8);
    CHECK_VALUES(kn_grad(s), -9, 4.5);
}

TENSOR_TEST(test_a_view_of_a_plain_tensor_follows)
{
    kn_tensor *base = kn_zeros(KN_SHAPE(2, 2)), *row = kn_select(base, 0, 0), *other = kn_t(base);
    kn_tensor *x = pair(1, 2, true);
    assert_false(kn_requires_grad(other));
    CHECK_TENSOR(kn_add_(row, x));
    assert_true(kn_requires_grad(base) && kn_requires_grad(row) && kn_requires_grad(other));
    assert_false(kn_is_leaf(base) || kn_is_leaf(row) || kn_is_leaf(other));
    CHECK_TENSOR(kn_mul_scalar_(row, 3));
    check_backward(other); /* [[3 x0, 0], [3 x1, 0]] */
    CHECK_VALUES(kn_grad(x), 3, 9);
}

TENSOR_TEST(test_an_expanded_view_follows)
{
    kn_tensor *x = pair(1, 2, true), *y = kn_mul_scalar(x, 2), *e = kn_expand(y, KN_SHAPE(2, 2));
    CHECK_TENSOR(kn_mul_scalar_(y, 3));
    check_backward(e);
    CHECK_VALUES(kn_grad(x), 24, 36);
}

TENSOR_TEST(test_a_contiguous_tensor_is_its_own_copy)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *view = kn_reshape(y, KN_SHAPE(4)), *same = kn_contiguous(view);
    CHECK_TENSOR(kn_mul_scalar_(y, 3));
    check_backward(same);
    CHECK_VALUES(kn_grad(x), 6, 12, 18, 24);
}

/* The view was also used before the change: each use has the history of that time. */
TENSOR_TEST(test_uses_before_and_after_a_change)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *u = kn_t(y);
    kn_tensor *before = kn_mul_scalar(u, 5);
    CHECK_TENSOR(kn_mul_scalar_(y, 3));
    check_backward(kn_add(before, u)); /* 10 x' + 6 x' */
    CHECK_VALUES(kn_grad(x), 16, 48, 32, 64);
}

/* --- in-place changes of views ------------------------------------------------------------------------------------ */

TENSOR_TEST(test_a_change_of_a_view_is_one_of_its_base)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *b = pair(10, 20, true);
    CHECK_TENSOR(kn_mul_(kn_select(y, 0, 1), b));
    CHECK_VALUES(y, 2, 4, 60, 160);
    check_backward(y);
    CHECK_VALUES(kn_grad(x), 2, 4, 60, 160);
    CHECK_VALUES(kn_grad(b), 18, 32);
}

TENSOR_TEST(test_a_column_filled)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 3);
    CHECK_TENSOR(kn_zero_(kn_select(y, 1, 0)));
    check_backward(y);
    CHECK_VALUES(kn_grad(x), 0, 6, 0, 12);
}

TENSOR_TEST(test_a_change_of_a_view_reaches_the_others)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 3), *row = kn_select(y, 0, 0), *other = kn_t(y);
    CHECK_TENSOR(kn_add_(row, pair(1, 1, true)));
    CHECK_TENSOR(kn_mul_scalar_(row, 2));
    CHECK_VALUES(other, 8, 9, 14, 12);
    check_backward(other);
    CHECK_VALUES(kn_grad(x), 6, 18, 6, 12);
}

TENSOR_TEST(test_views_of_views)
{
    const float factors[] = {5, 7};
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *v = kn_narrow(kn_t(y), 1, 1, 1);
    CHECK_TENSOR(kn_mul_(v, of(factors, KN_SHAPE(2, 1))));
    kn_tensor *u = kn_unsqueeze(v, 0);
    CHECK_TENSOR(kn_mul_scalar_(y, 2));
    CHECK_VALUES(u, 60, 112);
    check_backward(u);
    CHECK_VALUES(kn_grad(x), 0, 0, 20, 56);
}

/* y *= y' reads a copy of the other view, with the history of y before the change. */
TENSOR_TEST(test_another_view_as_operand)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *u = kn_t(y);
    CHECK_TENSOR(kn_mul_(y, u));
    CHECK_VALUES(u, 4, 24, 24, 64);
    check_backward(u);
    CHECK_VALUES(kn_grad(x), 8, 60, 40, 128);
}

/* The base need not be contiguous: here it is a transposed matrix, not recorded. */
TENSOR_TEST(test_a_base_with_strides)
{
    const float six[] = {1, 2, 3, 4, 5, 6};
    kn_tensor *base = kn_detach(kn_t(of(six, KN_SHAPE(3, 2)))), *w = pair(2, 3, true);
    CHECK_TENSOR(kn_mul_(kn_select(base, 1, 1), w));
    CHECK_VALUES(base, 1, 6, 5, 2, 12, 6);
    CHECK_OK(kn_backward(kn_sum(kn_mul(base, of(six, KN_SHAPE(2, 3))))));
    CHECK_VALUES(kn_grad(w), 6, 20);
}

TENSOR_TEST(test_every_element_through_many_views)
{
    kn_tensor *x = kn_ones(KN_SHAPE(50), .requires_grad = true), *y = kn_mul_scalar(x, 1);
    for (int i = 0; i < 50; i++)
        CHECK_TENSOR(kn_mul_scalar_(kn_narrow(y, 0, i, 50 - i), 1.03125));
    CHECK_OK(kn_backward(kn_sum(kn_narrow(y, 0, 2, 1)))); /* 1.03125^3 */
    double sum;
    CHECK_OK(kn_item(kn_sum(kn_grad(x)), &sum));
    assert_true(sum > 1.0967 && sum < 1.0968);
}

/* --- saved tensors ------------------------------------------------------------------------------------------------ */

TENSOR_TEST(test_changes_of_needed_values_are_still_found)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *z = kn_exp(y);
    CHECK_TENSOR(kn_zero_(kn_select(z, 0, 0))); /* backward of exp needs z */
    assert_int_equal(kn_backward(kn_sum(z)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "exp", "changed in place");
}

/* A factor is saved only for the gradient of the other. */
TENSOR_TEST(test_what_no_gradient_needs_may_change)
{
    kn_tensor *x = square(), *c = of(one_to_four, KN_SHAPE(2, 2)), *v = pair(1, 1, false);
    kn_tensor *product = kn_mul(x, c), *matrix = kn_matmul(c, kn_mul_scalar(x, 1)), *line = kn_linear(v, x, NULL);
    {
        KN_NO_GRAD;
        kn_zero_(x);
    }
    CHECK_OK(kn_backward(kn_add(kn_sum(kn_add(product, matrix)), kn_sum(line))));
    CHECK_VALUES(kn_grad(x), 1 + 4 + 1, 2 + 4 + 1, 3 + 6 + 1, 4 + 6 + 1);
    kn_tensor *y = kn_mul(kn_mul_scalar(x, 1), c);
    kn_zero_(c);
    assert_int_equal(kn_backward(kn_sum(y)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "mul", "changed in place");
}

TENSOR_TEST(test_the_record_kept_for_a_second_pass)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *b = pair(10, 20, true);
    CHECK_TENSOR(kn_mul_(kn_select(y, 0, 1), b));
    kn_tensor *loss = kn_sum(y);
    CHECK_OK(kn_backward_with(loss, NULL, true));
    CHECK_OK(kn_backward(loss));
    CHECK_VALUES(kn_grad(x), 4, 4, 40, 80);
    CHECK_VALUES(kn_grad(b), 12, 16);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

TENSOR_TEST(test_views_of_leaves_are_not_changed)
{
    kn_tensor *x = square();
    assert_null(kn_mul_scalar_(kn_t(x), 2));
    CHECK_ERROR(KN_ERR_STATE, "mul_scalar_", "view of a leaf", "KN_NO_GRAD");
    CHECK_VALUES(x, 1, 2, 3, 4);
    KN_NO_GRAD;
    CHECK_TENSOR(kn_mul_scalar_(kn_t(x), 2));
    CHECK_VALUES(x, 2, 4, 6, 8);
}

TENSOR_TEST(test_views_without_gradients)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *v = NULL, *plain = kn_ones(KN_SHAPE(2)), *w = NULL;
    {
        KN_NO_GRAD;
        v = kn_t(y);
        w = kn_reshape(plain, KN_SHAPE(2, 1));
    }
    assert_false(kn_requires_grad(v));
    CHECK_TENSOR(kn_mul_scalar_(w, 2)); /* nothing is recorded */
    assert_null(kn_mul_scalar_(v, 2));
    CHECK_ERROR(KN_ERR_STATE, "KN_NO_GRAD");
    assert_null(kn_mul_(w, kn_reshape(pair(1, 2, true), KN_SHAPE(2, 1))));
    CHECK_ERROR(KN_ERR_STATE, "KN_NO_GRAD");
    CHECK_VALUES(plain, 2, 2);
    CHECK_TENSOR(kn_mul_scalar_(y, 2));
    assert_null(kn_exp(v)); /* neither the old history nor none would be correct */
    CHECK_ERROR(KN_ERR_STATE, "exp", "KN_NO_GRAD");
    CHECK_VALUES(v, 4, 12, 8, 16);
    /* An op that is rejected because of its operand changes nothing. */
    kn_tensor *z = kn_mul_scalar(x, 1);
    assert_null(kn_add_(z, v));
    CHECK_ERROR(KN_ERR_STATE, "add_", "KN_NO_GRAD");
    CHECK_VALUES(z, 1, 2, 3, 4);
}

/* A reshape that copies is not a view. */
TENSOR_TEST(test_a_copy_is_no_view)
{
    kn_tensor *plain = of(one_to_four, KN_SHAPE(2, 2)), *copy = NULL, *x = kn_ones(KN_SHAPE(4), .requires_grad = true);
    {
        KN_NO_GRAD;
        copy = kn_reshape(kn_t(plain), KN_SHAPE(4));
    }
    CHECK_TENSOR(kn_mul_(copy, x));
    check_backward(copy);
    CHECK_VALUES(kn_grad(x), 1, 6, 6, 16);
}

TENSOR_TEST(test_several_views_at_once)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 2), *chunks[1];
    kn_device *device = kn_device_of(y);
    CHECK_OK(kn_comm_scatter(y, &device, 1, NULL, 0, chunks));
    assert_null(kn_mul_scalar_(chunks[0], 2));
    CHECK_ERROR(KN_ERR_STATE, "several views");
    CHECK_TENSOR(kn_mul_scalar_(y, 2));
    assert_null(kn_exp(chunks[0]));
    CHECK_ERROR(KN_ERR_STATE, "several views");
}

/* A view that is a leaf becomes a result when its base does. */
TENSOR_TEST(test_a_leaf_that_becomes_a_result)
{
    kn_tensor *base = kn_ones(KN_SHAPE(2)), *v = kn_reshape(base, KN_SHAPE(2, 1));
    CHECK_OK(kn_set_requires_grad(v, true));
    kn_tensor *y = kn_mul_scalar(v, 3);
    CHECK_TENSOR(kn_mul_(base, pair(1, 2, true)));
    kn_tensor *loss = kn_sum(kn_add(v, y));
    assert_int_equal(kn_backward(loss), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "no longer a leaf");
}

TENSOR_TEST(test_shared_places_are_not_changed)
{
    kn_tensor *x = pair(1, 2, true), *y = kn_mul_scalar(x, 1), *e = kn_expand(y, KN_SHAPE(3, 2));
    kn_tensor *plain = kn_expand(kn_ones(KN_SHAPE(2)), KN_SHAPE(3, 2)), *ones = kn_ones(KN_SHAPE(3, 2));
    kn_tensor *(*const updates[])(kn_tensor *, kn_tensor *) = {kn_add_, kn_sub_, kn_mul_};
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
        assert_null(updates[i](e, ones));
        CHECK_ERROR(KN_ERR_STATE, "share memory", "kn_clone");
    }
    assert_null(kn_mul_scalar_(plain, 2));
    CHECK_ERROR(KN_ERR_STATE, "share memory", "kn_clone");
    assert_null(kn_uniform_(plain, 0, 1));
    CHECK_ERROR(KN_ERR_STATE, "share memory");
    assert_null(kn_normal_(plain, 0, 1));
    CHECK_ERROR(KN_ERR_STATE, "share memory");
    assert_null(kn_bernoulli_(plain, 0.5));
    CHECK_ERROR(KN_ERR_STATE, "share memory");
    assert_int_equal(kn_copy_(plain, ones), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "share memory");
    assert_int_equal(kn_comm_all_reduce(&plain, 1, KN_REDUCE_SUM), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "all_reduce", "share memory");
    const float values[6] = {0};
    assert_int_equal(kn_write(plain, values, sizeof values), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "kn_write", "share memory");
    CHECK_VALUES(y, 1, 2);
    CHECK_TENSOR(kn_add_(kn_expand(y, KN_SHAPE(0, 2)), kn_ones(KN_SHAPE(0, 2)))); /* nothing to share */
    CHECK_TENSOR(kn_fill_(e, 7));                                                 /* equal values in any order */
    check_backward(kn_reshape(kn_narrow(e, 0, 0, 2), KN_SHAPE(4)));
    CHECK_VALUES(kn_grad(x), 0, 0);
}

/* Unrecorded changes of recorded values are errors, also through a view. */
TENSOR_TEST(test_changes_that_are_not_recorded)
{
    kn_tensor *x = square(), *y = kn_mul_scalar(x, 1), *v = kn_t(y);
    assert_null(kn_uniform_(y, 0, 1));
    CHECK_ERROR(KN_ERR_STATE, "kn_uniform_", "not recorded", "KN_NO_GRAD");
    assert_null(kn_normal_(v, 0, 1));
    CHECK_ERROR(KN_ERR_STATE, "kn_normal_", "not recorded");
    assert_null(kn_bernoulli_(x, 0.5));
    CHECK_ERROR(KN_ERR_STATE, "kn_bernoulli_", "not recorded");
    assert_int_equal(kn_copy_(v, kn_ones(KN_SHAPE(2, 2))), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "kn_copy_", "not recorded");
    CHECK_VALUES(y, 1, 2, 3, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_view_follows_its_base),
        TEST(test_a_view_of_a_plain_tensor_follows),
        TEST(test_an_expanded_view_follows),
        TEST(test_a_contiguous_tensor_is_its_own_copy),
        TEST(test_uses_before_and_after_a_change),
        TEST(test_a_change_of_a_view_is_one_of_its_base),
        TEST(test_a_column_filled),
        TEST(test_a_change_of_a_view_reaches_the_others),
        TEST(test_views_of_views),
        TEST(test_another_view_as_operand),
        TEST(test_a_base_with_strides),
        TEST(test_every_element_through_many_views),
        TEST(test_changes_of_needed_values_are_still_found),
        TEST(test_what_no_gradient_needs_may_change),
        TEST(test_the_record_kept_for_a_second_pass),
        TEST(test_views_of_leaves_are_not_changed),
        TEST(test_views_without_gradients),
        TEST(test_a_copy_is_no_view),
        TEST(test_several_views_at_once),
        TEST(test_a_leaf_that_becomes_a_result),
        TEST(test_shared_places_are_not_changed),
        TEST(test_changes_that_are_not_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
