/* test_graph_streams.c - replays with several streams and threads: a replay keeps its stream busy, captures do not
 * affect other streams, and other modes (guards, benchmark mode, profiler, no caching) change nothing. */
#include "graph_case.h"

#include <pthread.h>
#include <stdatomic.h>
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

/* --- other threads ---------------------------------------------------------------------------- */

typedef struct intruder {
    kn_graph *graph;
    graph_case c;
    int refused;
} intruder;

static void note_refused(intruder *self, bool refused)
{
    self->refused += refused && kn_error_status() == KN_ERR_STATE;
    kn_error_clear();
}

static void *intrude(void *user)
{
    intruder *self = user;

    KN_SCOPE;
    note_refused(self, kn_ones(KN_SHAPE(2)) == NULL);
    note_refused(self, kn_rand(KN_SHAPE(2)) == NULL);
    note_refused(self, kn_optim_step(self->c.optim) != KN_OK);
    note_refused(self, kn_stream_synchronize(kn_stream_default(kn_device_current())) == KN_OK);
    note_refused(self, kn_graph_capture_end(self->graph) != KN_OK);

    return NULL;
}

/* Another thread's work would be captured too: it is rejected, and the capture is not affected. */
static void other_threads_are_kept_out(void **state)
{
    (void)state;
    pthread_t thread;
    kn_graph *graph;
    intruder other = {0};
    kn_tensor *x = kn_ones(KN_SHAPE(2)), *y = NULL;
    case_make(&other.c, adam, KN_F32);
    case_warm_up(&other.c);
    CHECK_NEW(graph = kn_graph_new());
    other.graph = graph;
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    y = kn_mul_scalar(x, 3);
    assert_int_equal(pthread_create(&thread, NULL, intrude, &other), 0);
    pthread_join(thread, NULL);
    assert_int_equal(other.refused, 4); /* waiting is allowed: captured commands do not run */
    CHECK_OK(kn_graph_capture_end(graph));
    assert_int_equal(kn_graph_command_count(graph), 1);
    case_free(&other.c); /* its optimizer is not part of the graph */
    CHECK_OK(kn_graph_replay(graph));
    CHECK_VALUES(y, 3, 3);
    kn_graph_free(graph);
    kn_release(x);
    kn_release(y);
}

/* Memory that another thread allocates during a capture does not belong to the graph. */
static void *take_memory(void *user)
{
    kn_tensor **tensor = user;
    *tensor = kn_empty(KN_SHAPE(1000));
    return NULL;
}

static void threads_beside_a_capture_have_their_own_memory(void **state)
{
    (void)state;
    pthread_t thread;
    kn_graph *graph;
    kn_tensor *x = kn_ones(KN_SHAPE(1000)), *y = NULL, *theirs = NULL;
    CHECK_NEW(graph = kn_graph_new());
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    {
        KN_SCOPE;
        kn_add_scalar(kn_mul_scalar(x, 3), 1);
    } /* leaves free blocks in the graph's pool */
    assert_int_equal(pthread_create(&thread, NULL, take_memory, &theirs), 0);
    pthread_join(thread, NULL);
    {
        KN_SCOPE;
        y = kn_retain(kn_mul_scalar(kn_add_scalar(x, 1), 2));
    }
    CHECK_OK(kn_graph_capture_end(graph));
    CHECK_TENSOR(theirs);
    kn_fill_(theirs, 7);
    CHECK_OK(kn_graph_replay(graph));
    double *values = read_doubles(theirs);
    for (int i = 0; i < 1000; i++)
        assert_true(values[i] == 7);
    free(values);
    kn_graph_free(graph);
    kn_release(x);
    kn_release(y);
    kn_release(theirs);
}

typedef struct knocker {
    kn_stream *stream;
    atomic_bool over;
} knocker;

/* Uses the stream continuously: sometimes it succeeds, sometimes a capture is active or just ending. */
static void *knock(void *user)
{
    knocker *self = user;
    KN_STREAM(self->stream);
    while (!atomic_load(&self->over)) {
        bool done;
        {
            KN_SCOPE;
            kn_mul_scalar(kn_rand(KN_SHAPE(8)), 2);
        }
        kn_stream_query(self->stream, &done);
        kn_error_clear();
    }
    return NULL;
}

