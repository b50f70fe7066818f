/* test_layouts.c - elementwise operators on operands whose dimensions lie in memory in other orders: the bits of the
 * same operators on contiguous copies, and PyTorch's order of the results. */
#include "support/check.h"

#include <string.h>

#include "support/as_gpu.h"

static kn_tensor *random_of(kn_dtype dtype, int ndim, const int64_t *shape)
{
    return kn_to_dtype(kn_mul_scalar(kn_randn_with(ndim, shape, &(const kn_tensor_options){0}), 50), dtype);
}

static kn_tensor *swapped(kn_tensor *x) { return kn_transpose(x, -2, -1); }

/* --- values ------------------------------------------------------------------------------------------------------- */

enum { MOST = 8 };

/* Returns the number of results. */
typedef int computation(kn_tensor *results[MOST], kn_tensor *a, kn_tensor *b);

static int compute(kn_tensor *results[MOST], kn_tensor *a, kn_tensor *b)
{
    int n = 0;
    results[n++] = kn_add(a, b);
    results[n++] = kn_sub(b, a);
    results[n++] = kn_lt(a, b);
    results[n++] = kn_where(kn_gt(b, a), a, kn_mul_scalar(b, 2));
    results[n++] = kn_exp(kn_sub(a, kn_abs(a)));
    results[n++] = kn_to_dtype(b, KN_F32);
    results[n] = kn_clone(a);
    CHECK_TENSOR(kn_add_(results[n++], b));
    return n;
}

static void check_as_contiguous(computation *code, kn_tensor *a, kn_tensor *b)
{
    kn_tensor *got[MOST], *wanted[MOST];
    const int count = code(got, a, b);
    code(wanted, kn_contiguous(a), kn_contiguous(b));
    for (int i = 0; i < count; i++)
        check_same_bits(kn_contiguous(got[i]), kn_contiguous(wanted[i]));
}

/* Sizes below and above what is copied to be turned; one of both operands, or both, in the other order. */
static void check_sizes(computation *code, kn_dtype dtype)
{
    static const int64_t sizes[][3] = {{1, 3, 5},    {1, 127, 131}, {3, 200, 90},
                                       {2, 9, 1000}, {2, 1000, 9},  {1, 256, 64}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        KN_SCOPE;
        const int64_t n = sizes[s][0], rows = sizes[s][1], columns = sizes[s][2];
        kn_tensor *a = random_of(dtype, KN_SHAPE(n, rows, columns));
        kn_tensor *b = random_of(dtype, KN_SHAPE(n, columns, rows));
        kn_tensor *row = random_of(dtype, KN_SHAPE(rows, 1)), *plane = random_of(dtype, KN_SHAPE(columns, rows));
        check_as_contiguous(code, a, swapped(b));
        check_as_contiguous(code, swapped(a), b);
        check_as_contiguous(code, swapped(a), swapped(kn_contiguous(swapped(b))));
        check_as_contiguous(code, a, swapped(plane));
        check_as_contiguous(code, swapped(a), swapped(row));
    }
}

TENSOR_TEST(the_bits_of_contiguous_operands)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_BF16, KN_I64, KN_U8};
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        check_sizes(compute, dtypes[t]);
}

TENSOR_TEST(the_bits_of_contiguous_operands_in_fused_kernels)
{
    KN_FUSE(true);
    check_sizes(compute, KN_F32);
}

/* Written through a view in another order, in place. */
TENSOR_TEST(changes_of_transposed_views)
{
    kn_tensor *x = kn_randn(KN_SHAPE(130, 170)), *y = kn_randn(KN_SHAPE(170, 130));
    kn_tensor *wanted = kn_add(kn_contiguous(swapped(x)), y), *same = kn_add(x, kn_contiguous(swapped(y)));
    CHECK_TENSOR(kn_add_(swapped(x), y));
    check_same_bits(kn_contiguous(swapped(x)), wanted);
    check_same_bits(x, same);
    CHECK_OK(kn_copy_(swapped(x), y));
    check_same_bits(x, kn_contiguous(swapped(y)));
}

