/* test_device_transfers.c - transfers between devices: the host does not wait, order is kept with many threads and
 * streams, a fault on one device is reported where its values are read, and graphs reject what they cannot capture. */
#include "dist_case.h"

#include <pthread.h>
#include <stdlib.h>

#include "rt/device/inject.h"
#include "rt/rt.h"
#include "support/busy.h"
#include "support/values.h"

/* A whole data-parallel step, and the collectives, do not wait from the second time on. */
TENSOR_TEST(a_step_does_not_make_the_host_wait)
{
    kn_device *const *devices = case_devices(3);
    kn_module *net = kn_nn_data_parallel(case_network(KN_F32), .devices = devices, .num_devices = 3);
    kn_optim *optim = kn_optim_adam(kn_module_parameters(net));
    kn_tensor *images, *classes;
    case_batch(&images, &classes, 9, KN_F32, 0);
    for (int i = 0; i < 3; i++)
        CHECK_OK(kn_synchronize(devices[i]));
    for (int step = 0; step < 4; step++) {
        KN_SCOPE;
        uint64_t waits = kn_host_wait_count();
        kn_set_sync_debug_mode(KN_SYNC_DEBUG_ERROR);
        kn_optim_zero_grad(optim);
        CHECK_OK(kn_backward(kn_cross_entropy(kn_forward(net, images), classes)));
        CHECK_OK(kn_optim_step(optim));
        kn_tensor *out[3];
        CHECK_OK(kn_comm_broadcast(images, devices, 3, out));
        {
            KN_NO_GRAD;
            CHECK_OK(kn_comm_all_reduce(out, 3, KN_REDUCE_MAX));
        }
        kn_set_sync_debug_mode(KN_SYNC_DEBUG_OFF);
        assert_true(kn_host_wait_count() == waits);
    }
    kn_optim_free(optim);
    kn_module_free(net);
}

/* An index out of range is detected on the second device and reported when the result is read on the first. */
TENSOR_TEST(a_fault_is_told_where_its_values_are_read)
{
    kn_device *const *devices = case_devices(3);
    kn_tensor *table = kn_ones(KN_SHAPE(3, 2), .device = devices[1]);
    kn_tensor *index = kn_full(KN_SHAPE(1), 7, .dtype = KN_I64, .device = devices[1]);
    kn_tensor *row = kn_index_select(table, 0, index);
    kn_tensor *sum = kn_sum(kn_to(kn_to(row, devices[2]), devices[0])); /* through a third */
    double value;
    assert_int_equal(kn_item(sum, &value), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "index 7 is out of range for size 3", kn_device_string(devices[1]));
    CHECK_OK(kn_item(sum, &value)); /* reported once */
    for (int i = 0; i < 3; i++)
        CHECK_OK(kn_synchronize(devices[i]));
    CHECK_OK(kn_item(kn_sum(kn_to(table, devices[0])), &value));
    assert_true(value == 6);
}

/* Checking values that were copied over does not clear later faults. */
TENSOR_TEST(a_later_fault_is_told_too)
{
    kn_device *const *devices = case_devices(2);
    double value;
    kn_tensor *table = kn_ones(KN_SHAPE(3, 2), .device = devices[1]);
    kn_tensor *good = kn_full(KN_SHAPE(1), 2, .dtype = KN_I64, .device = devices[1]);
    kn_tensor *bad = kn_full(KN_SHAPE(1), 7, .dtype = KN_I64, .device = devices[1]);
    kn_tensor *sum = kn_sum(kn_to(kn_index_select(table, 0, good), devices[0]));
    keep_busy(devices[1]);
    CHECK_TENSOR(kn_index_select(table, 0, bad));
    CHECK_OK(kn_item(sum, &value));
    assert_true(value == 2);
    assert_int_equal(kn_synchronize(devices[1]), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "index 7 is out of range for size 3");
    CHECK_OK(kn_synchronize(devices[1]));
}

TENSOR_TEST(a_graph_refuses_another_device)
{
    kn_device *const *devices = case_devices(2);
    kn_tensor *x = kn_ones(KN_SHAPE(4)), *y = NULL;
    kn_graph *graph = kn_graph_new();
    CHECK_NEW(graph);
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    y = kn_to(x, devices[1]);
    assert_null(y);
    CHECK_ERROR(KN_ERR_STATE, "another device");
    assert_int_not_equal(kn_graph_capture_end(graph), KN_OK);
    kn_error_clear();
    kn_graph_free(graph);
    CHECK_VALUES(kn_to(x, devices[1]), 1, 1, 1, 1);
}

/* Each thread sends a value through all devices, with its own stream on one of them. */
static void *around(void *user)
{
    int number = *(int *)user, wrong = 0;
    kn_stream *stream = NULL;
    wrong += (stream = kn_stream_new(kn_device_at(number % 3))) == NULL;
    wrong += kn_stream_set_current(stream) != KN_OK;
    for (int round = 0; round < 25; round++) {
        KN_SCOPE;
        kn_tensor *x = kn_full(KN_SHAPE(1000 + 311 * number), number, .device = kn_device_at(number % 3));
        for (int hop = 1; hop <= 6; hop++)
            x = kn_add_scalar(kn_to(x, kn_device_at((number + hop) % 3)), 1);
        double *values = read_doubles(x);
        for (int64_t i = 0; values && i < kn_numel(x); i++)
            wrong += values[i] != number + 6;
        wrong += !values;
        free(values);
    }
    wrong += kn_stream_synchronize(stream) != KN_OK;
    wrong += kn_stream_free(stream) != KN_OK;
    *(int *)user = wrong;
    return NULL;
}

