/* test_winograd_weights.c - the error of Winograd's gradient of a convolution's weights stays within a stated bound,
 * for every path: several chunks of tiles, all at once, partial tiles and vectors.
 *
 * Errors are those of float32 against float64, relative to the element's sum of |x| |dy| (which bounds the error of a
 * sum of rounded products), and relative to the largest element of the gradient (which matters to an optimizer). */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "ops/conv/gpu/winograd.h"
#include "ops/dispatch/choice.h"
#include "ops/winograd_layer.h"
#include "support/as_gpu.h"
#include "support/no_kernels.h"
#include "support/values.h"

static const char operation[] = "conv2d_backward_weights";

/* Measured: at most 6.8e-7 of the sum and 9.4e-7 of the largest, with 5 x 5 kernels 2.5e-6 and 7.5e-6 (summing
 * directly: 2.2e-7 and 1.6e-6). */
#define BOUND_OF_SUM 2e-6
#define BOUND_OF_SUM_5X5 4e-6
#define BOUND_OF_LARGEST 1e-5

static const layer layers[] = {
    {"3x3", 2, 32, 28, 28, 32, {3, 3}, 1, -1},
    {"3x3 after ReLU", 2, 32, 28, 28, 32, {3, 3}, 1, 0},
    {"3x3, odd sizes", 3, 33, 17, 9, 35, {3, 3}, 0, -1},
    {"3x3, few tiles", 2, 72, 7, 7, 100, {3, 3}, 1, 0},
    {"3x3, several chunks", 1, 16, 179, 180, 17, {3, 3}, 1, 0},
    {"5x5", 8, 32, 13, 13, 64, {5, 5}, 0, 0},
    {"5x5, padded", 2, 19, 9, 27, 48, {5, 5}, 2, -1},
    {"3x5", 2, 24, 15, 18, 20, {3, 5}, 1, -1},
    {"5x3", 2, 24, 15, 18, 20, {5, 3}, 2, -1},
    {"1x3", 3, 64, 1, 101, 70, {1, 3}, 1, -1},
    {"1x5", 3, 64, 1, 99, 35, {1, 5}, 2, 0},
    {"3x1", 2, 40, 9, 50, 36, {3, 1}, 1, -1},
    {"5x1", 2, 40, 9, 13, 36, {5, 1}, 0, -1},
    {"3x3, padding beyond the image", 1, 3, 2, 3, 5, {3, 3}, 4, -1},
};

typedef struct gradients {
    double *dw, *db;
} gradients;

static gradients compute(const layer *l, const char *row, bool absolute, kn_dtype dtype)
{
    const int64_t out[2] = {outputs_of(l, 0), outputs_of(l, 1)};
    gradients g = {NULL, NULL};
    kn_force_implementation(operation, row);
    {
        KN_SCOPE;
        kn_tensor *x = random_tensor("x", 4, (const int64_t[]){l->images, l->in_channels, l->height, l->width}, l->low,
                                     absolute, dtype);
        kn_tensor *dy =
            random_tensor("dy", 4, (const int64_t[]){l->images, l->out_channels, out[0], out[1]}, -1, absolute, dtype);
        kn_tensor *w = kn_zeros(KN_SHAPE(l->out_channels, l->in_channels, l->kernel[0], l->kernel[1]), .dtype = dtype,
                                .requires_grad = true);
        kn_tensor *bias = kn_zeros(KN_SHAPE(l->out_channels), .dtype = dtype, .requires_grad = true);
        kernels_off(); /* the result is not needed */
        kn_tensor *y = kn_conv2d(x, w, bias, .paddings = {padding_of(l, 0), padding_of(l, 1)});
        kernels_on();
        CHECK_OK(kn_backward_with(y, dy, false));
        g.dw = read_doubles(kn_grad(w));
        g.db = read_doubles(kn_grad(bias));
    }
    kn_force_implementation(operation, NULL);
    assert_non_null(g.dw);
    assert_non_null(g.db);
    return g;
}

static void free_gradients(gradients g)
{
    free(g.dw);
    free(g.db);
}

typedef struct errors {
    double of_sum, of_largest;
} errors;

static errors compare(const double *actual, const double *right, const double *sum, int64_t count)
{
    double largest = 0, worst = 0;
    errors e = {0, 0};
    for (int64_t i = 0; i < count; i++) {
        double error = fabs(actual[i] - right[i]);
        largest = fmax(largest, fabs(right[i]));
        worst = error > worst || isnan(error) ? error : worst;
        if (!(error <= e.of_sum * sum[i]) && sum[i] > 0)
            e.of_sum = error / sum[i];
    }
    e.of_largest = worst / largest;
    return e;
}

/* "winograd_gpu" twice: all images at once, and one at a time. */
static void check_layer(const layer *l)
{
    const int64_t chunk = kn_winograd_limit_chunks(1);
    gradients right = compute(l, "reference", false, KN_F64), sum = compute(l, "reference", true, KN_F64);
    int64_t count = l->out_channels * l->in_channels * l->kernel[0] * l->kernel[1];
    static const char *const rows[] = {"direct", "winograd", "winograd_gpu", "winograd_gpu"};
    for (int i = 0; i < 4; i++) {
        if (!can_force_row(operation, rows[i]))
            continue;
        kn_winograd_limit_chunks(i == 3 ? 1 : chunk);
        gradients g = compute(l, rows[i], false, KN_F32);
        errors weight = compare(g.dw, right.dw, sum.dw, count), bias = compare(g.db, right.db, sum.db, l->out_channels);
        print_message("%-32s %-12s %.2e of the sum, %.2e of the largest\n", l->name, rows[i], weight.of_sum,
                      weight.of_largest);
        assert_true(weight.of_sum <= (l->kernel[0] == 5 && l->kernel[1] == 5 ? BOUND_OF_SUM_5X5 : BOUND_OF_SUM));
        assert_true(weight.of_largest <= BOUND_OF_LARGEST);
        assert_true(bias.of_sum <= BOUND_OF_SUM);
        free_gradients(g);
    }
    kn_winograd_limit_chunks(chunk);
    free_gradients(right);
    free_gradients(sum);
}

static void test_errors(void **state)
{
    (void)state;
    check_needs_f64();
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i += (size_t)next_size())
        check_layer(&layers[i]);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {TEST(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
