/* test_group_sizes.c - kernels for which the driver takes fewer work-items than they are launched with, as the layer
 * told_driver.c does. With GPU kernels. */
#include "rt/rt_test.h"

#include <stdlib.h>

#include "rt/told_driver.h"
#include "support/as_gpu.h"

enum { ROWS = 40, COLUMNS = 70 };

static told_driver *told;

/* Loops, a product by blocks, rows with local memory. */
static void compute(float *results)
{
    KN_SCOPE;
    kn_manual_seed(1);
    kn_tensor *x = kn_randn(KN_SHAPE(ROWS, COLUMNS)), *y = kn_matmul(x, kn_transpose(x, 0, 1));
    assert_ok(kn_read(kn_softmax(kn_relu(y), 1), results, sizeof(float) * ROWS * ROWS));
}

static void smaller_groups_change_nothing(void **state)
{
    (void)state;
    static float expected[ROWS * ROWS], results[ROWS * ROWS];
    compute(expected);
    kn_device *other = kn_device_at(1); /* which has no kernels yet */
    assert_ok(kn_device_set_current(other));
    told->group = 16;
    const long before = told->launches[0];
    compute(results);
    assert_true(told->launches[0] > before);
    assert_memory_equal(results, expected, sizeof expected);
    told->group = 0;
}

static void a_kernel_that_does_not_fit(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *x = kn_ones(KN_SHAPE(1000));
    assert_new(x);
    told->group = 16;
    told->is_stubborn = true;
    assert_null(kn_cumsum(x, 0));
    assert_int_equal(kn_error_status(), KN_ERR_DEVICE);
    assert_message("runs at most 16");
    told->group = 0;
    told->is_stubborn = false;
    double sum = 0;
    assert_ok(kn_item(kn_sum(x), &sum));
    assert_true(sum == 1000);
}

int main(void)
{
    char program[] = "test_group_sizes", option[] = "--as-gpu", *as_gpu[] = {program, option};
    use_told_driver();
    if (kn_device_count() < 2 || !(told = find_told_driver()))
        return 77;
    obey_as_gpu(2, as_gpu);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smaller_groups_change_nothing),
        cmocka_unit_test(a_kernel_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
