/* test_timing.c - queues have CL_QUEUE_PROFILING_ENABLE only while something is timed, and keep the order of commands
 * when they change; times that make no sense are not given. With the layer told_driver.c. */
#include "rt/rt_test.h"

#include <pthread.h>
#include <unistd.h>

#include "rt/stream/queue.h"
#include "rt/stream/submit.h"
#include "rt/told_driver.h"
#include "support/busy.h"

static told_driver *told;

/* --- queues ------------------------------------------------------------------------------------------------------- */

static void expect_launches(bool timed)
{
    const long before[2] = {told->launches[0], told->launches[1]};
    {
        KN_SCOPE;
        double sum = 0;
        assert_ok(kn_item(kn_sum(kn_add_scalar(kn_ones(KN_SHAPE(100)), 1)), &sum));
        assert_true(sum == 200);
    }
    assert_true(told->launches[timed] > before[timed]);
    assert_int_equal(told->launches[!timed], before[!timed]);
}

static void queues_have_times_while_an_event_has(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *side;
    expect_launches(false);
    kn_event *order, *first, *second;
    assert_new(order = kn_event_new_without_timing(device));
    assert_ok(kn_event_record(order, NULL));
    expect_launches(false);
    assert_new(first = kn_event_new(device));
    expect_launches(true);
    assert_new(second = kn_event_new(device));
    kn_event_free(first);
    expect_launches(true);
    assert_new(side = kn_stream_new(device));
    {
        KN_STREAM(side);
        expect_launches(true);
    }
    kn_event_free(second);
    expect_launches(false);
    {
        KN_STREAM(side);
        expect_launches(false);
    }
    kn_event_free(order);
    assert_ok(kn_stream_synchronize(side));
    assert_ok(kn_stream_free(side));
}

static void queues_have_times_while_the_profiler_records(void **state)
{
    (void)state;
    assert_ok(kn_profiler_start(.wait = 1, .active = 1));
    expect_launches(false);
    assert_ok(kn_profiler_step());
    expect_launches(true);
    assert_ok(kn_profiler_stop());
    expect_launches(false);
    kn_profiler_clear();
    assert_false(kn_emit_ranges(true, false) && kn_profiler_is_running());
    expect_launches(false);
    kn_emit_ranges(false, false);
}

static void replays_follow(void **state)
{
    (void)state;
    kn_device *device = test_device();

    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(100));
    kn_graph *graph = kn_graph_new();
    assert_non_null(x);
    assert_new(graph);
    assert_ok(kn_graph_capture_begin(graph, NULL));
    {
        KN_FUSE(false);
        for (int i = 0; i < 10; i++) /* enough for the submitting thread */
            kn_add_scalar_(x, 1);
    }
    assert_ok(kn_graph_capture_end(graph));
    assert_ok(kn_graph_replay(graph));
    assert_ok(kn_synchronize(device));
    kn_event *event;
    assert_new(event = kn_event_new(device));
    const long before[2] = {told->launches[0], told->launches[1]};
    assert_ok(kn_graph_replay(graph));
    assert_ok(kn_synchronize(device));
    assert_int_equal(told->launches[1] - before[1], 10);
    assert_int_equal(told->launches[0], before[0]);
    kn_event_free(event);
    assert_ok(kn_graph_replay(graph));
    assert_ok(kn_synchronize(device));
    assert_int_equal(told->launches[0] - before[0], 10);
    double value;
    assert_ok(kn_item(kn_select(x, 0, 7), &value));
    assert_true(value == 30);
    kn_graph_free(graph);
}

/* Makes and frees events with times, which changes the queues of all streams, until told to stop. Drivers keep what is
 * enqueued faster than it is run, so that it waits now and then. */
enum { EVENTS_AHEAD = 100 };
static atomic_bool changing;

static void *change_queues(void *device)
{
    for (int i = 1; atomic_load(&changing); i++) {
        kn_event *event = kn_event_new(device);
        kn_event_record(event, NULL); /* on the stream that the other thread uses */
        if (i % EVENTS_AHEAD == 0)
            kn_event_synchronize(event);
        kn_event_free(event);
    }
    return NULL;
}

