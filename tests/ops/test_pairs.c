/* test_pairs.c - products of bf16 on CPU devices, by pairs of elements (cl/gemm/pairs.cl, dots.cl) or by rows (row.cl):
 * values, and an instruction that does something else. test_pairs [works|wrong]; "wrong": the environment has such an
 * instruction (KOINE_KERNEL_DIR). */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/dispatch/choice.h"
#include "ops/tensor_core_values.h"
#include "support/as_gpu.h"

static int warnings;
static void count_warnings(kn_log_level level, const char *message, void *user)
{
    (void)user;
    warnings += level == KN_LOG_WARNING && strstr(message, "are not used in bf16") != NULL;
}

/* In bf16, contiguous or as a transposed view, after `skipped` other elements. */
static kn_tensor *operand(const double *values, int64_t rows, int64_t columns, bool transposed, int64_t skipped)
{
    const int64_t count = rows * columns;
    kn_tensor *t = kn_to_dtype(matrix(values, rows, columns, transposed), KN_BF16);
    t = transposed ? kn_transpose(t, 0, 1) : t;
    kn_tensor *all = kn_cat((kn_tensor *[]){kn_zeros(KN_SHAPE(skipped), .dtype = KN_BF16), kn_flatten(t, 0, -1)}, 2, 0);
    kn_tensor *rest = kn_slice(all, 0, skipped, skipped + count, 1);
    return transposed ? kn_transpose(kn_reshape(rest, 2, (int64_t[]){columns, rows}), 0, 1)
                      : kn_reshape(rest, 2, (int64_t[]){rows, columns});
}

/* The exact product and bias, rounded to bf16 on store, with the errors of sums in f32. */
static void check_product(const double *a, const double *b, const double *bias, const double *c, int64_t m, int64_t n,
                          int64_t k, bool relu)
{
    for (int64_t i = 0; i < m * n; i++) {
        double sum = bias ? bias[i % n] : 0, magnitude = fabs(sum);
        for (int64_t j = 0; j < k; j++) {
            const double term = a[i / n * k + j] * b[j * n + i % n];
            sum += term;
            magnitude += fabs(term);
        }
        sum = relu && sum < 0 ? 0 : sum;
        if (!(fabs(c[i] - sum) <= 0x1.01p-8 * fabs(sum) + (double)(k + 1) * 0x1p-24 * magnitude))
            fail_msg("m %d n %d k %d: element %d is %.9g, not %.9g", (int)m, (int)n, (int)k, (int)i, c[i], sum);
    }
}

/* 1 / 128 is what bf16 resolves below 1. */
static double *draw_bf16(test_random *random, int64_t count)
{
    double *values = draw(random, count, false);
    for (int64_t i = 0; i < count; i++)
        values[i] = floor(values[i] * 128) / 128;
    return values;
}

static int64_t count_runs(int64_t *unsupported)
{
    const kn_forced_count count = kn_count_forced("matmul_f16");
    kn_force_implementation("matmul_f16", NULL);
    *unsupported += count.unsupported;
    assert_true(count.ran + count.unsupported > 0);
    return count.ran;
}

/* Of one size with both operands plain or transposed, with and without a bias, and at odd addresses. */
static int64_t check_size(test_random *random, const char *row, const int64_t size[3], int64_t *unsupported)
{
    const int64_t m = size[0], n = size[1], k = size[2];
    double *a = draw_bf16(random, m * k), *b = draw_bf16(random, k * n), *bias = draw_bf16(random, n);
    int64_t ran = 0;
    for (int i = 0; i < 8; i++) {
        double *c = NULL;
        kn_force_implementation("matmul_f16", row);
        {
            KN_SCOPE;
            kn_tensor *x = operand(a, m, k, i & 1, i & 4 ? 1 : 0), *y = operand(b, k, n, i & 2, i & 4 ? 3 : 0);
            kn_tensor *product =
                i & 4 ? kn_linear_with(x, kn_transpose(y, 0, 1),
                                       kn_to_dtype(tensor_of_doubles(bias, 1, &n, KN_F32, false), KN_BF16),
                                       &(kn_linear_params){.activation = KN_ACTIVATION_RELU})
                      : kn_matmul(x, y);
            c = read_doubles(kn_to_dtype(product, KN_F32));
        }
        ran += count_runs(unsupported);
        assert_non_null(c);
        check_product(a, b, i & 4 ? bias : NULL, c, m, n, k, i & 4);
        free(c);
    }
    free(a);
    free(b);
    free(bias);
    return ran;
}

