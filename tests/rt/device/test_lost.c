/* test_lost.c - lost devices: detected by every kind of call, reported by all later ones, no further calls or waits on
 * it, everything can be released; other devices still work. With two PoCL devices and injected OpenCL errors. */
#include "rt/rt_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "tensor/tensor.h"

/* A lost device stays lost; tests may restore it, because it is not really lost. */
static void revive(kn_device *device)
{
    kn_inject_stop();
    atomic_store(&device->is_lost, false);
    atomic_store(&device->is_losing, false);
    kn_synchronize(device); /* pending reports of replays in another thread */
    kn_error_clear();
    assert_ok(kn_synchronize(device));
}

static void expect_lost(kn_status status, const char *what)
{
    if (status != KN_ERR_DEVICE || !strstr(kn_error_message(), "was lost ("))
        fail_msg("%s: %s, `%s`", what, kn_status_name(status), kn_error_message());
    kn_error_clear();
}
#define EXPECT_LOST(call) expect_lost(call, #call)

static kn_status status_of(const void *made) { return made ? KN_OK : kn_error_status(); }
#define EXPECT_NONE(call) expect_lost(status_of(call), #call)

static void ignore(void *user) { (void)user; }

/* --- what a program has on a device when it is lost ------------------------------------------- */

typedef struct belongings {
    kn_device *device;
    kn_tensor *x, *y, *shared; /* `shared` is used by both streams */
    kn_stream *stream;
    kn_event *event;
    kn_graph *graph;
    kn_pinned *pinned;
} belongings;

static belongings gather(kn_device *device)
{
    belongings b = {.device = device};
    assert_ok(kn_device_set_current(device));
    b.x = kn_ones(KN_SHAPE(100));
    b.y = kn_add_scalar(b.x, 1);
    b.shared = kn_ones(KN_SHAPE(300000));
    assert_new(b.stream = kn_stream_new(device));
    assert_ok(kn_stream_wait_stream(b.stream, kn_stream_default(device)));
    {
        KN_STREAM(b.stream);
        kn_release(kn_add(b.shared, b.shared));
    }
    assert_new(b.event = kn_event_new(device));
    assert_ok(kn_event_record(b.event, b.stream));
    assert_new(b.graph = kn_graph_new());
    assert_ok(kn_graph_capture_begin(b.graph, NULL));
    {
        KN_FUSE(false);
        for (int i = 0; i < 20; i++) /* enough for replays by a separate thread */
            kn_release(kn_mul(b.x, b.y));
    }
    assert_ok(kn_graph_capture_end(b.graph));
    for (int i = 0; i < 3; i++)
        assert_ok(kn_graph_replay(b.graph));
    assert_ok(kn_synchronize(device));
    assert_ok(kn_pinned_alloc(&b.pinned, device, 100));
    return b;
}

/* Everything can be released without device calls. */
static void give_up(belongings *b)
{
    kn_release(b->x);
    kn_release(b->y);
    kn_release(b->shared);
    assert_ok(kn_stream_free(b->stream));
    kn_event_free(b->event);
    kn_graph_free(b->graph);
    kn_pinned_free(b->pinned);
    kn_error_clear();
}

