/* test_autocast.c - automatic mixed precision: which dtypes operators compute in, what gradients are, and that regions
 * nest and end. */
#include "support/check.h"

#include <koine/koine.h>
#include <math.h>

#include "support/values.h"

static kn_tensor *floats(int64_t rows, int64_t columns, kn_dtype dtype, bool requires_grad)
{
    kn_tensor *x = kn_rand(KN_SHAPE(rows, columns), .dtype = dtype);
    return requires_grad && kn_set_requires_grad(x, true) != KN_OK ? NULL : x;
}

static double value_of(kn_tensor *tensor)
{
    double value = NAN;
    kn_item(tensor, &value);
    return value;
}

static kn_dtype dtype_of(kn_tensor *tensor) { return tensor ? kn_dtype_of(tensor) : KN_DTYPE_DEFAULT; }

TENSOR_TEST_F64(operators_compute_in_the_dtype_of_their_list)
{
    kn_tensor *x = floats(4, 4, KN_F32, false), *h = floats(4, 4, KN_BF16, false), *d = floats(4, 4, KN_F64, false);
    KN_AUTOCAST(KN_BF16);
    assert_int_equal(dtype_of(kn_matmul(x, x)), KN_BF16);
    assert_int_equal(dtype_of(kn_linear(x, h, NULL)), KN_BF16);
    assert_int_equal(dtype_of(kn_softmax(h, 1)), KN_F32);
    assert_int_equal(dtype_of(kn_sum(h)), KN_F32);
    assert_int_equal(dtype_of(kn_mse_loss(h, x, KN_REDUCTION_MEAN)), KN_F32);
    assert_int_equal(dtype_of(kn_cat(KN_TENSORS(h, x), 0)), KN_F32);
    assert_int_equal(dtype_of(kn_add(h, h)), KN_BF16);
    assert_int_equal(dtype_of(kn_add(h, x)), KN_F32);
    assert_int_equal(dtype_of(kn_relu(x)), KN_F32);
    assert_int_equal(dtype_of(kn_matmul(d, d)), KN_F64);
    assert_int_equal(dtype_of(x), KN_F32);
}

TENSOR_TEST(regions_nest_and_end)
{
    kn_tensor *x = floats(4, 4, KN_F32, false);
    assert_int_equal(kn_autocast_dtype(), KN_DTYPE_DEFAULT);
    {
        KN_AUTOCAST(KN_F16);
        assert_int_equal(dtype_of(kn_matmul(x, x)), KN_F16);
        {
            KN_AUTOCAST(KN_DTYPE_DEFAULT);
            assert_int_equal(dtype_of(kn_matmul(x, x)), KN_F32);
        }
        assert_int_equal(kn_autocast_dtype(), KN_F16);
    }
    assert_int_equal(dtype_of(kn_matmul(x, x)), KN_F32);
}

TENSOR_TEST(gradients_have_the_parameters_dtype)
{
    kn_tensor *x = floats(8, 4, KN_F32, true), *w = floats(3, 4, KN_F32, true), *b = floats(1, 3, KN_F32, true), *loss;
    {
        KN_AUTOCAST(KN_BF16);
        kn_tensor *y = kn_linear(x, w, kn_reshape(b, KN_SHAPE(3)));
        y = kn_add(y, kn_linear(x, w, NULL)); /* w is converted once */
        loss = kn_mse_loss(y, kn_zeros(KN_SHAPE(8, 3)), KN_REDUCTION_MEAN);
    }
    assert_int_equal(kn_backward(loss), KN_OK);
    kn_tensor *wg = kn_grad(w);
    assert_int_equal(dtype_of(wg), KN_F32);
    assert_int_equal(dtype_of(kn_grad(x)), KN_F32);
    assert_int_equal(dtype_of(kn_grad(b)), KN_F32);

    kn_tensor *w2 = kn_detach(kn_clone(w));
    assert_int_equal(kn_set_requires_grad(w2, true), KN_OK);
    kn_tensor *y = kn_add(kn_linear(x, w2, kn_reshape(b, KN_SHAPE(3))), kn_linear(x, w2, NULL));
    assert_int_equal(kn_backward(kn_mse_loss(y, kn_zeros(KN_SHAPE(8, 3)), KN_REDUCTION_MEAN)), KN_OK);
    const double norm = value_of(kn_norm(kn_grad(w2), 2));
    assert_true(value_of(kn_norm(kn_sub(wg, kn_grad(w2)), 2)) < 0.02 * norm);
}

/* Changed between two uses in a region, it is converted again. */
TENSOR_TEST(a_changed_parameter_is_converted_again)
{
    kn_tensor *w = kn_ones(KN_SHAPE(1, 2), .requires_grad = true), *x = kn_ones(KN_SHAPE(1, 2));
    KN_AUTOCAST(KN_BF16);
    assert_true(value_of(kn_linear(x, w, NULL)) == 2);
    {
        KN_NO_GRAD;
        kn_fill_(w, 3);
    }
    assert_true(value_of(kn_linear(x, w, NULL)) == 6);
}

/* Backward inside the region computes in the dtypes of the forward pass. */
TENSOR_TEST(a_backward_pass_is_not_converted)
{
    kn_tensor *x = floats(4, 4, KN_F32, true);
    KN_AUTOCAST(KN_F16);
    kn_tensor *y = kn_exp(x);
    assert_int_equal(kn_backward(kn_sum(y)), KN_OK);
    assert_int_equal(dtype_of(kn_grad(x)), KN_F32);
    assert_true(value_of(kn_norm(kn_sub(kn_grad(x), y), 2)) == 0);
}

TENSOR_TEST(other_dtypes_are_refused)
{
    kn_tensor *x = floats(2, 2, KN_F32, false);
    KN_AUTOCAST(KN_F64);
    CHECK_ERROR(KN_ERR_ARGUMENT, "float16 or bfloat16", "float64");
    assert_int_equal(dtype_of(kn_matmul(x, x)), KN_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(operators_compute_in_the_dtype_of_their_list),
        TEST(regions_nest_and_end),
        TEST(gradients_have_the_parameters_dtype),
        TEST(a_changed_parameter_is_converted_again),
        TEST(a_backward_pass_is_not_converted),
        TEST(other_dtypes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
