/* test_sum_of_ones.c - the sum of 10^8 ones is exact in float32: 400 MB, hence the label "long". */
#include "support/check.h"

static void test_sum_of_ones(void **state)
{
    (void)state;
    for (int i = 0; i < kn_device_count(); i++) {
        kn_device_properties properties;
        CHECK_OK(kn_device_get_properties(kn_device_at(i), &properties));
        if (properties.max_allocation < UINT64_C(400000000) || properties.total_memory < UINT64_C(1) << 30)
            continue;
        {
            KN_SCOPE;
            double sum = 0;
            kn_tensor *ones = kn_ones(KN_SHAPE(100000000), .device = kn_device_at(i));
            CHECK_OK(kn_item(kn_sum(ones), &sum));
            assert_true(sum == 1e8);
            CHECK_OK(kn_item(kn_mean(ones), &sum));
            assert_true(sum == 1);
        }
        CHECK_OK(kn_empty_cache(kn_device_at(i)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_sum_of_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
