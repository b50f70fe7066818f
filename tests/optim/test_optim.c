/* test_optim.c - optimizers over many parameters, odd sizes, mixed dtypes and missing gradients, against the formulas
 * in plain C. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/as_gpu.h"
#include "support/values.h"

#define MANY 56 /* more than fit into two launches */

/* --- the formulas ---------------------------------------------------------------------------------------------- */

typedef struct adam_state {
    double p, m, v, largest;
} adam_state;

static void adam_reference(adam_state *s, double g, int step, const kn_adam_params *h)
{
    g += h->weight_decay * s->p;
    s->m = h->beta1 * s->m + (1 - h->beta1) * g;
    s->v = h->beta2 * s->v + (1 - h->beta2) * g * g;
    s->largest = fmax(s->largest, s->v);
    double v = h->amsgrad ? s->largest : s->v;
    s->p -= h->lr / (1 - pow(h->beta1, step)) * s->m / (sqrt(v) / sqrt(1 - pow(h->beta2, step)) + h->eps);
}

static double start_value(int parameter, int64_t i) { return 0.25 * (double)((parameter * 7 + i) % 9) - 1; }
static double gradient_value(int parameter, int64_t i, int step)
{
    return 0.125 * (double)((parameter + 3 * i + 5 * step) % 11) - 0.5;
}

/* --- many parameters ------------------------------------------------------------------------------------------- */

/* Adversarial sizes: 0, 1, primes, more than one work-item's share. */
static int64_t size_of(int parameter)
{
    static const int64_t sizes[] = {1, 0, 7, 31, 1000, 5003, 16, 129, 40000, 2};
    return sizes[parameter % 10];
}

/* The last quarter of the parameters starts at element one of its memory: unaligned for vectors. */
static kn_tensor *filled(int64_t size, kn_dtype dtype, double (*value)(int, int64_t, int), int parameter, int step)
{
    const int64_t skipped = parameter >= 3 * MANY / 4;
    double *values = calloc((size_t)(size + 1), sizeof *values);
    for (int64_t i = 0; i < size; i++)
        values[skipped + i] = value != NULL ? value(parameter, i, step) : start_value(parameter, i);
    kn_tensor *tensor = tensor_of_doubles(values, KN_SHAPE(skipped + size), dtype, false);
    free(values);
    return skipped ? kn_narrow(tensor, 0, 1, size) : tensor;
}

/* Every third parameter is float64; every fourth has no gradient in even steps. */
static kn_dtype dtype_of(int parameter) { return parameter % 3 == 2 ? KN_F64 : KN_F32; }
static bool has_gradient(int parameter, int step) { return parameter % 4 != 3 || step % 2 == 1; }

static void check_parameter(const kn_tensor *tensor, int parameter, int steps, const kn_adam_params *h)
{
    double *values = read_doubles(tensor);
    double tolerance = kn_dtype_of(tensor) == KN_F64 ? 1e-12 : 2e-6;
    for (int64_t i = 0; i < kn_numel(tensor); i++) {
        adam_state s = {.p = start_value(parameter, i)};
        int made = 0;
        for (int step = 1; step <= steps; step++) {
            if (has_gradient(parameter, step))
                adam_reference(&s, gradient_value(parameter, i, step), ++made, h);
        }
        if (!(fabs(values[i] - s.p) <= tolerance * (1 + fabs(s.p))))
            fail_msg("parameter %d, element %lld: %.9g, expected %.9g", parameter, (long long)i, values[i], s.p);
    }
    free(values);
}

static void follow_many(const kn_adam_params *h, int steps)
{
    kn_tensor *tensors[MANY];
    const char *names[MANY];
    for (int p = 0; p < MANY; p++) {
        tensors[p] = filled(size_of(p), dtype_of(p), NULL, p, 0);
        CHECK_TENSOR(tensors[p]);
        CHECK_OK(kn_set_requires_grad(tensors[p], true));
        names[p] = "p";
    }
    kn_optim *optim = kn_optim_adam_with((kn_parameter_list){tensors, names, MANY}, h);
    CHECK_TENSOR(optim);
    for (int step = 1; step <= steps; step++) {
        KN_SCOPE;
        kn_optim_zero_grad(optim);
        for (int p = 0; p < MANY; p++) {
            if (has_gradient(p, step))
                CHECK_OK(kn_set_grad(tensors[p], filled(size_of(p), dtype_of(p), gradient_value, p, step)));
        }
        CHECK_OK(kn_optim_step(optim));
    }
    for (int p = 0; p < MANY; p++)
        check_parameter(tensors[p], p, steps, h);
    kn_optim_free(optim);
}

