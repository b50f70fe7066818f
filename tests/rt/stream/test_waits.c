/* test_waits.c - KOINE_WAIT=sleep and =spin: the same results, without waiting in the driver, and asleep: test_waits
 * sleep|spin. With the layer told_driver.c. */
#include "rt/rt_test.h"

#include <stdlib.h>
#include <time.h>

#include "rt/told_driver.h"
#include "support/busy.h"

enum { N = 600000 }; /* too many to be staged when written */

static told_driver *told;
static const char *mode;

static void the_driver_does_not_wait(void **state)
{
    (void)state;
    static float values[N];
    kn_device *device = test_device();
    kn_event *event;
    double sum = 0;
    {
        KN_SCOPE; /* compiled, which waits */
        assert_ok(kn_item(kn_sum(kn_add_scalar(kn_ones(KN_SHAPE(N)), 1)), &sum));
    }
    for (int i = 0; i < N; i++)
        values[i] = (float)(i % 7);
    assert_new(event = kn_event_new_without_timing(device));
    const long before = told->waits;

    KN_SCOPE;
    kn_tensor *x = kn_empty(KN_SHAPE(N));
    assert_ok(kn_write(x, values, sizeof values));
    kn_tensor *y = kn_add_scalar(x, 1);
    assert_ok(kn_item(kn_sum(y), &sum));
    double expected = N;
    for (int i = 0; i < N; i++)
        expected += values[i];
    assert_true(sum == expected);
    assert_ok(kn_read(y, values, sizeof values));
    for (int i = 0; i < N; i++)
        assert_true(values[i] == (float)(i % 7 + 1));
    for (int i = 0; i < 1000; i++) /* more launches than may be pending */
        kn_add_scalar_(y, 1);
    assert_ok(kn_event_record(event, NULL));
    assert_ok(kn_event_synchronize(event));
    assert_ok(kn_synchronize(device));
    assert_int_equal(told->waits, before);
    kn_event_free(event);
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void the_processor_is_left_to_others(void **state)
{
    (void)state;
    kn_device *device = test_device();
    const double begun = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    keep_busy(device);
    assert_ok(kn_synchronize(device));
    const double lasted = seconds_of(CLOCK_MONOTONIC) - begun, spent = seconds_of(CLOCK_THREAD_CPUTIME_ID) - used;
    assert_true(lasted > 0.05);
    if (strcmp(mode, "sleep") == 0)
        assert_true(spent < 0.2 * lasted);
    else
        assert_true(spent > 0.001); /* at least while it runs at all */
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : "sleep";
    setenv("KOINE_WAIT", mode, 1);
    use_told_driver();
    if (kn_device_count() == 0 || !(told = find_told_driver()))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_does_not_wait),
        cmocka_unit_test(the_processor_is_left_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
