/* test_backward_operators.c - backward passes called by name equal the tape's: each into new tensors, into given ones
 * with any strides, and one gradient at a time. */
#include "cli/op_samples.h"
#include "ops/dispatch/operators.h"
#include "support/as_gpu.h"
#include "support/check.h"
#include "support/full.h"

#include <string.h>

#define MOST 8

/* Compares names; a leading question mark marks an optional input. */
static bool same(const char *a, const char *b) { return strcmp(a + (a[0] == '?'), b + (b[0] == '?')) == 0; }

static int position(const char *const *names, const char *name)
{
    for (int i = 0; i < MOST && names[i]; i++)
        if (same(names[i], name))
            return i;
    return -1;
}

/* An application of X with its inputs' gradients from the tape, and the inputs of X_backward. */
typedef struct one {
    kn_op_sample sample;
    kn_tensor *outputs[MOST], *gradient;
    kn_tensor *inputs[MOST];
    int num_inputs, num_outputs;
} one;

/* The inputs' gradients from the tape stay in kn_grad. */
static void apply(one *o, const kn_op *op, kn_dtype dtype)
{
    const kn_op *of = op->backward_of;
    CHECK_OK(kn_op_sample_make(&o->sample, of, dtype, true));
    CHECK_OK(kn_op_call(of, o->sample.inputs, o->sample.num_inputs, o->sample.params, o->outputs,
                        kn_op_describe(of).num_outputs));
    kn_tensor *y = o->outputs[0];
    o->gradient = kn_rand_with(kn_ndim(y), kn_shape(y), &(kn_tensor_options){.dtype = dtype});
    CHECK_OK(kn_backward_with(y, o->gradient, false));
}

static void find_inputs(one *o, const kn_op *op)
{
    const kn_op *of = op->backward_of;
    o->num_inputs = kn_op_describe(op).num_inputs;
    o->num_outputs = kn_op_describe(op).num_outputs;
    o->inputs[0] = o->gradient;
    for (int i = 1; i < o->num_inputs; i++) {
        const int input = position(of->inputs, op->inputs[i]), output = position(of->outputs, op->inputs[i]);
        kn_tensor *t = input >= 0 ? o->sample.inputs[input] : output >= 0 ? o->outputs[output] : NULL;
        if (same(op->inputs[i], "result"))
            t = o->outputs[0];
        if (!t && op->inputs[i][0] != '?')
            fail_msg("%s: input %s is none of %s", op->name, op->inputs[i], of->name);
        o->inputs[i] = t ? kn_detach(t) : NULL;
    }
}

/* The gradient that output `index` stands for. Conditions have none on the tape: the one made is taken as right. */
static kn_tensor *expected(const one *o, const kn_op *op, int index, kn_tensor *made)
{
    const int input = position(op->backward_of->inputs, op->outputs[index] + strlen("grad_"));
    kn_tensor *t = input < o->sample.num_inputs ? o->sample.inputs[input] : NULL;
    return t && !kn_requires_grad(t) ? made : t ? kn_grad(t) : NULL;
}

static void check_same(const kn_op *op, int index, kn_tensor *actual, kn_tensor *wanted, const char *how,
                       double tolerance)
{
    if (!actual != !wanted)
        fail_msg("%s, %s: output %d is %s", op->name, how, index, actual ? "there" : "not there");
    if (!actual)
        return;
    assert_true(kn_same_shape(actual, wanted));
    double distance;
    CHECK_OK(kn_item(kn_max(kn_abs(kn_sub(actual, wanted))), &distance));
    if (!(distance <= tolerance))
        fail_msg("%s, %s: output %d is off by %g", op->name, how, index, distance);
}

