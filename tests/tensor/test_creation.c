/* test_creation.c - creating, filling, reading and writing tensors, on the current device and on the host. */
#include "support/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const kn_dtype all_dtypes[] = {KN_F64, KN_F32, KN_F16, KN_BF16, KN_I64, KN_I32, KN_I16, KN_I8, KN_U8, KN_BOOL};
#define NUM_DTYPES (sizeof all_dtypes / sizeof all_dtypes[0])

TENSOR_TEST_F64(test_filled)
{
    CHECK_VALUES(kn_zeros(KN_SHAPE(2, 2)), 0, 0, 0, 0);
    CHECK_VALUES(kn_ones(KN_SHAPE(3)), 1, 1, 1);
    CHECK_VALUES(kn_full(KN_SHAPE(2), -2.5), -2.5, -2.5);
    CHECK_VALUES(kn_full(KN_SCALAR, 7), 7);
    CHECK_DTYPE(kn_zeros(KN_SHAPE(1)), KN_F32);
    for (size_t i = 0; i < NUM_DTYPES; i++) {
        CHECK_VALUES(kn_ones(KN_SHAPE(3), .dtype = all_dtypes[i]), 1, 1, 1);
        CHECK_DTYPE(kn_ones(KN_SHAPE(3), .dtype = all_dtypes[i]), all_dtypes[i]);
        CHECK_VALUES(kn_zeros(KN_SHAPE(2), .dtype = all_dtypes[i], .device = kn_device_host()), 0, 0);
        CHECK_VALUES(kn_full(KN_SHAPE(2), 1, .dtype = all_dtypes[i], .device = kn_device_host()), 1, 1);
    }
    CHECK_VALUES(kn_full(KN_SHAPE(2), 5, .dtype = KN_BOOL), 1, 1); /* any nonzero number is true */
    CHECK_VALUES(kn_full(KN_SHAPE(2), -7, .dtype = KN_I64), -7, -7);
}

static void check_all(kn_tensor *x, double value)
{
    enum { MOST = (1 << 21) + 16 };
    static double values[MOST];
    const int64_t count = kn_numel(x);
    assert_true(count <= MOST);
    CHECK_OK(kn_read(kn_to_dtype(x, KN_F64), values, (size_t)count * sizeof *values));
    for (int64_t i = 0; i < count; i++)
        if (values[i] != value)
            fail_msg("element %lld of %s is %g, not %g", (long long)i, kn_dtype_name(kn_dtype_of(x)), values[i], value);
}

/* Long fills and copies may be kernels, of elements as integers: all dtypes, from any element on, up to the last. */
TENSOR_TEST_F64(test_long_fills_and_copies)
{
    enum { FROM = 3, BYTES = 1 << 21 };
    for (size_t i = 0; i < NUM_DTYPES; i++) {
        const kn_dtype dtype = all_dtypes[i];
        const int64_t length = BYTES / (int64_t)kn_dtype_size(dtype) + 3, size = length + 8;
        const bool is_bool = dtype == KN_BOOL, is_signed = !is_bool && dtype != KN_U8;
        const double before = is_bool ? 0 : 3, after = is_signed ? -2 : 1;
        kn_tensor *x = kn_full(KN_SHAPE(size), before, .dtype = dtype),
                  *y = kn_full(KN_SHAPE(size), before, .dtype = dtype);
        kn_tensor *part = kn_narrow(x, 0, FROM, length);
        check_all(x, before);
        CHECK_TENSOR(kn_fill_(part, after));
        check_all(kn_narrow(x, 0, 0, FROM), before);
        check_all(part, after);
        check_all(kn_narrow(x, 0, FROM + length, size - FROM - length), before);
        CHECK_OK(kn_copy_(kn_narrow(y, 0, 1, length), part));
        check_all(kn_narrow(y, 0, 0, 1), before);
        check_all(kn_narrow(y, 0, 1, length), after);
        check_all(kn_narrow(y, 0, 1 + length, size - 1 - length), before);
        CHECK_TENSOR(kn_zero_(part));
        check_all(part, 0);
    }
}

/* What a number's arithmetic would change: signalling and other NaN, and negative zeros. */
TENSOR_TEST(test_copies_keep_all_bits)
{
    enum { N = 131072 };
    static uint16_t bits[N], copied[N];
    for (int i = 0; i < N; i++)
        bits[i] = (uint16_t)i;
    for (int i = 0; i < 2; i++) {
        kn_tensor *x = kn_from_data(bits, KN_SHAPE(N), .dtype = i == 0 ? KN_F16 : KN_BF16), *y = kn_empty_like(x);
        CHECK_OK(kn_copy_(y, x));
        CHECK_OK(kn_read(y, copied, sizeof copied));
        assert_memory_equal(copied, bits, sizeof bits);
    }
}