static void captures_end_while_others_knock(void **state)
{
    (void)state;
    pthread_t thread;
    knocker other = {0};
    kn_tensor *x = NULL, *y = NULL;
    CHECK_NEW(other.stream = kn_stream_new(kn_device_current()));
    {
        KN_STREAM(other.stream);
        x = kn_ones(KN_SHAPE(8));
    }
    assert_int_equal(pthread_create(&thread, NULL, knock, &other), 0);
    KN_STREAM(other.stream);
    for (int i = 0; i < 200; i++) {
        kn_graph *graph = kn_graph_new();
        CHECK_NEW(graph);
        {
            KN_GRAPH_CAPTURE(graph, NULL);
            y = kn_add_scalar(x, i);
        }
        assert_int_equal(kn_graph_command_count(graph), 1);
        CHECK_OK(kn_graph_replay(graph));
        CHECK_VALUES(y, i + 1, i + 1, i + 1, i + 1, i + 1, i + 1, i + 1, i + 1);
        kn_release(y);
        kn_graph_free(graph);
    }
    atomic_store(&other.over, true);
    pthread_join(thread, NULL);
    kn_release(x);
    CHECK_OK(kn_stream_synchronize(other.stream));
    CHECK_OK(kn_stream_free(other.stream));
}

typedef struct sharer {
    kn_stream *stream;
    int wrong;
    atomic_bool over;
} sharer;

/* Replays of one thread and operations of another on one stream: each gets correct values, and neither starves. */
static void *work_beside(void *user)
{
    sharer *self = user;
    KN_STREAM(self->stream);
    for (int i = 0; i < 150; i++) {
        KN_SCOPE;
        double sum = 0;
        kn_tensor *x = kn_full(KN_SHAPE(700 + i), i);
        for (int j = 0; j < 4; j++)
            x = kn_add_scalar(x, 1);
        self->wrong += kn_item(kn_sum(x), &sum) != KN_OK || sum != (700.0 + i) * (i + 4);
    }
    atomic_store(&self->over, true);
    return NULL;
}

static void a_stream_is_shared_by_replays_and_operations(void **state)
{
    (void)state;
    pthread_t thread;
    kn_graph *graph;
    sharer other = {0};
    int replays = 0;
    CHECK_NEW(other.stream = kn_stream_new(kn_device_current()));
    {
        KN_STREAM(other.stream);
        kn_tensor *count = kn_zeros(KN_SHAPE(900)), *ones = kn_ones(KN_SHAPE(900));
        CHECK_NEW(graph = kn_graph_new());
        {
            KN_GRAPH_CAPTURE(graph, NULL);
            KN_FUSE(false);
            KN_SCOPE;
            for (int i = 0; i < 10; i++) /* enough to start the stream's thread */
                kn_add_(count, kn_mul_scalar(ones, 2));
        }
        assert_int_equal(pthread_create(&thread, NULL, work_beside, &other), 0);
        for (; !atomic_load(&other.over); replays++)
            CHECK_OK(kn_graph_replay(graph));
        pthread_join(thread, NULL);
        assert_int_equal(other.wrong, 0);
        double *values = read_doubles(count);
        for (int i = 0; i < 900; i++)
            assert_true(values[i] == 20.0 * replays);
        free(values);
        kn_graph_free(graph);
        kn_release(count);
        kn_release(ones);
    }
    CHECK_OK(kn_stream_synchronize(other.stream));
    CHECK_OK(kn_stream_free(other.stream));
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
        TEST(a_replay_keeps_its_stream_busy),  TEST(a_replay_follows_a_stream_under_capture),
        TEST(other_threads_are_kept_out),      TEST(threads_beside_a_capture_have_their_own_memory),
        TEST(captures_end_while_others_knock), TEST(a_stream_is_shared_by_replays_and_operations),
        TEST(steps_under_a_profile),           TEST(steps_without_caching),
        TEST(steps_in_benchmark_mode),         TEST(nothing_is_written_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
