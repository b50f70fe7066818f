/* stress.c - see stress.h: the actions of a course. */
#include "rt/stream/stress.h"

#include <stdio.h>
#include <stdlib.h>

#include "rt/stream/timing.h"

uint32_t draw(course *c, uint32_t below)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(c->random >> 33) % below;
}

void expect(course *c, bool fine, const char *what)
{
    if (fine)
        return;
    if (c->problems++ == 0)
        snprintf(c->message, sizeof c->message, "%s: %s", what, kn_error_message());
    kn_error_clear();
}
/* --- order ------------------------------------------------------------------------------------ */

void choose_stream(course *c, int a, int b)
{
    kn_stream *stream = c->streams[draw(c, STRESS_STREAMS)];
    if (!c->concurrent)
        return;
    EXPECT(kn_stream_set_current(stream));
    EXPECT(kn_stream_wait_event(stream, c->written[a]));
    EXPECT(kn_stream_wait_event(stream, c->written[b]));
}

void join_streams(course *c)
{
    for (int i = 0; i < STRESS_STREAMS && c->concurrent; i++)
        if (c->streams[i] != kn_stream_current(c->device))
            EXPECT(kn_stream_wait_stream(kn_stream_current(c->device), c->streams[i]));
}

void note_written(course *c, int v)
{
    if (c->concurrent)
        EXPECT(kn_event_record(c->written[v], NULL));
}

void put(course *c, int v, kn_tensor *tensor)
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
    for (int v = 0; v < STRESS_VALUES; v++) /* later readers and writers wait for it */
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
    if (!c->concurrent) { /* the graph's work, eagerly */
        sum = kn_zeros(KN_SHAPE(c->length));
        for (int i = 0; i < replays; i++)
            kn_add_(sum, kn_mul_scalar(kn_add(c->values[a], c->values[b]), 0.25));
        put(c, to, kn_mul_scalar(sum, 1.0 / replays));
        return;
    }
    sum = kn_zeros(KN_SHAPE(c->length));
    EXPECT(kn_status_of(graph = kn_graph_new()));
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        for (int i = 0; i < 3; i++) /* enough commands for the stream's thread */
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
        if (kn_timing_has_commands(c->device))
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
    int which = (int)draw(c, STRESS_STREAMS);
    if (!c->concurrent)
        return;
    EXPECT(kn_stream_synchronize(c->streams[which]));
    EXPECT(kn_stream_set_current(kn_stream_default(c->device)));
    EXPECT(kn_stream_free(c->streams[which]));
    EXPECT(kn_status_of(c->streams[which] = kn_stream_new(c->device)));
}

/* --- copies, devices, pools ------------------------------------------------------------------- */

/* To pinned host memory and back without waiting, releasing the host copy while it is being read. */
static void through_pinned_memory(course *c, int a, int b, int to)
{
    choose_stream(c, a, b);
    kn_tensor *host = kn_to_device(c->values[a], kn_device_host(), .non_blocking = true);
    expect(c, host != NULL && kn_is_pinned(host), "pinned");
    put(c, to, kn_to_device(host, c->device, .non_blocking = true));
    kn_tensor *plain = kn_zeros(KN_SHAPE(c->length), .device = kn_device_host());
    kn_tensor *pinned = kn_pin_memory(plain);
    EXPECT(kn_copy(pinned, c->values[b], .non_blocking = true));
    EXPECT(kn_copy(c->values[to], pinned, .non_blocking = true));
    note_written(c, to);
}

static void in_the_pool(course *c, int a, int b, int to)
{
    choose_stream(c, a, b);

    KN_MEM_POOL(c->pool);
    put(c, to, kn_relu(kn_sub(c->values[a], c->values[b])));
}

/* Destroys the course's pool while values in it are alive. */
static void exchange_pool(course *c, int a, int b, int to)
{
    in_the_pool(c, a, b, to);
    kn_mem_pool_free(c->pool);
    EXPECT(kn_status_of(c->pool = kn_mem_pool_new(c->device)));
}

/* Records a use that does not exist: harmless. */
static void record_a_stream(course *c, int a, int b, int to)
{
    choose_stream(c, a, b);
    kn_stream *stream = c->streams[draw(c, STRESS_STREAMS)];
    kn_tensor *sum = kn_add(c->values[a], c->values[b]);
    if (c->concurrent) {
        EXPECT(kn_record_stream(sum, stream));
        EXPECT(kn_record_stream(c->values[to], stream));
    }
    put(c, to, kn_mul_scalar(sum, 0.5));
}

/* A broadcast, half of it changed on the other device, and the sum; then chunks to the other device and back. */
static void collectively(course *c, int a, int b, int to)
{
    kn_device *const devices[] = {c->device, c->other};
    kn_tensor *copies[2], *chunks[2];
    choose_stream(c, a, b);
    if (c->device == c->other)
        return;
    EXPECT(kn_comm_broadcast(c->values[a], devices, 2, copies));
    if (c->problems)
        return;
    copies[0] = kn_mul_scalar(copies[0], 0.5);
    copies[1] = kn_mul_scalar(copies[1], 0.25);
    {
        KN_NO_GRAD;
        EXPECT(kn_comm_all_reduce(copies, 2, KN_REDUCE_MEAN));
    }
    kn_tensor *sum = kn_comm_reduce_add(copies, 2, c->device);
    const int64_t sizes[] = {c->length / 2, c->length - c->length / 2};
    EXPECT(kn_comm_scatter(sum, devices, 2, sizes, 0, chunks));
    if (c->problems == 0)
        put(c, to, kn_comm_gather(chunks, 2, 0, c->device));
}

/* --- training and reading -------------------------------------------------------------- */

static void backward_pass(course *c, int a, int b, int to)
{
    choose_stream(c, a, b);
    kn_tensor *weights = kn_clone(c->values[a]), *x = kn_reshape(c->values[b], KN_SHAPE(1, c->length));
    EXPECT(kn_set_requires_grad(weights, true));
    kn_tensor *hidden = kn_mul(kn_relu(weights), x);
    kn_tensor *loss = kn_mean(kn_mul(kn_relu(kn_sub(hidden, weights)), x));
    EXPECT(kn_backward(loss));
    if (c->problems == 0)
        put(c, to, kn_mul_scalar(kn_grad(weights), (double)c->length / 64));
}

static void switch_the_profiler(course *c, int a, int b, int to)
{
    (void)to;
    choose_stream(c, a, b);
    if (!c->profiles)
        return;
    if (kn_profiler_is_running())
        EXPECT(kn_profiler_stop());
    else
        EXPECT(kn_profiler_start(.record_shapes = true));
}

const stress_choice stress_choices[] = {
    mix,           rectify,         change_in_place, through_the_host, through_the_other_device, add_up,
    make_noise,    in_a_graph,      look_around,     exchange_stream,  through_pinned_memory,    in_the_pool,
    exchange_pool, record_a_stream, collectively,    backward_pass,    switch_the_profiler,
};
const int stress_num_choices = sizeof stress_choices / sizeof stress_choices[0];
