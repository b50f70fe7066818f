/* No OpenCL platform at all (OCL_ICD_VENDORS points at an empty folder): an error that says what to install; the host
 * still works. */
#include "rt/rt_test.h"

static void no_device_says_what_to_install(void **state)
{
    (void)state;
    kn_device *device = NULL;
    assert_int_equal(kn_device_count(), 0);
    assert_false(kn_is_available());
    assert_int_equal(kn_status_of(device = kn_device_open("auto")), KN_ERR_DEVICE);
    assert_message("pocl-opencl-icd");
    assert_int_equal(kn_status_of(device = kn_device_open("gpu")), KN_ERR_DEVICE);
    assert_message("koine doctor");
    assert_null(kn_device_current());
    assert_message("no OpenCL device");
    assert_null(kn_try_gpu(0));
    assert_message("no OpenCL device");
}

static void a_whole_expression_fails_once_and_says_why(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *x = kn_zeros(KN_SHAPE(2, 2));
    assert_null(kn_relu(kn_add(x, kn_ones(KN_SHAPE(2, 2)))));
    assert_message("no OpenCL device");
}

static void host_tensors_work(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *x = kn_rand(KN_SHAPE(3), .device = kn_device_host());
    assert_non_null(x);
    assert_non_null(kn_data(x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_device_says_what_to_install),
        cmocka_unit_test(a_whole_expression_fails_once_and_says_why),
        cmocka_unit_test(host_tensors_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
