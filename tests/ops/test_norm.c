/* test_norm.c - normalisation beyond the rows of the op table: running estimates, means far from zero, both work
 * divisions, storage dtypes, and errors. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "support/as_gpu.h"
#include "support/values.h"
#include "tensor/tensor.h"

/* float32 values: mean + deviation * u, u in -1 .. 1. */
static kn_tensor *values_about(double mean, double deviation, int ndim, const int64_t *shape, kn_dtype dtype,
                               const char *seed)
{
    int64_t count = kn_shape_numel(ndim, shape);
    double *values = malloc((size_t)count * sizeof *values);
    test_random random = test_random_from(seed);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(mean + deviation * test_random_uniform(&random, -1, 1));
    kn_tensor *tensor = tensor_of_doubles(values, ndim, shape, dtype, true);
    free(values);
    CHECK_TENSOR(tensor);
    return tensor;
}

static void check_close(const kn_tensor *actual, const kn_tensor *expected, double tolerance)
{
    char message[400];
    double *a = read_doubles(actual), *b = read_doubles(expected), largest = 0;
    assert_non_null(a);
    assert_non_null(b);
    for (int64_t i = 0; i < kn_numel(expected); i++)
        largest = fmax(largest, fabs(b[i]));
    if (!values_close(a, b, kn_numel(expected), (closeness){0, tolerance * largest}, message, sizeof message))
        fail_msg("%s", message);
    free(a);
    free(b);
}

static kn_tensor *gradient_of(kn_tensor *y, kn_tensor *x)
{
    kn_tensor *g = values_about(0, 1, kn_ndim(y), kn_shape(y), kn_dtype_of(y), "gradient");
    kn_set_requires_grad(g, false);
    CHECK_OK(kn_backward_with(y, g, false));
    return kn_grad(x);
}

/* --- far from zero ------------------------------------------------------------------------------------------------ */

/* Mean 1e4, deviation 1e-2: float32 represents a value to 5e-4, and the represented values are normalised to within
 * 1e-5 of the largest result. A mean rounded to float32 would leave one correct digit, a difference of squares none.
 * eps is small so that it does not mask the deviation. */
static void far_from_zero(int ndim, const int64_t *shape)
{
    kn_tensor *y[2], *dx[2], *mean[2], *var[2];
    for (int f64 = 0; f64 < 2; f64++) {
        const kn_dtype dtype = f64 ? KN_F64 : KN_F32;
        kn_tensor *x = values_about(1e4, 1e-2, ndim, shape, dtype, "far");
        mean[f64] = kn_zeros(KN_SHAPE(shape[1]), .dtype = dtype);
        var[f64] = kn_zeros(KN_SHAPE(shape[1]), .dtype = dtype);
        y[f64] = kn_batch_norm(x, .running_mean = mean[f64], .running_var = var[f64], .training = true, .momentum = 1,
                               .eps = 1e-12);
        CHECK_TENSOR(y[f64]);
        dx[f64] = gradient_of(y[f64], x);
    }
    check_close(y[0], y[1], 1e-5);
    check_close(dx[0], dx[1], 1e-5);
    check_close(mean[0], mean[1], 1e-7);
    check_close(var[0], var[1], 1e-5);
}

TENSOR_TEST_F64(a_mean_far_from_zero_costs_no_digits)
{
    far_from_zero(2, (const int64_t[]){1003, 5});       /* channels together */
    far_from_zero(3, (const int64_t[]){64, 18, 7});     /* tiles with a partial end */
    far_from_zero(3, (const int64_t[]){8, 3, 100});     /* runs */
    far_from_zero(3, (const int64_t[]){3, 2, 30011});   /* several chunks */
    far_from_zero(3, (const int64_t[]){2, 1, 1000000}); /* many */
}

