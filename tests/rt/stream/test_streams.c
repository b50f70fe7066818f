/* Streams: order, waiting for each other, memory shared by two, several threads on one device. */
#include "rt/rt_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "rt/rt.h"
#include "support/busy.h"
#include "tensor/tensor.h"

static void streams_are_made_and_destroyed(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *stream = kn_stream_new(device);
    assert_new(stream);
    assert_ptr_not_equal(stream, kn_stream_default(device));
    assert_ok(kn_stream_set_current(stream));
    assert_ptr_equal(kn_stream_current(device), stream);
    {
        KN_SCOPE;
        double value;
        assert_ok(kn_item(kn_sum(kn_ones(KN_SHAPE(1000))), &value));
        assert_true(value == 1000);
    }
    assert_ok(kn_stream_free(stream));
    assert_ptr_equal(kn_stream_current(device), kn_stream_default(device));
    assert_int_equal(kn_stream_free(kn_stream_default(device)), KN_ERR_ARGUMENT);
    kn_error_clear();
    assert_ok(kn_stream_free(NULL));
}

/* A chain of work that alternates between two streams, ordered by events: memory freed meanwhile must not be reused too
 * early. */
static void work_is_ordered_across_streams(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *side, *main_stream = kn_stream_default(device);
    assert_new(side = kn_stream_new(device));
    const int64_t n = 100000;
    kn_tensor *x = kn_zeros(KN_SHAPE(n));
    for (int hop = 0; hop < 40; hop++) {
        kn_stream *here = hop % 2 ? main_stream : side, *before = hop % 2 ? side : main_stream;
        assert_ok(kn_stream_wait_stream(here, before));
        assert_ok(kn_stream_set_current(here));
        kn_tensor *next = kn_add_scalar(x, 1);
        assert_non_null(next);
        kn_release(x); /* still read on `here`, although it was allocated on the other stream */
        x = next;
    }
    float *values = malloc((size_t)n * sizeof *values);
    assert_ok(kn_read(x, values, (size_t)n * sizeof *values));
    for (int64_t i = 0; i < n; i++)
        assert_true(values[i] == 40);
    free(values);
    kn_release(x);
    assert_ok(kn_stream_set_current(main_stream));
    assert_ok(kn_stream_synchronize(side));
    assert_ok(kn_stream_free(side));
}

/* More streams read one tensor than the pool tracks; its memory is reused immediately. */
static void many_streams_read_one_tensor(void **state)
{
    (void)state;
    enum { STREAMS = 7 };
    kn_device *device = test_device();
    kn_stream *streams[STREAMS], *main_stream = kn_stream_default(device);
    kn_tensor *sums[STREAMS], *x = kn_ones(KN_SHAPE(300000));
    for (int i = 0; i < STREAMS; i++) {
        assert_new(streams[i] = kn_stream_new(device));
        assert_ok(kn_stream_wait_stream(streams[i], main_stream));
        assert_ok(kn_stream_set_current(streams[i]));
        sums[i] = kn_sum(x);
    }
    assert_ok(kn_stream_set_current(main_stream));
    kn_release(x);
    kn_tensor *reused = kn_zeros(KN_SHAPE(300000)); /* would be the same memory if freed too early */
    for (int i = 0; i < STREAMS; i++) {
        double value;
        assert_ok(kn_stream_wait_stream(main_stream, streams[i]));
        assert_ok(kn_item(sums[i], &value));
        assert_true(value == 300000);
        kn_release(sums[i]);
        assert_ok(kn_stream_free(streams[i]));
    }
    kn_release(reused);
    assert_int_equal(kn_memory_allocated(device), 0);
}

/* Each thread has its own stream and checks its own sums; programs are compiled while others use them. */
static void *worker(void *argument)
{
    const int64_t seed = (int64_t)(intptr_t)argument;
    kn_device *device = NULL;
    kn_stream *stream = NULL;
    intptr_t wrong = 1;
    if ((device = kn_device_open("auto")) != NULL && (stream = kn_stream_new(device)) != NULL &&
        kn_stream_set_current(stream) == KN_OK) {
        wrong = 0;
        const bool has_f64 = kn_device_limits(device)->has_f64;
        for (int round = 0; round < 50; round++) {
            KN_SCOPE;
            double value = 0;
            const int64_t n = 100 + seed * 37 + round;
            kn_tensor *x = kn_full(KN_SHAPE(n), (double)seed, .dtype = round % 2 || !has_f64 ? KN_F32 : KN_F64);
            kn_tensor *sum = kn_sum(kn_relu(kn_mul(x, kn_add_scalar(x, 1))));
            wrong += kn_item(sum, &value) != KN_OK || value != (double)(n * seed * (seed + 1));
        }
    }
    kn_stream_free(stream);
    return (void *)wrong;
}

static void threads_share_a_device(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(kn_memory_allocated(test_device()), 0);
}

static void destroy_it(void *stream)
{
    if (kn_stream_free(stream) != KN_OK)
        kn_error_clear();
}

/* A stream destroyed meanwhile does not make kn_synchronize skip another one. */
static void synchronize_waits_for_every_stream(void **state)
{
    (void)state;
    bool done = false;
    kn_device *const devices[] = {test_device(), NULL}; /* NULL: the current one */
    kn_stream *busy = kn_stream_new(test_device());
    assert_new(busy);
    for (int which = 0; which < 2; which++) {
        KN_SCOPE;
        kn_stream *brief = kn_stream_new(test_device());
        assert_new(brief);
        {
            KN_STREAM(busy);
            keep_busy(test_device());
        }
        assert_ok(kn_stream_add_callback(brief, destroy_it, brief));
        assert_ok(kn_synchronize(devices[which]));
        assert_ok(kn_stream_query(busy, &done));
        assert_true(done);
    }
    assert_ok(kn_stream_free(busy));
}

/* --- a stream that other threads keep busy ------------------------------------------------------------------------ */

static atomic_bool is_over;

static void *fill(void *user)
{
    kn_tensor *x = kn_ones(KN_SHAPE(1 << 16), .device = user);
    while (!atomic_load(&is_over)) {
        KN_SCOPE;
        kn_add_scalar(x, 1);
    }
    kn_release(x);
    return NULL;
}

/* Drivers' own waits may last until a queue is empty (rt/stream/queue.h), and this one never is. */
static void waits_end_while_others_enqueue(void **state)
{
    (void)state;
    enum { N = 1 << 20 }; /* too many to be staged when written */
    kn_device *device = test_device();
    pthread_t threads[2];
    float *values = calloc(N, sizeof *values);
    double sum;
    assert_non_null(values);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fill, device), 0);
    for (int i = 0; i < 3; i++) {
        KN_SCOPE;
        kn_tensor *x = kn_empty(KN_SHAPE(N));
        assert_ok(kn_write(x, values, N * sizeof *values));
        assert_ok(kn_item(kn_sum(kn_add_scalar(x, 1)), &sum));
        assert_true(sum == N);
        assert_ok(kn_read(x, values, N * sizeof *values));
        assert_ok(kn_stream_synchronize(kn_stream_default(device)));
        assert_ok(kn_synchronize(device));
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_made_and_destroyed),     cmocka_unit_test(work_is_ordered_across_streams),
        cmocka_unit_test(many_streams_read_one_tensor),       cmocka_unit_test(threads_share_a_device),
        cmocka_unit_test(synchronize_waits_for_every_stream), cmocka_unit_test(waits_end_while_others_enqueue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
