/* test_module_moves.c - kn_module_to and kn_module_to_dtype: in place, with gradients, and with optimizers still valid.
 * On two devices made from one CPU. */
#include "support/check.h"

#include <stdlib.h>

#include "rt/device/device.h"
#include "support/values.h"

static kn_module *layer_with_gradient(void)
{
    kn_module *layer = kn_nn_linear(.in_features = 2, .out_features = 1);
    CHECK_TENSOR(layer);
    CHECK_OK(kn_write(kn_module_get(layer, "weight"), (float[]){0.5f, -2}, 2 * sizeof(float)));
    CHECK_OK(kn_write(kn_module_get(layer, "bias"), (float[]){1}, sizeof(float)));
    CHECK_OK(kn_backward(kn_sum(kn_forward(layer, kn_from_data(((float[]){3, 4}), KN_SHAPE(1, 2))))));
    return layer;
}

static kn_device *second_device(void)
{
    if (kn_device_count() < 2)
        skip();
    return kn_device_at(kn_device_at(0) == kn_device_current() ? 1 : 0);
}

TENSOR_TEST(a_move_keeps_identity_values_and_gradients)
{
    kn_device *first = kn_device_current(), *second = second_device();
    kn_module *layer = layer_with_gradient();
    kn_tensor *weight = kn_module_get(layer, "weight"), *gradient = kn_grad(weight);
    CHECK_OK(kn_module_to(layer, second));
    assert_ptr_equal(kn_module_get(layer, "weight"), weight);
    assert_ptr_equal(kn_device_of(weight), second);
    assert_ptr_equal(kn_grad(weight), gradient);
    assert_ptr_equal(kn_device_of(gradient), second);
    CHECK_VALUES(weight, 0.5, -2);
    CHECK_VALUES(gradient, 3, 4);
    assert_true(kn_requires_grad(weight) && kn_is_leaf(weight));

    /* It works there: forward, backward, accumulation into the moved gradient. */
    kn_tensor *x = kn_from_data(((float[]){1, 1}), KN_SHAPE(1, 2), .device = second);
    CHECK_OK(kn_backward(kn_sum(kn_forward(layer, x))));
    CHECK_VALUES(kn_grad(weight), 4, 5);
    assert_null(kn_forward(layer, kn_ones(KN_SHAPE(1, 2), .device = first)));
    CHECK_ERROR(KN_ERR_DEVICE, kn_device_string(first), kn_device_string(second));
    CHECK_OK(kn_module_to(layer, kn_device_host()));
    assert_true(((float *)kn_data(weight))[1] == -2);
    CHECK_OK(kn_module_to(layer, first));
    CHECK_VALUES(weight, 0.5, -2);
    kn_module_free(layer);
}

/* Float32's neighbour that the device has. */
static kn_dtype other_dtype(void) { return kn_device_limits(kn_device_current())->has_f64 ? KN_F64 : KN_F16; }

TENSOR_TEST(an_optimizer_follows_a_move)
{
    kn_device *second = second_device();
    kn_module *moved = layer_with_gradient(), *stays = layer_with_gradient();
    kn_optim *a = kn_optim_adam(kn_module_parameters(moved), .lr = 0.1);
    kn_optim *b = kn_optim_adam(kn_module_parameters(stays), .lr = 0.1);
    CHECK_OK(kn_optim_step(a));
    CHECK_OK(kn_optim_step(b));
    CHECK_OK(kn_module_to(moved, second));
    CHECK_OK(kn_optim_step(a));
    CHECK_OK(kn_optim_step(b));
    CHECK_OK(kn_module_to_dtype(moved, other_dtype()));
    CHECK_OK(kn_module_to_dtype(stays, other_dtype()));
    CHECK_OK(kn_optim_step(a));
    CHECK_OK(kn_optim_step(b));
    double *there = read_doubles(kn_module_get(moved, "weight")), *here = read_doubles(kn_module_get(stays, "weight"));
    assert_true(there[0] == here[0] && there[1] == here[1]);
    free(there);
    free(here);
    kn_optim_free(a);
    kn_optim_free(b);
    kn_module_free(moved);
    kn_module_free(stays);
}

TENSOR_TEST(dtypes_change_in_place)
{
    kn_module *layer = layer_with_gradient();
    kn_tensor *weight = kn_module_get(layer, "weight");
    kn_tensor *counter = kn_zeros(KN_SHAPE(1), .dtype = KN_I64);
    CHECK_TENSOR(kn_module_register_buffer(layer, "steps", counter));
    CHECK_OK(kn_module_to_dtype(layer, other_dtype()));
    CHECK_DTYPE(weight, other_dtype());
    CHECK_DTYPE(kn_grad(weight), other_dtype());
    CHECK_DTYPE(counter, KN_I64);
    CHECK_VALUES(weight, 0.5, -2);
    kn_tensor *y = kn_forward(layer, kn_ones(KN_SHAPE(1, 2), .dtype = other_dtype()));
    CHECK_DTYPE(y, other_dtype());
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(weight), 4, 5);
    assert_int_equal(kn_module_to_dtype(layer, KN_I64), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "int64");
    kn_error_clear();
    kn_module_free(layer);
}

TENSOR_TEST(a_shared_parameter_moves_once)
{
    kn_module *layer = layer_with_gradient();
    kn_tensor *weight = kn_module_get(layer, "weight");
    CHECK_TENSOR(kn_module_register_parameter(layer, "again", weight));
    CHECK_OK(kn_module_to_dtype(layer, other_dtype()));
    assert_ptr_equal(kn_module_get(layer, "again"), weight);
    CHECK_DTYPE(weight, other_dtype());
    CHECK_VALUES(weight, 0.5, -2);
    kn_module_free(layer);
}

TENSOR_TEST(backward_through_a_moved_parameter_is_an_error)
{
    kn_module *layer = layer_with_gradient();
    kn_tensor *x = kn_ones(KN_SHAPE(1, 2), .requires_grad = true);
    kn_tensor *loss = kn_sum(kn_forward(layer, x));
    CHECK_OK(kn_module_to_dtype(layer, other_dtype()));
    assert_int_not_equal(kn_backward(loss), KN_OK);
    kn_error_clear();
    kn_module_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_move_keeps_identity_values_and_gradients),
        TEST(an_optimizer_follows_a_move),
        TEST(dtypes_change_in_place),
        TEST(a_shared_parameter_moves_once),
        TEST(backward_through_a_moved_parameter_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
