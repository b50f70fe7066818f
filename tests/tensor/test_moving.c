/* test_moving.c - devices of tensors: kn_to, errors for host tensors, operations across devices, and copies between
 * them. With POCL_DEVICES="pthread pthread" there are two devices; with one, the tests that need two are skipped. */
#include "support/check.h"

#include <locale.h>
#include <string.h>

TENSOR_TEST_F64(test_to_is_the_same_tensor)
{
    kn_tensor *x = kn_ones(KN_SHAPE(2));
    assert_ptr_equal(kn_to(x, kn_device_current()), x);
    assert_ptr_equal(kn_to_dtype(x, KN_F32), x);
    kn_tensor *host = kn_to(x, kn_device_host());
    assert_ptr_not_equal(host, x);
    assert_ptr_equal(kn_device_of(host), kn_device_host());
    assert_ptr_equal(kn_to(host, kn_device_host()), host);
    CHECK_VALUES(host, 1, 1);
    assert_ptr_not_equal(kn_to_dtype(x, KN_F64), x);
}

TENSOR_TEST_F64(test_to_and_back)
{
    static const kn_dtype dtypes[] = {KN_F64, KN_F32, KN_F16, KN_BF16, KN_I64, KN_I32, KN_I16, KN_I8, KN_U8, KN_BOOL};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        kn_tensor *x = kn_ones(KN_SHAPE(2, 3), .dtype = dtypes[i]);
        kn_zero_(kn_select(x, 0, 1));
        kn_tensor *back = kn_to(kn_to(kn_t(x), kn_device_host()), kn_device_current()); /* not contiguous on the way */
        CHECK_SHAPE(back, 3, 2);
        CHECK_VALUES(back, 1, 0, 1, 0, 1, 0);
        CHECK_DTYPE(back, dtypes[i]);
    }
}

/* Moving is differentiable: the gradient is moved back to the leaf's device. */
TENSOR_TEST_F64(test_to_has_a_gradient)
{
    kn_tensor *x = kn_full(KN_SHAPE(3), 2, .requires_grad = true);
    kn_tensor *y = kn_to_dtype(x, KN_F64);
    CHECK_DTYPE(y, KN_F64);
    CHECK_OK(kn_backward(kn_sum(kn_mul(y, y))));
    CHECK_VALUES(kn_grad(x), 4, 4, 4);
    CHECK_DTYPE(kn_grad(x), KN_F32);
    kn_tensor *leaf = kn_full(KN_SHAPE(3), 2, .device = kn_device_host(), .requires_grad = true);
    kn_tensor *moved = kn_to(leaf, kn_device_current());
    assert_true(kn_requires_grad(moved));
    CHECK_OK(kn_backward(kn_sum(kn_mul_scalar(moved, 3))));
    CHECK_VALUES(kn_grad(leaf), 3, 3, 3);
    assert_ptr_equal(kn_device_of(kn_grad(leaf)), kn_device_host());
}

/* Also on devices without float64: the host converts. */
TENSOR_TEST(test_float64_of_the_host)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F16, KN_BF16, KN_I64, KN_I32, KN_I16, KN_I8, KN_U8, KN_BOOL};
    kn_tensor *host = kn_zeros(KN_SHAPE(3), .dtype = KN_F64, .device = kn_device_host());
    memcpy(kn_data(host), (double[]){1, 0, 1}, 3 * sizeof(double));
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        kn_tensor *x = kn_empty(KN_SHAPE(3), .dtype = dtypes[i]);
        KN_NO_GRAD;
        CHECK_OK(kn_copy_(x, host));
        CHECK_VALUES(x, 1, 0, 1);
        kn_tensor *back = kn_to_device(x, kn_device_host(), .dtype = KN_F64);
        CHECK_DTYPE(back, KN_F64);
        CHECK_VALUES(back, 1, 0, 1);
    }
}