TENSOR_TEST_F64(layer_norm_far_from_zero)
{
    kn_tensor *y[2], *dx[2];
    for (int f64 = 0; f64 < 2; f64++) {
        kn_tensor *x = values_about(1e4, 1e-2, 2, (const int64_t[]){7, 5003}, f64 ? KN_F64 : KN_F32, "far");
        y[f64] = kn_layer_norm(x, KN_SHAPE(5003), .eps = 1e-12);
        dx[f64] = gradient_of(y[f64], x);
    }
    check_close(y[0], y[1], 1e-5);
    check_close(dx[0], dx[1], 1e-5);
}

/* A mean is that of differences from the channel's first value, whose errors must not add up. */
TENSOR_TEST(a_first_value_far_from_the_mean)
{
    enum { OUTER = 3, CHANNELS = 50, INNER = 60 };
    kn_tensor *x = values_about(0, 3, 3, (const int64_t[]){OUTER, CHANNELS, INNER}, KN_F32, "first");
    kn_tensor *found = kn_zeros(KN_SHAPE(CHANNELS)), *variance = kn_ones(KN_SHAPE(CHANNELS));
    {
        KN_NO_GRAD;
        CHECK_TENSOR(kn_fill_(kn_narrow(kn_narrow(x, 0, 0, 1), 2, 0, 1), 12));
    }
    CHECK_TENSOR(kn_batch_norm(x, .running_mean = found, .running_var = variance, .training = true, .momentum = 1));
    double *values = read_doubles(x), *mean = read_doubles(found), off = 0;
    assert_true(values && mean);
    for (int c = 0; c < CHANNELS; c++) {
        double sum = 0;
        for (int i = 0; i < OUTER * INNER; i++)
            sum += values[(i / INNER * CHANNELS + c) * INNER + i % INNER];
        off = fmax(off, fabs(mean[c] - sum / (OUTER * INNER)));
    }
    if (off > 2e-6)
        fail_msg("a mean is off by %g", off);
    free(values);
    free(mean);
}

/* With equal gradients that of the weight is the sum of all deviations: what the mean is off by, as often as there are
 * elements. */
TENSOR_TEST(deviations_of_long_runs_add_up_to_zero)
{
    enum { OUTER = 5, CHANNELS = 50, INNER = 168 };
    kn_tensor *x = values_about(2, 1, 3, (const int64_t[]){OUTER, CHANNELS, INNER}, KN_F32, "runs");
    kn_tensor *w = kn_ones(KN_SHAPE(CHANNELS), .requires_grad = true);
    CHECK_OK(kn_backward(kn_sum(kn_batch_norm(x, .weight = w, .training = true))));
    double *grad = read_doubles(kn_grad(w)), off = 0;
    assert_non_null(grad);
    for (int c = 0; c < CHANNELS; c++)
        off = fmax(off, fabs(grad[c]) / (OUTER * INNER));
    if (off > 1e-7)
        fail_msg("deviations are off by %g on average", off);
    free(grad);
}

/* The shift is the channel's first value: here far from all others, so that too much is subtracted. */
TENSOR_TEST_F64(an_outlier_in_front_costs_little)
{
    kn_tensor *y[2];
    for (int f64 = 0; f64 < 2; f64++) {
        kn_tensor *x = values_about(3, 1, 3, (const int64_t[]){4, 2, 5000}, f64 ? KN_F64 : KN_F32, "outlier");
        {
            KN_NO_GRAD;
            CHECK_TENSOR(kn_fill_(kn_narrow(kn_narrow(x, 0, 0, 1), 2, 0, 1), 1e4));
        }
        y[f64] = kn_batch_norm(x, .training = true);
    }
    check_close(y[0], y[1], 1e-5);
}

/* --- running estimates -------------------------------------------------------------------------------------------- */

