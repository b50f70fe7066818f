/* test_promotion.c - rounding in operations of several dtypes, and infinities times zeros, exactly as in PyTorch. The
 * numbers are PyTorch's. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "support/values.h"

#define F32_OF(...)                                                                                                    \
    tensor_of_doubles((const double[]){__VA_ARGS__},                                                                   \
                      KN_SHAPE((int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))), KN_F32, false)
#define HALF(...) kn_to_dtype(F32_OF(__VA_ARGS__), KN_F16)
#define WHOLE_OF(dtype, ...)                                                                                           \
    tensor_of_doubles((const double[]){__VA_ARGS__},                                                                   \
                      KN_SHAPE((int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))), dtype, false)
#define F64_OF(...) WHOLE_OF(KN_F64, __VA_ARGS__)
#define NUMBER(type, value) kn_full(KN_SCALAR, value, .dtype = (type))

#define CHECK_TYPED(tensor, dtype, ...)                                                                                \
    do {                                                                                                               \
        kn_tensor *typed_ = (tensor);                                                                                  \
        CHECK_DTYPE(typed_, dtype);                                                                                    \
        CHECK_VALUES(typed_, __VA_ARGS__);                                                                             \
    } while (0)
#define CHECK_HALF(tensor, ...) CHECK_TYPED(tensor, KN_F16, __VA_ARGS__)

/* --- float16 ------------------------------------------------------------------------------------------------------ */

TENSOR_TEST(operands_of_float16_are_rounded_first)
{
    CHECK_HALF(kn_add(HALF(0.5, 1), WHOLE_OF(KN_I32, 2049, 65520)), 2048, INFINITY);
    CHECK_HALF(kn_add(HALF(2048, 1), NUMBER(KN_F32, 1234.567)), 3284, 1236);
    CHECK_HALF(kn_mul(NUMBER(KN_F32, 2049), HALF(1, 3)), 2048, 6144);
    CHECK_HALF(kn_maximum(WHOLE_OF(KN_I32, 2049, 3), HALF(1, 5)), 2048, 5);
    CHECK_HALF(kn_pow(WHOLE_OF(KN_I32, 65520, 4), HALF(0.5, 0.5)), INFINITY, 2);
}

TENSOR_TEST(a_factor_without_dimensions_is_not)
{
    CHECK_HALF(kn_mul(HALF(1, 3), NUMBER(KN_F32, 2049)), 2048, 6148);
    CHECK_HALF(kn_div(HALF(2048, 1), NUMBER(KN_I64, 2049)), 0.99951171875, 0.00048804283142089844);
    CHECK_HALF(kn_mul_(HALF(1, 3), NUMBER(KN_I64, 2049)), 2048, 6148);
}

TENSOR_TEST(comparisons_with_float16_round_too)
{
    CHECK_VALUES(kn_eq(HALF(2048, 2052, INFINITY), WHOLE_OF(KN_I64, 2049, 2051, 65520)), 1, 1, 1);
    CHECK_VALUES(kn_lt(WHOLE_OF(KN_I32, 2047, 2049), HALF(2048, 2050)), 1, 1);
    CHECK_VALUES(kn_eq(HALF(0.1, 2048), NUMBER(KN_F32, 0.1)), 1, 0);
}

