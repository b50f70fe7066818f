/* test_optim_state.c - an optimizer's state in files: an interrupted and resumed run gives the bits of an uninterrupted
 * one. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/values.h"

#define FOLDER KOINE_BINARY_DIR "/tests/optim_state"

typedef kn_optim *(*make_optim)(kn_parameter_list parameters);
static kn_optim *make_adam(kn_parameter_list list) { return kn_optim_adam(list, .lr = 0.1, .weight_decay = 0.01); }
static kn_optim *make_amsgrad(kn_parameter_list list) { return kn_optim_adam(list, .lr = 0.1, .amsgrad = true); }
static kn_optim *make_momentum(kn_parameter_list list) { return kn_optim_sgd(list, .lr = 0.1, .momentum = 0.9); }
static kn_optim *make_plain(kn_parameter_list list) { return kn_optim_sgd(list, .lr = 0.1); }

static void learn(kn_module *net, kn_optim *optim, int steps)
{
    for (int i = 0; i < steps; i++) {
        KN_SCOPE;
        kn_optim_zero_grad(optim);
        kn_tensor *y = kn_forward(net, kn_from_data(((float[]){1, -2, 0.5f}), KN_SHAPE(1, 3)));
        CHECK_OK(kn_backward(kn_sum(kn_mul(y, y))));
        CHECK_OK(kn_optim_step(optim));
    }
}

static kn_module *network(void)
{
    kn_manual_seed(5);
    return kn_nn_sequential(kn_nn_linear(.in_features = 3, .out_features = 4),
                            kn_nn_linear(.in_features = 4, .out_features = 1));
}

static void check_same(kn_module *a, kn_module *b)
{
    kn_parameter_list left = kn_module_parameters(a), right = kn_module_parameters(b);
    for (int i = 0; i < left.count; i++) {
        size_t size;
        void *x = read_bytes(left.tensors[i], &size), *y = read_bytes(right.tensors[i], &size);
        assert_memory_equal(x, y, size);
        free(x);
        free(y);
    }
}

static void check_round_trip(make_optim make)
{
    kn_module *whole = network(), *broken = network();
    kn_optim *a = make(kn_module_parameters(whole)), *b = make(kn_module_parameters(broken));
    learn(whole, a, 6);
    learn(broken, b, 3);
    CHECK_OK(kn_optim_set_lr(b, 0.1));
    CHECK_OK(kn_optim_save(b, FOLDER "/state.safetensors"));
    kn_optim_free(b);
    b = make(kn_module_parameters(broken));
    CHECK_OK(kn_optim_set_lr(b, 7)); /* the file's value wins, as in PyTorch */
    CHECK_OK(kn_optim_load(b, FOLDER "/state.safetensors"));
    assert_true(kn_optim_lr(b) == 0.1);
    learn(broken, b, 3);
    check_same(whole, broken);
    kn_optim_free(a);
    kn_optim_free(b);
    kn_module_free(whole);
    kn_module_free(broken);
}

TENSOR_TEST(state_survives_a_file)
{
    check_round_trip(make_adam);
    check_round_trip(make_amsgrad);
    check_round_trip(make_momentum);
    check_round_trip(make_plain);
}

TENSOR_TEST(the_names_are_the_documented_ones)
{
    kn_module *net = network();
    kn_optim *optim = make_adam(kn_module_parameters(net));
    learn(net, optim, 2);
    CHECK_OK(kn_optim_save(optim, FOLDER "/names.safetensors"));
    kn_tensor_file *file = kn_load_safetensors(FOLDER "/names.safetensors");
    CHECK_NEW(file);
    assert_string_equal(kn_tensor_file_metadata(file, "optimizer"), "Adam");
    CHECK_SHAPE(kn_tensor_file_get(file, "state.0.exp_avg"), 4, 3);
    CHECK_SHAPE(kn_tensor_file_get(file, "state.3.exp_avg_sq"), 1);
    assert_true(*(float *)kn_data(kn_tensor_file_get(file, "state.3.step")) == 2);
    assert_int_equal(kn_tensor_file_count(file), 3 * 4);
    assert_string_equal(kn_tensor_file_metadata(file, "param_groups"),
                        "[{\"lr\":0.1,\"betas\":[0.9,0.999],\"eps\":1e-08,\"weight_decay\":0.01,\"amsgrad\":false,"
                        "\"maximize\":false,\"decoupled_weight_decay\":false,\"foreach\":null,\"capturable\":false,"
                        "\"fused\":null,\"differentiable\":false,\"params\":[0,1,2,3]}]");
    kn_tensor_file_free(file);
    kn_optim_free(optim);
    kn_module_free(net);
}