TENSOR_TEST(running_estimates_follow_the_batches)
{
    kn_tensor *x = kn_from_data(((float[]){1, 10, 3, 10, 5, 10, 7, 30}), KN_SHAPE(4, 2));
    kn_tensor *mean = kn_zeros(KN_SHAPE(2)), *var = kn_ones(KN_SHAPE(2));
    const unsigned before = atomic_load(&mean->storage->version);
    CHECK_TENSOR(kn_batch_norm(x, .running_mean = mean, .running_var = var, .training = true, .momentum = 0.25));
    CHECK_VALUES(mean, 1, 3.75);
    CHECK_VALUES(var, 0.75 + 0.25 * 20 / 3, 0.75 + 0.25 * 100); /* unbiased */
    assert_true(atomic_load(&mean->storage->version) == before + 1);
    assert_true(atomic_load(&var->storage->version) == before + 1);
    CHECK_TENSOR(kn_batch_norm(x, .running_mean = mean, .running_var = var, .momentum = 0.25));
    CHECK_VALUES(mean, 1, 3.75); /* evaluation does not change them */
    assert_true(atomic_load(&mean->storage->version) == before + 1);
    CHECK_TENSOR(kn_batch_norm(x, .running_mean = mean, .running_var = var, .training = true, .momentum = 0));
    CHECK_VALUES(mean, 1, 3.75);
}

/* With dtypes and layouts other than the input's: changed in place. */
TENSOR_TEST(running_estimates_of_another_layout_or_dtype)
{
    kn_tensor *x = kn_from_data(((float[]){1, 10, 3, 10, 5, 10, 7, 30}), KN_SHAPE(4, 2));
    kn_tensor *table = kn_zeros(KN_SHAPE(2, 2)), *column = kn_select(table, 1, 0);
    kn_tensor *half = kn_ones(KN_SHAPE(2), .dtype = KN_F16);
    CHECK_TENSOR(kn_batch_norm(x, .running_mean = column, .running_var = half, .training = true, .momentum = 0.5));
    CHECK_VALUES(table, 2, 0, 7.5, 0);
    double *values = read_doubles(half);
    assert_true(fabs(values[0] - (0.5 + 10.0 / 3)) < 2e-3 && fabs(values[1] - 50.5) < 5e-2);
    free(values);
}

/* f16 storage: parameters, running estimates and results. */
TENSOR_TEST(half_precision)
{
    kn_tensor *x = values_about(1, 2, 3, (const int64_t[]){4, 3, 9}, KN_F32, "half");
    kn_tensor *half = kn_to_dtype(kn_detach(x), KN_F16), *w = kn_ones(KN_SHAPE(3), .dtype = KN_F16);
    kn_set_requires_grad(w, true);
    kn_tensor *y = kn_batch_norm(half, .weight = w, .training = true), *right = kn_batch_norm(x, .training = true);
    CHECK_DTYPE(y, KN_F16);
    check_close(y, right, 2e-3);
    CHECK_OK(kn_backward(kn_sum(kn_to_dtype(y, KN_F32))));
    CHECK_DTYPE(kn_grad(w), KN_F16);
    y = kn_layer_norm(half, KN_SHAPE(9));
    CHECK_DTYPE(y, KN_F16);
    check_close(y, kn_layer_norm(x, KN_SHAPE(9)), 2e-3);
}

/* bfloat16 with weights in float32, as under autocast, which CPU devices read and write as it is: all ways to split
 * the channels, and both modes. Results are rounded once, gradients of weights not at all. */
