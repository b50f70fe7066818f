/* test_anomaly.c - kn_set_detect_anomaly: the operation whose backward makes NaN is named. */
#include <string.h>

#include "support/check.h"

enum { COUNT = 1000 };

/* sqrt(x) * 0: its gradient at 0 is 0 * infinity. */
static kn_tensor *loss_of(kn_tensor *x) { return kn_sum(kn_mul_scalar(kn_sqrt(kn_mul_scalar(x, 3)), 0)); }

static kn_tensor *ones_but(int place, float value, kn_dtype dtype)
{
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = i == place ? value : 1;
    kn_tensor *x = kn_to_dtype(kn_from_data(values, KN_SHAPE(10, COUNT / 10)), dtype);
    CHECK_OK(kn_set_requires_grad(x, true));
    return x;
}

/* At the end of each test: the flag is the process's. */
static void leave(void)
{
    kn_set_detect_anomaly(false);
    kn_error_clear();
}

TENSOR_TEST(off_by_default)
{
    assert_false(kn_is_anomaly_enabled());
    kn_tensor *x = ones_but(3, 0, KN_F32);
    CHECK_OK(kn_backward(loss_of(x)));
    float gradient[COUNT];
    CHECK_OK(kn_read(kn_grad(x), gradient, sizeof gradient));
    assert_true(isnan(gradient[3]) && gradient[4] == 0);
}

TENSOR_TEST(the_operation_is_named)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F64, KN_F16, KN_BF16};
    kn_set_detect_anomaly(true);
    assert_true(kn_is_anomaly_enabled());
    for (int i = 0; i < 4; i++)
        for (int place = 0; place < COUNT; place += COUNT - 1) {
            KN_SCOPE;
            if (dtypes[i] == KN_F64 && !check_has_f64())
                continue;
            kn_tensor *x = ones_but(place, 0, dtypes[i]);
            assert_int_equal(kn_backward(loss_of(x)), KN_ERR_NUMERIC);
            assert_non_null(strstr(kn_error_message(), "backward of sqrt: NaN in the gradient of its input 0 ("));
            assert_non_null(strstr(kn_error_message(), "[10, 100]"));
            kn_error_clear();
            assert_null(kn_grad(x));
        }
    leave();
}

TENSOR_TEST(recorded_passes)
{
    kn_set_detect_anomaly(true);
    kn_tensor *x = ones_but(7, 0, KN_F32), *loss = loss_of(x), *gradient = NULL;
    assert_int_equal(kn_autograd_grad(&loss, 1, &x, 1, &gradient, .create_graph = true), KN_ERR_NUMERIC);
    assert_non_null(strstr(kn_error_message(), "backward of sqrt: NaN"));
    leave();
}

/* Infinities are no NaN; of parts whose gradients go into a whole, each is looked at. */
TENSOR_TEST(infinities_and_parts)
{
    kn_tensor *x = ones_but(7, 0, KN_F32), *y = ones_but(COUNT, 0, KN_F32);
    kn_set_detect_anomaly(true);
    CHECK_OK(kn_backward(kn_sum(kn_sqrt(x))));
    float gradient[COUNT];
    CHECK_OK(kn_read(kn_grad(x), gradient, sizeof gradient));
    assert_true(isinf(gradient[7]) && gradient[8] == 0.5F);
    kn_tensor *h = kn_mul_scalar(y, 2), *a = kn_narrow(h, 1, 0, 50), *b = kn_narrow(h, 1, 50, 50);
    CHECK_OK(kn_backward(kn_sum(kn_mul(kn_exp(a), b))));
    CHECK_OK(kn_read(kn_grad(y), gradient, sizeof gradient));
    assert_true(fabsf(gradient[0] - 4 * expf(2)) < 1e-4F && fabsf(gradient[99] - 2 * expf(2)) < 1e-4F);
    assert_int_equal(kn_backward(kn_sum(kn_mul(kn_sqrt(kn_narrow(kn_sub(x, x), 1, 0, 50)), kn_zeros(KN_SHAPE(50))))),
                     KN_ERR_NUMERIC);
    leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(off_by_default),
        TEST(the_operation_is_named),
        TEST(recorded_passes),
        TEST(infinities_and_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
