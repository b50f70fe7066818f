/* test_odd_devices.c - which devices are used when drivers show what real ones have shown (support/odd_driver):
 * devices that cannot be used, one GPU under two drivers, GPUs whose units count differently. */
#include <stdio.h>
#include <string.h>

#include "run_program.h"

/* `koine COMMAND` on two devices with this oddity. */
static run_result run_with(const char *oddity, const char *environment, const char *command)
{
    return run_shell("OPENCL_LAYERS='" ODD_DRIVER_LAYER "' ODD_DRIVER=%s POCL_DEVICES='pthread pthread' %s '%s' %s",
                     oddity, environment, KOINE_PROGRAM, command);
}

static void expect_left_out(const char *oddity, const char *sentence)
{
    run_result r = run_with(oddity, "", "devices");
    assert_status(r, 0);
    assert_contains(r.output, "cpu:0");
    assert_lacks(r.output, "cpu:1");
    assert_contains(r.errors, sentence);
    run_free(&r);
    r = run_with(oddity, "KOINE_LOG=off COLUMNS=1000", "doctor --system");
    assert_contains(r.output, sentence);
    run_free(&r);
}

static void devices_that_cannot_be_used(void **state)
{
    (void)state;
    expect_left_out("old", "is skipped: it has OpenCL 1.1 or older, and Koine needs 1.2");
    expect_left_out("unavailable", "is skipped: its driver says that it is not available");
    expect_left_out("no-compiler", "is skipped: its driver has no compiler for OpenCL C");
}

/* The vendor's driver shows it once, and names still reach the other. */
static void a_gpu_under_two_drivers(void **state)
{
    (void)state;
    run_result r = run_with("copy", "", "devices");
    assert_status(r, 0);
    assert_contains(r.output, "gpu:0");
    assert_lacks(r.output, "gpu:1");
    assert_lacks(r.output, "platform    rusticl");
    assert_contains(r.errors, "of platform 1 (rusticl) is the GPU that platform 0 (Portable Computing Language) shows");
    assert_contains(r.errors, "KOINE_VISIBLE_DEVICES=1:0 chooses it");
    run_free(&r);
    r = run_with("copy", "KOINE_VISIBLE_DEVICES=1:0", "devices");
    assert_status(r, 0);
    assert_contains(r.output, "gpu:0");
    assert_contains(r.output, "platform    rusticl");
    assert_string_equal(r.errors, "");
    run_free(&r);
}

/* 128 multiprocessors are more than 512 execution units. */
static void the_faster_gpu_comes_first(void **state)
{
    (void)state;
    run_result r = run_with("unlike", "", "devices");
    assert_status(r, 0);
    assert_contains(r.output, "gpu:0   0:1");
    assert_contains(r.output, "gpu:1   0:0");
    run_free(&r);
}

int main(void)
{
    run_result r = run_with("old", "", "devices");
    const bool has_layers = strstr(r.errors, "OpenCL 1.1") != NULL;
    run_free(&r);
    if (!pocl_makes_two(KOINE_PROGRAM) || !has_layers) {
        printf("skipped: no two PoCL devices alone, or an OpenCL loader without layers\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_that_cannot_be_used),
        cmocka_unit_test(a_gpu_under_two_drivers),
        cmocka_unit_test(the_faster_gpu_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