/* Edges of tiles, of words, and of blocks of k, which are of 2048; rows of A that share a set of the cache. */
static const int64_t pair_sizes[][3] = {{1, 1, 1},     {1, 50, 70},    {50, 1, 70},   {5, 3, 31},
                                        {12, 32, 64},  {13, 33, 65},   {131, 77, 43}, {24, 65, 300},
                                        {7, 40, 2049}, {30, 35, 4103}, {14, 33, 4096}};

static void test_products(void **state)
{
    test_random random = test_random_from("pairs");
    int64_t unsupported = 0;
    (void)state;
    for (size_t i = 0; i < sizeof pair_sizes / sizeof pair_sizes[0]; i++) {
        assert_int_equal(check_size(&random, "pairs", pair_sizes[i], &unsupported), 8);
        assert_true(check_size(&random, "dots", pair_sizes[i], &unsupported) >= 2);
    }
    assert_true(unsupported > 0); /* by dots, whose operands are in place */
    for (int i = 1; i < 3; i++)   /* one row, one column */
        assert_true(check_size(&random, "row", pair_sizes[i], &unsupported) >= 4);
}

/* 0.5 a b + 2 input, in which all rows of the table take the factors into account. */
static void test_factors(void **state)
{
    static const char *const table[] = {"pairs", "dots", "row", "reference"};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        KN_SCOPE;
        const bool column = strcmp(table[i], "row") == 0; /* contiguous along m */
        kn_force_implementation("matmul_f16", table[i]);
        kn_tensor *a = kn_full(KN_SHAPE(35, 70), 0.5, .dtype = KN_BF16), *b = kn_ones_like(a);
        kn_tensor *left = column ? kn_transpose(kn_reshape(a, 2, (int64_t[]){70, 35}), 0, 1) : a;
        kn_tensor *right = column ? kn_reshape(kn_slice(b, 0, 0, 1, 1), 2, (int64_t[]){70, 1}) : kn_transpose(b, 0, 1);
        kn_tensor *sums = kn_addmm(kn_full(KN_SHAPE(35, 1), 3, .dtype = KN_BF16), left, right, .beta = 2, .alpha = 0.5);
        CHECK_DTYPE(sums, KN_BF16);
        sums = kn_to_dtype(sums, KN_F32);
        CHECK_VALUES(kn_stack((kn_tensor *[]){kn_min(sums), kn_max(sums)}, 2, 0), 23.5, 23.5);
        assert_int_equal(kn_count_forced("matmul_f16").ran, 1);
    }
    kn_force_implementation("matmul_f16", NULL);
}

/* What lies beside an operand, and the zeros that fill up words, touch no result. */
static void test_infinities(void **state)
{
    (void)state;
    for (int row = 0; row < 2; row++) {
        KN_SCOPE;
        kn_force_implementation("matmul_f16", row ? "dots" : "pairs");
        kn_tensor *wide = kn_full(KN_SHAPE(35, 71), INFINITY, .dtype = KN_BF16);
        kn_tensor *inner = kn_slice(kn_slice(wide, 0, 1, 34, 1), 1, 1, 70, 1);
        CHECK_TENSOR(kn_fill_(inner, 1));
        kn_tensor *sums = kn_to_dtype(kn_linear(inner, inner, NULL), KN_F32);
        CHECK_VALUES(kn_stack((kn_tensor *[]){kn_min(sums), kn_max(sums)}, 2, 0), 69, 69);
    }
    kn_force_implementation("matmul_f16", NULL);
}

/* A matrix whose columns are one and the same is copied, and no longer contiguous along k. */
static void test_repeated(void **state)
{
    KN_SCOPE;
    (void)state;
    kn_force_implementation("matmul_f16", "dots");
    kn_tensor *column = kn_arange(0, 40, 1, .dtype = KN_BF16);
    kn_tensor *columns = kn_expand(kn_unsqueeze(column, 1), 2, (int64_t[]){40, 3});
    CHECK_VALUES(kn_to_dtype(kn_matmul(kn_ones(KN_SHAPE(2, 40), .dtype = KN_BF16), columns), KN_F32), 780, 780, 780,
                 780, 780, 780);
    assert_int_equal(kn_count_forced("matmul_f16").ran, 1);
    kn_force_implementation("matmul_f16", NULL);
}

/* --- recurrent layers: their products over all steps -------------------------------------------------------------- */

typedef struct layer_results {
    double *values[6]; /* the output, and the gradients of x, both weights and both biases */
    int64_t counts[6], products;
} layer_results;

typedef kn_tensor *layer_function(kn_tensor *, kn_tensor *, kn_tensor *, const kn_rnn_params *);

