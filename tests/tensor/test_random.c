/* test_random.c - Philox4x32-10 against known answers, equal numbers on host and devices, generator states,
 * distributions. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/values.h"
#include "tensor/philox.h"

/* --- known answers ----------------------------------------------------------------------------------- */

/* The vectors of the Random123 distribution (Salmon, Moraes, Dror, Shaw: kat_vectors, philox4x32 10 rounds). */
static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        uint32_t words[4];
        memcpy(words, vectors[i].counter, sizeof words);
        kn_philox4x32(words, vectors[i].key[0], vectors[i].key[1]);
        assert_memory_equal(words, vectors[i].expected, sizeof words);
    }
}

/* Seed 0, offset 0 is the first vector: the first four uniforms on every device come from it. */
TENSOR_TEST(test_known_answers_on_devices)
{
    static const uint32_t words[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (int i = -1; i < kn_device_count(); i++) {
        kn_manual_seed(0);
        float drawn[4];
        kn_device *device = i < 0 ? kn_device_host() : kn_device_at(i);
        CHECK_OK(kn_read(kn_rand(KN_SHAPE(4), .device = device), drawn, sizeof drawn));
        for (int j = 0; j < 4; j++)
            assert_true(drawn[j] == (float)(words[j] >> 8) * 0x1p-24f);
    }
}

/* --- equal numbers everywhere ------------------------------------------------------------------------------ */

typedef kn_tensor *(*draw_function)(kn_device *device);

static kn_tensor *draw_rand(kn_device *d) { return kn_rand(KN_SHAPE(1031), .device = d); }
static kn_tensor *draw_rand_f64(kn_device *d) { return kn_rand(KN_SHAPE(1031), .device = d, .dtype = KN_F64); }
static kn_tensor *draw_rand_f16(kn_device *d) { return kn_rand(KN_SHAPE(1031), .device = d, .dtype = KN_F16); }
static kn_tensor *draw_randint(kn_device *d) { return kn_randint(-5, 1000003, KN_SHAPE(1031), .device = d); }
static kn_tensor *draw_randperm(kn_device *d) { return kn_randperm(1031, .device = d); }
static kn_tensor *draw_bernoulli(kn_device *d) { return kn_bernoulli_(kn_empty(KN_SHAPE(1031), .device = d), 0.3); }
static kn_tensor *draw_uniform(kn_device *d) { return kn_uniform_(kn_empty(KN_SHAPE(1031), .device = d), -2, 5); }
static kn_tensor *draw_randn(kn_device *d) { return kn_randn(KN_SHAPE(1031), .device = d); }
static kn_tensor *draw_randn_f64(kn_device *d) { return kn_randn(KN_SHAPE(1031), .device = d, .dtype = KN_F64); }
/* In the order of the view's elements; the host has no views. */
static kn_tensor *draw_strided(kn_device *d)
{
    kn_tensor *x =
        d == kn_device_host() ? kn_empty(KN_SHAPE(37, 31), .device = d) : kn_t(kn_empty(KN_SHAPE(31, 37), .device = d));
    return kn_uniform_(x, 0, 1);
}

static kn_tensor *draw_twice(kn_device *d) /* the second draw starts after the first, of odd length */
{
    kn_rand(KN_SHAPE(3), .device = d);
    return kn_rand(KN_SHAPE(1031), .device = d);
}

static kn_dtype drawn_dtype;
static kn_tensor *draw_randint_of(kn_device *d)
{
    return kn_randint(0, 100, KN_SHAPE(1031), .device = d, .dtype = drawn_dtype);
}
static kn_tensor *draw_bernoulli_of(kn_device *d)
{
    return kn_bernoulli_(kn_empty(KN_SHAPE(1031), .device = d, .dtype = drawn_dtype), 0.3);
}

/* Normal deviates agree to the rounding of log, cos and sqrt; all others bit for bit. */
static void compare_draws(draw_function draw, bool exact, double tolerance)
{
    kn_manual_seed(77);
    double *host = read_doubles(draw(kn_device_host()));
    assert_non_null(host);
    for (int i = 0; i < kn_device_count(); i++) {
        kn_tensor *drawn = draw(kn_device_at(i));
        double *values = read_doubles(drawn);
        CHECK_TENSOR(values);
        char message[400];
        closeness limit = exact ? (closeness){0, 0} : (closeness){tolerance, tolerance};
        if (!values_close(values, host, kn_numel(drawn), limit, message, sizeof message))
            fail_msg("%s against the host: %s", kn_device_string(kn_device_at(i)), message);
        free(values);
    }
    free(host);
}

TENSOR_TEST_F64(test_same_stream_everywhere)
{
    compare_draws(draw_rand, true, 0);
    compare_draws(draw_rand_f64, true, 0);
    compare_draws(draw_rand_f16, true, 0);
    compare_draws(draw_randint, true, 0);
    compare_draws(draw_randperm, true, 0);
    compare_draws(draw_bernoulli, true, 0);
    compare_draws(draw_uniform, true, 0);
    compare_draws(draw_strided, true, 0);
    compare_draws(draw_twice, true, 0);
    compare_draws(draw_randn, false, 2e-6);
    compare_draws(draw_randn_f64, false, 1e-12);
}

TENSOR_TEST_F64(test_whole_numbers_in_every_dtype)
{
    static const kn_dtype dtypes[] = {KN_F64, KN_F16, KN_BF16, KN_I32, KN_U8};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        drawn_dtype = dtypes[i];
        compare_draws(draw_randint_of, true, 0);
        compare_draws(draw_bernoulli_of, true, 0);
    }
}

