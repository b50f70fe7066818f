/* test_any_layout.c - what operators make of views is what they make of contiguous copies of these. The elements are
 * small whole numbers, so that sums are the same in any order. */
#include "support/check.h"

#include <stdlib.h>

#include "support/as_gpu.h"
#include "support/values.h"

enum { VIEWS = 9 };

static kn_tensor *whole_numbers(int ndim, const int64_t *shape, kn_dtype dtype)
{
    kn_tensor *x = kn_randint_with(-4, 5, ndim, shape, &(kn_tensor_options){.dtype = KN_F32});
    return kn_to_dtype(dtype == KN_U8 || dtype == KN_BOOL ? kn_relu(x) : x, dtype);
}

/* A view of three dimensions, or of two. */
static kn_tensor *view_of(int kind, kn_dtype dtype)
{
    const int64_t a = 5, b = 67, c = 19;
    kn_tensor *x = whole_numbers(KN_SHAPE(a, b, c), dtype), *first = kn_narrow(x, 2, 0, 1);
    switch (kind) {
    case 0:
        return x;
    case 1:
        return kn_transpose(x, 1, 2);
    case 2:
        return kn_permute(x, (const int[]){2, 0, 1});
    case 3:
        return kn_narrow(x, 2, 1, 17);
    case 4:
        return kn_slice(x, 1, 1, b, 3);
    case 5:
        return kn_slice(x, 2, 0, c, 2);
    case 6:
        return kn_expand(first, KN_SHAPE(a, b, 40));
    case 7:
        return kn_expand(kn_narrow(x, 1, 3, 1), KN_SHAPE(a, 70, c));
    default:
        return kn_transpose(kn_expand(whole_numbers(KN_SHAPE(1, 600), dtype), KN_SHAPE(20, 600)), 0, 1);
    }
}

/* --- reductions --------------------------------------------------------------------------------------------------- */

static void check_over(kn_tensor *x, kn_tensor *copy, const int *dims, int count)
{
    check_same_bits(kn_sum_dims(x, dims, count, false), kn_sum_dims(copy, dims, count, false));
    check_same_bits(kn_amax(x, dims, count, true), kn_amax(copy, dims, count, true));
    check_same_bits(kn_any_dims(x, dims, count, false), kn_any_dims(copy, dims, count, false));
    check_same_bits(kn_count_nonzero_dims(x, dims, count, true), kn_count_nonzero_dims(copy, dims, count, true));
}

static void check_along(kn_tensor *x, kn_tensor *copy, int dim)
{
    kn_tensor *places[2];
    kn_tensor *least = kn_min_dim(x, dim, false, &places[0]), *expected = kn_min_dim(copy, dim, false, &places[1]);
    check_same_bits(least, expected);
    check_same_bits(places[0], places[1]);
}

static void check_reductions(int kind, kn_dtype dtype)
{
    KN_SCOPE;
    kn_tensor *x = view_of(kind, dtype), *copy = kn_clone(x);
    const int ndim = kn_ndim(x);
    for (unsigned set = 0; set < 1u << ndim; set++) { /* no dimension: all */
        int dims[3], count = 0;
        for (int d = 0; d < ndim; d++)
            if (set >> d & 1)
                dims[count++] = d;
        check_over(x, copy, dims, count);
        if (count == 1)
            check_along(x, copy, dims[0]);
    }
}

TENSOR_TEST(reductions)
{
    const kn_dtype dtypes[] = {KN_F32, KN_I64, KN_BF16, KN_U8};
    for (int i = 0; i < 4; i += next_size())
        for (int kind = 0; kind < VIEWS; kind++)
            check_reductions(kind, dtypes[i]);
}

/* --- moves -------------------------------------------------------------------------------------------------------- */

static void check_moves(int kind, kn_dtype dtype)
{
    KN_SCOPE;
    kn_tensor *x = view_of(kind, dtype), *copy = kn_clone(x);
    const int ndim = kn_ndim(x);
    const int64_t repeats[] = {2, 1, 3, 2};
    for (int d = 0; d < ndim; d++) {
        kn_tensor *places = kn_randint(0, kn_shape(x)[d], KN_SHAPE(23), .dtype = KN_I64);
        check_same_bits(kn_flip(x, &d, 1), kn_flip(copy, &d, 1));
        check_same_bits(kn_roll(x, 1, (const int64_t[]){3}, &d), kn_roll(copy, 1, (const int64_t[]){3}, &d));
        check_same_bits(kn_index_select(x, d, places), kn_index_select(copy, d, places));
        kn_tensor *added = kn_index_select(copy, d, places), *zeros = kn_zeros_like(copy);
        check_same_bits(kn_index_add(x, d, places, added), kn_index_add(copy, d, places, added));
        check_same_bits(kn_index_copy(zeros, d, places, kn_index_select(x, d, places)),
                        kn_index_copy(zeros, d, places, added));
    }
    check_same_bits(kn_tril(x, 1), kn_tril(copy, 1));
    check_same_bits(kn_repeat(x, ndim, repeats), kn_repeat(copy, ndim, repeats));
    check_same_bits(kn_repeat(x, ndim + 1, repeats), kn_repeat(copy, ndim + 1, repeats));
}