TENSOR_TEST(test_like)
{
    kn_tensor *x = kn_full(KN_SHAPE(2, 3), 4, .dtype = KN_I32);
    CHECK_SHAPE(kn_empty_like(x), 2, 3);
    CHECK_VALUES(kn_zeros_like(x), 0, 0, 0, 0, 0, 0);
    CHECK_VALUES(kn_full_like(x, 7), 7, 7, 7, 7, 7, 7);
    CHECK_DTYPE(kn_full_like(kn_zeros(KN_SHAPE(2), .dtype = KN_I64), 7.0), KN_I64);
    CHECK_VALUES(kn_ones_like(x), 1, 1, 1, 1, 1, 1);
    CHECK_DTYPE(kn_ones_like(x), KN_I32);
    kn_tensor *host = kn_ones(KN_SHAPE(2), .device = kn_device_host());
    assert_ptr_equal(kn_device_of(kn_zeros_like(host)), kn_device_host());
}

TENSOR_TEST(test_from_data)
{
    const float values[] = {1, 2, 3, 4, 5, 6};
    kn_tensor *x = kn_from_data(values, KN_SHAPE(2, 3));
    CHECK_VALUES(x, 1, 2, 3, 4, 5, 6);
    assert_int_equal(kn_ndim(x), 2);
    assert_int_equal(kn_size(x, -1), 3);
    assert_int_equal(kn_size(x, 2), -1);
    assert_int_equal(kn_stride(x, 0), 3);
    assert_int_equal(kn_numel(x), 6);
    assert_true(kn_is_contiguous(x));
    assert_ptr_equal(kn_device_of(x), kn_device_current());
    const uint8_t flags[] = {1, 0, 1};
    CHECK_VALUES(kn_from_data(flags, KN_SHAPE(3), .dtype = KN_BOOL), 1, 0, 1);
    const int64_t large[] = {INT64_MAX, INT64_MIN};
    int64_t back[2] = {0, 0};
    CHECK_OK(kn_read(kn_from_data(large, KN_SHAPE(2), .dtype = KN_I64), back, sizeof back));
    assert_memory_equal(back, large, sizeof large);
}

