/* test_visible.c - KOINE_VISIBLE_DEVICES, with two PoCL devices: which are visible, in which order, and the messages
 * when an entry matches nothing or nothing is left. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "run_program.h"

/* `koine devices --json` under the variable shows these devices: "0:1 0:0" by platform and device. */
static void expect_devices(const char *environment, const char *value, const char *expected)
{
    char shown[256] = "";
    run_result r = run_shell("%s POCL_DEVICES='pthread pthread' KOINE_VISIBLE_DEVICES='%s' '%s' devices --json",
                             environment, value, KOINE_PROGRAM);
    cJSON *root = cJSON_Parse(r.output), *devices = cJSON_GetObjectItem(root, "devices");
    for (int i = 0; i < cJSON_GetArraySize(devices); i++) {
        cJSON *device = cJSON_GetArrayItem(devices, i);
        size_t length = strlen(shown);
        snprintf(shown + length, sizeof shown - length, "%s%s", i > 0 ? " " : "",
                 cJSON_GetStringValue(cJSON_GetObjectItem(device, "number")));
        assert_int_equal(cJSON_GetObjectItem(device, "index")->valueint, i);
    }
    if (strcmp(shown, expected) != 0)
        fail_msg("KOINE_VISIBLE_DEVICES='%s' shows `%s`, not `%s`: %s", value, shown, expected, r.errors);
    cJSON_Delete(root);
    run_free(&r);
}

/* The first word of the devices' own name, in capitals: "PTHREAD", or "CPU" from PoCL 4 on. */
static const char *first_word(void)
{
    static char word[32];
    run_result r = run_shell("POCL_DEVICES='pthread pthread' '%s' devices --json", KOINE_PROGRAM);
    const char *name = strstr(r.output, "\"name\":");
    assert_non_null(name);
    name += strspn(name + 7, " \t\"") + 7;
    for (size_t i = 0; i + 1 < sizeof word && isalnum((unsigned char)name[i]); i++)
        word[i] = (char)toupper((unsigned char)name[i]);
    run_free(&r);
    return word;
}

static void entries_choose_and_order(void **state)
{
    (void)state;
    expect_devices("", "0,1", "0:0 0:1");
    expect_devices("", "1,0", "0:1 0:0");
    expect_devices("", "1", "0:1");
    expect_devices("", " 1 , 0 ", "0:1 0:0");
    expect_devices("", "cpu:1,cpu:0", "0:1 0:0");
    expect_devices("", "0:1", "0:1");
    expect_devices("", "pocl:1,pocl:0", "0:1 0:0");
    expect_devices("", "pocl", "0:0 0:1"); /* all of them */
    expect_devices("", "cpu", "0:0 0:1");
    expect_devices("", "1,cpu", "0:1 0:0"); /* that one first, then the rest */
    expect_devices("", first_word(), "0:0 0:1");
    expect_devices("", "1,1,1", "0:1");
    expect_devices("KOINE_DEVICE=cpu", "1", "0:1");
}

static void an_entry_that_matches_nothing_ends_the_list(void **state)
{
    (void)state;
    static const char *const bad[] = {"7", "gpu", "nosuch", "", "cpu:9", "host", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char value[64];
        snprintf(value, sizeof value, "1,%s,0", bad[i]);
        expect_devices("", value, "0:1");
        run_result r =
            run_shell("POCL_DEVICES='pthread pthread' KOINE_VISIBLE_DEVICES='%s' '%s' devices", value, KOINE_PROGRAM);
        assert_status(r, 0);
        snprintf(value, sizeof value, "no device matches `%s`", bad[i]);
        assert_contains(r.errors, value);
        run_free(&r);
    }
    run_result r = run_shell("KOINE_VISIBLE_DEVICES=0,-1 '%s' devices", KOINE_PROGRAM); /* intended: no warning */
    assert_status(r, 0);
    assert_string_equal(r.errors, "");
    run_free(&r);
}

static void everything_can_be_hidden(void **state)
{
    (void)state;
    static const char *const values[] = {"", "none", "-1", "nosuch", "NONE"};
    static const char *const commands[] = {"devices", "devices cpu", "smi", "doctor --device auto"};
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
        for (size_t c = 0; c < sizeof commands / sizeof commands[0]; c++) {
            run_result r = run_shell("KOINE_VISIBLE_DEVICES='%s' '%s' %s", values[v], KOINE_PROGRAM, commands[c]);
            assert_status(r, 1);
            assert_contains(c < 3 ? r.errors : r.output, "KOINE_VISIBLE_DEVICES");
            run_free(&r);
        }
}

static void the_doctor_tells_what_is_hidden(void **state)
{
    (void)state;
    run_result r = run_shell("POCL_DEVICES='pthread pthread' KOINE_VISIBLE_DEVICES=1 '%s' doctor", KOINE_PROGRAM);
    assert_contains(r.output, "KOINE_VISIBLE_DEVICES is `1` and hides 1 of 2 devices");
    run_free(&r);
}

/* GPUs are numbered as the variable orders them, not best first; UUIDs name them too. */
static void simulated_gpus_are_ordered(void **state)
{
    (void)state;
    const char *layer = "OPENCL_LAYERS='" SIMULATED_GPU_LAYER "' SIMULATE_GPU=khr";
    run_result r = run_shell("%s '%s' devices", layer, KOINE_PROGRAM);
    bool layers = strstr(r.output, "gpu:0") != NULL;
    run_free(&r);
    if (!layers)
        skip(); /* an OpenCL loader without layers */
    expect_devices(layer, "gpu:1,gpu:0", "0:1 0:0");
    expect_devices(layer, "GPU-00000000-0000-0000-0000-000000000066", "0:1");
    expect_devices(layer, "00000000-0000-0000-0000-000000000065", "0:0");
    expect_devices(layer, "gpu", "0:0 0:1");
    r = run_shell("%s POCL_DEVICES='pthread pthread' KOINE_VISIBLE_DEVICES=1,0 '%s' devices gpu:0 --json", layer,
                  KOINE_PROGRAM);
    assert_status(r, 0);
    assert_contains(r.output, "\"0:1\"");
    run_free(&r);
}

int main(void)
{
    if (!pocl_makes_two(KOINE_PROGRAM)) {
        printf("skipped: no two PoCL devices alone\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_choose_and_order),   cmocka_unit_test(an_entry_that_matches_nothing_ends_the_list),
        cmocka_unit_test(everything_can_be_hidden),   cmocka_unit_test(the_doctor_tells_what_is_hidden),
        cmocka_unit_test(simulated_gpus_are_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
