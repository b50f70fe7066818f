/* test_numbers.c - edge cases of arithmetic: infinities, NaN, overflow, ties, and lengths where naive sums fail. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "support/values.h"

TENSOR_TEST(test_nan_propagates)
{
    const float values[] = {1, NAN, 3, -INFINITY};
    kn_tensor *x = kn_from_data(values, KN_SHAPE(4));
    CHECK_VALUES(kn_max(x), NAN);
    CHECK_VALUES(kn_relu(x), 1, NAN, 3, 0);
    CHECK_VALUES(kn_maximum(x, kn_full(KN_SHAPE(4), 2)), 2, NAN, 3, 2);
    CHECK_VALUES(kn_argmax(x, 0, false), 1);
    CHECK_VALUES(kn_max_dim(x, 0, false, NULL), NAN);
    CHECK_VALUES(kn_max_pool2d(kn_reshape(x, KN_SHAPE(1, 1, 2, 2)), .kernel_size = 2), NAN);
    CHECK_VALUES(kn_adaptive_max_pool2d(kn_reshape(x, KN_SHAPE(1, 1, 2, 2)), 1, 1), NAN);
    CHECK_VALUES(kn_sum(x), NAN);
    CHECK_VALUES(kn_eq(x, x), 1, 0, 1, 1);
    CHECK_VALUES(kn_ne(x, x), 0, 1, 0, 0);
    CHECK_VALUES(kn_softmax(x, 0), NAN, NAN, NAN, NAN);
}

/* A NaN anywhere in a long row, found by any work-item. */
TENSOR_TEST(test_nan_in_long_rows)
{
    kn_tensor *x = kn_zeros(KN_SHAPE(3, 10007));
    kn_fill_(kn_select(kn_select(x, 0, 1), 0, 9001), NAN);
    CHECK_VALUES(kn_max_dim(x, 1, false, NULL), 0, NAN, 0);
    CHECK_VALUES(kn_argmax(x, 1, false), 0, 9001, 0);
    CHECK_VALUES(kn_max(x), NAN);
}

TENSOR_TEST(test_first_among_equals)
{
    kn_tensor *x = kn_zeros(KN_SHAPE(2, 10007));
    CHECK_VALUES(kn_argmax(x, 1, false), 0, 0);
    kn_fill_(kn_narrow(x, 1, 5003, 2000), 1);
    CHECK_VALUES(kn_argmax(x, 1, false), 5003, 5003);
    kn_tensor *indices = NULL;
    CHECK_VALUES(kn_max_dim(x, 1, false, &indices), 1, 1);
    CHECK_VALUES(indices, 5003, 5003);
    const float ties[] = {1, 2, 2, 1};
    kn_tensor *image = kn_from_data(ties, KN_SHAPE(1, 1, 2, 2), .requires_grad = true);
    CHECK_OK(kn_backward(kn_sum(kn_max_pool2d(image, .kernel_size = 2))));
    CHECK_VALUES(kn_grad(image), 0, 1, 0, 0);
}

/* A largest value, and a NaN after it, around the boundaries of vectors and blocks, in rows that end around them. */
TENSOR_TEST(test_every_place_of_a_maximum)
{
    static const int64_t lengths[] = {16, 17, 31, 65, 1000, 2048, 2049, 2063, 2065, 4097, 4300};
    static const int64_t places[] = {0,    1,    15,   16,   30,   63,   64,   999,  1008,
                                     1023, 1024, 2047, 2048, 2062, 2064, 4095, 4096, 4299};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (size_t j = 0; j < sizeof places / sizeof places[0] && places[j] < lengths[i]; j++) {
            KN_SCOPE;
            const double at = (double)places[j], end = (double)lengths[i] - 1;
            kn_tensor *x = kn_full(KN_SHAPE(2, lengths[i]), -3), *indices = NULL;
            CHECK_TENSOR(kn_fill_(kn_narrow(x, 1, places[j], 1), -1));
            CHECK_VALUES(kn_max_dim(x, 1, false, &indices), -1, -1);
            CHECK_VALUES(indices, at, at);
            CHECK_TENSOR(kn_fill_(kn_narrow(kn_narrow(x, 0, 1, 1), 1, lengths[i] - 1, 1), NAN));
            CHECK_VALUES(kn_max_dim(x, 1, false, &indices), -1, NAN);
            CHECK_VALUES(indices, at, end);
            CHECK_VALUES(kn_max(x), NAN);
        }
}

TENSOR_TEST(test_empty_reductions)
{
    kn_tensor *nothing = kn_zeros(KN_SHAPE(0));
    CHECK_VALUES(kn_sum(nothing), 0);
    CHECK_VALUES(kn_mean(nothing), NAN);
    assert_null(kn_max(nothing));
    CHECK_ERROR(KN_ERR_SHAPE, "max", "empty tensor");
    assert_null(kn_argmax(nothing, 0, false));
    CHECK_ERROR(KN_ERR_SHAPE, "argmax", "size is 0");
    CHECK_VALUES(kn_mse_loss(nothing, nothing, KN_REDUCTION_MEAN), NAN);
    CHECK_VALUES(kn_cross_entropy(kn_zeros(KN_SHAPE(0, 3)), kn_zeros(KN_SHAPE(0), .dtype = KN_I64)), NAN);
}

