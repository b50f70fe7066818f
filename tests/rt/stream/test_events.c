/* test_events.c - events, elapsed time, queries, priorities, callbacks, the current stream, unnecessary waits; and
 * misuse. */
#include "rt/rt_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "rt/rt.h"
#include "support/busy.h"

static void events_time_the_device(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_event *start, *end;
    double milliseconds = -1, back;
    bool done;
    assert_new(start = kn_event_new(device));
    assert_new(end = kn_event_new(device));
    assert_ok(kn_event_record(start, NULL));
    assert_ok(kn_event_synchronize(start));
    held *stream = hold(device);
    assert_ok(kn_event_record(end, NULL));
    assert_ok(kn_event_query(end, &done));
    assert_false(done);
    assert_int_equal(kn_event_elapsed_time(start, end, &milliseconds), KN_ERR_STATE);
    assert_message("is not done yet");
    usleep(2000);
    let_go(stream);
    assert_ok(kn_event_synchronize(end));
    assert_ok(kn_event_query(end, &done));
    assert_true(done);
    assert_ok(kn_event_elapsed_time(start, end, &milliseconds));
    assert_true(milliseconds > 2 && milliseconds < 60000);
    assert_ok(kn_event_elapsed_time(end, start, &back));
    assert_true(back == -milliseconds);

    assert_ok(kn_event_record(start, NULL)); /* again: the new mark counts */
    assert_ok(kn_event_synchronize(start));
    assert_ok(kn_event_elapsed_time(start, end, &milliseconds));
    assert_true(milliseconds < 0);
    kn_event_free(start);
    kn_event_free(end);
    kn_event_free(NULL);
}

static void events_never_recorded(void **state)
{
    (void)state;
    kn_event *event;
    bool done = false;
    double milliseconds;
    assert_new(event = kn_event_new(test_device()));
    assert_ok(kn_event_query(event, &done));
    assert_true(done);
    assert_ok(kn_event_synchronize(event));
    assert_ok(kn_stream_wait_event(kn_stream_default(test_device()), event));
    assert_int_equal(kn_event_elapsed_time(event, event, &milliseconds), KN_ERR_STATE);
    assert_message("never recorded");
    kn_event_free(event);
}

static void events_order_streams(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *side;
    kn_event *event;
    assert_new(side = kn_stream_new(device));
    assert_new(event = kn_event_new(device));
    for (int round = 0; round < 20; round++) {
        KN_SCOPE;
        kn_tensor *x = kn_full(KN_SHAPE(200000), round), *y = NULL;
        kn_tensor *z = kn_add_scalar(kn_mul_scalar(x, 2), 1);
        double sum;
        assert_ok(kn_event_record(event, NULL));
        assert_ok(kn_stream_wait_event(side, event));
        {
            KN_STREAM(side);
            assert_ptr_equal(kn_stream_current(device), side);
            y = kn_sum(z);
            assert_ok(kn_item(y, &sum));
        }
        assert_true(sum == 200000.0 * (2 * round + 1));
    }
    assert_ptr_equal(kn_stream_current(device), kn_stream_default(device));
    kn_event_free(event);
    assert_ok(kn_stream_free(side));
}

static void two_devices_have_their_own_events(void **state)
{
    (void)state;
    if (kn_device_count() < 2)
        skip();
    kn_device *a = kn_device_at(0), *b = kn_device_at(1);
    kn_event *here, *there;
    double milliseconds;
    assert_new(here = kn_event_new(a));
    assert_new(there = kn_event_new(b));
    assert_ok(kn_event_record(here, kn_stream_default(a)));
    assert_int_equal(kn_event_record(here, kn_stream_default(b)), KN_ERR_DEVICE);
    assert_message("an event orders work on one device");
    assert_int_equal(kn_stream_wait_event(kn_stream_default(b), here), KN_ERR_DEVICE);
    assert_message("an event orders work on one device");
    assert_int_equal(kn_stream_wait_stream(kn_stream_default(b), kn_stream_default(a)), KN_ERR_DEVICE);
    assert_message("an event orders work on one device");
    assert_ok(kn_event_record(there, kn_stream_default(b)));
    assert_int_equal(kn_event_elapsed_time(here, there, &milliseconds), KN_ERR_DEVICE);
    assert_message("their clocks differ");
    kn_event_free(here);
    kn_event_free(there);
}

