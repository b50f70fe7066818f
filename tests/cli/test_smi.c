/* test_smi.c - `koine smi`: usage, the table, the JSON, repetition, Ctrl-C; on this machine's devices and on simulated
 * GPUs with a fake NVML. */
#include <cjson/cJSON.h>
#include <string.h>

#include "run_program.h"

#define TWO_GPUS                                                                                                       \
    "POCL_DEVICES='pthread pthread' OPENCL_LAYERS='" SIMULATED_GPU_LAYER                                               \
    "' SIMULATE_GPU=khr KOINE_NVML_LIBRARY='" FAKE_NVML "' "

static void wrong_usage_is_status_2(void **state)
{
    (void)state;
    static const char *const wrong[] = {"--watch",     "--watch x", "--watch 0",   "--watch -1", "--watch 1s",
                                        "--watch nan", "--count 0", "--count x",   "--count 1x", "--nosuch",
                                        "cpu gpu",     "--json=1",  "--watch 1e9", "--count"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        run_result r = run_shell("'%s' smi %s", KOINE_PROGRAM, wrong[i]);
        assert_status(r, 2);
        assert_string_equal(r.output, "");
        assert_contains(r.errors, "usage: koine smi");
        run_free(&r);
    }
    run_result r = run_shell("'%s' smi --help", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_contains(r.output, "--watch SECONDS");
    run_free(&r);
}

static void the_table_names_each_device(void **state)
{
    (void)state;
    run_result r = run_shell("'%s' smi", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_string_equal(r.errors, "");
    assert_contains(r.output, "koine " KN_VERSION);
    for (int i = 0; i < kn_device_count(); i++)
        assert_contains(r.output, kn_device_string(kn_device_at(i)));
    assert_contains(r.output, "rocesses");
    assert_lacks(r.output, " \n");
    run_free(&r);
    r = run_shell("'%s' smi nosuch", KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "no device matches `nosuch`");
    run_free(&r);
    r = run_shell("'%s' smi host", KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "host");
    run_free(&r);
}

static cJSON *first_device(const char *text, cJSON **root)
{
    *root = cJSON_Parse(text);
    if (!*root)
        fail_msg("not JSON: %s", text);
    cJSON *device = cJSON_GetArrayItem(cJSON_GetObjectItem(*root, "devices"), 0);
    assert_non_null(device);
    return device;
}

static void unknown_figures_are_null(void **state)
{
    (void)state;
    cJSON *root;
    run_result r = run_shell("'%s' smi --json cpu", KOINE_PROGRAM);
    if (strstr(r.errors, "no device matches"))
        skip();
    assert_status(r, 0);
    cJSON *device = first_device(r.output, &root);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(device, "source")), "proc");
    assert_true(cJSON_GetObjectItem(device, "memory_used")->valuedouble > 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(device, "fan_percent")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(device, "processes")));
    cJSON_Delete(root);
    run_free(&r);
}

static bool has_layers(void)
{
    run_result r = run_shell(TWO_GPUS "'%s' devices", KOINE_PROGRAM);
    bool found = strstr(r.output, "gpu:1") != NULL;
    run_free(&r);
    return found;
}

static void gpus_tell_more(void **state)
{
    (void)state;
    if (!has_layers())
        skip(); /* an OpenCL loader without layers */
    run_result r = run_shell(TWO_GPUS "'%s' smi", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_contains(r.output, "61 C  254 / 700 W  4.0 GiB / 16.0 GiB  87 %  1980 MHz  40 %");
    assert_contains(r.output, "gpu:0       100003     2.0 GiB  train\n");
    assert_contains(r.output, "gpu:0       100002           -  -\n");
    run_free(&r);

    cJSON *root;
    r = run_shell(TWO_GPUS "'%s' smi --json", KOINE_PROGRAM);
    assert_status(r, 0);
    cJSON *device = first_device(r.output, &root), *processes = cJSON_GetObjectItem(device, "processes");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(device, "source")), "NVML");
    assert_true(cJSON_GetObjectItem(device, "load_percent")->valuedouble == 87);
    assert_true(cJSON_GetObjectItem(device, "power_limit_w")->valuedouble == 700);
    assert_int_equal(cJSON_GetArraySize(processes), 4);
    assert_int_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(processes, 0), "pid")->valueint, 100003);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(processes, 3), "memory_used")));
    cJSON_Delete(root);
    run_free(&r);

    r = run_shell(TWO_GPUS "KOINE_NVML_LIBRARY=/nosuch.so '%s' smi gpu:1", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_contains(r.errors, "/nosuch.so");
    assert_contains(r.output, "- / ");
    assert_lacks(r.output, "gpu:0");
    run_free(&r);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}

static void readings_are_repeated(void **state)
{
    (void)state;
    run_result r = run_shell("'%s' smi --watch 0.1 --count 3", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_int_equal(count_of(r.output, "koine " KN_VERSION), 3);
    assert_lacks(r.output, "\033"); /* no terminal: appended */
    run_free(&r);

    r = run_shell("'%s' smi --watch=0.1 --count=2 --json", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_int_equal(count_of(r.output, "\n"), 2); /* a line each */
    cJSON *root;
    first_device(strchr(r.output, '\n') + 1, &root);
    cJSON_Delete(root);
    run_free(&r);
}

/* With script(1) the program has a terminal, where each reading overwrites the previous one. */
static void a_terminal_is_drawn_over(void **state)
{
    (void)state;
    if (!has_script())
        skip();
    run_result r = run_shell("TERM=xterm script -qec \"'%s' smi --watch 0.1 --count 2\" /dev/null", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_int_equal(count_of(r.output, "\033[H\033[J"), 2);
    run_free(&r);
}

static void control_c_ends_it_well(void **state)
{
    (void)state;
    static const char *const signals[] = {"INT", "TERM"};
    for (int i = 0; i < 2; i++) {
        /* after the first reading, however long that takes; without job control the shell has it ignore SIGINT */
        run_result r = run_shell("set -m; readings=$(mktemp); '%s' smi --watch 30 >\"$readings\" & "
                                 "until [ -s \"$readings\" ]; do sleep 0.05; done; kill -s %s $!; wait $!; "
                                 "status=$?; cat \"$readings\"; rm \"$readings\"; exit $status",
                                 KOINE_PROGRAM, signals[i]);
        assert_status(r, 0);
        assert_int_equal(count_of(r.output, "koine " KN_VERSION), 1);
        run_free(&r);
    }
    /* stops if the output cannot be written */
    run_result r = run_shell("'%s' smi --watch 0.1 >/dev/full", KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "cannot write");
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_is_status_2),  cmocka_unit_test(the_table_names_each_device),
        cmocka_unit_test(unknown_figures_are_null), cmocka_unit_test(gpus_tell_more),
        cmocka_unit_test(readings_are_repeated),    cmocka_unit_test(a_terminal_is_drawn_over),
        cmocka_unit_test(control_c_ends_it_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
