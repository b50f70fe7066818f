/* test_collective_errors.c - errors of the collectives, which keep working afterwards. */
#include "support/check.h"

static kn_device *first, *second, *host;

static void find_devices(void)
{
    if (kn_device_count() < 2)
        skip();
    first = kn_device_at(0);
    second = kn_device_at(1);
    host = kn_device_host();
}

/* After each misuse: the same functions used correctly. */
static void still_works(void)
{
    kn_device *both[] = {first, second};
    kn_tensor *x = kn_full(KN_SHAPE(2), 4, .device = first), *out[2];
    CHECK_OK(kn_comm_broadcast(x, both, 2, out));
    CHECK_VALUES(kn_comm_reduce_add(out, 2, second), 8, 8);
    CHECK_OK(kn_comm_scatter(x, both, 2, NULL, 0, out));
    CHECK_VALUES(kn_comm_gather(out, 2, 0, second), 4, 4);
}

TENSOR_TEST(lists_of_devices)
{
    find_devices();
    kn_tensor *x = kn_ones(KN_SHAPE(2), .device = first), *out[4] = {x, x, x, x};
    kn_device *twice[] = {first, second, first}, *with_host[] = {first, host}, *with_null[] = {first, NULL};
    kn_device *unknown[] = {first, (kn_device *)out};
    assert_int_equal(kn_comm_broadcast(x, twice, 3, out), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "broadcast: devices 0 and 2 are both", kn_device_string(first));
    assert_int_equal(kn_comm_broadcast(x, twice, 0, out), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "broadcast", "at least one device");
    assert_int_equal(kn_comm_scatter(x, NULL, 2, NULL, 0, out), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "scatter", "at least one device");
    assert_int_equal(kn_comm_broadcast(x, with_host, 2, out), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "device 1 is the host");
    assert_int_equal(kn_comm_scatter(x, with_null, 2, NULL, 0, out), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "device 1 is NULL");
    assert_int_equal(kn_comm_broadcast(x, unknown, 2, out), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "device 1 is not a device");
    assert_ptr_equal(out[3], x); /* untouched */
    still_works();
}

TENSOR_TEST(broadcasts)
{
    find_devices();
    kn_device *both[] = {first, second};
    kn_tensor *out[4], *apart[] = {kn_ones(KN_SHAPE(1), .device = first), kn_ones(KN_SHAPE(1), .device = second)};
    assert_int_equal(kn_comm_broadcast_coalesced(apart, 2, both, 2, 0, out), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "broadcast_coalesced", kn_device_string(first), kn_device_string(second));
    assert_int_equal(kn_comm_broadcast_coalesced(apart, 0, both, 2, 0, out), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "at least one tensor");
    assert_int_equal(kn_comm_broadcast(NULL, both, 2, out), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "broadcast", "NULL");
    assert_int_equal(kn_comm_broadcast(kn_relu(NULL), both, 2, out), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "relu"); /* the first error of the chain is reported */
    still_works();
}

TENSOR_TEST_F64(sums)
{
    find_devices();
    kn_tensor *out[2], *shapes[] = {kn_ones(KN_SHAPE(2, 3), .device = first), kn_ones(KN_SHAPE(3), .device = second)};
    kn_tensor *dtypes[] = {kn_ones(KN_SHAPE(2), .device = first), kn_ones(KN_SHAPE(2), .dtype = KN_F64)};
    kn_tensor *homes[] = {kn_ones(KN_SHAPE(2), .device = first), kn_ones(KN_SHAPE(2), .device = host)};
    kn_tensor *mixed[] = {kn_ones(KN_SHAPE(2), .device = first), kn_ones(KN_SHAPE(2), .device = second)};
    assert_null(kn_comm_reduce_add(shapes, 2, first));
    CHECK_ERROR(KN_ERR_SHAPE, "reduce_add: tensor 0 is float32 [2, 3]", "tensor 1 is float32 [3]");
    assert_null(kn_comm_reduce_add(dtypes, 2, first));
    CHECK_ERROR(KN_ERR_DTYPE, "float32", "float64");
    assert_null(kn_comm_reduce_add(homes, 2, first));
    CHECK_ERROR(KN_ERR_DEVICE, "tensor 1 is on the host", "kn_to");
    assert_null(kn_comm_reduce_add(dtypes, 1, host));
    CHECK_ERROR(KN_ERR_DEVICE, "destination is the host");
    assert_null(kn_comm_reduce_add(dtypes, 0, first));
    CHECK_ERROR(KN_ERR_ARGUMENT, "at least one tensor");
    assert_int_equal(kn_comm_reduce_add_coalesced(mixed, 1, 2, first, 0, out), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "reduce_add_coalesced", "input 1", kn_device_string(second));
    still_works();
}

