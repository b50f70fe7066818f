/* test_graph_errors.c - operations that cannot be captured, and misuse of graphs: an error each, and everything works
 * afterwards. */
#include "graph_case.h"

#include <stdlib.h>

#include "rt/rt.h"

/* A capture in which `spoil` does something that cannot be captured: it fails immediately, at the end, and at a replay;
 * afterwards the stream and the graph work. */
static void spoiled(kn_status (*spoil)(kn_tensor *x), const char *sentence)
{
    kn_tensor *x = kn_full(KN_SHAPE(4), 2), *y = NULL;
    kn_graph *graph = kn_graph_new();
    CHECK_NEW(graph);
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    assert_int_equal(spoil(x), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, sentence, "cannot be part of a graph");
    assert_int_equal(kn_graph_capture_end(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "the capture failed", sentence);
    assert_int_equal(kn_graph_replay(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "empty", sentence);
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        y = kn_mul(x, x);
    }
    CHECK_OK(kn_graph_replay(graph));
    CHECK_VALUES(y, 4, 4, 4, 4);
    kn_release(x);
    kn_release(y);
    kn_graph_free(graph);
}

static kn_status read_value(kn_tensor *x)
{
    double value;
    kn_tensor *sum = kn_sum(x);
    kn_status status = kn_item(sum, &value);
    kn_release(sum);
    return status;
}

/* An error that the user ignores: the captured commands are not the whole step. */
static void errors_fail_the_capture(void **state)
{
    (void)state;
    kn_tensor *x = kn_ones(KN_SHAPE(4));
    kn_graph *graph = kn_graph_new();
    CHECK_NEW(graph);
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        kn_relu(kn_add(x, kn_reshape(x, KN_SHAPE(3))));
    }
    assert_int_equal(kn_graph_replay(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "the capture failed", "reshape");
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        kn_relu(kn_empty(KN_SHAPE((int64_t)1 << 45)));
    }
    assert_int_equal(kn_graph_replay(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "the capture failed", "out of memory");
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        assert_null(kn_reshape(x, KN_SHAPE(3)));
        kn_error_clear(); /* handled */
        kn_relu(x);
    }
    CHECK_OK(kn_graph_replay(graph));
    kn_graph_free(graph);
    kn_release(x);
}

static kn_status wait_for_device(kn_tensor *x)
{
    (void)x;
    return kn_synchronize(kn_device_current());
}

static kn_status wait_for_stream(kn_tensor *x)
{
    (void)x;
    return kn_stream_synchronize(kn_stream_default(kn_device_current()));
}

static kn_status write_values(kn_tensor *x)
{
    const float values[4] = {0};
    return kn_write(x, values, sizeof values);
}

static kn_status record_event(kn_tensor *x)
{
    (void)x;
    kn_event *event;
    kn_status status = kn_status_of(event = kn_event_new(kn_device_current()));
    if (status == KN_OK)
        status = kn_event_record(event, NULL);
    kn_event_free(event);
    return status;
}

static kn_status add_callback(kn_tensor *x)
{
    (void)x;
    return kn_stream_add_callback(kn_stream_default(kn_device_current()), free, NULL);
}

static kn_status empty_cache(kn_tensor *x)
{
    (void)x;
    return kn_empty_cache(kn_device_current());
}

static kn_status wait_from_aside(kn_tensor *x)
{
    (void)x;
    kn_stream *side = kn_stream_new(kn_device_current());
    CHECK_NEW(side);
    kn_status status = kn_stream_wait_stream(side, kn_stream_default(kn_device_current()));
    CHECK_OK(kn_stream_free(side));
    return status;
}

static kn_status capture_again(kn_tensor *x)
{
    (void)x;
    kn_graph *second = kn_graph_new();
    CHECK_NEW(second);
    kn_status status = kn_graph_capture_begin(second, NULL);
    kn_graph_free(second);
    return status;
}

static void what_waits_cannot_be_recorded(void **state)
{
    (void)state;
    spoiled(read_value, "reading a tensor");
    spoiled(wait_for_device, "kn_stream_synchronize");
    spoiled(wait_for_stream, "kn_stream_synchronize");
    spoiled(write_values, "copying from host memory");
    spoiled(empty_cache, "kn_stream_synchronize");
}

static void events_and_other_streams_cannot_be_recorded(void **state)
{
    (void)state;
    spoiled(record_event, "recording an event");
    spoiled(add_callback, "a callback");
    spoiled(wait_from_aside, "another stream's waiting");
    spoiled(capture_again, "another capture");
}