TENSOR_TEST_F64(bfloat16_with_weights_of_float32)
{
    static const int64_t shapes[][4] = {{8, 5, 1, 1}, {300, 3, 1, 1}, {2, 37, 3, 5}, {4, 70, 8, 8}, {2, 3, 120, 151}};
    for (int i = 0; i < 2 * (int)(sizeof shapes / sizeof shapes[0]); i++) {
        enum { Y, DX, DW, DB, RESULTS };
        const int64_t *shape = shapes[i / 2], channels = shape[1];
        kn_tensor *results[2][RESULTS];
        for (int f64 = 0; f64 < 2; f64++) {
            const kn_dtype dtype = f64 ? KN_F64 : KN_F32;
            kn_tensor *x = kn_to_dtype(kn_detach(values_about(3, 2, 4, shape, dtype, "x")), KN_BF16);
            x = kn_detach(f64 ? kn_to_dtype(x, KN_F64) : x);
            CHECK_OK(kn_set_requires_grad(x, true));
            kn_tensor *weight = values_about(1, 0.5, 1, &channels, dtype, "weight");
            kn_tensor *bias = values_about(0, 1, 1, &channels, dtype, "bias");
            kn_tensor *mean = kn_detach(values_about(3, 1, 1, &channels, dtype, "mean"));
            kn_tensor *var = kn_detach(values_about(2, 1, 1, &channels, dtype, "var"));
            kn_tensor **r = results[f64];
            r[Y] = kn_batch_norm(x, .weight = weight, .bias = bias, .running_mean = mean, .running_var = var,
                                 .training = i % 2, .activation = KN_ACTIVATION_RELU);
            kn_tensor *g = kn_to_dtype(kn_detach(values_about(0, 1, 4, shape, dtype, "g")), KN_BF16);
            CHECK_OK(kn_backward_with(r[Y], f64 ? kn_to_dtype(g, KN_F64) : g, false));
            r[DX] = kn_grad(x);
            r[DW] = kn_grad(weight);
            r[DB] = kn_grad(bias);
        }
        CHECK_DTYPE(results[0][Y], KN_BF16);
        CHECK_DTYPE(results[0][DX], KN_BF16);
        CHECK_DTYPE(results[0][DW], KN_F32);
        for (int j = 0; j < RESULTS; j++)
            check_close(kn_to_dtype(results[0][j], KN_F64), results[1][j], j <= DX ? 0x1.1p-8 : 2e-5);
    }
}

/* An empty batch does not change the estimates, as in PyTorch. */
TENSOR_TEST(nothing_to_normalise)
{
    kn_tensor *mean = kn_full(KN_SHAPE(3), 2), *var = kn_full(KN_SHAPE(3), 5);
    kn_tensor *y =
        kn_batch_norm(kn_zeros(KN_SHAPE(0, 3, 4)), .running_mean = mean, .running_var = var, .training = true);
    CHECK_TENSOR(y);
    CHECK_SHAPE(y, 0, 3, 4);
    CHECK_VALUES(mean, 2, 2, 2);
    CHECK_VALUES(var, 5, 5, 5);
}

TENSOR_TEST(a_constant_channel_becomes_the_bias)
{
    kn_tensor *y = kn_batch_norm(kn_full(KN_SHAPE(3, 2, 5), 1e6), .bias = kn_from_data(((float[]){4, 5}), KN_SHAPE(2)),
                                 .training = true);
    CHECK_VALUES(y, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5);
    CHECK_VALUES(kn_layer_norm(kn_full(KN_SHAPE(1, 3), -7), KN_SHAPE(3)), 0, 0, 0);
}

/* A NaN or infinity stays in its channel, even if channels share a vector. */
TENSOR_TEST(other_channels_do_not_see_a_nan)
{
    for (int spatial = 1; spatial <= 81; spatial += 20) {
        kn_tensor *x = kn_rand(KN_SHAPE(9, 5, spatial)), *y;
        CHECK_TENSOR(kn_fill_(kn_narrow(kn_narrow(x, 0, 8, 1), 1, 2, 1), spatial % 40 == 1 ? NAN : INFINITY));
        y = kn_batch_norm(x, .training = true);
        double *values = read_doubles(y);
        for (int64_t i = 0; i < kn_numel(y); i++)
            assert_true((i / spatial % 5 == 2) == isnan(values[i]));
        free(values);
    }
}

/* --- both work divisions ---------------------------------------------------------------------------------- */

