/* test_collectives.c - broadcast, sums, scatter, gather and all_reduce over three devices made from one CPU: values,
 * devices, sharing of memory, gradients, and the order of sums. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/as_gpu.h"
#include "support/values.h"

#define DEVICES 3

static kn_device **devices(void)
{
    static kn_device *all[DEVICES];
    if (kn_device_count() < DEVICES)
        skip();
    for (int i = 0; i < DEVICES; i++)
        all[i] = kn_device_at(i);
    return all;
}

/* --- broadcast ---------------------------------------------------------------------------------------------------- */

TENSOR_TEST(broadcast_copies_to_every_device_and_keeps_what_is_there)
{
    kn_device **all = devices();
    kn_tensor *x = kn_arange(0, 6, 1, .dtype = KN_F32, .device = all[1]), *out[DEVICES];
    x = kn_t(kn_reshape(x, KN_SHAPE(2, 3))); /* not contiguous */
    CHECK_OK(kn_comm_broadcast(x, all, DEVICES, out));
    assert_ptr_equal(out[1], x);
    for (int i = 0; i < DEVICES; i++) {
        assert_ptr_equal(kn_device_of(out[i]), all[i]);
        CHECK_SHAPE(out[i], 3, 2);
        CHECK_VALUES(out[i], 0, 3, 1, 4, 2, 5);
    }
    kn_tensor *host = kn_to(x, kn_device_host());
    CHECK_OK(kn_comm_broadcast(host, all, DEVICES, out));
    for (int i = 0; i < DEVICES; i++)
        CHECK_VALUES(out[i], 0, 3, 1, 4, 2, 5);
    kn_tensor *nothing = kn_zeros(KN_SHAPE(0, 4), .device = all[0]);
    CHECK_OK(kn_comm_broadcast(nothing, all, DEVICES, out));
    CHECK_SHAPE(out[2], 0, 4);
}

/* 40 tensors of all dtypes, in buffers of every size: each arrives as itself. */
TENSOR_TEST_F64(broadcast_coalesced_brings_every_tensor_through)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F64, KN_I64, KN_F16, KN_U8, KN_BOOL, KN_I32, KN_BF16, KN_I8, KN_I16};
    static const size_t sizes[] = {0, 1, 64, 1000};
    enum { COUNT = 40 };
    kn_device **all = devices();
    kn_tensor *tensors[COUNT], *out[COUNT * DEVICES];
    for (int t = 0; t < COUNT; t++)
        tensors[t] = kn_full(KN_SHAPE(t % 5, 1 + t % 3), t % 2 ? 1 : t, .dtype = dtypes[t % 10], .device = all[0]);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        CHECK_OK(kn_comm_broadcast_coalesced(tensors, COUNT, all, DEVICES, sizes[s], out));
        for (int i = 0; i < DEVICES * COUNT; i++) {
            kn_tensor *from = tensors[i % COUNT];
            size_t expected_size, size;
            assert_ptr_equal(kn_device_of(out[i]), all[i / COUNT]);
            assert_int_equal(kn_dtype_of(out[i]), kn_dtype_of(from));
            void *expected = read_bytes(from, &expected_size), *actual = read_bytes(out[i], &size);
            assert_int_equal(size, expected_size);
            assert_memory_equal(actual, expected, size);
            free(expected);
            free(actual);
        }
    }
    assert_ptr_equal(out[7], tensors[7]);
}

/* Tensors packed into one buffer stay independent: changing one does not affect backward through its neighbour. */
TENSOR_TEST(copies_in_one_buffer_are_changed_one_by_one)
{
    kn_device **all = devices();
    kn_tensor *pair[] = {kn_full(KN_SHAPE(3), 2, .device = all[0]), kn_full(KN_SHAPE(3), 5, .device = all[0])};
    kn_tensor *out[2];
    CHECK_OK(kn_comm_broadcast_coalesced(pair, 2, all + 1, 1, 0, out));
    kn_tensor *x = kn_ones(KN_SHAPE(3), .device = all[1], .requires_grad = true);
    kn_tensor *loss = kn_sum(kn_mul(x, out[1]));
    CHECK_TENSOR(kn_add_(out[0], out[0]));
    CHECK_OK(kn_backward(loss));
    CHECK_VALUES(kn_grad(x), 5, 5, 5);
    CHECK_VALUES(out[0], 4, 4, 4);
    CHECK_VALUES(pair[0], 2, 2, 2);
}

