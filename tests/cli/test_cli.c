/* tests/cli/test_cli.c - `koine` and `koine devices`: usage, the table, the JSON, unknown devices, no platform at all.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_program.h"

static void expect_usage_error(const char *arguments, const char *reason)
{
    run_result r = run_shell("'%s' %s", KOINE_PROGRAM, arguments);
    assert_status(r, 2);
    assert_string_equal(r.output, "");
    assert_contains(r.errors, "usage: koine");
    assert_contains(r.errors, reason);
    run_free(&r);
}

static void wrong_usage_is_status_2(void **state)
{
    (void)state;
    expect_usage_error("", "usage");
    expect_usage_error("nosuch", "nosuch");
    expect_usage_error("devices --nosuch", "unknown option `--nosuch`");
    expect_usage_error("devices --json=yes", "--json=yes");
    expect_usage_error("devices cpu gpu", "unexpected argument `gpu`");
    expect_usage_error("doctor cpu", "unexpected argument `cpu`");
    expect_usage_error("doctor --device", "missing value after `--device`");
}

static void help_and_version_go_to_stdout(void **state)
{
    (void)state;
    static const char *const asks[] = {"--help", "-h", "help", "devices --help", "doctor -h", "smi --help"};
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        run_result r = run_shell("'%s' %s", KOINE_PROGRAM, asks[i]);
        assert_status(r, 0);
        assert_contains(r.output, "usage: koine");
        assert_string_equal(r.errors, "");
        run_free(&r);
    }
    run_result r = run_shell("'%s' --version", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_string_equal(r.output, "koine " KN_VERSION "\n");
    run_free(&r);
}

static void operators_are_listed(void **state)
{
    (void)state;
    run_result r = run_shell("COLUMNS=100 '%s' operators", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_contains(r.output, "p=0.5, training=true");
    for (const char *line = r.output; *line; line = strchr(line, '\n') + 1)
        assert_true(strcspn(line, "\n") <= 100);
    run_free(&r);
}

static void a_full_disk_is_reported(void **state)
{
    (void)state;
    run_result r = run_shell("'%s' --version >/dev/full", KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "cannot write");
    run_free(&r);
}

static void the_table_names_each_device(void **state)
{
    (void)state;
    run_result r = run_shell("'%s' devices", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_contains(r.output, "DEVICE");
    assert_contains(r.output, "extensions");
    for (int i = 0; i < kn_device_count(); i++) {
        assert_contains(r.output, kn_device_string(kn_device_at(i)));
        assert_contains(r.output, kn_device_name(kn_device_at(i)));
    }
    run_free(&r);
}

/* Output fits a known width; --wide and pipes get all columns. */
static void output_fits_the_width(void **state)
{
    (void)state;
    char first[64];
    snprintf(first, sizeof first, "devices %s", first_device_name());
    const char *const commands[] = {"--help", "devices",        "smi", "doctor --system", "smi --help",   "tune --help",
                                    "help",   "devices --help", first, "doctor --help",   "smi --count 1"};
    static const int widths[] = {80, 100, 60};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            run_result r = run_shell("COLUMNS=%d '%s' %s", widths[w], KOINE_PROGRAM, commands[i]);
            if (longest_line(r.output) > widths[w] || longest_line(r.output) == 0)
                fail_msg("koine %s: more than %d characters, or nothing:\n%s%s", commands[i], widths[w], r.output,
                         r.errors);
            assert_lacks(r.output, " \n");
            run_free(&r);
        }
    run_result narrow = run_shell("COLUMNS=60 '%s' devices", KOINE_PROGRAM);
    run_result wide = run_shell("COLUMNS=60 '%s' devices --wide", KOINE_PROGRAM);
    run_result piped = run_shell("unset COLUMNS; '%s' devices", KOINE_PROGRAM);
    assert_contains(narrow.output, "koine devices --wide");
    assert_lacks(narrow.output, "SUBGROUPS");
    assert_contains(wide.output, "SUBGROUPS");
    assert_string_equal(wide.output, piped.output);
    run_free(&narrow);
    run_free(&wide);
    run_free(&piped);
}

