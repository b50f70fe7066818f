/* test_pairs_conv.c - convolutions of bf16 on CPU devices, by pairs of elements (src/ops/conv/cpu/pairs.c), against
 * float64: outputs and all gradients. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "ops/conv/common/conv.h"
#include "ops/dispatch/choice.h"
#include "support/as_gpu.h"
#include "support/values.h"

typedef struct layer {
    const char *name;
    int64_t images, channels, size[2], outputs, kernel[2], stride, padding;
    kn_activation activation;
} layer;

static const layer layers[] = {
    {"one pixel", 3, 5, {1, 1}, 7, {1, 1}, 1, 0, KN_ACTIVATION_NONE},
    {"one channel", 2, 1, {3, 3}, 1, {1, 1}, 1, 0, KN_ACTIVATION_RELU},
    {"images that share tiles", 5, 17, {5, 5}, 33, {1, 1}, 1, 0, KN_ACTIVATION_RELU},
    {"images of more than a tile", 2, 40, {7, 7}, 13, {1, 1}, 1, 0, KN_ACTIVATION_NONE},
    {"many pixels", 2, 6, {66, 67}, 20, {1, 1}, 1, 0, KN_ACTIVATION_NONE},
    {"many channels", 2, 4101, {2, 3}, 12, {1, 1}, 1, 0, KN_ACTIVATION_NONE},
    {"every other pixel", 2, 16, {9, 14}, 17, {1, 1}, 2, 0, KN_ACTIVATION_NONE},
    {"3x3, stride 2", 2, 3, {16, 37}, 18, {3, 3}, 2, 1, KN_ACTIVATION_RELU},
    {"7x7, stride 2", 1, 3, {21, 20}, 16, {7, 7}, 2, 3, KN_ACTIVATION_NONE},
    {"patches", 2, 3, {32, 48}, 20, {8, 8}, 8, 0, KN_ACTIVATION_NONE},
    {"patches of parts of rows", 2, 4, {10, 15}, 16, {2, 3}, 3, 1, KN_ACTIVATION_NONE},
};

enum { Y, DX, DW, DB, RESULTS };
typedef struct results {
    double *values[RESULTS];
    int64_t counts[RESULTS];
} results;

static void keep(results *r, int which, kn_tensor *t)
{
    CHECK_TENSOR(t);
    r->counts[which] = kn_numel(t);
    r->values[which] = read_doubles(kn_to_dtype(t, KN_F64));
}

static void free_results(results *r)
{
    for (int i = 0; i < RESULTS; i++)
        free(r->values[i]);
}

/* Values that bf16 represents. */
static kn_tensor *operand(const char *name, int ndim, const int64_t *shape, bool absolute, kn_dtype dtype)
{
    kn_tensor *t = kn_to_dtype(random_tensor(name, ndim, shape, -1, absolute, KN_F32), KN_BF16);
    t = kn_detach(kn_to_dtype(t, dtype));
    CHECK_OK(kn_set_requires_grad(t, true));
    return t;
}

/* absolute: of the operands' magnitudes, without the activation. */
static results compute(const layer *l, bool absolute, kn_dtype dtype)
{
    KN_SCOPE;
    results r;
    kn_conv_params params = {KN_CONV_DEFAULTS};
    params.stride = l->stride;
    params.padding = l->padding;
    params.activation = absolute ? KN_ACTIVATION_NONE : l->activation;
    kn_tensor *x = operand("x", 4, (const int64_t[]){l->images, l->channels, l->size[0], l->size[1]}, absolute, dtype);
    kn_tensor *weight =
        operand("w", 4, (const int64_t[]){l->outputs, l->channels, l->kernel[0], l->kernel[1]}, absolute, dtype);
    kn_tensor *bias = operand("b", 1, &l->outputs, absolute, dtype);
    kn_tensor *y = kn_conv2d_with(x, weight, bias, &params);
    CHECK_TENSOR(y);
    const int64_t shape[] = {kn_size(y, 0), kn_size(y, 1), kn_size(y, 2), kn_size(y, 3)};
    CHECK_OK(kn_backward_with(y, kn_detach(operand("dy", 4, shape, absolute, dtype)), false));
    keep(&r, Y, y);
    keep(&r, DX, kn_grad(x));
    keep(&r, DW, kn_grad(weight));
    keep(&r, DB, kn_grad(bias));
    return r;
}