static void expect_everything_refused(belongings *b)
{
    kn_device *device = b->device, *opened = NULL;
    float values[100];
    bool done;
    kn_stream *stream;
    kn_event *event;
    kn_pinned *pinned;
    double elapsed;
    assert_true(kn_device_is_lost(device));
    EXPECT_NONE(kn_zeros(KN_SHAPE(5), .device = device));
    EXPECT_NONE(kn_add(b->x, b->y));
    EXPECT_NONE(kn_add_(b->x, b->y));
    EXPECT_NONE(kn_to(b->x, kn_device_host()));
    EXPECT_NONE(kn_matmul(b->x, b->y));
    EXPECT_LOST(kn_read(b->x, values, sizeof values));
    EXPECT_LOST(kn_synchronize(device));
    EXPECT_LOST(kn_stream_synchronize(b->stream));
    EXPECT_LOST(kn_status_of(stream = kn_stream_new(device)));
    EXPECT_LOST(kn_stream_wait_event(b->stream, b->event));
    EXPECT_LOST(kn_stream_add_callback(b->stream, ignore, NULL));
    EXPECT_LOST(kn_status_of(event = kn_event_new(device)));
    EXPECT_LOST(kn_event_record(b->event, b->stream));
    EXPECT_LOST(kn_event_query(b->event, &done));
    EXPECT_LOST(kn_event_synchronize(b->event));
    EXPECT_LOST(kn_event_elapsed_time(b->event, b->event, &elapsed));
    EXPECT_LOST(kn_graph_replay(b->graph));
    EXPECT_LOST(kn_pinned_alloc(&pinned, device, 10));
    EXPECT_LOST(kn_empty_cache(device));
    EXPECT_LOST(kn_status_of(opened = kn_device_open(kn_device_string(device))));
    assert_null(opened);
    /* Queries still work. */
    assert_true(kn_device_count() >= 2);
    assert_non_null(kn_device_name(device));
    assert_true(kn_memory_allocated(device) > 0);
}

/* --- ways of detection ------------------------------------------------------------------------- */

static kn_status launch(belongings *b)
{
    kn_tensor *sum = kn_add(b->x, b->y);
    kn_release(sum);
    return status_of(sum);
}

/* Enqueued by another thread: reported there, or at the next wait. */
static kn_status replay(belongings *b)
{
    kn_status status = kn_graph_replay(b->graph);
    return status == KN_OK ? kn_synchronize(b->device) : status;
}

/* Freed while replays are pending in that thread. */
static void a_graph_is_freed_in_the_middle(void **state)
{
    (void)state;
    belongings b = gather(kn_device_at(1));
    kn_inject(KN_CL_LAUNCH, 30, CL_DEVICE_NOT_AVAILABLE, true);
    for (int i = 0; i < 4; i++)
        kn_graph_replay(b.graph);
    kn_graph_free(b.graph);
    b.graph = NULL;
    assert_true(kn_device_is_lost(b.device));
    assert_int_equal(kn_inject_calls_after(), 0);
    give_up(&b);
    revive(b.device);
}

static kn_status read_back(belongings *b)
{
    float values[100];
    return kn_read(b->x, values, sizeof values);
}

static kn_status write_new(belongings *b)
{
    float values[100] = {0};
    kn_tensor *made = kn_from_data(values, KN_SHAPE(100), .device = b->device);
    kn_release(made);
    return status_of(made);
}

static kn_status copy(belongings *b) { return kn_copy_(b->x, b->y); }

static kn_status wait_for_all(belongings *b) { return kn_synchronize(b->device); }
static kn_status wait_for_event(belongings *b) { return kn_event_synchronize(b->event); }
/* Without timing: some drivers' markers have no times, and events that need them are recorded by a kernel. */
static kn_status mark(belongings *b)
{
    kn_event *event = kn_event_new_without_timing(b->device);
    const kn_status status = event ? kn_event_record(event, b->stream) : kn_error_status();
    kn_event_free(event);
    return status;
}

static kn_status allocate(belongings *b)
{
    kn_tensor *made = kn_empty(KN_SHAPE(10000000), .device = b->device); /* more than the pool holds */
    kn_release(made);
    return status_of(made);
}

static const struct {
    const char *name;
    kn_cl_call kind;
    kn_status (*find_out)(belongings *);
} ways[] = {
    {"launch", KN_CL_LAUNCH, launch},  {"replay", KN_CL_LAUNCH, replay},    {"read", KN_CL_READ, read_back},
    {"write", KN_CL_WRITE, write_new}, {"wait", KN_CL_WAIT, wait_for_all},  {"event", KN_CL_WAIT, wait_for_event},
    {"mark", KN_CL_MARK, mark},        {"allocate", KN_CL_ALLOC, allocate}, {"copy", KN_CL_COPY, copy},
};
#define NUM_WAYS (sizeof ways / sizeof ways[0])