/* float16 has 11 bits, bfloat16 8: a float just below 1 would round to 1. */
TENSOR_TEST(test_halves_stay_below_one)
{
    kn_device *const devices[] = {kn_device_current(), kn_device_host()};
    for (int i = 0; i < 4; i++) {
        double sum = 0;
        double *values =
            read_doubles(kn_rand(KN_SHAPE(50000), .device = devices[i % 2], .dtype = i < 2 ? KN_F16 : KN_BF16));
        CHECK_TENSOR(values);
        for (int j = 0; j < 50000; j++) {
            assert_true(values[j] >= 0 && values[j] < 1);
            sum += values[j];
        }
        assert_true(fabs(sum / 50000 - 0.5) < 0.005);
        free(values);
    }
}

/* Dropout draws from the device's generator: the same mask on every device. */
TENSOR_TEST(test_dropout_masks)
{
    double *first = NULL;
    for (int i = 0; i < kn_device_count(); i++) {
        kn_manual_seed(5);
        double *mask = read_doubles(kn_dropout(kn_ones(KN_SHAPE(1031), .device = kn_device_at(i)), .p = 0.25));
        CHECK_TENSOR(mask);
        int64_t kept = 0;
        for (int j = 0; j < 1031; j++) {
            assert_true(mask[j] == 0 || fabs(mask[j] - 4.0 / 3) < 1e-6);
            kept += mask[j] != 0;
            assert_true(!first || first[j] == mask[j]);
        }
        assert_true(kept > 700 && kept < 850);
        if (first)
            free(mask);
        else
            first = mask;
    }
    free(first);
}

/* Dropout2d drops whole channels of an image. */
TENSOR_TEST(test_dropout2d_drops_channels)
{
    kn_manual_seed(5);
    double *y = read_doubles(kn_dropout2d(kn_ones(KN_SHAPE(8, 16, 3, 2)), .p = 0.5));
    CHECK_TENSOR(y);
    int kept = 0;
    for (int channel = 0; channel < 8 * 16; channel++) {
        for (int i = 1; i < 6; i++)
            assert_true(y[channel * 6 + i] == y[channel * 6]);
        assert_true(y[channel * 6] == 0 || y[channel * 6] == 2);
        kept += y[channel * 6] == 2;
    }
    assert_in_range(kept, 40, 88);
    free(y);
    kn_tensor *x = kn_ones(KN_SHAPE(2, 2, 1, 1));
    CHECK_VALUES(kn_dropout2d(x, .p = 0.5, .training = false), 1, 1, 1, 1);
    CHECK_VALUES(kn_dropout(x, .p = 0), 1, 1, 1, 1);
    CHECK_VALUES(kn_dropout(x, .p = 1), 0, 0, 0, 0);
    assert_null(kn_dropout(x, .p = 1.5));
    CHECK_ERROR(KN_ERR_ARGUMENT, "dropout", "1.5");
}

/* --- states ------------------------------------------------------------------------------------------ */

