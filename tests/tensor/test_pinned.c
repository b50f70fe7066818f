/* test_pinned.c - pinned host memory and asynchronous copies: nothing is read, overwritten or freed too early. The
 * stream is kept busy before each copy, so that the copy is late. */
#include "support/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/busy.h"
#include "tensor/host_copies.h"

enum { N = 100003 };

/* Kernels that are launched while the stream is kept busy: some drivers compile them then, and are waited for. */
static void warm_up(void)
{
    KN_SCOPE;
    kn_full(KN_SHAPE(N), 1);
    keep_busy(kn_device_current());
    CHECK_OK(kn_synchronize(kn_device_current()));
}

static kn_tensor *pinned_values(float first)
{
    kn_tensor *t = kn_empty(KN_SHAPE(N), .pin_memory = true);
    CHECK_TENSOR(t);
    float *data = kn_data(t);
    for (int i = 0; i < N; i++)
        data[i] = first + (float)i;
    return t;
}

static int wrong_values(const float *data, float first)
{
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += data[i] != first + (float)i;
    return wrong;
}

static int wrong_on_device(const kn_tensor *t, float first)
{
    float *data = malloc(N * sizeof *data);
    CHECK_OK(kn_read(t, data, N * sizeof *data));
    int wrong = wrong_values(data, first);
    free(data);
    return wrong;
}

static bool under_way(const kn_tensor *t) { return !kn_storage_copies_done(t->storage); }

static void expect_under_way(const kn_tensor *t) { assert_true(under_way(t) || copies_block(kn_device_current())); }

/* --- pinned tensors ------------------------------------------------------------------------------------------- */

TENSOR_TEST(what_is_pinned)
{
    kn_tensor *plain = kn_full(KN_SHAPE(3, 2), 4, .device = kn_device_host());
    assert_false(kn_is_pinned(plain));
    assert_false(kn_is_pinned(NULL));
    assert_false(kn_is_pinned(kn_ones(KN_SHAPE(2))));
    kn_tensor *pinned = kn_pin_memory(plain);
    CHECK_TENSOR(pinned);
    assert_true(kn_is_pinned(pinned));
    assert_ptr_not_equal(pinned, plain);
    assert_ptr_equal(kn_pin_memory(pinned), pinned);
    assert_ptr_equal(kn_device_of(pinned), kn_device_host());
    CHECK_VALUES(pinned, 4, 4, 4, 4, 4, 4);
    kn_tensor *asked = kn_zeros(KN_SHAPE(4), .dtype = KN_I64, .device = kn_device_host(), .pin_memory = true);
    assert_true(kn_is_pinned(asked));
    CHECK_VALUES(asked, 0, 0, 0, 0);
    assert_true(kn_is_pinned(kn_empty(KN_SHAPE(0), .pin_memory = true)));
}

