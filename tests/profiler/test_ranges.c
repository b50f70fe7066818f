/* Ranges and marks without a listener and with the profiler: depth, misuse, threads; profiling while four threads
 * enqueue on their own streams. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/check.h"

static void ranges_count_their_depth(void **state)
{
    (void)state;
    assert_int_equal(kn_range_depth(), 0);
    CHECK_OK(kn_range_push("one"));
    CHECK_OK(kn_range_push_format("two of %d", 2));
    assert_int_equal(kn_range_depth(), 2);
    CHECK_OK(kn_range_pop());
    CHECK_OK(kn_range_pop());
    assert_int_equal(kn_range_pop(), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "a pop too many");
    assert_int_equal(kn_range_depth(), 0);
    assert_int_equal(kn_range_push(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "name");
    assert_int_equal(kn_mark(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "name");
    CHECK_OK(kn_mark("nobody hears it"));
}

static int leaves_early(void)
{
    {
        KN_RANGE("outer");
        {
            KN_RANGE("inner");
            return kn_range_depth();
        }
    }
    return -1;
}

static void blocks_close_however_they_are_left(void **state)
{
    (void)state;
    assert_int_equal(leaves_early(), 2);
    assert_int_equal(kn_range_depth(), 0);
    for (int i = 0; i < 3; i++) {
        KN_RANGE("loop");
        if (i == 1)
            break; /* leaves the loop and the range */
        assert_int_equal(kn_range_depth(), 1);
    }
    assert_int_equal(kn_range_depth(), 0);
}

static void *end_range(void *id)
{
    kn_status status = kn_range_end(*(uint64_t *)id);
    return (void *)(intptr_t)status;
}

static void ranges_end_on_other_threads(void **state)
{
    uint64_t first, second;
    kn_profiler_totals totals;
    pthread_t thread;
    void *status;
    (void)state;
    CHECK_OK(kn_profiler_start());
    first = kn_range_start("first");
    second = kn_range_start("second");
    assert_true(first != 0 && second != 0);
    assert_int_equal(pthread_create(&thread, NULL, end_range, &first), 0);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, KN_OK);
    CHECK_OK(kn_range_end(second));
    assert_int_equal(kn_range_end(second), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "is not open");
    assert_int_equal(kn_range_start(NULL), 0);
    CHECK_ERROR(KN_ERR_ARGUMENT, "name");
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_get_totals(&totals));
    assert_int_equal(totals.ranges, 2);
    assert_int_equal(totals.still_open, 0);
}

/* Ranges opened before the start are popped in order, and are not part of the profile. */
static void ranges_may_be_open_when_the_profiler_starts(void **state)
{
    kn_profiler_totals totals;
    (void)state;
    CHECK_OK(kn_range_push("before"));
    CHECK_OK(kn_profiler_start());
    CHECK_OK(kn_range_push("inside"));
    CHECK_OK(kn_range_pop());
    CHECK_OK(kn_range_pop());
    CHECK_OK(kn_range_push("over the end"));
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_start()); /* a new session: ignores the end of the old range */
    CHECK_OK(kn_range_pop());
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_get_totals(&totals));
    assert_int_equal(totals.ranges, 0);
    assert_int_equal(kn_range_depth(), 0);
}

/* Deeper than the recorded depth; every push is still counted. */
static void ranges_may_be_very_deep(void **state)
{
    enum { DEPTH = 5000 };
    kn_profiler_totals totals;
    (void)state;
    CHECK_OK(kn_profiler_start());
    for (int i = 0; i < DEPTH; i++)
        CHECK_OK(kn_range_push("deep"));
    for (int i = 0; i < DEPTH; i++)
        CHECK_OK(kn_range_pop());
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_get_totals(&totals));
    assert_int_equal(totals.still_open, 0);
    assert_true(totals.ranges > 100);
    assert_int_equal(kn_range_depth(), 0);
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 60 };

static void *work(void *argument)
{
    const int64_t seed = (int64_t)(intptr_t)argument;
    kn_stream *stream = NULL;
    intptr_t wrong = 1;
    if ((stream = kn_stream_new(kn_device_current())) != NULL && kn_stream_set_current(stream) == KN_OK) {
        wrong = 0;
        for (int round = 0; round < ROUNDS; round++) {
            KN_SCOPE;
            double value = 0;
            {
                KN_RANGE("round");
                kn_tensor *x = kn_full(KN_SHAPE(100 + seed), (double)seed, .requires_grad = true);
                kn_tensor *sum = kn_sum(kn_relu(kn_mul(x, x)));
                wrong += kn_backward(sum) != KN_OK;
                wrong += kn_item(sum, &value) != KN_OK || value != (double)((100 + seed) * seed * seed);
            }
        }
    }
    kn_stream_free(stream);
    return (void *)wrong;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

static void threads_are_profiled_side_by_side(void **state)
{
    kn_profiler_totals totals;
    kn_profiler_row *rows;
    int count;
    (void)state;
    CHECK_OK(kn_profiler_start(.record_shapes = true, .profile_memory = true, .with_flops = true));
    run_threads();
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_get_totals(&totals));
    assert_int_equal(totals.ranges, THREADS * ROUNDS * 2); /* the backward pass is one */
    assert_int_equal(totals.still_open, 0);
    assert_int_equal(totals.untimed, 0);
    assert_int_equal(totals.dropped, 0);
    CHECK_NEW(rows = kn_profiler_key_averages(false, &count));
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, "relu_backward") == 0 && !rows[i].on_device)
            assert_int_equal(rows[i].count, THREADS * ROUNDS);
    kn_free(rows);
    kn_profiler_clear();
}

/* The profiler starts, steps and stops while others enqueue. */
static void *switch_profiler(void *argument)
{
    atomic_bool *stop = argument;
    intptr_t wrong = 0;
    while (!atomic_load(stop)) {
        wrong += kn_profiler_start(.warmup = 1, .active = 2, .record_shapes = true, .profile_memory = true) != KN_OK;
        for (int step = 0; step < 5; step++)
            wrong += kn_profiler_step() != KN_OK;
        wrong += kn_profiler_stop() != KN_OK;
        char *table = kn_profiler_table(.peak = false);
        wrong += table == NULL;
        kn_free(table);
    }
    return (void *)wrong;
}

static void the_profiler_may_start_and_stop_under_way(void **state)
{
    atomic_bool stop = false;
    pthread_t thread;
    void *wrong;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, switch_profiler, &stop), 0);
    run_threads();
    atomic_store(&stop, true);
    pthread_join(thread, &wrong);
    assert_null(wrong);
    kn_profiler_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ranges_count_their_depth),
        TEST(blocks_close_however_they_are_left),
        TEST(ranges_end_on_other_threads),
        TEST(ranges_may_be_open_when_the_profiler_starts),
        TEST(ranges_may_be_very_deep),
        TEST(threads_are_profiled_side_by_side),
        TEST(the_profiler_may_start_and_stop_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