/* A tensor like t, with stride 2. */
static kn_tensor *strided_like(kn_tensor *t)
{
    int64_t shape[KN_MAX_DIMS];
    memcpy(shape, kn_shape(t), (size_t)kn_ndim(t) * sizeof *shape);
    shape[kn_ndim(t)] = 2;
    const kn_tensor_options options = {.dtype = kn_dtype_of(t)};
    return kn_select(kn_full_with(kn_ndim(t) + 1, shape, kn_scalar_real(7), &options), kn_ndim(t), 1);
}

static kn_status call(const kn_op *op, const one *o, kn_tensor **outputs)
{
    return kn_op_call(op, o->inputs, o->num_inputs, o->sample.params, outputs, o->num_outputs);
}

/* Leaves out the statistics of X, which X_backward then computes again; were there any? */
static bool drop_statistics(one *o, const kn_op *op)
{
    const kn_op *of = op->backward_of;
    bool any = false;
    for (int i = 1; i < o->num_inputs; i++)
        if (position(of->inputs, op->inputs[i]) < 0 && of->first_statistic > 0 &&
            position(of->outputs, op->inputs[i]) >= of->first_statistic) {
            o->inputs[i] = NULL;
            any = true;
        }
    return any;
}

static void check_calls(const kn_op *op, const one *o, double tolerance)
{
    kn_tensor *made[MOST] = {NULL}, *given[MOST] = {NULL};
    CHECK_OK(call(op, o, made));
    for (int i = 0; i < o->num_outputs; i++) {
        check_same(op, i, made[i], expected(o, op, i, made[i]), "made", tolerance);
        given[i] = made[i] ? strided_like(made[i]) : NULL;
    }
    CHECK_OK(call(op, o, given));
    for (int i = 0; i < o->num_outputs; i++) {
        kn_tensor *alone[MOST];
        check_same(op, i, given[i], made[i], "given", 0);
        for (int k = 0; k < o->num_outputs; k++)
            alone[k] = k == i ? NULL : KN_SKIP_OUTPUT;
        CHECK_OK(call(op, o, alone));
        for (int k = 0; k < o->num_outputs; k++)
            check_same(op, k, alone[k], k == i ? made[k] : NULL, "alone", 1e-5); /* sums may be computed separately */
    }
}

/* A mean is returned rounded, where the tape has more digits. */
static void check_one(const kn_op *op, kn_dtype dtype)
{
    one o = {.num_inputs = 0}, without;
    apply(&o, op, dtype);
    find_inputs(&o, op);
    without = o;
    const bool has_statistics = drop_statistics(&without, op);
    check_calls(op, &o, !has_statistics ? 0 : dtype == KN_F32 ? 1e-5 : 1e-13);
    if (has_statistics)
        check_calls(op, &without, 0);
    kn_op_sample_free(&o.sample);
}

TENSOR_TEST(each_gives_what_the_tape_gives)
{
    const kn_limits *limits = kn_device_limits(kn_device_current());
    const bool with_f64 = limits->has_f64 && (limits->is_cpu || test_full()); /* a simulated GPU has the same texts */
    for (int i = 0; i < kn_op_count(); i++) {
        KN_SCOPE;
        if (!kn_op_at(i)->backward_of)
            continue;
        check_one(kn_op_at(i), KN_F32);
        if (with_f64)
            check_one(kn_op_at(i), KN_F64);
    }
}

/* With these parameters another operation stands for gelu. */
TENSOR_TEST(gelu_has_both_forms)
{
    const kn_op *op = kn_op_find("gelu_backward");
    kn_tensor *x = kn_randn(KN_SHAPE(3, 5), .requires_grad = true), *g = kn_randn(KN_SHAPE(3, 5)), *y = NULL;
    const kn_gelu_params params = {.approximate = KN_GELU_TANH};
    CHECK_OK(kn_backward_with(kn_gelu_with(x, &params), g, false));
    CHECK_OK(kn_op_call(op, (kn_tensor *[]){g, kn_detach(x)}, 2, &params, &y, 1));
    check_same(op, 0, y, kn_grad(x), "by tanh", 0);
}

