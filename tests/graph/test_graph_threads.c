/* test_graph_threads.c - captures and replays beside other threads: these are kept out of a capture, may wait
 * meanwhile, and may share a stream with replays. */
#include "graph_case.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "rt/stream/deferral.h"

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
            KN_FUSE(true);
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

/* --- a capture that begins while another thread waits ------------------------------------------------------------- */

static struct {
    pthread_t waiter;
    kn_status status; /* of the wait */
    kn_status (*enqueue)(kn_deferral *deferral, const kn_buffer *const *used, int count);
    sem_t has_looked, has_captured;
} late;

/* Of the stream's deferral: called when the waiting thread has found that nothing is being captured. */
static kn_status enqueue_late(kn_deferral *deferral, const kn_buffer *const *used, int count)
{
    if (pthread_equal(pthread_self(), late.waiter)) {
        sem_post(&late.has_looked);
        sem_wait(&late.has_captured);
    }
    return late.enqueue(deferral, used, count);
}

static void *wait_for_all(void *user)
{
    late.waiter = pthread_self();
    late.status = kn_synchronize(user);
    return NULL;
}

static void a_wait_passes_over_a_capture_that_begins_meanwhile(void **state)
{
    (void)state;
    pthread_t thread;
    kn_graph *graph;
    kn_device *device = kn_device_current();
    kn_tensor *x = kn_ones(KN_SHAPE(3)), *y, *z;
    CHECK_NEW(graph = kn_graph_new());
    sem_init(&late.has_looked, 0, 0);
    sem_init(&late.has_captured, 0, 0);
    KN_FUSE(true);
    y = kn_add_scalar(x, 1); /* deferred, so that the wait has something to enqueue */
    kn_deferral *deferral = kn_stream_deferral(kn_stream_current(device));
    late.enqueue = deferral->enqueue;
    deferral->enqueue = enqueue_late;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_all, device), 0);
    sem_wait(&late.has_looked);
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    z = kn_mul_scalar(y, 3); /* deferred: for this thread to record */
    sem_post(&late.has_captured);
    pthread_join(thread, NULL);
    assert_int_equal(late.status, KN_OK);
    CHECK_OK(kn_graph_capture_end(graph));
    deferral->enqueue = late.enqueue;
    assert_int_equal(kn_graph_command_count(graph), 1);
    CHECK_OK(kn_graph_replay(graph));
    CHECK_VALUES(z, 6, 6, 6);
    sem_destroy(&late.has_looked);
    sem_destroy(&late.has_captured);
    kn_graph_free(graph);
    kn_release(x);
    kn_release(y);
    kn_release(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(other_threads_are_kept_out),
        TEST(threads_beside_a_capture_have_their_own_memory),
        TEST(captures_end_while_others_knock),
        TEST(a_stream_is_shared_by_replays_and_operations),
        TEST(a_wait_passes_over_a_capture_that_begins_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
