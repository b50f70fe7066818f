/* test_concurrent_sizes.c - a kernel in launches of different sizes on many streams at a time, each time with one that
 * is larger than any before: PoCL 3.1 counts the launches that use a kernel's code wrongly then, and aborts
 * (confuses_sizes in rt/device/quirks.h). With KOINE_DIRECT=0: all launches are the driver's. */
#include "rt/rt_test.h"

enum { STREAMS = 8, ROUNDS = 12, LENGTH = 30000 };

static kn_stream *streams[STREAMS];

static int make_streams(void **state)
{
    (void)state;
    for (int i = 0; i < STREAMS; i++)
        assert_new(streams[i] = kn_stream_new(test_device()));
    return 0;
}

static int free_streams(void **state)
{
    (void)state;
    for (int i = 0; i < STREAMS; i++) {
        assert_ok(kn_stream_synchronize(streams[i]));
        assert_ok(kn_stream_free(streams[i]));
    }
    return 0;
}

/* Enqueues work of one row on all streams but the last, where it has more rows each round. */
static void run_rounds(void (*enqueue)(kn_tensor *rows))
{
    for (int round = 0; round < ROUNDS; round++) {
        kn_tensor *rows[STREAMS];
        for (int i = 0; i < STREAMS; i++) {
            KN_STREAM(streams[i]);
            assert_new(rows[i] = kn_ones(KN_SHAPE(i + 1 == STREAMS ? round + 1 : 1, LENGTH)));
        }
        assert_ok(kn_synchronize(NULL));
        for (int i = 0; i < STREAMS; i++) {
            KN_STREAM(streams[i]);
            enqueue(rows[i]);
        }
        assert_ok(kn_synchronize(NULL));
        for (int i = 0; i < STREAMS; i++) {
            double sum = 0;
            KN_STREAM(streams[i]);
            KN_SCOPE;
            assert_ok(kn_item(kn_sum(kn_narrow(rows[i], 1, LENGTH - 1, 1)), &sum));
            assert_true(sum == (double)LENGTH * (i + 1 == STREAMS ? round + 1 : 1));
            kn_release(rows[i]);
        }
    }
}

static kn_user_kernel *add_up;

/* A work-item for each row. */
static void enqueue_users(kn_tensor *rows)
{
    assert_ok(kn_kernel_run(add_up, KN_KERNEL_ARGS(kn_kernel_output(rows), kn_kernel_i32(LENGTH)),
                            .global = {(size_t)kn_size(rows, 0)}, .local = {1}));
}

static void kernels_of_users(void **state)
{
    (void)state;
    static const char source[] =
        "#include \"common/koine.clh\"\n"
        "kernel void add_up(KN_INOUT(x), const int n)\n"
        "{\n"
        "    KN_BIND_OUT(volatile float, x);\n"
        "    for (int repeat = 0; repeat < 100; repeat++)\n"
        "        for (int i = 0; i < n; i++)\n"
        "            x[get_global_id(0) * n + i] = 1 + (i > 0 ? x[get_global_id(0) * n + i - 1] : 0);\n"
        "}\n";
    assert_new(add_up = kn_kernel_new(source, "add_up", NULL));
    run_rounds(enqueue_users);
    kn_kernel_free(add_up);
}

static void enqueue_operators(kn_tensor *rows)
{
    KN_NO_GRAD;
    KN_SCOPE;
    for (int repeat = 0; repeat < 20; repeat++) {
        kn_fill_(rows, 1);
        assert_ok(kn_copy(rows, kn_cumsum(rows, 1)));
    }
}

static void operators(void **state)
{
    (void)state;
    run_rounds(enqueue_operators);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators), cmocka_unit_test(kernels_of_users)};
    return cmocka_run_group_tests(tests, make_streams, free_streams);
}