/* --- streams ---------------------------------------------------------------------------------- */

static void a_busy_stream_is_not_destroyed(void **state)
{
    (void)state;
    kn_device *device = test_device();
    kn_stream *side;
    held *stream = NULL;
    bool done;
    assert_new(side = kn_stream_new(device));
    assert_ok(kn_stream_query(side, &done));
    assert_true(done);
    {
        KN_STREAM(side);
        stream = hold(device);
    }
    assert_ok(kn_stream_query(side, &done));
    assert_false(done);
    assert_int_equal(kn_stream_free(side), KN_ERR_STATE);
    assert_message("kn_stream_synchronize it first");
    let_go(stream);
    assert_ok(kn_stream_synchronize(side));
    assert_ok(kn_stream_query(side, &done));
    assert_true(done);
    assert_ok(kn_stream_free(side));
}

typedef struct holder {
    kn_device *device;
    kn_stream *stream;
    pthread_barrier_t barrier;
    int problems;
} holder;

static void *use_destroyed(void *user)
{
    holder *h = user;
    h->problems += kn_stream_set_current(h->stream) != KN_OK;
    pthread_barrier_wait(&h->barrier); /* it is this thread's current one */
    pthread_barrier_wait(&h->barrier); /* it was destroyed, and its struct may be reused */
    h->problems += kn_ones(KN_SHAPE(2)) != NULL || kn_error_status() != KN_ERR_STATE;
    h->problems += strstr(kn_error_message(), "has been destroyed") == NULL;
    kn_error_clear();
    h->problems += kn_stream_current(h->device) != kn_stream_default(h->device);
    return NULL;
}

static void a_destroyed_stream_is_noticed_by_other_threads(void **state)
{
    (void)state;
    pthread_t thread;
    holder h = {.device = test_device()};
    kn_stream *next;
    assert_new(h.stream = kn_stream_new(h.device));
    pthread_barrier_init(&h.barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, use_destroyed, &h), 0);
    pthread_barrier_wait(&h.barrier);
    uint64_t id = kn_stream_id(h.stream);
    assert_ok(kn_stream_free(h.stream));
    assert_int_equal(kn_stream_set_current(h.stream), KN_ERR_STATE);
    assert_message("has been destroyed");
    assert_new(next = kn_stream_new(h.device));
    assert_true(kn_stream_id(next) != id);
    pthread_barrier_wait(&h.barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&h.barrier);
    assert_int_equal(h.problems, 0);
    assert_ok(kn_stream_free(next));
}

static void priorities_are_moved_into_the_range(void **state)
{
    (void)state;
    int least, greatest;
    kn_stream *stream;
    assert_ok(kn_stream_priority_range(test_device(), &least, &greatest));
    assert_true(greatest <= 0 && least >= 0);
    const int wanted[] = {-5, 0, 7}, expected[] = {greatest, 0, least};
    for (int i = 0; i < 3; i++) {
        assert_new(stream = kn_stream_new_with_priority(test_device(), wanted[i]));
        assert_int_equal(kn_stream_priority(stream), expected[i]);
        {
            KN_STREAM(stream);
            KN_SCOPE;
            double sum;
            assert_ok(kn_item(kn_sum(kn_ones(KN_SHAPE(10))), &sum));
            assert_true(sum == 10);
        }
        assert_ok(kn_stream_free(stream));
    }
}

static void without_a_stream_nothing_runs_to_the_end_of_the_block(void **state)
{
    (void)state;
    {
        KN_STREAM(NULL);
        assert_null(kn_stream_current(test_device()));
    }
    assert_non_null(kn_stream_current(test_device()));
    assert_message("KN_STREAM: argument `stream` is NULL");
}

/* --- callbacks -------------------------------------------------------------------------------- */

typedef struct journal {
    int entries[64], count;
    kn_event *event;
    bool event_was_done;
} journal;

typedef struct entry {
    journal *journal;
    int number;
} entry;

static void note(void *user)
{
    entry *e = user;
    e->journal->entries[e->journal->count++] = e->number;
}

