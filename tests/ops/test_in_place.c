/* test_in_place.c - each form in place (KOINE_TEST_FULL=1; else every fourth) gives the result and the gradients of its
 * operator; what is refused. tests/compare_torch.py compares all with PyTorch. */
#include "cli/op_samples.h"
#include "support/check.h"
#include "support/full.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The form of an operator, or NULL. */
static const kn_op *form_of(const kn_op *op)
{
    char name[64];
    snprintf(name, sizeof name, "%s_", kn_op_describe(op).name);
    const kn_op *form = kn_op_find(name);
    for (int i = 0; form && i < kn_op_count(); i++)
        if (kn_op_at(i) == form)
            return NULL; /* an operator with a kernel of its own */
    return form;
}

static kn_tensor *call(const kn_op *op, const kn_op_sample *sample, kn_tensor *first)
{
    kn_tensor *inputs[KN_SAMPLE_INPUTS], *y = NULL;
    memcpy(inputs, sample->inputs, sizeof inputs);
    inputs[0] = first;
    CHECK_OK(kn_op_call(op, inputs, sample->num_inputs, sample->params, &y, 1));
    return y;
}

/* Of a weighted sum of y; NULL where there is none. */
static void gradients(const kn_op_sample *sample, kn_tensor *y, kn_tensor **found)
{
    for (int i = 0; i < sample->num_inputs; i++)
        if (sample->inputs[i])
            kn_set_grad(sample->inputs[i], NULL);
    if (kn_requires_grad(y)) {
        kn_tensor *weights = kn_add_scalar(kn_cos(kn_detach(y)), 1.5);
        CHECK_OK(kn_backward(kn_sum(kn_mul(y, weights))));
    }
    for (int i = 0; i < sample->num_inputs; i++)
        found[i] = sample->inputs[i] && kn_grad(sample->inputs[i]) ? kn_clone(kn_grad(sample->inputs[i])) : NULL;
}

static void check_alike(const char *name, kn_tensor *a, kn_tensor *b)
{
    bool alike = false;
    if (!a || !b) { /* a gradient that is missing is one of zeros */
        kn_tensor *other = a ? a : b;
        alike = !other || (kn_allclose(other, kn_zeros_like(other), &alike) == KN_OK && alike);
    } else
        CHECK_OK(kn_allclose(a, b, &alike, .rtol = 1e-6, .equal_nan = true));
    if (!alike)
        fail_msg("%s: another result or gradient in place", name);
}

TENSOR_TEST(each_gives_the_result_and_the_gradients_of_its_operator)
{
    int count = 0;
    for (int i = 0; i < kn_op_count(); i++) {
        KN_SCOPE;
        const kn_op *op = kn_op_at(i), *form = form_of(op);
        kn_op_sample sample;
        kn_tensor *expected[KN_SAMPLE_INPUTS], *found[KN_SAMPLE_INPUTS];
        if (!form || (count++ % 4 != 0 && !test_full()))
            continue;
        const char *name = kn_op_describe(form).name;
        assert_true(kn_op_describe(form).in_place);
        CHECK_OK(kn_op_sample_make(&sample, op, KN_F32, kn_op_describe(form).is_differentiable));
        kn_tensor *x = sample.inputs[0], *y = call(op, &sample, kn_clone(x));
        gradients(&sample, y, expected);
        kn_tensor *changed = kn_clone(x), *z = call(form, &sample, changed);
        assert_ptr_equal(z, changed);
        check_alike(name, kn_to_dtype(y, kn_dtype_of(x)), z);
        gradients(&sample, z, found);
        for (int k = 0; k < sample.num_inputs; k++)
            check_alike(name, expected[k], found[k]);
        kn_op_sample_free(&sample);
    }
    assert_true(count > 120);
}

static kn_tensor *numbers(bool requires_grad)
{
    return kn_from_data(((float[]){0.5, -2, 3, 1, 0.25, -1}), KN_SHAPE(2, 3), .requires_grad = requires_grad);
}

/* By a kernel of their own, and stored. */
TENSOR_TEST(views_are_changed_in_their_base)
{
    kn_tensor *leaf = numbers(true), *x = kn_clone(leaf);
    CHECK_TENSOR(kn_sin_(kn_select(x, 0, 1)));
    CHECK_TENSOR(kn_cumsum_(kn_t(kn_narrow(x, 1, 0, 2)), 0));
    CHECK_VALUES(x, 0.5, -1.5, 3, sin(1), sin(1) + sin(0.25), sin(-1));
    CHECK_OK(kn_backward(kn_sum(x)));
    CHECK_VALUES(kn_grad(leaf), 2, 1, 1, 2 * cos(1), cos(0.25), cos(-1));
}

