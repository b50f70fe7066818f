/* test_odd_driver.c - errors and shortcomings of real drivers (support/odd_driver): what is reported, and what works
 * all the same. A process for each, because a driver is as it is from the first call on. */
#include "rt/rt_test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/device/device_struct.h"

#define MIB ((int64_t)1 << 20)
#define NOT_MET 1 /* exit status of a child; 0: fine */

/* The exit status of `act` in a process with this oddity. */
static int with(const char *oddity, int (*act)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setenv("ODD_DRIVER", oddity, 1);
        int result = act();
        fflush(NULL);
        _exit(result);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Did it fail so, in one sentence with these words? */
static bool fails(kn_status status, kn_status expected, const char *const words[])
{
    bool met = status == expected;
    const char *message = kn_error_message();
    for (; *words && met; words++)
        met = strstr(message, *words) != NULL;
    if (!met)
        fprintf(stderr, "%s: %s\n", kn_status_name(status), message);
    kn_error_clear();
    return met;
}
#define FAILS(call, expected, ...) fails(call, expected, (const char *const[]){__VA_ARGS__, NULL})

static kn_status add(double *value)
{
    KN_SCOPE;
    return kn_item(kn_sum(kn_add(kn_ones(KN_SHAPE(100)), kn_ones(KN_SHAPE(100)))), value);
}

static bool adds(void)
{
    double value = 0;
    const bool met = add(&value) == KN_OK && value == 200;
    if (!met)
        fprintf(stderr, "%s\n", kn_error_message());
    return met;
}

/* --- a kernel crashes --------------------------------------------------------------------------------------------- */

static bool loses_the_device(const char *words)
{
    kn_device *device = kn_device_current();
    double value;
    return FAILS(add(&value), KN_ERR_DEVICE, "was lost (", words, "can only be used again by a new process") &&
           kn_device_is_lost(device) && FAILS(add(&value), KN_ERR_DEVICE, "was lost (") &&
           FAILS(kn_synchronize(device), KN_ERR_DEVICE, "was lost (");
}

static int crash(void)
{
    return loses_the_device("CL_OUT_OF_RESOURCES, -5; KOINE_LAUNCH_BLOCKING=1 tells at which kernel)") ? 0 : NOT_MET;
}

static int crash_when_told(void)
{
    setenv("KOINE_LAUNCH_BLOCKING", "1", 1);
    return loses_the_device("add: running kernel `pointwise_add` failed with CL_OUT_OF_RESOURCES, -5)") ? 0 : NOT_MET;
}

static void a_kernel_crashes(void **state)
{
    (void)state;
    assert_int_equal(with("crash=1", crash), 0);
    assert_int_equal(with("crash=1", crash_when_told), 0);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* At the first use by a kernel, as memory object, which on other drivers than PoCL it is. */
static int exhaust(void)
{
    KN_SCOPE;
    kn_device_current()->limits.has_entries = false;
    kn_tensor *half = kn_zeros(KN_SHAPE(20 * MIB), .dtype = KN_U8);
    bool met = half && FAILS(kn_status_of(kn_zeros(KN_SHAPE(24 * MIB), .dtype = KN_U8)), KN_ERR_MEMORY,
                             "memory is used up; a smaller batch");
    return met && adds() ? 0 : NOT_MET;
}

static int ask_for_too_much(void)
{
    KN_SCOPE;
    kn_tensor *half = kn_zeros(KN_SHAPE(8 * MIB), .dtype = KN_U8);
    bool met = half && FAILS(kn_status_of(kn_zeros(KN_SHAPE(24 * MIB), .dtype = KN_U8)), KN_ERR_MEMORY, "out of memory",
                             "largest single buffer 16777216 bytes");
    return met && adds() ? 0 : NOT_MET;
}

static void memory_is_not_there(void **state)
{
    (void)state;
    assert_int_equal(with("lazy=32", exhaust), 0);
    assert_int_equal(with("allocation=16", ask_for_too_much), 0);
}

/* --- compilers ---------------------------------------------------------------------------------------------------- */

static int meet_silence(void)
{
    double value;
    return FAILS(add(&value), KN_ERR_DEVICE, "does not build on", "the compiler says: nothing: a library of its own")
               ? 0
               : NOT_MET;
}

/* The error is found among warnings that mention errors. */
static int meet_warnings(void)
{
    KN_SCOPE;
    kn_jit *wrong = kn_jit_elementwise("T wrong(T x) { return x * bogus; }");
    bool met = wrong && FAILS(kn_status_of(kn_jit_call(wrong, KN_JIT_INPUTS(kn_ones(KN_SHAPE(3))))), KN_ERR_DEVICE,
                              "return x * bogus;", "undeclared identifier");
    kn_jit_free(wrong);
    return met && adds() ? 0 : NOT_MET;
}

static int cache_nothing(void)
{
    setenv("KOINE_PROGRAM_CACHE", "1", 1);
    return adds() ? 0 : NOT_MET;
}

static void compilers(void **state)
{
    (void)state;
    assert_int_equal(with("silent", meet_silence), 0);
    assert_int_equal(with("warnings", meet_warnings), 0);
    assert_int_equal(with("no-binary", cache_nothing), 0);
    assert_int_equal(with("no-binary", cache_nothing), 0); /* again, now that something could have been cached */
}

/* --- alignment --------------------------------------------------------------------------------------------------- */

static int refusals(void)
{
    int (*count)(void) = NULL;
    void *layer = dlopen(ODD_DRIVER_LAYER, RTLD_NOW | RTLD_NOLOAD);
    *(void **)&count = layer ? dlsym(layer, "odd_driver_refusals") : NULL;
    return count ? count() : -1;
}

/* CLBlast's scratch memory is a sub-buffer. */
static int multiply(void)
{
    KN_SCOPE;
    double value = 0;
    setenv("KOINE_IMPL", "gemm:clblast", 1);
    kn_tensor *a = kn_ones(KN_SHAPE(70, 33)), *before = kn_ones(KN_SHAPE(1)), *b = kn_ones(KN_SHAPE(33, 70));
    bool met = before && kn_item(kn_sum(kn_matmul(a, b)), &value) == KN_OK && value == 70 * 70 * 33;
    return met && refusals() == 0 ? 0 : NOT_MET;
}

static void sub_buffers_are_aligned(void **state)
{
    (void)state;
    assert_int_equal(with("align=32768", multiply), 0);
}

/* --- extensions --------------------------------------------------------------------------------------------------- */

static int built_again;
static void count_builds(kn_log_level level, const char *message, void *user)
{
    (void)level, (void)user;
    built_again += strstr(message, "rebuilt with all of the driver's declarations") != NULL;
}

/* The source of dropout has parts for float64, for which nothing may be declared. */
static int do_without_f64(void)
{
    KN_SCOPE;
    kn_log_set_level(KN_LOG_DEBUG);
    kn_log_set_handler(count_builds, NULL);
    bool met = FAILS(kn_status_of(kn_ones(KN_SHAPE(3), .dtype = KN_F64)), KN_ERR_DTYPE, "float64");
    met = met && adds() && kn_dropout(kn_ones(KN_SHAPE(3))) && built_again == 0;
    return met ? 0 : NOT_MET;
}

static void no_extensions(void **state)
{
    (void)state;
    assert_int_equal(with("bare,width=1,arguments=1024,local=32", do_without_f64), 0);
}

/* --- a write arrives after its call has returned ------------------------------------------------------------------ */

static int report_each_fault(void)
{
    bool met = true;
    for (int i = 0; i < 3 && met; i++) {
        KN_SCOPE;
        float rows[2];
        kn_tensor *index = kn_from_data(((int64_t[]){0, 7 + i}), KN_SHAPE(2), .dtype = KN_I64);
        char number[16];
        snprintf(number, sizeof number, "index %d ", 7 + i);
        kn_tensor *selected = kn_index_select(kn_ones(KN_SHAPE(5)), 0, index);
        met = FAILS(kn_read(selected, rows, sizeof rows), KN_ERR_ARGUMENT, number);
    }
    return met ? 0 : NOT_MET;
}

static void writes_are_late(void **state)
{
    (void)state;
    assert_int_equal(with("posted", report_each_fault), 0);
}

int main(void)
{
    setenv("OPENCL_LAYERS", ODD_DRIVER_LAYER, 1);
    setenv("KOINE_LOG", "off", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_crashes), cmocka_unit_test(memory_is_not_there),
        cmocka_unit_test(compilers),        cmocka_unit_test(sub_buffers_are_aligned),
        cmocka_unit_test(no_extensions),    cmocka_unit_test(writes_are_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