TENSOR_TEST(test_arange)
{
    CHECK_VALUES(kn_arange(0, 5, 1), 0, 1, 2, 3, 4);
    CHECK_DTYPE(kn_arange(0, 5, 1), KN_I64);
    CHECK_VALUES(kn_arange(1, 2.6, 0.5), 1, 1.5, 2, 2.5);
    CHECK_DTYPE(kn_arange(1, 2.6, 0.5), KN_F32);
    CHECK_VALUES(kn_arange(5, 0, -2), 5, 3, 1);
    CHECK_VALUES(kn_arange(0, 3, 1, .dtype = KN_F64, .device = kn_device_host()), 0, 1, 2);
    assert_int_equal(kn_numel(kn_arange(3, 3, 1)), 0);
    assert_null(kn_arange(0, 3, -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "arange");
    assert_null(kn_arange(0, 3, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "arange");
    for (size_t i = check_has_f64() ? 0 : 1; i < NUM_DTYPES - 2; i++) /* those with a sign */
        CHECK_VALUES(kn_arange(100, -101, -100, .dtype = all_dtypes[i]), 100, 0, -100);
    CHECK_VALUES(kn_arange(0x1p52, 0x1p52 + 4, 2), 0x1p52, 0x1p52 + 2);
    CHECK_VALUES(kn_arange(0x1p60, 0x1p60 + 1024, 512), 0x1p60, 0x1p60 + 512);
    /* More elements than one work-group handles. */
    kn_tensor *many = kn_arange(0, 100003, 1);
    int64_t last = 0;
    CHECK_OK(kn_item_i64(kn_select(many, 0, -1), &last));
    assert_int_equal(last, 100002);
}

TENSOR_TEST(test_empty_sizes)
{
    kn_tensor *x = kn_zeros(KN_SHAPE(0, 3));
    CHECK_SHAPE(x, 0, 3);
    assert_int_equal(kn_numel(x), 0);
    assert_true(kn_is_contiguous(x));
    CHECK_OK(kn_read(x, NULL, 0));
    CHECK_OK(kn_write(x, NULL, 0));
    CHECK_SHAPE(kn_to(x, kn_device_host()), 0, 3);
    CHECK_SHAPE(kn_to_dtype(x, KN_I64), 0, 3);
    CHECK_SHAPE(kn_add(x, x), 0, 3);
    CHECK_SHAPE(kn_matmul(kn_zeros(KN_SHAPE(2, 0)), x), 2, 3);
    CHECK_VALUES(kn_sum(x), 0);
    CHECK_SHAPE(kn_clone(x), 0, 3);
    CHECK_SHAPE(kn_reshape(x, KN_SHAPE(3, 0)), 3, 0);
    CHECK_SHAPE(kn_transpose(x, 0, 1), 3, 0);
    double item;
    assert_int_equal(kn_item(x, &item), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "[0, 3]");
}

TENSOR_TEST(test_item)
{
    double value = 0;
    int64_t whole = 0;
    CHECK_OK(kn_item(kn_full(KN_SHAPE(1, 1), 2.5), &value));
    assert_true(value == 2.5);
    CHECK_OK(kn_item(kn_full(KN_SCALAR, 3, .dtype = KN_U8), &value));
    assert_true(value == 3);
    CHECK_OK(kn_item(kn_full(KN_SCALAR, 0.5, .dtype = KN_F16), &value));
    assert_true(value == 0.5);
    CHECK_OK(kn_item_i64(kn_full(KN_SCALAR, -9, .dtype = KN_I64), &whole));
    assert_int_equal(whole, -9);
    CHECK_OK(kn_item(kn_full(KN_SCALAR, 2.5, .device = kn_device_host()), &value));
    assert_true(value == 2.5);
    value = 42;
    assert_int_equal(kn_item(kn_zeros(KN_SHAPE(2)), &value), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "one element", "[2]");
    assert_true(value == 42); /* untouched on failure */
}

TENSOR_TEST(test_read_and_write)
{
    const float values[] = {1, 2, 3, 4, 5, 6};
    kn_tensor *x = kn_zeros(KN_SHAPE(2, 3));
    CHECK_OK(kn_write(x, values, sizeof values));
    CHECK_VALUES(x, 1, 2, 3, 4, 5, 6);
    /* Through a view that is not contiguous, both ways. */
    kn_tensor *t = kn_transpose(x, 0, 1);
    CHECK_VALUES(t, 1, 4, 2, 5, 3, 6);
    CHECK_OK(kn_write(t, values, sizeof values));
    CHECK_VALUES(x, 1, 3, 5, 2, 4, 6);
    float too_small[5];
    assert_int_equal(kn_read(x, too_small, sizeof too_small), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "24 bytes", "20");
    assert_int_equal(kn_write(x, values, sizeof values + 4), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "24 bytes", "28");
    /* The source may be reused immediately. */
    float *source = malloc(sizeof values);
    memcpy(source, values, sizeof values);
    CHECK_OK(kn_write(x, source, sizeof values));
    memset(source, 0, sizeof values);
    free(source);
    CHECK_VALUES(x, 1, 2, 3, 4, 5, 6);
}

TENSOR_TEST(test_data)
{
    kn_tensor *host = kn_zeros(KN_SHAPE(2), .device = kn_device_host());
    float *data = kn_data(host);
    assert_non_null(data);
    data[1] = 5;
    CHECK_VALUES(host, 0, 5);
    assert_null(kn_data(kn_zeros(KN_SHAPE(2))));
    CHECK_ERROR(KN_ERR_DEVICE, "kn_data");
}

TENSOR_TEST(test_impossible_shapes)
{
    assert_null(kn_zeros(KN_SHAPE(2, -1)));
    CHECK_ERROR(KN_ERR_SHAPE, "-1", "negative");
    assert_null(kn_zeros(KN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1)));
    CHECK_ERROR(KN_ERR_SHAPE, "8 dimensions", "9");
    assert_null(kn_zeros(KN_SHAPE(INT64_MAX, 8)));
    assert_int_equal(kn_error_status(), KN_ERR_SHAPE);
    kn_error_clear();
    assert_null(kn_zeros(KN_SHAPE(1, INT64_C(1) << 50))); /* a valid shape, but more than the memory */
    assert_int_equal(kn_error_status(), KN_ERR_MEMORY);
    kn_error_clear();
    assert_null(kn_from_data_with(NULL, KN_SHAPE(2), NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "data");
}

TENSOR_TEST(test_requires_grad_option)
{
    assert_true(kn_requires_grad(kn_zeros(KN_SHAPE(2), .requires_grad = true)));
    assert_false(kn_requires_grad(kn_zeros(KN_SHAPE(2))));
    assert_null(kn_zeros(KN_SHAPE(2), .dtype = KN_I64, .requires_grad = true));
    CHECK_ERROR(KN_ERR_DTYPE, "int64");
}

/* NULL in gives NULL out, for every function that reads a tensor. */
TENSOR_TEST(test_null)
{
    assert_int_equal(kn_ndim(NULL), 0);
    assert_null(kn_shape(NULL));
    assert_int_equal(kn_numel(NULL), 0);
    assert_null(kn_retain(NULL));
    kn_release(NULL);
    assert_null(kn_neg(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "neg");
    assert_null(kn_to(NULL, kn_device_host()));
    CHECK_ERROR(KN_ERR_ARGUMENT, "NULL");
    assert_null(kn_full_like(NULL, 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_full_like", "like");
    assert_null(kn_zeros_like(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "NULL");
    assert_null(kn_to_string(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_filled),
        TEST(test_long_fills_and_copies),
        TEST(test_copies_keep_all_bits),
        TEST(test_like),
        TEST(test_from_data),
        TEST(test_arange),
        TEST(test_empty_sizes),
        TEST(test_item),
        TEST(test_read_and_write),
        TEST(test_data),
        TEST(test_null),
        TEST(test_impossible_shapes),
        TEST(test_requires_grad_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
