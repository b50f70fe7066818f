/* test_replicas.c - replicas: modules with pointers in self, tied weights, buffers, frozen parameters, nested modules,
 * and manual replication. */
#include "dist_case.h"

#include <string.h>

/* --- a user-defined module ---------------------------------------------------------------------------------------- */

typedef struct scaled {
    double before; /* unusual size and position on purpose */
    char tag[3];
    kn_tensor *weight, *seen; /* a parameter and a buffer */
    kn_module *inner;
    kn_tensor *borrowed; /* a parameter of the child's */
    int calls;
} scaled;

static int destroyed;

static void destroy(void *self)
{
    (void)self;
    destroyed++;
}

/* y = inner(x * weight) + borrowed's sum; adds the number of rows to the buffer. */
static kn_tensor *scaled_forward(kn_module *module, kn_tensor *x)
{
    scaled *self = kn_module_self(module);
    self->calls++;
    if (self->before != 0.25 || strcmp(self->tag, "ab") != 0)
        return kn_error_set(KN_ERR_STATE, "self was not copied"), NULL;
    if (kn_device_of(self->weight) != kn_device_of(x) ||
        kn_device_of(kn_module_get(module, "inner.bias")) != kn_device_of(x))
        return kn_error_set(KN_ERR_STATE, "a tensor of another device"), NULL;
    if (self->borrowed != kn_module_get(module, "inner.weight") || kn_module_child(module, 0) != self->inner)
        return kn_error_set(KN_ERR_STATE, "pointers lead elsewhere than names"), NULL;
    {
        KN_NO_GRAD;
        if (!kn_add_(self->seen, kn_full(KN_SHAPE(1), (double)kn_size(x, 0), .device = kn_device_of(x))))
            return NULL;
    }
    return kn_add(kn_forward(self->inner, kn_mul(x, self->weight)), kn_sum(self->borrowed));
}

static kn_module *scaled_new(void)
{
    kn_module *module = kn_module_new("Scaled", scaled_forward, sizeof(scaled), destroy);
    scaled *self = kn_module_self(module);
    self->before = 0.25;
    memcpy(self->tag, "ab", 3);
    {
        KN_SCOPE;
        self->weight = kn_module_register_parameter(module, "weight", kn_full(KN_SHAPE(3), 2));
        self->seen = kn_module_register_buffer(module, "seen", kn_zeros(KN_SHAPE(1)));
        self->inner = kn_module_register_module(module, "inner", kn_nn_linear(.in_features = 3, .out_features = 2));
    }
    self->borrowed = kn_module_get(module, "inner.weight");
    CHECK_TENSOR(kn_fill_(kn_detach(self->borrowed), 0.5));
    CHECK_TENSOR(kn_fill_(kn_detach(kn_module_get(module, "inner.bias")), 0));
    return module;
}

TENSOR_TEST(pointers_in_self_lead_to_the_replica)
{
    kn_device *const *devices = case_devices(3);
    kn_module *plain = scaled_new(), *net = kn_nn_data_parallel(scaled_new(), .devices = devices, .num_devices = 3);
    kn_tensor *x = kn_ones(KN_SHAPE(7, 3)), *y = kn_forward(net, x);
    CHECK_TENSOR(y);
    CHECK_VALUES(kn_select(y, 0, 6), 6, 6); /* 3 * 2 * 0.5, and 6 weights of 0.5 */
    CHECK_OK(kn_backward(kn_sum(kn_mul(y, y))));
    kn_tensor *one = kn_forward(plain, x);
    CHECK_OK(kn_backward(kn_sum(kn_mul(one, one))));
    assert_true(case_gradients_differ(plain, net) < 1e-6);

    /* The first device uses the original module: its changes stay, those of the replicas are lost. */
    scaled *self = kn_module_self(kn_data_parallel_inner(net));
    CHECK_VALUES(self->seen, 3);
    assert_int_equal(self->calls, 1);
    assert_int_equal(destroyed, 0);
    kn_module_free(net);
    assert_int_equal(destroyed, 1);
    kn_module_free(plain);
    destroyed = 0;
}

/* --- by hand ------------------------------------------------------------------------------------------------------ */