/* Loads the file into a new optimizer of `net`, which must fail. */
static void expect_refusal(make_optim make, kn_module *net, const char *path, const char *reason)
{
    kn_optim *optim = make(kn_module_parameters(net));
    assert_int_equal(kn_optim_load(optim, path), KN_ERR_FORMAT);
    CHECK_ERROR(KN_ERR_FORMAT, path, reason);
    kn_error_clear();
    kn_optim_free(optim);
}

TENSOR_TEST(state_of_another_kind_is_refused)
{
    kn_module *net = network(), *other = kn_nn_linear(.in_features = 3, .out_features = 4);
    kn_optim *optim = make_adam(kn_module_parameters(net));
    learn(net, optim, 1);
    CHECK_OK(kn_optim_save(optim, FOLDER "/adam.safetensors"));
    expect_refusal(make_momentum, net, FOLDER "/adam.safetensors", "SGD");
    expect_refusal(make_amsgrad, net, FOLDER "/adam.safetensors", "hyperparameters");
    expect_refusal(make_adam, other, FOLDER "/adam.safetensors", "group 0 has 4 parameters there and 2 here");
    CHECK_OK(kn_module_save(net, FOLDER "/net.safetensors"));
    expect_refusal(make_adam, net, FOLDER "/net.safetensors", "no optimizer state");
    kn_optim_free(optim);
    optim = make_amsgrad(kn_module_parameters(net));
    CHECK_OK(kn_optim_save(optim, FOLDER "/amsgrad.safetensors"));
    expect_refusal(make_adam, net, FOLDER "/amsgrad.safetensors", "hyperparameters");
    kn_optim_free(optim);
    kn_module_free(net);
    kn_module_free(other);
}

/* Sets one number of a tensor in a file. */
static void spoil(const char *path, const char *name, int64_t index, double value)
{
    kn_tensor_file *file = kn_load_safetensors(path);
    CHECK_NEW(file);
    kn_tensor *tensor = kn_tensor_file_get(file, name);
    if (kn_dtype_of(tensor) == KN_F64)
        ((double *)kn_data(tensor))[index] = value;
    else
        ((float *)kn_data(tensor))[index] = (float)value;
    CHECK_OK(kn_save_safetensors(path, file));
    kn_tensor_file_free(file);
}

/* A conversion of these to an integer would be undefined. */
TENSOR_TEST(steps_that_are_no_counts_are_refused)
{
    const char *optim_path = FOLDER "/steps.safetensors", *path = FOLDER "/schedule.safetensors";
    const double wrong[] = {NAN, -2, 1e30, -INFINITY};
    kn_module *net = network();
    kn_optim *optim = make_adam(kn_module_parameters(net));
    kn_lr_scheduler *schedule = kn_step_lr(optim, 2);
    learn(net, optim, 1);
    CHECK_OK(kn_optim_save(optim, optim_path));
    CHECK_OK(kn_lr_scheduler_save(schedule, path));
    for (int i = 0; i < 4; i++) {
        spoil(optim_path, "state.1.step", 0, wrong[i]);
        expect_refusal(make_adam, net, optim_path, "the step of parameter 1");
        spoil(path, "state", i % 2, wrong[i]);
        assert_int_equal(kn_lr_scheduler_load(schedule, path), KN_ERR_FORMAT);
        CHECK_ERROR(KN_ERR_FORMAT, path, "no counts");
        kn_error_clear();
        spoil(path, "state", i % 2, 0);
    }
    CHECK_OK(kn_lr_scheduler_load(schedule, path));
    kn_lr_scheduler_free(schedule);
    kn_optim_free(optim);
    kn_module_free(net);
}

/* The form without groups. */
TENSOR_TEST(earlier_steps_that_are_no_counts_are_refused)
{
    const char *path = FOLDER "/earlier.safetensors";
    kn_module *net = kn_nn_linear(.in_features = 1, .out_features = 1, .bias = false);
    kn_tensor_file *file = kn_tensor_file_new();
    CHECK_NEW(file);
    CHECK_OK(kn_tensor_file_set_metadata(file, "optimizer", "SGD"));
    CHECK_OK(kn_tensor_file_put(file, "step", kn_to(kn_full(KN_SHAPE(1), 1e30), kn_device_host())));
    CHECK_OK(kn_tensor_file_put(file, "hyperparameters", kn_to(kn_full(KN_SHAPE(1), 0.1), kn_device_host())));
    CHECK_OK(kn_save_safetensors(path, file));
    expect_refusal(make_plain, net, path, "the step of parameter 0");
    spoil(path, "step", 0, NAN);
    expect_refusal(make_plain, net, path, "the step of parameter 0");
    kn_tensor_file_free(file);
    kn_module_free(net);
}