/* Thirds in float64. */
/* 1.351 is 1.3515625 in bfloat16. The numbers of sums, products and quotients keep their digits. */
TENSOR_TEST(numbers_are_rounded_as_operands)
{
    kn_tensor *x = kn_full(KN_SHAPE(1), 1.3515625, .dtype = KN_BF16), *two = kn_full(KN_SHAPE(1), 2, .dtype = KN_BF16);
    CHECK_VALUES(kn_eq_scalar(x, 1.351), 1);
    CHECK_VALUES(kn_ne_scalar(x, 1.351), 0);
    CHECK_VALUES(kn_le_scalar(x, 1.351), 1);
    CHECK_VALUES(kn_gt_scalar(x, 1.351), 0);
    CHECK_VALUES(kn_eq_scalar(kn_full(KN_SHAPE(1), 256, .dtype = KN_BF16), 257), 1);
    CHECK_VALUES(kn_eq_scalar(kn_to_dtype(x, KN_F32), 1.351), 0);
    CHECK_VALUES(kn_remainder_scalar(x, 1.351), 0);
    CHECK_VALUES(kn_fmod_scalar(x, 1.351), 0);
    CHECK_VALUES(kn_pow_scalar(two, 10.03), 1024); /* 10 */
    CHECK_VALUES(kn_rpow_scalar(two, 10.03), 100);
    CHECK_VALUES(kn_mul_scalar(kn_full(KN_SHAPE(1), 1.9921875, .dtype = KN_BF16), 1.003), 2);
}

/* Rounded to float16 both differences were 2048, and the gradient would be shared. */
TENSOR_TEST(differences_of_halves_are_not_rounded)
{
    kn_tensor *a = kn_reshape(HALF(2048, 1024), KN_SHAPE(1, 2)), *b = kn_reshape(HALF(-1, -1024), KN_SHAPE(1, 2));
    kn_set_requires_grad(a, true);
    kn_tensor *distance = kn_cdist(a, b, INFINITY);
    CHECK_DTYPE(distance, KN_F16);
    CHECK_OK(kn_backward(distance));
    CHECK_VALUES(kn_grad(a), 1, 0);
}

TENSOR_TEST_F64(embeddings_divide_by_frequencies_in_their_dtype)
{
    kn_tensor *weight = kn_ones(KN_SHAPE(2, 1), .dtype = KN_F64, .requires_grad = true);
    kn_tensor *indices = kn_from_data(((int64_t[]){1, 1, 1}), KN_SHAPE(3), .dtype = KN_I64);
    CHECK_OK(kn_backward(kn_sum(kn_embedding(indices, weight, .scale_grad_by_freq = true))));
    double *gradient = read_doubles(kn_grad(weight));
    assert_non_null(gradient);
    assert_true(gradient[0] == 0 && fabs(gradient[1] - 1) < 1e-15);
    free(gradient);
}

TENSOR_TEST(clamp_has_no_gradient_at_its_bounds)
{
    kn_tensor *x =
        kn_from_data(((float[]){NAN, -INFINITY, INFINITY, 0, -0.f, 0.5f, 1, 2}), KN_SHAPE(8), .requires_grad = true);
    CHECK_OK(kn_backward(kn_sum(kn_clamp(x, .min = 0, .max = 1))));
    CHECK_VALUES(kn_grad(x), 0, 0, 0, 0, 0, 1, 0, 0);
    kn_set_grad(x, NULL);
    CHECK_OK(kn_backward(kn_sum(kn_clamp(x, .max = 1)))); /* the other bound is absent */
    CHECK_VALUES(kn_grad(x), 0, 1, 0, 1, 1, 1, 0, 0);
    kn_set_grad(x, NULL);
    CHECK_OK(kn_backward(kn_sum(kn_clamp(x, .min = 1, .max = 1))));
    CHECK_VALUES(kn_grad(x), 0, 0, 0, 0, 0, 0, 0, 0);
}

/* --- changes in place --------------------------------------------------------------------------------------------- */

TENSOR_TEST(changes_in_place_are_computed_in_the_joint_dtype)
{
    CHECK_HALF(kn_add_(HALF(2049, 0.0999755859375), F32_OF(100.7001, 0.00003)), 2148, 0.0999755859375);
    kn_tensor *x = kn_to_dtype(F32_OF(1, 2), KN_F16), *y, *z = F32_OF(3, 5);
    CHECK_OK(kn_set_requires_grad(x, true));
    CHECK_OK(kn_set_requires_grad(z, true));
    y = kn_mul_(kn_mul_scalar(x, 1), z);
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_HALF(kn_grad(x), 3, 5);
    CHECK_DTYPE(kn_grad(z), KN_F32);
    CHECK_VALUES(kn_grad(z), 1, 2);
}