TENSOR_TEST(replicas_by_hand)
{
    kn_device *const *devices = case_devices(3);
    kn_module *module = scaled_new(), *replicas[3];
    kn_module_train(module, false);
    CHECK_OK(kn_module_replicate(module, devices, 3, replicas));
    for (int i = 0; i < 3; i++) {
        kn_parameter_list list = kn_module_parameters(replicas[i]);
        assert_int_equal(list.count, 3);
        assert_string_equal(list.names[1], "inner.weight");
        assert_ptr_equal(kn_device_of(list.tensors[1]), devices[i]);
        assert_false(kn_module_is_training(kn_module_child(replicas[i], 0)));
        assert_string_equal(kn_module_type_name(replicas[i]), "Scaled");
        kn_tensor *y = kn_forward(replicas[i], kn_ones(KN_SHAPE(1, 3), .device = devices[i]));
        CHECK_VALUES(y, 6, 6);
        CHECK_OK(kn_backward(kn_sum(y)));
    }
    assert_ptr_equal(kn_module_get(replicas[0], "weight"), kn_module_get(module, "weight"));
    for (int i = 0; i < 3; i++)
        kn_module_free(replicas[i]);
    assert_int_equal(destroyed, 0);
    CHECK_VALUES(kn_grad(kn_module_get(module, "weight")), 3, 3, 3); /* once per device: 2 * 0.5 each */
    CHECK_OK(kn_module_to(module, devices[1]));
    assert_int_equal(kn_module_replicate(module, devices, 3, replicas), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "module_replicate: \"weight\" is on", kn_device_string(devices[1]));
    assert_int_equal(kn_module_replicate(module, devices, 0, replicas), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "at least one device");
    kn_module_free(module);
    destroyed = 0;
}

/* --- tied and frozen parameters ----------------------------------------------------------------------------------- */

static kn_tensor *twice_forward(kn_module *module, kn_tensor *x)
{
    return kn_matmul(kn_matmul(x, kn_module_get(module, "w")), kn_module_get(module, "tied"));
}

TENSOR_TEST(tied_and_frozen_parameters)
{
    kn_device *const *devices = case_devices(2);
    kn_module *modules[2];
    for (int i = 0; i < 2; i++) {
        modules[i] = kn_module_new("Twice", twice_forward, 0, NULL);
        kn_tensor *w = kn_full(KN_SHAPE(2, 2), 0.5);
        CHECK_TENSOR(kn_module_register_parameter(modules[i], "w", w));
        CHECK_TENSOR(kn_module_register_parameter(modules[i], "tied", w));
        CHECK_TENSOR(kn_module_register_parameter(modules[i], "frozen", kn_ones(KN_SHAPE(2))));
        CHECK_OK(kn_set_requires_grad(kn_module_get(modules[i], "frozen"), false));
    }
    kn_module *net = kn_nn_data_parallel(modules[1], .devices = devices, .num_devices = 2);
    kn_tensor *x = kn_rand(KN_SHAPE(5, 2));
    CHECK_OK(kn_backward(kn_sum(kn_forward(modules[0], x))));
    CHECK_OK(kn_backward(kn_sum(kn_forward(net, x))));
    double expected, actual;
    CHECK_OK(kn_item(kn_sum(kn_grad(kn_module_get(modules[0], "w"))), &expected));
    CHECK_OK(kn_item(kn_sum(kn_grad(kn_module_get(net, "module.w"))), &actual));
    assert_true(expected - actual < 1e-4 && actual - expected < 1e-4 && expected > 1);
    assert_null(kn_grad(kn_module_get(net, "module.frozen")));
    assert_int_equal(kn_module_parameters(net).count, 2);
    kn_module_free(modules[0]);
    kn_module_free(net);
}

/* A wrapper around part of a network; a module without parameters. */
TENSOR_TEST(wrapped_parts_of_a_network)
{
    kn_device *const *devices = case_devices(3);
    kn_module *net = kn_nn_sequential(
        kn_nn_linear(.in_features = 2, .out_features = 4),
        kn_nn_data_parallel(kn_nn_sequential(kn_nn_relu(), kn_nn_linear(.in_features = 4, .out_features = 4)),
                            .devices = devices, .num_devices = 3),
        kn_nn_data_parallel(kn_nn_relu(), .devices = devices, .num_devices = 2),
        kn_nn_linear(.in_features = 4, .out_features = 1));
    CHECK_OK(kn_backward(kn_sum(kn_forward(net, kn_rand(KN_SHAPE(5, 2))))));
    kn_parameter_list list = kn_module_parameters(net);
    assert_string_equal(list.names[2], "1.module.1.weight");
    for (int i = 0; i < list.count; i++)
        CHECK_TENSOR(kn_grad(list.tensors[i]));
    kn_module_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pointers_in_self_lead_to_the_replica),
        TEST(replicas_by_hand),
        TEST(tied_and_frozen_parameters),
        TEST(wrapped_parts_of_a_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
