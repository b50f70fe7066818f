/* test_stress.c - four threads with random streams, events, allocations, copies, graphs and operations on two devices,
 * for as long as KOINE_STRESS_SECONDS says; each thread's values must be those of a sequential run of the same random
 * choices on the default stream, bit for bit, and nothing may be left behind. A failure prints its seed:
 * KOINE_STRESS_SEED starts there. */
#include "rt_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, VALUES = 6, STREAMS = 3, CHOICES = 60 };

/* One thread's course. A value is written by one stream at a time; what orders its readers is the event after that. */
typedef struct course {
    uint64_t random;
    bool concurrent; /* else everything on the default stream */
    kn_device *device, *other;
    int64_t length;
    kn_tensor *values[VALUES];
    kn_event *written[VALUES];
    kn_stream *streams[STREAMS];
    int problems, expected_callbacks;
    atomic_int callbacks;
    double checksum;
    char message[256];
} course;

static uint32_t draw(course *c, uint32_t below)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(c->random >> 33) % below;
}

static void expect(course *c, bool fine, const char *what)
{
    if (fine)
        return;
    if (c->problems++ == 0)
        snprintf(c->message, sizeof c->message, "%s: %s", what, kn_error_message());
    kn_error_clear();
}
#define EXPECT(call) expect(c, (call) == KN_OK, #call)

/* --- order ------------------------------------------------------------------------------------ */

/* Makes one of the streams current, after all that wrote the values `a` and `b`. Draws the same numbers either way. */
static void choose_stream(course *c, int a, int b)
{
    kn_stream *stream = c->streams[draw(c, STREAMS)];
    if (!c->concurrent)
        return;
    EXPECT(kn_stream_set_current(stream));
    EXPECT(kn_stream_wait_event(stream, c->written[a]));
    EXPECT(kn_stream_wait_event(stream, c->written[b]));
}

/* The current stream goes on after all others of the thread: for changes in place, which readers must not see. */
static void join_streams(course *c)
{
    for (int i = 0; i < STREAMS && c->concurrent; i++)
        if (c->streams[i] != kn_stream_current(c->device))
            EXPECT(kn_stream_wait_stream(kn_stream_current(c->device), c->streams[i]));
}

static void note_written(course *c, int v)
{
    if (c->concurrent)
        EXPECT(kn_event_record(c->written[v], NULL));
}

/* Value `v` becomes `tensor` (owned by the scope); the old one is dropped while others may still read it. */
static void put(course *c, int v, kn_tensor *tensor)
{
    expect(c, tensor != NULL, "an operation");
    if (!tensor)
        return;
    kn_release(c->values[v]);
    c->values[v] = kn_retain(tensor);
    note_written(c, v);
}

/* --- choices ---------------------------------------------------------------------------------- */

static void mix(course *c, int a, int b, int to)
{
    choose_stream(c, a, b);
    put(c, to, kn_mul_scalar(kn_add(c->values[a], c->values[b]), 0.5));
}

static void rectify(course *c, int a, int b, int to)
{
    choose_stream(c, a, b);
    put(c, to, kn_sub(kn_relu(c->values[a]), kn_mul_scalar(c->values[b], 0.25)));
}

static void change_in_place(course *c, int a, int b, int to)
{
    (void)to;
    choose_stream(c, a, b);
    join_streams(c);
    expect(c, kn_mul_scalar_(kn_add_(c->values[a], c->values[b]), 0.5) != NULL, "in place");
    for (int v = 0; v < VALUES; v++) /* whoever reads or changes one next comes after */
        note_written(c, v);
}

static void through_the_host(course *c, int a, int b, int to)
{
    choose_stream(c, a, b);
    size_t bytes = (size_t)c->length * sizeof(float);
    float *copy = malloc(bytes + 1);
    kn_tensor *back = kn_empty(KN_SHAPE(c->length));
    EXPECT(kn_read(c->values[a], copy, bytes));
    EXPECT(kn_write(back, copy, bytes));
    memset(copy, 0xFF, bytes);
    free(copy);
    put(c, to, back);
}

static void through_the_other_device(course *c, int a, int b, int to)
{
    choose_stream(c, a, b);
    put(c, to, kn_to(kn_mul_scalar(kn_to(c->values[a], c->other), 0.5), c->device));
}

