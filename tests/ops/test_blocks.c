/* test_blocks.c - every block shape that `koine tune` may choose agrees with the reference, on sizes that it does not
 * divide; and measurements decide which shape is chosen. Runs with --as-gpu too. */
#include "support/as_gpu.h"
#include "support/check.h"
#include "support/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/conv/gpu/blocked.h"
#include "ops/dispatch/choice.h"
#include "ops/gemm/blocked.h"
#include "rt/tuning/tuning.h"

static char cache[] = "/tmp/koine-blocks-XXXXXX";

static const char *const operations[] = {"gemm", "conv2d", "conv2d_backward_data", "conv2d_backward_weights"};

static void force(const char *row)
{
    for (int i = 0; i < 4; i++)
        kn_force_implementation(operations[i], row);
}

static void check_alike(kn_tensor *found, kn_tensor *expected, const kn_block_shape *shape, const char *what)
{
    char name[KN_BLOCK_NAME];
    double *a = read_doubles(found), *b = read_doubles(expected);
    assert_true(a && b);
    for (int64_t i = 0; i < kn_numel(expected); i++)
        if (!(fabs(a[i] - b[i]) <= 2e-5 * (1 + fabs(b[i]))))
            fail_msg("%s in blocks of %s: element %lld is %g, should be %g", what, kn_block_name(name, shape),
                     (long long)i, a[i], b[i]);
    free(a);
    free(b);
}

static kn_tensor *multiply(kn_tensor *a, kn_tensor *b, int transposes, const char *row, const kn_block_shape *shape)
{
    kn_tensor *x = transposes & 1 ? kn_t(kn_contiguous(kn_t(a))) : a;
    kn_tensor *y = transposes & 2 ? kn_t(kn_contiguous(kn_t(b))) : b;
    force(row);
    kn_block_force(shape);
    kn_tensor *product = kn_matmul(x, y);
    CHECK_TENSOR(product);
    if (shape)
        assert_int_equal(kn_count_forced("gemm").ran, 1);
    kn_block_force(NULL);
    force(NULL);
    return product;
}

static void check_product(const kn_block_shape *shape, kn_dtype dtype, int transposes)
{
    KN_SCOPE;
    kn_tensor *a = kn_rand(KN_SHAPE(67, 37), .dtype = dtype), *b = kn_rand(KN_SHAPE(37, 133), .dtype = dtype);
    check_alike(multiply(a, b, transposes, "blocked", shape), multiply(a, b, transposes, "reference", NULL), shape,
                "a product");
}

/* y, and the gradients of x and w for a non-uniform gradient of y. */
static void convolve(kn_tensor *results[3], kn_tensor *const inputs[3], const char *row, const kn_block_shape *shape)
{
    kn_tensor *x = kn_detach(inputs[0]), *w = kn_detach(inputs[1]);
    kn_set_requires_grad(x, true);
    kn_set_requires_grad(w, true);
    force(row);
    kn_block_force(shape);
    results[0] = kn_conv2d(x, w, NULL, .padding = 1);
    CHECK_OK(kn_backward(kn_sum(kn_mul(results[0], inputs[2]))));
    for (int i = 1; shape && i < 4; i++)
        assert_true(kn_count_forced(operations[i]).ran > 0);
    kn_block_force(NULL);
    force(NULL);
    results[1] = kn_grad(x);
    results[2] = kn_grad(w);
}

static void check_convolution(const kn_block_shape *shape)
{
    KN_SCOPE;
    kn_tensor *inputs[3] = {kn_rand(KN_SHAPE(2, 5, 11, 9)), kn_rand(KN_SHAPE(7, 5, 3, 3)),
                            kn_rand(KN_SHAPE(2, 7, 11, 9))};
    kn_tensor *found[3], *expected[3];
    convolve(found, inputs, "blocked", shape);
    convolve(expected, inputs, "reference", NULL);
    for (int i = 0; i < 3; i++)
        check_alike(found[i], expected[i], shape, operations[i + 1]);
}

static const kn_limits *limits(void) { return kn_device_limits(kn_device_current()); }

/* Each shape with one of the four layouts in f32 and another in f64; every third with a convolution too, because shapes
 * differ in tiling, not in loads. */
TENSOR_TEST(test_every_shape)
{
    const kn_block_shape *shape;
    for (int i = 0; (shape = kn_block_shape_at(i)); i++) {
        if (kn_block_fits(shape, limits(), false))
            check_product(shape, KN_F32, i % 4);
        if (limits()->has_f64 && kn_block_fits(shape, limits(), true) && i % 2 == 0)
            check_product(shape, KN_F64, (i + 1) % 4);
        if (kn_block_fits(shape, limits(), false) && i % 3 == 0)
            check_convolution(shape);
    }
}

/* Unmeasured shapes are not chosen, measured ones by time; shapes that do not fit never. */
TENSOR_TEST(test_choice)
{
    kn_limits small = *limits();
    small.compute_units = 2;
    char name[KN_BLOCK_NAME];
    assert_true(kn_choose_block(&small, false, 4096, 4096, 1)->efficiency > 0);
    kn_tuning_result result = {.question = strdup(kn_block_question(false))};
    const kn_block_shape *shape;
    for (int i = 0; (shape = kn_block_shape_at(i)); i++) {
        const bool fast = shape->rows == 64 && shape->columns == 64 && shape->k_step == 8;
        CHECK_OK(kn_tuning_add(&result, kn_block_name(name, shape), i == 2 ? HUGE_VAL : fast ? 0.001 : 0.003, 1));
    }
    CHECK_OK(kn_tuning_store(kn_device_current(), &result));
    assert_true(kn_choose_block(&small, false, 4096, 4096, 1)->efficiency > 0); /* unfinished */
    result.complete = true;
    CHECK_OK(kn_tuning_store(kn_device_current(), &result));
    shape = kn_choose_block(&small, false, 4096, 4096, 1);
    assert_true(shape->rows == 64 && shape->columns == 64 && shape->k_step == 8);
    assert_true(kn_choose_block(&small, true, 4096, 4096, 1)->efficiency > 0); /* f64 was not measured */
    small.local_memory = 64;
    assert_null(kn_choose_block(&small, false, 4096, 4096, 1));
    kn_tuning_free(&result);
    CHECK_OK(kn_tuning_clear_disk(""));
    kn_tuning_forget();
}

/* A launch has a work-group in its third dimension for each group of channels and share of the pixels: NVIDIA's GPUs
 * take at most 65535. */
static void test_shares(void **state)
{
    (void)state;
    for (int64_t groups = 1; groups < 2048; groups = groups * 4 + 3) {
        const kn_conv_shape shape = {.images = 128,
                                     .in_channels = 2 * groups,
                                     .out_channels = 2 * groups,
                                     .groups = groups,
                                     .in_size = {1, 128, 128},
                                     .out_size = {1, 128, 128},
                                     .kernel_size = {1, 1, 1},
                                     .stride = {1, 1, 1},
                                     .dilation = {1, 1, 1}};
        assert_in_range(groups * kn_conv_blocked_shares(&shape), 1, 65535);
    }
}

int main(int argc, char **argv)
{
    if (!mkdtemp(cache))
        return 1;
    setenv("KOINE_CACHE_DIR", cache, 1);
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {TEST(test_choice), TEST(test_every_shape), TEST(test_shares)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[160];
    snprintf(command, sizeof command, "rm -r %s", cache);
    return system(command) == 0 ? failed : 1;
}
