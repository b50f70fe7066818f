/* test_benchmark.c - benchmark mode: the fastest row is found once and stored in memory and on disk, and nothing else
 * changes. Fake rows that sleep make the outcome deterministic. */
#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/files.h"
#include "ops/dispatch/benchmark.h"
#include "ops/dispatch/choice.h"
#include "rt/tuning/tuning.h"

static char cache[] = "/tmp/koine-benchmark-XXXXXX";

/* --- fake rows ---------------------------------------------------------------------------------------------------- */

static atomic_int runs[4]; /* of slow, fast, broken, elsewhere */

static void sleep_ms(int ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL); }

static kn_status run_slow(kn_stream *stream, const void *problem)
{
    (void)stream, (void)problem;
    runs[0]++;
    sleep_ms(4);
    return KN_OK;
}
static kn_status run_fast(kn_stream *stream, const void *problem)
{
    (void)stream, (void)problem;
    runs[1]++;
    return KN_OK;
}
static kn_status run_broken(kn_stream *stream, const void *problem)
{
    (void)stream, (void)problem;
    runs[2]++;
    return kn_fail(KN_ERR_DEVICE, "this row never works");
}
static kn_status run_elsewhere(kn_stream *stream, const void *problem)
{
    (void)stream, (void)problem;
    runs[3]++;
    return KN_OK;
}
static bool supports_even(const kn_limits *limits, const void *problem)
{
    (void)limits;
    return *(const int *)problem % 2 == 0;
}
static bool never(const kn_limits *limits, const void *problem)
{
    (void)limits, (void)problem;
    return false;
}

static int describe(const void *problem, int64_t numbers[KN_PROBLEM_NUMBERS])
{
    numbers[0] = *(const int *)problem;
    return numbers[0] == 99 ? 0 : 1; /* 99 cannot be run twice */
}

static atomic_bool works;
static kn_status run_sometimes(kn_stream *stream, const void *problem)
{
    return works ? run_fast(stream, problem) : run_broken(stream, problem);
}
static const kn_implementation doubtful_rows[] = {{.name = "sometimes", .run = run_sometimes},
                                                  {.name = "broken", .run = run_broken}};
static const kn_implementation_table doubtful =
    KN_IMPLEMENTATION_TABLE("doubtful", doubtful_rows, KN_FAMILY_MATMUL, describe);

static kn_implementation rows[] = {
    {.name = "slow", .run = run_slow},
    {.name = "broken", .run = run_broken},
    {.name = "elsewhere", .prefers = never, .run = run_elsewhere}, /* timed on the other kind of device */
    {.name = "fast", .supports = supports_even, .prefers = never, .run = run_fast},
};
static const kn_implementation_table table = KN_IMPLEMENTATION_TABLE("fake", rows, KN_FAMILY_MATMUL, describe);

static kn_stream *stream(void) { return kn_stream_current(kn_device_current()); }

