/* test_direct.c - launches that the calling thread runs itself (rt/direct/direct.h), and those that must not: each
 * work-item runs once, in order with whatever else is in the stream, and the results are the same bits. */
#include "rt/rt_test.h"

#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>

#include "rt/device/device_struct.h"
#include "rt/program/user_source.h"
#include "rt/rt.h"
#include "rt/stream/stream_struct.h"
#include "rt/team/team.h"
#include "support/busy.h"
#include "tensor/tensor.h"

enum { MOST = 70000, LAUNCHES = 40, THREADS = 3, ROUNDS = 400 };

/* Counts how often each number is taken; an item has its own counter, so that two with one number would lose counts. */
static const char text[] = "#include \"common/koine.clh\"\n"
                           "KN_KERNEL_ONCE(count, (KN_ARG(counts)), KN_INOUT(counts))\n"
                           "{\n"
                           "    KN_BIND_OUT(int, counts);\n"
                           "    counts[KN_ID(0)]++;\n"
                           "}\n";

static kn_user_source source;

static kn_status count_on(kn_stream *stream, kn_tensor *counts, size_t items)
{
    return kn_run(stream, .source = source.path, .kernel = "count", .dims = 1, .global = {items},
                  KN_ARGS(kn_arg_tensor(counts)));
}

static kn_tensor *zeros(void) { return kn_zeros(KN_SHAPE(MOST), .dtype = KN_I32); }

static void expect_counts(kn_tensor *counts, size_t items, int32_t wanted)
{
    static int32_t got[MOST];
    assert_ok(kn_read(counts, got, sizeof got));
    for (size_t i = 0; i < MOST; i++)
        if (got[i] != (i < items ? wanted : 0))
            fail_msg("number %zu of %zu was taken %d times in %d launches", i, items, got[i], wanted);
}

static void launches_of_any_size(void **state)
{
    (void)state;
    const size_t units = (size_t)kn_device_current()->limits.compute_units,
                 sizes[] = {1, 2, 3, units, units + 1, 2 * units - 1, 97, 4096, MOST};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        KN_SCOPE;
        kn_tensor *counts = zeros();
        for (int launch = 0; launch < LAUNCHES; launch++)
            assert_ok(count_on(kn_tensor_stream(counts), counts, sizes[i]));
        expect_counts(counts, sizes[i], LAUNCHES);
    }
}

static void streams_have_their_own(void **state)
{
    (void)state;
    enum { STREAMS = 3 };
    kn_device *device = kn_device_current();
    kn_stream *streams[STREAMS];
    kn_tensor *counts[STREAMS];
    KN_SCOPE;
    for (int s = 0; s < STREAMS; s++) {
        assert_new(streams[s] = kn_stream_new(device));
        counts[s] = zeros();
    }
    assert_ok(kn_synchronize(device));
    for (int i = 0; i < LAUNCHES; i++)
        for (size_t s = 0; s < STREAMS; s++)
            assert_ok(count_on(streams[s], counts[s], 100 + s));
    for (int s = 0; s < STREAMS; s++) {
        assert_ok(kn_stream_synchronize(streams[s]));
        assert_ok(kn_stream_free(streams[s]));
        expect_counts(counts[s], 100 + (size_t)s, LAUNCHES);
    }
}

/* Unless KOINE_DIRECT=0, which leaves it in the queue; and so are copies, events, and replays. */
static void a_launch_is_over_when_it_returns(void **state)
{
    (void)state;
    const char *wish = getenv("KOINE_DIRECT");
    const bool direct = kn_device_current()->limits.has_entries && !(wish && strcmp(wish, "0") == 0);
    KN_SCOPE;
    kn_tensor *counts = zeros(), *copy = zeros();
    kn_stream *stream = kn_tensor_stream(counts);
    kn_graph *graph = kn_graph_new();
    kn_event *event;
    assert_ok(count_on(stream, counts, 8)); /* compiles */
    assert_ok(kn_copy_(copy, counts));
    assert_ok(kn_graph_capture_begin(graph, stream));
    assert_ok(count_on(stream, counts, 8));
    assert_ok(kn_graph_capture_end(graph));
    assert_ok(kn_graph_replay(graph));
    assert_ok(kn_synchronize(kn_device_current()));
    assert_true(kn_stream_is_known_idle(stream));
    assert_ok(count_on(stream, counts, 8));
    assert_int_equal(kn_stream_is_known_idle(stream), direct);
    assert_new(event = kn_event_new_without_timing(kn_device_current()));
    assert_ok(kn_copy_(copy, counts));
    assert_ok(kn_event_record(event, stream));
    assert_ok(kn_stream_wait_event(stream, event));
    assert_int_equal(kn_stream_is_known_idle(stream), direct);
    assert_ok(kn_graph_replay(graph));
    assert_ok(count_on(stream, counts, 8));
    assert_int_equal(kn_stream_is_known_idle(stream), direct);
    expect_counts(copy, 8, 3);
    expect_counts(counts, 8, 5);
    kn_event_free(event);
    kn_graph_free(graph);
}