static void callbacks_come_in_order(void **state)
{
    (void)state;
    kn_stream *stream = kn_stream_default(test_device());
    journal j = {.count = 0};
    entry entries[20];
    for (int i = 0; i < 20; i++) {
        entries[i] = (entry){&j, i};
        {
            KN_SCOPE;
            kn_relu(kn_ones(KN_SHAPE(1000)));
        }
        assert_ok(kn_stream_add_callback(stream, note, &entries[i]));
    }
    assert_ok(kn_stream_synchronize(stream)); /* waits for them */
    assert_int_equal(j.count, 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(j.entries[i], i);
}

static void look_at_event(void *user)
{
    journal *j = user;
    kn_event_query(j->event, &j->event_was_done);
    j->count++;
    kn_synchronize(kn_device_current()); /* allowed: it does not wait for itself */
}

static void callbacks_come_after_the_work(void **state)
{
    (void)state;
    kn_device *device = test_device();
    journal j = {.count = 0};
    assert_new(j.event = kn_event_new(device));
    keep_busy(device);
    assert_ok(kn_event_record(j.event, NULL));
    assert_ok(kn_stream_add_callback(kn_stream_default(device), look_at_event, &j));
    assert_ok(kn_synchronize(device));
    assert_int_equal(j.count, 1);
    assert_true(j.event_was_done);
    kn_event_free(j.event);
}

/* --- waits ------------------------------------------------------------------------------------ */

static void waits_are_counted_and_forbidden(void **state)
{
    (void)state;
    kn_device *device = test_device();

    KN_SCOPE;
    const float values[2] = {1, 2};
    double sum;
    kn_tensor *x = kn_from_data(values, KN_SHAPE(2)), *total = kn_sum(x);
    uint64_t before = kn_host_wait_count();
    kn_relu(x);
    assert_ok(kn_write(x, values, sizeof values)); /* staged */
    assert_int_equal(kn_host_wait_count(), before);
    assert_ok(kn_item(total, &sum));
    assert_ok(kn_synchronize(device));
    assert_int_equal(kn_host_wait_count(), before + 2);
    kn_set_sync_debug_mode(KN_SYNC_DEBUG_ERROR);
    assert_int_equal(kn_get_sync_debug_mode(), KN_SYNC_DEBUG_ERROR);
    assert_int_equal(kn_item(total, &sum), KN_ERR_STATE);
    assert_message("kn_set_sync_debug_mode forbids");
    assert_int_equal(kn_synchronize(device), KN_ERR_STATE);
    assert_message("kn_set_sync_debug_mode forbids");
    assert_non_null(kn_relu(x)); /* enqueueing does not wait */
    kn_set_sync_debug_mode(KN_SYNC_DEBUG_OFF);
    assert_ok(kn_item(total, &sum));
    assert_true(sum == 3);
}

/* More writes in flight than staging blocks, each with its own values. */
static void staged_writes_keep_their_values(void **state)
{
    (void)state;
    enum { WRITES = 60, ELEMENTS = 5000 };
    kn_tensor *tensors[WRITES];
    float *values = malloc(ELEMENTS * sizeof *values);
    keep_busy(test_device());
    for (int w = 0; w < WRITES; w++) {
        for (int i = 0; i < ELEMENTS; i++)
            values[i] = (float)w;
        tensors[w] = kn_empty(KN_SHAPE(ELEMENTS));
        assert_ok(kn_write(tensors[w], values, ELEMENTS * sizeof *values));
    }
    for (int w = 0; w < WRITES; w++) {
        assert_ok(kn_read(tensors[w], values, ELEMENTS * sizeof *values));
        for (int i = 0; i < ELEMENTS; i++)
            assert_true(values[i] == (float)w);
        kn_release(tensors[w]);
    }
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_time_the_device),
        cmocka_unit_test(events_never_recorded),
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(two_devices_have_their_own_events),
        cmocka_unit_test(a_busy_stream_is_not_destroyed),
        cmocka_unit_test(a_destroyed_stream_is_noticed_by_other_threads),
        cmocka_unit_test(priorities_are_moved_into_the_range),
        cmocka_unit_test(without_a_stream_nothing_runs_to_the_end_of_the_block),
        cmocka_unit_test(callbacks_come_in_order),
        cmocka_unit_test(callbacks_come_after_the_work),
        cmocka_unit_test(waits_are_counted_and_forbidden),
        cmocka_unit_test(staged_writes_keep_their_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
