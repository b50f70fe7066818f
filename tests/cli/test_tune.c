/* tests/cli/test_tune.c - `koine tune`: stopped by its budget or the user, it continues where it stopped; its file can
 * be shared; damaged or foreign files are reported and left unchanged. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_program.h"

static char cache[512]; /* shared by the tests that continue each other */

static run_result tune(const char *arguments)
{
    return run_shell("KOINE_CACHE_DIR='%s' '%s' tune %s", cache, KOINE_PROGRAM, arguments);
}

static void wrong_usage(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"--budget soon", "--budget takes seconds, not `soon`"},
                                           {"--budget 0", "not `0`"},
                                           {"gemm,nosuch", "not `nosuch`"},
                                           {"gemm conv", "unexpected argument `conv`"},
                                           {"--out", "missing value after `--out`"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_result r = tune(cases[i][0]);
        assert_status(r, 2);
        assert_contains(r.errors, cases[i][1]);
        assert_contains(r.errors, "usage: koine tune");
        run_free(&r);
    }
    run_result r = tune("--device host");
    assert_status(r, 1);
    assert_contains(r.errors, "nothing to tune");
    run_free(&r);
}

/* In slices, until there is something to continue from. */
static void it_goes_on_where_it_stopped(void **state)
{
    (void)state;
    bool found = false;
    for (int i = 0; i < 60 && !found; i++) {
        run_result r = tune("--budget 2 gemm");
        assert_status(r, 0);
        assert_contains(r.errors, "saved in ");
        found = strstr(r.output, "gemm 64x64x64") != NULL;
        if (!found)
            assert_contains(r.errors, "the time is up: run it again to continue");
        run_free(&r);
    }
    assert_true(found);
    run_result r = tune("--budget 1 gemm");
    assert_status(r, 0);
    assert_contains(r.output, "gemm 64x64x64");
    assert_contains(r.errors, "known from earlier runs");
    assert_lacks(r.errors, " 0 known from earlier runs");
    run_free(&r);
    r = tune("--quiet --budget 0.001 blocked");
    assert_status(r, 0);
    assert_string_equal(r.errors, "");
    run_free(&r);
}

/* By a signal to its process group, as from a terminal, which may include the driver's compiler. Finished results are
 * kept. */
static void it_may_be_interrupted(void **state)
{
    (void)state;
    run_result r = run_shell("KOINE_CACHE_DIR='%s' timeout --preserve-status -s INT 2 '%s' tune --budget 3600 "
                             "clblast,blocked,gemm,conv",
                             cache, KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "stopped: run it again to continue");
    run_free(&r);
}

static void results_can_be_shared(void **state)
{
    (void)state;
    char shared[600], first[512];
    snprintf(shared, sizeof shared, "%s/shared.json", cache);
    snprintf(first, sizeof first, "%s", cache);
    run_result r =
        run_shell("KOINE_CACHE_DIR='%s' '%s' tune --budget 0.001 --out '%s' gemm", first, KOINE_PROGRAM, shared);
    assert_status(r, 0);
    run_free(&r);
    r = run_shell("cat '%s'", shared);
    cJSON *file = cJSON_Parse(r.output);
    assert_non_null(file);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(file, "format")), "koine tuning 1");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(file, "library")), KN_VERSION);
    assert_non_null(cJSON_GetStringValue(cJSON_GetObjectItem(file, "driver")));
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(file, "results")) > 1);
    cJSON_Delete(file);
    run_free(&r);

    const char *other = fresh_folder("tune-other");
    r = run_shell("KOINE_CACHE_DIR='%s' '%s' tune --import '%s'", other, KOINE_PROGRAM, shared);
    assert_status(r, 0);
    assert_contains(r.errors, "are saved in ");
    run_free(&r);
    r = run_shell("KOINE_CACHE_DIR='%s' '%s' tune --budget 1 gemm", other, KOINE_PROGRAM);
    assert_status(r, 0);
    assert_lacks(r.errors, " 0 known from earlier runs");
    run_free(&r);
    r = run_shell("KOINE_CACHE_DIR='%s' KOINE_TUNE_FILE='%s' '%s' tune --budget 1 gemm", fresh_folder("tune-third"),
                  shared, KOINE_PROGRAM);
    assert_status(r, 0);
    assert_lacks(r.errors, " 0 known from earlier runs");
    run_free(&r);

    r = run_shell(
        "sed -i 's/\"device\":.*/\"device\": \"Another One\",/' '%s'; KOINE_CACHE_DIR='%s' '%s' tune --import '%s'",
        shared, cache, KOINE_PROGRAM, shared);
    assert_status(r, 1);
    assert_contains(r.errors, "was made for the device `Another One`");
    run_free(&r);
}