/* Read backwards along either dimension or both, from views that lie across. */
TENSOR_TEST(flips_of_transposed_views)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_BF16, KN_U8};
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
        kn_tensor *x = swapped(random_of(dtypes[t], KN_SHAPE(3, 90, 200))), *plain = kn_contiguous(x);
        kn_tensor *part = kn_slice(x, 1, 3, 190, 1), *plain_part = kn_slice(plain, 1, 3, 190, 1);
        for (int first = 0; first < 3; first++)
            for (int count = 1; first + count <= 3; count++) {
                const int dims[] = {first, first + 1, first + 2};
                check_same_bits(kn_contiguous(kn_flip(x, dims, count)), kn_flip(plain, dims, count));
                check_same_bits(kn_contiguous(kn_flip(part, dims, count)),
                                kn_flip(kn_contiguous(plain_part), dims, count));
            }
        check_same_bits(kn_tril(x, 5), kn_tril(plain, 5));
    }
}

/* Rows too short for a vector, in reverse order, and parts of such rows. */
TENSOR_TEST(short_rows)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_BF16, KN_U8};
    static const int64_t widths[] = {2, 3, 7, 8, 15, 16, 17};
    const int64_t rows = 700;
    kn_tensor *backwards = kn_rsub_scalar(kn_arange(0, rows, 1), rows - 1);
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            KN_SCOPE;
            kn_tensor *x = random_of(dtypes[t], KN_SHAPE(rows, widths[w]));
            kn_tensor *part = kn_narrow(random_of(dtypes[t], KN_SHAPE(rows, widths[w] + 2)), 1, 1, widths[w]);
            kn_tensor *places = kn_arange(1, widths[w] - 1, 1);
            check_same_bits(kn_flip(x, (const int[]){0}, 1), kn_index_select(x, 0, backwards));
            check_same_bits(kn_flip(part, (const int[]){0}, 1), kn_index_select(kn_clone(part), 0, backwards));
            check_same_bits(kn_contiguous(kn_narrow(x, 1, 1, widths[w] - 2)), kn_index_select(x, 1, places));
        }
}

/* --- elements that are the same ----------------------------------------------------------------------------------- */

static int compute_and_convert(kn_tensor *results[MOST], kn_tensor *a, kn_tensor *b)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F16, KN_BF16, KN_I64, KN_U8, KN_BOOL};
    int n = 0;
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        results[n++] = kn_to_dtype(a, dtypes[t]);
    results[n++] = kn_where(kn_lt(a, b), b, a);
    results[n++] = kn_eq(b, a);
    return n;
}

static int compute_of_one(kn_tensor *results[MOST], kn_tensor *a, kn_tensor *b)
{
    int n = 0;
    results[n++] = kn_exp(a);
    results[n++] = kn_sqrt(kn_abs(b));
    results[n++] = kn_relu(a);
    results[n++] = kn_mul(a, b);
    return n;
}

/* As many as are computed once and copied, and fewer. */
TENSOR_TEST(the_bits_of_expanded_operands)
{
    static const int64_t parts[][3] = {{1, 1, 250}, {1, 90, 1}, {7, 1, 1}, {1, 1, 1}, {2, 1, 250}, {3, 40, 1}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (int64_t n = 10; n <= 160; n *= 16) {
            KN_SCOPE;
            const int64_t *part = parts[i], shape[] = {part[0] > 1 ? part[0] : 3, part[1] > 1 ? part[1] : n, 250};
            kn_tensor *a = kn_expand(random_of(KN_F32, 3, part), 3, shape);
            kn_tensor *b = kn_expand(random_of(KN_F32, 3, part), 3, shape);
            check_as_contiguous(compute_of_one, a, b);
            check_as_contiguous(compute_of_one, kn_transpose(a, 0, 1), kn_transpose(b, 0, 1));
            check_as_contiguous(compute_and_convert, kn_to_dtype(a, KN_I64), b);
        }
}

/* --- elements that are apart -------------------------------------------------------------------------------------- */

static kn_tensor *every(kn_tensor *x, int step) { return kn_slice(x, -1, 1, KN_SLICE_END, step); }

/* Rows that are longer and shorter than what is packed at once, and one row only. */
TENSOR_TEST(the_bits_of_elements_apart)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F16, KN_BF16, KN_I64, KN_U8, KN_BOOL};
    static const int64_t rows[][2] = {{1, 3001}, {7, 1500}, {60, 77}, {300, 9}};
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int step = 2; step <= 5; step++) {
                KN_SCOPE;
                kn_tensor *a = every(random_of(dtypes[t], 2, rows[r]), step);
                kn_tensor *b = every(random_of(dtypes[t], 2, rows[r]), step), *line = kn_select(b, 0, 0);
                kn_tensor *other = kn_contiguous(b), *column = kn_narrow(b, 1, 0, 1);
                check_as_contiguous(compute_and_convert, a, b);
                check_as_contiguous(compute_and_convert, a, other);
                check_as_contiguous(compute_and_convert, other, a);
                check_as_contiguous(compute_and_convert, a, line);
                check_as_contiguous(compute_and_convert, a, column);
            }
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

