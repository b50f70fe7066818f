/* test_native.c - the user's OpenCL code together with Koine. */
#undef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120 /* as in programs that use functions deprecated in 2.0 */
#include <CL/cl.h>
#include <koine/native.h>

#include "rt_test.h"

static cl_command_queue new_queue(kn_device *device, cl_command_queue_properties properties)
{
    cl_int error;
    cl_command_queue queue =
        clCreateCommandQueue(kn_native_context(device), kn_native_device(device), properties, &error);
    assert_int_equal(error, CL_SUCCESS);
    return queue;
}

/* A caller's queue becomes a stream; commands of the caller and of Koine keep their order. */
static void a_queue_becomes_a_stream(void **state)
{
    (void)state;
    kn_device *device = test_device();
    cl_command_queue queue = new_queue(device, 0);
    kn_stream *stream = kn_stream_from_native(device, queue);
    assert_new(stream);
    assert_ptr_equal(kn_native_queue(stream), queue);
    {
        KN_STREAM(stream);
        KN_SCOPE;
        size_t offset;
        double sum;
        const float seven = 7;
        kn_tensor *x = kn_zeros(KN_SHAPE(1000));
        cl_mem memory = kn_native_memory(x, &offset);
        assert_non_null(memory);
        assert_int_equal(
            clEnqueueFillBuffer(queue, memory, &seven, sizeof seven, offset, 1000 * sizeof seven, 0, NULL, NULL),
            CL_SUCCESS);
        assert_ok(kn_item(kn_sum(x), &sum));
        assert_true(sum == 7000);
    }
    assert_ok(kn_stream_free(stream));
    clReleaseCommandQueue(queue);
}

/* Work that Koine did not enqueue keeps its stream busy too. */
static void work_of_the_callers_own_counts(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *stream;
    cl_int error;
    bool done = true;
    cl_event gate = clCreateUserEvent(kn_native_context(device), &error);
    assert_int_equal(error, CL_SUCCESS);
    assert_new(stream = kn_stream_new(device));
    cl_command_queue queue = kn_native_queue(stream);
    assert_ok(kn_stream_synchronize(stream));
    assert_int_equal(clEnqueueMarkerWithWaitList(queue, 1, &gate, NULL), CL_SUCCESS);
    assert_ok(kn_stream_query(stream, &done));
    assert_false(done);
    assert_int_equal(kn_stream_free(stream), KN_ERR_STATE);
    assert_message("unfinished work");
    clSetUserEventStatus(gate, CL_COMPLETE);
    clReleaseEvent(gate);
    assert_ok(kn_stream_synchronize(stream));
    assert_ok(kn_stream_free(stream));
}

static void queues_that_do_not_fit(void **state)
{
    (void)state;
    kn_device *device = kn_device_at(0);
    kn_stream *stream = NULL;
    cl_command_queue queue = new_queue(device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    assert_int_equal(kn_status_of(stream = kn_stream_from_native(device, queue)), KN_ERR_ARGUMENT);
    assert_message("out-of-order");
    clReleaseCommandQueue(queue);
    assert_int_equal(kn_status_of(stream = kn_stream_from_native(device, NULL)), KN_ERR_ARGUMENT);
    kn_error_clear();
    assert_null(stream);
}

static void queues_and_streams_of_another_device(void **state)
{
    (void)state;
    if (kn_device_count() < 2)
        skip();
    KN_SCOPE;
    kn_stream *stream = NULL;
    cl_command_queue queue = new_queue(kn_device_at(1), 0);
    assert_int_equal(kn_status_of(stream = kn_stream_from_native(kn_device_at(0), queue)), KN_ERR_DEVICE);
    assert_message("the queue's device is not that of");
    assert_null(stream);
    clReleaseCommandQueue(queue);
    kn_tensor *x = kn_zeros(KN_SHAPE(2), .device = kn_device_at(0));
    assert_int_equal(kn_record_stream(x, kn_stream_default(kn_device_at(1))), KN_ERR_DEVICE);
    assert_message("the stream belongs to");
}

static void the_host_has_no_handles(void **state)
{
    (void)state;
    size_t offset;
    assert_null(kn_native_context(kn_device_host()));
    assert_message("the host");
    assert_null(kn_native_queue(NULL));
    assert_message("`stream` is NULL");

    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(2), .device = kn_device_host());
    assert_null(kn_native_memory(x, &offset));
    assert_message("on the host");
    assert_int_equal(kn_record_stream(x, kn_stream_default(test_device())), KN_ERR_DEVICE);
    assert_message("on the host");
}

/* Memory still used by a foreign queue is not reused. */
static void recorded_streams_keep_memory_back(void **state)
{
    (void)state;
    kn_device *device = test_device();
    cl_int error;
    kn_stream *side = kn_stream_new(device);
    assert_new(side);
    size_t offset, again;
    kn_tensor *x = kn_zeros(KN_SHAPE(300000));
    cl_mem memory = kn_native_memory(x, &offset);
    cl_event gate = clCreateUserEvent(kn_native_context(device), &error);
    assert_int_equal(error, CL_SUCCESS);
    const float one = 1;
    assert_ok(kn_record_stream(x, side));
    assert_int_equal(
        clEnqueueFillBuffer(kn_native_queue(side), memory, &one, sizeof one, offset, 1200000, 1, &gate, NULL),
        CL_SUCCESS);
    kn_release(x);
    kn_tensor *y = kn_zeros(KN_SHAPE(300000));
    assert_true(kn_native_memory(y, &again) != memory || again != offset);
    clSetUserEventStatus(gate, CL_COMPLETE);
    clReleaseEvent(gate);
    assert_ok(kn_stream_synchronize(side));
    kn_release(y);
    y = kn_zeros(KN_SHAPE(300000));
    kn_release(y);
    assert_ok(kn_stream_free(side));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_becomes_a_stream), cmocka_unit_test(work_of_the_callers_own_counts),
        cmocka_unit_test(queues_that_do_not_fit),   cmocka_unit_test(queues_and_streams_of_another_device),
        cmocka_unit_test(the_host_has_no_handles),  cmocka_unit_test(recorded_streams_keep_memory_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
