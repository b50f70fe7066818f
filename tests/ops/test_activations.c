/* test_activations.c - fused activations give the same bits as the operation followed by the activation, for results
 * and gradients, including NaN, infinities and both zeros. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "support/as_gpu.h"
#include "support/values.h"
#include "tensor/tensor.h"

/* Values in low .. high; `odd`: every 37th is special: NaN, infinite, zero or at a bound. */
static kn_tensor *values_in(double low, double high, int ndim, const int64_t *shape, kn_dtype dtype, bool odd,
                            const char *seed)
{
    static const double oddities[] = {NAN, -0.0, 0.0, INFINITY, 6, -INFINITY};
    int64_t count = kn_shape_numel(ndim, shape);
    double *values = malloc((size_t)count * sizeof *values);
    test_random random = test_random_from(seed);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = (float)test_random_uniform(&random, low, high);
        if (odd && i % 37 == 5)
            values[i] = oddities[i / 37 % 6];
    }
    kn_tensor *tensor = tensor_of_doubles(values, ndim, shape, dtype, true);
    free(values);
    CHECK_TENSOR(tensor);
    return tensor;
}

static kn_tensor *activated(kn_tensor *y, kn_activation activation)
{
    return activation == KN_ACTIVATION_RELU ? kn_relu(y) : activation == KN_ACTIVATION_RELU6 ? kn_relu6(y) : y;
}

static const kn_activation activations[] = {KN_ACTIVATION_NONE, KN_ACTIVATION_RELU, KN_ACTIVATION_RELU6};
static const kn_dtype dtypes[] = {KN_F32, KN_F64};

static bool has(kn_dtype dtype) { return dtype != KN_F64 || kn_device_limits(kn_device_current())->has_f64; }

/* --- batch normalisation ------------------------------------------------------------------------------------------ */

typedef struct batch_case {
    int ndim;
    int64_t shape[4];
    bool training, affine;
} batch_case;

static void compare_batch_norm(const batch_case *c, kn_dtype dtype, kn_activation activation)
{
    const int64_t *channels = &c->shape[1];
    kn_tensor *x[2], *w[2] = {NULL}, *b[2] = {NULL}, *y[2];
    for (int fused = 0; fused < 2; fused++) {
        x[fused] = values_in(-2, 3, c->ndim, c->shape, dtype, !c->training, "x");
        if (c->training) { /* a NaN makes its channel NaN */
            kn_tensor *one = kn_narrow(kn_narrow(x[fused], 0, c->shape[0] - 1, 1), 1, *channels / 2, 1);

            KN_NO_GRAD;
            CHECK_TENSOR(kn_fill_(one, NAN));
        }
        w[fused] = c->affine ? values_in(-4, 6, 1, channels, dtype, false, "weight") : NULL;
        b[fused] = c->affine ? values_in(-1, 1, 1, channels, dtype, false, "bias") : NULL;
        kn_tensor *mean = kn_detach(values_in(-1, 1, 1, channels, dtype, false, "mean"));
        kn_tensor *var = kn_detach(values_in(0.1, 2, 1, channels, dtype, false, "variance"));
        y[fused] =
            kn_batch_norm(x[fused], .weight = w[fused], .bias = b[fused], .training = c->training, .running_mean = mean,
                          .running_var = var, .activation = fused ? activation : KN_ACTIVATION_NONE);
        y[fused] = fused ? y[fused] : activated(y[fused], activation);
        CHECK_TENSOR(y[fused]);
        kn_tensor *g = kn_detach(values_in(-1, 1, c->ndim, c->shape, dtype, false, "gradient"));
        CHECK_OK(kn_backward_with(y[fused], g, false));
    }
    check_same_bits(y[0], y[1]);
    check_same_bits(kn_grad(x[0]), kn_grad(x[1]));
    if (c->affine) {
        check_same_bits(kn_grad(w[0]), kn_grad(w[1]));
        check_same_bits(kn_grad(b[0]), kn_grad(b[1]));
    }
}

TENSOR_TEST(batch_norm_cuts_as_the_activation_does)
{
    static const batch_case cases[] = {
        {2, {37, 19}, true, true},       {2, {37, 19}, false, true},         {4, {5, 7, 3, 3}, true, false},
        {4, {5, 7, 3, 3}, false, false}, {4, {4, 6, 9, 11}, true, true},     {4, {4, 6, 9, 11}, false, true},
        {3, {3, 2, 20011}, true, true},  {3, {613, 20, 5}, true, true},      {4, {9, 130, 8, 8}, true, true},
        {3, {1, 1, 1000}, true, true},   {4, {2, 3, 130, 130}, true, false}, {4, {2, 3, 130, 130}, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int a = 0; a < 3; a++)
            for (int d = 0; d < 2; d++)
                if (has(dtypes[d])) {
                    KN_SCOPE;
                    compare_batch_norm(&cases[i], dtypes[d], activations[a]);
                }
}

/* --- pooling ------------------------------------------------------------------------------------------------------ */

static void compare_pooling(kn_tensor *(*pool)(kn_tensor *, const kn_pool_params *), const int64_t shape[4],
                            kn_pool_params params, kn_dtype dtype, kn_activation activation)
{
    kn_tensor *x[2], *y[2];
    for (int fused = 0; fused < 2; fused++) {
        x[fused] = values_in(-6, 7, 4, shape, dtype, true, "x");
        params.activation = fused ? activation : KN_ACTIVATION_NONE;
        y[fused] = pool(x[fused], &params);
        y[fused] = fused ? y[fused] : activated(y[fused], activation);
        CHECK_TENSOR(y[fused]);
        kn_tensor *g = kn_detach(values_in(-1, 1, 4, kn_shape(y[fused]), dtype, false, "gradient"));
        CHECK_OK(kn_backward_with(y[fused], g, false));
    }
    check_same_bits(y[0], y[1]);
    check_same_bits(kn_grad(x[0]), kn_grad(x[1]));
}

TENSOR_TEST(pooling_cuts_as_the_activation_does)
{
    static const struct {
        int64_t shape[4];
        kn_pool_params params;
    } cases[] = {
        {{3, 2, 8, 34}, {.kernel_size = 2, .dilation = 1}},
        {{3, 2, 9, 9}, {.kernel_size = 2, .dilation = 1}},
        {{2, 3, 6, 5}, {.kernel_size = 1, .dilation = 1}},
        {{2, 3, 13, 11}, {.kernel_size = 3, .stride = 2, .padding = 1, .dilation = 1}},
        {{2, 3, 13, 40}, {.kernel_size = 3, .stride = 1, .padding = 1, .dilation = 1}},
        {{1, 2, 21, 19}, {.kernel_size = 15, .stride = 3, .dilation = 1, .ceil_mode = true}},
        {{1, 2, 21, 19}, {.kernel_size = 17, .stride = 1, .padding = 8, .dilation = 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int a = 0; a < 3; a++)
            for (int d = 0; d < 2; d++)
                if (has(dtypes[d])) {
                    KN_SCOPE;
                    compare_pooling(kn_max_pool2d_with, cases[i].shape, cases[i].params, dtypes[d], activations[a]);
                    compare_pooling(kn_avg_pool2d_with, cases[i].shape, cases[i].params, dtypes[d], activations[a]);
                }
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(batch_norm_cuts_as_the_activation_does),
        TEST(pooling_cuts_as_the_activation_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