/* A thread's wait is over while another has made the stream wait for a third one: launches still do not wait for that,
 * whose work may wait for them. */
static void an_earlier_wait_does_not_end_one_for_another_stream(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    kn_stream *stream = kn_stream_new(device);
    kn_event *event = kn_event_new_without_timing(device);
    assert_new(stream);
    assert_new(event);
    held *other = hold(device);
    assert_ok(kn_event_record(event, NULL));
    const unsigned so_far = kn_stream_begin_wait(stream);
    assert_ok(kn_stream_wait_event(stream, event));
    kn_stream_end_wait(stream, so_far, true);
    assert_true(kn_stream_awaits_others(stream));
    let_go(other);
    assert_ok(kn_stream_synchronize(stream));
    assert_false(kn_stream_awaits_others(stream));
    kn_event_free(event);
    assert_ok(kn_stream_free(stream));
}

/* Launches of three dimensions: each id of each dimension. */
static void all_ids_of_three_dimensions(void **state)
{
    (void)state;
    enum { X = 5, Y = 3, Z = 4 };
    static const char ids[] = "#include \"common/koine.clh\"\n"
                              "KN_KERNEL_ONCE(ids, (KN_ARG(x)), KN_INOUT(x))\n"
                              "{\n"
                              "    KN_BIND_OUT(int, x);\n"
                              "    x[(KN_ID(2) * KN_SIZE(1) + KN_ID(1)) * KN_SIZE(0) + KN_ID(0)] +=\n"
                              "        100 * KN_ID(2) + 10 * KN_ID(1) + KN_ID(0);\n"
                              "}\n";
    kn_user_source writing;
    int32_t got[X * Y * Z];
    assert_ok(kn_user_source_add(&writing, "ids", ids, false));
    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(X * Y * Z), .dtype = KN_I32);
    for (int launch = 0; launch < 2; launch++)
        assert_ok(kn_run(kn_tensor_stream(x), .source = writing.path, .kernel = "ids", .dims = 3, .global = {X, Y, Z},
                         KN_ARGS(kn_arg_tensor(x))));
    assert_ok(kn_read(x, got, sizeof got));
    for (int i = 0; i < X * Y * Z; i++)
        assert_int_equal(got[i], 2 * (100 * (i / (X * Y)) + 10 * (i / X % Y) + i % X));
}

static void replays_are_launches_too(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *counts = zeros();
    kn_stream *stream = kn_tensor_stream(counts);
    kn_graph *graph = kn_graph_new();
    assert_ok(count_on(stream, counts, 33));
    assert_ok(kn_graph_capture_begin(graph, stream));
    for (int i = 0; i < 8; i++)
        assert_ok(count_on(stream, counts, 33));
    assert_ok(kn_graph_capture_end(graph));
    for (int i = 0; i < LAUNCHES; i++) {
        assert_ok(kn_graph_replay(graph));
        assert_ok(count_on(stream, counts, 33));
    }
    expect_counts(counts, 33, 1 + 9 * LAUNCHES);
    kn_graph_free(graph);
}

typedef struct worker {
    pthread_t thread;
    kn_stream *stream;
    kn_tensor *counts;
    kn_status status;
} worker;

static void *work(void *user)
{
    worker *w = user;
    for (int i = 0; i < ROUNDS && w->status == KN_OK; i++)
        w->status = count_on(w->stream, w->counts, 50);
    return NULL;
}

static void threads_share_a_stream_that_changes_queues(void **state)
{
    (void)state;
    worker workers[THREADS];
    KN_SCOPE;
    for (int t = 0; t < THREADS; t++) {
        kn_tensor *counts = zeros();
        workers[t] = (worker){.stream = kn_tensor_stream(counts), .counts = counts};
    }
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
    for (int i = 0; i < 20; i++) {
        assert_ok(kn_profiler_start());
        assert_ok(kn_profiler_stop());
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
        assert_ok(workers[t].status);
        expect_counts(workers[t].counts, 50, ROUNDS);
    }
}