TENSOR_TEST_F64(float32_changed_by_float64)
{
    /* Slightly more than half a step above 1, and a third number that float32 cannot represent. */
    kn_tensor *one = kn_add_(F32_OF(1), F64_OF(0x1p-24 + 0x1p-40));
    double value;
    CHECK_OK(kn_item(one, &value));
    assert_true(value == 1 + 0x1p-23);
    CHECK_OK(kn_item(kn_mul_(F32_OF(3), F64_OF(1.0 / 3)), &value));
    assert_true(value == 1);
    /* so are gradients: float32 has no 1e39 */
    kn_tensor *divisor = kn_full(KN_SHAPE(1), 1e-20, .dtype = KN_F64, .requires_grad = true);
    CHECK_OK(kn_backward(kn_div_(F32_OF(0.1), divisor)));
    CHECK_OK(kn_item(kn_grad(divisor), &value));
    assert_true(fabs(value + 1e39) < 1e33);
}

/* The loss expands its operands first, and a tensor with dimensions widens the dtype. */
TENSOR_TEST_F64(mse_of_a_number)
{
    const kn_reduction reductions[] = {KN_REDUCTION_MEAN, KN_REDUCTION_NONE};
    for (int i = 0; i < 2; i++) {
        kn_tensor *loss = kn_mse_loss(F32_OF(1), NUMBER(KN_F64, 2), reductions[i]);
        CHECK_DTYPE(loss, KN_F64);
        CHECK_VALUES(loss, 1);
    }
    CHECK_VALUES(kn_mse_loss(F32_OF(1, 3), WHOLE_OF(KN_BOOL, 1, 0), KN_REDUCTION_NONE), 0, 9);
}

/* --- bool --------------------------------------------------------------------------------------------------------- */

/* Powers, quotients and bounds take bool beside another dtype, and with numbers. */
TENSOR_TEST(bool_tensors_are_promoted)
{
    kn_tensor *truth = WHOLE_OF(KN_BOOL, 1, 0, 1), *x = F32_OF(1.5, 2.5, -3), *whole = WHOLE_OF(KN_I64, 1, 2, 3);
    CHECK_TYPED(kn_pow(truth, x), KN_F32, 1, 0, 1);
    CHECK_TYPED(kn_pow(whole, truth), KN_I64, 1, 1, 3);
    CHECK_TYPED(kn_pow_scalar(truth, 2), KN_I64, 1, 0, 1);
    CHECK_TYPED(kn_pow_scalar(truth, 0.5), KN_F32, 1, 0, 1);
    CHECK_TYPED(kn_rpow_scalar(truth, 2), KN_I64, 2, 1, 2);
    CHECK_TYPED(kn_remainder(truth, x), KN_F32, 1, 0, -2);
    CHECK_TYPED(kn_fmod(truth, whole), KN_I64, 0, 0, 1);
    CHECK_TYPED(kn_floor_divide(truth, x), KN_F32, 0, 0, -1);
    CHECK_TYPED(kn_remainder_scalar(truth, 2), KN_I64, 1, 0, 1);
    CHECK_TYPED(kn_floor_divide_scalar(truth, 0.75), KN_F32, 1, 0, 1);
    CHECK_TYPED(kn_clamp(truth, .min = -1, .max = 2), KN_I64, 1, 0, 1);
    CHECK_TYPED(kn_clamp(truth, .max = 0.5), KN_F32, 0.5, 0, 0.5);
    CHECK_TYPED(kn_sign(truth), KN_BOOL, 1, 0, 1);
    assert_null(kn_pow(truth, truth));
    CHECK_ERROR(KN_ERR_DTYPE, "pow: not defined for bool tensors");
    assert_null(kn_remainder(truth, truth));
    CHECK_ERROR(KN_ERR_DTYPE, "remainder: not defined for bool tensors");
}

