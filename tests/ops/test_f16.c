/* test_f16.c - f16 and bf16 are storage dtypes: every differentiable operation accepts them, computes in f32, and
 * returns values and gradients in the same dtype, rounded once. Compared with the same operation on the same values in
 * f32. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "support/as_gpu.h"

enum { MAX_INPUTS = 4 };

typedef struct f16_case {
    const char *name;
    kn_tensor *(*build)(kn_tensor *const *x);
    int64_t shapes[MAX_INPUTS][4]; /* 0-terminated; values in [0.25, 2.25) */
    bool alike; /* the same code as others: not in bf16, nor as a GPU, unless KOINE_TEST_FULL is set */
} f16_case;

#define BUILD(name, expression)                                                                                        \
    static kn_tensor *build_##name(kn_tensor *const *x) { return expression; }

static kn_tensor *classes(void) { return kn_from_data(((int64_t[]){1, 6, 0, 3}), KN_SHAPE(4), .dtype = KN_I64); }

#define DIMS(...) (const int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define RELU6 KN_ACTIVATION_RELU6

BUILD(linear, kn_linear(x[0], x[1], x[2]))
BUILD(linear_relu, kn_linear_with(kn_add_scalar(x[0], -1), x[1], x[2], &(kn_linear_params){KN_ACTIVATION_RELU}))
BUILD(linear_no_bias, kn_linear(x[0], x[1], NULL))
BUILD(linear_transposed, kn_linear(kn_t(x[0]), kn_t(x[1]), x[2]))
BUILD(matmul, kn_matmul(x[0], x[1]))
BUILD(matmul_transposed, kn_matmul(kn_t(x[0]), kn_t(x[1])))
BUILD(attention, kn_scaled_dot_product_attention(x[0], x[1], x[2], .is_causal = true))
BUILD(conv2d, kn_conv2d(x[0], x[1], x[2], .padding = 1))
BUILD(conv2d_relu6, kn_conv2d(x[0], x[1], x[2], .stride = 2, .activation = RELU6))
BUILD(depthwise, kn_conv2d(x[0], x[1], NULL, .groups = 3))
BUILD(max_pool2d, kn_max_pool2d(x[0], .kernel_size = 2))
BUILD(avg_pool2d, kn_avg_pool2d(x[0], .kernel_size = 3, .stride = 2))
BUILD(adaptive_max, kn_adaptive_max_pool2d(x[0], 3, 2))
BUILD(adaptive_avg, kn_adaptive_avg_pool2d(x[0], 3, 2))
BUILD(batch_norm, kn_batch_norm(x[0], .weight = x[1], .bias = x[2], .training = true))
BUILD(batch_norm_eval, kn_batch_norm(x[0], .weight = x[1], .bias = x[2], .running_mean = kn_zeros(KN_SHAPE(3)),
                                     .running_var = kn_ones(KN_SHAPE(3)), .activation = RELU6))
