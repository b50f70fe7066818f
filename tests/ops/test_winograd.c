/* test_winograd.c - the error of Winograd's convolution, forward and backward-data, stays within a stated bound, for
 * every path: all tiles at once and block by block, partial tiles, vectors and blocks, one channel and many.
 *
 * Errors are those of float32 against float64, relative to the largest sum of absolute products of any element:
 * elements of a tile share their errors, including those that mostly sum over padding. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "ops/conv/gpu/winograd.h"
#include "ops/dispatch/choice.h"
#include "ops/winograd_layer.h"
#include "support/as_gpu.h"
#include "support/values.h"

/* Measured: at most 1.1e-6 (summing directly: 2.4e-7). docs/winograd.md has them all. */
#define BOUND 1.5e-6

static const char forward[] = "conv2d", backward[] = "conv2d_backward_data";

static const layer layers[] = {
    {"3x3, 1 channel", 1, 1, 9, 9, 1, {3, 3}, 1, -1},
    {"3x3, 16 channels", 2, 16, 14, 14, 32, {3, 3}, 1, -1},
    {"3x3, 64 channels", 1, 64, 14, 14, 64, {3, 3}, 1, -1},
    {"3x3, 256 channels", 1, 256, 8, 8, 33, {3, 3}, 1, -1},
    {"3x3, 256 channels after ReLU", 1, 256, 8, 8, 33, {3, 3}, 1, 0},
    {"3x3, 512 channels", 1, 512, 7, 7, 64, {3, 3}, 1, -1},
    {"3x3, whole vectors", 5, 7, 12, 16, 9, {3, 3}, 1, -1},
    {"3x3, whole vectors, unpadded", 3, 8, 8, 20, 12, {3, 3}, 0, -1},
    {"3x3, odd sizes", 3, 33, 17, 9, 35, {3, 3}, 0, -1},
    {"3x3, block by block", 1, 128, 122, 123, 3, {3, 3}, 1, -1},
    {"3x3, block by block, to many", 1, 2, 122, 123, 130, {3, 3}, 1, -1},
    {"3x3, padding beyond the image", 1, 3, 2, 3, 5, {3, 3}, 4, -1},
    {"5x5, 32 channels", 4, 32, 13, 13, 64, {5, 5}, 0, -1},
    {"5x5, 192 channels", 1, 192, 14, 14, 40, {5, 5}, 2, -1},
    {"5x5, odd sizes", 2, 19, 9, 27, 48, {5, 5}, 1, 0},
    {"5x5, dx from tiles of dy", 12, 32, 13, 13, 64, {5, 5}, 0, -1},
    {"5x5, dx from tiles of dy, padded", 13, 9, 10, 14, 19, {5, 5}, 1, -1},
    {"3x3, dx from tiles of dy", 50, 17, 6, 7, 37, {3, 3}, 0, -1},
    {"5x5, block by block", 1, 33, 122, 123, 2, {5, 5}, 2, -1},
    {"3x5", 2, 24, 15, 18, 20, {3, 5}, 1, -1},
    {"5x3", 2, 24, 15, 18, 20, {5, 3}, 2, -1},
    {"1x3", 3, 64, 1, 101, 70, {1, 3}, 1, -1},
    {"1x5", 3, 64, 1, 99, 35, {1, 5}, 2, -1},
    {"1x5, images", 2, 33, 6, 21, 40, {1, 5}, 0, 0},
    {"3x1", 2, 40, 9, 50, 36, {3, 1}, 1, -1},
    {"5x1", 2, 40, 9, 13, 36, {5, 1}, 0, -1},
};

typedef struct results {
    double *y, *dx;
    int64_t y_count, dx_count;
} results;

static results compute(const layer *l, const char *row, bool absolute, kn_dtype dtype)
{
    const int64_t out[2] = {outputs_of(l, 0), outputs_of(l, 1)};
    results r = {.y_count = l->images * l->out_channels * out[0] * out[1],
                 .dx_count = l->images * l->in_channels * l->height * l->width};
    kn_force_implementation(forward, row);
    kn_force_implementation(backward, row);
    {
        KN_SCOPE;
        kn_tensor *x = random_tensor("x", 4, (const int64_t[]){l->images, l->in_channels, l->height, l->width}, l->low,
                                     absolute, dtype);
        kn_tensor *w =
            random_tensor("w", 4, (const int64_t[]){l->out_channels, l->in_channels, l->kernel[0], l->kernel[1]}, -1,
                          absolute, dtype);
        kn_tensor *dy =
            random_tensor("dy", 4, (const int64_t[]){l->images, l->out_channels, out[0], out[1]}, -1, absolute, dtype);
        CHECK_OK(kn_set_requires_grad(x, true));
        kn_tensor *y = kn_conv2d(x, w, NULL, .paddings = {padding_of(l, 0), padding_of(l, 1)});
        CHECK_TENSOR(y);
        CHECK_OK(kn_backward_with(y, dy, false));
        r.y = read_doubles(y);
        r.dx = read_doubles(kn_grad(x));
    }
    kn_forced_count y_runs = kn_count_forced(forward), dx_runs = kn_count_forced(backward);
    kn_force_implementation(forward, NULL);
    kn_force_implementation(backward, NULL);
    assert_true(y_runs.ran > 0 && dx_runs.ran > 0);
    assert_non_null(r.y);
    assert_non_null(r.dx);
    return r;
}