TENSOR_TEST(only_the_host_has_pinned_memory)
{
    assert_null(kn_pin_memory(kn_ones(KN_SHAPE(2))));
    CHECK_ERROR(KN_ERR_DEVICE, "kn_pin_memory", "only host tensors");
    assert_null(kn_empty(KN_SHAPE(2), .device = kn_device_current(), .pin_memory = true));
    CHECK_ERROR(KN_ERR_DEVICE, "pin_memory is for host tensors");
    assert_null(kn_pin_memory(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "tensor");
}

/* --- kn_to_with ------------------------------------------------------------------------------------------------ */

TENSOR_TEST_F64(to_takes_device_dtype_and_copy)
{
    kn_device *device = kn_device_current();
    kn_tensor *x = kn_from_data(((float[]){1.5f, -2.25f, 3}), KN_SHAPE(3), .device = kn_device_host());
    assert_ptr_equal(kn_to_with(x, &(kn_to_params){0}), x);
    assert_ptr_equal(kn_to_device(x, kn_device_host()), x);
    kn_tensor *copy = kn_to_device(x, NULL, .copy = true);
    assert_ptr_not_equal(copy, x);
    CHECK_VALUES(copy, 1.5, -2.25, 3);
    CHECK_DTYPE(kn_to_device(x, NULL, .dtype = KN_I32), KN_I32);
    for (int blocking = 0; blocking < 2; blocking++) {
        for (int pin = 0; pin < 2; pin++) {
            kn_tensor *from = pin ? kn_pin_memory(x) : x;
            kn_tensor *y = kn_to_device(from, device, .dtype = KN_F64, .non_blocking = !blocking);
            CHECK_DTYPE(y, KN_F64);
            assert_ptr_equal(kn_device_of(y), device);
            CHECK_VALUES(y, 1.5, -2.25, 3);
            kn_tensor *half = kn_to_device(from, device, .dtype = KN_F16, .non_blocking = !blocking);
            CHECK_VALUES(half, 1.5, -2.25, 3);
            kn_tensor *back = kn_to_device(y, kn_device_host(), .dtype = KN_F32, .non_blocking = !blocking);
            assert_int_equal(kn_is_pinned(back), !blocking);
            CHECK_VALUES(back, 1.5, -2.25, 3);
            kn_tensor *whole = kn_to_device(y, kn_device_host(), .dtype = KN_I64, .non_blocking = !blocking);
            CHECK_VALUES(whole, 1, -2, 3);
        }
    }
    kn_tensor *clone = kn_to_device(kn_to(x, device), device, .copy = true);
    CHECK_VALUES(clone, 1.5, -2.25, 3);
    assert_null(kn_to_device(x, device, .dtype = (kn_dtype)77));
    CHECK_ERROR(KN_ERR_ARGUMENT, "77");
    assert_null(kn_to_with(NULL, &(kn_to_params){0}));
    CHECK_ERROR(KN_ERR_ARGUMENT, "tensor");
}

TENSOR_TEST_F64(to_is_differentiable_across_device_and_dtype)
{
    kn_tensor *x = kn_from_data(((float[]){1, 2, 3}), KN_SHAPE(3), .device = kn_device_host(), .requires_grad = true);
    kn_tensor *y = kn_to_device(x, kn_device_current(), .dtype = KN_F64, .non_blocking = true);
    CHECK_OK(kn_backward(kn_sum(kn_mul(y, y))));
    CHECK_TENSOR(kn_grad(x));
    CHECK_DTYPE(kn_grad(x), KN_F32);
    assert_ptr_equal(kn_device_of(kn_grad(x)), kn_device_host());
    CHECK_VALUES(kn_grad(x), 2, 4, 6);
}

/* --- host to device -------------------------------------------------------------------------------------------- */

TENSOR_TEST(overwriting_the_source_waits_for_the_copy)
{
    warm_up();
    kn_tensor *source = pinned_values(7);
    keep_busy(kn_device_current());
    kn_tensor *y = kn_to_device(source, kn_device_current(), .non_blocking = true);
    expect_under_way(source);
    float *data = kn_data(source); /* waits */
    assert_false(under_way(source));
    memset(data, 0xff, N * sizeof *data);
    assert_int_equal(wrong_on_device(y, 7), 0);

    /* The same through kn_write, kn_copy_, kn_fill_'s path, and a view. */
    float *zeros = calloc(N, sizeof *zeros);
    for (int way = 0; way < 4; way++) {
        source = pinned_values((float)way);
        kn_tensor *whole = kn_from_data(zeros, KN_SHAPE(N), .device = kn_device_host());
        keep_busy(kn_device_current());
        y = kn_to_device(source, kn_device_current(), .non_blocking = true);
        expect_under_way(source);
        if (way == 0)
            CHECK_OK(kn_write(source, zeros, N * sizeof *zeros));
        else if (way == 1)
            CHECK_OK(kn_copy_(source, whole));
        else if (way == 2)
            CHECK_OK(kn_tensor_fill(source, 0));
        else
            CHECK_OK(kn_copy(source, kn_zeros(KN_SHAPE(N)), .non_blocking = true)); /* ordered on the device */
        assert_int_equal(wrong_on_device(y, (float)way), 0);
        assert_true(((float *)kn_data(source))[N - 1] == 0);
    }
    free(zeros);
}

TENSOR_TEST(reading_the_source_does_not_wait)
{
    warm_up();
    kn_tensor *source = pinned_values(3);
    keep_busy(kn_device_current());
    kn_tensor *y = kn_to_device(source, kn_device_current(), .non_blocking = true);
    assert_int_equal(wrong_on_device(source, 3), 0); /* kn_read of the host tensor */
    expect_under_way(source);
    assert_int_equal(wrong_on_device(y, 3), 0);
}

TENSOR_TEST(releasing_the_source_keeps_its_memory)
{
    warm_up();
    kn_tensor *copies[4];
    for (int i = 0; i < 4; i++) {
        keep_busy(kn_device_current());

        KN_SCOPE;
        kn_tensor *source = pinned_values((float)i);
        copies[i] = kn_retain(kn_to_device(source, kn_device_current(), .non_blocking = true));
        expect_under_way(source);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(wrong_on_device(copies[i], (float)i), 0);
        kn_release(copies[i]);
    }
}

TENSOR_TEST(a_pageable_source_is_read_before_the_call_returns)
{
    warm_up();
    float *values = malloc(N * sizeof *values);
    for (int i = 0; i < N; i++)
        values[i] = 5 + (float)i;
    kn_tensor *source = kn_from_data(values, KN_SHAPE(N), .device = kn_device_host());
    keep_busy(kn_device_current());
    kn_tensor *y = kn_to_device(source, kn_device_current(), .non_blocking = true);
    memset(kn_data(source), 0, N * sizeof *values);
    assert_int_equal(wrong_on_device(y, 5), 0);
    /* A strided view of pinned memory too: it is packed first. */
    kn_tensor *wide = kn_pin_memory(kn_arange(0, 6, 1, .dtype = KN_F32, .device = kn_device_host()));
    kn_tensor *every_second;
    CHECK_OK(kn_tensor_view(&every_second, wide, 1, (const int64_t[]){3}, (const int64_t[]){2}, 0));
    keep_busy(kn_device_current());
    y = kn_to_device(every_second, kn_device_current(), .non_blocking = true);
    memset(kn_data(wide), 0, 6 * sizeof(float));
    CHECK_VALUES(y, 0, 2, 4);
    kn_release(every_second);
    free(values);
}

/* --- device to host -------------------------------------------------------------------------------------------- */

TENSOR_TEST(what_arrives_is_complete_however_it_is_read)
{
    warm_up();
    for (int way = 0; way < 5; way++) {
        kn_tensor *source = kn_to(pinned_values((float)way), kn_device_current());
        CHECK_OK(kn_synchronize(kn_device_current()));
        keep_busy(kn_device_current());
        kn_tensor *y = kn_to_device(source, kn_device_host(), .non_blocking = true);
        assert_true(kn_is_pinned(y));
        expect_under_way(y);
        if (way == 0) {
            assert_int_equal(wrong_values(kn_data(y), (float)way), 0);
        } else if (way == 1) {
            assert_int_equal(wrong_on_device(y, (float)way), 0);
        } else if (way == 2) {
            kn_tensor *last;
            double value;
            CHECK_OK(kn_tensor_view(&last, y, 0, NULL, NULL, N - 1));
            CHECK_OK(kn_item(last, &value));
            assert_true(value == way + N - 1);
            kn_release(last);
        } else if (way == 3) { /* back to a device, on another stream */
            kn_stream *other, *before = kn_stream_current(kn_device_current());
            CHECK_NEW(other = kn_stream_new(kn_device_current()));
            CHECK_OK(kn_stream_set_current(other));
            kn_tensor *back = kn_to_device(y, kn_device_current(), .non_blocking = true);
            assert_int_equal(wrong_on_device(back, (float)way), 0);
            CHECK_OK(kn_stream_set_current(before));
            CHECK_OK(kn_stream_synchronize(other));
            CHECK_OK(kn_stream_free(other));
        } else { /* an ordinary copy on the host */
            kn_tensor *copy = kn_to_device(y, kn_device_host(), .copy = true);
            assert_int_equal(wrong_values(kn_data(copy), (float)way), 0);
        }
        assert_true(way == 3 || !under_way(y));
    }
}

TENSOR_TEST(releasing_the_destination_keeps_its_memory)
{
    warm_up();
    for (int i = 0; i < 4; i++) {
        keep_busy(kn_device_current());
        {
            KN_SCOPE;
            kn_tensor *y = kn_to_device(kn_full(KN_SHAPE(N), 1), kn_device_host(), .non_blocking = true);
            expect_under_way(y);
        }
        kn_tensor *next = pinned_values((float)i); /* must not reuse memory that is about to be written */
        CHECK_OK(kn_synchronize(kn_device_current()));
        assert_int_equal(wrong_values(kn_data(next), (float)i), 0);
    }
}

TENSOR_TEST(copies_into_ones_own_pinned_tensor)
{
    warm_up();
    kn_tensor *mailbox = kn_empty(KN_SHAPE(4), .pin_memory = true);
    for (int i = 0; i < 20; i++) {
        keep_busy(kn_device_current());
        CHECK_OK(kn_copy(mailbox, kn_full(KN_SHAPE(4), i), .non_blocking = true));
        CHECK_OK(kn_copy(mailbox, kn_full(KN_SCALAR, i + 100), .non_blocking = true)); /* broadcast, after the first */
        if (i % 5 == 0)
            CHECK_VALUES(mailbox, i + 100, i + 100, i + 100, i + 100);
    }
    CHECK_VALUES(mailbox, 119, 119, 119, 119);
    kn_tensor *parameter = kn_ones(KN_SHAPE(4), .requires_grad = true);
    assert_int_equal(kn_copy(mailbox, parameter, .non_blocking = true), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "KN_NO_GRAD");
    assert_int_equal(kn_copy(NULL, mailbox), KN_ERR_ARGUMENT);
    kn_error_clear();
}

/* A graph cannot capture them; no copy is left incomplete. */
TENSOR_TEST(a_capture_refuses_copies_from_and_to_the_host)
{
    kn_tensor *source = pinned_values(2), *destination = kn_empty(KN_SHAPE(N));
    kn_stream *stream = NULL, *before = kn_stream_current(kn_device_current());
    CHECK_NEW(stream = kn_stream_new(kn_device_current()));
    CHECK_OK(kn_stream_wait_stream(stream, before)); /* guards are written there */
    CHECK_OK(kn_stream_set_current(stream));
    for (int back = 0; back < 2; back++) {
        kn_graph *graph = kn_graph_new();
        CHECK_NEW(graph);
        CHECK_OK(kn_graph_capture_begin(graph, stream));
        kn_status status = back ? kn_copy(source, destination, .non_blocking = true)
                                : kn_copy(destination, source, .non_blocking = true);
        assert_int_equal(status, KN_ERR_STATE);
        assert_non_null(strstr(kn_error_message(), "host memory"));
        kn_error_clear();
        assert_int_not_equal(kn_graph_capture_end(graph), KN_OK);
        kn_error_clear();
        assert_false(under_way(source));
        kn_graph_free(graph);
    }
    CHECK_OK(kn_copy(destination, source, .non_blocking = true));
    assert_int_equal(wrong_on_device(destination, 2), 0);
    CHECK_OK(kn_stream_set_current(before));
    CHECK_OK(kn_stream_synchronize(stream));
    CHECK_OK(kn_stream_free(stream));
}

/* --- short memory, threads ------------------------------------------------------------------------ */

TENSOR_TEST(a_copy_that_cannot_be_remembered_is_not_left_under_way)
{
    kn_tensor *source = pinned_values(1);
    kn_tensor *destination = kn_empty(KN_SHAPE(N));
    warm_up();
    for (long n = 1; n < 40; n++) {
        kn_fail_alloc_after(n, 0);
        kn_status status = kn_tensor_copy_with(destination, source, true);
        kn_fail_alloc_after(0, 0);
        if (status != KN_OK) {
            assert_false(under_way(source));
            CHECK_ERROR(KN_ERR_MEMORY, "");
        }
        kn_error_clear();
    }
}

/* Threads that copy from one pinned tensor, each with its own tensors and streams. */
static void *copy_around(void *argument)
{
    kn_tensor *shared = argument;
    int *wrong = calloc(1, sizeof *wrong);
    kn_stream *stream = NULL;
    kn_device *device = kn_device_current();
    *wrong += (stream = kn_stream_new(device)) == NULL || kn_stream_set_current(stream) != KN_OK;
    for (int i = 0; i < 15; i++) {
        KN_SCOPE;
        kn_tensor *y = kn_to_device(shared, device, .non_blocking = true);
        kn_tensor *back = kn_to_device(kn_add_scalar(y, 1), kn_device_host(), .non_blocking = true);
        float *data = kn_data(back);
        *wrong += data == NULL || wrong_values(data, 12) != 0;
    }
    kn_stream_synchronize(stream);
    kn_stream_set_current(kn_stream_default(device));
    *wrong += kn_stream_free(stream) != KN_OK;
    return wrong;
}

TENSOR_TEST(threads_share_a_pinned_tensor)
{
    enum { THREADS = 4 };
    kn_tensor *shared = pinned_values(11);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, copy_around, shared), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_int_equal(*(int *)wrong, 0);
        free(wrong);
    }
    assert_int_equal(wrong_values(kn_data(shared), 11), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_pinned),
        TEST(only_the_host_has_pinned_memory),
        TEST(to_takes_device_dtype_and_copy),
        TEST(to_is_differentiable_across_device_and_dtype),
        TEST(overwriting_the_source_waits_for_the_copy),
        TEST(reading_the_source_does_not_wait),
        TEST(releasing_the_source_keeps_its_memory),
        TEST(a_pageable_source_is_read_before_the_call_returns),
        TEST(what_arrives_is_complete_however_it_is_read),
        TEST(releasing_the_destination_keeps_its_memory),
        TEST(copies_into_ones_own_pinned_tensor),
        TEST(a_capture_refuses_copies_from_and_to_the_host),
        TEST(a_copy_that_cannot_be_remembered_is_not_left_under_way),
        TEST(threads_share_a_pinned_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