BUILD(layer_norm, kn_layer_norm(x[0], KN_SHAPE(8), .weight = x[1], .bias = x[2]))
BUILD(softmax, kn_softmax(x[0], 1))
BUILD(log_softmax, kn_log_softmax(x[0], 0))
BUILD(dropout, (kn_manual_seed(3), kn_dropout(x[0])))
BUILD(dropout2d, (kn_manual_seed(3), kn_dropout2d(x[0])))
BUILD(hardtanh, kn_hardtanh(x[0], 0.5, 1.5))
BUILD(relu6, kn_relu6(x[0]))
BUILD(add_activated, kn_add_activated(x[0], kn_neg(x[1]), KN_ACTIVATION_RELU))
BUILD(cross_entropy, kn_cross_entropy(x[0], classes(), .weight = x[1]))
BUILD(cross_entropy_soft, kn_cross_entropy(x[0], kn_detach(x[1]), .label_smoothing = 0.1))
BUILD(nll_loss, kn_nll_loss(x[0], classes(), .reduction = KN_REDUCTION_NONE))
BUILD(mse_loss, kn_mse_loss(x[0], x[1], KN_REDUCTION_MEAN))
BUILD(bce, kn_binary_cross_entropy_with_logits(x[0], kn_detach(x[1]), NULL, kn_detach(x[2]), KN_REDUCTION_SUM))
BUILD(index_select, kn_index_select(x[0], 0, classes()))
BUILD(sum, kn_sum(x[0]))
BUILD(mean, kn_mean(x[0]))
BUILD(max, kn_max(x[0]))
BUILD(sum_dims, kn_sum_dims(x[0], DIMS(0), false))
BUILD(mean_dims, kn_mean_dims(x[0], DIMS(0, 2), true))
BUILD(max_dim, kn_max_dim(x[0], 1, false, NULL))
BUILD(add, kn_add(x[0], x[1]))
BUILD(heaviside, kn_mul(x[0], kn_heaviside(x[0], x[1])))
BUILD(sub, kn_sub(x[0], x[1]))
BUILD(mul, kn_mul(x[0], x[1]))
BUILD(div, kn_div(x[0], x[1]))
BUILD(pow, kn_pow(x[0], x[1]))
BUILD(maximum, kn_maximum(x[0], x[1]))
BUILD(add_scalar, kn_add_scalar(x[0], 0.5))
BUILD(mul_scalar, kn_mul_scalar(x[0], 3))
BUILD(pow_scalar, kn_pow_scalar(x[0], 1.5))
BUILD(neg, kn_neg(x[0]))
BUILD(exp, kn_exp(x[0]))
BUILD(log, kn_log(x[0]))
BUILD(sqrt, kn_sqrt(x[0]))
BUILD(abs, kn_abs(x[0]))
BUILD(relu, kn_relu(x[0]))
BUILD(sigmoid, kn_sigmoid(x[0]))
BUILD(tanh, kn_tanh(x[0]))
BUILD(clamp, kn_clamp(x[0], .min = 0.5, .max = 2))
BUILD(mul_in_place, kn_mul_(kn_clone(x[0]), x[1]))
BUILD(add_in_place, kn_add_(kn_clone(x[0]), x[1]))
BUILD(expand, kn_clone(kn_expand(x[0], KN_SHAPE(5, 4, 8))))
BUILD(narrow, kn_clone(kn_narrow(x[0], 1, 2, 3)))

/* clang-format off */
#define CASE(name, ...) {#name, build_##name, {__VA_ARGS__}, false}
#define ALIKE(name, ...) {#name, build_##name, {__VA_ARGS__}, true}
static const f16_case cases[] = {
    CASE(linear, {5, 7}, {3, 7}, {3}), ALIKE(linear_relu, {2, 5, 7}, {3, 7}, {3}), ALIKE(linear_no_bias, {7}, {3, 7}),
    ALIKE(linear_transposed, {7, 5}, {7, 3}, {3}), CASE(linear, {65, 40}, {70, 40}, {70}),
    CASE(attention, {2, 5, 7}, {2, 6, 7}, {2, 6, 3}),
    CASE(matmul, {2, 5, 7}, {7, 3}), ALIKE(matmul_transposed, {7, 5}, {3, 7}),
    CASE(conv2d, {2, 3, 8, 7}, {4, 3, 3, 3}, {4}), CASE(conv2d_relu6, {2, 3, 8, 7}, {4, 3, 3, 3}, {4}),
    CASE(depthwise, {2, 3, 8, 7}, {3, 1, 3, 3}),
    CASE(max_pool2d, {2, 3, 8, 7}), CASE(avg_pool2d, {2, 3, 8, 7}), CASE(adaptive_max, {2, 3, 8, 7}),
    ALIKE(adaptive_avg, {2, 3, 8, 7}), CASE(batch_norm, {4, 3, 5}, {3}, {3}),
    CASE(batch_norm_eval, {4, 3, 5}, {3}, {3}), CASE(layer_norm, {4, 8}, {8}, {8}),
    CASE(softmax, {4, 8}), ALIKE(log_softmax, {4, 8}), CASE(dropout, {4, 8}),
    CASE(dropout2d, {2, 3, 4, 4}), ALIKE(hardtanh, {4, 8}), ALIKE(relu6, {4, 8}), ALIKE(add_activated, {4, 8}, {4, 8}),
    CASE(cross_entropy, {4, 8}, {8}), CASE(cross_entropy_soft, {4, 8}, {4, 8}), CASE(nll_loss, {4, 8}),
    ALIKE(mse_loss, {4, 8}, {8}), CASE(bce, {4, 8}, {4, 8}, {8}), CASE(index_select, {7, 8}), CASE(sum, {31}),
    ALIKE(mean, {31}), CASE(max, {31}), ALIKE(sum_dims, {4, 8}), ALIKE(mean_dims, {4, 8, 3}), CASE(max_dim, {4, 8}),
    CASE(add, {4, 8}, {8}), ALIKE(sub, {4, 8}, {4, 1}), ALIKE(mul, {4, 8}, {8}), ALIKE(div, {4, 8}, {8}),
    CASE(pow, {4, 8}, {8}), ALIKE(maximum, {4, 8}, {8}), ALIKE(add_scalar, {31}), ALIKE(mul_scalar, {31}),
    CASE(pow_scalar, {31}), ALIKE(neg, {31}), CASE(exp, {31}), ALIKE(log, {31}), ALIKE(sqrt, {31}), ALIKE(abs, {31}),
    ALIKE(relu, {31}), ALIKE(sigmoid, {31}), ALIKE(tanh, {31}), ALIKE(clamp, {31}), CASE(mul_in_place, {4, 8}, {8}),
    ALIKE(add_in_place, {4, 8}, {8}), ALIKE(expand, {4, 8}), CASE(narrow, {4, 8}), CASE(heaviside, {31}, {31}),
};
/* clang-format on */

