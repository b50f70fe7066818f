/* test_driver_cache.c - PoCL needs a writable folder: Koine finds another one if the usual one is not writable, and if
 * there is none, the error says so. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/run_program.h"
#include "rt/rt_test.h"

#define CLEAN "env -u HOME -u XDG_CACHE_HOME -u POCL_CACHE_DIR -u TMPDIR "

static char folder[256];

static void begin(const char *name) { snprintf(folder, sizeof folder, "%s", fresh_folder(name)); }

static void is_private(const char *below)
{
    run_result r = run_shell("stat -c %%a '%s/%s'", folder, below);
    assert_status(r, 0);
    assert_string_equal(r.output, "700\n");
    run_free(&r);
}

static void without_a_home(void **state)
{
    (void)state;
    begin("driver-cache-home");
    run_result r = run_shell(CLEAN "KOINE_CACHE_DIR='%s/koine' '%s' devices", folder, KOINE_PROGRAM);
    assert_status(r, 0);
    run_free(&r);
    is_private("koine");
    is_private("koine/pocl");
}

static void a_home_that_cannot_be_written(void **state)
{
    (void)state;
    begin("driver-cache-tmp");
    run_result r =
        run_shell(CLEAN "-u KOINE_CACHE_DIR HOME=/proc/none TMPDIR='%s' '%s' devices", folder, KOINE_PROGRAM);
    assert_status(r, 0);
    run_free(&r);
    char below[64];
    snprintf(below, sizeof below, "koine-%lu/pocl", (unsigned long)geteuid());
    is_private(below);
}

/* User settings are kept, and a working folder is not changed. */
static void nothing_else_is_changed(void **state)
{
    (void)state;
    begin("driver-cache-own");
    run_result r = run_shell(CLEAN "HOME='%s' KOINE_CACHE_DIR='%s/koine' '%s' devices && test ! -e '%s/koine/pocl'",
                             folder, folder, KOINE_PROGRAM, folder);
    assert_status(r, 0);
    run_free(&r);
    r = run_shell(CLEAN "POCL_CACHE_DIR='%s/p' KOINE_CACHE_DIR='%s/koine' '%s' devices && test ! -e '%s/koine/pocl'",
                  folder, folder, KOINE_PROGRAM, folder);
    assert_status(r, 0);
    run_free(&r);
}

static void nowhere_to_write(void **state)
{
    (void)state;
    static const char *const environments[] = {
        CLEAN "POCL_CACHE_DIR=/proc/none",
        CLEAN "HOME=/proc/none KOINE_CACHE_DIR=/proc/none TMPDIR=/proc/none",
    };
    for (size_t i = 0; i < sizeof environments / sizeof environments[0]; i++) {
        run_result r = run_shell("%s '%s' devices", environments[i], KOINE_PROGRAM);
        assert_status(r, 1);
        assert_contains(r.errors, "POCL_CACHE_DIR");
        assert_contains(r.errors, "is not writable");
        run_free(&r);
        r = run_shell("%s '%s' doctor --system", environments[i], KOINE_PROGRAM);
        assert_status(r, 1);
        assert_contains(r.output, "cannot be written: PoCL");
        run_free(&r);
    }
}

/* The folder disappears while the process runs: the error does not blame the source. */
static void a_build_without_the_folder(void **state)
{
    (void)state;
    kn_user_kernel *kernel;
    kn_tensor *x = kn_ones(KN_SHAPE(3));
    const char *source =
        "#include \"common/koine.clh\"\nkernel void k(KN_OUT(x)) { KN_BIND_OUT(float, x); x[0] = 2; }\n";
    assert_non_null(x);
    run_result r = run_shell("rm -rf '%s' && touch '%s'", getenv("POCL_CACHE_DIR"), getenv("POCL_CACHE_DIR"));
    assert_status(r, 0);
    run_free(&r);
    assert_new(kernel = kn_kernel_new(source, "k", NULL));
    assert_int_equal(kn_kernel_run(kernel, KN_KERNEL_ARGS(kn_kernel_output(x)), .global = {1}), KN_ERR_IO);
    assert_message("cannot write to");
    kn_kernel_free(kernel);
    kn_release(x);
}

int main(void)
{
    char own[300];
    kn_device_properties p;
    snprintf(own, sizeof own, "%s/pocl", fresh_folder("driver-cache"));
    setenv("POCL_CACHE_DIR", own, 1);
    if (kn_device_count() == 0 || kn_device_get_properties(kn_device_at(0), &p) != KN_OK ||
        !strstr(p.platform, "Portable Computing Language"))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_home),
        cmocka_unit_test(a_home_that_cannot_be_written),
        cmocka_unit_test(nothing_else_is_changed),
        cmocka_unit_test(nowhere_to_write),
        cmocka_unit_test(a_build_without_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