static void every_way_to_find_out(void **state)
{
    (void)state;
    static const cl_int errors[] = {CL_INVALID_COMMAND_QUEUE, CL_DEVICE_NOT_AVAILABLE, CL_INVALID_CONTEXT, -9999};
    for (size_t w = 0; w < NUM_WAYS; w++)
        for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
            belongings b = gather(kn_device_at(1));
            kn_error_clear();
            kn_inject(ways[w].kind, 1, errors[e], true);
            expect_lost(ways[w].find_out(&b), ways[w].name);
            expect_everything_refused(&b);
            give_up(&b);
            int questions = errors[e] == CL_INVALID_COMMAND_QUEUE || errors[e] == CL_INVALID_CONTEXT;
            if (kn_inject_calls_after() != questions)
                fail_msg("%s: %d calls on a lost device", ways[w].name, kn_inject_calls_after());
            revive(b.device);
        }
}

/* In doubt the device is queried. If it answers (memory was short, a wrong queue), it is not lost. */
static void errors_are_looked_into(void **state)
{
    (void)state;
    belongings b = gather(kn_device_at(1));
    kn_inject(KN_CL_WAIT, 1, CL_OUT_OF_RESOURCES, false);
    assert_int_equal(kn_synchronize(b.device), KN_ERR_MEMORY);
    assert_message("CL_OUT_OF_RESOURCES");
    assert_false(kn_device_is_lost(b.device));
    kn_inject(KN_CL_WAIT, 1, CL_INVALID_COMMAND_QUEUE, false);
    assert_int_equal(kn_synchronize(b.device), KN_ERR_DEVICE);
    assert_message("CL_INVALID_COMMAND_QUEUE");
    assert_false(kn_device_is_lost(b.device));
    kn_inject(KN_CL_READ, 1, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, false);
    assert_int_equal(read_back(&b), KN_ERR_DEVICE);
    assert_false(kn_device_is_lost(b.device));
    kn_error_clear();
    assert_ok(launch(&b));
    kn_inject(KN_CL_WAIT, 1, CL_OUT_OF_RESOURCES, true);
    EXPECT_LOST(kn_synchronize(b.device));
    expect_everything_refused(&b);
    assert_int_equal(kn_inject_calls_after(), 1); /* the query itself */
    give_up(&b);
    revive(b.device);
}

static void other_errors_lose_nothing(void **state)
{
    (void)state;
    static const cl_int errors[] = {CL_INVALID_VALUE, CL_INVALID_KERNEL_ARGS, CL_OUT_OF_HOST_MEMORY, CL_MAP_FAILURE};
    belongings b = gather(kn_device_at(1));
    for (size_t w = 0; w < NUM_WAYS; w++)
        for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
            kn_inject(ways[w].kind, 1, errors[e], false);
            ways[w].find_out(&b); /* some of these are retried successfully */
            kn_inject_stop();
            kn_error_clear();
            assert_false(kn_device_is_lost(b.device));
            assert_ok(launch(&b));
        }
    assert_ok(kn_synchronize(b.device));
    give_up(&b);
}

static void the_neighbour_goes_on(void **state)
{
    (void)state;
    belongings b = gather(kn_device_at(1));
    kn_inject(KN_CL_LAUNCH, 1, CL_DEVICE_NOT_AVAILABLE, false);
    EXPECT_LOST(launch(&b));
    assert_false(kn_device_is_lost(kn_device_at(0)));
    assert_false(kn_device_is_lost(NULL));
    assert_false(kn_device_is_lost(kn_device_host()));
    {
        KN_DEVICE(kn_device_at(0));
        KN_SCOPE;
        double value;
        assert_ok(kn_item(kn_sum(kn_ones(KN_SHAPE(1000))), &value));
        assert_true(value == 1000);
        EXPECT_NONE(kn_to(b.x, kn_device_at(0)));
        EXPECT_NONE(kn_to(kn_ones(KN_SHAPE(3)), b.device));
    }
    assert_ok(kn_device_set_current(kn_device_at(0)));
    give_up(&b);
    revive(b.device);
}