typedef struct outcome {
    kn_tensor *y, *gradients[MAX_INPUTS];
} outcome;

/* Runs the case on `values`, converted to `dtype`, with gradients of one. Results in f32. */
static outcome run(const f16_case *c, kn_tensor *const *values, kn_dtype dtype)
{
    kn_tensor *inputs[MAX_INPUTS] = {NULL};
    outcome result = {0};
    for (int i = 0; i < MAX_INPUTS && values[i]; i++) {
        inputs[i] = kn_detach(kn_to_dtype(values[i], dtype));
        CHECK_OK(kn_set_requires_grad(inputs[i], true));
    }
    kn_tensor *y = c->build(inputs);
    CHECK_TENSOR(y);
    if (kn_dtype_of(y) != dtype)
        fail_msg("%s of %s is %s", c->name, kn_dtype_name(dtype), kn_dtype_name(kn_dtype_of(y)));
    CHECK_OK(kn_backward_with(y, kn_ones_like(y), false));
    result.y = kn_to_dtype(kn_detach(y), KN_F32);
    for (int i = 0; i < MAX_INPUTS && inputs[i]; i++) {
        kn_tensor *gradient = kn_grad(inputs[i]);
        if (gradient && kn_dtype_of(gradient) != dtype)
            fail_msg("%s: gradient %d is %s", c->name, i, kn_dtype_name(kn_dtype_of(gradient)));
        result.gradients[i] = gradient ? kn_to_dtype(gradient, KN_F32) : NULL;
    }
    return result;
}

/* A single operation rounds once; the chains above round two or three times, with cancellation: three units in the last
 * place of the largest. */
static void compare(const char *name, const char *what, kn_tensor *half, kn_tensor *single, kn_dtype dtype)
{
    assert_int_equal(half == NULL, single == NULL);
    if (!half)
        return;
    const size_t bytes = (size_t)kn_numel(half) * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes), largest = 0;
    assert_int_equal(kn_numel(single), kn_numel(half));
    CHECK_OK(kn_read(half, a, bytes));
    CHECK_OK(kn_read(single, b, bytes));
    for (int64_t i = 0; i < kn_numel(half); i++)
        largest = fmaxf(largest, fabsf(b[i]));
    for (int64_t i = 0; i < kn_numel(half); i++)
        if (!(fabsf(a[i] - b[i]) <= (dtype == KN_F16 ? 0x1.8p-10f : 0x1.8p-7f) * largest + 0x1p-24f))
            fail_msg("%s: element %d of %s is %g in %s, %g in f32", name, (int)i, what, a[i], kn_dtype_name(dtype),
                     b[i]);
    free(a);
    free(b);
}

