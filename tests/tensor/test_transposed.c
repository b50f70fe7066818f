/* test_transposed.c - copies of transposed views: every element size, sizes around tile boundaries, more dimensions,
 * and parts of larger tensors on both sides. Only copies, so every element must be exact. */
#include "support/check.h"

#include <stdlib.h>

#include "rt/rt.h"
#include "support/as_gpu.h"
#include "support/values.h"

/* Neighbours differ; exact in every dtype. */
static double value_at(int64_t i, kn_dtype dtype)
{
    return dtype == KN_BOOL ? (double)(i * 7 % 3 == 0) : dtype == KN_U8 ? (double)(i % 251) : (double)(i % 2039);
}

static kn_tensor *counted(int ndim, const int64_t *shape, kn_dtype dtype)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    double *values = malloc((size_t)(count + 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = value_at(i, dtype);
    kn_tensor *x = tensor_of_doubles(values, ndim, shape, dtype == KN_F16 ? KN_F32 : dtype, false);
    free(values);
    x = dtype == KN_F16 ? kn_to_dtype(x, KN_F16) : x;
    CHECK_TENSOR(x);
    return x;
}

/* Checks that y[i, k, j] is counted()'s value at [i, j, k], for rows of `columns`. */
static void check_swapped(kn_tensor *y, int64_t rows, int64_t columns, kn_dtype dtype)
{
    const int64_t n = kn_size(y, 0), ks = kn_size(y, 1), js = kn_size(y, 2);
    double *values = read_doubles(y);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < ks; k++)
            for (int64_t j = 0; j < js; j++)
                if (values[(i * ks + k) * js + j] != value_at((i * rows + j) * columns + k, dtype))
                    fail_msg("[%lld, %lld, %lld] of %lld x %lld x %lld is %g", (long long)i, (long long)k, (long long)j,
                             (long long)n, (long long)ks, (long long)js, values[(i * ks + k) * js + j]);
    free(values);
}

static const kn_dtype dtypes[] = {KN_F32, KN_F64, KN_F16, KN_I64, KN_I32, KN_U8, KN_BOOL};

static void check_sizes(size_t step)
{
    static const int64_t sizes[] = {1, 3, 4, 7, 8, 15, 16, 17, 63, 64, 65, 131, 300};
    const size_t count = sizeof sizes / sizeof sizes[0];
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++)
        for (size_t a = 0; a < count; a++)
            for (size_t b = 0; b < count; b += t == 0 ? step : 3) {
                KN_SCOPE;
                kn_tensor *x = counted(3, (const int64_t[]){2, sizes[a], sizes[b]}, dtypes[t]);
                check_swapped(kn_contiguous(kn_transpose(x, 1, 2)), sizes[a], sizes[b], dtypes[t]);
            }
}

TENSOR_TEST_F64(every_size_about_a_tile) { check_sizes(1); }

/* Tiles for devices with other register sizes. */
TENSOR_TEST_F64(narrower_registers)
{
    kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(kn_device_current());
    const int f32 = limits->vector_width_f32, f64 = limits->vector_width_f64;
    for (int width = 8; width >= 1; width /= 2) {
        limits->vector_width_f32 = width;
        limits->vector_width_f64 = width > 1 ? width / 2 : 1;
        check_sizes(2);
    }
    limits->vector_width_f32 = f32;
    limits->vector_width_f64 = f64;
}

/* From an offset, with rows longer than the copied part, into part of a larger tensor, whose rest does not change. */
TENSOR_TEST_F64(parts_of_larger_tensors)
{
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
        kn_tensor *x = counted(3, (const int64_t[]){2, 50, 70}, dtypes[t]);
        kn_tensor *all = kn_full(KN_SHAPE(2, 60, 41), 1, .dtype = dtypes[t]);
        kn_tensor *part = kn_narrow(kn_narrow(all, 1, 2, 55), 2, 1, 37);
        CHECK_OK(kn_copy_(part, kn_transpose(kn_narrow(kn_narrow(x, 1, 0, 37), 2, 0, 55), 1, 2)));
        check_swapped(kn_contiguous(part), 50, 70, dtypes[t]);
        kn_tensor *kept = kn_narrow(all, 2, 38, 3);
        double *values = read_doubles(kn_contiguous(kept)),
               *front = read_doubles(kn_contiguous(kn_narrow(all, 2, 0, 1)));
        for (int64_t i = 0; i < kn_numel(kept); i++)
            assert_true(values[i] == 1);
        for (int64_t i = 0; i < 120; i++)
            assert_true(front[i] == 1);
        free(values);
        free(front);
    }
}

TENSOR_TEST(more_dimensions)
{
    kn_tensor *x = counted(4, (const int64_t[]){3, 19, 5, 23}, KN_F32); /* n, c, h, w to n, h, w, c and back */
    kn_tensor *last = kn_contiguous(kn_permute(x, (const int[]){0, 2, 3, 1}));
    check_swapped(kn_reshape(last, KN_SHAPE(3, 115, 19)), 19, 115, KN_F32);
    kn_tensor *back = kn_contiguous(kn_permute(last, (const int[]){0, 3, 1, 2}));
    double *a = read_doubles(x), *b = read_doubles(back);
    for (int64_t i = 0; i < kn_numel(x); i++)
        assert_true(a[i] == b[i]);
    free(a);
    free(b);
    /* all four dimensions reversed */
    kn_tensor *turned = kn_contiguous(kn_permute(x, (const int[]){3, 2, 1, 0}));
    double *c = read_doubles(turned);
    for (int64_t i = 0; i < kn_numel(x); i++)
        assert_true(c[i] == value_at(((i % 3 * 19 + i / 3 % 19) * 5 + i / 57 % 5) * 23 + i / 285, KN_F32));
    free(c);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(every_size_about_a_tile),
        TEST(narrower_registers),
        TEST(parts_of_larger_tensors),
        TEST(more_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
