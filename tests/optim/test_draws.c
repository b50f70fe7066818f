/* test_draws.c - distributions with fixed seeds: Kolmogorov and Smirnov's distance, or moments; initialisers. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/values.h"

#define DRAWN 4000

static kn_tensor *empty(void) { return kn_empty(KN_SHAPE(DRAWN)); }

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The greatest distance of the distributions times sqrt(n): above 1.95 in one of a thousand draws. */
static void check_distribution(const char *name, const kn_tensor *drawn, double (*below)(double x))
{
    double *values = read_doubles(drawn), largest = 0;
    qsort(values, DRAWN, sizeof *values, compare);
    for (int i = 0; i < DRAWN; i++)
        largest = fmax(largest, fabs(below(values[i]) - (i + 0.5) / DRAWN));
    if (!(largest * sqrt(DRAWN) < 1.95))
        fail_msg("%s: distance %g", name, largest * sqrt(DRAWN));
    free(values);
}

static double normal_below(double x) { return erfc(-x / sqrt(2)) / 2; }
static double exponential_below(double x) { return 1 - exp(-2 * x); }
static double cauchy_below(double x) { return atan((x - 1) / 3) / 3.14159265358979323846 + 0.5; }
static double log_normal_below(double x) { return normal_below((log(x) - 0.5) / 0.25); }
static double truncated_below(double x)
{
    const double low = normal_below(-1), high = normal_below(2);
    return (normal_below(x) - low) / (high - low);
}

TENSOR_TEST(deviates_have_their_distributions)
{
    kn_manual_seed(12);
    check_distribution("exponential", kn_exponential_(empty(), 2), exponential_below);
    check_distribution("cauchy", kn_cauchy_(empty(), 1, 3), cauchy_below);
    check_distribution("log normal", kn_log_normal_(empty(), 0.5, 0.25), log_normal_below);
    check_distribution("truncated normal", kn_truncated_normal_(empty(), 0, 1, -1, 2), truncated_below);
    check_distribution("normal", kn_normal(kn_zeros(KN_SHAPE(DRAWN)), kn_ones(KN_SHAPE(1))), normal_below);
}