TENSOR_TEST(test_states)
{
    kn_device *device = kn_device_current();
    uint8_t saved[KN_RNG_STATE_SIZE];
    kn_manual_seed(123456789);
    assert_int_equal(kn_initial_seed(device), 123456789);
    kn_rand(KN_SHAPE(10));
    CHECK_OK(kn_get_rng_state(device, saved));
    double *first = read_doubles(kn_randn(KN_SHAPE(50)));
    double *other = read_doubles(kn_randn(KN_SHAPE(50)));
    assert_memory_not_equal(first, other, 50 * sizeof(double));
    CHECK_OK(kn_set_rng_state(device, saved));
    double *again = read_doubles(kn_randn(KN_SHAPE(50)));
    assert_memory_equal(first, again, 50 * sizeof(double));
    free(first);
    free(other);
    free(again);
    uint64_t seed = kn_seed();
    assert_int_equal(kn_initial_seed(device), seed);
    assert_int_not_equal(kn_seed(), seed);
    assert_int_equal(kn_get_rng_state(device, NULL), KN_ERR_ARGUMENT);
    kn_error_clear();
}

/* --- distributions ----------------------------------------------------------------------------------- */

static void moments(const kn_tensor *tensor, double *mean, double *variance, double *low, double *high)
{
    int64_t n = kn_numel(tensor);
    double *values = read_doubles(tensor), sum = 0, squares = 0;
    assert_non_null(values);
    *low = *high = values[0];
    for (int64_t i = 0; i < n; i++) {
        sum += values[i];
        squares += values[i] * values[i];
        *low = values[i] < *low ? values[i] : *low;
        *high = values[i] > *high ? values[i] : *high;
    }
    free(values);
    *mean = sum / (double)n;
    *variance = squares / (double)n - *mean * *mean;
}

TENSOR_TEST(test_distributions)
{
    double mean, variance, low, high;
    kn_manual_seed(2);
    moments(kn_rand(KN_SHAPE(100000)), &mean, &variance, &low, &high);
    assert_true(fabs(mean - 0.5) < 0.005 && fabs(variance - 1.0 / 12) < 0.002 && low >= 0 && high < 1);
    moments(kn_randn(KN_SHAPE(100000)), &mean, &variance, &low, &high);
    assert_true(fabs(mean) < 0.015 && fabs(variance - 1) < 0.025 && low < -3.5 && high > 3.5 && isfinite(low));
    moments(kn_normal_(kn_empty(KN_SHAPE(100000)), 3, 2), &mean, &variance, &low, &high);
    assert_true(fabs(mean - 3) < 0.03 && fabs(variance - 4) < 0.1);
    moments(kn_bernoulli_(kn_empty(KN_SHAPE(100000), .dtype = KN_BOOL), 0.2), &mean, &variance, &low, &high);
    assert_true(fabs(mean - 0.2) < 0.007 && low == 0 && high == 1);
    moments(kn_randint(-3, 4, KN_SHAPE(70000)), &mean, &variance, &low, &high);
    assert_true(fabs(mean) < 0.04 && fabs(variance - 4) < 0.08 && low == -3 && high == 3);
    CHECK_DTYPE(kn_randint(0, 2, KN_SHAPE(1)), KN_I64);
}

TENSOR_TEST(test_randperm)
{
    enum { N = 10007 };
    int64_t *order = read_integers(kn_randperm(N));
    CHECK_TENSOR(order);
    char *seen = calloc(N, 1);
    int fixed = 0;
    for (int i = 0; i < N; i++) {
        assert_in_range(order[i], 0, N - 1);
        assert_int_equal(seen[order[i]]++, 0);
        fixed += order[i] == i;
    }
    assert_true(fixed < 12); /* one on average */
    free(seen);
    free(order);
    assert_int_equal(kn_numel(kn_randperm(0)), 0);
    CHECK_VALUES(kn_randperm(1), 0);
}

