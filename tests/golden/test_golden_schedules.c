/* test_golden_schedules.c - learning rate schedules of two groups against PyTorch's over 200 steps; their state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"

#define STEPS 200

static double by_lambda(int64_t epoch, int group, void *user)
{
    (void)user;
    return group == 0 ? 1 / (1 + 0.1 * (double)epoch) : pow(0.95, (double)epoch);
}
static double every_third(int64_t epoch, int group, void *user)
{
    (void)group, (void)user;
    return epoch % 3 == 0 ? 0.9 : 1.0;
}

typedef kn_lr_scheduler *(*make_schedule)(kn_optim *o);
#define SCHEDULE(name, call)                                                                                           \
    static kn_lr_scheduler *name(kn_optim *o) { return call; }
SCHEDULE(lambda, kn_lambda_lr(o, by_lambda, NULL))
SCHEDULE(multiplicative, kn_multiplicative_lr(o, every_third, NULL))
SCHEDULE(step, kn_step_lr(o, 7))
SCHEDULE(step_gamma, kn_step_lr(o, 30, .gamma = 0.5))
SCHEDULE(multi_step, kn_multi_step_lr(o, ((int64_t[]){3, 50, 50, 120}), 4, .gamma = 0.3))
SCHEDULE(constant, kn_constant_lr(o))
SCHEDULE(constant_factor, kn_constant_lr(o, .factor = 0.7, .total_iters = 40))
SCHEDULE(linear, kn_linear_lr(o))
SCHEDULE(linear_down, kn_linear_lr(o, .start_factor = 0.9, .end_factor = 0.1, .total_iters = 150))
SCHEDULE(exponential, kn_exponential_lr(o, 0.97))
SCHEDULE(polynomial, kn_polynomial_lr(o, .total_iters = 100, .power = 2))
SCHEDULE(polynomial_default, kn_polynomial_lr(o))
SCHEDULE(cosine, kn_cosine_annealing_lr(o, 30, .eta_min = 0.001))
SCHEDULE(cosine_once, kn_cosine_annealing_lr(o, 200))
SCHEDULE(restarts, kn_cosine_annealing_warm_restarts(o, 11, .T_mult = 2, .eta_min = 0.01))
SCHEDULE(restarts_equal, kn_cosine_annealing_warm_restarts(o, 40))
SCHEDULE(cyclic, kn_cyclic_lr(o, 0.01, 0.2, .step_size_up = 20))
SCHEDULE(cyclic_triangular2,
         kn_cyclic_lr(o, 0, 0, .base_lrs = (double[]){0.01, 0.02}, .max_lrs = (double[]){0.2, 0.3}, .step_size_up = 15,
                      .step_size_down = 25, .mode = KN_TRIANGULAR2, .base_momentum = 0.6, .max_momentum = 0.95))
SCHEDULE(cyclic_exp_range,
         kn_cyclic_lr(o, 0.01, 0.2, .step_size_up = 10, .mode = KN_EXP_RANGE, .gamma = 0.99, .cycle_momentum = false))
SCHEDULE(one_cycle, kn_one_cycle_lr(o, 0.3, 200))
SCHEDULE(one_cycle_linear,
         kn_one_cycle_lr(o, 0, 201, .max_lrs = (double[]){0.3, 0.6}, .anneal_linearly = true, .pct_start = 0.2))
SCHEDULE(one_cycle_three_phase, kn_one_cycle_lr(o, 0.3, 210, .three_phase = true, .div_factor = 10,
                                                .final_div_factor = 100, .base_momentum = 0.7, .max_momentum = 0.9))
SCHEDULE(plateau, kn_reduce_lr_on_plateau(o, .patience = 3))
SCHEDULE(plateau_max, kn_reduce_lr_on_plateau(o, .mode_max = true, .factor = 0.5, .patience = 2, .threshold = 0.01,
                                              .cooldown = 4, .absolute = true, .min_lrs = (double[]){0.01, 0.002}))
#define SEQUENCE(...) ((kn_lr_scheduler *[]){__VA_ARGS__})
static kn_lr_scheduler *sequential(kn_optim *o)
{
    kn_lr_scheduler *first = kn_linear_lr(o, .total_iters = 10), *second = kn_cosine_annealing_lr(o, 100);
    return kn_sequential_lr(o, SEQUENCE(first, second, kn_exponential_lr(o, 0.9)), 3, (int64_t[]){10, 110});
}
static kn_lr_scheduler *sequential_restarts(kn_optim *o)
{
    kn_lr_scheduler *first = kn_constant_lr(o, .factor = 0.1, .total_iters = 20);
    return kn_sequential_lr(o, SEQUENCE(first, kn_cosine_annealing_warm_restarts(o, 30, .T_mult = 2)), 2,
                            (int64_t[]){20});
}
static kn_lr_scheduler *sequential_cyclic(kn_optim *o)
{
    kn_lr_scheduler *first = kn_linear_lr(o, .total_iters = 10);
    return kn_sequential_lr(o, SEQUENCE(first, kn_cyclic_lr(o, 0.01, 0.2, .step_size_up = 20)), 2, (int64_t[]){10});
}
static kn_lr_scheduler *chained(kn_optim *o)
{
    kn_lr_scheduler *first = kn_constant_lr(o, .factor = 0.1, .total_iters = 20);
    return kn_chained_scheduler(SEQUENCE(first, kn_exponential_lr(o, 0.97)), 2);
}

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
static const struct schedule_row {
    const char *name;
    make_schedule make;
} rows[] = {
    ROW(lambda),
    ROW(multiplicative),
    ROW(step),
    ROW(step_gamma),
    ROW(multi_step),
    ROW(constant),
    ROW(constant_factor),
    ROW(linear),
    ROW(linear_down),
    ROW(exponential),
    ROW(polynomial),
    ROW(polynomial_default),
    ROW(cosine),
    ROW(cosine_once),
    ROW(restarts),
    ROW(restarts_equal),
    ROW(cyclic),
    ROW(cyclic_triangular2),
    ROW(cyclic_exp_range),
    ROW(one_cycle),
    ROW(one_cycle_linear),
    ROW(one_cycle_three_phase),
    ROW(plateau),
    ROW(plateau_max),
    ROW(sequential),
    ROW(sequential_restarts),
    ROW(sequential_cyclic),
    ROW(chained),
};

static kn_optim *two_groups(kn_tensor *p, kn_tensor *q)
{
    kn_optim *optim = kn_optim_sgd(((kn_parameter_list){&p, NULL, 1}), .lr = 0.5, .momentum = 0.9);
    assert_non_null(optim);
    assert_int_equal(kn_optim_add_group(optim, ((kn_parameter_list){&q, NULL, 1}), {"lr", 0.1}), KN_OK);
    return optim;
}

static void advance(kn_lr_scheduler *s, double metric)
{
    assert_int_equal(kn_lr_scheduler_takes_metric(s) ? kn_lr_scheduler_step_metric(s, metric) : kn_lr_scheduler_step(s),
                     KN_OK);
}

static bool is_close(const struct schedule_row *row, const kn_optim *optim, int at, const double *expected)
{
    bool close = true;
    for (int k = 0; k < 4; k++) {
        double value;
        assert_int_equal(kn_optim_get(optim, k / 2, k % 2 ? "momentum" : "lr", &value), KN_OK);
        if (fabs(value - expected[k]) <= 1e-12 * fabs(expected[k]) + 1e-17)
            continue;
        print_error("%s, step %d: %s of group %d is %.17g, expected %.17g\n", row->name, at, k % 2 ? "momentum" : "lr",
                    k / 2, value, expected[k]);
        close = false;
    }
    return close;
}

/* At step 77 the state goes through a file into a new schedule of a new optimizer. */
static bool follow(const struct schedule_row *row, const kn_tensor_file *file)
{
    KN_SCOPE;
    kn_tensor *p = kn_zeros(KN_SHAPE(1), .requires_grad = true), *q = kn_zeros(KN_SHAPE(1), .requires_grad = true);
    const double *expected = kn_data(kn_tensor_file_get(file, row->name));
    const double *metric = kn_data(kn_tensor_file_get(file, "metric"));
    kn_optim *optim = two_groups(p, q);
    kn_lr_scheduler *s = row->make(optim);
    assert_non_null(s);
    bool close = is_close(row, optim, 0, expected);
    for (int i = 0; i < STEPS && close; i++) {
        if (i == 77) {
            const char *path = KOINE_BINARY_DIR "/tests/golden/schedule.safetensors";
            const char *optim_path = KOINE_BINARY_DIR "/tests/golden/schedule_optim.safetensors";
            assert_int_equal(kn_lr_scheduler_save(s, path), KN_OK);
            assert_int_equal(kn_optim_save(optim, optim_path), KN_OK);
            kn_lr_scheduler_free(s);
            kn_optim_free(optim);
            optim = two_groups(p, q);
            s = row->make(optim);
            assert_int_equal(kn_lr_scheduler_load(s, path), KN_OK);
            assert_int_equal(kn_optim_load(optim, optim_path), KN_OK);
        }
        advance(s, metric[i]);
        close = is_close(row, optim, i + 1, expected + 4 * (size_t)(i + 1));
        for (int g = 0; g < 2; g++)
            assert_true(kn_lr_scheduler_last_lr(s, g) == (g == 0 ? kn_optim_lr(optim) : kn_lr_scheduler_last_lr(s, 1)));
    }
    kn_lr_scheduler_free(s);
    kn_optim_free(optim);
    return close;
}