TENSOR_TEST(bool_tensors_are_not_subtracted)
{
    const kn_dtype others[] = {KN_BOOL, KN_U8, KN_I64, KN_F16, KN_F32};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        kn_tensor *other = kn_ones(KN_SHAPE(2), .dtype = others[i]), *flags = kn_ones(KN_SHAPE(2), .dtype = KN_BOOL);
        kn_tensor *flag = kn_ones(KN_SCALAR, .dtype = KN_BOOL);
        assert_null(kn_sub(other, flags));
        CHECK_ERROR(KN_ERR_DTYPE, "sub", "bool", "kn_ne");
        assert_null(kn_sub(flags, other));
        CHECK_ERROR(KN_ERR_DTYPE, "sub", "bool");
        assert_null(kn_sub(other, flag));
        CHECK_ERROR(KN_ERR_DTYPE, "sub", "bool");
        assert_null(kn_sub_(other, flags));
        CHECK_ERROR(KN_ERR_DTYPE, "sub_", "bool");
        CHECK_VALUES(other, 1, 1);
    }
}

/* --- powers ------------------------------------------------------------------------------------------------------- */

/* The tensor's elements are these within two units in the last place of float32. */
static void check_precise(kn_tensor *tensor, const double *expected, int count)
{
    double *values = read_doubles(tensor);
    assert_non_null(values);
    for (int i = 0; i < count; i++)
        assert_true(fabs(values[i] - expected[i]) <= 0x1p-22 * fabs(expected[i]));
    free(values);
}

/* A float64 scalar with a float32 tensor does not widen, but both gradients use its exact value, not its float32
 * rounding: the logarithm of 1.00001 would be lost. Exact values. */
TENSOR_TEST_F64(powers_of_two_dtypes_keep_their_digits)
{
    const double bases[] = {1e-30, 2}, near_one = 1.00001;
    kn_tensor *a = tensor_of_doubles(bases, KN_SHAPE(2), KN_F32, true);
    kn_tensor *b = kn_full(KN_SCALAR, 1.1, .dtype = KN_F64, .requires_grad = true), *y = kn_pow(a, b);
    CHECK_DTYPE(y, KN_F32);
    CHECK_OK(kn_backward(kn_sum(y)));
    const double first = (double)1e-30F;
    check_precise(kn_grad(a), (const double[]){1.1 * pow(first, 1.1 - 1), 1.1 * pow(2, 1.1 - 1)}, 2);
    CHECK_DTYPE(kn_grad(b), KN_F64);
    check_precise(kn_grad(b), (const double[]){pow(first, 1.1) * log(first) + pow(2, 1.1) * log(2)}, 1);

    a = kn_full(KN_SCALAR, near_one, .dtype = KN_F64, .requires_grad = true);
    b = tensor_of_doubles((const double[]){2, 3}, KN_SHAPE(2), KN_F32, true);
    CHECK_OK(kn_backward(kn_sum(kn_pow(a, b))));
    check_precise(kn_grad(a), (const double[]){2 * near_one + 3 * near_one * near_one}, 1);
    check_precise(kn_grad(b), (const double[]){pow(near_one, 2) * log(near_one), pow(near_one, 3) * log(near_one)}, 2);
}

/* Double vectors with a 0, an infinity or NaN in one lane: the other lanes are correct (a driver bug). */
TENSOR_TEST_F64(powers_beside_zeros_and_infinities)
{
    const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-1074, 1e-310};
    const double exponents[] = {1, 0.5, 2.5, -1.5, 4};
    for (size_t s = 0; s < sizeof special / sizeof special[0]; s++)
        for (size_t e = 0; e < sizeof exponents / sizeof exponents[0]; e++) {
            double x[48];
            for (int i = 0; i < 48; i++)
                x[i] = i % 5 == 2 ? special[s] : 0.25 + i / 16.0;
            double *y = read_doubles(kn_pow_scalar(tensor_of_doubles(x, KN_SHAPE(48), KN_F64, false), exponents[e]));
            assert_non_null(y);
            for (int i = 0; i < 48; i++)
                if (i % 5 != 2)
                    assert_true(fabs(y[i] - pow(x[i], exponents[e])) <= 1e-14 * y[i]);
            free(y);
        }
}