static void free_results(results r)
{
    free(r.y);
    free(r.dx);
}

/* The largest error, relative to the largest sum. */
static double worst(const double *actual, const double *right, const double *sum, int64_t count)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double error = fabs(actual[i] - right[i]);
        worst = error <= worst ? worst : error;
        largest = fmax(largest, sum[i]);
    }
    return worst / largest;
}

/* "winograd_gpu" twice: all images at once, and one at a time. */
static void check_layer(const layer *l)
{
    static const char *const rows[] = {"direct", "winograd", "winograd_gpu", "winograd_gpu"};
    const int64_t chunk = kn_winograd_limit_chunks(1);
    results right = compute(l, "reference", false, KN_F64), sum = compute(l, "reference", true, KN_F64);
    for (int i = 0; i < 4; i++) {
        if (!can_force_row(forward, rows[i]))
            continue;
        kn_winograd_limit_chunks(i == 3 ? 1 : chunk);
        results r = compute(l, rows[i], false, KN_F32);
        double y = worst(r.y, right.y, sum.y, r.y_count), dx = worst(r.dx, right.dx, sum.dx, r.dx_count);
        print_message("%-32s %-12s y %.2e, dx %.2e of the sum\n", l->name, rows[i], y, dx);
        assert_true(y <= BOUND);
        assert_true(dx <= BOUND);
        free_results(r);
    }
    kn_winograd_limit_chunks(chunk);
    free_results(right);
    free_results(sum);
}

static void test_errors(void **state)
{
    (void)state;
    check_needs_f64();
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i += (size_t)next_size())
        check_layer(&layers[i]);
}

/* On devices of more cores tiles and channels are divided among them in other ways, with the same results. */
static void test_cores(void **state)
{
    static const int cores[] = {2, 3, 16, 64};
    kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(kn_device_current());
    const int usual = limits->compute_units;
    (void)state;
    if (!limits->is_cpu)
        skip();
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i += (size_t)next_size()) {
        limits->compute_units = 1;
        const results one = compute(&layers[i], "winograd", false, KN_F32);
        for (size_t j = 0; j < sizeof cores / sizeof cores[0]; j++) {
            limits->compute_units = cores[j];
            const results many = compute(&layers[i], "winograd", false, KN_F32);
            assert_memory_equal(many.y, one.y, (size_t)one.y_count * sizeof *one.y);
            assert_memory_equal(many.dx, one.dx, (size_t)one.dx_count * sizeof *one.dx);
            free_results(many);
        }
        free_results(one);
    }
    limits->compute_units = usual;
}

/* Winograd's convolution is preferred on a GPU with enough channels and enough work. */
static void test_choice(void **state)
{
    static const struct {
        int64_t images, in_channels, out_channels, width, kernel;
        bool pays;
    } sizes[] = {{64, 64, 64, 56, 3, true},  {64, 512, 512, 7, 3, true},  {128, 64, 64, 32, 3, true},
                 {64, 4, 64, 56, 3, false},  {64, 512, 512, 7, 7, false}, {1, 64, 64, 14, 3, false},
                 {128, 1, 32, 28, 3, false}, {64, 512, 512, 2, 3, false}};
    kn_limits limits = {.is_gpu = true,
                        .has_f64 = true,
                        .compute_units = 132,
                        .max_work_group_size = 1024,
                        .local_memory = 48 << 10,
                        .max_allocation = (uint64_t)4 << 30};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t w = sizes[i].width, k = sizes[i].kernel;
        kn_conv_problem problem = {.shape = {.images = sizes[i].images,
                                             .in_channels = sizes[i].in_channels,
                                             .in_size = {1, w, w},
                                             .out_channels = sizes[i].out_channels,
                                             .kernel_size = {1, k, k},
                                             .out_size = {1, w, w},
                                             .stride = {1, 1, 1},
                                             .padding = {0, k / 2, k / 2},
                                             .dilation = {1, 1, 1},
                                             .groups = 1}};
        for (int run = 0; run < 2 * KN_CONV_PASSES; run++) {
            problem.pass = (kn_conv_pass)(run / 2);
            limits.is_cpu = run % 2;
            assert_int_equal(kn_conv_prefers_winograd_gpu(&limits, &problem), sizes[i].pays && !limits.is_cpu);
        }
    }
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    obey_vector_width(argc, argv);
    const struct CMUnitTest tests[] = {TEST(test_errors), TEST(test_cores), TEST(test_choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