static void test_schedules(void **state)
{
    (void)state;
    int failed = 0;
    kn_tensor_file *file = golden_open("schedules");
    assert_non_null(file);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        failed += !follow(&rows[i], file);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

/* What PyTorch refuses, with a sentence that names the argument. */
static void expect(kn_lr_scheduler *s, const char *text)
{
    assert_null(s);
    if (strstr(kn_error_message(), text) == NULL)
        fail_msg("\"%s\" has no \"%s\"", kn_error_message(), text);
    kn_error_clear();
}

static void test_refusals(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *p = kn_zeros(KN_SHAPE(1), .requires_grad = true), *q = kn_zeros(KN_SHAPE(1), .requires_grad = true);
    kn_optim *o = two_groups(p, q), *other = kn_optim_rmsprop(((kn_parameter_list){&p, NULL, 1}));
    expect(kn_step_lr(o, 0), "step_size (0)");
    expect(kn_step_lr(o, 3, .last_epoch = 4), "initial_lr");
    expect(kn_constant_lr(o, .factor = 2), "factor (2)");
    expect(kn_linear_lr(o, .start_factor = 0), "start_factor (0)");
    expect(kn_linear_lr(o, .end_factor = 2), "end_factor (2)");
    expect(kn_cosine_annealing_warm_restarts(o, 0), "T_0 (0)");
    expect(kn_cosine_annealing_lr(o, 0), "T_max (0)");
    expect(kn_one_cycle_lr(o, 1, 0), "total_steps (0)");
    expect(kn_one_cycle_lr(o, 1, 10, .pct_start = 2), "pct_start (2)");
    expect(kn_one_cycle_lr(o, 1, 10, .div_factor = 0), "div_factor (0)");
    expect(kn_one_cycle_lr(o, 1, 10, .final_div_factor = 0), "final_div_factor (0)");
    expect(kn_reduce_lr_on_plateau(o, .factor = 1), "factor (1)");
    expect(kn_lambda_lr(o, NULL, NULL), "lambda is NULL");
    expect(kn_chained_scheduler(NULL, 0), "at least one schedule");
    expect(kn_chained_scheduler(SEQUENCE(kn_reduce_lr_on_plateau(o)), 1), "needs a metric");
    expect(kn_sequential_lr(o, SEQUENCE(kn_step_lr(other, 2)), 1, NULL), "another optimizer");
    kn_lr_scheduler *twice = kn_step_lr(o, 2);
    expect(kn_chained_scheduler(SEQUENCE(twice, twice), 2), "schedule 1 (StepLR) is given twice");
    twice = kn_step_lr(o, 2);
    expect(kn_sequential_lr(o, SEQUENCE(twice, kn_step_lr(o, 3), twice), 3, (int64_t[]){1, 2}), "schedule 2 (StepLR)");
    kn_optim *adagrad = kn_optim_adagrad(((kn_parameter_list){&p, NULL, 1}));
    expect(kn_cyclic_lr(adagrad, 0.1, 1), "neither momentum nor beta1");
    kn_lr_scheduler *s = kn_cosine_annealing_lr(o, INT64_MAX); /* twice this is no int64 */
    assert_int_equal(kn_lr_scheduler_step(s), KN_OK);
    assert_true(kn_lr_scheduler_last_lr(s, 0) > 0);
    kn_lr_scheduler_free(s);
    s = kn_one_cycle_lr(o, 1, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(kn_lr_scheduler_step(s), KN_OK);
    assert_int_equal(kn_lr_scheduler_step(s), KN_ERR_STATE);
    kn_error_clear();
    assert_int_equal(kn_lr_scheduler_step_metric(s, 1), KN_ERR_STATE);
    kn_error_clear();
    kn_lr_scheduler_free(s);
    kn_optim_free(adagrad);
    kn_optim_free(other);
    kn_optim_free(o);
}

/* To epochs that have a fraction, as of loops over batches, and back. The rates are PyTorch's. */
static void test_epochs(void **state)
{
    (void)state;
    KN_SCOPE;
    const double epochs[] = {0, 0.5, 1.75, 2, 3.5, 6, 13.25, 0.5};
    const double rates[] = {1, 0.8681980515339464,  0.13425421036992097, 1, 0.7222075445642904,
                            1, 0.11937684892050604, 0.8681980515339464};
    kn_tensor *p = kn_zeros(KN_SHAPE(1), .requires_grad = true);
    kn_optim *o = kn_optim_sgd(((kn_parameter_list){&p, NULL, 1}), .lr = 1);
    kn_lr_scheduler *s = kn_cosine_annealing_warm_restarts(o, 2, .T_mult = 2, .eta_min = 0.1);
    for (size_t i = 0; i < sizeof epochs / sizeof epochs[0]; i++) {
        assert_int_equal(kn_lr_scheduler_step_to(s, epochs[i]), KN_OK);
        assert_int_equal(kn_lr_scheduler_last_epoch(s), (int64_t)epochs[i]);
        if (fabs(kn_optim_lr(o) - rates[i]) > 1e-12)
            fail_msg("epoch %g: the rate is %.17g, not %.17g", epochs[i], kn_optim_lr(o), rates[i]);
    }
    assert_int_equal(kn_lr_scheduler_step(s), KN_OK); /* to 1.5 */
    assert_true(fabs(kn_optim_lr(o) - 0.23180194846605365) < 1e-12);
    assert_int_equal(kn_lr_scheduler_step_to(s, -1), KN_ERR_ARGUMENT);
    kn_error_clear();
    kn_lr_scheduler_free(s);
    s = kn_cosine_annealing_warm_restarts(o, 2, .eta_min = 0.1);
    assert_int_equal(kn_lr_scheduler_step_to(s, 4.5), KN_OK);
    assert_true(fabs(kn_optim_lr(o) - 0.8681980515339464) < 1e-12);
    kn_lr_scheduler_free(s);
    s = kn_step_lr(o, 2, .gamma = 0.5);
    assert_int_equal(kn_lr_scheduler_step_to(s, 5), KN_OK);
    assert_true(kn_optim_lr(o) == 0.25);
    assert_int_equal(kn_lr_scheduler_step(s), KN_OK);
    assert_true(kn_optim_lr(o) == 0.125);
    assert_int_equal(kn_lr_scheduler_step_to(s, 5.5), KN_ERR_ARGUMENT);
    kn_error_clear();
    kn_lr_scheduler_free(s);
    s = kn_reduce_lr_on_plateau(o);
    assert_int_equal(kn_lr_scheduler_step_to(s, 1), KN_ERR_STATE);
    kn_error_clear();
    kn_lr_scheduler_free(s);
    kn_optim_free(o);
}

/* A loop over all steps calls the schedule once more than there are rates: what is there then is one, too. */
static void test_the_end_of_one_cycle(void **state)
{
    (void)state;
    for (int three = 0; three < 2; three++) {
        KN_SCOPE;
        double lr, momentum;
        kn_tensor *p = kn_zeros(KN_SHAPE(1), .requires_grad = true);
        kn_optim *o = kn_optim_sgd(((kn_parameter_list){&p, NULL, 1}), .lr = 0.1, .momentum = 0.9);
        kn_lr_scheduler *s = kn_one_cycle_lr(o, 0.1, 20, .anneal_linearly = true, .three_phase = three != 0);
        for (int i = 0; i < 20; i++)
            assert_int_equal(kn_lr_scheduler_step(s), KN_OK);
        assert_int_equal(kn_optim_get(o, 0, "lr", &lr), KN_OK);
        assert_int_equal(kn_optim_get(o, 0, "momentum", &momentum), KN_OK);
        assert_true(fabs(lr - 0.1 / 25 / 1e4) < 1e-12);
        assert_true(fabs(momentum - 0.95) < 1e-12);
        assert_int_equal(kn_optim_set(o, 0, "weight_decay", 0.1), KN_OK);
        kn_lr_scheduler_free(s);
        s = kn_one_cycle_lr(o, 0.1, 2, .pct_start = 0.5, .cycle_momentum = false); /* rises in no step */
        assert_true(fabs(kn_lr_scheduler_last_lr(s, 0) - 0.1) < 1e-12);
        kn_lr_scheduler_free(s);
        kn_optim_free(o);
    }
}

/* A schedule over no epochs is at its end when a sequence comes to it. */
static void test_no_epochs(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *p = kn_zeros(KN_SHAPE(1), .requires_grad = true);
    kn_optim *o = kn_optim_sgd(((kn_parameter_list){&p, NULL, 1}), .lr = 0.1);
    kn_lr_scheduler *linear = kn_linear_lr(o, .end_factor = 0.5, .total_iters = 0),
                    *polynomial = kn_polynomial_lr(o, .total_iters = 0);
    kn_lr_scheduler *s =
        kn_sequential_lr(o, SEQUENCE(kn_exponential_lr(o, 0.9), linear, polynomial), 3, (int64_t[]){2, 4});
    const double wanted[] = {0.1, 0.09, 0.05, 0.05, 0, 0};
    for (int i = 0; i < 6; i++) {
        assert_true(fabs(kn_lr_scheduler_last_lr(s, 0) - wanted[i]) < 1e-12);
        assert_int_equal(kn_lr_scheduler_step(s), KN_OK);
    }
    kn_lr_scheduler_free(s);
    kn_optim_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_the_end_of_one_cycle), cmocka_unit_test(test_no_epochs),
                                       cmocka_unit_test(test_epochs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