static void commands_keep_their_order_when_queues_change(void **state)
{
    (void)state;
    enum { ROUNDS = 400, MOST_ROUNDS = 20000, N = 20000 };
    kn_device *device = test_device();
    pthread_t other;
    atomic_store(&changing, true);
    assert_int_equal(pthread_create(&other, NULL, change_queues, device), 0);
    const long before[2] = {told->launches[0], told->launches[1]};
    {
        KN_SCOPE;
        kn_tensor *x = kn_zeros(KN_SHAPE(N));
        double least = -1, most = -1, expected = 0;
        bool both = false;
        for (int i = 0; i < ROUNDS || (!both && i < MOST_ROUNDS); i++) { /* only in this order the same */
            kn_add_scalar_(x, 1);
            kn_mul_scalar_(x, i % 2 ? 0.5 : 2);
            expected = (expected + 1) * (i % 2 ? 0.5 : 2);
            both = told->launches[0] > before[0] && told->launches[1] > before[1];
        }
        assert_true(both);
        assert_ok(kn_item(kn_min(x), &least));
        assert_ok(kn_item(kn_max(x), &most));
        assert_true(least == (double)(float)expected && most == least);
    }
    atomic_store(&changing, false);
    pthread_join(other, NULL);
}

/* A thread took the queue before another changed it, and enqueues only now: what it enqueues next comes after. */
static void a_late_command_comes_before_its_threads_next(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *stream;
    assert_new(stream = kn_stream_new(device));
    const kn_turn turn = kn_stream_turn(stream);
    kn_event *timed, *next;
    bool done = true;
    cl_int error;
    assert_new(timed = kn_event_new(device));
    assert_ok(kn_stream_enter(stream, "a test"));
    assert_ptr_not_equal(kn_stream_turn(stream).queue, turn.queue);
    cl_event gate = clCreateUserEvent(device->context, &error);
    assert_int_equal(error, CL_SUCCESS);
    assert_int_equal(kn_stream_enqueued(stream, turn, clEnqueueBarrierWithWaitList(turn.queue, 1, &gate, NULL)),
                     CL_SUCCESS);
    assert_new(next = kn_event_new_without_timing(device));
    assert_ok(kn_event_record(next, stream));
    usleep(20000);
    assert_ok(kn_event_query(next, &done));
    assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    clReleaseEvent(gate);
    assert_false(done);
    assert_ok(kn_event_synchronize(next));
    kn_event_free(timed);
    kn_event_free(next);
    assert_ok(kn_stream_synchronize(stream));
    assert_ok(kn_stream_free(stream));
}

static kn_status take_long(kn_stream *stream, void *event, const unsigned char *snapshot)
{
    (void)snapshot;
    usleep(20000); /* the other thread waits by now */
    keep_busy(stream->device);
    return kn_event_record(event, stream);
}

/* A thread waits for work that another is to enqueue for it, on a queue that changes with that work. */
static void a_wait_includes_work_that_changes_the_queue(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *stream = kn_stream_current(device);
    kn_event *timed = NULL, *last;
    assert_new(last = kn_event_new_without_timing(device));
    for (int i = 0; i < 4; i++) {
        bool done = false;
        if (i % 2 == 0)
            assert_new(timed = kn_event_new(device));
        else
            kn_event_free(timed);
        assert_ok(kn_submit(stream, &(kn_submission){.subject = last, .run = take_long, .most_pending = 1}));
        assert_ok(i < 2 ? kn_synchronize(device) : kn_stream_synchronize(stream));
        assert_ok(kn_event_query(last, &done));
        assert_true(done);
    }
    kn_event_free(last);
}

/* A queue that the program has is the stream's for good, and its commands can be timed. */
static void a_shared_queue_stays(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *stream;
    assert_new(stream = kn_stream_new(device));
    void *queue = kn_native_queue(stream);
    assert_new(queue);
    cl_command_queue_properties properties = 0;
    clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    assert_true(properties & CL_QUEUE_PROFILING_ENABLE);
    kn_event *event;
    assert_new(event = kn_event_new(device));
    assert_ptr_equal(kn_native_queue(stream), queue);
    {
        KN_STREAM(stream);
        expect_launches(true);
    }
    kn_event_free(event);
    {
        KN_STREAM(stream);
        expect_launches(true);
    }
    assert_ok(kn_stream_synchronize(stream));
    assert_ok(kn_stream_free(stream));
}