/* With few cores all steps of a channel run in one launch, with many each step is a launch: the same bits. */
static void same_bits_on_any_machine(int ndim, const int64_t *shape)
{
    kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(kn_device_current());
    const int units = limits->compute_units;
    kn_tensor *y[2], *dx[2], *dw[2], *mean[2];
    for (int many = 0; many < 2; many++) {
        kn_tensor *x = values_about(1, 1, ndim, shape, KN_F32, "x");
        kn_tensor *w = values_about(1, 1, 1, shape + 1, KN_F32, "w");
        mean[many] = kn_zeros(KN_SHAPE(shape[1]));
        limits->compute_units = many ? 1000 : 1;
        y[many] = kn_batch_norm(x, .weight = w, .running_mean = mean[many], .running_var = kn_ones(KN_SHAPE(shape[1])),
                                .training = true);
        CHECK_TENSOR(y[many]);
        dx[many] = gradient_of(y[many], x);
        dw[many] = kn_grad(w);
        limits->compute_units = units;
    }
    check_same_bits(y[0], y[1]);
    check_same_bits(dx[0], dx[1]);
    check_same_bits(dw[0], dw[1]);
    check_same_bits(mean[0], mean[1]);
}

TENSOR_TEST(bits_do_not_depend_on_the_number_of_cores)
{
    same_bits_on_any_machine(3, (const int64_t[]){5, 7, 9001});
    same_bits_on_any_machine(2, (const int64_t[]){1031, 130});
    same_bits_on_any_machine(3, (const int64_t[]){300, 50, 9});
    same_bits_on_any_machine(3, (const int64_t[]){6, 41, 100}); /* channels processed together, and the remainder */
    same_bits_on_any_machine(3, (const int64_t[]){3, 130, 143});
}

/* --- errors ---------------------------------------------------------------------------------------------- */

