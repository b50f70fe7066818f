/* test_conv2d_activation.c - every implementation of the table "conv2d" applies its activation exactly: the result with
 * an activation has the bits of the clamped result without. NaN stays NaN. The result without agrees with the
 * reference, also with the vector widths of other processors. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/conv/common/conv.h"
#include "support/as_gpu.h"
#include "support/values.h"
#include "tensor/tensor.h"

static const kn_conv_shape shapes[] = {
    {.images = 2,
     .in_channels = 5,
     .in_size = {1, 9, 11},
     .out_channels = 7,
     .kernel_size = {1, 3, 3},
     .out_size = {1, 9, 11},
     .stride = {1, 1, 1},
     .padding = {0, 2, 3},
     .dilation = {1, 2, 3},
     .groups = 1},
    {.images = 2,
     .in_channels = 3,
     .in_size = {1, 9, 37},
     .out_channels = 7,
     .kernel_size = {1, 3, 3},
     .out_size = {1, 9, 37},
     .stride = {1, 1, 1},
     .padding = {0, 1, 1},
     .dilation = {1, 1, 1},
     .groups = 1},
    {.images = 9,
     .in_channels = 17,
     .in_size = {1, 4, 5},
     .out_channels = 35,
     .kernel_size = {1, 3, 3},
     .out_size = {1, 4, 5},
     .stride = {1, 1, 1},
     .padding = {0, 1, 1},
     .dilation = {1, 1, 1},
     .groups = 1},
    {.images = 3,
     .in_channels = 19,
     .in_size = {1, 7, 7},
     .out_channels = 66,
     .kernel_size = {1, 1, 1},
     .out_size = {1, 7, 7},
     .stride = {1, 1, 1},
     .padding = {0, 0, 0},
     .dilation = {1, 1, 1},
     .groups = 1},
    {.images = 2,
     .in_channels = 19,
     .in_size = {1, 9, 10},
     .out_channels = 34,
     .kernel_size = {1, 1, 1},
     .out_size = {1, 6, 6},
     .stride = {1, 2, 2},
     .padding = {0, 1, 1},
     .dilation = {1, 1, 1},
     .groups = 1},
    {.images = 2,
     .in_channels = 8,
     .in_size = {1, 11, 10},
     .out_channels = 12,
     .kernel_size = {1, 5, 3},
     .out_size = {1, 4, 4},
     .stride = {1, 2, 2},
     .padding = {0, 0, 0},
     .dilation = {1, 1, 1},
     .groups = 2},
    {.images = 2,
     .in_channels = 33,
     .in_size = {1, 12, 23},
     .out_channels = 33,
     .kernel_size = {1, 3, 3},
     .out_size = {1, 12, 23},
     .stride = {1, 1, 1},
     .padding = {0, 1, 1},
     .dilation = {1, 1, 1},
     .groups = 33},
    {.images = 2,
     .in_channels = 40,
     .in_size = {1, 14, 13},
     .out_channels = 48,
     .kernel_size = {1, 3, 3},
     .out_size = {1, 14, 13},
     .stride = {1, 1, 1},
     .padding = {0, 1, 1},
     .dilation = {1, 1, 1},
     .groups = 1},
    {.images = 2,
     .in_channels = 5,
     .in_size = {3, 4, 7},
     .out_channels = 6,
     .kernel_size = {2, 3, 3},
     .out_size = {2, 4, 7},
     .stride = {1, 1, 1},
     .padding = {0, 1, 1},
     .dilation = {1, 1, 1},
     .groups = 1},
};
enum { NUM_SHAPES = sizeof shapes / sizeof shapes[0] };

/* Uniform in [-4, 4], including a NaN and both infinities. */
static kn_tensor *draw(test_random *random, int64_t count, bool special, kn_dtype dtype)
{
    double *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = test_random_uniform(random, -4, 4);
    for (int i = 0; special && i < 3; i++)
        values[test_random_next(random) % (uint64_t)count] = i == 0 ? NAN : i == 1 ? INFINITY : -INFINITY;
    kn_tensor *tensor = tensor_of_doubles(values, 1, &count, dtype, false);
    CHECK_TENSOR(tensor);
    free(values);
    return tensor;
}

static kn_conv_operand operand(const kn_tensor *t) { return (kn_conv_operand){t->storage->buffer, t->offset}; }