/* --- order -------------------------------------------------------------------------------------------------------- */

/* Commands of the driver and direct ones in turns: only in their order they give this value. */
static void mixed_with_commands_of_the_driver(void **state)
{
    (void)state;
    KN_SCOPE;
    KN_FUSE(false);
    kn_tensor *x = kn_zeros(KN_SHAPE(1000));
    double least, most, expected = 0;
    for (int i = 0; i < 60; i++) {
        const bool watched = i % 7 == 3; /* the profiler has all of them from the driver */
        if (watched)
            assert_ok(kn_profiler_start());
        if (i % 11 == 5)
            keep_busy(kn_device_current());
        kn_add_scalar_(x, 1);
        if (watched)
            assert_ok(kn_profiler_stop());
        kn_mul_scalar_(x, i % 2 ? 0.5 : 2);
        expected = (expected + 1) * (i % 2 ? 0.5 : 2);
    }
    assert_ok(kn_item(kn_min(x), &least));
    assert_ok(kn_item(kn_max(x), &most));
    assert_true(least == expected && most == expected);
}

/* A launch does not wait for a stream that this thread is to let go. */
static void a_held_stream_does_not_hold_the_host(void **state)
{
    (void)state;
    KN_SCOPE;
    KN_FUSE(false);
    kn_tensor *x = kn_ones(KN_SHAPE(1000));
    double sum = 0;
    bool done = true;
    kn_add_scalar_(x, 1); /* compiled */
    assert_ok(kn_synchronize(kn_device_current()));
    held *stream = hold(kn_device_current());
    kn_add_scalar_(x, 1);
    kn_add_scalar_(x, 1);
    assert_ok(kn_stream_query(kn_tensor_stream(x), &done));
    assert_false(done);
    let_go(stream);
    assert_ok(kn_item(kn_sum(x), &sum));
    assert_true(sum == 4000);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* With less stack than kernels may take, the driver runs them. */
static void *launch_some(void *user)
{
    kn_tensor *counts = user;
    for (int i = 0; i < LAUNCHES; i++)
        assert_ok(count_on(kn_tensor_stream(counts), counts, 64));
    return NULL;
}

static void threads_with_small_stacks(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread;
    KN_SCOPE;
    kn_tensor *counts = zeros();
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attributes, launch_some, counts), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    launch_some(counts);
    expect_counts(counts, 64, 2 * LAUNCHES);
}

enum { TEAM_ITEMS = 500 };

static void count_item(int64_t call, int64_t id0, int64_t id1, int64_t id2, int64_t size0, int64_t size1)
{
    ((int *)(uintptr_t)call)[(id2 * size1 + id1) * size0 + id0]++;
}

static void *run_team(void *team)
{
    int counts[TEAM_ITEMS], wrong = 0;
    for (size_t items = 0; items <= TEAM_ITEMS; items++) {
        memset(counts, 0, sizeof counts);
        kn_team_run(team, &(kn_team_work){count_item, (int64_t)(uintptr_t)counts, {items, 1, 1}}, 1 + (int)items % 7);
        for (size_t i = 0; i < TEAM_ITEMS; i++)
            wrong += counts[i] != (i < items);
    }
    return (void *)(uintptr_t)wrong;
}

