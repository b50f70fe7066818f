/* Kernels that are compiled while the host goes on (rt/compile/cold.h), by processes beside this one
 * (rt/compile/helper.h): results are the same, and whatever becomes of those processes is no error.
 *
 * Each program runs in a child with empty caches. The test itself is a helper that fails: `test_helpers --compile`. */
#include "rt/rt_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/run_program.h"
#include "rt/compile/jobs.h"
#include "rt/compile/wire.h"
#include "rt/program/build_progress.h"
#include "rt/program/program.h"

static char this_program[1024];

/* --- a helper that fails ------------------------------------------------------------------------------------------ */

static int fail_as_helper(const char *how, const char *device_name)
{
    const char through = 1;
    size_t size;
    if (strcmp(how, "absent") == 0)
        return 1;
    if (fork() > 0)
        return 0;
    setenv("KOINE_COMPILE_JOBS", "1", 1);
    kn_hash identity = kn_wire_identity(kn_device_open(device_name));
    identity.low ^= strcmp(how, "another") == 0;
    kn_wire_send(0, &identity, sizeof identity);
    while (kn_wire_receive(0, &size, sizeof size)) {
        char *bytes = malloc(size);
        if (!bytes || !kn_wire_receive(0, bytes, size) || strcmp(how, "dies") == 0)
            _exit(1);
        free(bytes);
        if (strcmp(how, "lies") == 0)
            kn_wire_send(0, &through, sizeof through);
    }
    _exit(0);
}

/* --- the programs ------------------------------------------------------------------------------------------------- */

enum { N = 1000 };

/* Many kernels, whose temporaries are freed long before they run, and copies and fills between them. */
static kn_tensor *compute(void)
{
    kn_tensor *x = kn_arange(0, N, 1, .dtype = KN_F32), *sum = kn_zeros(KN_SHAPE(1));
    for (int i = 0; i < 2; i++) { /* in the second turn they have been asked for */
        KN_SCOPE;
        kn_tensor *a = kn_sin(kn_mul_scalar(x, 0.01 * (i + 1))), *copy = kn_clone(a);
        kn_tensor *wide = kn_reshape(kn_exp(copy), KN_SHAPE(20, 50));
        kn_tensor *rows = kn_softmax(kn_matmul(wide, kn_transpose(wide, 0, 1)), 1);
        kn_add_(sum, kn_sum(kn_sub(rows, kn_mean(wide))));
    }
    return sum;
}

static int print_result(void)
{
    kn_tensor *sum = compute();
    float value;
    if (kn_read(sum, &value, sizeof value) != KN_OK) {
        fprintf(stderr, "%s\n", kn_error_message());
        return 1;
    }
    printf("%a\n", (double)value);
    /* the host program has no children that it did not start */
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
        return 2;
    return 0;
}

static void overwrite_stack(void)
{
    volatile char bytes[1 << 16];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 'x';
}

/* A step of two kernels, none of whose names may be on the stack. */
static int step_that_measures(void)
{
    double sum;
    kn_tensor *weight = kn_full(KN_SHAPE(5), 1, .requires_grad = true);
    kn_optim *optim = kn_optim_lamb(((kn_parameter_list){&weight, NULL, 1}));
    kn_status status = kn_backward(kn_sum(weight));
    if (status == KN_OK)
        status = kn_optim_step(optim);
    overwrite_stack();
    if (status == KN_OK)
        status = kn_item(kn_sum(weight), &sum);
    kn_optim_free(optim);
    if (status != KN_OK)
        fprintf(stderr, "%s\n", kn_error_message());
    return status == KN_OK && sum > 4.994 && sum < 4.996 ? 0 : 1;
}