/* --- times -------------------------------------------------------------------------------------------------------- */

static double held_milliseconds(kn_status *status)
{
    kn_device *device = test_device();
    kn_event *start, *end;
    double milliseconds = -1;
    assert_new(start = kn_event_new(device));
    assert_new(end = kn_event_new(device));
    assert_ok(kn_event_record(start, NULL));
    assert_ok(kn_event_synchronize(start));
    held *stream = hold(device);
    assert_ok(kn_event_record(end, NULL));
    usleep(2000);
    let_go(stream);
    assert_ok(kn_event_synchronize(end));
    *status = kn_event_elapsed_time(start, end, &milliseconds);
    kn_event_free(start);
    kn_event_free(end);
    return milliseconds;
}

/* With such a driver; the device is tried anew. */
static void with_times(told_times markers, told_times times, bool expected)
{
    kn_status status;
    atomic_store(&test_device()->times, 0);
    told->markers = markers;
    told->times = times;
    const double milliseconds = held_milliseconds(&status);
    if (expected) {
        assert_ok(status);
        assert_true(milliseconds > 2 && milliseconds < 60000);
    } else {
        assert_int_equal(status, KN_ERR_DEVICE);
        assert_message("usable");
        assert_true(milliseconds == -1);
    }
    told->markers = told->times = TOLD_TIMES;
}

static void times_that_make_no_sense_are_not_given(void **state)
{
    (void)state;
    with_times(TOLD_TIMES, TOLD_TIMES, true);
    with_times(TOLD_TIMES, TOLD_NO_TIMES, true);
    const told_times wrong[] = {TOLD_NO_TIMES, TOLD_ZEROS, TOLD_IN_OTHER_UNITS, TOLD_OUT_OF_ORDER};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        with_times(wrong[i], TOLD_TIMES, true); /* by fills */
    for (size_t i = 0; i < 3; i++)
        with_times(wrong[i], wrong[i], false);
    atomic_store(&test_device()->times, 0);
}

/* The profiler shows such commands without times. */
static void the_profiler_has_no_times_that_make_no_sense(void **state)
{
    (void)state;
    atomic_store(&test_device()->times, 0);
    told->times = TOLD_IN_OTHER_UNITS;
    assert_ok(kn_profiler_start());
    expect_launches(true);
    assert_ok(kn_profiler_stop());
    kn_profiler_totals totals;
    assert_ok(kn_profiler_get_totals(&totals));
    assert_true(totals.untimed > 0 && totals.device_time == 0);
    told->times = TOLD_TIMES;
    atomic_store(&test_device()->times, 0);
    kn_profiler_clear();
}

static void events_without_times(void **state)
{
    (void)state;
    kn_event *event, *timed;
    double milliseconds;
    assert_new(event = kn_event_new_without_timing(test_device()));
    assert_new(timed = kn_event_new(test_device()));
    assert_ok(kn_event_record(event, NULL));
    assert_ok(kn_event_record(timed, NULL));
    assert_ok(kn_event_synchronize(timed));
    assert_int_equal(kn_event_elapsed_time(timed, event, &milliseconds), KN_ERR_STATE);
    assert_message("the end event was made by kn_event_new_without_timing");
    kn_event_free(event);
    kn_event_free(timed);
}

int main(void)
{
    use_told_driver();
    if (kn_device_count() == 0 || !(told = find_told_driver()))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_have_times_while_an_event_has),
        cmocka_unit_test(queues_have_times_while_the_profiler_records),
        cmocka_unit_test(replays_follow),
        cmocka_unit_test(commands_keep_their_order_when_queues_change),
        cmocka_unit_test(a_late_command_comes_before_its_threads_next),
        cmocka_unit_test(a_wait_includes_work_that_changes_the_queue),
        cmocka_unit_test(a_shared_queue_stays),
        cmocka_unit_test(times_that_make_no_sense_are_not_given),
        cmocka_unit_test(the_profiler_has_no_times_that_make_no_sense),
        cmocka_unit_test(events_without_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
