/* The n-th host allocation fails, for every n of a training step: always an error, no crash, no leaks; everything works
 * afterwards. */
#include <stdio.h>

#include "rt_test.h"

#include "support/faults.h"

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

typedef struct subject {
    kn_module *module;
    kn_optim *optim;
    kn_tensor *x, *y;
    uint64_t held; /* device memory between steps */
} subject;

static kn_status step_without_trace(void *user)
{
    subject *s = user;
    kn_status status = step(s->module, s->optim, s->x, s->y);
    kn_optim_zero_grad(s->optim);
    assert_int_equal(kn_memory_allocated(test_device()), s->held);
    return status;
}

static void every_allocation_of_a_step_may_fail(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_module *module = kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 3, .kernel_size = 3),
                                         kn_nn_max_pool2d(.kernel_size = 2), kn_nn_dropout2d(.p = 0.1), kn_nn_flatten(),
                                         kn_nn_linear(.in_features = 27, .out_features = 4));
    subject s = {.module = module,
                 .optim = kn_optim_adam(kn_module_parameters(module)),
                 .x = kn_rand(KN_SHAPE(2, 1, 8, 8)),
                 .y = kn_zeros(KN_SHAPE(2), .dtype = KN_I64)};
    assert_ok(step(module, s.optim, s.x, s.y)); /* compiles the kernels and creates the optimizer's state */
    kn_optim_zero_grad(s.optim);
    s.held = kn_memory_allocated(device);
    fault_each_allocation(step_without_trace, &s, 100000, 1, 50);
    kn_optim_free(s.optim);
    kn_module_free(module);
    kn_release(s.x);
    kn_release(s.y);
    assert_int_equal(kn_memory_allocated(device), 0);
}

typedef struct building {
    kn_tensor *x;
    int round;
} building;

/* A source new to this process: it is compiled, or memory runs out, but there is never a compile error from truncated
 * text. */
static kn_status build_anew(void *user)
{
    building *b = user;
    char text[200], name[16];
    snprintf(name, sizeof name, "k%d", ++b->round);
    snprintf(text, sizeof text,
             "#include \"common/koine.clh\"\nkernel void %s(KN_OUT(x))\n{\n    KN_BIND_OUT(float, x);\n    x[0] = "
             "%d;\n}\n",
             name, b->round);
    kn_user_kernel *made = NULL;
    kn_status status = kn_status_of(made = kn_kernel_new(text, name, NULL));
    if (status == KN_OK)
        status = kn_kernel_run(made, KN_KERNEL_ARGS(kn_kernel_output(b->x)), .global = {1});
    double value = 0;
    if (status == KN_OK)
        status = kn_item(b->x, &value);
    if (status == KN_OK)
        assert_true(value == b->round);
    kn_kernel_free(made);
    return status;
}

static void every_allocation_of_a_build_may_fail(void **state)
{
    (void)state;
    building b = {.x = kn_ones(KN_SHAPE(1))};
    fault_each_allocation(build_anew, &b, 100000, 1, 20);
    kn_release(b.x);
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
        cmocka_unit_test(every_allocation_of_a_build_may_fail),
        cmocka_unit_test(memory_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