static void sleep_for(int milliseconds)
{
    const struct timespec time = {.tv_nsec = milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

/* While the first kernels are being compiled. */
static int leave_without_waiting(int milliseconds)
{
    const kn_tensor *sum = compute();
    sleep_for(milliseconds);
    return sum ? 0 : 1;
}

static void *compute_in_scope(void *unused)
{
    KN_SCOPE;
    (void)unused;
    return compute() ? &this_program : NULL;
}

/* Of another thread, which has ended. */
static int leave_after_thread(int milliseconds)
{
    pthread_t thread;
    void *result = NULL;
    /* opens the device: LLVM gives the thread that loads it a signal stack, which the address sanitizer would free */
    if (!kn_empty(KN_SHAPE(1)))
        return 1;
    if (pthread_create(&thread, NULL, compute_in_scope, NULL) != 0 || pthread_join(thread, &result) != 0)
        return 2;
    sleep_for(milliseconds);
    return result ? 0 : 1;
}

static int told, done;

static void note(const kn_build_notice *notice, void *user)
{
    (void)user;
    told += notice->is_over;
    done = notice->done;
}

static int print_notices(void)
{
    kn_build_observe((kn_build_observer){.notice = note});
    const int status = print_result();
    kn_build_observe((kn_build_observer){0});
    return status == 0 && told > 0 && done > 3 ? 0 : 3;
}

/* The program's own kernels fail where they are launched, while others are pending. */
static int fail_in_own_kernel(void)
{
    kn_tensor *sum = compute();
    kn_user_kernel *broken =
        kn_kernel_new("#include \"common/koine.clh\"\nkernel void broken(KN_OUT(y)) { nonsense; }\n", "broken", NULL);
    const kn_status status = kn_kernel_run(broken, KN_KERNEL_ARGS(kn_kernel_output(sum)), .global = {1});
    float value;
    kn_error_clear();
    kn_kernel_free(broken);
    return status != KN_OK && kn_read(sum, &value, sizeof value) == KN_OK ? 0 : 4;
}

/* Whether the very first launch would be put off; the caches are not empty thereafter. */
static int print_temperature(void)
{
    kn_device *device = test_device();
    printf("%s", kn_device_is_cold(device) ? "cold" : "warm");
    return compute() && kn_synchronize(device) == KN_OK ? 0 : 1;
}

static int run_child(const char *what, const char *number)
{
    KN_SCOPE;
    kn_jobs_patience = 0.5;
    return strcmp(what, "result") == 0    ? print_result()
           : strcmp(what, "leave") == 0   ? leave_without_waiting(atoi(number))
           : strcmp(what, "thread") == 0  ? leave_after_thread(atoi(number))
           : strcmp(what, "notices") == 0 ? print_notices()
           : strcmp(what, "step") == 0    ? step_that_measures()
           : strcmp(what, "first") == 0   ? print_temperature()
                                          : fail_in_own_kernel();
}

/* --- the tests ---------------------------------------------------------------------------------------------------- */

static char expected[100]; /* what a process prints that compiles by itself */

static bool helps(void) { return kn_programs_are_kept(test_device()); }

/* With caches in this folder. */
static run_result run_in(const char *folder, const char *what, const char *environment)
{
    return run_shell("env KOINE_LOG=debug POCL_CACHE_DIR='%s' KOINE_CACHE_DIR='%s' KOINE_COMPILE_JOBS=3 %s '%s' %s",
                     folder, folder, environment, this_program, what);
}

/* Another one each time: a helper may still write to that of the program before, which has ended. */
static const char *empty_folder(void)
{
    static int count;
    char name[40];
    snprintf(name, sizeof name, "helpers/%d", count++);
    return fresh_folder(name);
}

static void expect(const char *what, const char *environment, const char *output, const char *log)
{
    run_result r = run_in(empty_folder(), what, environment);
    assert_status(r, 0);
    assert_string_equal(r.output, output);
    if (log)
        assert_contains(r.errors, log);
    run_free(&r);
}

#define HELPS "compiles kernels, too"
#define HELPS_NOT "no process that compiles kernels"
#define OWN_PROGRAM "KOINE_PROGRAM='" KOINE_PROGRAM "'"

/* The caches' files that hold a kernel: PoCL's, or the library's own with other drivers. */
static int compiled(const char *folder)
{
    run_result r = run_shell("find '%s' -name '*.so' -o -name '*.bin' | wc -l", folder);
    const int count = atoi(r.output);
    run_free(&r);
    return count;
}

static void results_are_the_same(void **state)
{
    char folder[1024];
    int kernels[2];
    (void)state;
    snprintf(folder, sizeof folder, "%s", empty_folder());
    if (!helps())
        skip();
    for (int i = 0; i < 2; i++) {
        run_result r = run_in(folder, "result", OWN_PROGRAM);
        assert_status(r, 0);
        assert_string_equal(r.output, expected);
        if (i == 0)
            assert_contains(r.errors, HELPS);
        run_free(&r);
        kernels[i] = compiled(folder);
    }
    assert_true(kernels[0] > 6);
    assert_int_equal(kernels[0], kernels[1]); /* what was compiled is kept */
}

static void helpers_may_fail(void **state)
{
    static const char *const ways[] = {"absent", "another", "dies", "lies", "sleeps"};
    (void)state;
    if (!helps())
        skip();
    expect("result", "KOINE_PROGRAM=/nonexistent/koine KOINE_COMPILE_JOBS=many", expected, "many is ignored");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char environment[2000];
        snprintf(environment, sizeof environment, "FAIL_AS=%s KOINE_PROGRAM='%s'", ways[i], this_program);
        expect("result", environment, expected, i < 2 ? HELPS_NOT : HELPS);
    }
}

static void a_step_of_two_kernels(void **state)
{
    (void)state;
    expect("step", OWN_PROGRAM, "", NULL);
}

static void the_first_launch_is_put_off(void **state)
{
    static const char *const temperatures[] = {"cold", "warm"};
    char folder[1024];
    (void)state;
    snprintf(folder, sizeof folder, "%s", empty_folder());
    if (!helps() || !test_device()->quirks.caches_programs)
        skip();
    for (int i = 0; i < 2; i++) {
        run_result r = run_in(folder, "first", OWN_PROGRAM);
        assert_status(r, 0);
        assert_string_equal(r.output, temperatures[i]);
        run_free(&r);
    }
}

static void a_process_may_end_before(void **state)
{
    (void)state;
    expect("leave 0", OWN_PROGRAM, "", NULL);
    /* when the driver's compiler has made objects that exit destroys */
    expect("leave 50", OWN_PROGRAM, "", NULL);
    expect("leave 150", OWN_PROGRAM, "", NULL);
    expect("thread 50", OWN_PROGRAM, "", NULL);
}

static void who_waits_is_told(void **state)
{
    (void)state;
    if (helps())
        expect("notices", OWN_PROGRAM, expected, HELPS);
}

static void errors_come_where_they_belong(void **state)
{
    (void)state;
    expect("own", OWN_PROGRAM, "", NULL);
    if (!helps())
        return;
    /* of a launch that was pending: at the next call that waits */
    run_result r = run_in(empty_folder(), "result", OWN_PROGRAM " KOINE_FAIL_CL=launch:5:-36");
    assert_status(r, 1);
    assert_contains(r.errors, "CL_INVALID_COMMAND_QUEUE");
    run_free(&r);
}

/* No command of the launch reaches the queue, which is empty when the result is read. */
static void a_kernel_that_does_not_build_is_an_error(void **state)
{
    char kernels[1024], path[1100], environment[2200];
    (void)state;
    snprintf(kernels, sizeof kernels, "%s", fresh_folder("helpers/kernels"));
    snprintf(path, sizeof path, "%s/common", kernels);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/common/koine.clh", kernels);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("#error broken\n", file);
    assert_int_equal(fclose(file), 0);
    snprintf(environment, sizeof environment, OWN_PROGRAM " KOINE_KERNEL_DIR='%s'", kernels);
    run_result r = run_in(empty_folder(), "result", environment);
    assert_status(r, 1);
    assert_contains(r.errors, "does not build");
    run_free(&r);
}

static int find_expected(void **state)
{
    (void)state;
    run_result r = run_in(empty_folder(), "result", "KOINE_COMPILE_JOBS=1");
    const bool fine = r.status == 0;
    snprintf(expected, sizeof expected, "%s", r.output);
    run_free(&r);
    return fine ? 0 : -1;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--compile") == 0)
        return fail_as_helper(getenv("FAIL_AS"), argv[2]);
    if (argc > 1)
        return run_child(argv[1], argc > 2 ? argv[2] : "");
    const ssize_t length = readlink("/proc/self/exe", this_program, sizeof this_program - 1);
    if (length < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_the_same),          cmocka_unit_test(helpers_may_fail),
        cmocka_unit_test(a_process_may_end_before),      cmocka_unit_test(who_waits_is_told),
        cmocka_unit_test(errors_come_where_they_belong), cmocka_unit_test(a_step_of_two_kernels),
        cmocka_unit_test(the_first_launch_is_put_off),   cmocka_unit_test(a_kernel_that_does_not_build_is_an_error),
    };
    return cmocka_run_group_tests(tests, find_expected, NULL);
}