TENSOR_TEST(chunks)
{
    find_devices();
    kn_device *both[] = {first, second};
    kn_tensor *x = kn_ones(KN_SHAPE(5, 2), .device = first), *out[2];
    assert_int_equal(kn_comm_scatter(x, both, 2, (const int64_t[]){2, 2}, 0, out), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "[2, 2]", "add up to 5");
    assert_int_equal(kn_comm_scatter(x, both, 2, (const int64_t[]){7, -2}, 0, out), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "[7, -2]");
    assert_int_equal(kn_comm_scatter(x, both, 2, (const int64_t[]){INT64_MAX, INT64_MAX}, 0, out), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "add up to 5");
    assert_int_equal(kn_comm_scatter(x, both, 2, NULL, 2, out), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "no dimension 2");
    assert_int_equal(kn_comm_scatter(kn_ones(KN_SCALAR), both, 2, NULL, 0, out), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "no dimension 0");
    kn_tensor *wide[] = {x, kn_ones(KN_SHAPE(5, 3), .device = second)};
    assert_null(kn_comm_gather(wide, 2, 0, first));
    CHECK_ERROR(KN_ERR_SHAPE, "gather", "[5, 2]", "[5, 3]", "other dimensions");
    CHECK_SHAPE(kn_comm_gather(wide, 2, 1, first), 5, 5);
    assert_null(kn_comm_gather(wide, 2, -3, first));
    CHECK_ERROR(KN_ERR_SHAPE, "no dimension -3");
    still_works();
}

TENSOR_TEST(all_reduces)
{
    find_devices();
    kn_tensor *same[] = {kn_ones(KN_SHAPE(2), .device = first), kn_ones(KN_SHAPE(2), .device = first)};
    kn_tensor *whole[] = {kn_ones(KN_SHAPE(2), .dtype = KN_I32, .device = first),
                          kn_ones(KN_SHAPE(2), .dtype = KN_I32, .device = second)};
    assert_int_equal(kn_comm_all_reduce(same, 2, KN_REDUCE_SUM), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "tensors 0 and 1 are both on", kn_device_string(first));
    assert_int_equal(kn_comm_all_reduce(whole, 2, KN_REDUCE_MEAN), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "mean", "int32");
    assert_int_equal(kn_comm_all_reduce(whole, 2, (kn_reduce_op)9), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "9");
    CHECK_VALUES(same[0], 1, 1);
    CHECK_VALUES(whole[1], 1, 1);
    still_works();
}

static kn_tensor *shift(kn_module *module, kn_tensor *x) { return kn_add(x, kn_module_get(module, "by")); }

/* A leaf that is moved between forward and backward is an error: its gradient belongs to the old device. */
TENSOR_TEST(a_leaf_that_moved_on_is_told)
{
    find_devices();
    kn_device *before = kn_device_current();
    CHECK_OK(kn_device_set_current(first));
    kn_module *layer = kn_module_new("Shift", shift, 0, NULL); /* addition saves nothing of its inputs */
    CHECK_TENSOR(kn_module_register_parameter(layer, "by", kn_ones(KN_SHAPE(2))));
    kn_tensor *loss = kn_sum(kn_forward(layer, kn_ones(KN_SHAPE(1, 2), .device = first)));
    CHECK_OK(kn_module_to(layer, second));
    assert_int_equal(kn_backward(loss), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "moved", kn_device_string(first), kn_device_string(second));
    CHECK_OK(kn_backward(kn_sum(kn_forward(layer, kn_ones(KN_SHAPE(1, 2), .device = second)))));
    kn_module_free(layer);
    CHECK_OK(kn_device_set_current(before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lists_of_devices), TEST(broadcasts),  TEST(sums),
        TEST(chunks),           TEST(all_reduces), TEST(a_leaf_that_moved_on_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
