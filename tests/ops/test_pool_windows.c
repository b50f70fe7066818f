/* test_pool_windows.c - maxima of windows of any length and their indices, of values that are hard to order: the first
 * among equals wins, but the last NaN, and minus infinity is larger than the padding. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "support/as_gpu.h"
#include "support/values.h"

enum { PLANES = 3, MANY_PLANES = 19 /* more than are the lanes of a vector: cl/pool/planes.clh */ };

typedef double filling(test_random *random);
static double anything(test_random *random) { return test_random_uniform(random, -100, 100); }
static double few(test_random *random) { return (double)(test_random_next(random) % 4); }
static double zeros(test_random *random) { return test_random_next(random) % 2 ? 0.0 : -0.0; }
static double seldom_finite(test_random *random) { return test_random_next(random) % 40 ? -INFINITY : -1; }
static double never_finite(test_random *random) { return (void)random, -INFINITY; }
static double seldom_a_number(test_random *random) { return test_random_next(random) % 30 ? NAN : 1; }
static double seldom_nan(test_random *random) { return test_random_next(random) % 30 ? anything(random) : NAN; }
static filling *const fillings[] = {anything, few, zeros, seldom_finite, never_finite, seldom_a_number, seldom_nan};

typedef struct window_case {
    int64_t height, width;
    kn_pool_params params;
} window_case;

/* clang-format off */
#define WINDOWS(h, w, ...) {h, w, {KN_POOL_DEFAULTS, __VA_ARGS__}}
/* clang-format on */
static const window_case cases[] = {
    WINDOWS(1, 51, .kernel_sizes = {1, 17}),
    WINDOWS(1, 65, .kernel_sizes = {1, 65}),
    WINDOWS(1, 700, .kernel_sizes = {1, 300}, .strides = {1, 200}, .paddings = {0, 150}, .ceil_mode = true),
    WINDOWS(1, 40, .kernel_sizes = {1, 33}, .strides = {1, 1}),
    WINDOWS(7, 7, .kernel_size = 7),
    WINDOWS(8, 8, .kernel_size = 4),
    WINDOWS(7, 9, .kernel_size = 3, .strides = {1, 1}, .paddings = {1, 1}),
    WINDOWS(10, 5, .kernel_sizes = {3, 2}, .strides = {2, 1}, .paddings = {1, 1}, .dilations = {2, 3},
            .ceil_mode = true),
    WINDOWS(9, 70, .kernel_sizes = {3, 17}, .strides = {2, 13}, .paddings = {1, 8}, .dilations = {2, 1}),
    WINDOWS(20, 64, .kernel_sizes = {10, 32}, .ceil_mode = true),
    WINDOWS(9, 70, .kernel_sizes = {2, 9}, .strides = {1, 5}, .dilations = {3, 2}),
};

static int64_t either(int64_t given, int64_t otherwise) { return given > 0 ? given : otherwise; }
static int64_t kernel_of(const kn_pool_params *p, int d) { return either(p->kernel_size, p->kernel_sizes[d]); }

/* The element of a plane that wins in the window whose first one is at (top, left); -1 if there is none. */
static int64_t winner(const window_case *c, const double *plane, int64_t top, int64_t left)
{
    const kn_pool_params *p = &c->params;
    const int64_t rows = kernel_of(p, 0), columns = kernel_of(p, 1);
    const int64_t down = either(p->dilations[0], 1), across = either(p->dilations[1], 1);
    int64_t best = -1;
    for (int64_t h = top; h < top + rows * down; h += down)
        for (int64_t w = left; w < left + columns * across; w += across)
            if (h >= 0 && h < c->height && w >= 0 && w < c->width) {
                const int64_t at = h * c->width + w;
                best = best < 0 || plane[at] > plane[best] || isnan(plane[at]) ? at : best;
            }
    return best;
}

static bool is_same(double a, double b) { return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b); }

static void check_outputs(const window_case *c, const double *values, kn_tensor *y, kn_tensor *alone, kn_tensor *index)
{
    const kn_pool_params *p = &c->params;
    const int64_t rows = kn_shape(y)[1], columns = kn_shape(y)[2], area = c->height * c->width;
    const int64_t down = either(p->strides[0], kernel_of(p, 0)), across = either(p->strides[1], kernel_of(p, 1));
    double *maxima = read_doubles(y), *others = read_doubles(alone);
    int64_t *places = read_integers(index);
    assert_non_null(maxima);
    assert_non_null(others);
    assert_non_null(places);
    for (int64_t i = 0; i < kn_numel(y); i++) {
        const double *plane = values + i / (rows * columns) * area;
        const int64_t at =
            winner(c, plane, i / columns % rows * down - p->paddings[0], i % columns * across - p->paddings[1]);
        assert_int_equal(places[i], at);
        assert_true(is_same(maxima[i], plane[at]) && is_same(others[i], plane[at]));
    }
    free(maxima);
    free(others);
    free(places);
}

static void check_case(const window_case *c, filling *fill, kn_dtype dtype, int64_t planes)
{
    KN_SCOPE;
    test_random random = test_random_from("pool windows");
    const int64_t shape[] = {planes, c->height, c->width}, count = planes * c->height * c->width;
    double *drawn = malloc((size_t)count * sizeof *drawn);
    assert_non_null(drawn);
    for (int64_t i = 0; i < count; i++)
        drawn[i] = fill(&random);
    kn_tensor *x = kn_to_dtype(tensor_of_doubles(drawn, 3, shape, KN_F32, false), dtype), *index = NULL;
    double *values = read_doubles(x);
    assert_non_null(values);
    kn_tensor *y = kn_max_pool2d_with_indices_with(x, &index, &c->params);
    check_outputs(c, values, y, kn_max_pool2d_with(x, &c->params), index);
    free(values);
    free(drawn);
}