TENSOR_TEST_F64(adam_over_many_parameters)
{
    kn_adam_params h = {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    follow_many(&h, 5);
}

TENSOR_TEST_F64(amsgrad_with_weight_decay_over_many_parameters)
{
    kn_adam_params h = {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-4, .weight_decay = 0.1, .amsgrad = true};
    follow_many(&h, 4);
}

TENSOR_TEST(equal_inputs_give_equal_bits)
{
    void *first = NULL;
    for (int run = 0; run < 2; run++) {
        kn_tensor *w = filled(40000, KN_F32, NULL, 1, 0);
        CHECK_OK(kn_set_requires_grad(w, true));
        kn_optim *optim = kn_optim_adam(((kn_parameter_list){&w, (const char *[]){"w"}, 1}), .lr = 0.1);
        for (int step = 0; step < 3; step++) {
            CHECK_OK(kn_set_grad(w, filled(40000, KN_F32, gradient_value, 1, step)));
            CHECK_OK(kn_optim_step(optim));
        }
        size_t size;
        void *bytes = read_bytes(w, &size);
        if (run == 1) {
            assert_memory_equal(first, bytes, size);
            free(bytes);
        } else {
            first = bytes;
        }
        kn_optim_free(optim);
    }
    free(first);
}

/* --- SGD ------------------------------------------------------------------------------------------------------- */

/* One scalar parameter under constant gradient 1. */
static double sgd_after(int steps, const kn_sgd_params *params)
{
    kn_tensor *w = kn_zeros(KN_SHAPE(1), .dtype = KN_F64, .requires_grad = true);
    kn_optim *optim = kn_optim_sgd_with((kn_parameter_list){&w, (const char *[]){"w"}, 1}, params);
    CHECK_TENSOR(optim);
    CHECK_OK(kn_set_grad(w, kn_ones(KN_SHAPE(1), .dtype = KN_F64)));
    for (int i = 0; i < steps; i++)
        CHECK_OK(kn_optim_step(optim));
    double value = 0;
    CHECK_OK(kn_item(w, &value));
    kn_optim_free(optim);
    return value;
}

TENSOR_TEST_F64(sgd_and_its_momentum)
{
    assert_true(fabs(sgd_after(3, &(kn_sgd_params){.lr = 0.1}) - -0.3) < 1e-14);
    /* b: 1, 1.5, 1.75 */
    assert_true(fabs(sgd_after(3, &(kn_sgd_params){.lr = 0.1, .momentum = 0.5}) - -0.425) < 1e-14);
    /* The first step is not dampened: 1, 0.5 + 0.5, 0.5 + 0.5 */
    assert_true(fabs(sgd_after(3, &(kn_sgd_params){.lr = 0.1, .momentum = 0.5, .dampening = 0.5}) - -0.3) < 1e-14);
    /* g + 0.5 b: 1.5, 1.75, 1.875 */
    assert_true(fabs(sgd_after(3, &(kn_sgd_params){.lr = 0.1, .momentum = 0.5, .nesterov = true}) - -0.5125) < 1e-14);
}

/* --- LAMB -------------------------------------------------------------------------------------------------------- */

/* Its norms are sums over many work-groups. */
TENSOR_TEST(lamb_over_many_work_groups)
{
    enum { SIZE = 50001 };
    double squares[2] = {0, 0}, *values = malloc(2 * SIZE * sizeof *values), *gradient = values + SIZE;
    for (int i = 0; i < SIZE; i++) {
        values[i] = sin(i);
        gradient[i] = cos(3.0 * i);
        const double u = gradient[i] / (fabs(gradient[i]) + 1e-6) + 0.1 * values[i];
        squares[0] += values[i] * values[i];
        squares[1] += u * u;
    }
    kn_tensor *w = tensor_of_doubles(values, KN_SHAPE(SIZE), KN_F32, true);
    CHECK_OK(kn_set_grad(w, tensor_of_doubles(gradient, KN_SHAPE(SIZE), KN_F32, false)));
    kn_optim *optim = kn_optim_lamb(((kn_parameter_list){&w, NULL, 1}), .lr = 0.1, .weight_decay = 0.1);
    CHECK_OK(kn_optim_step(optim));
    double *found = read_doubles(w);
    for (int i = 0; i < SIZE; i++) {
        const double u = gradient[i] / (fabs(gradient[i]) + 1e-6) + 0.1 * values[i];
        const double expected = values[i] - 0.1 * sqrt(squares[0] / squares[1]) * u;
        if (!(fabs(found[i] - expected) <= 1e-5))
            fail_msg("element %d: %.9g, expected %.9g", i, found[i], expected);
    }
    free(found);
    free(values);
    kn_optim_free(optim);
}

/* --- odd tensors ----------------------------------------------------------------------------------------------- */

TENSOR_TEST(parameters_and_gradients_may_be_strided)
{
    kn_tensor *base = kn_from_data(((float[]){1, 2, 3, 4, 5, 6}), KN_SHAPE(2, 3));
    kn_tensor *w = kn_t(base);
    CHECK_OK(kn_set_requires_grad(w, true));
    kn_tensor *scale = kn_from_data(((float[]){1}), KN_SHAPE(1));
    CHECK_OK(kn_set_grad(w, kn_expand(scale, KN_SHAPE(3, 2))));
    kn_optim *optim = kn_optim_sgd(((kn_parameter_list){&w, (const char *[]){"w"}, 1}), .lr = 0.5);
    CHECK_OK(kn_optim_step(optim));
    CHECK_VALUES(base, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5);
    kn_optim_free(optim);
}

TENSOR_TEST(a_step_makes_what_backward_saved_stale)
{
    kn_tensor *w = kn_ones(KN_SHAPE(2), .requires_grad = true);
    kn_optim *optim = kn_optim_sgd(((kn_parameter_list){&w, (const char *[]){"w"}, 1}), .lr = 0.5);
    kn_tensor *loss = kn_sum(kn_mul(w, w));
    CHECK_OK(kn_set_grad(w, kn_ones(KN_SHAPE(2))));
    CHECK_OK(kn_optim_step(optim));
    assert_int_equal(kn_backward(loss), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "in place");
    kn_optim_free(optim);
    kn_error_clear();
}

TENSOR_TEST(a_step_without_gradients_does_nothing)
{
    kn_tensor *w = kn_ones(KN_SHAPE(2), .requires_grad = true);
    kn_optim *optim = kn_optim_adam(((kn_parameter_list){&w, (const char *[]){"w"}, 1}));
    CHECK_OK(kn_optim_step(optim));
    CHECK_VALUES(w, 1, 1);
    CHECK_OK(kn_set_grad(w, kn_ones(KN_SHAPE(2))));
    kn_optim_zero_grad(optim);
    assert_null(kn_grad(w));
    kn_optim_free(optim);
}

/* --- what is refused ------------------------------------------------------------------------------------------- */

TENSOR_TEST(wrong_parameters_are_refused)
{
    kn_tensor *w = kn_ones(KN_SHAPE(2), .requires_grad = true), *whole = kn_ones(KN_SHAPE(2), .dtype = KN_I64);
    const char *names[] = {"a", "b"};
    kn_parameter_list one = {&w, names, 1};
    assert_null(kn_optim_adam(((kn_parameter_list){0})));
    CHECK_ERROR(KN_ERR_ARGUMENT, "Adam", "no parameters");
    assert_null(kn_optim_sgd(((kn_parameter_list){(kn_tensor *[]){w, w}, names, 2})));
    CHECK_ERROR(KN_ERR_ARGUMENT, "0 and 1 are the same");
    assert_null(kn_optim_sgd(((kn_parameter_list){&whole, names, 1})));
    CHECK_ERROR(KN_ERR_DTYPE, "int64");
    kn_tensor *result = kn_mul(w, w);
    assert_null(kn_optim_sgd(((kn_parameter_list){&result, names, 1})));
    CHECK_ERROR(KN_ERR_ARGUMENT, "leaf");
    assert_null(kn_optim_adam(one, .lr = -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "lr (-1)");
    assert_null(kn_optim_adam(one, .beta1 = 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "beta1 (1)");
    assert_null(kn_optim_sgd(one, .nesterov = true));
    CHECK_ERROR(KN_ERR_ARGUMENT, "nesterov");
    /* If creating the network failed, its own error is reported. */
    assert_null(kn_optim_adam(kn_module_parameters(kn_nn_linear(.in_features = -1, .out_features = 1))));
    CHECK_ERROR(KN_ERR_ARGUMENT, "Linear", "-1");
    assert_int_equal(kn_optim_step(NULL), KN_ERR_ARGUMENT);
    kn_optim_free(NULL);
    kn_error_clear();
}

TENSOR_TEST(the_learning_rate_can_be_changed)
{
    kn_tensor *w = kn_zeros(KN_SHAPE(1), .requires_grad = true);
    kn_optim *optim = kn_optim_sgd(((kn_parameter_list){&w, (const char *[]){"w"}, 1}));
    assert_true(kn_optim_lr(optim) == 1e-3);
    CHECK_OK(kn_optim_set_lr(optim, 2));
    CHECK_OK(kn_set_grad(w, kn_ones(KN_SHAPE(1))));
    CHECK_OK(kn_optim_step(optim));
    CHECK_VALUES(w, -2);
    assert_int_equal(kn_optim_set_lr(optim, NAN), KN_ERR_ARGUMENT);
    assert_true(kn_optim_lr(optim) == 2);
    kn_optim_free(optim);
    kn_error_clear();
}

TENSOR_TEST(parameters_on_the_host_are_named_as_such)
{
    kn_module *layer = kn_nn_linear(.in_features = 1, .out_features = 1);
    kn_optim *optim = kn_optim_adam(kn_module_parameters(layer));
    CHECK_OK(kn_module_to(layer, kn_device_host()));
    assert_int_equal(kn_optim_step(optim), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "host", "kn_module_to");
    kn_optim_free(optim);
    kn_module_free(layer);
    kn_error_clear();
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(adam_over_many_parameters),
        TEST(amsgrad_with_weight_decay_over_many_parameters),
        TEST(equal_inputs_give_equal_bits),
        TEST(sgd_and_its_momentum),
        TEST(lamb_over_many_work_groups),
        TEST(parameters_and_gradients_may_be_strided),
        TEST(a_step_makes_what_backward_saved_stale),
        TEST(a_step_without_gradients_does_nothing),
        TEST(wrong_parameters_are_refused),
        TEST(the_learning_rate_can_be_changed),
        TEST(parameters_on_the_host_are_named_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
