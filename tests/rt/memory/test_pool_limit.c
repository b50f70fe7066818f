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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_over_the_limit_fails_with_figures),
        cmocka_unit_test(the_cache_is_given_back_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
