/* test_driver_memory.c - buffers above CL_DEVICE_MAX_MEM_ALLOC_SIZE, which NVIDIA's driver gives, and a driver without
 * memory, as the layer told_driver.c is: the cache goes back to it before it is asked again. */
#include "rt/rt_test.h"

#include "rt/rt.h"
#include "rt/told_driver.h"

#define MIB ((size_t)1 << 20)

static told_driver *told;

static kn_tensor *bytes_of(size_t mib) { return kn_full(KN_SHAPE((int64_t)(mib * MIB)), 1, .dtype = KN_U8); }

static void expect_sum(kn_tensor *x, double expected)
{
    double sum = 0;
    assert_new(x);
    assert_ok(kn_item(kn_sum(x), &sum));
    assert_true(sum == expected);
}

static void the_largest_buffer_is_no_limit(void **state)
{
    (void)state;
    kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(test_device());
    const uint64_t real = limits->max_allocation;
    limits->max_allocation = 16 * MIB;
    {
        KN_SCOPE;
        expect_sum(bytes_of(24), 24.0 * MIB);
    }
    limits->max_allocation = real;
}

static void the_cache_is_given_back(void **state)
{
    (void)state;
    {
        KN_SCOPE;
        expect_sum(bytes_of(24), 24.0 * MIB);
    }
    told->room = told->bytes + 16 * MIB;
    told->refused = 0;
    {
        KN_SCOPE;
        expect_sum(bytes_of(32), 32.0 * MIB);
        assert_int_equal(told->refused, 1);

        assert_null(bytes_of(24));
        assert_int_equal(kn_error_status(), KN_ERR_MEMORY);
        assert_message("out of memory on");
        expect_sum(kn_ones(KN_SHAPE(100)), 100); /* goes on with what there is */
    }
    {
        KN_SCOPE;
        expect_sum(bytes_of(24), 24.0 * MIB);
    }
    told->room = 0;
}

int main(void)
{
    use_told_driver();
    if (kn_device_count() == 0 || !(told = find_told_driver()))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_buffer_is_no_limit),
        cmocka_unit_test(the_cache_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
