/* test_streams.c - tensors on several streams of one device: memory is reused only after the work that reads it, and
 * threads work concurrently. */
#include "support/check.h"

#include <pthread.h>
#include <stdlib.h>

#include "support/values.h"

#define ELEMENTS (1 << 18)

/* A value created on one stream, read by slow work on another and released immediately: the next value on the first
 * stream must not reuse its memory while the second still reads it. */
static void test_reuse_across_streams(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    kn_stream *first = kn_stream_default(device), *second = NULL;
    CHECK_NEW(second = kn_stream_new(device));
    int wrong = 0;
    for (int round = 1; round <= 60; round++) {
        kn_tensor *x = kn_full(KN_SHAPE(ELEMENTS), round);
        CHECK_OK(kn_stream_wait_stream(second, first));
        CHECK_OK(kn_stream_set_current(second));
        kn_tensor *slow = kn_full(KN_SHAPE(ELEMENTS), 1);
        for (int i = 0; i < 4; i++) { /* keeps the second stream busy before it reads x */
            kn_tensor *next = kn_sqrt(slow);
            kn_release(slow);
            slow = next;
        }
        kn_tensor *y = kn_mul(x, slow);
        kn_release(slow);
        kn_release(x);
        CHECK_OK(kn_stream_set_current(first));
        kn_tensor *other = kn_full(KN_SHAPE(ELEMENTS), -1); /* as large as x was */
        CHECK_OK(kn_stream_synchronize(second));
        double *values = read_doubles(y);
        for (int i = 0; values && i < ELEMENTS; i++)
            wrong += values[i] != round;
        free(values);
        kn_release(other);
        kn_release(y);
    }
    CHECK_OK(kn_stream_free(second));
    assert_int_equal(wrong, 0);
}

typedef struct worker {
    pthread_t thread;
    int number;
    double result;
    char problem[256];
} worker;

/* A gradient on the thread's own stream. */
static void *train_alone(void *user)
{
    worker *self = user;
    kn_stream *stream = NULL;
    if ((stream = kn_stream_new(kn_device_current())) == NULL || kn_stream_set_current(stream) != KN_OK) {
        snprintf(self->problem, sizeof self->problem, "%s", kn_error_message());
        return NULL;
    }
    kn_tensor *w = kn_full(KN_SHAPE(64, 64), 0.01 * self->number, .requires_grad = true);
    for (int step = 0; step < 25; step++) {
        KN_SCOPE;
        kn_tensor *loss = kn_mean(kn_exp(kn_matmul(kn_ones(KN_SHAPE(16, 64)), w)));
        kn_set_grad(w, NULL);
        if (!loss || kn_backward(loss) != KN_OK)
            break;

        KN_NO_GRAD;
        kn_sub_(w, kn_mul_scalar(kn_grad(w), 0.1));
    }
    {
        KN_SCOPE;
        if (kn_item(kn_sum(kn_detach(w)), &self->result) != KN_OK)
            snprintf(self->problem, sizeof self->problem, "%s", kn_error_message());
    }
    kn_release(w);
    kn_stream_set_current(kn_stream_default(kn_device_current()));
    kn_stream_free(stream);
    return NULL;
}

/* Each thread, alone or with others, computes the same bits. */
static void test_threads_with_streams(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    worker alone[THREADS] = {0}, together[THREADS] = {0};
    for (int i = 0; i < THREADS; i++) {
        alone[i].number = together[i].number = i + 1;
        train_alone(&alone[i]);
        assert_string_equal(alone[i].problem, "");
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&together[i].thread, NULL, train_alone, &together[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(together[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_string_equal(together[i].problem, "");
        assert_true(together[i].result == alone[i].result);
    }
}

/* A wait orders one stream after another. */
static void test_waiting(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    kn_stream *other = kn_stream_new(device);
    CHECK_NEW(other);
    for (int round = 0; round < 40; round++) {
        KN_SCOPE;
        kn_tensor *x = kn_full(KN_SHAPE(ELEMENTS), round);
        kn_tensor *y = kn_add_scalar(kn_mul_scalar(x, 2), 1);
        CHECK_OK(kn_stream_wait_stream(other, kn_stream_default(device)));
        CHECK_OK(kn_stream_set_current(other));
        double largest = 0;
        kn_tensor *z = kn_max(kn_add_scalar(y, 1));
        CHECK_OK(kn_item(z, &largest));
        assert_true(largest == 2 * round + 2);
        CHECK_OK(kn_stream_set_current(kn_stream_default(device)));
    }
    CHECK_OK(kn_stream_free(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reuse_across_streams),
        TEST(test_threads_with_streams),
        TEST(test_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