TENSOR_TEST(threads_and_streams_at_once)
{
    pthread_t threads[4];
    int numbers[] = {0, 1, 2, 3};
    case_devices(3);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, around, &numbers[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(numbers[i], 0);
    }
}

/* More than the cached staging memory: some is freed and allocated again. */
TENSOR_TEST(large_values_of_many_sizes)
{
    kn_device *const *devices = case_devices(2);
    for (int round = 0; round < 3; round++)
        for (int64_t mib = 40; mib <= 160; mib *= 2) {
            KN_SCOPE;
            kn_tensor *x = kn_full(KN_SHAPE(mib << 20), 3 + round, .dtype = KN_U8, .device = devices[round % 2]);
            int64_t value = 0;
            kn_tensor *there = kn_to(x, devices[(round + 1) % 2]);
            CHECK_OK(kn_item_i64(kn_select(there, 0, -1), &value));
            assert_int_equal(value, 3 + round);
            CHECK_OK(kn_item_i64(kn_select(there, 0, 12345), &value));
            assert_int_equal(value, 3 + round);
        }
    for (int i = 0; i < 2; i++)
        CHECK_OK(kn_empty_cache(devices[i]));
}

/* A step of data parallelism on three devices: forward, loss, backward. */
static kn_status small_step(kn_module *net, kn_tensor *x)
{
    kn_status status = KN_OK;
    for (int i = 0; i < kn_module_parameters(net).count; i++)
        kn_set_grad(kn_module_parameters(net).tensors[i], NULL);

    KN_SCOPE;
    kn_tensor *y = kn_forward(net, x);
    status = kn_backward(kn_sum(kn_mul(y, y)));

    return status;
}

static int64_t allocated(kn_device *const *devices)
{
    int64_t sum = 0;
    for (int i = 0; i < 3; i++)
        sum += (int64_t)kn_memory_allocated(devices[i]);
    return sum;
}

/* If any call on any device fails, the step is an error, nothing hangs or leaks, and the next step is correct. */
TENSOR_TEST(a_step_that_fails_breaks_nothing)
{
    /* launches and copies without memory are tried again after freeing some: theirs are other errors */
    static const struct {
        kn_cl_call call;
        cl_int error;
        kn_status status;
        const char *message;
    } kinds[] = {{KN_CL_READ, CL_MEM_OBJECT_ALLOCATION_FAILURE, KN_ERR_MEMORY, "for another device"},
                 {KN_CL_WRITE, CL_MEM_OBJECT_ALLOCATION_FAILURE, KN_ERR_MEMORY, "from another device"},
                 {KN_CL_LAUNCH, CL_INVALID_KERNEL_ARGS, KN_ERR_DEVICE, "CL_INVALID_KERNEL_ARGS"}};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    kn_device *const *devices = case_devices(3);
    kn_module *net =
        kn_nn_data_parallel(kn_nn_sequential(kn_nn_linear(.in_features = 2, .out_features = 3), kn_nn_relu(),
                                             kn_nn_linear(.in_features = 3, .out_features = 2)),
                            .devices = devices, .num_devices = 3);
    kn_tensor *x = kn_rand(KN_SHAPE(7, 2)), *weight = kn_module_get(net, "module.0.weight");
    CHECK_OK(small_step(net, x));
    const int64_t before = allocated(devices);
    double *wanted = read_doubles(kn_grad(weight));
    int failures[KINDS] = {0};
    for (int k = 0; k < KINDS; k++)
        for (int nth = 1, failed = 1; failed; nth++) {
            kn_inject(kinds[k].call, nth, kinds[k].error, false);
            failed = small_step(net, x) != KN_OK;
            kn_inject_stop();
            failures[k] += failed;
            if (failed)
                CHECK_ERROR(kinds[k].status, kinds[k].message);
            kn_error_clear();
            assert_ptr_equal(kn_device_current(), devices[0]);
            CHECK_OK(small_step(net, x));
            double *found = read_doubles(kn_grad(weight));
            for (int i = 0; i < 6; i++)
                assert_true(found[i] == wanted[i]);
            free(found);
            assert_int_equal(allocated(devices), before);
        }
    for (int k = 0; k < KINDS; k++)
        assert_true(failures[k] > 5);
    free(wanted);
    kn_module_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_step_does_not_make_the_host_wait), TEST(a_fault_is_told_where_its_values_are_read),
        TEST(a_later_fault_is_told_too),          TEST(a_graph_refuses_another_device),
        TEST(threads_and_streams_at_once),        TEST(large_values_of_many_sizes),
        TEST(a_step_that_fails_breaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