TENSOR_TEST(test_host_runs_no_operations)
{
    kn_tensor *host = kn_ones(KN_SHAPE(2), .device = kn_device_host());
    assert_null(kn_add(host, host));
    CHECK_ERROR(KN_ERR_DEVICE, "add", "host", "kn_to");
    assert_null(kn_relu(host));
    CHECK_ERROR(KN_ERR_DEVICE, "relu", "host", "kn_to");
    assert_null(kn_matmul(kn_ones(KN_SHAPE(2)), host));
    CHECK_ERROR(KN_ERR_DEVICE, "matmul", "host", "kn_to");
    assert_null(kn_sum(host));
    CHECK_ERROR(KN_ERR_DEVICE, "sum", "host");
}

TENSOR_TEST(test_operation_across_devices)
{
    if (kn_device_count() < 2)
        skip();
    kn_tensor *a = kn_ones(KN_SHAPE(2), .device = kn_device_at(0));
    kn_tensor *b = kn_ones(KN_SHAPE(2), .device = kn_device_at(1));
    assert_null(kn_add(a, b));
    CHECK_ERROR(KN_ERR_DEVICE, "add", kn_device_string(kn_device_at(0)), kn_device_string(kn_device_at(1)));
    assert_null(kn_add_(a, b));
    CHECK_ERROR(KN_ERR_DEVICE, "add_", kn_device_string(kn_device_at(1)));
    CHECK_VALUES(kn_add(a, kn_to(b, kn_device_at(0))), 2, 2);
    CHECK_VALUES(a, 1, 1);
}

TENSOR_TEST(test_between_devices)
{
    if (kn_device_count() < 2)
        skip();
    kn_tensor *a = kn_arange(0, 100003, 1, .dtype = KN_F32, .device = kn_device_at(0));
    kn_tensor *b = kn_to(a, kn_device_at(1));
    assert_ptr_equal(kn_device_of(b), kn_device_at(1));
    double there = 0;
    CHECK_OK(kn_item(kn_select(kn_mul_scalar(b, 2), 0, -1), &there));
    assert_true(there == 200004);
    CHECK_OK(kn_copy_(kn_narrow(a, 0, 0, 3), kn_narrow(b, 0, 3, 3)));
    CHECK_VALUES(kn_narrow(a, 0, 0, 4), 3, 4, 5, 3);
    kn_tensor *leaf = kn_full(KN_SHAPE(2), 3, .device = kn_device_at(0), .requires_grad = true);
    CHECK_OK(
        kn_backward(kn_sum(kn_mul(kn_to(leaf, kn_device_at(1)), kn_full(KN_SHAPE(2), 5, .device = kn_device_at(1))))));
    CHECK_VALUES(kn_grad(leaf), 5, 5);
    assert_ptr_equal(kn_device_of(kn_grad(leaf)), kn_device_at(0));
}

TENSOR_TEST(test_current_device)
{
    kn_device *first = kn_device_current(), *last = kn_device_at(kn_device_count() - 1);
    CHECK_OK(kn_device_set_current(last));
    assert_ptr_equal(kn_device_of(kn_ones(KN_SHAPE(1))), last);
    CHECK_OK(kn_device_set_current(first));
    assert_ptr_equal(kn_device_of(kn_ones(KN_SHAPE(1), .device = last)), last);
    kn_device *named = kn_device_open(kn_device_string(last));
    CHECK_NEW(named);
    assert_ptr_equal(named, last);
    CHECK_NEW(named = kn_device_open("host"));
    assert_ptr_equal(named, kn_device_host());
    assert_int_equal(kn_status_of(named = kn_device_open("no such device")), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "no such device", kn_device_string(first));
    assert_null(kn_device_at(kn_device_count()));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
}

