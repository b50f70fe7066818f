/* test_mapping.c - a CPU device's memory as the host uses it: shared, and mapped. */
#include "rt/rt_test.h"

#include <pthread.h>
#include <time.h>

#include "rt/rt.h"
#include "rt/stream/stream_struct.h"
#include "support/busy.h"
#include "tensor/tensor.h"

enum { N = 1000, FIRST = 100 };

static kn_limits *limits_of(kn_device *device) { return (kn_limits *)(uintptr_t)kn_device_limits(device); }

static float *map(kn_tensor *x)
{
    void *memory = NULL;
    assert_ok(kn_buffer_map(kn_stream_current(kn_device_of(x)), x->storage->buffer, FIRST * sizeof(float),
                            (N - FIRST) * sizeof(float), &memory));
    return memory;
}

static void unmap(kn_tensor *x, float *memory)
{
    assert_ok(kn_buffer_unmap(kn_stream_current(kn_device_of(x)), x->storage->buffer, memory));
}

/* The host sees what kernels have written, and kernels what it writes. */
static void exchange_values(kn_device *device)
{
    KN_SCOPE;
    double sum = 0;
    kn_tensor *x = kn_full(KN_SHAPE(N), 1, .device = device);
    for (int i = 0; i < 3; i++) {
        kn_add_scalar_(x, 1);
        float *values = map(x);
        assert_true(values[0] == (float)(2 + 2 * i) && values[N - FIRST - 1] == (float)(2 + 2 * i));
        for (int k = 0; k < N - FIRST; k++)
            values[k] += 1;
        unmap(x, values);
    }
    assert_ok(kn_item(kn_sum(x), &sum));
    assert_true(sum == 4.0 * FIRST + 7.0 * (N - FIRST));
}

static void host_and_device_exchange_values(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_limits *limits = limits_of(device);
    const bool shares = limits->shares_memory;
    if (!kn_can_map(device))
        skip();
    exchange_values(device);
    limits->shares_memory = false;
    exchange_values(device);
    limits->shares_memory = shares;
}

/* No command is needed where memory is shared: the stream stays idle, and the place is the same. */
static void shared_memory_has_a_place(void **state)
{
    (void)state;
    kn_device *device = test_device();
    if (!kn_can_map(device) || !limits_of(device)->shares_memory)
        skip();
    KN_SCOPE;
    kn_tensor *x = kn_full(KN_SHAPE(N), 1, .device = device);
    kn_stream *stream = kn_stream_current(device);
    float *values = map(x);
    assert_true(kn_stream_is_known_idle(stream));
    unmap(x, values);
    assert_true(kn_stream_is_known_idle(stream));
    assert_ptr_equal(map(x), values);
}

static void *synchronize(void *stream) { return kn_stream_synchronize(stream) == KN_OK ? stream : NULL; }

/* A stream for which another thread waits is not idle. */
static void others_wait(void **state)
{
    (void)state;
    kn_device *device = test_device();
    KN_SCOPE;
    kn_tensor *x = kn_full(KN_SHAPE(N), 1, .device = device);
    kn_stream *stream = kn_stream_current(device);
    pthread_t thread;
    void *result = NULL;
    bool idle = true;
    kn_add_scalar_(x, 1); /* some drivers compile a kernel when it first runs, and are waited for */
    assert_ok(kn_synchronize(device));
    held *gate = hold(device);
    kn_add_scalar_(x, 1);
    assert_int_equal(pthread_create(&thread, NULL, synchronize, stream), 0);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_ok(kn_stream_query(stream, &idle));
    assert_false(idle);
    let_go(gate);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, stream);
    assert_ok(kn_stream_synchronize(stream));
    assert_true(kn_stream_is_known_idle(stream));
}

int main(void)
{
    if (kn_device_count() == 0)
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_and_device_exchange_values),
        cmocka_unit_test(shared_memory_has_a_place),
        cmocka_unit_test(others_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
