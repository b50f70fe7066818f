/* Rehearsals (rt/compile/rehearsal.h): nothing is computed or copied, and each kernel is asked for. */
#include "rt/rt_test.h"

#include <signal.h>
#include <stdlib.h>

#include "loops/work_size.h"
#include "rt/compile/rehearsal.h"
#include "rt/device/device_struct.h"
#include "rt/program/program.h"
#include "rt/program/user_source.h"
#include "rt/rt.h"
#include "tensor/tensor.h"

static const float threes[] = {3, 3, 3, 3, 3};
enum { N = sizeof threes / sizeof threes[0] };

typedef struct asked {
    int times, taken;
    bool take;
} asked;

static bool note(uint64_t kernel, void *user)
{
    asked *a = user;
    (void)kernel;
    a->times++;
    a->taken += a->take;
    return a->take;
}

static void expect_all(kn_tensor *x, float value)
{
    float got[N];
    assert_int_equal(kn_read(x, got, sizeof got), KN_OK);
    for (int i = 0; i < N; i++)
        assert_float_equal(got[i], value, 0);
}

static void nothing_is_computed(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *x = kn_from_data(threes, KN_SHAPE(N));
    for (int take = 0; take < 2; take++) {
        asked a = {.take = take};
        kn_rehearse(&(kn_rehearsal){.takes = note, .user = &a});
        kn_tensor *y = kn_exp(x);
        assert_new(kn_add_(x, x));
        assert_new(kn_fill_(x, 7));
        expect_all(y, 0);
        expect_all(x, 0);
        assert_true(a.times >= 2);
        assert_int_equal(a.taken, take ? a.times : 0);
        kn_rehearse(NULL);
        expect_all(x, 3); /* kernels that were compiled ran on other memory */
    }
    expect_all(kn_add(x, x), 6);
    assert_int_equal(kn_synchronize(NULL), KN_OK);
}

/* Indices are zeros in the rehearsal, and its faults are no errors. */
static void faults_are_not_reported(void **state)
{
    (void)state;
    KN_SCOPE;
    asked a = {.take = true};
    const int64_t beyond[] = {9};
    kn_tensor *x = kn_ones(KN_SHAPE(3)), *index = kn_from_data(beyond, KN_SHAPE(1), .dtype = KN_I64);
    kn_rehearse(&(kn_rehearsal){.takes = note, .user = &a});
    assert_non_null(kn_index_select(x, 0, index));
    assert_int_equal(kn_synchronize(NULL), KN_OK);
    kn_rehearse(NULL);
    assert_int_equal(kn_synchronize(NULL), KN_OK);
    assert_true(a.taken > 0);
    assert_non_null(kn_index_select(x, 0, index));
    assert_int_not_equal(kn_synchronize(NULL), KN_OK);
    kn_error_clear();
}

/* As those of flipped tensors do, from the last element on. */
static void kernels_may_read_before_their_offset(void **state)
{
    (void)state;
    KN_SCOPE;
    enum { BEFORE = 1 << 24, STEP = 1 << 20 };
    static const char text[] = "#include \"common/koine.clh\"\n"
                               "kernel void count_down(KN_INOUT(x), const long n, const long step)\n"
                               "{\n"
                               "    KN_BIND_OUT(int, x);\n"
                               "    for (long i = 0; i <= n; i += step)\n"
                               "        x[-i] += 1;\n"
                               "}\n";
    asked a = {.take = true};
    kn_user_source source;
    kn_stream *stream = kn_stream_current(kn_device_current());
    kn_tensor *x = kn_empty(KN_SHAPE(BEFORE + 1), .dtype = KN_I32), *last = kn_narrow(x, 0, BEFORE, 1);
    assert_ok(kn_user_source_add(&source, "count_down", text, false));
    signal(SIGSEGV, SIG_DFL); /* cmocka's handler is of no use to the driver's threads */
    kn_rehearse(&(kn_rehearsal){.takes = note, .user = &a});
    const kn_status status = kn_run(stream, .source = source.path, .kernel = source.name, .dims = 1, .global = {1},
                                    KN_ARGS(kn_arg_tensor(last), kn_arg_i64(BEFORE), kn_arg_i64(STEP)));
    kn_rehearse(NULL);
    assert_ok(status);
    assert_int_equal(a.taken, 1);
}

/* One part per core only if it stays in the core's cache, and is long. */
static void parts_fit_a_cache(void **state)
{
    (void)state;
    enum { CORES = 2, MANY = 1 << 17 };
    kn_limits limits = {.is_cpu = true, .compute_units = CORES, .core_cache = 1 << 20};
    assert_int_equal(kn_streaming_items_in_place(&limits, CORES * MANY, 6), CORES);
    assert_int_equal(kn_streaming_items_in_place(&limits, CORES * MANY, 8), kn_streaming_items(&limits, CORES * MANY));
    limits.core_cache *= 2;
    assert_int_equal(kn_streaming_items_in_place(&limits, CORES * MANY, 8), CORES);
    assert_int_equal(kn_streaming_items_in_place(&limits, MANY / 2, 8), kn_streaming_items(&limits, MANY / 2));
    assert_true(kn_streaming_items(&limits, CORES * MANY) > CORES);
    assert_true(kn_device_limits(kn_device_current())->core_cache > 0);
}

static void errors_of_the_cache(void **state)
{
    (void)state;
    kn_device *device = kn_device_current();
    const char *before = getenv("POCL_CACHE_DIR");
    char *kept = before ? strdup(before) : NULL;
    assert_int_equal(kn_rehearsal_check_cache(device), KN_OK);
    setenv("POCL_CACHE_DIR", "/proc/none", 1);
    const kn_status of_driver = kn_rehearsal_check_cache(device);
    if (kept)
        setenv("POCL_CACHE_DIR", kept, 1);
    else
        unsetenv("POCL_CACHE_DIR");
    free(kept);
    if (device->quirks.caches_programs)
        assert_int_equal(of_driver, KN_ERR_IO);
    kn_error_clear();
    setenv("KOINE_PROGRAM_CACHE", "0", 1);
    assert_int_equal(kn_program_cache_check(), KN_ERR_STATE);
    setenv("KOINE_PROGRAM_CACHE", "1", 1);
    kn_error_clear();
    assert_int_equal(kn_program_cache_check(), KN_OK);
    setenv("KOINE_CACHE_DIR", "/proc/none", 1);
    assert_int_equal(kn_program_cache_check(), KN_ERR_IO);
    assert_non_null(strstr(kn_error_message(), "set KOINE_CACHE_DIR to a writable folder"));
    kn_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_computed),
        cmocka_unit_test(faults_are_not_reported),
        cmocka_unit_test(kernels_may_read_before_their_offset),
        cmocka_unit_test(parts_fit_a_cache),
        cmocka_unit_test(errors_of_the_cache), /* the last: it changes the environment */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
