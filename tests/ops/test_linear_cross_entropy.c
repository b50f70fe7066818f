/* test_linear_cross_entropy.c - what golden values do not show of kn_linear_cross_entropy in chunks: memory, halves,
 * gradients of only some operands, what has no chunks, errors. */
#include "support/check.h"

enum { ROWS = 4096, IN = 16, CLASSES = 256 };

static kn_tensor *uniform(int64_t rows, int64_t columns) { return kn_rand(KN_SHAPE(rows, columns), .dtype = KN_F32); }

static kn_tensor *classes(int64_t count, int64_t below)
{
    return kn_remainder_scalar(kn_arange(0, (double)(7 * count), 7, .dtype = KN_I64), below);
}

static kn_tensor *trained(kn_tensor *tensor)
{
    CHECK_OK(kn_set_requires_grad(tensor, true));
    return tensor;
}

/* Bytes above those before, at most, of a step. */
static uint64_t memory_of_step(kn_tensor *x, kn_tensor *weight, kn_tensor *target, int64_t chunk_size)
{
    KN_SCOPE;
    kn_device *device = kn_device_of(x);
    CHECK_OK(kn_set_grad(x, NULL));
    CHECK_OK(kn_set_grad(weight, NULL));
    const uint64_t before = kn_memory_allocated(device);
    kn_reset_peak_memory_stats(device);
    CHECK_OK(kn_backward(kn_linear_cross_entropy(x, weight, target, .chunk_size = chunk_size)));
    return kn_max_memory_allocated(device) - before;
}

TENSOR_TEST(chunks_hold_no_logits)
{
    kn_tensor *x = trained(uniform(ROWS, IN)), *weight = trained(uniform(CLASSES, IN)),
              *target = classes(ROWS, CLASSES);
    const uint64_t logits = (uint64_t)ROWS * CLASSES * 4;
    assert_true(memory_of_step(x, weight, target, 0) >= 2 * logits);
    assert_true(memory_of_step(x, weight, target, KN_CHUNK_SIZE_AUTO) < logits / 3);
    assert_true(memory_of_step(x, weight, target, ROWS) >= 2 * logits); /* all rows are no chunk */
}

/* The sum of 300 losses of about 300 is beyond float16's range, their mean is not. */
TENSOR_TEST(sums_of_halves_are_wide)
{
    for (kn_dtype dtype = KN_F16; dtype <= KN_BF16; dtype++) {
        KN_SCOPE;
        kn_tensor *x = trained(kn_full(KN_SHAPE(300, 1), 300, .dtype = dtype));
        kn_tensor *weight = trained(kn_from_data(((float[]){1, 0, 0}), KN_SHAPE(3, 1), .dtype = KN_F32));
        weight = trained(kn_detach(kn_to_dtype(weight, dtype)));
        kn_tensor *target = kn_ones(KN_SHAPE(300), .dtype = KN_I64);
        kn_tensor *loss = kn_linear_cross_entropy(x, weight, target, .chunk_size = 100);
        CHECK_DTYPE(loss, dtype);
        CHECK_VALUES(kn_to_dtype(loss, KN_F32), 300);
        CHECK_OK(kn_backward(loss));
        CHECK_DTYPE(kn_grad(weight), dtype);
        CHECK_VALUES(kn_to_dtype(kn_grad(weight), KN_F32), 300, -300, 0);
        CHECK_VALUES(kn_to_dtype(kn_select(kn_grad(x), 0, 299), KN_F32), dtype == KN_F16 ? 0.0033340454 : 0.0033264160);
    }
}

static void check_equal(kn_tensor *a, kn_tensor *b)
{
    bool close = false;
    CHECK_OK(kn_allclose(a, b, &close, .rtol = 1e-5, .atol = 1e-6));
    assert_true(close);
}