static void check_case(const f16_case *c, kn_dtype dtype)
{
    kn_tensor *values[MAX_INPUTS + 1] = {NULL};
    KN_SCOPE;
    kn_manual_seed(11);
    for (int i = 0; i < MAX_INPUTS && c->shapes[i][0] > 0; i++) {
        int ndim = 0;
        while (ndim < 4 && c->shapes[i][ndim] > 0)
            ndim++;
        kn_tensor *uniform = kn_rand_with(ndim, c->shapes[i], &(kn_tensor_options){.dtype = KN_F32});
        values[i] = kn_to_dtype(kn_to_dtype(kn_add_scalar(kn_mul_scalar(uniform, 2), 0.25), dtype), KN_F32);
    }
    const outcome half = run(c, values, dtype), single = run(c, values, KN_F32);
    compare(c->name, "the result", half.y, single.y, dtype);
    for (int i = 0; i < MAX_INPUTS; i++)
        compare(c->name, "a gradient", half.gradients[i], single.gradients[i], dtype);
}

static void every_operation_takes_both(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bool runs_all = !cases[i].alike || test_full();
        if (runs_all || !simulates_gpu())
            check_case(&cases[i], KN_F16);
        if (runs_all)
            check_case(&cases[i], KN_BF16);
    }
}

/* A partial sum beyond f16's range, and a bias that f16 would lose: one rounding, at the end. */
TENSOR_TEST(a_linear_layer_rounds_once)
{
    kn_tensor *x = kn_full(KN_SHAPE(1, 1024), 16, .dtype = KN_F16), *w = kn_full(KN_SHAPE(1, 1024), 8, .dtype = KN_F16);
    kn_tensor *b = kn_full(KN_SHAPE(1), -65504, .dtype = KN_F16);
    double value = 0;
    CHECK_OK(kn_item(kn_linear(x, w, b), &value));
    assert_true(value == INFINITY); /* 131072 - 65504 = 65568 */
    w = kn_full(KN_SHAPE(1, 1024), 4.0625, .dtype = KN_F16);
    CHECK_VALUES(kn_to_dtype(kn_linear(x, w, b), KN_F32), 1056); /* 66560 is out of range */
    kn_tensor *cut = kn_linear_with(x, w, b, &(kn_linear_params){KN_ACTIVATION_RELU6});
    CHECK_VALUES(kn_to_dtype(cut, KN_F32), 6);
}

TENSOR_TEST(a_product_of_bf16_rounds_once)
{
    kn_tensor *x = kn_full(KN_SHAPE(1, 1000), 1, .dtype = KN_BF16),
              *w = kn_full(KN_SHAPE(1, 1000), 1, .dtype = KN_BF16);
    kn_tensor *b = kn_full(KN_SHAPE(1), 3, .dtype = KN_BF16);
    CHECK_VALUES(kn_to_dtype(kn_linear(x, w, b), KN_F32), 1004); /* 1003, where bf16 counts by fours */
    CHECK_VALUES(kn_to_dtype(kn_matmul(x, kn_t(w)), KN_F32), 1000);
}

TENSOR_TEST(mixtures_are_refused)
{
    kn_tensor *x = kn_ones(KN_SHAPE(2, 3), .dtype = KN_F16), *w = kn_ones(KN_SHAPE(4, 3));
    assert_null(kn_linear(x, w, NULL));
    CHECK_ERROR(KN_ERR_DTYPE, "linear: inputs of dtype float16 and float32");
    kn_tensor *image = kn_ones(KN_SHAPE(1, 1, 3, 3), .dtype = KN_F16), *kernel = kn_ones(KN_SHAPE(1, 1, 2, 2));
    assert_null(kn_conv2d(image, kernel, NULL));
    CHECK_ERROR(KN_ERR_DTYPE, "conv2d: inputs of dtype float16 and float32");
    kn_tensor *other = kn_ones(KN_SHAPE(1, 1, 2, 2), .dtype = KN_BF16);
    assert_null(kn_conv2d(image, other, NULL));
    CHECK_ERROR(KN_ERR_DTYPE, "conv2d: inputs of dtype float16 and bfloat16");
    assert_null(kn_linear(kn_ones(KN_SHAPE(2, 3), .dtype = KN_I32), kn_ones(KN_SHAPE(4, 3), .dtype = KN_I32), NULL));
    CHECK_ERROR(KN_ERR_DTYPE, "linear: x is int32");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(every_operation_takes_both),
        TEST(a_linear_layer_rounds_once),
        TEST(a_product_of_bf16_rounds_once),
        TEST(mixtures_are_refused),
    };
    obey_as_gpu(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--tensor-cores") == 0)
        kn_force_implementation("matmul_f16", "tensor");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