/* Printing shows the device of a tensor, but not the host. */
TENSOR_TEST(test_printing_names_the_device)
{
    char expected[128], *text = kn_to_string(kn_ones(KN_SHAPE(2)));
    snprintf(expected, sizeof expected, "tensor([1., 1.], device='%s')", kn_device_string(kn_device_current()));
    assert_string_equal(text, expected);
    kn_free(text);
    text = kn_to_string(kn_ones(KN_SHAPE(2), .device = kn_device_host()));
    assert_string_equal(text, "tensor([1., 1.])");
    kn_free(text);
    text = kn_to_string(kn_t(kn_full(KN_SHAPE(1, 2), 7, .dtype = KN_I32)));
    snprintf(expected, sizeof expected, "tensor([[7],\n        [7]], device='%s', dtype=torch.int32)",
             kn_device_string(kn_device_current()));
    assert_string_equal(text, expected);
    kn_free(text);
}

TENSOR_TEST(test_printing_does_not_follow_the_locale)
{
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "de_DE") == NULL)
        skip();
    char *text = kn_to_string(kn_full(KN_SHAPE(2), 0.5, .device = kn_device_host()));
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text, "tensor([0.5000, 0.5000])");
    kn_free(text);
}

static void expect_text(const kn_print_options *options, kn_tensor *tensor, const char *expected)
{
    CHECK_OK(kn_set_print_options_with(options));
    char *text = kn_to_string(kn_to(tensor, kn_device_host()));
    assert_string_equal(text, expected);
    kn_free(text);
}

/* PyTorch's texts. */
TENSOR_TEST(test_print_options)
{
    kn_print_options options = kn_get_print_options();
    assert_int_equal(options.precision, 4);
    options.precision = 2;
    kn_tensor *x = kn_from_data(((float[]){1.5F, -2.25F, 1000.125F}), KN_SHAPE(3));
    expect_text(&options, x, "tensor([   1.50,   -2.25, 1000.12])");
    options.sci_mode = KN_SCI_ALWAYS;
    expect_text(&options, x, "tensor([ 1.50e+00, -2.25e+00,  1.00e+03])");
    expect_text(&options, kn_zeros(KN_SHAPE(2)), "tensor([0., 0.])");
    options = (kn_print_options){.precision = 4, .threshold = 5, .edge_items = 1, .line_width = 80};
    expect_text(&options, kn_reshape(kn_arange(0, 12, 1), KN_SHAPE(3, 4)),
                "tensor([[ 0,  ...,  3],\n        ...,\n        [ 8,  ..., 11]])");
    options = (kn_print_options){.threshold = 1000, .edge_items = 3, .line_width = 20, .sci_mode = KN_SCI_NEVER};
    expect_text(&options, kn_from_data(((float[]){3e9F, 0.5F}), KN_SHAPE(2)),
                "tensor([3000000000,\n                 0])");
    options.precision = 50;
    char *text = kn_to_string(kn_full(KN_SCALAR, -1e308, .dtype = KN_F64, .device = kn_device_host()));
    assert_non_null(text);
    kn_free(text);
    const kn_print_options wrong[] = {{.precision = 51, .edge_items = 1, .line_width = 1},
                                      {.threshold = -1, .edge_items = 1, .line_width = 1},
                                      {.edge_items = 0, .line_width = 1},
                                      {.edge_items = 1, .line_width = 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(kn_set_print_options_with(&wrong[i]), KN_ERR_ARGUMENT);
        CHECK_ERROR(KN_ERR_ARGUMENT, "set_print_options");
    }
    expect_text(NULL, x, "tensor([   1.5000,   -2.2500, 1000.1250])");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_to_is_the_same_tensor),
        TEST(test_to_and_back),
        TEST(test_to_has_a_gradient),
        TEST(test_float64_of_the_host),
        TEST(test_host_runs_no_operations),
        TEST(test_operation_across_devices),
        TEST(test_between_devices),
        TEST(test_current_device),
        TEST(test_printing_names_the_device),
        TEST(test_printing_does_not_follow_the_locale),
        TEST(test_print_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