TENSOR_TEST(roots_by_powers_are_roots)
{
    kn_tensor *x = tensor_of_doubles((const double[]){-INFINITY, 4}, KN_SHAPE(2), KN_F32, true);
    kn_tensor *y = kn_pow_scalar(x, 0.5);
    CHECK_VALUES(y, NAN, 2);
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(x), NAN, 0.25);
}

TENSOR_TEST(variances_beyond_the_largest_number_are_infinite)
{
    CHECK_VALUES(kn_var(F32_OF(1.5e30, 0, 1)), INFINITY);
    CHECK_VALUES(kn_std(F32_OF(0, 3e38, -3e38, 0, 2)), INFINITY);
}

/* --- infinite gradients ------------------------------------------------------------------------------------------- */

TENSOR_TEST(infinite_gradients_meet_zeros)
{
    kn_tensor *infinity = kn_full(KN_SHAPE(2), INFINITY);
    kn_tensor *a = tensor_of_doubles((const double[]){0, 0}, KN_SHAPE(2), KN_F32, true);
    kn_tensor *b = tensor_of_doubles((const double[]){2, 0}, KN_SHAPE(2), KN_F32, true);
    CHECK_OK(kn_backward_with(kn_pow(a, b), infinity, false));
    CHECK_VALUES(kn_grad(a), NAN, 0);
    CHECK_VALUES(kn_grad(b), NAN, NAN);
    /* The maximum selects instead of multiplying. */
    kn_tensor *x = tensor_of_doubles((const double[]){1, 3, 2}, KN_SHAPE(3), KN_F32, true);
    CHECK_OK(kn_backward_with(kn_max(x), kn_full(KN_SCALAR, INFINITY), false));
    CHECK_VALUES(kn_grad(x), 0, INFINITY, 0);
    /* dl/dt = -x of a logit of minus infinity. */
    kn_tensor *t = kn_zeros(KN_SHAPE(1), .requires_grad = true);
    CHECK_OK(kn_backward(
        kn_binary_cross_entropy_with_logits(kn_full(KN_SHAPE(1), -INFINITY), t, NULL, NULL, KN_REDUCTION_SUM)));
    CHECK_VALUES(kn_grad(t), INFINITY);
}

/* --- pooling and normalisation ------------------------------------------------------------------------------------ */