TENSOR_TEST(test_whole_numbers)
{
    const int64_t a[] = {7, -7, INT64_C(1) << 53, INT64_MAX};
    kn_tensor *x = kn_from_data(a, KN_SHAPE(4), .dtype = KN_I64);
    int64_t sums[4];
    CHECK_OK(kn_read(kn_add(x, kn_ones(KN_SHAPE(4), .dtype = KN_I64)), sums, sizeof sums));
    assert_int_equal(sums[2], (INT64_C(1) << 53) + 1); /* not through a double */
    assert_true(sums[3] == INT64_MIN);                 /* wraps as in two's complement */
    int64_t total = 0;
    CHECK_OK(kn_item_i64(kn_sum(kn_narrow(x, 0, 0, 3)), &total));
    assert_int_equal(total, INT64_C(1) << 53);
    CHECK_DTYPE(kn_div(x, x), KN_F32);
    CHECK_VALUES(kn_div(kn_narrow(x, 0, 0, 2), kn_full(KN_SHAPE(1), 2, .dtype = KN_I64)), 3.5, -3.5);
    CHECK_DTYPE(kn_sum(kn_ones(KN_SHAPE(3), .dtype = KN_U8)), KN_I64);
    kn_tensor *bytes = kn_full(KN_SHAPE(1000), 200, .dtype = KN_U8);
    CHECK_VALUES(kn_sum(bytes), 200000);
    CHECK_VALUES(kn_narrow(kn_add(bytes, bytes), 0, 0, 1), 144); /* uint8 wraps */
    assert_null(kn_mean(x));
    CHECK_ERROR(KN_ERR_DTYPE, "mean", "int64");
    kn_tensor *flags = kn_ones(KN_SHAPE(2), .dtype = KN_BOOL);
    CHECK_VALUES(kn_add(flags, flags), 1, 1); /* or */
    CHECK_DTYPE(kn_add(flags, flags), KN_BOOL);
    CHECK_VALUES(kn_mul(flags, kn_zeros(KN_SHAPE(2), .dtype = KN_BOOL)), 0, 0);
}

/* What C makes of the value, clamped to the range of int64 and NaN 0: its lower bits (docs/dtypes.md). */
static int64_t whole_of(double value, kn_dtype dtype)
{
    const int64_t whole = isnan(value)       ? 0
                          : value >= 0x1p63  ? INT64_MAX
                          : value <= -0x1p63 ? INT64_MIN
                                             : (int64_t)value;
    return dtype == KN_I32   ? (int32_t)(uint32_t)(uint64_t)whole
           : dtype == KN_I16 ? (int16_t)(uint16_t)(uint64_t)whole
           : dtype == KN_I8  ? (int8_t)(uint8_t)(uint64_t)whole
           : dtype == KN_U8  ? (uint8_t)(uint64_t)whole
                             : whole;
}

/* Among the values multiples of 2^32 and those halfway between, at all places of vectors. */
TENSOR_TEST_F64(test_floats_to_integers)
{
    static const double values[] = {
        0,      -1.5,    0.99,     -128.5,    255.5,        65535.75, -65536.25, 0x1p24,      0x1p31 - 128,
        0x1p31, -0x1p31, 0x1.8p32, -0x1.8p32, 0x1p32 - 256, 0x1.4p33, -0x1.cp34, 0x1.2345p40, -0x1.2345p41,
        0x1p62, 0x1p63,  -0x1p63,  1e30,      -1e30,        INFINITY, -INFINITY, NAN};
    static const kn_dtype floats[] = {KN_F32, KN_F64, KN_BF16}, dtypes[] = {KN_I64, KN_I32, KN_I16, KN_I8, KN_U8};
    enum { VALUES = sizeof values / sizeof values[0], COUNT = 3 * VALUES };
    double all[COUNT];
    for (int i = 0; i < COUNT; i++)
        all[i] = values[i % VALUES];
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        kn_tensor *x = kn_to_dtype(kn_from_data(all, KN_SHAPE(COUNT), .dtype = KN_F64), floats[i]);
        double *stored = read_doubles(x);
        for (size_t j = 0; j < sizeof dtypes / sizeof dtypes[0]; j++) {
            int64_t whole[COUNT];
            CHECK_OK(kn_read(kn_to_dtype(kn_to_dtype(x, dtypes[j]), KN_I64), whole, sizeof whole));
            for (int k = 0; k < COUNT; k++)
                if (whole[k] != whole_of(stored[k], dtypes[j]))
                    fail_msg("%g of %s becomes %lld in %s", stored[k], kn_dtype_name(floats[i]), (long long)whole[k],
                             kn_dtype_name(dtypes[j]));
        }
        free(stored);
    }
}