static void add_up(course *c, int a, int b, int to)
{
    (void)to;
    double sum = 0;
    choose_stream(c, a, b);
    EXPECT(kn_item(kn_sum(kn_mul(c->values[a], c->values[b])), &sum));
    c->checksum += sum;
}

static void make_noise(course *c, int a, int b, int to)
{
    (void)to;
    choose_stream(c, a, b);
    for (int i = 0; i < 4; i++) {
        kn_tensor *noise = kn_full(KN_SHAPE(1 + draw(c, 300000)), 3);
        expect(c, noise != NULL, "noise");
        if (i % 2)
            expect(c, kn_relu(noise) != NULL, "noise");
    }
}

static void in_a_graph(course *c, int a, int b, int to)
{
    kn_graph *graph = NULL;
    kn_tensor *result = NULL, *sum;
    int replays = 1 + (int)draw(c, 3);
    choose_stream(c, a, b);
    if (!c->concurrent) { /* what the graph does, eagerly */
        sum = kn_zeros(KN_SHAPE(c->length));
        for (int i = 0; i < replays; i++)
            kn_add_(sum, kn_mul_scalar(kn_add(c->values[a], c->values[b]), 0.25));
        put(c, to, kn_mul_scalar(sum, 1.0 / replays));
        return;
    }
    sum = kn_zeros(KN_SHAPE(c->length));
    EXPECT(kn_graph_create(&graph));
    KN_GRAPH_CAPTURE(graph, NULL) KN_SCOPE
    {
        for (int i = 0; i < 3; i++) /* enough commands for the stream's own thread */
            kn_relu(c->values[a]);
        result = kn_retain(kn_add_(sum, kn_mul_scalar(kn_add(c->values[a], c->values[b]), 0.25)));
        kn_relu(c->values[b]);
    }
    for (int i = 0; i < replays; i++)
        EXPECT(kn_graph_replay(graph));
    put(c, to, kn_mul_scalar(result, 1.0 / replays));
    kn_release(result);
    kn_graph_free(graph);
}

static void count_call(void *user) { atomic_fetch_add((atomic_int *)user, 1); }

static void look_around(course *c, int a, int b, int to)
{
    bool done;
    double milliseconds;
    uint64_t free_bytes, total;
    choose_stream(c, a, b);
    int choice = (int)draw(c, 6);
    if (!c->concurrent)
        return;
    switch (choice) {
    case 0:
        EXPECT(kn_event_query(c->written[to], &done));
        break;
    case 1:
        EXPECT(kn_event_synchronize(c->written[a]));
        EXPECT(kn_event_synchronize(c->written[b]));
        EXPECT(kn_event_elapsed_time(c->written[a], c->written[b], &milliseconds));
        break;
    case 2:
        c->expected_callbacks++;
        EXPECT(kn_stream_add_callback(kn_stream_current(c->device), count_call, &c->callbacks));
        break;
    case 3:
        EXPECT(kn_mem_get_info(c->device, &free_bytes, &total));
        kn_free(kn_memory_summary(c->device));
        break;
    case 4:
        EXPECT(kn_empty_cache(c->device));
        break;
    default:
        EXPECT(kn_synchronize(c->device));
    }
}

static void exchange_stream(course *c, int a, int b, int to)
{
    (void)to;
    choose_stream(c, a, b);
    int which = (int)draw(c, STREAMS);
    if (!c->concurrent)
        return;
    EXPECT(kn_stream_synchronize(c->streams[which]));
    EXPECT(kn_stream_set_current(kn_stream_default(c->device)));
    EXPECT(kn_stream_destroy(c->streams[which]));
    EXPECT(kn_stream_create(&c->streams[which], c->device));
}

static void (*const choices[])(course *c, int a, int b, int to) = {
    mix,    rectify,    change_in_place, through_the_host, through_the_other_device,
    add_up, make_noise, in_a_graph,      look_around,      exchange_stream,
};

/* --- a course --------------------------------------------------------------------------------- */

static void prepare(course *c)
{
    c->length = 1 + draw(c, 40000);
    for (int i = 0; i < STREAMS && c->concurrent; i++)
        EXPECT(kn_stream_create(&c->streams[i], c->device));
    for (int v = 0; v < VALUES; v++) {
        EXPECT(kn_event_create(&c->written[v], c->device));
        if (c->concurrent)
            EXPECT(kn_stream_set_current(c->streams[draw(c, STREAMS)]));
        else
            draw(c, STREAMS);
        kn_tensor *ramp = kn_arange(0, (double)c->length, 1, .dtype = KN_F32);
        put(c, v, kn_add_scalar(kn_mul_scalar(ramp, (v + 1) / 1024.0), -(double)draw(c, 9)));
    }
}