static void a_replay_inside_a_capture_is_refused(void **state)
{
    (void)state;
    kn_graph *inner, *outer;
    kn_tensor *x = kn_zeros(KN_SHAPE(2));
    CHECK_NEW(inner = kn_graph_new());
    CHECK_NEW(outer = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(inner, NULL);
        KN_SCOPE;
        kn_relu(x);
    }
    CHECK_OK(kn_graph_capture_begin(outer, NULL));
    assert_int_equal(kn_graph_replay(inner), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "the replay of a graph cannot be part of a graph");
    assert_int_equal(kn_graph_capture_end(outer), KN_ERR_STATE);
    kn_error_clear();
    CHECK_OK(kn_graph_replay(inner));
    kn_graph_free(inner);
    kn_graph_free(outer);
    kn_release(x);
}

/* --- the order of calls ----------------------------------------------------------------------- */

static void calls_out_of_order(void **state)
{
    (void)state;
    kn_graph *graph = kn_graph_new();
    CHECK_NEW(graph);
    assert_int_equal(kn_graph_replay(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "the graph is empty");
    assert_int_equal(kn_graph_capture_end(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "not being captured by this thread");
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    assert_int_equal(kn_graph_capture_begin(graph, NULL), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "is already being captured");
    assert_int_equal(kn_graph_replay(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "still being captured");
    assert_int_equal(kn_graph_reset(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "end that first");
    CHECK_OK(kn_graph_capture_end(graph));
    assert_int_equal(kn_graph_capture_begin(graph, NULL), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "kn_graph_reset it first");
    assert_int_equal(kn_graph_set_pool(graph, kn_graph_pool(graph)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "kn_graph_reset it first");
    CHECK_OK(kn_graph_reset(graph));
    kn_graph_free(graph);
    kn_graph_free(NULL);
    assert_int_equal(kn_graph_replay(NULL), KN_ERR_ARGUMENT);
    kn_error_clear();
}

/* Freeing a graph during its capture ends the capture. */
static void freed_while_capturing(void **state)
{
    (void)state;
    kn_graph *graph;
    kn_tensor *x = kn_ones(KN_SHAPE(3));
    CHECK_NEW(graph = kn_graph_new());
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    {
        KN_SCOPE;
        CHECK_TENSOR(kn_relu(x));
    }
    kn_graph_free(graph);
    {
        KN_SCOPE;
        CHECK_VALUES(kn_relu(x), 1, 1, 1);
    }
    CHECK_NEW(graph = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        CHECK_TENSOR(kn_relu(x));
        kn_graph_free(graph); /* before the end of the block, which then is an error */
    }
    CHECK_ERROR(KN_ERR_STATE, "not being captured by this thread");
    {
        KN_SCOPE;
        CHECK_VALUES(kn_relu(x), 1, 1, 1);
    }
    kn_release(x);
}

static void a_stream_is_not_destroyed_under_a_capture(void **state)
{
    (void)state;
    kn_stream *side;
    kn_graph *graph;
    CHECK_NEW(side = kn_stream_new(kn_device_current()));
    CHECK_NEW(graph = kn_graph_new());
    CHECK_OK(kn_graph_capture_begin(graph, side));
    assert_int_equal(kn_stream_free(side), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "a graph is being captured on this stream");
    CHECK_OK(kn_graph_capture_end(graph));
    kn_graph_free(graph);
    CHECK_OK(kn_stream_free(side));
}

/* --- freeing what a graph needs ------------------------------------------------------------- */

static void freeing_during_the_capture(void **state)
{
    (void)state;
    kn_graph *graph;
    kn_tensor *x = kn_ones(KN_SHAPE(3)), *y;
    CHECK_NEW(graph = kn_graph_new());
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    CHECK_TENSOR(y = kn_relu(x));
    kn_release(x);
    assert_int_equal(kn_graph_capture_end(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "used and then freed in it");
    kn_graph_free(graph);
    kn_release(y);

    KN_SCOPE;
    CHECK_VALUES(kn_relu(kn_ones(KN_SHAPE(1))), 1);
}

static void freeing_after_the_capture(void **state)
{
    (void)state;
    kn_graph *graph;
    kn_tensor *x = kn_ones(KN_SHAPE(3)), *y = NULL;
    CHECK_NEW(graph = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        y = kn_relu(x);
    }
    CHECK_OK(kn_graph_replay(graph));
    kn_release(x);
    assert_int_equal(kn_graph_replay(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "has been freed: capture again");
    CHECK_VALUES(y, 1, 1, 1);
    kn_graph_free(graph);
    kn_release(y);
}

static void an_optimizer_needs_its_state_first(void **state)
{
    (void)state;
    graph_case c;
    kn_graph *graph;
    case_make(&c, adam, KN_F32);
    CHECK_NEW(graph = kn_graph_new());
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    {
        KN_SCOPE;
        assert_null(case_step(&c));
    }
    CHECK_ERROR(KN_ERR_STATE, "run a step before the capture");
    assert_int_equal(kn_graph_capture_end(graph), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "run a step before the capture");
    kn_optim_zero_grad(c.optim); /* gradients left by the failed capture */
    case_warm_up(&c);
    kn_tensor *loss;
    case_capture(&c, graph, &loss);
    CHECK_OK(kn_graph_replay(graph));
    kn_optim_free(c.optim);
    c.optim = NULL;
    assert_int_equal(kn_graph_replay(graph), KN_ERR_STATE);
    kn_error_clear();
    kn_release(loss);
    kn_graph_free(graph);
    case_free(&c);
}

/* --- values ----------------------------------------------------------------------------------- */

/* At each replay, on any stream, the kernel detects an index out of range, reported at the next wait. */
static void faults_of_replays_are_reported(void **state)
{
    (void)state;
    kn_graph *graph;
    kn_stream *side;
    const int64_t good[] = {1, 0}, bad[] = {1, 9};
    kn_tensor *logits = kn_zeros(KN_SHAPE(2, 3)), *target = kn_from_data(good, KN_SHAPE(2), .dtype = KN_I64),
              *loss = NULL;
    CHECK_NEW(side = kn_stream_new(kn_device_current()));
    CHECK_NEW(graph = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        loss = kn_retain(kn_cross_entropy(logits, target));
    }
    CHECK_OK(kn_graph_replay(graph));
    CHECK_OK(kn_synchronize(kn_device_current()));
    CHECK_OK(kn_write(target, bad, sizeof bad));
    for (int i = 0; i < 2; i++) {
        kn_stream *stream = i ? side : kn_stream_default(kn_device_current());
        CHECK_OK(kn_stream_wait_stream(side, kn_stream_default(kn_device_current())));
        {
            KN_STREAM(stream);
            CHECK_OK(kn_graph_replay(graph));
        }
        assert_int_equal(kn_stream_synchronize(stream), KN_ERR_ARGUMENT);
        CHECK_ERROR(KN_ERR_ARGUMENT, "cross_entropy", "9");
    }
    CHECK_OK(kn_write(target, good, sizeof good));
    CHECK_OK(kn_graph_replay(graph));
    CHECK_OK(kn_synchronize(kn_device_current()));
    kn_graph_free(graph);
    kn_release(logits);
    kn_release(target);
    kn_release(loss);
    CHECK_OK(kn_stream_synchronize(side));
    CHECK_OK(kn_stream_free(side));
}

/* Replays do not wait, however slow the device: so few of them that each write has a staging block of its own. */
static void replays_do_not_wait(void **state)
{
    (void)state;
    graph_case c;
    kn_graph *graph;
    kn_tensor *loss;
    case_make(&c, adam, KN_F32);
    case_warm_up(&c);
    CHECK_NEW(graph = kn_graph_new());
    case_capture(&c, graph, &loss);
    CHECK_OK(kn_synchronize(kn_device_current()));
    uint64_t before = kn_host_wait_count();
    for (int i = 0; i < 5; i++) {
        case_feed(&c, i);
        CHECK_OK(kn_graph_replay(graph));
    }
    assert_int_equal(kn_host_wait_count(), before);
    kn_release(loss);
    kn_graph_free(graph);
    case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_waits_cannot_be_recorded),
        TEST(errors_fail_the_capture),
        TEST(events_and_other_streams_cannot_be_recorded),
        TEST(a_replay_inside_a_capture_is_refused),
        TEST(calls_out_of_order),
        TEST(freed_while_capturing),
        TEST(a_stream_is_not_destroyed_under_a_capture),
        TEST(freeing_during_the_capture),
        TEST(freeing_after_the_capture),
        TEST(an_optimizer_needs_its_state_first),
        TEST(faults_of_replays_are_reported),
        TEST(replays_do_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