/* Every copy of every tensor has its own weight in the loss; the gradient is the sum of the weights. */
TENSOR_TEST_F64(gradients_of_a_broadcast_are_summed)
{
    kn_device **all = devices();
    for (size_t buffer_size = 0; buffer_size <= 64; buffer_size += 32) {
        kn_tensor *leaves[3], *out[3 * DEVICES], *loss = NULL;
        for (int t = 0; t < 3; t++)
            leaves[t] = kn_ones(KN_SHAPE(4), .dtype = KN_F64, .device = all[0], .requires_grad = t != 1);
        CHECK_OK(kn_comm_broadcast_coalesced(leaves, 3, all, DEVICES, buffer_size, out));
        for (int i = 0; i < 3 * DEVICES; i++) {
            if (i == 8)
                continue; /* the last copy of the last tensor is unused */
            kn_tensor *term = kn_to(kn_sum(kn_mul_scalar(out[i], pow(10, i / 3))), all[2]);
            loss = loss ? kn_add(loss, term) : term;
        }
        CHECK_OK(kn_backward(loss));
        CHECK_VALUES(kn_grad(leaves[0]), 111, 111, 111, 111);
        assert_null(kn_grad(leaves[1]));
        CHECK_VALUES(kn_grad(leaves[2]), 11, 11, 11, 11);
        assert_ptr_equal(kn_device_of(kn_grad(leaves[2])), all[0]);
    }
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

/* In float32, (1e8 + 1) - 1e8 is 0 and (1e8 - 1e8) + 1 is 1: the result shows the order. */
TENSOR_TEST(sums_are_taken_in_the_order_of_the_list)
{
    kn_device **all = devices();
    const float values[] = {1e8f, 1, -1e8f};
    for (int destination = 0; destination < DEVICES; destination++)
        for (int turn = 0; turn < DEVICES; turn++) {
            kn_tensor *list[3], *other[3];
            for (int i = 0; i < 3; i++) {
                list[i] = kn_full(KN_SHAPE(5), values[i], .device = all[(i + turn) % 3]);
                other[i] = kn_full(KN_SHAPE(5), values[(3 - i) % 3], .device = all[(i + turn) % 3]);
            }
            kn_tensor *sum = kn_comm_reduce_add(list, 3, all[destination]);
            CHECK_VALUES(sum, 0, 0, 0, 0, 0);
            assert_ptr_equal(kn_device_of(sum), all[destination]);
            CHECK_VALUES(kn_comm_reduce_add(other, 3, all[destination]), 1, 1, 1, 1, 1);
            CHECK_VALUES(list[0], 1e8, 1e8, 1e8, 1e8, 1e8); /* unchanged */
        }
}

TENSOR_TEST(sums_of_whole_numbers_views_and_one_device)
{
    kn_device **all = devices();
    kn_tensor *whole[] = {kn_full(KN_SHAPE(2), 3, .dtype = KN_I64, .device = all[1]),
                          kn_full(KN_SHAPE(2), 4, .dtype = KN_I64, .device = all[1])};
    CHECK_VALUES(kn_comm_reduce_add(whole, 2, NULL), 7, 7);
    CHECK_DTYPE(kn_comm_reduce_add(whole, 2, NULL), KN_I64);
    kn_tensor *alone = kn_comm_reduce_add(whole, 1, all[1]);
    assert_ptr_not_equal(alone, whole[0]);
    CHECK_VALUES(alone, 3, 3);
    kn_tensor *square = kn_reshape(kn_arange(0, 4, 1, .dtype = KN_F32, .device = all[0]), KN_SHAPE(2, 2));
    kn_tensor *views[] = {kn_t(square), kn_ones(KN_SHAPE(2, 2), .device = all[2])};
    CHECK_VALUES(kn_comm_reduce_add(views, 2, all[1]), 1, 3, 2, 4);
}

TENSOR_TEST(coalesced_sums_and_their_gradients)
{
    kn_device **all = devices();
    for (size_t buffer_size = 0; buffer_size <= 128; buffer_size += 64) {
        kn_tensor *inputs[2 * DEVICES], *sums[2];
        for (int i = 0; i < DEVICES; i++)
            for (int t = 0; t < 2; t++)
                inputs[2 * i + t] =
                    kn_full(KN_SHAPE(7, 1 + t), i + 10 * t, .device = all[i], .requires_grad = i + t != 0);
        CHECK_OK(kn_comm_reduce_add_coalesced(inputs, DEVICES, 2, all[1], buffer_size, sums));
        CHECK_VALUES(sums[0], 3, 3, 3, 3, 3, 3, 3);
        CHECK_SHAPE(sums[1], 7, 2);
        CHECK_VALUES(kn_select(sums[1], 0, 6), 33, 33);
        CHECK_OK(kn_backward(kn_add(kn_sum(sums[0]), kn_mul_scalar(kn_sum(sums[1]), 2))));
        assert_null(kn_grad(inputs[0]));
        CHECK_VALUES(kn_grad(inputs[2]), 1, 1, 1, 1, 1, 1, 1);
        CHECK_VALUES(kn_select(kn_grad(inputs[5]), 0, 0), 2, 2);
        assert_ptr_equal(kn_device_of(kn_grad(inputs[5])), all[2]);
    }
}

/* --- scatter and gather ------------------------------------------------------------------------------------------- */

static void check_chunks(int64_t size, int count, const int64_t *given, const int64_t *expected, int chunks)
{
    kn_device **all = devices(), *list[4] = {all[0], all[1], all[2], all[0]};
    for (int dim = 0; dim < 2; dim++) {
        kn_tensor *row = kn_arange(0, (double)size, 1, .dtype = KN_F32, .device = all[0]), *out[4];
        kn_tensor *x = dim == 0 ? kn_unsqueeze(row, 1) : kn_unsqueeze(row, 0);
        CHECK_OK(kn_comm_scatter(x, list, count, given, dim - 2, out));
        int64_t start = 0;
        for (int i = 0; i < count; i++) {
            if (i >= chunks) {
                assert_null(out[i]);
                continue;
            }
            assert_int_equal(kn_size(out[i], dim), expected[i]);
            assert_ptr_equal(kn_device_of(out[i]), list[i]);
            double *values = read_doubles(out[i]);
            for (int64_t k = 0; k < expected[i]; k++)
                assert_true(values[k] == (double)(start + k));
            free(values);
            start += expected[i];
        }
        kn_tensor *back = kn_comm_gather(out, chunks, dim, all[2]);
        CHECK_TENSOR(back);
        assert_ptr_equal(kn_device_of(back), all[2]);
        assert_int_equal(kn_size(back, dim), size);
        double *values = read_doubles(back);
        for (int64_t k = 0; k < size; k++)
            assert_true(values[k] == (double)k);
        free(values);
    }
}
#define CHUNKS(...) ((const int64_t[]){__VA_ARGS__}), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* The sizes of torch.chunk, and explicit ones. */
TENSOR_TEST(scatter_cuts_as_torch_chunk_does_and_gather_undoes_it)
{
    check_chunks(128, 3, NULL, CHUNKS(43, 43, 42));
    check_chunks(5, 4, NULL, CHUNKS(2, 2, 1));
    check_chunks(10, 4, NULL, CHUNKS(3, 3, 3, 1));
    check_chunks(2, 3, NULL, CHUNKS(1, 1));
    check_chunks(1, 3, NULL, CHUNKS(1));
    check_chunks(0, 3, NULL, CHUNKS(0, 0, 0));
    check_chunks(6, 1, NULL, CHUNKS(6));
    check_chunks(7, 3, (const int64_t[]){1, 0, 6}, CHUNKS(1, 0, 6));
}

TENSOR_TEST(a_chunk_on_its_own_device_is_a_view_and_the_host_may_be_scattered)
{
    kn_device **all = devices();
    kn_tensor *x = kn_zeros(KN_SHAPE(4), .device = all[0]), *out[2];
    CHECK_OK(kn_comm_scatter(x, all, 2, NULL, 0, out));
    CHECK_TENSOR(kn_fill_(out[0], 3));
    CHECK_TENSOR(kn_fill_(out[1], 7));
    CHECK_VALUES(x, 3, 3, 0, 0);
    kn_tensor *host = kn_to(kn_comm_gather(out, 2, 0, all[1]), kn_device_host());
    CHECK_OK(kn_comm_scatter(host, all + 1, 2, NULL, 0, out));
    CHECK_VALUES(out[1], 7, 7);
    assert_ptr_equal(kn_device_of(out[1]), all[2]);
    kn_tensor *home = kn_comm_gather(out, 2, 0, kn_device_host());
    CHECK_VALUES(home, 3, 3, 7, 7);
    assert_ptr_equal(kn_device_of(home), kn_device_host());
}

TENSOR_TEST(numbers_gather_to_a_vector)
{
    kn_device **all = devices();
    kn_tensor *numbers[DEVICES];
    for (int i = 0; i < DEVICES; i++)
        numbers[i] = kn_full(KN_SCALAR, i, .device = all[i], .requires_grad = true);
    kn_tensor *vector = kn_comm_gather(numbers, DEVICES, 0, NULL);
    CHECK_SHAPE(vector, 3);
    CHECK_VALUES(vector, 0, 1, 2);
    CHECK_OK(kn_backward(kn_sum(kn_mul(vector, vector))));
    CHECK_VALUES(kn_grad(numbers[2]), 4);
    assert_int_equal(kn_ndim(kn_grad(numbers[2])), 0);
}

static kn_tensor *through_all_devices(kn_tensor *const *inputs, void *user)
{
    kn_device **all = devices();
    kn_tensor *chunks[DEVICES], *weights[DEVICES];
    (void)user;
    if (kn_comm_scatter(inputs[0], all, DEVICES, NULL, 1, chunks) != KN_OK ||
        kn_comm_broadcast(inputs[1], all, DEVICES, weights) != KN_OK)
        return NULL;
    for (int i = 0; i < DEVICES; i++)
        chunks[i] = kn_mul(kn_exp(chunks[i]), kn_mul(weights[i], weights[i]));
    kn_tensor *sums[DEVICES];
    for (int i = 0; i < DEVICES; i++)
        sums[i] = kn_sum(chunks[i]);
    return kn_mul(kn_comm_gather(chunks, DEVICES, 1, all[1]), kn_comm_reduce_add(sums, DEVICES, all[1]));
}

TENSOR_TEST_F64(gradients_agree_with_finite_differences)
{
    kn_device **all = devices();
    kn_tensor *inputs[] = {kn_rand(KN_SHAPE(2, 5), .dtype = KN_F64, .device = all[0], .requires_grad = true),
                           kn_rand(KN_SHAPE(2, 1), .dtype = KN_F64, .device = all[0], .requires_grad = true)};
    CHECK_OK(kn_gradcheck(through_all_devices, NULL, inputs, 2, NULL));
}

/* One chunk is unused: its part of the gradient is zero. */
TENSOR_TEST(a_chunk_that_is_not_used_has_no_gradient)
{
    kn_device **all = devices();
    kn_tensor *x = kn_ones(KN_SHAPE(3, 2), .device = all[0], .requires_grad = true), *chunks[DEVICES];
    CHECK_OK(kn_comm_scatter(x, all, DEVICES, NULL, 0, chunks));
    CHECK_OK(kn_backward(kn_sum(kn_add(chunks[0], kn_to(chunks[2], all[0])))));
    CHECK_VALUES(kn_grad(x), 1, 1, 0, 0, 1, 1);
    assert_null(kn_fill_(chunks[0], 1)); /* recorded, like any view */
    CHECK_ERROR(KN_ERR_STATE, "in place");
}

/* --- all_reduce --------------------------------------------------------------------------------------------------- */

TENSOR_TEST_F64(all_reduce_gives_everyone_the_same)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F64, KN_F16, KN_BF16, KN_I64, KN_I32, KN_I8, KN_U8};
    static const double expected[] = {10, 10.0 / 3, 5, 2}; /* for 3, 5 and 2, indexed by kn_reduce_op */
    kn_device **all = devices();
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
        for (int op = KN_REDUCE_SUM; op <= KN_REDUCE_MIN; op++) {
            kn_tensor *list[DEVICES];
            if (op == KN_REDUCE_MEAN && !kn_dtype_is_floating(dtypes[d]))
                continue;
            for (int i = 0; i < DEVICES; i++)
                list[i] = kn_full(KN_SHAPE(2, 2), (i * 2 + 2) % 5 + 1, .dtype = dtypes[d], .device = all[i]);
            list[1] = kn_t(list[1]);
            CHECK_OK(kn_comm_all_reduce(list, DEVICES, (kn_reduce_op)op));
            for (int i = 0; i < DEVICES; i++) {
                double *values = read_doubles(list[i]);
                for (int k = 0; k < 4; k++)
                    assert_true(fabs(values[k] - expected[op]) < (dtypes[d] == KN_F16    ? 2e-3
                                                                  : dtypes[d] == KN_BF16 ? 1.6e-2
                                                                                         : 1e-6));
                free(values);
                assert_ptr_equal(kn_device_of(list[i]), all[i]);
            }
        }
}