/* Far from the mean the distribution is rounded to 0 or 1, and its inverse is infinite or NaN. */
TENSOR_TEST(truncated_normal_deviates_stay_between_their_bounds)
{
    static const double bounds[][2] = {{5, 6}, {8, 9}, {-9, -8}, {100, 101}, {-101, -100}, {30, INFINITY}, {-1, 1}};
    kn_device *devices[] = {kn_device_current(), kn_device_host()};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        for (int k = 0; k < 4; k++) {
            kn_tensor *x = kn_empty(KN_SHAPE(DRAWN), .device = devices[k % 2], .dtype = k < 2 ? KN_F32 : KN_F64);
            double *values = read_doubles(kn_truncated_normal_(x, 0, 1, bounds[i][0], bounds[i][1]));
            for (int n = 0; n < DRAWN; n++)
                if (!(values[n] >= bounds[i][0] && values[n] <= bounds[i][1] && isfinite(values[n])))
                    fail_msg("%g is not from %g to %g", values[n], bounds[i][0], bounds[i][1]);
            free(values);
        }
    }
    assert_null(kn_truncated_normal_(empty(), NAN, 1, -1, 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_truncated_normal_", "mean (nan)");
}

static void check_moments(const char *name, const kn_tensor *drawn, double mean, double variance)
{
    double *values = read_doubles(drawn), sum = 0, squares = 0;
    for (int i = 0; i < DRAWN; i++) {
        sum += values[i];
        squares += (values[i] - mean) * (values[i] - mean);
    }
    if (!(fabs(sum / DRAWN - mean) < 4 * sqrt(variance / DRAWN)) || !(fabs(squares / DRAWN / variance - 1) < 0.12))
        fail_msg("%s: mean %g, variance %g; expected %g, %g", name, sum / DRAWN, squares / DRAWN, mean, variance);
    free(values);
}

TENSOR_TEST(counts_have_their_moments)
{
    kn_manual_seed(13);
    check_moments("geometric", kn_geometric_(empty(), 0.3), 1 / 0.3, 0.7 / 0.09);
    check_moments("geometric, int64", kn_geometric_(kn_empty(KN_SHAPE(DRAWN), .dtype = KN_I64), 0.5), 2, 2);
    check_moments("random", kn_random_(empty(), 3, 7), 4.5, 1.25);
    check_moments("randint_like", kn_randint_like(empty(), 0, 2), 0.5, 0.25);
    check_moments("bernoulli", kn_bernoulli(kn_full(KN_SHAPE(DRAWN), 0.2)), 0.2, 0.16);
    check_moments("poisson, small", kn_poisson(kn_full(KN_SHAPE(DRAWN), 3.5)), 3.5, 3.5);
    check_moments("poisson, large", kn_poisson(kn_full(KN_SHAPE(DRAWN), 50.0)), 50, 50);
    const double trials[] = {20, 100, 100, 5000}, chances[] = {0.1, 0.4, 0.97, 0.3};
    for (int i = 0; i < 4; i++) {
        const double mean = trials[i] * chances[i];
        kn_tensor *count = kn_full(KN_SHAPE(DRAWN), trials[i]), *prob = kn_full(KN_SHAPE(1), chances[i]);
        check_moments("binomial", kn_binomial(count, prob), mean, mean * (1 - chances[i]));
    }
    kn_tensor *weights = kn_from_data(((float[]){1, 0, 3, 4}), KN_SHAPE(4));
    check_moments("multinomial", kn_multinomial(weights, DRAWN, .replacement = true), 2.25, 6 - 2.25 * 2.25);
    kn_tensor *rows = kn_expand(kn_reshape(weights, KN_SHAPE(1, 4)), KN_SHAPE(DRAWN, 4));
    kn_tensor *pairs = kn_multinomial(rows, 2);
    check_moments("multinomial, first", kn_select(pairs, 1, 0), 2.25, 6 - 2.25 * 2.25);
    double *values = read_doubles(pairs);
    for (int i = 0; i < DRAWN; i++)
        assert_true(values[2 * i] != values[2 * i + 1] && values[2 * i] != 1 && values[2 * i + 1] != 1);
    free(values);
}

TENSOR_TEST_F64(binomial_counts_at_the_ends)
{
    kn_tensor *count = kn_from_data(((double[]){0, 7, 7, 7, NAN, 7, 1}), KN_SHAPE(7), .dtype = KN_F64);
    kn_tensor *prob = kn_from_data(((double[]){0.5, 0, 1, 2, 0.5, -1, NAN}), KN_SHAPE(7), .dtype = KN_F64);
    CHECK_VALUES(kn_binomial(count, prob), 0, 0, 7, 7, NAN, 0, NAN);
    kn_tensor *drawn = kn_binomial(kn_full(KN_SHAPE(500), 12.0), kn_full(KN_SHAPE(500), 0.9));
    CHECK_VALUES(kn_any(kn_gt_scalar(drawn, 12)), 0);
    CHECK_VALUES(kn_any(kn_lt_scalar(drawn, 0)), 0);
    assert_null(kn_binomial(count, kn_ones(KN_SHAPE(7))));
    CHECK_ERROR(KN_ERR_DTYPE, "kn_binomial: count is float64, but prob is float32");
}

#define EXPECT(call, ...)                                                                                              \
    do {                                                                                                               \
        assert_null(call);                                                                                             \
        CHECK_ERROR(KN_ERR_ARGUMENT, __VA_ARGS__);                                                                     \
        kn_error_clear();                                                                                              \
    } while (0)

TENSOR_TEST(parameters_that_do_not_do)
{
    kn_tensor *x = kn_empty(KN_SHAPE(2));
    EXPECT(kn_exponential_(x, 0), "lambd (0)");
    EXPECT(kn_geometric_(x, 1), "p (1)");
    EXPECT(kn_cauchy_(x, 0, -1), "sigma (-1)");
    EXPECT(kn_log_normal_(x, 0, 0), "std (0)");
    EXPECT(kn_random_(x, 3, 3), "from 3 to below 3");
    EXPECT(kn_multinomial(kn_ones(KN_SHAPE(3)), 4), "4 of 3 categories");
    EXPECT(kn_init_sparse_(kn_empty(KN_SHAPE(2, 2)), 2, 1), "sparsity (2)");
    EXPECT(kn_init_dirac_(kn_empty(KN_SHAPE(3, 2, 1)), 2), "groups (2)");
    EXPECT(kn_init_kaiming_normal_(kn_empty(KN_SHAPE(3, 2)), 0, .nonlinearity = "gelu"), "\"gelu\"");
}

TENSOR_TEST(initialisers_of_matrices)
{
    kn_manual_seed(14);
    const int64_t shapes[][2] = {{3, 5}, {5, 3}, {4, 4}};
    for (int s = 0; s < 3; s++) {
        kn_tensor *m = kn_init_orthogonal_(kn_empty_with(2, shapes[s], NULL), 2);
        kn_tensor *product = shapes[s][0] <= shapes[s][1] ? kn_matmul(m, kn_t(m)) : kn_matmul(kn_t(m), m);
        const int n = (int)kn_size(product, 0);
        double *values = read_doubles(product);
        for (int i = 0; i < n * n; i++)
            assert_true(fabs(values[i] - (i % (n + 1) == 0 ? 4 : 0)) < 1e-5);
        free(values);
    }
    CHECK_VALUES(kn_init_eye_(kn_empty(KN_SHAPE(2, 3))), 1, 0, 0, 0, 1, 0);
    CHECK_VALUES(kn_init_dirac_(kn_empty(KN_SHAPE(4, 1, 3)), 2), 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0);
    CHECK_VALUES(kn_init_constant_(kn_empty(KN_SHAPE(2)), 0.5), 0.5, 0.5);
    double *values = read_doubles(kn_init_sparse_(kn_empty(KN_SHAPE(10, 6)), 0.35, 1));
    for (int c = 0; c < 6; c++) {
        int zeros = 0;
        for (int r = 0; r < 10; r++)
            zeros += values[r * 6 + c] == 0;
        assert_int_equal(zeros, 4);
    }
    free(values);
    assert_true(fabs(kn_init_calculate_gain("leaky_relu", 0.2) - sqrt(2 / 1.04)) < 1e-15);
    assert_true(kn_init_calculate_gain("tanh", 0) == 5.0 / 3);
    check_moments(
        "kaiming normal",
        kn_init_kaiming_normal_(kn_empty(KN_SHAPE(DRAWN / 10, 10)), 0, .mode = KN_FAN_OUT, .nonlinearity = "relu"), 0,
        2.0 / (DRAWN / 10));
    check_moments("xavier normal", kn_init_xavier_normal_(kn_empty(KN_SHAPE(DRAWN / 10, 10)), 3), 0,
                  9 * 2.0 / (DRAWN / 10 + 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(deviates_have_their_distributions), TEST(truncated_normal_deviates_stay_between_their_bounds),
        TEST(counts_have_their_moments),         TEST(binomial_counts_at_the_ends),
        TEST(parameters_that_do_not_do),         TEST(initialisers_of_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