/* From the same random numbers each time; `row` multiplies. */
static layer_results run_layer(layer_function *layer, int gates, const int64_t size[4], bool reverse, const char *row)
{
    const int64_t columns = gates * size[3],
                  shapes[5][3] = {
                      {size[0], size[1], size[2]}, {columns, size[2]}, {columns, size[3]}, {columns}, {columns}};
    static const int ranks[5] = {3, 2, 2, 1, 1};
    layer_results results = {0};
    kn_tensor *inputs[5];
    KN_SCOPE;
    kn_force_implementation("matmul_f16", row);
    kn_manual_seed(5);
    for (int i = 0; i < 5; i++) {
        inputs[i] = kn_to_dtype(kn_mul_scalar(kn_randn_with(ranks[i], shapes[i], NULL), i == 0 ? 1 : 0.3), KN_BF16);
        CHECK_OK(kn_set_requires_grad(inputs[i], true));
    }
    kn_tensor *y = layer(inputs[0], inputs[1], inputs[2],
                         &(kn_rnn_params){.bias_ih = inputs[3], .bias_hh = inputs[4], .reverse = reverse});
    CHECK_DTYPE(y, KN_BF16);
    kn_tensor *wide = kn_to_dtype(y, KN_F32);
    CHECK_OK(kn_backward(kn_mean(kn_mul(wide, wide))));
    results.values[0] = read_doubles(kn_detach(wide));
    results.counts[0] = kn_numel(y);
    for (int i = 0; i < 5; i++) {
        CHECK_DTYPE(kn_grad(inputs[i]), KN_BF16);
        results.values[i + 1] = read_doubles(kn_to_dtype(kn_grad(inputs[i]), KN_F32));
        results.counts[i + 1] = kn_numel(inputs[i]);
    }
    results.products = kn_count_forced("matmul_f16").ran;
    kn_force_implementation("matmul_f16", NULL);
    return results;
}

/* The output is rounded once, the operands of the gradients are, too. */
static void compare_layers(layer_function *layer, int gates, const int64_t size[4], bool reverse)
{
    layer_results in_f32 = run_layer(layer, gates, size, reverse, "reference"),
                  in_bf16 = run_layer(layer, gates, size, reverse, "pairs");
    assert_int_equal(in_f32.products, 0);
    assert_true(in_bf16.products >= 4);
    for (int i = 0; i < 6; i++) {
        double largest = 0;
        for (int64_t j = 0; j < in_f32.counts[i]; j++)
            largest = fmax(largest, fabs(in_f32.values[i][j]));
        assert_true(largest > 0);
        for (int64_t j = 0; j < in_f32.counts[i]; j++)
            if (!(fabs(in_bf16.values[i][j] - in_f32.values[i][j]) <= 0x1p-7 * largest))
                fail_msg("result %d, element %d is %g, not %g", i, (int)j, in_bf16.values[i][j], in_f32.values[i][j]);
        free(in_f32.values[i]);
        free(in_bf16.values[i]);
    }
}

static void test_recurrent_layers(void **state)
{
    static const int64_t small[] = {7, 5, 19, 13}, in_parts[] = {150, 64, 8, 64};
    (void)state;
    for (int reverse = 0; reverse < 2; reverse++) {
        compare_layers(kn_lstm_with, 4, small, reverse);
        compare_layers(kn_gru_with, 3, small, reverse);
        compare_layers(kn_rnn_tanh_with, 1, small, reverse);
        compare_layers(kn_lstm_with, 4, in_parts, reverse);
    }
}

/* Computed in f32 instead, with one warning. */
static void test_wrong(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(64, 64), .dtype = KN_BF16);
        CHECK_VALUES(kn_max(kn_to_dtype(kn_matmul(x, x), KN_F32)), 64);
    }
    assert_int_equal(warnings, 1);
}

int main(int argc, char **argv)
{
    const bool wrong = argc > 1 && strcmp(argv[1], "wrong") == 0;
    kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(kn_device_current());
    obey_vector_width(argc, argv);
    if (!limits->is_cpu) {
        printf("skipped: for CPU devices\n");
        return 77;
    }
    kn_log_set_handler(count_warnings, NULL);
    limits->multiplies_pairs |= wrong;
    const struct CMUnitTest working[] = {TEST(test_products), TEST(test_factors), TEST(test_infinities),
                                         TEST(test_repeated), TEST(test_recurrent_layers)},
                            mistaken[] = {TEST(test_wrong)};
    return wrong ? cmocka_run_group_tests(mistaken, NULL, NULL) : cmocka_run_group_tests(working, NULL, NULL);
}
