/* tensor_core_f16.c - products of f16 tensors on tensor cores: values, batches, windows and gradients. Part of
 * test_tensor_cores. */
#include "ops/tensor_core_values.h"

#include <math.h>

/* A matrix in f16. */
static kn_tensor *f16_matrix(const double *values, int64_t rows, int64_t columns, bool transposed)
{
    kn_tensor *t = matrix(values, rows, columns, transposed); /* a conversion is contiguous */
    return transposed ? kn_transpose(kn_to_dtype(kn_transpose(t, 0, 1), KN_F16), 0, 1) : kn_to_dtype(t, KN_F16);
}

/* Rounds to an f16 value: a multiple of 2^-10 below 1. */
static void make_f16(double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = floor(values[i] * 1024) / 1024;
}

/* The exact product, rounded to f16 on store: an error of half a unit in the last place, plus that of f32 sums. */
static void check_f16(const double *a, const double *b, const double *c, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m * n; i++) {
        double sum = 0, magnitude = 0;
        for (int64_t j = 0; j < k; j++) {
            const double term = a[i / n * k + j] * b[j * n + i % n];
            sum += term;
            magnitude += fabs(term);
        }
        if (!(fabs(c[i] - sum) <= 0x1.01p-11 * fabs(sum) + (double)k * 0x1p-22 * magnitude + 0x1p-25))
            fail_msg("f16, m %d n %d k %d: element %d is %.9g, not %.9g", (int)m, (int)n, (int)k, (int)i, c[i], sum);
    }
}

/* No flag is needed, because no precision is lost. */
void test_f16_products(void **state)
{
    test_random random = test_random_from("tensor cores, f16");
    (void)state;
    allow(0);
    kn_force_implementation("matmul_f16", "tensor");
    for (int i = 0; i < 4 * NUM_SIZES; i++) {
        const int64_t m = sizes[i / 4][0], n = sizes[i / 4][1], k = sizes[i / 4][2];
        double *a = draw(&random, m * k, false), *b = draw(&random, k * n, false), *c = NULL;
        make_f16(a, m * k);
        make_f16(b, k * n);
        kn_block_force(shape_number(i / 4 + i, KN_BLOCK_F16));
        {
            KN_SCOPE;
            kn_tensor *x = f16_matrix(a, m, k, i & 1), *y = f16_matrix(b, k, n, i & 2);
            c = read_doubles(kn_to_dtype(kn_matmul(x, y), KN_F32));
        }
        assert_non_null(c);
        check_f16(a, b, c, m, n, k);
        free(a);
        free(b);
        free(c);
    }
    assert_int_equal(kn_count_forced("matmul_f16").ran, 4 * NUM_SIZES);
    kn_block_force(NULL);
    kn_force_implementation("matmul_f16", NULL);
}

/* A window of a larger tensor, at `offset` in both of its last dimensions: neither base nor rows need to be aligned. */
static kn_tensor *window(const int64_t shape[3], int64_t offset)
{
    const int64_t whole[3] = {shape[0], shape[1] + 2 * offset, shape[2] + 3 * offset};
    kn_tensor *t = kn_to_dtype(kn_randint_with(0, 8, 3, whole, &(kn_tensor_options){.dtype = KN_I64}), KN_F16);
    return kn_narrow(kn_narrow(t, 1, offset, shape[1]), 2, offset, shape[2]);
}

/* Batches, batches times one matrix, windows at any offset: exactly the result of converting to f32, for small
 * integers. */
void test_f16_windows(void **state)
{
    static const int64_t cases[][4] = {{3, 24, 16, 40}, {2, 17, 9, 23}, {1, 130, 136, 8}};
    (void)state;
    for (int i = 0; i < 3 * 6; i++) {
        const int64_t *size = cases[i % 3], offset = i / 3 % 3 * 4 - i / 3 % 3; /* 0, 3, 6 */
        double *results[2] = {NULL, NULL};
        int64_t count = 0;
        kn_manual_seed(7);
        {
            KN_SCOPE;
            kn_tensor *a = window((const int64_t[]){size[0], size[1], size[3]}, offset);
            kn_tensor *b = window((const int64_t[]){i < 9 ? size[0] : 1, size[3], size[2]}, offset);
            for (int row = 0; row < 2; row++) {
                kn_force_implementation("matmul_f16", row ? "reference" : "tensor");
                kn_tensor *c = kn_matmul(a, b);
                CHECK_TENSOR(c);
                assert_int_equal(kn_count_forced("matmul_f16").ran, 1);
                results[row] = read_doubles(kn_to_dtype(c, KN_F32));
                count = kn_numel(c);
            }
        }
        assert_true(results[0] && results[1]);
        for (int64_t e = 0; e < count; e++)
            if (results[0][e] != results[1][e])
                fail_msg("case %d: element %d is %g, not %g", i, (int)e, results[0][e], results[1][e]);
        free(results[0]);
        free(results[1]);
    }
    kn_force_implementation("matmul_f16", NULL);
}

/* Gradients of f16 tensors are computed in f16 too; products of f32 tensors are not. */
void test_f16_gradients(void **state)
{
    (void)state;
    kn_force_implementation("matmul_f16", "tensor");
    {
        KN_SCOPE;
        kn_tensor *a = kn_full(KN_SHAPE(20, 30), 0.5, .dtype = KN_F16, .requires_grad = true);
        kn_tensor *b = kn_full(KN_SHAPE(30, 40), 0.25, .dtype = KN_F16, .requires_grad = true);
        CHECK_OK(kn_backward_with(kn_matmul(a, b), kn_ones(KN_SHAPE(20, 40), .dtype = KN_F16), false));
        CHECK_VALUES(kn_max(kn_to_dtype(kn_grad(a), KN_F32)), 10);
        CHECK_VALUES(kn_max(kn_to_dtype(kn_grad(b), KN_F32)), 10);
        assert_int_equal(kn_count_forced("matmul_f16").ran, 3);
        CHECK_TENSOR(kn_matmul(kn_ones(KN_SHAPE(20, 30)), kn_ones(KN_SHAPE(30, 40))));
        assert_int_equal(kn_count_forced("matmul_f16").ran, 3);
    }
    kn_force_implementation("matmul_f16", NULL);
}