/* Is the layer computed in bf16, so that this tests anything? */
static bool is_pairs(const layer *l)
{
    const kn_conv_kind kind = {.dims = 2};
    kn_conv_params params = {KN_CONV_DEFAULTS};
    kn_conv_shape shape;
    params.stride = l->stride;
    params.padding = l->padding;
    CHECK_OK(kn_conv_resolve(&shape, &kind, &params, KN_BF16, 4,
                             (const int64_t[]){l->images, l->channels, l->size[0], l->size[1]}, 4,
                             (const int64_t[]){l->outputs, l->channels, l->kernel[0], l->kernel[1]}));
    return kn_conv_supports_pairs(kn_stream_current(kn_device_current()), &shape);
}

/* Results are rounded to bf16 once, and sums of n products in f32 have errors of n 2^-24 of their magnitudes. */
static void check(const layer *l, const results *got, const results *want, const results *magnitude, int which)
{
    static const char *const names[] = {"y", "dx", "dw", "db"};
    assert_int_equal(got->counts[which], want->counts[which]);
    const double all = (double)(got->counts[Y] + got->counts[DX] + l->channels * l->kernel[0] * l->kernel[1]);
    for (int64_t i = 0; i < got->counts[which]; i++) {
        const double value = got->values[which][i], exact = want->values[which][i];
        if (!(fabs(value - exact) <= 0x1.01p-8 * fabs(exact) + fmin(all, 4096) * 0x1p-24 * magnitude->values[which][i]))
            fail_msg("%s: element %d of %s is %.9g, not %.9g", l->name, (int)i, names[which], value, exact);
    }
}

static void test_layers(void **state)
{
    (void)state;
    kn_force_implementation("matmul_f16", "pairs");
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const layer *l = &layers[i];
        assert_true(is_pairs(l));
        results got = compute(l, false, KN_BF16), want = compute(l, false, KN_F64), sizes = compute(l, true, KN_F64);
        for (int which = 0; which < RESULTS; which++)
            check(l, &got, &want, &sizes, which);
        free_results(&got);
        free_results(&want);
        free_results(&sizes);
    }
    kn_force_implementation("matmul_f16", NULL);
}

/* With stride 1 others take fewer multiplications; groups are of other products. */
static void test_others(void **state)
{
    static const layer others[] = {{"3x3", 1, 16, {8, 8}, 16, {3, 3}, 1, 1, KN_ACTIVATION_NONE},
                                   {"few outputs", 1, 3, {8, 8}, 2, {3, 3}, 2, 1, KN_ACTIVATION_NONE}};
    (void)state;
    kn_force_implementation("matmul_f16", "pairs");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(is_pairs(&others[i]));
    kn_force_implementation("matmul_f16", "reference");
    assert_false(is_pairs(&layers[0]));
    kn_force_implementation("matmul_f16", NULL);
}

/* A signal and a volume, and one without a batch. */
static void test_dimensions(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_force_implementation("matmul_f16", "pairs");
    kn_tensor *weight = kn_ones(KN_SHAPE(2, 3, 1), .dtype = KN_BF16), *bias = kn_ones(KN_SHAPE(2), .dtype = KN_BF16);
    CHECK_OK(kn_set_requires_grad(bias, true));
    kn_tensor *signal = kn_conv1d(kn_ones(KN_SHAPE(3, 5), .dtype = KN_BF16), weight, bias);
    CHECK_OK(kn_backward_with(signal, kn_ones_like(signal), false));
    CHECK_VALUES(kn_to_dtype(kn_grad(bias), KN_F32), 5, 5);
    CHECK_VALUES(kn_to_dtype(kn_flatten(signal, 0, -1), KN_F32), 4, 4, 4, 4, 4, 4, 4, 4, 4, 4);
    kn_tensor *volume = kn_conv3d(kn_ones(KN_SHAPE(2, 3, 2, 2, 2), .dtype = KN_BF16),
                                  kn_reshape(weight, 5, (int64_t[]){2, 3, 1, 1, 1}), NULL);
    CHECK_VALUES(kn_to_dtype(kn_sum(volume), KN_F32), 96);
    kn_force_implementation("matmul_f16", NULL);
}

int main(int argc, char **argv)
{
    obey_vector_width(argc, argv);
    if (!kn_device_limits(kn_device_current())->is_cpu) {
        printf("skipped: for CPU devices\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {TEST(test_layers), TEST(test_others), TEST(test_dimensions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
