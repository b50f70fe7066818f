/* test_fused_optim.c - optimizer steps on the caller's tensors: as kn_optim's, and as torch.optim's formulas. */
#include "support/as_gpu.h"
#include "support/check.h"

#include <math.h>
#include <string.h>

enum { MANY = 20, STEPS = 3, STATES = 4 };

/* Lists of MANY parameters of 1, 4, 7, ... elements; states[3] counts the steps. */
typedef struct lists {
    kn_tensor *parameters[MANY], *gradients[MANY], *states[STATES][MANY];
} lists;

static kn_tensor *filled(int i, int64_t n, kn_dtype dtype, double phase)
{
    double values[100];
    for (int64_t k = 0; k < n; k++)
        values[k] = sin((double)(k + 1) * (i + 1) * 0.37 + phase);
    return kn_to_dtype(kn_from_data(values, KN_SHAPE(n), .dtype = KN_F64), dtype);
}

static void make_lists(lists *l, kn_dtype dtype)
{
    for (int i = 0; i < MANY; i++) {
        const int64_t n = 1 + 3 * i;
        l->parameters[i] = filled(i, n, dtype, 0);
        l->gradients[i] = filled(i, n, dtype, 1);
        for (int s = 0; s < STATES - 1; s++)
            l->states[s][i] = kn_zeros(KN_SHAPE(n), .dtype = dtype);
        l->states[3][i] = kn_zeros(KN_SCALAR);
    }
}

static void read_values(kn_tensor *tensor, double *values)
{
    CHECK_OK(kn_read(kn_to_dtype(tensor, KN_F64), values, (size_t)kn_numel(tensor) * sizeof *values));
}

static void check_close(kn_tensor *actual, const double *expected, double tolerance)
{
    double values[100];
    read_values(actual, values);
    for (int64_t k = 0; k < kn_numel(actual); k++)
        if (fabs(values[k] - expected[k]) > tolerance * (1 + fabs(expected[k])))
            fail_msg("element %lld is %.9g, expected %.9g", (long long)k, values[k], expected[k]);
}

static kn_status adam_step(lists *l, const kn_fused_adam_params *params)
{
    for (int i = 0; i < MANY; i++)
        CHECK_TENSOR(kn_add_(l->states[3][i], kn_ones(KN_SCALAR)));
    return kn_fused_adam_with(l->parameters, l->gradients, l->states[0], l->states[1],
                              params->amsgrad ? l->states[2] : NULL, l->states[3], MANY, params);
}

/* --- formulas in double ------------------------------------------------------------------------------------------- */

static void reference_adam(double *p, const double *g, int64_t n, const kn_fused_adam_params *a)
{
    double m[100] = {0}, v[100] = {0}, most[100] = {0};
    for (int t = 1; t <= STEPS; t++)
        for (int64_t k = 0; k < n; k++) {
            double gradient = a->maximize ? -g[k] : g[k];
            if (a->decoupled_weight_decay)
                p[k] *= 1 - a->lr * a->weight_decay;
            else
                gradient += a->weight_decay * p[k];
            m[k] = a->beta1 * m[k] + (1 - a->beta1) * gradient;
            v[k] = a->beta2 * v[k] + (1 - a->beta2) * gradient * gradient;
            most[k] = fmax(most[k], v[k]);
            const double root = sqrt(a->amsgrad ? most[k] : v[k]) / sqrt(1 - pow(a->beta2, t));
            p[k] -= a->lr / (1 - pow(a->beta1, t)) * m[k] / (root + a->eps);
        }
}

static void reference_sgd(double *p, const double *g, int64_t n, const kn_fused_sgd_params *a)
{
    double b[100] = {0};
    for (int t = 1; t <= STEPS; t++)
        for (int64_t k = 0; k < n; k++) {
            double gradient = (a->maximize ? -g[k] : g[k]) + a->weight_decay * p[k];
            if (a->momentum != 0) {
                b[k] = t == 1 ? gradient : a->momentum * b[k] + (1 - a->dampening) * gradient;
                gradient = a->nesterov ? gradient + a->momentum * b[k] : b[k];
            }
            p[k] -= a->lr * gradient;
        }
}

static void expect(lists *l, int i, double expected[100], double gradient[100])
{
    read_values(l->parameters[i], expected);
    read_values(l->gradients[i], gradient);
}

