/* test_pinned_endings.c - pinned memory in unusual cases: the device is lost with a copy in flight, waits are
 * forbidden, copies cross streams and devices, a dataset reads a tensor that is being filled. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "rt/device/device_struct.h"
#include "rt/device/lost.h"
#include "support/busy.h"

enum { N = 100003 };

static kn_tensor *pinned_values(float first)
{
    kn_tensor *t = kn_empty(KN_SHAPE(N), .pin_memory = true);
    CHECK_TENSOR(t);
    float *data = kn_data(t);
    for (int i = 0; i < N; i++)
        data[i] = first + (float)i;
    return t;
}

static int wrong_values(const kn_tensor *t, float first)
{
    float *data = malloc(N * sizeof *data);
    int wrong = kn_read(t, data, N * sizeof *data) != KN_OK;
    for (int i = 0; i < N; i++)
        wrong += data[i] != first + (float)i;
    free(data);
    return wrong;
}

/* The data will never arrive: the first read, by any function, reports it. A source is unchanged. */
TENSOR_TEST(a_lost_device_is_told_by_what_it_was_to_send)
{
    kn_device *device = kn_device_current();
    float *values = malloc(N * sizeof *values);
    keep_busy(device);
    CHECK_OK(kn_synchronize(device));
    for (int way = 0; way < 4; way++) {
        kn_tensor *source = pinned_values((float)way);
        kn_tensor *y = kn_to_device(source, device, .non_blocking = true);
        keep_busy(device);
        kn_tensor *back = kn_to_device(y, kn_device_host(), .non_blocking = true);
        CHECK_TENSOR(back);
        kn_device_note_error(device, CL_DEVICE_NOT_AVAILABLE, "testing");
        assert_int_equal(wrong_values(source, (float)way), 0);
        kn_error_clear();
        if (way == 0)
            assert_null(kn_data(back));
        else if (way == 1)
            assert_int_equal(kn_read(back, values, N * sizeof *values), KN_ERR_DEVICE);
        else if (way == 2)
            assert_null(kn_to_device(back, kn_device_host(), .copy = true));
        else
            assert_int_equal(kn_write(back, values, N * sizeof *values), KN_ERR_DEVICE);
        CHECK_ERROR(KN_ERR_DEVICE, "was lost");
        atomic_store(&device->is_lost, false); /* it is not really lost */
        atomic_store(&device->is_losing, false);
        CHECK_OK(kn_synchronize(device));
    }
    free(values);
}

/* If waiting is rejected, the copy stays pending, and is waited for when allowed again. */
TENSOR_TEST(a_wait_that_is_refused_is_made_later)
{
    kn_device *device = kn_device_current();
    kn_tensor *y = kn_to(pinned_values(4), device);
    const bool blocks = copies_block(device);
    keep_busy(device);
    CHECK_OK(kn_synchronize(device));
    keep_busy(device);
    kn_tensor *back = kn_to_device(y, kn_device_host(), .non_blocking = true);
    if (!blocks) {
        kn_set_sync_debug_mode(KN_SYNC_DEBUG_ERROR);
        assert_null(kn_data(back));
        CHECK_ERROR(KN_ERR_STATE, "forbids");
        kn_set_sync_debug_mode(KN_SYNC_DEBUG_OFF);
    }
    assert_non_null(kn_data(back));
    assert_int_equal(wrong_values(back, 4), 0);
}

/* A tensor read by one device and then written by another (or by another stream of the same): the second copy is
 * ordered after the first. */
TENSOR_TEST(copies_from_two_devices_or_streams_keep_their_order)
{
    kn_device *one = kn_device_current(), *other = kn_device_at(kn_device_count() - 1);
    kn_stream *stream = NULL, *before = kn_stream_current(other);
    CHECK_NEW(stream = kn_stream_new(other));
    for (int i = 0; i < 3; i++) {
        kn_tensor *shared = pinned_values((float)i);
        kn_tensor *news = kn_to(pinned_values(50 + (float)i), other);
        CHECK_OK(kn_synchronize(one));
        CHECK_OK(kn_synchronize(other));
        keep_busy(one);
        kn_tensor *y = kn_to_device(shared, one, .non_blocking = true);
        CHECK_OK(kn_stream_set_current(stream));
        CHECK_OK(kn_copy(shared, news, .non_blocking = true));
        CHECK_OK(kn_stream_set_current(before));
        assert_int_equal(wrong_values(y, (float)i), 0);
        assert_int_equal(wrong_values(shared, 50 + (float)i), 0);
    }
    CHECK_OK(kn_stream_synchronize(stream));
    CHECK_OK(kn_stream_free(stream));
}

/* A dataset holds its tensors by pointer. */
TENSOR_TEST(a_dataset_reads_what_has_arrived)
{
    kn_device *device = kn_device_current();
    kn_tensor *x = kn_zeros(KN_SHAPE(N, 1), .device = kn_device_host(), .pin_memory = true);
    kn_tensor *labels = kn_zeros(KN_SHAPE(N), .dtype = KN_I64, .device = kn_device_host());
    kn_tensor *news = kn_reshape(kn_to(pinned_values(9), device), 2, (const int64_t[]){N, 1});
    kn_dataset *dataset = kn_tensor_dataset(x, labels);
    CHECK_NEW(dataset);
    keep_busy(device);
    CHECK_OK(kn_synchronize(device));
    keep_busy(device);
    CHECK_OK(kn_copy(x, news, .non_blocking = true));
    float sample = 0;
    int64_t label;
    CHECK_OK(kn_dataset_get(dataset, N - 1, (void *[]){&sample, &label}));
    assert_true(sample == 9 + (float)(N - 1));
    kn_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lost_device_is_told_by_what_it_was_to_send),
        TEST(a_wait_that_is_refused_is_made_later),
        TEST(copies_from_two_devices_or_streams_keep_their_order),
        TEST(a_dataset_reads_what_has_arrived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
