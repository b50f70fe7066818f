/* test_arguments.c - launches that wait in a stream's queue keep their arguments until they run (rt/stream/calls.h). */
#include "rt/rt_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "rt/program/user_source.h"
#include "rt/rt.h"
#include "support/busy.h"
#include "tensor/tensor.h"

enum { MANY = 2000, NUMBERS = 100, EACH = 7 };

typedef struct told {
    int64_t at, all[NUMBERS];
} told;

static const char text[] = "#include \"common/koine.clh\"\n"
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

static kn_user_source source;

static kn_status tell(kn_tensor *x, int64_t at)
{
    told t = {.at = at};
    for (int j = 0; j < NUMBERS; j++)
        t.all[j] = at + j;
    return kn_run(kn_tensor_stream(x), .source = source.path, .kernel = "tell", .dims = 1, .global = {1},
                  KN_ARGS(kn_arg_tensor(x), kn_arg_struct(&t, sizeof t), kn_arg_i32(EACH)));
}

static void expect_told(kn_tensor *x)
{
    static int64_t got[MANY];
    assert_ok(kn_read(x, got, sizeof got));
    for (int64_t i = 0; i < MANY; i++)
        assert_int_equal(got[i], EACH * (NUMBERS * i + NUMBERS * (NUMBERS - 1) / 2));
}

static kn_tensor *zeros(void) { return kn_zeros(KN_SHAPE(MANY), .dtype = KN_I64); }

/* As many as the host may be ahead, and copies between them. */
static void of_one_thread(void **state)
{
    (void)state;
    enum { HELD = 200 };
    KN_SCOPE;
    kn_tensor *x = zeros(), *other = zeros();
    for (int64_t i = 0; i < MANY; i++) {
        if (i % HELD == 0)
            keep_busy(kn_device_current());
        assert_ok(tell(x, i));
        if (i % 100 == 99)
            assert_ok(kn_copy_(other, other));
    }
    expect_told(x);
}

/* Each may be ahead: the more they are, the more launches wait. */
enum { THREADS = 100, EACH_TELLS = MANY / THREADS };

typedef struct teller {
    pthread_t thread;
    kn_tensor *x;
    int64_t first;
    kn_status status;
} teller;

static atomic_int told_so_far;

static void *tell_some(void *argument)
{
    teller *t = argument;
    for (int64_t i = 0; i < EACH_TELLS && t->status == KN_OK; i++, atomic_fetch_add(&told_so_far, 1))
        t->status = tell(t->x, t->first + i);
    return NULL;
}

/* Until no thread goes on: all are done, or wait for the queue. */
static void await_threads(void)
{
    for (int before = -1, now; (now = atomic_load(&told_so_far)) != before; before = now)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

static void of_many_threads(void **state)
{
    (void)state;
    static teller tellers[THREADS];
    KN_SCOPE;
    kn_tensor *x = zeros();
    assert_ok(tell(x, 0)); /* compiles */
    assert_new(kn_zero_(x));
    assert_ok(kn_synchronize(kn_device_current()));
    held *stream = hold(kn_device_current());
    for (int t = 0; t < THREADS; t++) {
        tellers[t] = (teller){.x = x, .first = t * EACH_TELLS};
        assert_int_equal(pthread_create(&tellers[t].thread, NULL, tell_some, &tellers[t]), 0);
    }
    await_threads();
    let_go(stream);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(tellers[t].thread, NULL);
        assert_int_equal(tellers[t].status, KN_OK);
    }
    expect_told(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_thread),
        cmocka_unit_test(of_many_threads),
    };
    if (kn_user_source_add(&source, "tell", text, false) != KN_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