TENSOR_TEST(what_does_not_fit_is_refused)
{
    const kn_op *op = kn_op_find("avg_pool2d_backward");
    const kn_pool_params params = {KN_POOL_DEFAULTS, .kernel_size = 2};
    kn_tensor *x = kn_ones(KN_SHAPE(1, 4, 4)), *right = kn_ones(KN_SHAPE(1, 2, 2)), *wrong = kn_ones(KN_SHAPE(1, 2, 3));
    kn_tensor *y = NULL;
    assert_int_equal(kn_op_call(op, (kn_tensor *[]){wrong, x}, 2, &params, &y, 1), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "avg_pool2d_backward: the gradient is float32 [1, 2, 3]", "[1, 2, 2]");
    kn_tensor *whole = kn_to_dtype(right, KN_I64);
    assert_int_equal(kn_op_call(op, (kn_tensor *[]){whole, x}, 2, &params, &y, 1), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "avg_pool2d_backward: the gradient is int64");
    assert_int_equal(kn_op_call(op, &right, 1, &params, &y, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "avg_pool2d_backward", "`x` is NULL");
    CHECK_OK(kn_op_call(op, (kn_tensor *[]){right, x}, 2, &params, &y, 1));
    assert_int_equal(kn_numel(y), 16);
    y = NULL;
    op = kn_op_find("conv1d_backward");
    kn_conv_params conv = {KN_CONV_DEFAULTS};
    conv.activation = KN_ACTIVATION_RELU;
    kn_tensor *inputs[] = {kn_ones(KN_SHAPE(1, 1, 3)), kn_ones(KN_SHAPE(1, 1, 3)), kn_ones(KN_SHAPE(1, 1, 1))};
    assert_int_equal(kn_op_call(op, inputs, 3, &conv, &y, 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv1d_backward", "needs the result");
}

/* It is an error where the gradient is computed from it, else it may be absent. */
TENSOR_TEST(the_result_may_be_missing)
{
    int refused = 0;
    for (int i = 0; i < kn_op_count(); i++) {
        KN_SCOPE;
        const kn_op *op = kn_op_at(i);
        const int last = kn_op_describe(op).num_inputs - 1;
        kn_op_sample sample;
        kn_tensor *y = NULL;
        if (!op->backward_of || strcmp(op->inputs[last], "?result") != 0)
            continue;
        CHECK_OK(kn_op_sample_make(&sample, op, KN_F32, false));
        if (kn_op_call(op, sample.inputs, last < sample.num_inputs ? last : sample.num_inputs, sample.params, &y, 1) !=
            KN_OK) {
            CHECK_ERROR(KN_ERR_ARGUMENT, op->name, "`result` is NULL");
            refused++;
        }
        kn_op_sample_free(&sample);
    }
    assert_int_equal(refused, 7); /* amax, amin, logsumexp, max, min, norm, std */
}

/* Running estimates are read in evaluation; the pass in training repeats the forward pass, but moves nothing. */
TENSOR_TEST(running_estimates_are_not_moved)
{
    for (int training = 0; training < 2; training++) {
        KN_SCOPE;
        const kn_batch_norm_args args = {.training = training, .momentum = 0.5, .eps = 0};
        kn_tensor *x = kn_from_data(((float[]){1, 2, 5, 8}), KN_SHAPE(2, 2)), *g = kn_ones(KN_SHAPE(2, 2));
        kn_tensor *mean = kn_full(KN_SHAPE(2), 3), *var = kn_full(KN_SHAPE(2), 4), *dx = NULL;
        CHECK_OK(kn_op_call(kn_op_find("batch_norm_backward"), (kn_tensor *[]){g, x, NULL, NULL, mean, var}, 6, &args,
                            &dx, 1));
        CHECK_VALUES(mean, 3, 3);
        CHECK_VALUES(var, 4, 4);
        const double slope = training ? 0 : 0.5;
        CHECK_VALUES(dx, slope, slope, slope, slope);
    }
}

/* Statistics that a forward pass has given replace its repetition. */
TENSOR_TEST(group_norm_takes_statistics)
{
    const kn_group_norm_args args = {.num_groups = 2, .eps = 0.1}, none = {.num_groups = 2};
    kn_tensor *x = kn_randn(KN_SHAPE(3, 4, 5)), *w = kn_randn(KN_SHAPE(4)), *g = kn_randn(KN_SHAPE(3, 4, 5));
    kn_tensor *forward[3] = {NULL}, *given[2] = {NULL}, *repeated[2] = {NULL};
    const kn_op *op = kn_op_find("group_norm_backward");
    CHECK_OK(kn_op_call(kn_op_find("group_norm"), (kn_tensor *[]){x, w}, 2, &args, forward, 3));
    assert_int_equal(kn_size(forward[1], 0), 3);
    assert_int_equal(kn_size(forward[2], 1), 2);
    CHECK_OK(kn_op_call(op, (kn_tensor *[]){g, x, w, NULL, forward[1], forward[2]}, 6, &none, given, 2));
    CHECK_OK(kn_op_call(op, (kn_tensor *[]){g, x, w}, 3, &args, repeated, 2));
    for (int i = 0; i < 2; i++) {
        bool close = false;
        CHECK_OK(kn_allclose(given[i], repeated[i], &close, .rtol = 1e-5, .atol = 1e-6));
        assert_true(close);
    }
}

/* Indices that no window has are ignored, and nothing is written elsewhere. */
TENSOR_TEST(places_outside_are_passed_over)
{
    const kn_adaptive_pool_args one_place = {{1, {1}}};
    const kn_pool_params windows = {KN_POOL_DEFAULTS, .kernel_size = 2};
    kn_tensor *g = kn_ones(KN_SHAPE(1, 3, 1)), *x = kn_zeros(KN_SHAPE(1, 3, 2)), *y = NULL, *z = NULL;
    kn_tensor *at = kn_from_data(((int64_t[]){1, -1, 1000000}), KN_SHAPE(1, 3, 1), .dtype = KN_I64);
    CHECK_OK(kn_op_call(kn_op_find("adaptive_max_pool1d_with_indices_backward"), (kn_tensor *[]){g, x, at}, 3,
                        &one_place, &y, 1));
    CHECK_VALUES(y, 0, 1, 0, 0, 0, 0);
    CHECK_OK(kn_op_call(kn_op_find("max_pool1d_with_indices_backward"), (kn_tensor *[]){g, x, at}, 3, &windows, &z, 1));
    CHECK_VALUES(z, 0, 1, 0, 0, 0, 0);
}

/* Windows of one slice each; the indices are those of the whole volume. */
TENSOR_TEST(places_in_volumes_are_found)
{
    const kn_pool_params windows = {KN_POOL_DEFAULTS, .kernel_sizes = {1, 2, 2}, .strides = {1, 2, 2}};
    kn_tensor *x = kn_from_data(((float[]){1, 2, 4, 3, 5, 8, 7, 6}), KN_SHAPE(1, 1, 2, 2, 2)), *y[2] = {NULL},
              *z = NULL;
    CHECK_OK(kn_op_call(kn_op_find("max_pool3d_with_indices"), (kn_tensor *[]){x}, 1, &windows, y, 2));
    CHECK_OK(
        kn_op_call(kn_op_find("max_pool3d_with_indices_backward"), (kn_tensor *[]){y[0], x, y[1]}, 3, &windows, &z, 1));
    CHECK_VALUES(z, 0, 0, 4, 0, 0, 8, 0, 0);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(each_gives_what_the_tape_gives),  TEST(gelu_has_both_forms),
        TEST(what_does_not_fit_is_refused),    TEST(the_result_may_be_missing),
        TEST(running_estimates_are_not_moved), TEST(group_norm_takes_statistics),
        TEST(places_outside_are_passed_over),  TEST(places_in_volumes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
