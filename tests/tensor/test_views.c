/* test_views.c - values of views and copies, against literals; views share their base's storage. */
#include "support/check.h"

static kn_tensor *counted(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    return kn_reshape(kn_arange(0, (double)count, 1, .dtype = KN_F32), ndim, shape);
}

TENSOR_TEST(test_reshape)
{
    kn_tensor *x = counted(KN_SHAPE(2, 3));
    CHECK_SHAPE(kn_reshape(x, KN_SHAPE(3, -1)), 3, 2);
    CHECK_VALUES(kn_reshape(x, KN_SHAPE(3, 2)), 0, 1, 2, 3, 4, 5);
    CHECK_VALUES(kn_reshape(kn_transpose(x, 0, 1), KN_SHAPE(6)), 0, 3, 1, 4, 2,
                 5); /* not a view: the strides do not allow it */
    assert_int_equal(kn_ndim(kn_reshape(kn_full(KN_SHAPE(1, 1), 3), KN_SCALAR)), 0);
    CHECK_SHAPE(kn_reshape(counted(KN_SHAPE(2, 0)), KN_SHAPE(0, 5)), 0, 5);
    assert_null(kn_reshape(x, KN_SHAPE(4, 2)));
    CHECK_ERROR(KN_ERR_SHAPE, "reshape", "[2, 3]", "[4, 2]");
    assert_null(kn_reshape(counted(KN_SHAPE(0)), KN_SHAPE(1LL << 32, 1LL << 32))); /* 2^64 elements, not 0 */
    CHECK_ERROR(KN_ERR_SHAPE, "reshape", "[4294967296, 4294967296]", "[0]");
    assert_null(kn_reshape(counted(KN_SHAPE(0)), KN_SHAPE(0, 1LL << 32, 1LL << 32)));
    CHECK_ERROR(KN_ERR_SHAPE, "reshape", "too large");
    assert_null(kn_reshape(x, KN_SHAPE(-1, -1)));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
    assert_null(kn_reshape(x, KN_SHAPE(4, -1)));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
}

TENSOR_TEST(test_flatten)
{
    kn_tensor *x = counted(KN_SHAPE(2, 3, 2));
    CHECK_SHAPE(kn_flatten(x, 1, -1), 2, 6);
    CHECK_SHAPE(kn_flatten(x, 0, 1), 6, 2);
    CHECK_SHAPE(kn_flatten(x, 0, -1), 12);
    CHECK_SHAPE(kn_flatten(kn_full(KN_SCALAR, 1), 0, -1), 1);
    CHECK_VALUES(kn_flatten(kn_transpose(x, 1, 2), 1, -1), 0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11);
    assert_null(kn_flatten(x, 2, 1));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
}

TENSOR_TEST(test_transpose_and_permute)
{
    kn_tensor *x = counted(KN_SHAPE(2, 3));
    CHECK_VALUES(kn_t(x), 0, 3, 1, 4, 2, 5);
    CHECK_SHAPE(kn_t(kn_zeros(KN_SHAPE(4))), 4);
    assert_false(kn_is_contiguous(kn_t(x)));
    CHECK_VALUES(kn_contiguous(kn_t(x)), 0, 3, 1, 4, 2, 5);
    assert_true(kn_is_contiguous(kn_contiguous(kn_t(x))));
    kn_tensor *cube = counted(KN_SHAPE(2, 1, 3));
    CHECK_SHAPE(kn_permute(cube, (const int[]){2, 0, 1}), 3, 2, 1);
    CHECK_VALUES(kn_permute(cube, (const int[]){-1, 0, 1}), 0, 3, 1, 4, 2, 5);
    CHECK_SHAPE(kn_transpose(cube, 0, -1), 3, 1, 2);
    assert_null(kn_permute(cube, (const int[]){0, 0, 1}));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
    assert_null(kn_t(cube));
    CHECK_ERROR(KN_ERR_SHAPE, "[2, 1, 3]");
    assert_null(kn_transpose(x, 0, 2));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
}

TENSOR_TEST(test_squeeze_and_expand)
{
    kn_tensor *row = counted(KN_SHAPE(1, 3));
    CHECK_SHAPE(kn_squeeze(row, 0), 3);
    CHECK_SHAPE(kn_squeeze(row, 1), 1, 3);
    CHECK_SHAPE(kn_unsqueeze(row, -1), 1, 3, 1);
    CHECK_SHAPE(kn_unsqueeze(row, 0), 1, 1, 3);
    CHECK_VALUES(kn_expand(row, KN_SHAPE(2, 3)), 0, 1, 2, 0, 1, 2);
    CHECK_SHAPE(kn_expand(row, KN_SHAPE(4, 2, -1)), 4, 2, 3);
    assert_int_equal(kn_stride(kn_expand(row, KN_SHAPE(2, 3)), 0), 0);
    assert_null(kn_expand(row, KN_SHAPE(2, 4)));
    CHECK_ERROR(KN_ERR_SHAPE, "expand", "[1, 3]", "[2, 4]");
}

TENSOR_TEST(test_narrow_and_select)
{
    kn_tensor *x = counted(KN_SHAPE(3, 4));
    CHECK_VALUES(kn_narrow(x, 1, 1, 2), 1, 2, 5, 6, 9, 10);
    CHECK_VALUES(kn_narrow(x, 0, 2, 1), 8, 9, 10, 11);
    CHECK_SHAPE(kn_narrow(x, 0, 3, 0), 0, 4);
    CHECK_VALUES(kn_select(x, 0, -1), 8, 9, 10, 11);
    CHECK_VALUES(kn_select(x, -1, 1), 1, 5, 9);
    CHECK_VALUES(kn_select(kn_narrow(kn_t(x), 0, 1, 3), 1, 2), 9, 10, 11);
    assert_null(kn_narrow(x, 0, 2, 2));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
    assert_null(kn_select(x, 0, 3));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
    assert_null(kn_select(kn_full(KN_SCALAR, 1), 0, 0));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
}

