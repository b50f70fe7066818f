/* test_selection.c - kthvalue and the medians pick what sorting puts at that place, with its index: for every dtype,
 * sizes round those of vectors, and values that are hard to order. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/as_gpu.h"
#include "support/values.h"

enum { ROWS = 3, LONGEST = 4099 };

static const int64_t lengths[] = {1, 2, 15, 16, 17, 33, 257, 1000, LONGEST};

typedef double filling(test_random *random, int64_t i);

static double anything(test_random *random, int64_t i) { return (void)i, test_random_uniform(random, -100, 100); }
static double equal(test_random *random, int64_t i) { return (void)random, (void)i, 3; }
static double few(test_random *random, int64_t i) { return (void)i, (double)(test_random_next(random) % 4); }
static double but_one(test_random *random, int64_t i) { return (void)random, i == 13 ? -1 : 2; }
static double rising(test_random *random, int64_t i) { return (void)random, (double)(i % 128); }
/* Magnitudes far apart, zeros of both signs, infinities and NaN. */
static double special(test_random *random, int64_t i)
{
    const double list[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-38, -1e-38, 1e30, -1e30, 1};
    return (void)i, list[test_random_next(random) % 10];
}
static double not_a_number(test_random *random, int64_t i) { return (void)random, (void)i, NAN; }

static filling *const fillings[] = {anything, equal, few, but_one, rising, special, not_a_number};
enum { FOR_WHOLE = 5, ALL = sizeof fillings / sizeof fillings[0] };

static kn_tensor *matrix(filling *fill, int64_t n, kn_dtype dtype)
{
    test_random random = test_random_from("selection");
    static double values[ROWS * LONGEST];
    const bool is_unsigned = dtype == KN_U8 || dtype == KN_BOOL;
    for (int64_t i = 0; i < ROWS * n; i++)
        values[i] = is_unsigned ? fabs(fill(&random, i)) : fill(&random, i);
    return kn_to_dtype(tensor_of_doubles(values, 2, (const int64_t[]){ROWS, n}, KN_F32, false), dtype);
}

/* Is column `at[row]` of each row of `all` the element in `one`, bit for bit? */
static void check_picked(kn_tensor *one, kn_tensor *all, const int64_t *at)
{
    size_t size, whole;
    char *picked = read_bytes(one, &size), *from = read_bytes(all, &whole);
    assert_non_null(picked);
    assert_non_null(from);
    const size_t n = (size_t)kn_shape(all)[1], element = size / ROWS;
    assert_int_equal(whole, size * n);
    for (size_t row = 0; row < ROWS; row++)
        assert_memory_equal(picked + row * element, from + (row * n + (size_t)at[row]) * element, element);
    free(picked);
    free(from);
}

static void check_place(kn_tensor *value, kn_tensor *index, kn_tensor *sorted, kn_tensor *places, const int64_t *at)
{
    CHECK_TENSOR(value);
    check_picked(value, sorted, at);
    check_picked(index, places, at);
}

static void check_medians(kn_tensor *x, kn_tensor *sorted, kn_tensor *places)
{
    const int64_t n = kn_shape(x)[1];
    kn_tensor *index = NULL, *value = NULL;
    int64_t *nans = read_integers(kn_sum_dims(kn_to_dtype(kn_isnan(x), KN_I64), (const int[]){1}, 1, false));
    int64_t of[ROWS], of_numbers[ROWS];
    assert_non_null(nans);
    for (int row = 0; row < ROWS; row++) {
        const int64_t numbers = n - nans[row];
        of[row] = nans[row] ? numbers : (n - 1) / 2;
        of_numbers[row] = numbers ? (numbers - 1) / 2 : 0;
    }
    free(nans);
    value = kn_median_dim(x, 1, false, &index);
    check_place(value, index, sorted, places, of);
    value = kn_nanmedian_dim(x, 1, false, &index);
    check_place(value, index, sorted, places, of_numbers);
}

static void check_matrix(filling *fill, int64_t n, kn_dtype dtype)
{
    KN_SCOPE;
    kn_tensor *x = matrix(fill, n, dtype), *places = NULL, *sorted = kn_sort(x, &places);
    CHECK_TENSOR(sorted);
    for (int part = 0; part < 5; part++) {
        const int64_t k = (n - 1) * part / 4, at[ROWS] = {k, k, k};
        kn_tensor *index = NULL, *value = kn_kthvalue(x, k + 1, &index);
        check_place(value, index, sorted, places, at);
    }
    if (dtype != KN_BOOL)
        check_medians(x, sorted, places);
}

static void check_dtype(kn_dtype dtype)
{
    const int count = kn_dtype_is_floating(dtype) ? ALL : FOR_WHOLE;
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (int f = 0; f < count; f++)
            check_matrix(fillings[f], lengths[l], dtype);
}

TENSOR_TEST(what_sorting_puts_there)
{
    for (kn_dtype dtype = check_has_f64() ? KN_F64 : KN_F32; dtype <= KN_BOOL; dtype++)
        check_dtype(dtype);
}

static void check_equal(kn_tensor *a, kn_tensor *b)
{
    bool equal = false;
    CHECK_OK(kn_equal(a, b, &equal));
    assert_true(equal);
}

/* More rows than there are work-items, which use their memory again; and a long one. */
TENSOR_TEST(many_rows_and_a_long_one)
{
    kn_tensor *index = NULL, *x = kn_rand(KN_SHAPE(10007, 40)), *places = NULL, *sorted = kn_sort(x, &places);
    kn_tensor *value = kn_kthvalue(x, 20, &index);
    check_equal(value, kn_select(sorted, 1, 19));
    check_equal(index, kn_select(places, 1, 19));
    x = kn_randn(KN_SHAPE(1, 300007));
    sorted = kn_sort(x, &places);
    value = kn_median_dim(x, 1, false, &index);
    check_equal(value, kn_select(sorted, 1, 150003));
    check_equal(index, kn_select(places, 1, 150003));
    value = kn_kthvalue(x, 20, &index);
    check_equal(value, kn_select(sorted, 1, 19));
    check_equal(index, kn_select(places, 1, 19));
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {TEST(what_sorting_puts_there), TEST(many_rows_and_a_long_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