static void colours_are_for_terminals(void **state)
{
    (void)state;
    if (!has_script())
        skip();
    run_result r = run_shell("unset COLUMNS NO_COLOR; TERM=xterm script -qec \"stty cols 70; '%s' devices\" /dev/null",
                             KOINE_PROGRAM);
    assert_status(r, 0);
    assert_contains(r.output, "\033[1mDEVICE");
    assert_true(longest_line(r.output) <= 70);
    run_free(&r);
    r = run_shell("NO_COLOR=1 TERM=xterm script -qec \"'%s' devices\" /dev/null", KOINE_PROGRAM);
    assert_contains(r.output, "DEVICE");
    assert_lacks(r.output, "\033");
    run_free(&r);
    r = run_shell("unset NO_COLOR; TERM=dumb script -qec \"'%s' devices\" /dev/null", KOINE_PROGRAM);
    assert_lacks(r.output, "\033");
    run_free(&r);
    r = run_shell("unset NO_COLOR; TERM=xterm '%s' devices", KOINE_PROGRAM);
    assert_lacks(r.output, "\033");
    run_free(&r);
}

static cJSON *parse_devices(const run_result *r, cJSON **root)
{
    *root = cJSON_Parse(r->output);
    if (!*root)
        fail_msg("not JSON: %s", r->output);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(*root, "version")), KN_VERSION);
    cJSON *devices = cJSON_GetObjectItem(*root, "devices");
    assert_true(cJSON_IsArray(devices));
    return devices;
}

static void the_json_holds_what_the_library_says(void **state)
{
    (void)state;
    cJSON *root;
    run_result r = run_shell("'%s' devices --json", KOINE_PROGRAM);
    assert_status(r, 0);
    cJSON *devices = parse_devices(&r, &root);
    assert_int_equal(cJSON_GetArraySize(devices), kn_device_count());
    for (int i = 0; i < kn_device_count(); i++) {
        cJSON *device = cJSON_GetArrayItem(devices, i);
        kn_device_properties p;
        assert_int_equal(kn_device_get_properties(kn_device_at(i), &p), KN_OK);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(device, "device")),
                            kn_device_string(kn_device_at(i)));
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(device, "name")), p.name);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(device, "vendor")), p.vendor);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(device, "driver_version")), p.driver_version);
        assert_true(cJSON_GetObjectItem(device, "total_memory")->valuedouble == (double)p.total_memory);
        assert_int_equal(cJSON_GetObjectItem(device, "compute_units")->valueint, p.multi_processor_count);
        assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(device, "f64")), p.has_f64);
        assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(device, "extensions")) > 0);
    }
    cJSON_Delete(root);
    run_free(&r);
}

static void one_device_can_be_asked_for(void **state)
{
    (void)state;
    cJSON *root;
    run_result r = run_shell("'%s' devices %s --json", KOINE_PROGRAM, first_device_name());
    assert_status(r, 0);
    cJSON *devices = parse_devices(&r, &root);
    assert_int_equal(cJSON_GetArraySize(devices), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(devices, 0), "device")),
                        first_device_name());
    cJSON_Delete(root);
    run_free(&r);
}

static void a_level_of_messages_that_there_is_not_is_told(void **state)
{
    (void)state;
    run_result r = run_shell("KOINE_LOG=loud '%s' devices", KOINE_PROGRAM);
    assert_status(r, 0);
    assert_contains(r.errors, "KOINE_LOG=loud is ignored: the levels are debug, info, warning, error and off");
    run_free(&r);
    r = run_shell("KOINE_LOG=Error '%s' devices", KOINE_PROGRAM);
    assert_string_equal(r.errors, "");
    run_free(&r);
}

static void two_devices_out_of_one_cpu(void **state)
{
    (void)state;
    cJSON *root;
    if (!pocl_makes_two(KOINE_PROGRAM))
        skip();
    run_result r = run_shell("POCL_DEVICES='pthread pthread' '%s' devices --json", KOINE_PROGRAM);
    assert_status(r, 0);
    cJSON *devices = parse_devices(&r, &root);
    assert_true(cJSON_GetArraySize(devices) >= 2);
    cJSON_Delete(root);
    assert_contains(r.output, "\"cpu:0\"");
    assert_contains(r.output, "\"cpu:1\"");
    run_free(&r);
}