static kn_tensor *leaf_of(kn_tensor *x)
{
    kn_tensor *leaf = kn_detach(x);
    kn_set_requires_grad(leaf, true);
    return leaf;
}

TENSOR_TEST(gradients_through_other_orders)
{
    kn_tensor *x = leaf_of(kn_randn(KN_SHAPE(140, 150))), *y = leaf_of(kn_randn(KN_SHAPE(150, 140)));
    kn_tensor *x_plain = leaf_of(x), *y_plain = leaf_of(y), *weight = kn_randn(KN_SHAPE(150, 140));
    CHECK_OK(kn_backward(kn_sum(kn_mul(kn_tanh(kn_mul(swapped(x), y)), weight))));
    CHECK_OK(kn_backward(kn_sum(kn_mul(kn_tanh(kn_mul(kn_contiguous(swapped(x_plain)), y_plain)), weight))));
    check_same_bits(kn_contiguous(kn_grad(x)), kn_contiguous(kn_grad(x_plain)));
    check_same_bits(kn_contiguous(kn_grad(y)), kn_contiguous(kn_grad(y_plain)));
}

/* --- the order of results ----------------------------------------------------------------------------------------- */

static void check_strides(const kn_tensor *x, int64_t a, int64_t b, int64_t c)
{
    CHECK_TENSOR(x);
    assert_int_equal(kn_stride(x, 0), a);
    assert_int_equal(kn_stride(x, 1), b);
    assert_int_equal(kn_stride(x, 2), c);
}

/* As PyTorch 2.15's. */
TENSOR_TEST(the_order_of_results)
{
    kn_tensor *x = kn_ones(KN_SHAPE(2, 3, 4)), *y = kn_ones(KN_SHAPE(2, 4, 3)), *line = kn_ones(KN_SHAPE(3));
    kn_tensor *last = kn_permute(x, (const int[]){1, 2, 0});
    check_strides(kn_exp(x), 12, 4, 1);
    check_strides(kn_exp(swapped(x)), 12, 1, 4);
    check_strides(kn_exp(last), 4, 1, 12);
    check_strides(kn_to_dtype(last, KN_I32), 4, 1, 12);
    check_strides(kn_add(swapped(x), y), 12, 1, 4); /* the first operand decides */
    check_strides(kn_add(y, swapped(x)), 12, 3, 1);
    check_strides(kn_add(line, swapped(x)), 12, 1, 4); /* one that is broadcast does not */
    check_strides(kn_exp(kn_slice(swapped(x), 1, 0, KN_SLICE_END, 2)), 6, 1, 2);
    check_strides(kn_exp(kn_expand(line, KN_SHAPE(2, 4, 3))), 12, 3, 1);
    check_strides(kn_contiguous(kn_exp(last)), 8, 2, 1);
    check_strides(kn_clone(last), 4, 1, 12);
    check_strides(kn_flip(last, (const int[]){0, 1}, 2), 4, 1, 12);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(the_bits_of_contiguous_operands),
        TEST(the_bits_of_contiguous_operands_in_fused_kernels),
        TEST(changes_of_transposed_views),
        TEST(flips_of_transposed_views),
        TEST(short_rows),
        TEST(the_bits_of_expanded_operands),
        TEST(the_bits_of_elements_apart),
        TEST(gradients_through_other_orders),
        TEST(the_order_of_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
