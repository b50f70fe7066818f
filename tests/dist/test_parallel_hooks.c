/* test_parallel_hooks.c - modules with hooks, parametrizations and masks on two devices train as on one. */
#include <koine/hook.h>
#include <koine/parametrize.h>
#include <koine/prune.h>
#include <stdatomic.h>

#include "dist_case.h"
#include "support/values.h"

typedef struct counts {
    atomic_int before, after, gradients; /* calls */
} counts;

static kn_status double_input(kn_module *module, kn_tensor **inputs, int num_inputs, void *user)
{
    (void)module;
    assert_int_equal(num_inputs, 1);
    ((counts *)user)->before++;
    inputs[0] = kn_mul_scalar(inputs[0], 2);
    return kn_error_status();
}

static kn_status square_output(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                               int num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs;
    ((counts *)user)->after++;
    assert_ptr_equal(kn_device_of(kn_module_get(module, "bias")), kn_device_of(inputs[0]));
    outputs[0] = kn_square(outputs[0]);
    return kn_error_status();
}

static kn_status halve_gradient(kn_module *module, kn_tensor **grad_inputs, int num_inputs,
                                kn_tensor *const *grad_outputs, int num_outputs, void *user)
{
    (void)module, (void)num_inputs, (void)grad_outputs, (void)num_outputs;
    ((counts *)user)->gradients++;
    if (grad_inputs[0])
        grad_inputs[0] = kn_mul_scalar(grad_inputs[0], 0.5);
    return kn_error_status();
}

static kn_module *linear(int64_t in, int64_t out) { return kn_nn_linear(.in_features = in, .out_features = out); }

/* Weight norm and hooks, spectral norm, a mask. */
static kn_module *network(counts *calls)
{
    kn_manual_seed(3);
    kn_module *first = linear(6, 8), *second = linear(8, 5), *third = linear(5, 3);
    kn_module *net = kn_nn_sequential(kn_nn_tanh(), first, second, kn_nn_tanh(), third);
    CHECK_TENSOR(net);
    CHECK_OK(kn_module_to_dtype(net, KN_F64));
    CHECK_OK(kn_parametrizations_weight_norm(first, "weight"));
    CHECK_OK(kn_parametrizations_spectral_norm(second, "weight"));
    CHECK_OK(kn_prune_l1_unstructured(third, "weight", 0.4));
    assert_true(kn_module_register_forward_pre_hook(first, double_input, .user = calls) != 0);
    assert_true(kn_module_register_forward_hook(first, square_output, .user = calls) != 0);
    assert_true(kn_module_register_full_backward_hook(second, halve_gradient, .user = calls) != 0);
    return net;
}

static void step(kn_module *net, kn_optim *optim, int64_t size, int number)
{
    KN_SCOPE;
    kn_manual_seed(50 + (uint64_t)number);
    kn_tensor *x = kn_randn(KN_SHAPE(size, 6), .dtype = KN_F64);
    kn_optim_zero_grad(optim);
    CHECK_OK(kn_backward(kn_sum(kn_square(kn_forward(net, x)))));
    CHECK_OK(kn_optim_step(optim));
}

/* `used` devices get a part of each batch. */
static void train_both(int devices, int64_t size, int used)
{
    kn_device *const *list = case_devices(devices);
    counts one = {0}, many = {0};
    kn_module *plain = network(&one),
              *wrapped = kn_nn_data_parallel(network(&many), .devices = list, .num_devices = devices);
    CHECK_TENSOR(wrapped);
    kn_optim *a = kn_optim_sgd(kn_module_parameters(plain), .lr = 0.01, .momentum = 0.9),
             *b = kn_optim_sgd(kn_module_parameters(wrapped), .lr = 0.01, .momentum = 0.9);
    for (int i = 0; i < 3; i++) {
        step(plain, a, size, i);
        step(wrapped, b, size, i);
        assert_true(case_gradients_differ(plain, wrapped) < 1e-10);
        assert_true(case_parameters_differ(plain, wrapped) < 1e-10);
    }
    assert_int_equal(one.before, 3);
    assert_int_equal(one.gradients, 3);
    assert_int_equal(many.before, 3 * used);
    assert_int_equal(many.after, 3 * used);
    assert_int_equal(many.gradients, 3 * used);
    kn_optim_free(a);
    kn_optim_free(b);
    kn_module_free(plain);
    kn_module_free(wrapped);
}

TENSOR_TEST_F64(two_devices_learn_what_one_learns) { train_both(2, 8, 2); }
TENSOR_TEST_F64(one_sample_is_for_one_device) { train_both(3, 1, 1); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_devices_learn_what_one_learns),
        TEST(one_sample_is_for_one_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