/* A step's error is sticky and names the cause, like any other. */
static void a_step_says_why_it_failed(void **state)
{
    (void)state;
    kn_device *device = kn_device_at(1);
    kn_tensor *w = kn_ones(KN_SHAPE(8, 8), .device = device, .requires_grad = true);
    kn_inject(KN_CL_LAUNCH, 3, CL_INVALID_COMMAND_QUEUE, true);
    {
        KN_SCOPE;
        kn_tensor *loss = kn_sum(kn_relu(kn_matmul(w, kn_mul_scalar(kn_relu(w), 2))));
        assert_int_equal(kn_backward(loss), KN_ERR_DEVICE);
        assert_message("was lost (");
    }
    kn_release(w);
    revive(device);
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *work_until_lost(void *user)
{
    kn_device *device = user;
    kn_stream *stream;
    if ((stream = kn_stream_new(device)) == NULL || kn_stream_set_current(stream) != KN_OK)
        return NULL;
    for (int i = 0; i < 100000 && !kn_device_is_lost(device); i++) {
        {
            KN_SCOPE;
            kn_sum(kn_add_scalar(kn_ones(KN_SHAPE(1000), .device = device), 1));
        }
        if (i % 10 == 0)
            kn_stream_synchronize(stream);
    }
    kn_error_clear();
    kn_stream_free(stream);
    return NULL;
}

static void threads_all_stop(void **state)
{
    (void)state;
    kn_device *device = kn_device_at(1);
    pthread_t threads[4];
    {
        KN_SCOPE;
        kn_sum(kn_add_scalar(kn_ones(KN_SHAPE(1000), .device = device), 1));
    }
    kn_inject(KN_CL_LAUNCH, 500, CL_DEVICE_NOT_AVAILABLE, false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_until_lost, device), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(kn_device_is_lost(device));
    revive(device);
}

/* Memory that waits for another stream becomes free, because the work will never finish. */
static void shared_memory_is_freed(void **state)
{
    (void)state;
    kn_device *device = kn_device_at(1);
    uint64_t before = kn_memory_allocated(device);
    belongings b = gather(device);
    kn_release(b.shared); /* pending */
    b.shared = NULL;
    kn_inject(KN_CL_WAIT, 1, CL_DEVICE_NOT_AVAILABLE, true);
    EXPECT_LOST(kn_synchronize(device));
    give_up(&b);
    assert_int_equal(kn_inject_calls_after(), 0);
    assert_true(kn_memory_allocated(device) == before);
    revive(device);
    assert_ok(kn_empty_cache(device));
}

static void injections_from_the_environment(void **state)
{
    (void)state;
    kn_device *device = kn_device_at(1);
    static const char *const wrong[] = {"launch", "launch:0:-36", "nosuch:1:-36", "launch:1:36", "launch:1:-36x", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("KOINE_FAIL_CL", wrong[i], 1);
        kn_inject_from_environment();
        assert_ok(kn_synchronize(device));
    }
    setenv("KOINE_FAIL_CL", "wait:2:-36", 1);
    kn_inject_from_environment();
    unsetenv("KOINE_FAIL_CL");
    assert_ok(kn_stream_synchronize(kn_stream_default(device)));
    EXPECT_LOST(kn_stream_synchronize(kn_stream_default(device)));
    revive(device);
}

int main(void)
{
    if (!two_cpu_devices()) /* the test uses it */
        return 77;
    alarm(120); /* kills a hanging test */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_find_out),           cmocka_unit_test(errors_are_looked_into),
        cmocka_unit_test(other_errors_lose_nothing),       cmocka_unit_test(the_neighbour_goes_on),
        cmocka_unit_test(a_step_says_why_it_failed),       cmocka_unit_test(threads_all_stop),
        cmocka_unit_test(shared_memory_is_freed),          cmocka_unit_test(a_graph_is_freed_in_the_middle),
        cmocka_unit_test(injections_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
