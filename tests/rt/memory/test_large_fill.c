/* test_large_fill.c - buffers of 2 GiB and more are filled in pieces: the layer support/odd_driver.c refuses larger
 * fills, as NVIDIA's driver does. */
#include "rt/rt_test.h"

#include <stdio.h>
#include <stdlib.h>

#define BYTES (((int64_t)2 << 30) + 4096)

static void a_fill_of_more_than_2_gib(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *x = kn_full(KN_SHAPE(BYTES), 3, .dtype = KN_U8);
    assert_new(x);
    const int64_t at[] = {0,        ((int64_t)1 << 30) - 1, (int64_t)1 << 30, ((int64_t)2 << 30) - 1, (int64_t)2 << 30,
                          BYTES - 1};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        double value = -1;
        assert_ok(kn_item(kn_narrow(x, 0, at[i], 1), &value));
        assert_true(value == 3);
    }
}

int main(void)
{
    setenv("OPENCL_LAYERS", ODD_DRIVER_LAYER, 1);
    setenv("ODD_DRIVER", "fill", 1);
    kn_device_properties p;
    if (kn_device_get_properties(kn_device_at(0), &p) != KN_OK || p.max_allocation < (uint64_t)BYTES) {
        printf("skipped: the device gives less than 2 GiB in one buffer\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_fill_of_more_than_2_gib)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
