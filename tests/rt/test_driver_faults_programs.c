/* test_driver_faults_programs.c - each OpenCL call fails in turn in programs: enumerating and opening devices, which
 * only new processes do. See also test_driver_faults.c. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt_test.h"
#include "support/fail_cl.h"

#define SECONDS_EACH 60 /* longer means hanging */
#define OUT_OF_RESOURCES (-5)

static fail_cl layer;
static bool all; /* --long */
static char trying[160];

/* Exit status of a shell command, with its stderr in `said`; fails the test if it was killed. */
static int run(const char *command, char *said, size_t size)
{
    char line[2048];
    snprintf(line, sizeof line, "{ timeout %d %s; } 2>&1 >/dev/null", SECONDS_EACH, command);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    size_t length = fread(said, 1, size - 1, pipe);
    said[length] = '\0';
    int status = pclose(pipe);
    if (!WIFEXITED(status) || WEXITSTATUS(status) >= 124)
        fail_msg("%s: `%s` hangs or crashes (%d): %s", trying, command, status, said);
    return WEXITSTATUS(status);
}

static void count_calls(const char *command, long counts[FAIL_CL_NAMES])
{
    char path[64], said[4096], name[64];
    long calls;
    snprintf(path, sizeof path, "/tmp/koine-faults-%ld.counts", (long)getpid());
    setenv("FAIL_CL_COUNTS", path, 1);
    assert_int_equal(run(command, said, sizeof said), 0);
    unsetenv("FAIL_CL_COUNTS");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int i = 0; fscanf(file, "%63s %ld", name, &calls) == 2; i++) {
        assert_string_equal(name, layer.name(i));
        counts[i] = calls;
    }
    fclose(file);
    unlink(path);
}

/* A program with a failing call must report it and exit with a nonzero status, or succeed. `judges`: it detects faults
 * itself and exits with 1. */
static void fail_each_of(const char *command)
{
    long counts[FAIL_CL_NAMES] = {0};
    int failed = 0, tried = 0;
    count_calls(command, counts);
    for (int name = 0; layer.name(name); name++)
        for (long n = 1; n <= counts[name]; n = fail_cl_next(n, counts[name], all)) {
            char plan[96], said[4096];
            snprintf(plan, sizeof plan, "%s:%ld:%d", layer.name(name), n, OUT_OF_RESOURCES);
            snprintf(trying, sizeof trying, "%s", plan);
            setenv("FAIL_CL", plan, 1);
            int status = run(command, said, sizeof said);
            unsetenv("FAIL_CL");
            if (status != 0 && status != 1)
                fail_msg("%s: `%s` exits with %d: %s", plan, command, status, said);
            failed += status == 1;
            tried++;
        }
    print_message("%d failing calls of `%s`, %d of them errors\n", tried, command, failed);
    assert_true(failed > 0);
}

static void showing_devices(void **state)
{
    (void)state;
    fail_each_of(KOINE_PROGRAM " devices");
}

static void examining_the_system(void **state)
{
    (void)state;
    if (!all)
        skip();
    fail_each_of(KOINE_PROGRAM " doctor");
}

/* Runs this program as a new process: opens the device, makes one step, reports errors. */
static void opening_devices(void **state)
{
    (void)state;
    char command[1024];
    ssize_t length = readlink("/proc/self/exe", command, sizeof command - 16);
    assert_true(length > 0);
    snprintf(command + length, 16, " --step");
    fail_each_of(command);
}

/* 1: a reported error; 3: wrong numbers, or no message. */
static int step_once(void)
{
    kn_device *device = NULL;
    double value = 0;
    kn_status status = kn_status_of(device = kn_device_open("auto"));
    if (status != KN_OK) { /* a retry, which must not be affected by the first failure */
        fprintf(stderr, "%s\n", kn_error_message());
        kn_status told = kn_error_status();
        kn_error_clear();
        if (told != status || (device = kn_device_open("auto")) == NULL)
            return 3;
    }
    {
        KN_SCOPE;
        kn_tensor *x = kn_arange(0, 64 * 64, 1, .dtype = KN_F32), *w = kn_ones(KN_SHAPE(64, 8), .requires_grad = true);
        kn_tensor *y = kn_sum(kn_matmul(kn_reshape(x, KN_SHAPE(64, 64)), w));
        kn_status one = kn_backward(y);
        one = one == KN_OK ? kn_item(y, &value) : one;
        if (one != KN_OK)
            fprintf(stderr, "%s\n", kn_error_message());
        if (one == KN_OK && value != 67092480)
            return 3;
        if (one != kn_error_status())
            return 3;
        status = status == KN_OK ? one : status;
    }
    return status == KN_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--step") == 0)
        return step_once();
    all = argc > 1 && strcmp(argv[1], "--long") == 0;
    setenv("OPENCL_LAYERS", FAIL_LAYER, 1);
    if (kn_device_count() == 0 || !fail_cl_open(&layer, FAIL_LAYER)) {
        fprintf(stderr, "no device, or a loader without layers\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(showing_devices),
        cmocka_unit_test(examining_the_system),
        cmocka_unit_test(opening_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