TENSOR_TEST(gradients_of_some_operands)
{
    const kn_reduction reductions[] = {KN_REDUCTION_MEAN, KN_REDUCTION_NONE};
    for (int which = 0; which < 6; which++) {
        KN_SCOPE;
        kn_tensor *of[] = {uniform(9, 4), uniform(5, 4), kn_rand(KN_SHAPE(5))}, *target = classes(9, 5), *found[2];
        const kn_reduction reduction = reductions[which / 3];
        trained(of[which % 3]);
        for (int chunked = 0; chunked < 2; chunked++) {
            CHECK_OK(kn_set_grad(of[which % 3], NULL));
            kn_tensor *loss = kn_linear_cross_entropy(of[0], of[1], target, .bias = of[2], .reduction = reduction,
                                                      .chunk_size = chunked ? 4 : 0);
            CHECK_OK(kn_backward(kn_mean(kn_square(loss))));
            found[chunked] = kn_clone(kn_grad(of[which % 3]));
        }
        check_equal(found[0], found[1]);
    }
}

/* Weights of classes that require gradients, and one row, are computed at once, which has gradients of gradients. */
TENSOR_TEST(what_has_no_chunks)
{
    kn_tensor *x = trained(uniform(9, 4)), *weight = trained(uniform(5, 4)), *target = classes(9, 5), *slope,
              *curvature;
    kn_tensor *loss = kn_linear_cross_entropy(x, weight, target);
    CHECK_OK(kn_autograd_grad(&loss, 1, &x, 1, &slope, .create_graph = true));
    slope = kn_sum(kn_square(slope));
    CHECK_OK(kn_autograd_grad(&slope, 1, &weight, 1, &curvature));
    loss = kn_linear_cross_entropy(x, weight, target, .chunk_size = 2);
    assert_int_equal(kn_autograd_grad(&loss, 1, &x, 1, &slope, .create_graph = true), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "linear_cross_entropy");

    kn_tensor *of_classes = trained(kn_ones(KN_SHAPE(5)));
    CHECK_OK(kn_backward(kn_linear_cross_entropy(x, weight, target, .weight = of_classes, .chunk_size = 2,
                                                 .reduction = KN_REDUCTION_SUM)));
    CHECK_TENSOR(kn_linear_cross_entropy(kn_select(x, 0, 0), weight, kn_select(target, 0, 0), .chunk_size = 1));
}

TENSOR_TEST(wrong_arguments)
{
    kn_tensor *x = uniform(9, 4), *weight = uniform(5, 4), *target = classes(9, 5);
    assert_null(kn_linear_cross_entropy(uniform(2, 3), weight, classes(2, 5), .chunk_size = 1));
    CHECK_ERROR(KN_ERR_SHAPE, "linear_cross_entropy", "[2, 3]", "[5, 4]");
    assert_null(kn_linear_cross_entropy(kn_unsqueeze(x, 0), weight, kn_unsqueeze(target, 0)));
    CHECK_ERROR(KN_ERR_SHAPE, "linear_cross_entropy: the input must be [N, in] or [in], not float32 [1, 9, 4]",
                "flatten");
    assert_null(kn_linear_cross_entropy(x, weight, classes(8, 5), .chunk_size = 2));
    CHECK_ERROR(KN_ERR_SHAPE, "[9, 5]", "[8]");
    assert_null(kn_linear_cross_entropy(x, weight, target, .bias = kn_ones(KN_SHAPE(4)), .chunk_size = 2));
    CHECK_ERROR(KN_ERR_SHAPE, "bias", "[5]", "[4]");
    assert_null(kn_linear_cross_entropy(x, weight, target, .chunk_size = -2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "chunk_size", "-2");
    kn_tensor *loss = kn_linear_cross_entropy(x, weight, kn_full(KN_SHAPE(9), 5, .dtype = KN_I64), .chunk_size = 2);
    double value;
    assert_true(!loss || kn_item(loss, &value) != KN_OK);
    CHECK_ERROR(KN_ERR_ARGUMENT, "cross_entropy", "5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(chunks_hold_no_logits), TEST(sums_of_halves_are_wide), TEST(gradients_of_some_operands),
        TEST(what_has_no_chunks),    TEST(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
