/* test_arrange.c - functions composed of views, gathers and scatters, against PyTorch's results; and what they
 * refuse. */
#include "support/check.h"

static kn_tensor *counted(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    return kn_reshape(kn_arange(0, (double)count, 1), ndim, shape);
}
#define WHOLE(...)                                                                                                     \
    kn_from_data(((int64_t[]){__VA_ARGS__}), KN_SHAPE(sizeof((int64_t[]){__VA_ARGS__}) / 8), .dtype = KN_I64)
static kn_tensor *matrix(void) { return counted(KN_SHAPE(2, 3)); }
static kn_tensor *real(int ndim, const int64_t *shape) { return kn_to_dtype(counted(ndim, shape), KN_F32); }

TENSOR_TEST(test_turning_and_repeating)
{
    CHECK_VALUES(kn_rot90(matrix(), 1, 0, 1), 2, 5, 1, 4, 0, 3);
    CHECK_VALUES(kn_rot90(matrix(), -1, 0, 1), 3, 0, 4, 1, 5, 2);
    CHECK_VALUES(kn_repeat_interleave_each(matrix(), WHOLE(2, 0, 1), 1), 0, 0, 2, 3, 3, 5);
    CHECK_VALUES(kn_repeat_interleave(matrix(), 2, 0), 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5);
    CHECK_VALUES(kn_tile(matrix(), 1, (const int64_t[]){2}), 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5);
    CHECK_SHAPE(kn_repeat(matrix(), 3, (const int64_t[]){2, 0, 1}), 2, 0, 3);
    CHECK_VALUES(kn_movedim(matrix(), 0, -1), 0, 3, 1, 4, 2, 5);
    CHECK_SHAPE(kn_unflatten(counted(KN_SHAPE(2, 6)), -1, KN_SHAPE(3, -1)), 2, 3, 2);
    CHECK_VALUES(kn_slice(matrix(), 1, -100, KN_SLICE_END, 2), 0, 2, 3, 5);
    CHECK_OK(kn_copy_(kn_slice(matrix(), 1, 1, 3, 1), kn_zeros(KN_SHAPE(1))));
}