static int64_t inside(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

/* The index of the maximum of each window of 3 x 3, padded by 1, is the one that `first` says: of the window's first
 * element inside, else of its last one. So are those that the gradient uses. */
static void check_places(double value, bool first, int64_t stride)
{
    enum { HEIGHT = 4, WIDTH = 71 };
    kn_tensor *x = kn_full(KN_SHAPE(1, 1, HEIGHT, WIDTH), value, .requires_grad = true), *indices = NULL;
    kn_tensor *y = kn_max_pool2d_with_indices(x, &indices, .kernel_size = 3, .stride = stride, .padding = 1);
    CHECK_TENSOR(y);
    CHECK_OK(kn_backward(kn_sum(kn_max_pool2d(x, .kernel_size = 3, .stride = stride, .padding = 1))));
    int64_t *places = read_integers(indices);
    double *gradient = read_doubles(kn_grad(x)), expected[HEIGHT * WIDTH] = {0};
    for (int64_t i = 0, columns = kn_size(y, 3); i < kn_numel(y); i++) {
        const int64_t h = i / columns * stride, w = i % columns * stride;
        const int64_t place = first ? inside(h - 1, HEIGHT) * WIDTH + inside(w - 1, WIDTH)
                                    : inside(h + 1, HEIGHT) * WIDTH + inside(w + 1, WIDTH);
        assert_int_equal(places[i], place);
        expected[places[i]]++;
    }
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        assert_true(gradient[i] == expected[i]);
    free(places);
    free(gradient);
}

TENSOR_TEST(max_pooling_takes_the_last_nan_and_the_first_of_equal_elements)
{
    for (int64_t stride = 1; stride <= 3; stride++) {
        check_places(-INFINITY, true, stride);
        check_places(2, true, stride);
        check_places(NAN, false, stride);
    }
}

TENSOR_TEST(adaptive_max_pooling_takes_the_last_nan)
{
    const double values[] = {1, NAN, 2, NAN, NAN, 3, 0, NAN, 5, 1, NAN, 0, NAN, 1, 1, NAN};
    kn_tensor *x = tensor_of_doubles(values, KN_SHAPE(1, 1, 4, 4), KN_F32, true);
    CHECK_OK(kn_backward(kn_sum(kn_adaptive_max_pool2d(x, 1, 1))));
    CHECK_VALUES(kn_grad(x), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
    CHECK_OK(kn_set_grad(x, NULL));
    CHECK_OK(kn_backward(kn_sum(kn_adaptive_max_pool2d(x, 2, 2))));
    CHECK_VALUES(kn_grad(x), 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1);
    CHECK_OK(kn_set_grad(x, NULL));
    CHECK_OK(kn_backward(kn_sum(kn_adaptive_max_pool2d(x, 3, 3))));
    CHECK_VALUES(kn_grad(x), 0, 1, 0, 0, 2, 0, 0, 1, 0, 0, 3, 0, 1, 0, 0, 1);

    double wide[2 * 64] = {[3] = NAN, [40] = 1, [64 + 5] = NAN, [64 + 7] = NAN, [64 + 50] = 1};
    x = tensor_of_doubles(wide, KN_SHAPE(1, 1, 2, 64), KN_F32, true);
    CHECK_OK(kn_backward(kn_sum(kn_adaptive_max_pool2d(x, 1, 2))));
    CHECK_VALUES(kn_nonzero(kn_flatten(kn_grad(x), 0, -1)), 40, 71);
}

/* Over some dimensions all gradients are NaN; over all the elements that are NaN share it. */
TENSOR_TEST(gradients_of_extremes_that_are_nan)
{
    kn_tensor *x = tensor_of_doubles((const double[]){1, NAN, 3, NAN, 2, 2}, KN_SHAPE(2, 3), KN_F32, true);
    kn_tensor *max, *min = kn_aminmax_dims(x, (int[]){0}, 1, false, &max);
    CHECK_OK(kn_backward(kn_sum(kn_add(min, kn_mul_scalar(max, 2)))));
    CHECK_VALUES(kn_grad(x), NAN, NAN, 2, NAN, NAN, 1);
    CHECK_OK(kn_set_grad(x, NULL));
    CHECK_OK(kn_backward(kn_add(kn_max(x), kn_min(x))));
    CHECK_VALUES(kn_grad(x), 0, 1, 0, 1, 0, 0);
    CHECK_OK(kn_set_grad(x, NULL));
    CHECK_OK(kn_backward(kn_sum(kn_max_dim(x, 0, false, NULL))));
    CHECK_VALUES(kn_grad(x), 0, 1, 1, 1, 0, 0);
}

TENSOR_TEST(the_counts_of_nothing_are_integers)
{
    kn_tensor *counts =
        kn_bincount(kn_zeros(KN_SHAPE(0), .dtype = KN_I32), .weights = kn_zeros(KN_SHAPE(0)), .minlength = 3);
    CHECK_DTYPE(counts, KN_I64);
    CHECK_VALUES(counts, 0, 0, 0);
    CHECK_DTYPE(kn_bincount(WHOLE_OF(KN_I32, 1, 1), .weights = F32_OF(1, 2)), KN_F32);
}

TENSOR_TEST_F64(power_pooling_of_zeros_has_a_gradient_of_0)
{
    for (int norm_type = 1; norm_type <= 3; norm_type++) {
        kn_tensor *x = tensor_of_doubles((const double[]){0, 0, 3, 0}, KN_SHAPE(1, 1, 4), KN_F64, true);
        kn_tensor *y = kn_lp_pool1d(x, norm_type, .kernel_size = 2);
        CHECK_VALUES(y, 0, 3);
        CHECK_OK(kn_backward(kn_sum(y)));
        CHECK_VALUES(kn_grad(x), 0, 0, 1, norm_type == 1 ? 1 : 0);
    }
}

TENSOR_TEST(the_trace_of_a_matrix_whose_rows_are_one)
{
    kn_tensor *x = kn_ones(KN_SHAPE(3), .requires_grad = true), *trace = kn_trace(kn_expand(x, KN_SHAPE(2, 3)));
    CHECK_VALUES(trace, 2);
    CHECK_OK(kn_backward(trace));
    CHECK_VALUES(kn_grad(x), 1, 1, 0);
}

TENSOR_TEST(empty_batches_need_no_running_estimates)
{
    const int64_t shapes[][3] = {{0, 3, 4}, {2, 3, 0}};
    for (int i = 0; i < 2; i++) {
        kn_tensor *x = kn_zeros_with(3, shapes[i], &(kn_tensor_options){.requires_grad = true});
        kn_tensor *weight = kn_ones(KN_SHAPE(3), .requires_grad = true),
                  *bias = kn_ones(KN_SHAPE(3), .requires_grad = true);
        kn_tensor *y = kn_batch_norm(x, .weight = weight, .bias = bias);
        CHECK_TENSOR(y);
        assert_true(kn_numel(y) == 0 && kn_ndim(y) == 3);
        CHECK_OK(kn_backward(kn_sum(y)));
        CHECK_VALUES(kn_grad(weight), 0, 0, 0);
        CHECK_VALUES(kn_grad(bias), 0, 0, 0);
        assert_true(kn_grad(x) && kn_numel(kn_grad(x)) == 0);
    }
    assert_null(kn_batch_norm(kn_ones(KN_SHAPE(2, 3))));
    CHECK_ERROR(KN_ERR_ARGUMENT, "running_mean");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(operands_of_float16_are_rounded_first),
        TEST(a_factor_without_dimensions_is_not),
        TEST(comparisons_with_float16_round_too),
        TEST(numbers_are_rounded_as_operands),
        TEST(clamp_has_no_gradient_at_its_bounds),
        TEST(differences_of_halves_are_not_rounded),
        TEST(embeddings_divide_by_frequencies_in_their_dtype),
        TEST(changes_in_place_are_computed_in_the_joint_dtype),
        TEST(float32_changed_by_float64),
        TEST(mse_of_a_number),
        TEST(bool_tensors_are_promoted),
        TEST(bool_tensors_are_not_subtracted),
        TEST(powers_of_two_dtypes_keep_their_digits),
        TEST(powers_beside_zeros_and_infinities),
        TEST(roots_by_powers_are_roots),
        TEST(variances_beyond_the_largest_number_are_infinite),
        TEST(infinite_gradients_meet_zeros),
        TEST(max_pooling_takes_the_last_nan_and_the_first_of_equal_elements),
        TEST(adaptive_max_pooling_takes_the_last_nan),
        TEST(gradients_of_extremes_that_are_nan),
        TEST(the_counts_of_nothing_are_integers),
        TEST(power_pooling_of_zeros_has_a_gradient_of_0),
        TEST(the_trace_of_a_matrix_whose_rows_are_one),
        TEST(empty_batches_need_no_running_estimates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