TENSOR_TEST(all_reduce_of_nan_bools_parameters_and_one)
{
    kn_device **all = devices();
    for (int op = KN_REDUCE_MAX; op <= KN_REDUCE_MIN; op++)
        for (int where = 0; where < 2; where++) {
            kn_tensor *list[] = {kn_full(KN_SHAPE(1), where ? 1 : (double)NAN, .device = all[0]),
                                 kn_full(KN_SHAPE(1), where ? (double)NAN : 1, .device = all[1])};
            CHECK_OK(kn_comm_all_reduce(list, 2, (kn_reduce_op)op));
            double value;
            CHECK_OK(kn_item(list[1], &value));
            assert_true(isnan(value));
        }
    kn_tensor *flags[] = {kn_ones(KN_SHAPE(1), .dtype = KN_BOOL, .device = all[0]),
                          kn_ones(KN_SHAPE(1), .dtype = KN_BOOL, .device = all[1])};
    CHECK_OK(kn_comm_all_reduce(flags, 2, KN_REDUCE_SUM));
    CHECK_VALUES(flags[1], 1);
    kn_tensor *leaves[] = {kn_ones(KN_SHAPE(2), .device = all[0], .requires_grad = true),
                           kn_ones(KN_SHAPE(2), .device = all[2], .requires_grad = true)};
    assert_int_equal(kn_comm_all_reduce(leaves, 2, KN_REDUCE_SUM), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "all_reduce", "KN_NO_GRAD");
    {
        KN_NO_GRAD;
        CHECK_OK(kn_comm_all_reduce(leaves, 2, KN_REDUCE_SUM));
    }
    CHECK_VALUES(leaves[1], 2, 2);
    CHECK_OK(kn_comm_all_reduce(flags, 1, KN_REDUCE_MAX));
    CHECK_VALUES(flags[0], 1);
}

