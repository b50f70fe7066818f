/* KOINE_MEMORY_LIMIT = 8 MiB: out of memory is reported with figures, after freeing the cache, and everything works
 * afterwards. */
#include "rt/rt_test.h"

#include "rt/memory/pool.h"

#define MIB ((int64_t)1 << 20)

static void a_tensor_over_the_limit_fails_with_figures(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *kept = kn_zeros(KN_SHAPE(MIB / 4));
    assert_non_null(kept);
    assert_null(kn_relu(kn_zeros(KN_SHAPE(10 * MIB))));
    const char *message = kn_error_message();
    assert_non_null(strstr(message, "out of memory"));
    assert_non_null(strstr(message, "40.0 MiB"));
    assert_non_null(strstr(message, "1.0 MiB in use"));
    assert_int_equal(kn_error_status(), KN_ERR_MEMORY);
    kn_error_clear();
    assert_non_null(kn_relu(kept));
}

static void the_cache_is_given_back_first(void **state)
{
    (void)state;
    kn_device *device = test_device();
    assert_ok(kn_empty_cache(device));
    uint64_t retries = kn_pool_read_figures(device).retries;
    {
        KN_SCOPE;
        /* 6 MiB in small blocks, then free: cached */
        for (int i = 0; i < 6; i++)
            assert_non_null(kn_zeros(KN_SHAPE(MIB / 4)));
    }
    assert_true(kn_memory_reserved(device) >= 6 * (uint64_t)MIB);
    {
        KN_SCOPE;
        /* fits only after freeing the cache: segments of 2 MiB cannot hold it */
        assert_non_null(kn_zeros(KN_SHAPE(6 * MIB / 4)));
    }
    assert_true(kn_pool_read_figures(device).retries > retries);
}

/* A segment is rounded up to 2 MiB, unless only less is left. */
static void the_last_bytes_can_be_had(void **state)
{
    (void)state;
    kn_device *device = test_device();
    assert_ok(kn_empty_cache(device));
    assert_int_equal(kn_memory_reserved(device), 0);
    assert_ok(kn_set_per_process_memory_fraction(device, 7.0 / 8));
    {
        KN_SCOPE;
        kn_tensor *most = kn_zeros(KN_SHAPE(6 * MIB / 4)), *some = kn_zeros(KN_SHAPE(100));
        assert_non_null(most);
        assert_non_null(some);
        assert_int_equal(kn_memory_reserved(device), 6 * MIB + 512);
        assert_non_null(kn_relu(some));
    }
    {
        KN_SCOPE;
        assert_non_null(kn_zeros(KN_SHAPE(7 * MIB / 4)));
    }
    assert_ok(kn_empty_cache(device));
    assert_int_equal(kn_memory_reserved(device), 0);
    assert_ok(kn_set_per_process_memory_fraction(device, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_over_the_limit_fails_with_figures),
        cmocka_unit_test(the_cache_is_given_back_first),
        cmocka_unit_test(the_last_bytes_can_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
