/* Device strings, properties, the current device; with two PoCL devices. */
#include "rt/rt_test.h"

#include <ctype.h>
#include <stdlib.h>

static void named_devices_open(void **state)
{
    (void)state;
    char first_word[32] = ""; /* of its own name, in capitals; PoCL has changed it */
    const char *name = kn_device_name(test_device());
    for (size_t i = 0; i + 1 < sizeof first_word && isalnum((unsigned char)name[i]); i++)
        first_word[i] = (char)toupper((unsigned char)name[i]);
    const char *const names[] = {"cpu", "cpu:0", "cpu:1", "pocl", "pocl:1", "0:0", "0:1", "CPU", first_word, "auto"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        kn_device *device = kn_device_open(names[i]);
        assert_new(device);
        assert_non_null(device);
    }
}

static void numbers_select_different_devices(void **state)
{
    (void)state;
    kn_device *first, *second, *again;
    assert_new(first = kn_device_open("pocl:0"));
    assert_new(second = kn_device_open("pocl:1"));
    assert_new(again = kn_device_open("0:1"));
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(second, again);
    assert_new(again = kn_device_open(kn_device_string(second)));
    assert_ptr_equal(second, again);
}

static void unknown_names_list_what_exists(void **state)
{
    (void)state;
    static const char *const names[] = {"gpu:7",         "cpu:2", "pocl:9", "7:0", "0:99",
                                        "no such thing", "",      "cpu:x",  ":",   "cpu:-1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        kn_device *device = NULL;
        assert_int_equal(kn_status_of(device = kn_device_open(names[i])), KN_ERR_DEVICE);
        assert_null(device);
        assert_non_null(strstr(kn_error_message(), names[i]));
        assert_message("cpu:0 = 0:0");
    }
}

static void environment_decides_auto(void **state)
{
    (void)state;
    kn_device *wanted, *device;
    assert_new(wanted = kn_device_open("pocl:1"));
    setenv("KOINE_DEVICE", "pocl:1", 1);
    assert_new(device = kn_device_open("auto"));
    assert_ptr_equal(device, wanted);
    setenv("KOINE_DEVICE", "gpu:9", 1);
    assert_int_equal(kn_status_of(device = kn_device_open(NULL)), KN_ERR_DEVICE);
    assert_message("gpu:9");
    unsetenv("KOINE_DEVICE");
}

static void host_is_a_device(void **state)
{
    (void)state;
    kn_device *host = kn_device_open("host");
    assert_new(host);
    assert_ptr_equal(host, kn_device_host());
    assert_string_equal(kn_device_string(host), "host");
    assert_int_equal(kn_device_get_type(host), KN_DEVICE_HOST);
    assert_null(kn_stream_current(host));
    assert_message("kn_to(tensor, device)");
}

static void counts_and_tries(void **state)
{
    (void)state;
    kn_device *all[KN_MAX_DIMS];
    assert_true(kn_is_available());
    assert_true(kn_device_count() >= 2);
    assert_null(kn_device_at(kn_device_count()));
    assert_message("does not exist");
    assert_non_null(kn_try_gpu(10)); /* no such GPU: the CPU device */
    assert_true(kn_try_all_gpus(all, KN_MAX_DIMS) >= 1);
    assert_non_null(all[0]);
}

static void properties_are_told(void **state)
{
    (void)state;
    kn_device_properties p;
    int major, minor;
    kn_device *device = test_device();
    assert_ok(kn_device_get_properties(device, &p));
    assert_true(strlen(p.name) > 0 && strlen(p.vendor) > 0 && strlen(p.platform) > 0 && strlen(p.driver_version) > 0);
    assert_true(p.total_memory > 0 && p.max_allocation > 0 && p.multi_processor_count > 0 && p.vector_width > 0);
    assert_ok(kn_device_capability(device, &major, &minor));
    assert_true(major >= 1);
    assert_string_equal(kn_device_name(device), p.name);
}

static void current_device_is_where_tensors_are_made(void **state)
{
    (void)state;
    kn_device *second = kn_device_open("pocl:1");
    assert_new(second);
    assert_ok(kn_device_set_current(second));
    {
        KN_SCOPE;
        assert_ptr_equal(kn_device_of(kn_zeros(KN_SHAPE(2))), second);
    }
    assert_int_equal(kn_device_set_current(NULL), KN_ERR_ARGUMENT);
}

int main(void)
{
    if (!two_cpu_devices()) /* the test uses it */
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_devices_open),
        cmocka_unit_test(numbers_select_different_devices),
        cmocka_unit_test(unknown_names_list_what_exists),
        cmocka_unit_test(environment_decides_auto),
        cmocka_unit_test(host_is_a_device),
        cmocka_unit_test(counts_and_tries),
        cmocka_unit_test(properties_are_told),
        cmocka_unit_test(current_device_is_where_tensors_are_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