/* A naive float sum of ten million times 0.1 is off by 8 %. */
TENSOR_TEST(test_long_sums)
{
    kn_tensor *x = kn_full(KN_SHAPE(10000019), 0.1);
    double sum = 0, mean = 0, expected = (double)0.1f * 10000019;
    CHECK_OK(kn_item(kn_sum(x), &sum));
    assert_true(fabs(sum - expected) < 1e-6 * expected);
    CHECK_OK(kn_item(kn_mean(x), &mean));
    assert_true(fabs(mean - (double)0.1f) < 1e-7);
    kn_tensor *tall = kn_full(KN_SHAPE(1000003, 3), 0.1);
    double *columns = read_doubles(kn_sum_dims(tall, (const int[]){0}, 1, false));
    CHECK_TENSOR(columns);
    for (int i = 0; i < 3; i++)
        if (!(fabs(columns[i] - (double)0.1f * 1000003) < 4e-6 * 100000))
            fail_msg("the sum of 1000003 times 0.1 along dimension 0 is %.9g", columns[i]);
    free(columns);
    CHECK_VALUES(kn_sum(kn_ones(KN_SHAPE(16777216 + 4))), 16777220); /* above 2^24 adding 1 has no effect */
}

/* The operand of an in-place operation may be its target, or overlap it: it is read before the write. */
TENSOR_TEST(test_in_place_on_itself)
{
    const float values[] = {1, 2, 3, 4};
    kn_tensor *x = kn_from_data(values, KN_SHAPE(2, 2));
    kn_mul_(x, x);
    CHECK_VALUES(x, 1, 4, 9, 16);
    kn_add_(x, kn_t(x));
    CHECK_VALUES(x, 2, 13, 13, 32);
    kn_sub_(x, kn_select(x, 0, 0));
    CHECK_VALUES(x, 0, 0, 11, 19);
    kn_tensor *row = kn_from_data(values, KN_SHAPE(4));
    kn_add_(kn_narrow(row, 0, 1, 3), kn_narrow(row, 0, 0, 3));
    CHECK_VALUES(row, 1, 3, 5, 7);
    CHECK_OK(kn_copy_(kn_narrow(row, 0, 1, 3), kn_narrow(row, 0, 0, 3)));
    CHECK_VALUES(row, 1, 1, 3, 5);
    kn_tensor *square = kn_from_data(values, KN_SHAPE(2, 2));
    CHECK_OK(kn_copy_(square, kn_t(square)));
    CHECK_VALUES(square, 1, 3, 2, 4);
}

/* Many elements over one memory location cannot be written. */
TENSOR_TEST(test_in_place_on_expanded)
{
    kn_tensor *x = kn_ones(KN_SHAPE(1, 3)), *wide = kn_expand(x, KN_SHAPE(2, 3));
    assert_null(kn_add_(wide, kn_ones(KN_SHAPE(2, 3))));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
    CHECK_VALUES(x, 1, 1, 1);
}

TENSOR_TEST_F64(test_conversions_of_special_values)
{
    const double values[] = {INFINITY, -INFINITY, NAN, 1e300, 65520, 6e-8, -0.0};
    kn_tensor *x = kn_from_data(values, KN_SHAPE(7), .dtype = KN_F64);
    CHECK_VALUES(kn_to_dtype(x, KN_F32), INFINITY, -INFINITY, NAN, INFINITY, 65520, 6e-8, 0);
    CHECK_VALUES(kn_to_dtype(x, KN_F16), INFINITY, -INFINITY, NAN, INFINITY, INFINITY, 0x1p-24, 0);
    CHECK_VALUES(kn_to_dtype(x, KN_BOOL), 1, 1, 1, 1, 1, 1, 0);
    float half_back[2];
    const float tie[] = {2049, 2051}; /* halfway between two f16 values: rounds to even */
    kn_tensor *h = kn_to_dtype(kn_from_data(tie, KN_SHAPE(2)), KN_F16);
    CHECK_OK(kn_read(kn_to_dtype(h, KN_F32), half_back, sizeof half_back));
    assert_true(half_back[0] == 2048 && half_back[1] == 2052);
    CHECK_VALUES(kn_add(h, h), 4096, 4104);
    CHECK_DTYPE(kn_add(h, h), KN_F16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nan_propagates),
        TEST(test_nan_in_long_rows),
        TEST(test_first_among_equals),
        TEST(test_every_place_of_a_maximum),
        TEST(test_empty_reductions),
        TEST(test_whole_numbers),
        TEST(test_long_sums),
        TEST(test_conversions_of_special_values),
        TEST(test_floats_to_integers),
        TEST(test_in_place_on_itself),
        TEST(test_in_place_on_expanded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