/* A message each, and the default choices. */
static void damaged_files_are_left_alone(void **state)
{
    (void)state;
#define HEADER                                                                                                         \
    "\"format\": \"koine tuning 1\", \"library\": \"9\", \"platform\": \"p\", \"driver\": \"d\", \"opencl\": \"o\", "  \
    "\"compute_units\": 1"
#define RESULT(fields) "{" HEADER ", \"device\": \"x\", \"results\": [{" fields "}]}"
    static const char *const files[] = {
        "",
        "{",
        "[]",
        "not JSON at all \001\377",
        "{\"format\": \"koine tuning 2\", \"results\": []}",
        "{" HEADER ", \"results\": {}}",
        "{" HEADER ", \"results\": []}",
        "{" HEADER ", \"device\": [], \"results\": []}",
        "{" HEADER ", \"device\": \"x\", \"results\": [7, null]}",
        RESULT("\"question\": 7, \"choice\": \"a\", \"complete\": true, \"seconds\": {}"),
        RESULT("\"question\": \"q\", \"choice\": \"a\", \"complete\": 1, \"seconds\": {}"),
        RESULT("\"question\": \"q\", \"choice\": \"a\", \"complete\": true, \"seconds\": {\"a\": -1}"),
        RESULT("\"question\": \"q\", \"choice\": \"a\", \"complete\": true, \"seconds\": {\"a\": 1e300}"),
        RESULT("\"question\": \"q\", \"choice\": \"a\", \"complete\": true, \"seconds\": [1]"),
        RESULT("\"question\": \"q\", \"complete\": true, \"seconds\": {}"),
    };
    const char *folder = fresh_folder("tune-damaged");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        put_file(folder, "file.json", files[i]);
        run_result r =
            run_shell("KOINE_CACHE_DIR='%s' '%s' tune --import '%s/file.json'", folder, KOINE_PROGRAM, folder);
        assert_status(r, 1);
        assert_contains(r.errors, "file.json");
        assert_string_equal(r.output, "");
        run_free(&r);
        r = run_shell("KOINE_CACHE_DIR='%s' KOINE_TUNE_FILE='%s/file.json' '%s' tune --budget 0.001 --quiet blocked",
                      folder, folder, KOINE_PROGRAM);
        assert_status(r, 0);
        assert_contains(r.errors, "tuning results are ignored: ");
        run_free(&r);
    }
    run_result r = run_shell("KOINE_CACHE_DIR='%s' '%s' tune --import /nowhere/at/all.json", folder, KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "/nowhere/at/all.json");
    run_free(&r);
}

static void a_folder_that_cannot_be_written(void **state)
{
    (void)state;
    run_result r = run_shell("KOINE_CACHE_DIR=/proc/koine '%s' tune --budget 60 gemm", KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "/proc/koine");
    run_free(&r);
}

/* Busy loops, four per processor. */
static run_result tune_beside_others(const char *arguments)
{
    return run_shell(
        "loops=; for i in $(seq $((4 * $(getconf _NPROCESSORS_ONLN)))); do (while :; do :; done) & "
        "loops=\"$loops $!\"; done; KOINE_CACHE_DIR='%s' '%s' tune %s; status=$?; kill $loops; exit $status",
        fresh_folder("tune-busy"), KOINE_PROGRAM, arguments);
}

static void a_busy_machine_is_told(void **state)
{
    (void)state;
    run_result r = tune_beside_others("--budget 0.001 blocked");
    assert_status(r, 0);
    assert_contains(r.errors, "warning: other programs are running: koine tune gets only ");
    assert_contains(r.errors, "end them, remove ");
    run_free(&r);
    r = tune_beside_others("--quiet --budget 0.001 blocked");
    assert_status(r, 0);
    assert_string_equal(r.errors, "");
    run_free(&r);
}

int main(void)
{
    snprintf(cache, sizeof cache, "%s", fresh_folder("tune"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage),
        cmocka_unit_test(it_goes_on_where_it_stopped),
        cmocka_unit_test(it_may_be_interrupted),
        cmocka_unit_test(results_can_be_shared),
        cmocka_unit_test(damaged_files_are_left_alone),
        cmocka_unit_test(a_folder_that_cannot_be_written),
        cmocka_unit_test(a_busy_machine_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
