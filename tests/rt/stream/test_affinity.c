/* test_affinity.c - work-items that are numbered anew (cl/common/affinity.clh): each number is taken once, in
 * launches of any size, on several streams and threads, in replays, and while the profiler changes queues. */
#include "rt/rt_test.h"

#include <pthread.h>
#include <stdio.h>

#include "rt/device/device_struct.h"
#include "rt/program/user_source.h"
#include "rt/rt.h"
#include "tensor/tensor.h"

enum { MOST = 70000, LAUNCHES = 40, THREADS = 3, ROUNDS = 400 };

/* Counts how often each number is taken; an item has its own counter, so that two with one number would lose counts. */
static const char text[] = "#include \"common/affinity.clh\"\n"
                           "KN_KERNEL_AFFINITY(count, (KN_ARG(counts)), KN_INOUT(counts))\n"
                           "{\n"
                           "    KN_BIND_OUT(int, counts);\n"
                           "    counts[KN_ID(0)]++;\n"
                           "}\n";

static kn_user_source source, users; /* as the library's, whose arguments are gathered, and as a user's */

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

static void a_users_kernel_keeps_its_parameters(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *counts = zeros();
    for (int launch = 0; launch < LAUNCHES; launch++)
        assert_ok(kn_run(kn_tensor_stream(counts), .source = users.path, .kernel = "count", .dims = 1, .global = {97},
                         KN_ARGS(kn_arg_tensor(counts))));
    expect_counts(counts, 97, LAUNCHES);
}

/* Launches that run after the host has enqueued as many as it may, with more arguments than there are places for. */
typedef struct told {
    int64_t at, all[100];
} told;

static const char telling_text[] = "#include \"common/koine.clh\"\n"
                                   "typedef struct told { long at, all[100]; } told;\n"
                                   "KN_KERNEL_ONCE(tell, (KN_ARG(x), t, more), KN_INOUT(x), const told t,\n"
                                   "               const int more)\n"
                                   "{\n"
                                   "    KN_BIND_OUT(long, x);\n"
                                   "    for (volatile int i = 0; i < 20000; i++)\n"
                                   "        ;\n"
                                   "    for (int i = 0; i < 100; i++)\n"
                                   "        x[t.at] += t.all[i] * more;\n"
                                   "}\n";

static void arguments_last_until_their_launch(void **state)
{
    (void)state;
    enum { MANY = 2000, EACH = 7 };
    static int64_t got[MANY];
    kn_user_source telling;
    assert_ok(kn_user_source_add(&telling, "tell", telling_text, false));
    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(MANY), .dtype = KN_I64), *other = zeros();
    for (int64_t i = 0; i < MANY; i++) {
        told t = {.at = i};
        for (int j = 0; j < 100; j++)
            t.all[j] = i + j;
        assert_ok(kn_run(kn_tensor_stream(x), .source = telling.path, .kernel = "tell", .dims = 1, .global = {1},
                         KN_ARGS(kn_arg_tensor(x), kn_arg_struct(&t, sizeof t), kn_arg_i32(EACH))));
        if (i % 100 == 99) /* does not note its start */
            assert_ok(kn_copy_(other, other));
    }
    assert_ok(kn_read(x, got, sizeof got));
    for (int64_t i = 0; i < MANY; i++)
        assert_int_equal(got[i], EACH * (100 * i + 4950));
}

/* The one that launches set is none of them. */
static void the_parameter_is_hidden(void **state)
{
    (void)state;
    kn_parameters parameters = {0};
    assert_ok(kn_user_source_build(kn_device_current(), users.path, NULL, "count", &parameters));
    assert_int_equal(parameters.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_of_any_size),
        cmocka_unit_test(streams_have_their_own),
        cmocka_unit_test(replays_are_launches_too),
        cmocka_unit_test(threads_share_a_stream_that_changes_queues),
        cmocka_unit_test(arguments_last_until_their_launch),
        cmocka_unit_test(a_users_kernel_keeps_its_parameters),
        cmocka_unit_test(the_parameter_is_hidden),
    };
    if (kn_user_source_add(&source, "count", text, false) != KN_OK ||
        kn_user_source_add(&users, "count", text, true) != KN_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