TENSOR_TEST(test_index_select)
{
    kn_tensor *x = counted(KN_SHAPE(3, 2));
    const int64_t rows[] = {2, 0, 2};
    kn_tensor *index = kn_from_data(rows, KN_SHAPE(3), .dtype = KN_I64);
    CHECK_VALUES(kn_index_select(x, 0, index), 4, 5, 0, 1, 4, 5);
    const int32_t columns[] = {1};
    CHECK_VALUES(kn_index_select(x, 1, kn_from_data(columns, KN_SHAPE(1), .dtype = KN_I32)), 1, 3, 5);
    CHECK_VALUES(kn_index_select(kn_t(x), 1, index), 4, 0, 4, 5, 1, 5);
}

/* An index out of range is detected on the device and reported at the next synchronisation or read; nothing is read out
 * of bounds. */
TENSOR_TEST(test_index_out_of_range)
{
    kn_tensor *x = counted(KN_SHAPE(3, 2));
    const int64_t rows[] = {0, 3};
    kn_tensor *picked = kn_index_select(x, 0, kn_from_data(rows, KN_SHAPE(2), .dtype = KN_I64));
    CHECK_TENSOR(picked);
    float values[4];
    assert_int_not_equal(kn_read(picked, values, sizeof values), KN_OK);
    CHECK_ERROR(KN_ERR_ARGUMENT, "index_select", "3");
    /* Reported once; the stream still works. */
    CHECK_OK(kn_synchronize(kn_device_current()));
    CHECK_VALUES(kn_select(x, 0, 0), 0, 1);
    const int64_t negative[] = {-1};
    CHECK_TENSOR(kn_index_select(x, 0, kn_from_data(negative, KN_SHAPE(1), .dtype = KN_I64)));
    assert_int_not_equal(kn_synchronize(kn_device_current()), KN_OK);
    CHECK_ERROR(KN_ERR_ARGUMENT, "-1");
}

TENSOR_TEST(test_storage_is_shared)
{
    kn_tensor *x = counted(KN_SHAPE(2, 3));
    kn_fill_(kn_select(x, 1, 1), 9);
    CHECK_VALUES(x, 0, 9, 2, 3, 9, 5);
    kn_add_(kn_t(x), kn_ones(KN_SHAPE(2)));
    CHECK_VALUES(x, 1, 10, 3, 4, 10, 6);
    kn_zero_(kn_reshape(x, KN_SHAPE(6)));
    CHECK_VALUES(x, 0, 0, 0, 0, 0, 0);
    kn_tensor *copy = kn_clone(x);
    kn_fill_(copy, 1);
    CHECK_VALUES(x, 0, 0, 0, 0, 0, 0);
    assert_ptr_equal(kn_contiguous(x), x);
}

TENSOR_TEST_F64(test_views_of_every_dtype)
{
    static const kn_dtype dtypes[] = {KN_F64, KN_F32, KN_F16, KN_BF16, KN_I64, KN_I32, KN_I16, KN_I8, KN_U8, KN_BOOL};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        const double base[] = {1, 0, 1, 1, 0, 0};
        kn_tensor *x = kn_to_dtype(kn_from_data(base, KN_SHAPE(2, 3), .dtype = KN_F64), dtypes[i]);
        CHECK_VALUES(kn_contiguous(kn_t(x)), 1, 1, 0, 0, 1, 0);
        CHECK_VALUES(kn_clone(kn_select(x, 1, 2)), 1, 0);
        CHECK_VALUES(kn_clone(kn_expand(kn_narrow(x, 0, 1, 1), KN_SHAPE(2, 3))), 1, 0, 0, 1, 0, 0);
    }
}

TENSOR_TEST(test_copy)
{
    kn_tensor *x = kn_zeros(KN_SHAPE(2, 3));
    const int32_t row[] = {1, 2, 3};
    CHECK_OK(kn_copy_(x, kn_from_data(row, KN_SHAPE(3), .dtype = KN_I32))); /* broadcast and converted */
    CHECK_VALUES(x, 1, 2, 3, 1, 2, 3);
    CHECK_OK(kn_copy_(kn_select(x, 0, 1), kn_full(KN_SHAPE(1), 7, .device = kn_device_host()))); /* from the host */
    CHECK_VALUES(x, 1, 2, 3, 7, 7, 7);
    kn_tensor *host = kn_zeros(KN_SHAPE(3, 2), .dtype = KN_I64, .device = kn_device_host());
    CHECK_OK(kn_copy_(host, kn_t(x)));
    CHECK_VALUES(host, 1, 7, 2, 7, 3, 7);
    assert_int_equal(kn_copy_(x, kn_zeros(KN_SHAPE(4))), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "[4]", "[2, 3]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reshape),
        TEST(test_flatten),
        TEST(test_transpose_and_permute),
        TEST(test_squeeze_and_expand),
        TEST(test_narrow_and_select),
        TEST(test_index_select),
        TEST(test_index_out_of_range),
        TEST(test_storage_is_shared),
        TEST(test_views_of_every_dtype),
        TEST(test_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