static void check_adam(const kn_fused_adam_params *params, kn_dtype dtype)
{
    KN_SCOPE;
    lists l;
    static double expected[MANY][100];
    double gradient[100];
    make_lists(&l, dtype);
    for (int i = 0; i < MANY; i++) {
        expect(&l, i, expected[i], gradient);
        reference_adam(expected[i], gradient, kn_numel(l.parameters[i]), params);
    }
    for (int t = 0; t < STEPS; t++)
        CHECK_OK(adam_step(&l, params));
    for (int i = 0; i < MANY; i++)
        check_close(l.parameters[i], expected[i], dtype == KN_F64 ? 1e-12 : 2e-6);
}

static void check_sgd(kn_fused_sgd_params params, kn_dtype dtype)
{
    KN_SCOPE;
    lists l;
    static double expected[MANY][100];
    double gradient[100];
    make_lists(&l, dtype);
    for (int i = 0; i < MANY; i++) {
        expect(&l, i, expected[i], gradient);
        reference_sgd(expected[i], gradient, kn_numel(l.parameters[i]), &params);
        kn_fill_(l.states[0][i], NAN); /* the first step does not read it */
    }
    for (int t = 0; t < STEPS; t++) {
        params.is_first_step = t == 0;
        CHECK_OK(
            kn_fused_sgd_with(l.parameters, l.gradients, params.momentum != 0 ? l.states[0] : NULL, MANY, &params));
    }
    for (int i = 0; i < MANY; i++)
        check_close(l.parameters[i], expected[i], dtype == KN_F64 ? 1e-12 : 2e-6);
}

TENSOR_TEST_F64(adam_as_its_formula)
{
    kn_fused_adam_params params = kn_fused_adam_params_init();
    params.lr = 0.05;
    for (int variant = 0; variant < 12; variant++) {
        params.weight_decay = variant % 3 == 0 ? 0 : 0.1;
        params.decoupled_weight_decay = variant % 3 == 2;
        params.amsgrad = variant / 3 % 2 == 1;
        params.maximize = variant / 6 == 1;
        check_adam(&params, KN_F32);
    }
    params.beta1 = 0;
    check_adam(&params, KN_F64);
}

TENSOR_TEST_F64(sgd_as_its_formula)
{
    check_sgd((kn_fused_sgd_params){.lr = 0.1}, KN_F32);
    check_sgd((kn_fused_sgd_params){.lr = 0.1, .weight_decay = 0.1, .maximize = true}, KN_F32);
    check_sgd((kn_fused_sgd_params){.lr = 0.1, .momentum = 0.9, .dampening = 0.3}, KN_F32);
    check_sgd((kn_fused_sgd_params){.lr = 0.1, .momentum = 0.9, .nesterov = true, .maximize = true}, KN_F64);
}

/* --- against kn_optim --------------------------------------------------------------------------------------------- */

TENSOR_TEST_F64(adam_as_the_optimizers)
{
    lists l;
    kn_tensor *own[MANY];
    make_lists(&l, KN_F32);
    for (int i = 0; i < MANY; i++) {
        own[i] = kn_clone(l.parameters[i]);
        CHECK_OK(kn_set_requires_grad(own[i], true));
        CHECK_OK(kn_set_grad(own[i], l.gradients[i]));
    }
    kn_optim *optim = kn_optim_adam(((kn_parameter_list){.tensors = own, .count = MANY}), .lr = 0.01, .amsgrad = true);
    kn_fused_adam_params params = kn_fused_adam_params_init();
    params.lr = 0.01;
    params.amsgrad = true;
    for (int t = 0; t < STEPS; t++) {
        CHECK_OK(kn_optim_step(optim));
        CHECK_OK(adam_step(&l, &params));
    }
    for (int i = 0; i < MANY; i++) {
        double expected[100];
        read_values(kn_detach(own[i]), expected);
        check_close(l.parameters[i], expected, 1e-6);
    }
    kn_optim_free(optim);
}

/* --- mixed precision ---------------------------------------------------------------------------------------------- */

static void check_same(kn_tensor *a, kn_tensor *b)
{
    double distance = 0;
    assert_int_equal(kn_numel(a), kn_numel(b));
    if (kn_numel(a) > 0)
        CHECK_OK(kn_item(kn_max(kn_abs(kn_sub(a, b))), &distance));
    assert_true(distance == 0);
}