TENSOR_TEST(what_wins_in_a_window)
{
    const kn_dtype dtypes[] = {KN_F32, KN_F16, KN_BF16, KN_F64};
    for (int d = 0; d < (check_has_f64() ? 4 : 3); d++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            for (size_t f = 0; f < sizeof fillings / sizeof fillings[0]; f++)
                for (int64_t planes = PLANES; planes <= MANY_PLANES; planes += MANY_PLANES - PLANES)
                    check_case(&cases[i], fillings[f], dtypes[d], planes);
}

/* Adaptive windows of these lengths, by those of a usual pooling. */
TENSOR_TEST(adaptive_windows)
{
    const int64_t lengths[] = {3, 8, 9, 16, 17, 40, 65, 300};
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (size_t f = 0; f < sizeof fillings / sizeof fillings[0]; f++) {
            const window_case c = WINDOWS(1, 5 * lengths[l], .kernel_sizes = {1, lengths[l]});
            test_random random = test_random_from("adaptive windows");
            double values[PLANES * 5 * 300];
            for (int64_t i = 0; i < PLANES * c.width; i++)
                values[i] = (float)fillings[f](&random);
            KN_SCOPE;
            kn_tensor *index = NULL, *x = tensor_of_doubles(values, 3, (int64_t[]){PLANES, 1, c.width}, KN_F32, false);
            kn_tensor *y = kn_adaptive_max_pool2d_with_indices(x, 1, 5, &index);
            check_outputs(&c, values, y, kn_adaptive_max_pool2d(x, 1, 5), index);
        }
}

static bool is_close(kn_tensor *a, kn_tensor *b)
{
    char message[512];
    double *left = read_doubles(a), *right = read_doubles(b);
    assert_non_null(left);
    assert_non_null(right);
    const bool close = values_close(left, right, kn_numel(a), (closeness){1e-5, 1e-5}, message, sizeof message);
    free(left);
    free(right);
    return close;
}

static kn_tensor *average(kn_tensor *x, const kn_pool_params *params) { return kn_avg_pool2d_with(x, params); }
static kn_tensor *maxima(kn_tensor *x, const kn_pool_params *params) { return kn_max_pool2d_with(x, params); }
static kn_tensor *adaptive(kn_tensor *x, const kn_pool_params *params)
{
    return (void)params, kn_adaptive_avg_pool2d(x, 3, 2);
}

/* Images [H, W, C] give the same results and gradients, and such images on CPU devices. */
static void check_channels(kn_tensor *(*pool)(kn_tensor *, const kn_pool_params *), int64_t channels, filling *fill,
                           const kn_pool_params *params)
{
    KN_SCOPE;
    test_random random = test_random_from("channels");
    double values[2 * 9 * 7 * 37];
    for (int64_t i = 0; i < 2 * 9 * 7 * channels; i++)
        values[i] = fill(&random);
    kn_tensor *lying = tensor_of_doubles(values, 4, (int64_t[]){2, 9, 7, channels}, KN_F32, true);
    kn_tensor *x = kn_permute(lying, (const int[]){0, 3, 1, 2}), *y = pool(x, params),
              *same = pool(kn_contiguous(x), params);
    CHECK_TENSOR(y);
    assert_true(is_close(y, same));
    if (!simulates_gpu() && channels >= 8)
        assert_true(kn_is_contiguous(kn_permute(y, (const int[]){0, 2, 3, 1})));
    kn_tensor *g = kn_randn_like(same), *gradients[2];
    CHECK_OK(kn_autograd_grad(&y, 1, &lying, 1, &gradients[0], .grad_outputs = &g, .retain_graph = true));
    CHECK_OK(kn_autograd_grad(&same, 1, &lying, 1, &gradients[1], .grad_outputs = &g));
    assert_true(is_close(gradients[0], gradients[1]));
}

TENSOR_TEST(inner_channels)
{
    const kn_pool_params windows[] = {
        {KN_POOL_DEFAULTS, .kernel_size = 2},
        {KN_POOL_DEFAULTS, .kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true},
        {KN_POOL_DEFAULTS, .kernel_sizes = {9, 7}},
        {KN_POOL_DEFAULTS, .kernel_size = 2, .activation = KN_ACTIVATION_RELU}};
    kn_pool_params dilated = windows[1];
    dilated.dilation = 2;
    const int64_t channels[] = {3, 8, 16, 37};
    for (int c = 0; c < 4; c++) {
        for (int w = 0; w < 4; w++)
            check_channels(average, channels[c], anything, &windows[w]);
        check_channels(adaptive, channels[c], anything, NULL);
        for (size_t f = 0; f < sizeof fillings / sizeof fillings[0]; f++) {
            for (int w = 0; w < 4; w++)
                check_channels(maxima, channels[c], fillings[f], &windows[w]);
            check_channels(maxima, channels[c], fillings[f], &dilated);
        }
    }
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {TEST(what_wins_in_a_window), TEST(adaptive_windows), TEST(inner_channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