/* The result with an activation; freed with free(). */
static double *convolve(kn_conv_problem problem, kn_activation activation, const char *row, int64_t *ran)
{
    const kn_conv_shape *s = &problem.shape;
    int64_t count = s->images * s->out_channels * kn_conv_volume(s->out_size);
    kn_tensor *y = kn_empty_with(1, &count, &(kn_tensor_options){.dtype = s->f64 ? KN_F64 : KN_F32});
    CHECK_TENSOR(y);
    problem.y = operand(y);
    problem.activation = activation;
    kn_force_implementation("conv2d", row);
    CHECK_OK(kn_conv_run(kn_tensor_stream(y), &problem));
    *ran += kn_count_forced("conv2d").ran;
    kn_force_implementation("conv2d", NULL);
    double *values = read_doubles(y);
    assert_non_null(values);
    return values;
}

static void check_close(const kn_conv_problem *problem, int number, const char *row, const double *values,
                        const double *right, int64_t count)
{
    const kn_conv_shape *s = &problem->shape;
    char message[400];
    closeness limit = closeness_of(s->f64 ? KN_F64 : KN_F32, kn_conv_taps(s));
    limit.atol *= 16 * sqrt((double)kn_conv_taps(s)); /* products of up to 16 that cancel */
    if (!values_close(values, right, count, limit, message, sizeof message))
        fail_msg("%s, shape %d%s: %s", row, number, s->f64 ? ", f64" : "", message);
}

/* `right`: the expected result without an activation; NULL if infinities may spread in some rows. */
static void check_row(const kn_conv_problem *problem, int number, const char *row, const double *right, int64_t *ran)
{
    const kn_conv_shape *s = &problem->shape;
    int64_t count = s->images * s->out_channels * kn_conv_volume(s->out_size);
    double *plain = convolve(*problem, KN_ACTIVATION_NONE, row, ran);
    if (right)
        check_close(problem, number, row, plain, right, count);
    for (int activation = KN_ACTIVATION_RELU; activation <= KN_ACTIVATION_RELU6; activation++) {
        kn_bounds bounds = kn_bounds_of((kn_activation)activation);
        double *values = convolve(*problem, (kn_activation)activation, row, ran);
        for (int64_t i = 0; i < count; i++) {
            double wanted = plain[i] < bounds.low ? bounds.low : plain[i] > bounds.high ? bounds.high : plain[i];
            if (!(values[i] == wanted || (isnan(values[i]) && isnan(wanted))))
                fail_msg("%s, shape %d%s%s, activation %d: element %lld is %g, not %g", row, number,
                         s->f64 ? ", f64" : "", problem->bias.buffer ? ", bias" : "", activation, (long long)i,
                         values[i], wanted);
        }
        free(values);
    }
    free(plain);
}

static void check_case(test_random *random, int number, bool f64, bool bias, int64_t *ran)
{
    const kn_implementation_table *table = &kn_conv_implementations[KN_CONV_FORWARD];
    kn_conv_problem problem = {.shape = shapes[number]};
    kn_conv_shape *s = &problem.shape;
    kn_dtype dtype = f64 ? KN_F64 : KN_F32;
    s->f64 = f64;
    problem.x = operand(draw(random, s->images * s->in_channels * kn_conv_volume(s->in_size), bias, dtype));
    problem.weight = operand(draw(random, s->out_channels * kn_conv_taps(s), false, dtype));
    if (bias)
        problem.bias = operand(draw(random, s->out_channels, false, dtype));
    int64_t unused = 0;
    double *right = bias ? NULL : convolve(problem, KN_ACTIVATION_NONE, "reference", &unused);
    for (int i = 0; i < table->count; i++)
        if (can_force(table, &table->rows[i]))
            check_row(&problem, number, table->rows[i].name, right, &ran[i]);
    free(right);
}

static void test_all_implementations(void **state)
{
    const kn_implementation_table *table = &kn_conv_implementations[KN_CONV_FORWARD];
    bool has_f64 = kn_device_limits(kn_device_current())->has_f64;
    int64_t ran[32] = {0};
    test_random random = test_random_from("conv2d activation");
    (void)state;
    for (int i = 0; i < NUM_SHAPES; i++)
        for (int f64 = 0; f64 <= has_f64; f64++)
            for (int bias = 0; bias < 2; bias++) {
                KN_SCOPE;
                check_case(&random, i, f64, bias, ran);
            }
    for (int i = 0; i < table->count; i++) /* none was skipped */
        if (ran[i] == 0 && can_force(table, &table->rows[i]))
            fail_msg("%s supported none of the shapes", table->rows[i].name);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    obey_vector_width(argc, argv);
    const struct CMUnitTest tests[] = {TEST(test_all_implementations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