static void check_same_lists(const lists *a, const lists *b)
{
    for (int i = 0; i < MANY; i++) {
        check_same(a->parameters[i], b->parameters[i]);
        check_same(a->gradients[i], b->gradients[i]);
        for (int s = 0; s < STATES; s++)
            check_same(a->states[s][i], b->states[s][i]);
    }
}

/* Powers of two: the division is exact. */
static kn_tensor *scale_gradients(lists *l)
{
    for (int i = 0; i < MANY; i++)
        CHECK_TENSOR(kn_mul_scalar_(l->gradients[i], 1024));
    return kn_full(KN_SCALAR, 1024);
}

static void check_scaled_adam(bool amsgrad, kn_dtype dtype)
{
    KN_SCOPE;
    lists plain, scaled;
    kn_fused_adam_params params = kn_fused_adam_params_init();
    params.amsgrad = amsgrad;
    make_lists(&plain, dtype);
    make_lists(&scaled, dtype);
    CHECK_OK(adam_step(&plain, &params));
    params.grad_scale = scale_gradients(&scaled);
    CHECK_OK(adam_step(&scaled, &params));
    check_same_lists(&scaled, &plain);
    params.grad_scale = NULL;
    CHECK_OK(adam_step(&plain, &params));
    params.found_inf = kn_zeros(KN_SCALAR);
    CHECK_OK(adam_step(&scaled, &params));
    check_same_lists(&scaled, &plain);
}

static void check_scaled_sgd(kn_fused_sgd_params params, kn_dtype dtype)
{
    KN_SCOPE;
    lists plain, scaled;
    make_lists(&plain, dtype);
    make_lists(&scaled, dtype);
    kn_tensor *const *plain_buffers = params.momentum != 0 ? plain.states[0] : NULL;
    kn_tensor *const *buffers = params.momentum != 0 ? scaled.states[0] : NULL;
    CHECK_OK(kn_fused_sgd_with(plain.parameters, plain.gradients, plain_buffers, MANY, &params));
    params.grad_scale = scale_gradients(&scaled);
    params.found_inf = kn_zeros(KN_SHAPE(1));
    CHECK_OK(kn_fused_sgd_with(scaled.parameters, scaled.gradients, buffers, MANY, &params));
    check_same_lists(&scaled, &plain);
}

TENSOR_TEST_F64(gradients_are_divided_by_the_scale)
{
    check_scaled_adam(false, KN_F32);
    check_scaled_adam(true, KN_F64);
    check_scaled_sgd((kn_fused_sgd_params){.lr = 0.1, .weight_decay = 0.1}, KN_F64);
    check_scaled_sgd((kn_fused_sgd_params){.lr = 0.1, .momentum = 0.9, .maximize = true}, KN_F32);
}

TENSOR_TEST_F64(an_infinity_skips_the_step)
{
    lists stepped, kept;
    make_lists(&stepped, KN_F32);
    make_lists(&kept, KN_F32);
    kn_tensor *found = kn_ones(KN_SCALAR), *scale = kn_full(KN_SCALAR, 2);
    CHECK_OK(kn_fused_adam(stepped.parameters, stepped.gradients, stepped.states[0], stepped.states[1], NULL,
                           stepped.states[3], MANY, .grad_scale = scale, .found_inf = found));
    CHECK_OK(kn_fused_sgd(stepped.parameters, stepped.gradients, stepped.states[0], MANY, .momentum = 0.9,
                          .found_inf = found));
    check_same_lists(&stepped, &kept);
}

TENSOR_TEST(strided_gradients_are_divided)
{
    kn_tensor *p = kn_ones(KN_SHAPE(2, 3)), *g = kn_t(kn_full(KN_SHAPE(3, 2), 8));
    CHECK_OK(kn_fused_sgd(&p, &g, NULL, 1, .lr = 0.5, .grad_scale = kn_full(KN_SCALAR, 4)));
    CHECK_VALUES(p, 0, 0, 0, 0, 0, 0);
    CHECK_VALUES(g, 2, 2, 2, 2, 2, 2);
}

/* --- layouts and dtypes ------------------------------------------------------------------------------------------- */

