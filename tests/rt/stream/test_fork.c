/* test_fork.c - in a forked child everything that needs a device or a thread fails immediately, and freeing does not
 * wait; a child forked before Koine's first use works normally. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/device/device_struct.h"
#include "rt/memory/pool.h"
#include "rt/rt_test.h"
#include "support/sanitized.h"

#define SECONDS 20 /* a child that takes longer is hanging */

/* Ends a child whose parent had threads. AddressSanitizer's leak check takes locks that one of these may have held at
 * the fork, and would block forever; a driver may wait for commands or threads. */
static void leave(const kn_device *device, int status)
{
    if (SANITIZED || device->quirks.fails_in_exit_after_fork)
        _exit(status);
    exit(status);
}

static int result_of(pid_t child)
{
    int status = -1;
    assert_true(child > 0);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Counts a result as a failure unless it is an error that mentions the fork. */
static int refused(kn_status status, const char *call)
{
    bool fine = status == KN_ERR_DEVICE && kn_error_status() == status && strstr(kn_error_message(), "forked");
    if (!fine)
        fprintf(stderr, "%s: %s, `%s`\n", call, kn_status_name(status), kn_error_message());
    kn_error_clear();
    return !fine;
}
#define REFUSED(call) refused(call, #call)

static kn_status status_of(const void *made) { return made ? KN_OK : kn_error_status(); }
static void ignore(void *user) { (void)user; }

typedef struct belongings {
    kn_device *device;
    kn_tensor *x, *y;
    kn_stream *stream;
    kn_event *event;
    kn_graph *graph;
    kn_pinned *pinned;
    kn_mem_pool *pool;
    kn_dataset *data;
    kn_loader *loader;
} belongings;

static belongings gather(void)
{
    belongings b = {.device = test_device()};
    b.x = kn_ones(KN_SHAPE(100));
    b.y = kn_add_scalar(b.x, 1);
    assert_new(b.stream = kn_stream_new(b.device));
    assert_new(b.event = kn_event_new(b.device));
    assert_ok(kn_event_record(b.event, b.stream));
    assert_new(b.graph = kn_graph_new());
    assert_ok(kn_graph_capture_begin(b.graph, NULL));
    for (int i = 0; i < 20; i++)
        kn_release(kn_mul(b.x, b.y));
    assert_ok(kn_graph_capture_end(b.graph));
    for (int i = 0; i < 3; i++)
        assert_ok(kn_graph_replay(b.graph));
    assert_ok(kn_pinned_alloc(&b.pinned, b.device, 100));
    assert_new(b.pool = kn_mem_pool_new(b.device));
    KN_SCOPE;
    kn_tensor *rows = kn_ones(KN_SHAPE(64, 3), .device = kn_device_host());
    assert_new(b.data = kn_tensor_dataset(rows, rows));
    assert_new(b.loader = kn_loader_new(b.data, .batch_size = 4, .num_workers = 2));
    assert_ok(kn_loader_start(b.loader, 0));
    return b;
}

static void free_all(belongings *b)
{
    kn_loader_free(b->loader);
    kn_dataset_free(b->data);
    kn_mem_pool_free(b->pool);
    kn_pinned_free(b->pinned);
    kn_graph_free(b->graph);
    kn_event_free(b->event);
    kn_stream_synchronize(b->stream);
    kn_stream_free(b->stream);
    kn_release(b->x);
    kn_release(b->y);
    kn_error_clear();
}

static int everything_is_refused(belongings *b)
{
    kn_device *opened;
    kn_stream *stream;
    kn_event *event;
    const kn_batch *batch;
    float values[100];
    bool done;
    int wrong = 0;
    kn_error_clear();
    wrong += REFUSED(kn_status_of(opened = kn_device_open("auto")));
    wrong += REFUSED(status_of(kn_ones(KN_SHAPE(3))));
    wrong += REFUSED(status_of(kn_add(b->x, b->y)));
    wrong += REFUSED(kn_read(b->x, values, sizeof values));
    wrong += REFUSED(kn_synchronize(b->device));
    wrong += REFUSED(kn_status_of(stream = kn_stream_new(b->device)));
    wrong += REFUSED(kn_stream_synchronize(b->stream));
    wrong += REFUSED(kn_stream_add_callback(b->stream, ignore, NULL));
    wrong += REFUSED(kn_status_of(event = kn_event_new(b->device)));
    wrong += REFUSED(kn_event_synchronize(b->event));
    wrong += REFUSED(kn_event_query(b->event, &done));
    wrong += REFUSED(kn_graph_replay(b->graph));
    wrong += REFUSED(kn_empty_cache(b->device));
    wrong += REFUSED(kn_loader_next(b->loader, &batch));
    wrong += REFUSED(kn_loader_start(b->loader, 1));
    wrong += kn_device_count() < 1; /* queries still work */
    kn_add(b->x, b->y);
    wrong += !strstr(kn_error_message(), "_exit") == b->device->quirks.fails_in_exit_after_fork;
    kn_error_clear();
    free_all(b);
    return wrong;
}

static void a_child_is_told(void **state)
{
    (void)state;
    belongings b = gather();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        leave(b.device, everything_is_refused(&b));
    }
    assert_int_equal(result_of(child), 0);
    double sum; /* the parent continues to work */
    KN_SCOPE;
    assert_ok(kn_item(kn_sum(kn_add(b.x, b.y)), &sum));
    assert_true(sum == 300);
    free_all(&b);
}

/* --- with threads that hold locks ------------------------------------------------------------------ */

static atomic_bool is_over;

static void *work(void *user)
{
    while (!atomic_load(&is_over)) {
        KN_SCOPE;
        kn_sum(kn_add_scalar(kn_ones(KN_SHAPE(1000), .device = user), 1));
    }
    return NULL;
}

static void beside_working_threads(void **state)
{
    (void)state;
    if (SANITIZED)
        skip(); /* the sanitizers' allocators do not survive it */
    kn_device *device = test_device();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, device), 0);
    for (int i = 0; i < 30; i++) {
        belongings b = gather();
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            leave(b.device, everything_is_refused(&b));
        }
        assert_int_equal(result_of(child), 0);
        free_all(&b);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* --- before the first use ----------------------------------------------------------------------------------------- */

static void a_child_forked_early_works(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            double sum = 0;
            KN_SCOPE;
            exit(kn_item(kn_sum(kn_ones(KN_SHAPE(100))), &sum) == KN_OK && sum == 100 ? 0 : 1);
        }
        assert_int_equal(result_of(child), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_forked_early_works), /* first */
        cmocka_unit_test(a_child_is_told),
        cmocka_unit_test(beside_working_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