/* The message names the file, as all others do. */
TENSOR_TEST(hyperparameters_outside_their_range_are_refused)
{
    const char *path = FOLDER "/momentum.safetensors";
    kn_module *net = network();
    kn_optim *optim = make_momentum(kn_module_parameters(net));
    CHECK_OK(kn_optim_save(optim, path));
    kn_tensor_file *file = kn_load_safetensors(path);
    CHECK_NEW(file);
    CHECK_OK(kn_tensor_file_set_metadata(file, "param_groups", "[{\"lr\":0.1,\"momentum\":-3,\"params\":[0,1,2,3]}]"));
    CHECK_OK(kn_save_safetensors(path, file));
    kn_tensor_file_free(file);
    assert_int_equal(kn_optim_load(optim, path), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, path, "SGD: momentum (-3) must be");
    kn_error_clear();
    kn_optim_free(optim);
    kn_module_free(net);
}

static double below_0(int64_t epoch, int group, void *user)
{
    (void)epoch, (void)group, (void)user;
    return -2;
}

TENSOR_TEST(rates_below_0_of_schedules_come_back)
{
    const char *path = FOLDER "/below.safetensors";
    kn_module *net = network();
    kn_optim *optim = make_momentum(kn_module_parameters(net)), *other = make_momentum(kn_module_parameters(net));
    const double before = kn_optim_lr(optim);
    kn_lr_scheduler *schedule = kn_lambda_lr(optim, below_0, NULL);
    CHECK_NEW(schedule);
    CHECK_OK(kn_optim_save(optim, path));
    CHECK_OK(kn_optim_load(other, path));
    assert_true(kn_optim_lr(other) == -2 * before);
    kn_lr_scheduler_free(schedule);
    kn_optim_free(optim);
    kn_optim_free(other);
    kn_module_free(net);
}

/* No factor leads from a rate of 0 back to the rate before. */
TENSOR_TEST(a_constant_rate_of_0_ends)
{
    kn_module *net = network();
    kn_optim *optim = make_momentum(kn_module_parameters(net));
    const double before = kn_optim_lr(optim);
    kn_lr_scheduler *schedule = kn_constant_lr(optim, .factor = 0, .total_iters = 2);
    CHECK_NEW(schedule);
    for (int step = 0; step < 4; step++) {
        assert_true(kn_optim_lr(optim) == (step < 2 ? 0 : before));
        CHECK_OK(kn_lr_scheduler_step(schedule));
    }
    kn_lr_scheduler_free(schedule);
    kn_optim_free(optim);
    kn_module_free(net);
}

/* Rprop's step_size, whose first value is lr, exists for all parameters from the first step on. */
TENSOR_TEST(a_state_starts_with_the_lr_of_the_parameters_first_step)
{
    kn_tensor *both[2];
    for (int i = 0; i < 2; i++)
        both[i] = kn_full(KN_SHAPE(2), 1, .requires_grad = true);
    kn_optim *optim = kn_optim_rprop(((kn_parameter_list){both, NULL, 2}), .lr = 0.25);
    kn_graph *graph = kn_graph_new();
    CHECK_NEW(optim);
    CHECK_NEW(graph);
    CHECK_OK(kn_set_grad(both[0], kn_ones(KN_SHAPE(2))));
    CHECK_OK(kn_optim_step(optim));
    CHECK_VALUES(both[0], 0.75, 0.75);
    CHECK_OK(kn_optim_set_lr(optim, 0.5));
    CHECK_OK(kn_set_grad(both[1], kn_ones(KN_SHAPE(2))));
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    CHECK_OK(kn_optim_step(optim));
    CHECK_OK(kn_graph_capture_end(graph));
    CHECK_VALUES(both[1], 1, 1);
    kn_graph_free(graph);
    CHECK_OK(kn_optim_step(optim));
    CHECK_VALUES(both[1], 0.5, 0.5);
    CHECK_OK(kn_optim_set_lr(optim, 0.0625));
    CHECK_OK(kn_set_grad(both[1], kn_full(KN_SHAPE(2), -1)));
    CHECK_OK(kn_optim_step(optim)); /* turns: half of the step size, no step */
    CHECK_VALUES(both[1], 0.5, 0.5);
    CHECK_OK(kn_optim_step(optim));
    CHECK_VALUES(both[1], 0.75, 0.75);
    kn_optim_free(optim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(state_survives_a_file),
        TEST(the_names_are_the_documented_ones),
        TEST(state_of_another_kind_is_refused),
        TEST(steps_that_are_no_counts_are_refused),
        TEST(earlier_steps_that_are_no_counts_are_refused),
        TEST(hyperparameters_outside_their_range_are_refused),
        TEST(rates_below_0_of_schedules_come_back),
        TEST(a_constant_rate_of_0_ends),
        TEST(a_state_starts_with_the_lr_of_the_parameters_first_step),
    };
    check_make_folder(FOLDER);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