/* The value before is copied if the gradient needs it. */
TENSOR_TEST(values_that_a_gradient_needs_are_kept)
{
    kn_tensor *leaf = numbers(true), *x = kn_clone(leaf);
    CHECK_TENSOR(kn_cumprod_(x, 1));
    CHECK_TENSOR(kn_atan2_(x, kn_ones(KN_SHAPE(3))));
    CHECK_OK(kn_backward(kn_sum(x)));
    kn_tensor *alike = kn_atan2(kn_cumprod(leaf, 1), kn_ones(KN_SHAPE(3))), *changed = kn_clone(kn_grad(leaf));
    kn_set_grad(leaf, NULL);
    CHECK_OK(kn_backward(kn_sum(alike)));
    bool equal = false;
    CHECK_OK(kn_allclose(changed, kn_grad(leaf), &equal));
    assert_true(equal);
}

TENSOR_TEST(truth_has_a_gradient_of_zero)
{
    kn_tensor *leaf = numbers(true), *x = kn_clone(leaf);
    CHECK_TENSOR(kn_gt_(x, kn_zeros(KN_SCALAR)));
    CHECK_VALUES(x, 1, 0, 1, 1, 1, 0);
    CHECK_OK(kn_backward(kn_sum(x)));
    CHECK_VALUES(kn_grad(leaf), 0, 0, 0, 0, 0, 0);
}

TENSOR_TEST(integers_stay_integers)
{
    kn_tensor *x = kn_from_data(((int32_t[]){3, 4}), KN_SHAPE(2), .dtype = KN_I32);
    CHECK_TENSOR(kn_cumsum_(x, 0)); /* computed in int64 */
    CHECK_VALUES(x, 3, 7);
    CHECK_TENSOR(kn_ge_scalar_(x, 5));
    CHECK_VALUES(x, 0, 1);
    CHECK_DTYPE(x, KN_I32);
    kn_tensor *s = kn_from_data(((int16_t[]){3, 4}), KN_SHAPE(2), .dtype = KN_I16);
    CHECK_TENSOR(kn_gt_(s, kn_full(KN_SHAPE(2), 3.5, .dtype = check_has_f64() ? KN_F64 : KN_F32))); /* compared there */
    CHECK_VALUES(s, 0, 1);
    kn_tensor *b = kn_from_data(((bool[]){true, false}), KN_SHAPE(2), .dtype = KN_BOOL);
    CHECK_TENSOR(kn_bitwise_not_(b));
    CHECK_VALUES(b, 0, 1);
}

TENSOR_TEST(what_is_refused)
{
    kn_tensor *leaf = numbers(true), *whole = kn_ones(KN_SHAPE(2), .dtype = KN_I64), *x = kn_zeros(KN_SHAPE(3, 1));
    assert_null(kn_sin_(leaf));
    CHECK_ERROR(KN_ERR_STATE, "sin_", "leaf");
    assert_null(kn_cumsum_(leaf, 0));
    CHECK_ERROR(KN_ERR_STATE, "cumsum_", "leaf");
    assert_null(kn_renorm_(leaf, 2, 0, 1));
    CHECK_ERROR(KN_ERR_STATE, "renorm_", "leaf");
    assert_null(kn_nextafter_(kn_clone(leaf), leaf));
    CHECK_ERROR(KN_ERR_STATE, "nextafter_: not differentiable", "KN_NO_GRAD");
    assert_null(kn_cos_(whole));
    CHECK_ERROR(KN_ERR_DTYPE, "cos_: a result of dtype float32 cannot be stored in place in a int64 tensor");
    assert_null(kn_div_mode_(whole, kn_ones(KN_SHAPE(2)), KN_ROUNDING_FLOOR));
    CHECK_ERROR(KN_ERR_DTYPE, "div_mode_", "float32", "int64");
    assert_null(kn_hypot_(x, kn_zeros(KN_SHAPE(3, 2))));
    CHECK_ERROR(KN_ERR_SHAPE, "hypot_", "[3, 2]", "does not broadcast to", "[3, 1]");
    assert_null(kn_addmm_(x, kn_zeros(KN_SHAPE(3, 2)), kn_zeros(KN_SHAPE(2, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "addmm_", "[3, 4]", "[3, 1]");
    assert_null(kn_exp_(kn_expand(x, KN_SHAPE(3, 2))));
    CHECK_ERROR(KN_ERR_STATE, "exp_", "share memory");
    assert_null(kn_tril_(NULL, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "tril_", "x");
    CHECK_VALUES(x, 0, 0, 0);
}

/* A form returns its first tensor, which the caller does not own twice. */
static void results_are_not_new_references(void **state)
{
    (void)state;
    kn_tensor *x = kn_ones(KN_SHAPE(2, 2));
    assert_ptr_equal(kn_exp_(x), x);
    assert_ptr_equal(kn_triu_(x, 1), x);
    assert_ptr_equal(kn_renorm_(x, 2, 0, 1), x);
    const kn_dtype before = kn_autocast_enter(KN_F16);
    assert_ptr_equal(kn_addmm_(x, x, x), x);
    kn_autocast_leave(before);
    CHECK_DTYPE(x, KN_F32);
    kn_release(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_gives_the_result_and_the_gradients_of_its_operator),
        TEST(views_are_changed_in_their_base),
        TEST(values_that_a_gradient_needs_are_kept),
        TEST(truth_has_a_gradient_of_zero),
        TEST(integers_stay_integers),
        TEST(what_is_refused),
        TEST(results_are_not_new_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