TENSOR_TEST(moves)
{
    const kn_dtype dtypes[] = {KN_F32, KN_I64, KN_BF16, KN_U8};
    for (int i = 0; i < 4; i += next_size())
        for (int kind = 0; kind < VIEWS; kind++)
            check_moves(kind, dtypes[i]);
}

/* --- sorting ------------------------------------------------------------------------------------------------------ */

/* Is `values` sorted, `places` a stable order, and are these elements of x? Rows are along the last dimension. */
static void check_order(kn_tensor *x, bool descending)
{
    KN_SCOPE;
    kn_tensor *places = NULL, *values = kn_sort(x, &places, .descending = descending);
    check_same_bits(values, kn_gather(x, -1, places));
    double *value = read_doubles(values);
    int64_t *place = read_integers(places);
    const int64_t n = kn_shape(x)[kn_ndim(x) - 1];
    assert_true(value && place);
    for (int64_t i = 1; i < kn_numel(x); i++) {
        const bool follows = descending ? value[i - 1] > value[i] : value[i - 1] < value[i];
        if (i % n != 0)
            assert_true(follows || (value[i - 1] == value[i] && place[i - 1] < place[i]));
    }
    free(value);
    free(place);
}

static void check_orders(kn_tensor *x)
{
    kn_tensor *rising = kn_sort(x, NULL);
    for (int descending = 0; descending < 2; descending++) {
        check_order(x, descending);
        check_order(rising, descending);
        check_order(kn_flip(rising, (const int[]){-1}, 1), descending);
        check_order(kn_roll(rising, 1, (const int64_t[]){-1}, (const int[]){-1}), descending); /* all but the last */
        check_order(kn_expand(kn_narrow(x, -1, 1, 1), kn_ndim(x), kn_shape(x)), descending);
    }
}

/* Rows that one work-item sorts, and those that all sort together, whose digits are partly the same. */
TENSOR_TEST(rows_in_order)
{
    const kn_dtype dtypes[] = {KN_F32, KN_I64, KN_BF16, KN_U8};
    for (int i = 0; i < 4; i += next_size()) {
        check_orders(whole_numbers(KN_SHAPE(7, 301), dtypes[i]));
        check_orders(whole_numbers(KN_SHAPE(33001), dtypes[i]));
    }
    check_orders(kn_randint(0, 100000, KN_SHAPE(33001), .dtype = KN_I64));
    check_orders(kn_expand(kn_arange(0, 301, 1), KN_SHAPE(7, 301))); /* no two are equal */
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

/* The coordinates of the true elements, one after another. */
static int64_t *coordinates_of(const kn_tensor *mask, int64_t *count)
{
    int64_t *is_true = read_integers(mask), *list = malloc(((size_t)kn_numel(mask) * 3 + 1) * sizeof *list);
    assert_true(is_true && list);
    *count = 0;
    for (int64_t i = 0; i < kn_numel(mask); i++) {
        int64_t rest = i;
        for (int d = kn_ndim(mask) - 1; d >= 0; d--) {
            list[*count * kn_ndim(mask) + d] = rest % kn_shape(mask)[d];
            rest /= kn_shape(mask)[d];
        }
        *count += is_true[i] != 0;
    }
    free(is_true);
    return list;
}

static void check_places(kn_tensor *x, double least)
{
    KN_SCOPE;
    const int ndim = kn_ndim(x);
    kn_tensor *mask = kn_gt_scalar(x, least), *columns[3], *all = kn_nonzero(mask);
    int64_t count, *expected = coordinates_of(mask, &count), *found = read_integers(all);
    CHECK_SHAPE(all, count, ndim);
    assert_memory_equal(found, expected, (size_t)(count * ndim) * sizeof *found);
    CHECK_OK(kn_nonzero_as_tuple(mask, columns));
    check_same_bits(kn_stack(columns, ndim, 1), all);
    kn_tensor *picked = kn_index(x, columns, ndim), *selected = kn_masked_select(x, mask);
    check_same_bits(picked, selected);
    free(expected);
    free(found);
}

TENSOR_TEST(places_of_true_elements)
{
    const double least[] = {-2, -1, 0.5, 0.99, 2}; /* all, and none */
    for (int i = 0; i < 5; i++) {
        check_places(kn_rand(KN_SHAPE(40009)), least[i]);
        check_places(kn_transpose(kn_rand(KN_SHAPE(301, 57)), 0, 1), least[i]);
        check_places(kn_rand(KN_SHAPE(17, 101, 5)), least[i]);
        check_places(kn_expand(kn_rand(KN_SHAPE(3, 1, 7)), KN_SHAPE(3, 90, 7)), least[i]);
    }
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {TEST(reductions), TEST(moves), TEST(rows_in_order),
                                       TEST(places_of_true_elements)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
