/* test_graph_streams.c - replays with several streams: a replay keeps its stream busy, captures do not affect other
 * streams, and other modes (guards, benchmark mode, profiler, no caching) change nothing. */
#include "graph_case.h"

#include <stdlib.h>

#include "rt/memory/pool.h"
#include "support/busy.h"

/* In place: with KOINE_GUARD=1 memory that is freed is waited for. */
static void add(int times)
{
    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(1000));
    for (int i = 0; i < times; i++)
        kn_add_(x, x);
}

static void a_replay_keeps_its_stream_busy(void **state)
{
    (void)state;
    kn_stream *side;
    bool done = true;
    CHECK_NEW(side = kn_stream_new(kn_device_current()));
    {
        KN_STREAM(side);
        kn_graph *graph = kn_graph_new();
        CHECK_NEW(graph);
        {
            KN_FUSE(false); /* nobody reads the sums */
            KN_GRAPH_CAPTURE(graph, NULL);
            add(10); /* enough to start the stream's thread */
        }
        CHECK_OK(kn_graph_replay(graph)); /* the first is enqueued by the caller, later ones by the stream's thread */
        for (int i = 0; i < 2; i++) {
            CHECK_OK(kn_stream_synchronize(side));
            keep_busy(kn_device_current());
            CHECK_OK(kn_graph_replay(graph));
            CHECK_OK(kn_graph_replay(graph));
            CHECK_OK(kn_stream_query(side, &done));
            assert_false(done);
        }
        CHECK_OK(kn_stream_synchronize(side));
        keep_busy(kn_device_current());
        CHECK_OK(kn_graph_replay(graph));
        CHECK_OK(kn_graph_replay(graph));
        assert_int_equal(kn_stream_free(side), KN_ERR_STATE);
        CHECK_ERROR(KN_ERR_STATE, "unfinished work");
        CHECK_OK(kn_stream_synchronize(side));
        CHECK_OK(kn_stream_query(side, &done));
        assert_true(done);
        kn_graph_free(graph);
    }
    CHECK_OK(kn_stream_synchronize(side));
    CHECK_OK(kn_stream_free(side));
}

/* A replay waits for the previous one on another stream, also while that stream is being captured; the capture
 * continues. */
static void a_replay_follows_a_stream_under_capture(void **state)
{
    (void)state;
    kn_stream *side;
    kn_graph *one, *two;
    kn_tensor *count = kn_zeros(KN_SHAPE(3)), *one_each = kn_ones(KN_SHAPE(3)), *y = NULL;
    CHECK_NEW(side = kn_stream_new(kn_device_current()));
    CHECK_NEW(one = kn_graph_new());
    CHECK_NEW(two = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(one, NULL);
        KN_SCOPE;
        kn_add_(count, one_each);
    }
    CHECK_OK(kn_graph_replay(one));
    {
        KN_GRAPH_CAPTURE(two, NULL);
        y = kn_mul_scalar(count, 2);

        KN_STREAM(side);
        CHECK_OK(kn_graph_replay(one));
    }
    CHECK_OK(kn_stream_wait_stream(kn_stream_default(kn_device_current()), side));
    CHECK_OK(kn_graph_replay(two));
    CHECK_VALUES(y, 4, 4, 4);
    kn_graph_free(one);
    kn_graph_free(two);
    kn_release(count);
    kn_release(one_each);
    kn_release(y);
    CHECK_OK(kn_stream_synchronize(side));
    CHECK_OK(kn_stream_free(side));
}

/* --- other modes -------------------------------------------------------------------------- */

/* Compares replayed steps with eager ones. */
static void check_steps(void)
{
    graph_case eager, graphed;
    kn_graph *graph;
    kn_tensor *loss;
    case_make(&eager, adam, KN_F32);
    case_warm_up(&eager);
    for (int i = 0; i < 3; i++) {
        KN_SCOPE;
        case_feed(&eager, i);
        CHECK_TENSOR(case_step(&eager));
    }
    case_make(&graphed, adam, KN_F32);
    case_warm_up(&graphed);
    CHECK_NEW(graph = kn_graph_new());
    case_capture(&graphed, graph, &loss);
    for (int i = 0; i < 3; i++) {
        case_feed(&graphed, i);
        CHECK_OK(kn_graph_replay(graph));
    }
    check_same_parameters(&eager, &graphed);
    kn_release(loss);
    kn_graph_free(graph);
    case_free(&eager);
    case_free(&graphed);
}

static void steps_under_a_profile(void **state)
{
    (void)state;
    CHECK_OK(kn_profiler_start());
    check_steps();
    CHECK_OK(kn_profiler_stop());
}

static void steps_without_caching(void **state)
{
    (void)state;
    kn_caching_allocator_enable(false);
    check_steps();
    for (int i = 0; i < 20; i++) { /* memory freed to the driver before its replay is enqueued */
        kn_graph *graph;
        kn_tensor *x = kn_ones(KN_SHAPE(500)), *y = NULL;
        CHECK_NEW(graph = kn_graph_new());
        {
            KN_GRAPH_CAPTURE(graph, NULL);
            KN_SCOPE;
            kn_tensor *sum = x;
            for (int j = 0; j < 30; j++)
                sum = kn_add(sum, x);
            y = kn_retain(sum);
        }
        CHECK_OK(kn_graph_replay(graph));
        CHECK_OK(kn_graph_replay(graph));
        kn_release(x);
        double *values = read_doubles(y);
        assert_true(values[0] == 31 && values[499] == 31);
        free(values);
        kn_graph_free(graph);
        kn_release(y);
    }
    kn_caching_allocator_enable(true);
}

static void steps_in_benchmark_mode(void **state)
{
    (void)state;
    kn_graph *graph;
    kn_tensor *a = kn_ones(KN_SHAPE(37, 41)), *b = kn_ones(KN_SHAPE(41, 43)), *c = NULL;
    bool before = kn_get_benchmark();
    kn_set_benchmark(true);
    CHECK_NEW(graph = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        c = kn_retain(kn_matmul(a, b));
    } /* new problems: nothing is timed */
    CHECK_OK(kn_graph_replay(graph));
    double *values = read_doubles(c);
    assert_true(values[0] == 41 && values[37 * 43 - 1] == 41);
    free(values);
    kn_graph_free(graph);
    kn_release(a);
    kn_release(b);
    kn_release(c);
    kn_set_benchmark(before);
}

/* In guard mode (a second run of this program), blocks of a graph that share memory are not violations. */
static void nothing_is_written_outside(void **state)
{
    (void)state;
    assert_int_equal(kn_pool_read_figures(kn_device_current()).guard_violations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_replay_keeps_its_stream_busy), TEST(a_replay_follows_a_stream_under_capture),
        TEST(steps_under_a_profile),          TEST(steps_without_caching),
        TEST(steps_in_benchmark_mode),        TEST(nothing_is_written_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