TENSOR_TEST_F64(strided_tensors_and_both_dtypes_in_one_list)
{
    kn_tensor *parameters[] = {kn_t(kn_ones(KN_SHAPE(3, 2))), kn_ones(KN_SHAPE(2, 3), .dtype = KN_F64),
                               kn_zeros(KN_SHAPE(0, 3)), kn_ones(KN_SHAPE(2, 3), .requires_grad = true)};
    kn_tensor *gradients[] = {kn_ones(KN_SHAPE(2, 3)), kn_t(kn_ones(KN_SHAPE(3, 2), .dtype = KN_F64)),
                              kn_zeros(KN_SHAPE(0, 3)), kn_expand(kn_ones(KN_SCALAR), KN_SHAPE(2, 3))};
    kn_tensor *buffers[] = {kn_t(kn_ones(KN_SHAPE(3, 2))), kn_ones(KN_SHAPE(2, 3), .dtype = KN_F64),
                            kn_zeros(KN_SHAPE(0, 3)), kn_ones(KN_SHAPE(2, 3))};
    CHECK_OK(kn_fused_sgd(parameters, gradients, buffers, 4, .lr = 0.5, .momentum = 1));
    for (int i = 0; i < 4; i += i == 1 ? 2 : 1) {
        CHECK_VALUES(kn_detach(parameters[i]), 0, 0, 0, 0, 0, 0);
        CHECK_VALUES(buffers[i], 2, 2, 2, 2, 2, 2);
    }
    CHECK_OK(kn_fused_sgd(parameters, gradients, NULL, 0)); /* nothing to do */
    CHECK_OK(kn_fused_sgd(NULL, NULL, NULL, 0));
}

/* What was saved and then stepped is noticed. */
TENSOR_TEST(a_step_counts_as_a_change)
{
    kn_tensor *w = kn_ones(KN_SHAPE(2), .requires_grad = true), *g = kn_ones(KN_SHAPE(2)), *y = kn_sum(kn_mul(w, w));
    CHECK_OK(kn_fused_sgd(&w, &g, NULL, 1, .lr = 0.5));
    assert_int_equal(kn_backward(y), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "changed in place");
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

#define REFUSED(status, call, ...)                                                                                     \
    do {                                                                                                               \
        assert_int_equal(call, status);                                                                                \
        CHECK_ERROR(status, __VA_ARGS__);                                                                              \
    } while (0)

TENSOR_TEST_F64(lists_that_do_not_do)
{
    kn_tensor *p[] = {kn_ones(KN_SHAPE(3)), kn_ones(KN_SHAPE(2))}, *g[] = {kn_ones(KN_SHAPE(3)), kn_ones(KN_SHAPE(2))};
    kn_tensor *hole[] = {kn_ones(KN_SHAPE(3)), NULL}, *wrong[] = {kn_ones(KN_SHAPE(3)), kn_ones(KN_SHAPE(2, 1))};
    kn_tensor *step[] = {kn_ones(KN_SCALAR), kn_ones(KN_SHAPE(1))}, *wide[] = {step[0], kn_ones(KN_SHAPE(2))};
    kn_tensor *whole[] = {step[0], kn_ones(KN_SCALAR, .dtype = KN_I64)}, *host[] = {kn_to(p[0], kn_device_host())};
    kn_tensor *halves[] = {kn_to_dtype(p[0], KN_F16)}, *windows[] = {kn_expand(kn_ones(KN_SHAPE(1)), KN_SHAPE(3))};
    kn_tensor *leaf = kn_ones(KN_SHAPE(3), .requires_grad = true), *result[] = {kn_mul(leaf, leaf)};
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(NULL, g, NULL, 2), "kn_fused_sgd", "`parameters` is NULL");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, NULL, NULL, 2), "kn_fused_sgd", "`gradients` is NULL");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, g, NULL, -1), "kn_fused_sgd", "-1 parameters");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, g, NULL, 2, .momentum = 0.9), "`momentum_buffers` is NULL");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(hole, g, NULL, 2), "kn_fused_sgd", "`parameters` is NULL");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, hole, NULL, 2), "kn_fused_sgd", "`gradients` is NULL");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, wrong, NULL, 2), "gradients[1] is float32 [2, 1]",
            "parameter is float32 [2]");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, g, wrong, 2, .momentum = 0.9), "momentum_buffers[1] is float32 [2, 1]");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, host, NULL, 1), "gradients[0] is float32 [3] on host");
    REFUSED(KN_ERR_DEVICE, kn_fused_sgd(host, g, NULL, 1), "parameters[0] is on the host");
    REFUSED(KN_ERR_DTYPE, kn_fused_sgd(halves, g, NULL, 1), "parameters[0] is float16");
    REFUSED(KN_ERR_STATE, kn_fused_sgd(windows, g, NULL, 1), "parameters[0]", "share memory");
    REFUSED(KN_ERR_STATE, kn_fused_sgd(result, g, NULL, 1), "parameters[0] is the result", "KN_NO_GRAD");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, g, NULL, 2, .lr = -1), "SGD", "lr");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, g, p, 2, .nesterov = true), "nesterov");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_adam(p, g, NULL, g, NULL, step, 2), "kn_fused_adam", "`exp_avgs` is NULL");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_adam(p, g, g, NULL, NULL, step, 2), "`exp_avg_sqs` is NULL");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_adam(p, g, g, g, NULL, step, 2, .amsgrad = true), "`max_exp_avg_sqs` is NULL");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_adam(p, g, g, g, NULL, NULL, 2), "`state_steps` is NULL");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_adam(p, g, g, g, NULL, hole, 2), "state_steps[0]", "one float32 element");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_adam(p, g, g, g, NULL, wide, 2), "state_steps[1] is float32 [2]");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_adam(p, g, g, g, NULL, whole, 2), "state_steps[1] is int64");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_adam(p, g, g, g, NULL, step, 2, .beta1 = 1), "Adam", "beta1");
    kn_tensor *scale = kn_ones(KN_SCALAR), *shared[] = {kn_expand(kn_ones(KN_SCALAR), KN_SHAPE(3))};
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, g, NULL, 2, .grad_scale = p[0]), "kn_fused_sgd: grad_scale is float32 [3]",
            "one float32 element");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_sgd(p, g, NULL, 2, .found_inf = kn_ones(KN_SCALAR, .dtype = KN_F64)),
            "found_inf is float64");
    REFUSED(KN_ERR_STATE, kn_fused_sgd(p, shared, NULL, 1, .grad_scale = scale), "gradients[0]", "share memory");
    CHECK_VALUES(p[0], 1, 1, 1);
    CHECK_VALUES(p[1], 1, 1);
}