/* Teams of any size, which threads share; with threads that stay awake, and that sleep. */
static void a_team_runs_each_item_once(void **state)
{
    static kn_team *teams[9][2]; /* never freed, and so that the leak sanitizer finds them */
    (void)state;
    for (int threads = 1; threads <= 9; threads += 2)
        for (int lingers = 0; lingers < 2; lingers++) {
            kn_team *team = teams[threads - 1][lingers] = kn_team_new(threads, lingers);
            pthread_t users[THREADS];
            void *wrong;
            assert_non_null(team);
            for (int t = 0; t < THREADS; t++)
                assert_int_equal(pthread_create(&users[t], NULL, run_team, team), 0);
            for (int t = 0; t < THREADS; t++) {
                pthread_join(users[t], &wrong);
                assert_null(wrong);
            }
        }
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* Results that rounding decides, and ones that are subnormal; of numbers that the host does not round. */
static void compute(const float values[64], float results[128])
{
    KN_SCOPE;
    kn_tensor *x = kn_from_data(values, KN_SHAPE(64));
    assert_ok(kn_read(kn_div_scalar(kn_add_scalar(x, 0.75), 3), results, 64 * sizeof *results));
    assert_ok(kn_read(kn_mul_scalar(x, 0.375), results + 64, 64 * sizeof *results));
}

/* The same bits with any number of threads. */
static void numbers_of_threads(void **state)
{
    (void)state;
    KN_SCOPE;
    const int before = kn_get_num_threads();
    double sums[4];
    kn_tensor *x = kn_randn(KN_SHAPE(300, 1000));
    assert_true(before >= 1);
    for (int threads = 1; threads <= 4; threads++) {
        assert_ok(kn_set_num_threads(threads));
        assert_int_equal(kn_get_num_threads(), threads);
        assert_ok(kn_item(kn_sum(kn_matmul(x, kn_exp(kn_transpose(x, 0, 1)))), &sums[threads - 1]));
        assert_true(sums[threads - 1] == sums[0]);
    }
    assert_int_equal(kn_set_num_threads(0), KN_ERR_ARGUMENT);
    assert_message("at least 1 is needed");
    assert_int_equal(kn_get_num_threads(), 4);
    assert_ok(kn_set_num_threads(before));
}

static void the_host_may_round_in_other_ways(void **state)
{
    (void)state;
    static const int directions[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    float values[64], expected[128], got[128];
    for (int i = 0; i < 64; i++)
        values[i] = i < 32 ? (float)i / 7 : (float)i * 1e-40f;
    compute(values, expected); /* compiles */
    compute(values, expected);
    for (size_t i = 0; i < sizeof directions / sizeof directions[0]; i++) {
        fesetround(directions[i]);
        compute(values, got);
        const int kept = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(kept, directions[i]);
        assert_memory_equal(got, expected, sizeof got);
    }
#ifdef __x86_64__
    const unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040); /* subnormal numbers are zero, as with -ffast-math */
    compute(values, got);
    __builtin_ia32_ldmxcsr(before);
    assert_memory_equal(got, expected, sizeof got);
    assert_true(expected[64 + 40] > 0 && expected[64 + 40] < 1e-38f);
#endif
}

/* All pages of PoCL's libraries, one for each kernel (read_pages in rt/direct/entry.c): this kernel's only constant is
 * loaded where a norm is 0, which it is not. */
static void the_code_is_there(void **state)
{
    (void)state;
    const char *wish = getenv("KOINE_DIRECT");
    char line[4096];
    bool is_code = false;
    long size = 0, resident;
    KN_SCOPE;
    kn_tensor *x = kn_ones(KN_SHAPE(20, 1000), .dtype = KN_F16);
    assert_ok(kn_set_requires_grad(x, true));
    assert_ok(kn_backward(kn_sum(kn_norm_dims(x, 2, (const int[]){1}, 1, false))));
    assert_ok(kn_synchronize(NULL)); /* a kernel that is being compiled is launched by another thread */
    FILE *maps = fopen("/proc/self/smaps", "r");
    if ((wish && strcmp(wish, "0") == 0) || !maps)
        skip();
    while (fgets(line, sizeof line, maps)) {
        char readable;
        if (sscanf(line, "%*x-%*x %c", &readable) == 1) /* begin-end, permissions, ..., file */
            is_code = readable == 'r' && strstr(line, "/pointwise_norm_2_backward.so");
        if (is_code && sscanf(line, "Size: %ld kB", &size) == 1)
            assert_true(size > 0);
        if (is_code && sscanf(line, "Rss: %ld kB", &resident) == 1)
            assert_int_equal(resident, size);
    }
    fclose(maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_of_any_size),
        cmocka_unit_test(streams_have_their_own),
        cmocka_unit_test(a_launch_is_over_when_it_returns),
        cmocka_unit_test(an_earlier_wait_does_not_end_one_for_another_stream),
        cmocka_unit_test(replays_are_launches_too),
        cmocka_unit_test(threads_share_a_stream_that_changes_queues),
        cmocka_unit_test(all_ids_of_three_dimensions),
        cmocka_unit_test(mixed_with_commands_of_the_driver),
        cmocka_unit_test(a_held_stream_does_not_hold_the_host),
        cmocka_unit_test(threads_with_small_stacks),
        cmocka_unit_test(a_team_runs_each_item_once),
        cmocka_unit_test(numbers_of_threads),
        cmocka_unit_test(the_host_may_round_in_other_ways),
        cmocka_unit_test(the_code_is_there),
    };
    if (kn_user_source_add(&source, "count", text, false) != KN_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
