/* test_linger.c - threads that wait for the next launch (rt/command/linger.h): every launch is as without them, however
 * late it comes, and nobody waits for one that does not come. */
#include "rt/rt_test.h"

#include <time.h>

#include "common/affinity.h"
#include "rt/device/await.h"
#include "rt/device/device_struct.h"
#include "rt/device/driver_threads.h"
#include "rt/device/table.h"
#include "rt/stream/affinity.h"

enum { N = 5000 };

static bool lingers(const kn_device *device)
{
    return device->limits.has_affinity && device->limits.compute_units > 1 && kn_driver_threads_are_bound() &&
           !kn_wait_sleeps() && kn_device_slots() == 2; /* the host and this one */
}

static void pause_for(long nanoseconds)
{
    if (nanoseconds > 0)
        nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

static void expect_all(kn_tensor *x, float wanted)
{
    static float got[N];
    assert_ok(kn_read(x, got, sizeof got));
    for (int i = 0; i < N; i++)
        assert_float_equal(got[i], wanted, 0);
}

static void launches_early_and_late(void **state)
{
    (void)state;
    static const long pauses[] = {0, 1000, 30000, 100000, 2000000};
    for (size_t p = 0; p < sizeof pauses / sizeof pauses[0]; p++) {
        KN_SCOPE;
        kn_tensor *x = kn_zeros(KN_SHAPE(N));
        for (int i = 0; i < 200; i++) {
            assert_new(kn_add_scalar_(x, 1));
            if (i % 8 == 0)
                pause_for(pauses[p]);
        }
        expect_all(x, 200);
    }
}

/* They have their own queue, which is empty soon after the last launch. */
static void they_give_up(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_device *device = kn_device_current();
    kn_tensor *x = kn_zeros(KN_SHAPE(N));
    for (int i = 0; i < 50; i++)
        assert_new(kn_add_scalar_(x, 1));
    assert_int_equal(!device->lingering.is_off, lingers(device));
    if (device->lingering.queue)
        assert_int_equal(clFinish(device->lingering.queue), CL_SUCCESS);
    expect_all(x, 50);
}

/* A kernel that does not say when it starts: those that wait for it would not come to help. */
static void a_silent_kernel_is_noted(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_device *device = kn_device_current();
    kn_stream *stream = kn_stream_current(device);
    kn_tensor *x = kn_zeros(KN_SHAPE(N));
    kn_turn turn = kn_stream_turn(stream);
    if (!turn.affinity)
        skip();
    assert_int_equal(kn_affinity_set(NULL, (kn_affinity_parameter){.index = -1}, NULL, stream, &turn), CL_SUCCESS);
    assert_int_equal(turn.affinity->silent, turn.launch);
    for (int i = 0; i < 50; i++)
        assert_new(kn_add_scalar_(x, 1));
    expect_all(x, 50);
}

/* Last: then it is off for good. */
static void a_second_stream_ends_it(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_device *device = kn_device_current();
    kn_stream *stream = kn_stream_new(device);
    assert_new(stream);
    kn_tensor *x = kn_zeros(KN_SHAPE(N));
    assert_new(kn_add_scalar_(x, 1));
    assert_ok(kn_synchronize(device));
    assert_int_equal(!device->lingering.is_off, lingers(device));
    kn_stream *before = kn_stream_current(device);
    assert_ok(kn_stream_set_current(stream));
    assert_new(kn_add_scalar_(x, 1));
    assert_ok(kn_stream_set_current(before));
    assert_ok(kn_stream_synchronize(stream));
    assert_true(device->lingering.is_off || !device->limits.has_affinity);
    expect_all(x, 2);
    assert_ok(kn_stream_free(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_early_and_late),
        cmocka_unit_test(they_give_up),
        cmocka_unit_test(a_silent_kernel_is_noted),
        cmocka_unit_test(a_second_stream_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