/* --- transfers ---------------------------------------------------------------------------------------------------- */

/* Many transfers in flight in both directions, each depending on the previous one: values arrive intact and in
 * order. */
TENSOR_TEST(transfers_keep_their_order)
{
    kn_device **all = devices();
    kn_tensor *x = kn_zeros(KN_SHAPE(30011), .device = all[0]);
    for (int round = 1; round <= 200; round++) {
        KN_SCOPE;
        kn_tensor *there = kn_add_scalar(kn_to(x, all[round % 2 + 1]), 1);
        CHECK_OK(kn_copy_(x, there));
        CHECK_TENSOR(kn_fill_(there, -1)); /* after the copy, in its stream's order */
    }
    double *values = read_doubles(x);
    for (int i = 0; i < 30011; i++)
        assert_true(values[i] == 200);
    free(values);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(broadcast_copies_to_every_device_and_keeps_what_is_there),
        TEST(broadcast_coalesced_brings_every_tensor_through),
        TEST(copies_in_one_buffer_are_changed_one_by_one),
        TEST(gradients_of_a_broadcast_are_summed),
        TEST(sums_are_taken_in_the_order_of_the_list),
        TEST(sums_of_whole_numbers_views_and_one_device),
        TEST(coalesced_sums_and_their_gradients),
        TEST(scatter_cuts_as_torch_chunk_does_and_gather_undoes_it),
        TEST(a_chunk_on_its_own_device_is_a_view_and_the_host_may_be_scattered),
        TEST(numbers_gather_to_a_vector),
        TEST(gradients_agree_with_finite_differences),
        TEST(a_chunk_that_is_not_used_has_no_gradient),
        TEST(all_reduce_gives_everyone_the_same),
        TEST(all_reduce_of_nan_bools_parameters_and_one),
        TEST(transfers_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