static void an_unknown_device_lists_what_there_is(void **state)
{
    (void)state;
    static const char *const unknown[] = {"nosuch", "gpu:63", "9:9", "cpu:77", "'cpu:'", "''"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        run_result r = run_shell("'%s' devices %s", KOINE_PROGRAM, unknown[i]);
        assert_status(r, 1);
        assert_string_equal(r.output, "");
        for (int d = 0; d < kn_device_count(); d++)
            assert_contains(r.errors, kn_device_string(kn_device_at(d)));
        run_free(&r);
    }
    run_result r = run_shell("KOINE_DEVICE=nosuch '%s' devices auto", KOINE_PROGRAM);
    assert_status(r, 1);
    assert_contains(r.errors, "nosuch");
    run_free(&r);
}

static void without_a_platform_the_remedy_is_told(void **state)
{
    (void)state;
    cJSON *root;
    const char *empty = fresh_folder("no-platform");
    run_result r = run_shell("OCL_ICD_VENDORS='%s' '%s' devices", empty, KOINE_PROGRAM);
    assert_status(r, 1);
    assert_string_equal(r.output, "");
    assert_contains(r.errors, "pocl-opencl-icd");
    run_free(&r);

    r = run_shell("OCL_ICD_VENDORS='%s' '%s' devices --json", empty, KOINE_PROGRAM);
    assert_status(r, 1);
    assert_int_equal(cJSON_GetArraySize(parse_devices(&r, &root)), 0);
    assert_contains(r.errors, "pocl-opencl-icd");
    cJSON_Delete(root);
    run_free(&r);
}

/* Escape sequences in arguments, variables and file names are escaped, not sent to the terminal. */
static void nothing_commands_the_terminal(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "KOINE_MEMORY_LIMIT=\"$E\" '%s' doctor",
        "KOINE_IMPL=\"$E\" KOINE_KERNEL_DIR=\"$E\" KOINE_FAIL_CL=\"$E\" '%s' doctor",
        "KOINE_VISIBLE_DEVICES=\"$E\" KOINE_TUNE_FILE=\"$E\" '%s' doctor",
        "KOINE_DEVICE=\"$E\" '%s' tune --budget 1 gemm",
        "'%s' \"$E\"",
        "'%s' memory \"$E\"",
        "'%s' devices \"--$E\"",
        "'%s' tune --budget \"$E\"",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char line[1200];
        snprintf(line, sizeof line, lines[i], KOINE_PROGRAM);
        run_result r = run_shell("E=$(printf '\\033[31mX\\a'); %s", line);
        for (const char *c = r.output; *c; c++)
            assert_true((unsigned char)*c >= 0x20 || *c == '\n');
        for (const char *c = r.errors; *c; c++)
            assert_true((unsigned char)*c >= 0x20 || *c == '\n');
        if (!strstr(r.output, "\\x1b[31mX\\x07") && !strstr(r.errors, "\\x1b[31mX\\x07"))
            fail_msg("%s: what was given is not shown:\n%s%s", line, r.output, r.errors);
        run_free(&r);
    }
}

/* KOINE_FAIL_IO, as documented. */
static void calls_to_the_file_system_fail_on_request(void **state)
{
    (void)state;
    char *folder = strdup(fresh_folder("fail-io"));
    put_file(folder, "snapshot.json", "{}");
    run_result r = run_shell("KOINE_FAIL_IO=1 '%s' memory '%s/snapshot.json'", KOINE_PROGRAM, folder);
    assert_status(r, 1);
    assert_contains(r.errors, "snapshot.json': Input/output error");
    run_free(&r);
    r = run_shell("KOINE_FAIL_IO=1:13 '%s' memory '%s/snapshot.json'", KOINE_PROGRAM, folder);
    assert_status(r, 1);
    assert_contains(r.errors, "snapshot.json': Permission denied");
    run_free(&r);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_is_status_2),
        cmocka_unit_test(help_and_version_go_to_stdout),
        cmocka_unit_test(operators_are_listed),
        cmocka_unit_test(a_full_disk_is_reported),
        cmocka_unit_test(the_table_names_each_device),
        cmocka_unit_test(output_fits_the_width),
        cmocka_unit_test(colours_are_for_terminals),
        cmocka_unit_test(the_json_holds_what_the_library_says),
        cmocka_unit_test(one_device_can_be_asked_for),
        cmocka_unit_test(a_level_of_messages_that_there_is_not_is_told),
        cmocka_unit_test(two_devices_out_of_one_cpu),
        cmocka_unit_test(an_unknown_device_lists_what_there_is),
        cmocka_unit_test(without_a_platform_the_remedy_is_told),
        cmocka_unit_test(nothing_commands_the_terminal),
        cmocka_unit_test(calls_to_the_file_system_fail_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