TENSOR_TEST_F64(test_like)
{
    kn_tensor *like = kn_zeros(KN_SHAPE(3, 5), .dtype = KN_F64), *whole = kn_zeros(KN_SHAPE(2), .dtype = KN_I32);
    double expected[15], drawn[15];
    for (int normal = 0; normal < 2; normal++) {
        kn_manual_seed(3);
        CHECK_OK(kn_read(normal ? kn_randn(KN_SHAPE(3, 5), .dtype = KN_F64) : kn_rand(KN_SHAPE(3, 5), .dtype = KN_F64),
                         expected, sizeof expected));
        kn_manual_seed(3);
        kn_tensor *y = normal ? kn_randn_like(like) : kn_rand_like(like);
        CHECK_SHAPE(y, 3, 5);
        CHECK_OK(kn_read(y, drawn, sizeof drawn));
        assert_memory_equal(drawn, expected, sizeof drawn);
    }
    assert_ptr_equal(kn_device_of(kn_rand_like(kn_zeros(KN_SHAPE(2), .device = kn_device_host()))), kn_device_host());
    assert_null(kn_randn_like(whole));
    CHECK_ERROR(KN_ERR_DTYPE, "int32");
    assert_null(kn_rand_like(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_rand_like", "like");
}

TENSOR_TEST(test_bad_arguments)
{
    assert_null(kn_randint(5, 5, KN_SHAPE(2)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "randint", "5");
    assert_null(kn_bernoulli_(kn_zeros(KN_SHAPE(2)), 1.5));
    CHECK_ERROR(KN_ERR_ARGUMENT, "1.5");
    assert_null(kn_rand(KN_SHAPE(2), .dtype = KN_I64));
    CHECK_ERROR(KN_ERR_DTYPE, "int64");
    assert_null(kn_uniform_(kn_zeros(KN_SHAPE(2), .dtype = KN_I32), 0, 1));
    CHECK_ERROR(KN_ERR_DTYPE, "int32");
    assert_null(kn_randperm(-1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "-1");
    assert_int_equal(kn_numel(kn_rand(KN_SHAPE(0, 3))), 0);
    assert_null(kn_normal_(kn_zeros(KN_SHAPE(2)), 0, -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_normal_: std (-1)");
    assert_null(kn_uniform_(kn_zeros(KN_SHAPE(2)), 1, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_uniform_: 1 to 0");
    assert_null(kn_uniform_(kn_zeros(KN_SHAPE(2)), -3e38, 3e38));
    CHECK_ERROR(KN_ERR_ARGUMENT, "finite width");
    assert_null(kn_uniform_(kn_zeros(KN_SHAPE(2)), 0, NAN));
    CHECK_ERROR(KN_ERR_ARGUMENT, "nan");
}

/* Numbers that wrap around would be drawn more often, and be in a permutation twice. */
TENSOR_TEST(test_numbers_that_the_dtype_does_not_have)
{
    assert_non_null(kn_randint(-128, 128, KN_SHAPE(2), .dtype = KN_I8));
    assert_null(kn_randint(-129, 0, KN_SHAPE(2), .dtype = KN_I8));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_randint", "int8", "from -129 to below 0");
    assert_null(kn_randint(0, 257, KN_SHAPE(2), .dtype = KN_U8));
    CHECK_ERROR(KN_ERR_ARGUMENT, "uint8");
    assert_null(kn_randint_like(kn_zeros(KN_SHAPE(2), .dtype = KN_BOOL), 0, 3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "bool");
    assert_int_equal(kn_numel(kn_randperm(256, .dtype = KN_U8)), 256);
    assert_null(kn_randperm(257, .dtype = KN_U8));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_randperm", "uint8", "257");
    assert_null(kn_randperm(2050, .dtype = KN_F16));
    CHECK_ERROR(KN_ERR_ARGUMENT, "float16");
}

TENSOR_TEST(test_options_of_permutations)
{
    kn_tensor *numbers = kn_randperm(5, .dtype = KN_F32, .requires_grad = true), *pinned[2];
    assert_true(kn_requires_grad(numbers) && kn_is_leaf(numbers));
    CHECK_VALUES(kn_sort(numbers, NULL), 0, 1, 2, 3, 4);
    pinned[0] = kn_randperm(5, .pin_memory = true);
    pinned[1] = kn_randperm(5, .pin_memory = true, .dtype = KN_I32);
    for (int i = 0; i < 2; i++)
        assert_true(kn_is_pinned(pinned[i]) && kn_device_of(pinned[i]) == kn_device_host());
    CHECK_DTYPE(pinned[1], KN_I32);
    assert_null(kn_randperm(5, .requires_grad = true));
    CHECK_ERROR(KN_ERR_DTYPE, "int64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_known_answers),
        TEST(test_known_answers_on_devices),
        TEST(test_same_stream_everywhere),
        TEST(test_whole_numbers_in_every_dtype),
        TEST(test_halves_stay_below_one),
        TEST(test_dropout_masks),
        TEST(test_dropout2d_drops_channels),
        TEST(test_states),
        TEST(test_distributions),
        TEST(test_randperm),
        TEST(test_like),
        TEST(test_bad_arguments),
        TEST(test_numbers_that_the_dtype_does_not_have),
        TEST(test_options_of_permutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