static void leave(course *c)
{
    for (int i = 0; i < STREAMS && c->concurrent; i++) {
        EXPECT(kn_stream_synchronize(c->streams[i]));
        EXPECT(kn_stream_wait_stream(kn_stream_default(c->device), c->streams[i]));
    }
    EXPECT(kn_stream_set_current(kn_stream_default(c->device)));
    for (int i = 0; i < STREAMS && c->concurrent; i++)
        EXPECT(kn_stream_destroy(c->streams[i]));
    for (int v = 0; v < VALUES; v++)
        kn_event_free(c->written[v]);
    expect(c, c->expected_callbacks == atomic_load(&c->callbacks), "callbacks");
}

static void *run(void *user)
{
    course *c = user;
    expect(c, kn_device_set_current(c->device) == KN_OK, "the device");
    KN_SCOPE { prepare(c); }
    for (int i = 0; i < CHOICES && c->problems == 0; i++) {
        uint32_t choice = draw(c, sizeof choices / sizeof choices[0]);
        int a = (int)draw(c, VALUES), b = (int)draw(c, VALUES), to = (int)draw(c, VALUES);
        KN_SCOPE { choices[choice](c, a, b, to); }
    }
    leave(c);
    return NULL;
}

static void compare(const course *one, const course *two, uint64_t seed)
{
    if (one->problems || two->problems)
        fail_msg("seed %llu: %s%s", (unsigned long long)seed, one->message, two->message);
    size_t bytes = (size_t)one->length * sizeof(float);
    float *x = malloc(bytes), *y = malloc(bytes);
    for (int v = 0; v < VALUES; v++) {
        assert_ok(kn_read(one->values[v], x, bytes));
        assert_ok(kn_read(two->values[v], y, bytes));
        for (int64_t i = 0; i < one->length; i++)
            if (memcmp(&x[i], &y[i], sizeof(float)) != 0)
                fail_msg("seed %llu: value %d differs at %lld of %lld: %g, sequentially %g", (unsigned long long)seed,
                         v, (long long)i, (long long)one->length, (double)x[i], (double)y[i]);
        kn_release(one->values[v]);
        kn_release(two->values[v]);
    }
    if (memcmp(&one->checksum, &two->checksum, sizeof(double)) != 0)
        fail_msg("seed %llu: the sums differ: %g, sequentially %g", (unsigned long long)seed, one->checksum,
                 two->checksum);
    free(x);
    free(y);
}

static void episode(uint64_t seed)
{
    course together[THREADS] = {0}, alone[THREADS] = {0};
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        kn_device *device = kn_device_at(t % kn_device_count()), *other = kn_device_at((t + 1) % kn_device_count());
        together[t] =
            (course){.random = seed * THREADS + (uint64_t)t, .concurrent = true, .device = device, .other = other};
        alone[t] = (course){.random = seed * THREADS + (uint64_t)t, .device = device, .other = other};
        assert_int_equal(pthread_create(&threads[t], NULL, run, &together[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++) {
        run(&alone[t]);
        compare(&together[t], &alone[t], seed);
    }
    for (int d = 0; d < kn_device_count(); d++)
        assert_int_equal(kn_memory_allocated(kn_device_at(d)), 0);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void threads_agree_with_a_sequential_run(void **state)
{
    (void)state;
    const char *seconds = getenv("KOINE_STRESS_SECONDS"), *first = getenv("KOINE_STRESS_SEED");
    double end = seconds_now() + (seconds ? atof(seconds) : 5);
    uint64_t start = first ? strtoull(first, NULL, 10) : 1, seed = start;
    do
        episode(seed++);
    while (seconds_now() < end);
    print_message("%llu episodes of %d threads, %d choices each\n", (unsigned long long)(seed - start), THREADS,
                  CHOICES);
    for (int d = 0; d < kn_device_count(); d++) { /* graphs, events, streams: nobody holds memory any more */
        assert_ok(kn_empty_cache(kn_device_at(d)));
        assert_int_equal(kn_memory_reserved(kn_device_at(d)), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_agree_with_a_sequential_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