/* Against the same with loops; and sums of repeats beyond int64, which the device reports. */
TENSOR_TEST(test_repeating_each)
{
    enum { SLICES = 1000 };
    int64_t repeats[SLICES], wanted[4 * SLICES], got[4 * SLICES], total = 0;
    for (int64_t i = 0; i < SLICES; i++) {
        repeats[i] = i * i % 7 % 5;
        for (int64_t k = 0; k < repeats[i]; k++)
            wanted[total++] = i;
    }
    kn_tensor *each = kn_from_data(repeats, KN_SHAPE(SLICES), .dtype = KN_I64), *x = counted(KN_SHAPE(SLICES));
    kn_tensor *repeated = kn_repeat_interleave_each(x, each, 0);
    CHECK_SHAPE(repeated, total);
    CHECK_OK(kn_read(kn_to_dtype(repeated, KN_I64), got, (size_t)total * sizeof *got));
    assert_memory_equal(got, wanted, (size_t)total * sizeof *got);
    CHECK_VALUES(kn_repeat_interleave_each(matrix(), kn_to_dtype(WHOLE(2), KN_I32), 0), 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4,
                 5);
    CHECK_SHAPE(kn_repeat_interleave_each(matrix(), WHOLE(0, 0, 0), 1), 2, 0);
    assert_null(kn_repeat_interleave_each(matrix(), WHOLE(2, -1, 1), 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "repeat_interleave", "must be 0 or more, not -1");
    CHECK_TENSOR(kn_repeat_interleave_each(matrix(), WHOLE(INT64_MAX, INT64_MAX, 3), 1));
    assert_int_not_equal(kn_synchronize(kn_device_current()), KN_OK);
    CHECK_ERROR(KN_ERR_ARGUMENT, "repeat_interleave");
}

TENSOR_TEST(test_splitting)
{
    kn_tensor *x = counted(KN_SHAPE(7)), *parts[7];
    CHECK_OK(kn_tensor_split(x, 3, 0, parts));
    CHECK_VALUES(parts[0], 0, 1, 2);
    CHECK_VALUES(parts[2], 5, 6);
    assert_int_equal(kn_chunk(x, 5, 0, parts), 4);
    CHECK_VALUES(parts[3], 6);
    CHECK_OK(kn_tensor_split_at(x, (const int64_t[]){2, 9, -1}, 3, 0, parts));
    CHECK_SHAPE(parts[1], 5);
    CHECK_SHAPE(parts[2], 0);
    CHECK_VALUES(parts[3], 6);
    CHECK_OK(kn_unbind(matrix(), 1, parts));
    CHECK_VALUES(parts[2], 2, 5);
    assert_int_equal(kn_split(x, 2, 0, parts, 3), 0);
    CHECK_ERROR(KN_ERR_ARGUMENT, "split", "4 parts");
    assert_int_equal(kn_split_with_sizes(x, (const int64_t[]){2, 4}, 2, 0, parts), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "split_with_sizes", "6", "7");
}

TENSOR_TEST(test_grids_and_joining)
{
    kn_tensor *grid[2], *two = counted(KN_SHAPE(2)), *three = counted(KN_SHAPE(3));
    CHECK_OK(kn_meshgrid(KN_TENSORS(two, three), true, grid));
    CHECK_VALUES(grid[0], 0, 1, 0, 1, 0, 1);
    CHECK_VALUES(kn_cartesian_prod(KN_TENSORS(two, three)), 0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2);
    CHECK_VALUES(kn_block_diag(KN_TENSORS(matrix(), kn_full(KN_SCALAR, 9))), 0, 1, 2, 0, 3, 4, 5, 0, 0, 0, 0, 9);
    CHECK_VALUES(kn_hstack(KN_TENSORS(three, two)), 0, 1, 2, 0, 1);
    CHECK_SHAPE(kn_vstack(KN_TENSORS(three, matrix())), 3, 3);
    CHECK_SHAPE(kn_dstack(KN_TENSORS(matrix(), matrix())), 2, 3, 2);
    CHECK_VALUES(kn_column_stack(KN_TENSORS(two, matrix())), 0, 0, 1, 2, 1, 3, 4, 5);
    CHECK_VALUES(kn_linspace(-1, 2, 4), -1, 0, 1, 2);
    CHECK_VALUES(kn_logspace(0, 3, 4, 2), 1, 2, 4, 8);
    CHECK_VALUES(kn_eye(2, 3), 1, 0, 0, 0, 1, 0);
    CHECK_VALUES(kn_eye(3, 2, .dtype = KN_BOOL), 1, 0, 0, 1, 0, 0);
    CHECK_SHAPE(kn_eye(0, 2), 0, 2);
    CHECK_VALUES(kn_tril_indices(3, 3, -1), 1, 2, 2, 0, 0, 1);
    CHECK_VALUES(kn_triu_indices(2, 3, 1), 0, 0, 1, 1, 2, 2);
    CHECK_VALUES(kn_triu_indices(4, 2, -1, .dtype = KN_I16), 0, 0, 1, 1, 2, 0, 1, 0, 1, 1);
    CHECK_VALUES(kn_tril_indices(3, 2, 0, .device = kn_device_host()), 0, 1, 1, 2, 2, 0, 0, 1, 0, 1);
    CHECK_VALUES(kn_tril_indices(3, 2, 0, .dtype = KN_F32), 0, 1, 1, 2, 2, 0, 0, 1, 0, 1);
    CHECK_SHAPE(kn_tril_indices(3, 0, 0), 2, 0);
}

/* Sums of sizes and offsets that no int64 holds. */
TENSOR_TEST(test_offsets_and_counts_beyond_all_sizes)
{
    kn_tensor *x = kn_ones(KN_SHAPE(3));
    CHECK_VALUES(kn_tril_indices(2, 2, INT64_MAX), 0, 0, 1, 1, 0, 1, 0, 1);
    CHECK_VALUES(kn_triu_indices(2, 2, INT64_MIN), 0, 0, 1, 1, 0, 1, 0, 1);
    assert_int_equal(kn_numel(kn_tril_indices(2, 2, INT64_MIN)), 0);
    assert_int_equal(kn_numel(kn_triu_indices(2, 2, INT64_MAX)), 0);
    assert_null(kn_tril_indices(2, INT64_MAX, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "tril_indices: 2 rows");
    assert_null(kn_arange(0, 1e30, 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "arange: from 0 to 1e+30 in steps of 1 there are too many");
    assert_null(kn_arange(-1.7e308, 1.7e308, 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "too many");
    assert_null(kn_diag_embed(x, .offset = INT64_MIN));
    CHECK_ERROR(KN_ERR_ARGUMENT, "diag_embed: offset -9223372036854775808");
    assert_null(kn_diag(x, INT64_MAX));
    CHECK_ERROR(KN_ERR_ARGUMENT, "offset 9223372036854775807");
    CHECK_SHAPE(kn_diff(x, .n = INT64_MAX), 0);
    CHECK_SHAPE(kn_diff(kn_ones(KN_SHAPE(0, 2)), .n = 2, .dim = 0), 0, 2);
}

TENSOR_TEST(test_masks)
{
    kn_tensor *x = matrix(), *odd = kn_from_data(((uint8_t[]){0, 1, 0, 1, 0, 1}), KN_SHAPE(2, 3), .dtype = KN_BOOL);
    CHECK_VALUES(kn_nonzero(odd), 0, 1, 1, 0, 1, 2);
    CHECK_SHAPE(kn_nonzero(kn_zeros(KN_SHAPE(2, 3))), 0, 2);
    CHECK_VALUES(kn_masked_select(x, odd), 1, 3, 5);
    CHECK_VALUES(kn_index(x, KN_TENSORS(NULL, WHOLE(-1, 0))), 2, 0, 5, 3);
    CHECK_VALUES(kn_masked_scatter(x, odd, WHOLE(7, 8, 9)), 0, 7, 2, 8, 4, 9);
    CHECK_VALUES(kn_one_hot(WHOLE(2, 0), -1), 0, 0, 1, 1, 0, 0);
    CHECK_VALUES(kn_scatter(kn_zeros(KN_SHAPE(2), .dtype = KN_I64), 0, WHOLE(1, 1, 1), WHOLE(3, 4, 5)), 0, 5);
    assert_null(kn_masked_fill(x, x, 0));
    CHECK_ERROR(KN_ERR_DTYPE, "masked_fill", "int64", "bool");
    assert_null(kn_index(x, KN_TENSORS(kn_ne(WHOLE(1, 0, 1), WHOLE(0, 0, 0)))));
    CHECK_ERROR(KN_ERR_SHAPE, "index", "mask", "[3]", "[2, 3]");
    assert_null(kn_scatter_add(x, 0, WHOLE(0), WHOLE(1)));
    CHECK_ERROR(KN_ERR_SHAPE, "scatter_add", "[1]", "[2, 3]");
    assert_null(kn_gather(x, 0, real(KN_SHAPE(1, 1))));
    CHECK_ERROR(KN_ERR_DTYPE, "gather", "float32");
    assert_null(kn_index_add(x, 1, WHOLE(0), real(KN_SHAPE(2, 1))));
    CHECK_ERROR(KN_ERR_DTYPE, "index_add", "int64", "float32");
    CHECK_TENSOR(kn_scatter_value(x, 1, kn_full(KN_SHAPE(1, 1), 3, .dtype = KN_I64), 1)); /* 3 of 0 .. 2 */
    assert_int_equal(kn_synchronize(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "scatter", "3");
}

TENSOR_TEST(test_embedding)
{
    kn_tensor *weight = real(KN_SHAPE(4, 2));
    CHECK_VALUES(
        kn_embedding_bag(WHOLE(0, 3, 3, 1), weight, .offsets = WHOLE(0, 0, 3), .mode = KN_BAG_SUM, .padding_idx = 3), 0,
        0, 0, 1, 2, 3);
    CHECK_VALUES(kn_embedding_bag(WHOLE(0, 3, 3, 1), weight, .offsets = WHOLE(0, 1, 4), .mode = KN_BAG_MAX,
                                  .include_last_offset = true),
                 0, 1, 6, 7);
    kn_tensor *table = kn_from_data(((float[]){3, 4, 0.25F, 0.25F}), KN_SHAPE(2, 2));
    CHECK_TENSOR(kn_embedding(WHOLE(0, 1, 0), table, .max_norm = 2.5));
    CHECK_VALUES(kn_mul_scalar(table, 4), 6, 8, 1, 1);
    assert_null(kn_embedding(WHOLE(0), weight, .padding_idx = 4));
    CHECK_ERROR(KN_ERR_ARGUMENT, "embedding", "padding_idx", "4");
    assert_null(kn_embedding(WHOLE(0), WHOLE(0)));
    CHECK_ERROR(KN_ERR_SHAPE, "embedding", "[rows, columns]");
    assert_null(kn_embedding_bag(WHOLE(0), weight));
    CHECK_ERROR(KN_ERR_SHAPE, "embedding_bag", "[bags, indices]");
    kn_module *layer = kn_nn_embedding(.num_embeddings = 4, .embedding_dim = 2, .padding_idx = -1);
    CHECK_SHAPE(kn_forward(layer, WHOLE(0, 3)), 2, 2);
    CHECK_VALUES(kn_forward(layer, WHOLE(3)), 0, 0);
    kn_module_free(layer);
}

/* What gives its input back gives a reference to it, which outside a scope is the caller's. */
static void test_results_that_are_inputs(void **state)
{
    const int64_t shape[] = {2, 3};
    (void)state;
    kn_tensor *x = kn_ones_with(2, shape, NULL), *results[] = {kn_diff(x, .n = 0), kn_sum_to_size(x, 2, shape)};
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(results[i], x);
        kn_release(results[i]);
    }
    float values[6] = {0};
    CHECK_OK(kn_read(x, values, sizeof values)); /* an error if x was released */
    assert_true(values[5] == 1);
    kn_release(x);
}

/* What functions make on the way is released with them, outside of scopes too. */
static void test_temporaries_of_compositions(void **state)
{
    (void)state;
    kn_tensor *x = kn_ones_with(2, (const int64_t[]){3, 3}, NULL);
    kn_tensor *results[] = {kn_rot90(x, 1, 0, 1),
                            kn_rot90(x, 3, 0, 1),
                            kn_roll(x, 1, (const int64_t[]){2}, NULL),
                            kn_dist(x, x, 2),
                            kn_renorm(x, 2, 0, 1),
                            kn_diff(x, .n = 2),
                            kn_trapezoid(x),
                            kn_cumulative_trapezoid(x),
                            kn_cholesky_solve(x, x, false),
                            kn_sum_to_size(x, 1, (const int64_t[]){3}),
                            kn_histogram(x, NULL, .bins = 2)};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        assert_non_null(results[i]);
        kn_release(results[i]);
    }
    kn_release(x);
}

int main(void)
{
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        TEST(test_turning_and_repeating),
        TEST(test_repeating_each),
        TEST(test_splitting),
        TEST(test_grids_and_joining),
        TEST(test_offsets_and_counts_beyond_all_sizes),
        TEST(test_masks),
        TEST(test_embedding),
        cmocka_unit_test(test_results_that_are_inputs),
        TEST(test_temporaries_of_compositions),
    };
    /* clang-format on */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
