/* The n-th host allocation fails, for every n of a training step: each time an error, no crash, nothing leaked;
 * afterwards all works. */
#include "rt_test.h"

#include "base/memory.h"

static kn_status step(kn_module *module, kn_optim *optim, kn_tensor *x, kn_tensor *y)
{
    kn_status status = KN_ERR_MEMORY;

    KN_SCOPE;
    kn_optim_zero_grad(optim);
    status = kn_backward(kn_cross_entropy(kn_forward(module, x), y));
    if (status == KN_OK)
        status = kn_optim_step(optim);

    return status;
}

static void every_allocation_of_a_step_may_fail(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_module *module = kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 3, .kernel_size = 3),
                                         kn_nn_max_pool2d(.kernel_size = 2), kn_nn_dropout2d(.p = 0.1), kn_nn_flatten(),
                                         kn_nn_linear(.in_features = 27, .out_features = 4));
    kn_optim *optim = kn_optim_adam(kn_module_parameters(module));
    kn_tensor *x = kn_rand(KN_SHAPE(2, 1, 8, 8)), *y = kn_zeros(KN_SHAPE(2), .dtype = KN_I64);
    assert_ok(step(module, optim, x, y)); /* builds the kernels and the optimizer's state */
    kn_optim_zero_grad(optim);
    uint64_t held = kn_memory_allocated(device);
    int failures = 0;
    for (long n = 1; n < 100000; n++) {
        kn_fail_alloc_after(n, 0);
        kn_status status = step(module, optim, x, y);
        kn_fail_alloc_after(0, 0);
        kn_optim_zero_grad(optim);
        assert_int_equal(kn_memory_allocated(device), held);
        if (status == KN_OK && kn_error_status() == KN_OK)
            break;
        failures++;
        assert_true(strlen(kn_error_message()) > 0);
        kn_error_clear();
    }
    assert_true(failures > 50);
    assert_ok(step(module, optim, x, y));
    kn_optim_free(optim);
    kn_module_free(module);
    kn_release(x);
    kn_release(y);
    assert_int_equal(kn_memory_allocated(device), 0);
}

static void memory_does_not_grow(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_module *module = kn_nn_sequential(kn_nn_linear(.in_features = 10, .out_features = 16), kn_nn_relu(),
                                         kn_nn_dropout(), kn_nn_linear(.in_features = 16, .out_features = 4));
    kn_optim *optim = kn_optim_adam(kn_module_parameters(module));
    kn_tensor *x = kn_rand(KN_SHAPE(32, 10)), *y = kn_zeros(KN_SHAPE(32), .dtype = KN_I64);
    uint64_t held = 0, reserved = 0;
    for (int i = 0; i < 1000; i++) {
        assert_ok(step(module, optim, x, y));
        if (i == 10) {
            held = kn_memory_allocated(device);
            reserved = kn_memory_reserved(device);
        }
    }
    assert_int_equal(kn_memory_allocated(device), held);
    assert_int_equal(kn_memory_reserved(device), reserved);
    kn_optim_free(optim);
    kn_module_free(module);
    kn_release(x);
    kn_release(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_a_step_may_fail),
        cmocka_unit_test(memory_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