/* Runs the problem; returns the row that ran last. */
static const char *choose(int problem)
{
    int before[4];
    for (int i = 0; i < 4; i++)
        before[i] = runs[i];
    CHECK_OK(kn_run_implementation(&table, stream(), &problem));
    static const char *const names[] = {"slow", "fast", "broken", "elsewhere"};
    int count = 0, last = 0;
    for (int i = 0; i < 4; i++)
        if (runs[i] > before[i])
            count++, last = i;
    return count == 1 ? names[last] : "several";
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

TENSOR_TEST(test_found_once)
{
    assert_string_equal(choose(2), "slow");
    kn_set_benchmark(true);
    const int64_t timed = kn_benchmark_count_timed();
    assert_string_equal(choose(2), "several");
    assert_int_equal(runs[3], 0); /* not meant for this kind of device */
    assert_true(runs[2] > 0);     /* failing rows are skipped silently */
    assert_int_equal(kn_error_status(), KN_OK);
    for (int i = 0; i < 3; i++)
        assert_string_equal(choose(2), "fast");
    assert_int_equal(kn_benchmark_count_timed(), timed + 1);
    assert_string_equal(choose(3), "several"); /* another problem, which fast does not support */
    assert_string_equal(choose(3), "slow");
    assert_int_equal(kn_benchmark_count_timed(), timed + 2);
    assert_string_equal(choose(99), "slow"); /* cannot be timed */
    assert_int_equal(kn_benchmark_count_timed(), timed + 2);
    kn_set_deterministic(true); /* other flags, other candidates */
    assert_string_equal(choose(2), "several");
    kn_set_deterministic(false);
    kn_set_benchmark(false);
    assert_string_equal(choose(2), "slow"); /* off: the default choice again */
}

/* The number of results in the device's file; `damage` replaces it by an unrelated file. */
static int count_results(bool damage)
{
    char *path = kn_tuning_path(kn_device_current()), *text = NULL;
    size_t size;
    int count = 0;
    assert_non_null(path);
    assert_memory_equal(path, cache, strlen(cache));
    if (kn_file_exists(path))
        CHECK_OK(kn_file_read_all(&text, &size, path, 1 << 20));
    for (const char *found = text; found && (found = strstr(found, "\"question\"")); found++)
        count++;
    if (damage)
        CHECK_OK(kn_file_save_text(path, "{\"format\": \"koine tuning 1\", \"results\": [{\"question\": 7}]}"));
    kn_free(text);
    kn_free(path);
    return count;
}

/* Nothing is remembered for a problem on which every row fails, for example for lack of memory. */
TENSOR_TEST(test_all_fail)
{
    const int problem = 2, results = count_results(false);
    kn_set_benchmark(true);
    works = false;
    assert_int_equal(kn_run_implementation(&doubtful, stream(), &problem), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "never works");
    assert_int_equal(count_results(false), results);
    works = true;
    const int64_t timed = kn_benchmark_count_timed();
    CHECK_OK(kn_run_implementation(&doubtful, stream(), &problem));
    CHECK_OK(kn_run_implementation(&doubtful, stream(), &problem));
    assert_int_equal(kn_benchmark_count_timed(), timed + 1);
    assert_int_equal(count_results(false), results + 1);
    kn_set_benchmark(false);
}

TENSOR_TEST(test_kept_on_disk)
{
    kn_set_benchmark(true);
    CHECK_OK(kn_benchmark_clear(true));
    assert_int_equal(count_results(false), 0);
    int64_t timed = kn_benchmark_count_timed();
    assert_string_equal(choose(4), "several");
    assert_int_equal(kn_benchmark_count_timed(), ++timed);
    assert_int_equal(count_results(false), 1);
    CHECK_OK(kn_benchmark_clear(false)); /* like a new process */
    assert_string_equal(choose(4), "fast");
    assert_int_equal(kn_benchmark_count_timed(), timed);
    CHECK_OK(kn_benchmark_clear(false));
    assert_int_equal(count_results(true), 1); /* an unrelated file under that name */
    assert_string_equal(choose(4), "several");
    assert_int_equal(kn_benchmark_count_timed(), ++timed);
    CHECK_OK(kn_benchmark_clear(false));
    assert_string_equal(choose(4), "fast"); /* repaired */
    assert_int_equal(kn_benchmark_count_timed(), timed);
    kn_set_benchmark(false);
}

/* During capture nothing runs: uses the default row, or the winner if known. */
TENSOR_TEST(test_capture)
{
    kn_graph *graph;
    kn_set_benchmark(true);
    CHECK_OK(kn_benchmark_clear(true));
    const int64_t timed = kn_benchmark_count_timed();
    CHECK_NEW(graph = kn_graph_new());
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    assert_string_equal(choose(6), "slow");
    CHECK_OK(kn_graph_capture_end(graph));
    assert_int_equal(kn_benchmark_count_timed(), timed);
    assert_string_equal(choose(6), "several");
    CHECK_OK(kn_graph_reset(graph));
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    assert_string_equal(choose(6), "fast");
    CHECK_OK(kn_graph_capture_end(graph));
    kn_graph_free(graph);
    kn_set_benchmark(false);
}

enum { THREADS = 4 };
static void *choose_in_thread(void *problem)
{
    intptr_t failed = 0;
    for (int i = 0; i < 20; i++)
        failed += kn_run_implementation(&table, stream(), problem) != KN_OK;
    return (void *)failed;
}

TENSOR_TEST(test_threads)
{
    pthread_t threads[THREADS];
    int problems[2] = {10, 12};
    kn_set_benchmark(true);
    CHECK_OK(kn_benchmark_clear(true));
    const int64_t timed = kn_benchmark_count_timed();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, choose_in_thread, &problems[i % 2]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(kn_benchmark_count_timed(), timed + 2); /* each problem once */
    kn_set_benchmark(false);
}

/* --- the real tables ---------------------------------------------------------------------------------------------- */

static kn_tensor *step(kn_tensor *x, kn_tensor *w, kn_tensor *v)
{
    kn_set_grad(w, NULL);
    kn_tensor *y = kn_conv2d(x, w, NULL, .padding = 1);
    kn_tensor *z = kn_matmul(kn_flatten(y, 1, -1), v);
    CHECK_OK(kn_backward(kn_sum(kn_mul(z, z))));
    return kn_clone(kn_grad(w));
}

/* A convolution, its gradients and a product: equal within rounding, and nested tables do not deadlock. */
TENSOR_TEST(test_real_operations)
{
    enum { COUNT = 8 * 3 * 3 * 3 };
    float usual[COUNT], fastest[COUNT];
    kn_tensor *x = kn_rand(KN_SHAPE(4, 3, 9, 9)), *w = kn_rand(KN_SHAPE(8, 3, 3, 3), .requires_grad = true);
    kn_tensor *v = kn_rand(KN_SHAPE(8 * 81, 5));
    CHECK_OK(kn_read(step(x, w, v), usual, sizeof usual));
    kn_set_benchmark(true);
    CHECK_OK(kn_benchmark_clear(true));
    const int64_t timed = kn_benchmark_count_timed();
    CHECK_OK(kn_read(step(x, w, v), fastest, sizeof fastest));
    const int64_t after = kn_benchmark_count_timed();
    assert_true(after >= timed + 3);
    CHECK_OK(kn_read(step(x, w, v), fastest, sizeof fastest));
    assert_int_equal(kn_benchmark_count_timed(), after);
    kn_set_benchmark(false);
    for (int i = 0; i < COUNT; i++)
        if (!(fastest[i] - usual[i] <= 1e-4f * usual[i] && usual[i] - fastest[i] <= 1e-4f * usual[i]))
            fail_msg("element %d is %g, without benchmark %g", i, (double)fastest[i], (double)usual[i]);
}

static bool is_up(void *user) { return (*(int *)user)-- <= 0; }

/* If time runs out within a problem, timing stops, the default row computes, nothing is remembered, and the winner is
 * found the next time. */
TENSOR_TEST(test_time_is_up)
{
    kn_set_benchmark(true);
    for (int runs_left = 0; runs_left < 4; runs_left++) {
        int left = runs_left;
        const int64_t timed = kn_benchmark_count_timed();
        kn_benchmark_observe(NULL, is_up, &left);
        assert_string_equal(choose(200), "slow");
        kn_benchmark_observe(NULL, NULL, NULL);
        assert_int_equal(kn_benchmark_count_timed(), timed);
    }
    assert_string_equal(choose(200), "several");
    assert_string_equal(choose(200), "fast");
    kn_set_benchmark(false);
}

int main(void)
{
    if (!mkdtemp(cache))
        return 1;
    setenv("KOINE_CACHE_DIR", cache, 1);
    rows[2].timed_on = kn_device_limits(kn_device_current())->is_cpu ? KN_TIMED_ON_OTHERS : KN_TIMED_ON_CPUS;
    const struct CMUnitTest tests[] = {
        TEST(test_found_once), TEST(test_all_fail),        TEST(test_kept_on_disk), TEST(test_capture),
        TEST(test_threads),    TEST(test_real_operations), TEST(test_time_is_up),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[160];
    snprintf(command, sizeof command, "rm -r %s", cache);
    return system(command) == 0 ? failed : 1;
}