TENSOR_TEST(batch_norm_refuses)
{
    kn_tensor *x = kn_ones(KN_SHAPE(4, 3)), *three = kn_ones(KN_SHAPE(3)), *four = kn_ones(KN_SHAPE(4));
    assert_null(kn_batch_norm(kn_ones(KN_SHAPE(1, 3)), .training = true));
    CHECK_ERROR(KN_ERR_SHAPE, "batch_norm", "more than 1 value per channel when training", "[1, 3]");
    assert_null(kn_batch_norm(kn_ones(KN_SHAPE(1, 3, 1, 1)), .training = true));
    CHECK_ERROR(KN_ERR_SHAPE, "more than 1 value per channel", "[1, 3, 1, 1]");
    assert_null(kn_batch_norm(three, .training = true));
    CHECK_ERROR(KN_ERR_SHAPE, "[N, C]", "[3]");
    assert_null(kn_batch_norm(x, .weight = four, .training = true));
    CHECK_ERROR(KN_ERR_SHAPE, "weight should contain 3 elements", "[4]");
    assert_null(kn_batch_norm(x, .running_mean = four, .running_var = three));
    CHECK_ERROR(KN_ERR_SHAPE, "running_mean should contain 3 elements", "[4]");
    assert_null(kn_batch_norm(x, .weight = three));
    CHECK_ERROR(KN_ERR_ARGUMENT, "running_mean and running_var", "not training");
    assert_null(kn_batch_norm(x, .running_mean = three, .training = true));
    CHECK_ERROR(KN_ERR_ARGUMENT, "both or neither");
    assert_null(kn_batch_norm(x, .training = true, .momentum = -0.1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "momentum", "-0.1");
    assert_null(kn_batch_norm(x, .training = true, .momentum = NAN));
    CHECK_ERROR(KN_ERR_ARGUMENT, "momentum", "nan");
    assert_null(kn_batch_norm(x, .training = true, .eps = -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "eps", "-1");
    assert_null(kn_batch_norm(kn_ones(KN_SHAPE(4, 3), .dtype = KN_I64), .training = true));
    CHECK_ERROR(KN_ERR_DTYPE, "int64");
    assert_null(kn_batch_norm(x, .weight = kn_ones(KN_SHAPE(3), .dtype = KN_I64), .training = true));
    CHECK_ERROR(KN_ERR_DTYPE, "float32", "int64");
    assert_null(kn_batch_norm(x, .running_mean = kn_ones(KN_SHAPE(3), .dtype = KN_I64), .running_var = three));
    CHECK_ERROR(KN_ERR_DTYPE, "running_mean", "int64");
    kn_tensor *leaf = kn_ones(KN_SHAPE(3), .requires_grad = true);
    assert_null(kn_batch_norm(x, .running_mean = three, .running_var = leaf, .training = true));
    CHECK_ERROR(KN_ERR_STATE, "running_var", "requires gradients");
    assert_null(kn_batch_norm(NULL, .training = true));
    CHECK_ERROR(KN_ERR_ARGUMENT, "x");
    CHECK_VALUES(three, 1, 1, 1); /* unchanged by all of this */
    CHECK_TENSOR(kn_batch_norm(x, .training = true));
}

TENSOR_TEST(layer_norm_refuses)
{
    kn_tensor *x = kn_ones(KN_SHAPE(4, 3));
    assert_null(kn_layer_norm(x, KN_SHAPE(4)));
    CHECK_ERROR(KN_ERR_SHAPE, "layer_norm", "[4]", "[4, 3]");
    assert_null(kn_layer_norm(x, KN_SHAPE(1, 4, 3)));
    CHECK_ERROR(KN_ERR_SHAPE, "layer_norm", "[1, 4, 3]", "[4, 3]");
    assert_null(kn_layer_norm(x, KN_SHAPE(3), .weight = kn_ones(KN_SHAPE(1, 3))));
    CHECK_ERROR(KN_ERR_SHAPE, "weight", "[3]", "[1, 3]");
    assert_null(kn_layer_norm(x, KN_SHAPE(3), .bias = kn_ones(KN_SHAPE(4))));
    CHECK_ERROR(KN_ERR_SHAPE, "bias", "[4]");
    assert_null(kn_layer_norm(x, KN_SCALAR));
    CHECK_ERROR(KN_ERR_ARGUMENT, "0 dimensions");
    assert_null(kn_layer_norm_with(x, 1, NULL, &(kn_layer_norm_params){.eps = 1}));
    CHECK_ERROR(KN_ERR_ARGUMENT, "shape");
    assert_null(kn_layer_norm(x, KN_SHAPE(3), .eps = NAN));
    CHECK_ERROR(KN_ERR_ARGUMENT, "eps");
    assert_null(kn_layer_norm(kn_ones(KN_SHAPE(4, 3), .dtype = KN_I32), KN_SHAPE(3)));
    CHECK_ERROR(KN_ERR_DTYPE, "int32");
    assert_null(kn_layer_norm(x, KN_SHAPE(3), .weight = kn_ones(KN_SHAPE(3), .dtype = KN_I64)));
    CHECK_ERROR(KN_ERR_DTYPE, "weight", "int64", "float32");
    CHECK_TENSOR(kn_layer_norm(x, KN_SHAPE(4, 3)));
}

/* --- mean and rstd ------------------------------------------------------------------------------------------------ */

TENSOR_TEST(statistics_of_a_layer)
{
    kn_tensor *x = kn_from_data(((float[]){1, 3, -2, 2}), KN_SHAPE(2, 2), .requires_grad = true);
    kn_tensor *mean, *rstd, *y = kn_layer_norm(x, KN_SHAPE(2), .eps = 0, .mean = &mean, .rstd = &rstd);
    CHECK_VALUES(kn_detach(y), -1, 1, -1, 1);
    CHECK_SHAPE(mean, 2, 1);
    CHECK_VALUES(mean, 2, 0);
    CHECK_VALUES(rstd, 1, 0.5);
    assert_true(kn_requires_grad(y) && !kn_requires_grad(mean) && !kn_requires_grad(rstd));
    CHECK_OK(kn_backward(kn_sum(kn_mul(y, y))));
    CHECK_TENSOR(kn_layer_norm(kn_ones(KN_SHAPE(2, 3, 5)), KN_SHAPE(3, 5), .mean = &mean));
    CHECK_SHAPE(mean, 2, 1, 1);
}

TENSOR_TEST(statistics_of_half_precision_are_float32)
{
    kn_tensor *x = kn_from_data(((float[]){1, 3, 5, 9}), KN_SHAPE(2, 2));
    kn_tensor *mean, *rstd,
        *y = kn_batch_norm(kn_to_dtype(x, KN_F16), .training = true, .eps = 0, .mean = &mean, .rstd = &rstd);
    CHECK_DTYPE(y, KN_F16);
    CHECK_DTYPE(mean, KN_F32);
    CHECK_VALUES(mean, 3, 6);
    CHECK_DTYPE(rstd, KN_F32);
}

/* By the list: into given tensors, and one alone. */
TENSOR_TEST(statistics_by_name)
{
    const kn_op *op = kn_op_find("batch_norm");
    const kn_batch_norm_args args = {KN_BATCH_NORM_DEFAULTS, .training = true};
    kn_tensor *x = kn_from_data(((float[]){1, 3, 5, 9}), KN_SHAPE(2, 2));
    kn_tensor *wide = kn_zeros(KN_SHAPE(2, 2)), *outputs[] = {KN_SKIP_OUTPUT, kn_select(wide, 1, 0), NULL};
    CHECK_OK(kn_op_call(op, &x, 1, &args, outputs, 3));
    assert_null(outputs[0]);
    CHECK_VALUES(wide, 3, 0, 6, 0);
    CHECK_SHAPE(outputs[2], 2);
    kn_tensor *missing[] = {NULL, kn_zeros(KN_SHAPE(3)), KN_SKIP_OUTPUT};
    assert_int_equal(kn_op_call(op, &x, 1, &args, missing, 3), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "batch_norm", "the given output 1 is float32 [3]");
    kn_tensor *mean = x, *rstd = x;
    assert_null(kn_batch_norm(NULL, .training = true, .mean = &mean, .rstd = &rstd));
    assert_true(!mean && !rstd);
    kn_error_clear();
}

/* Without an eps it is the dtype's distance from 1 to the next number. */
TENSOR_TEST(the_eps_of_a_dtype)
{
    kn_tensor *x = kn_from_data(((float[]){1e-3F, -1e-3F, 0.5, 0.25}), KN_SHAPE(2, 2));
    const double root = sqrt((0.25 + 0.0625) / 2);
    CHECK_VALUES(kn_rms_norm(x, KN_SHAPE(2)), 0.945244914, -0.945244914, 0.5 / root, 0.25 / root);
    if (check_has_f64())
        CHECK_VALUES(kn_rms_norm(kn_to_dtype(x, KN_F64), KN_SHAPE(2)), 1, -1, 0.5 / root, 0.25 / root);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(a_mean_far_from_zero_costs_no_digits),
        TEST(layer_norm_far_from_zero),
        TEST(a_first_value_far_from_the_mean),
        TEST(deviations_of_long_runs_add_up_to_zero),
        TEST(an_outlier_in_front_costs_little),
        TEST(running_estimates_follow_the_batches),
        TEST(running_estimates_of_another_layout_or_dtype),
        TEST(half_precision),
        TEST(bfloat16_with_weights_of_float32),
        TEST(nothing_to_normalise),
        TEST(a_constant_channel_becomes_the_bias),
        TEST(other_channels_do_not_see_a_nan),
        TEST(bits_do_not_depend_on_the_number_of_cores),
        TEST(batch_norm_refuses),
        TEST(layer_norm_refuses),
        TEST(statistics_of_a_layer),
        TEST(statistics_of_half_precision_are_float32),
        TEST(statistics_by_name),
        TEST(the_eps_of_a_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