static void unscaling_reports_infinities(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *half = kn_to_dtype(kn_full(KN_SHAPE(3), 4), KN_F16),
              *columns = kn_transpose(kn_ones(KN_SHAPE(2, 2)), 0, 1);
    kn_tensor *list[] = {half, columns}, *scale = kn_full(KN_SCALAR, 0.25), *found = kn_zeros(KN_SHAPE(1));
    CHECK_OK(kn_fused_unscale(list, 2, scale, found));
    CHECK_VALUES(half, 1, 1, 1);
    CHECK_VALUES(columns, 0.25, 0.25, 0.25, 0.25);
    CHECK_VALUES(found, 0);
    kn_fill_(kn_narrow(columns, 0, 1, 1), INFINITY);
    CHECK_OK(kn_fused_unscale(list, 2, scale, found));
    CHECK_VALUES(found, 1);
    CHECK_OK(kn_fused_unscale(list, 0, NULL, NULL));
    REFUSED(KN_ERR_ARGUMENT, kn_fused_unscale(list, 2, half, found), "inv_scale is float16");
    REFUSED(KN_ERR_ARGUMENT, kn_fused_unscale(list, 2, scale, columns), "found_inf is float32 [2, 2]");
    kn_tensor *whole[] = {kn_ones(KN_SHAPE(1), .dtype = KN_I32)};
    REFUSED(KN_ERR_DTYPE, kn_fused_unscale(whole, 1, scale, found), "int32");
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(adam_as_its_formula),
        TEST(sgd_as_its_formula),
        TEST(adam_as_the_optimizers),
        TEST(strided_tensors_and_both_dtypes_in_one_list),
        TEST(a_step_counts_as_a_change),
        TEST(lists_that_do_not_do),
        TEST(gradients_are_divided_by_the_scale),
        TEST(an_infinity_skips_the_step),
        TEST(strided_gradients_are_divided),
        TEST(unscaling_reports_infinities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
