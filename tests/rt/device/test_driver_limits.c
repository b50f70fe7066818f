/* test_driver_limits.c - limits of real drivers, which the layer support/odd_driver has: fills below 2 GiB, at most
 * 65535 work-groups in dimensions 1 and 2, and others. As a GPU. */
#include "rt/rt_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/as_gpu.h"

#define BYTES (((int64_t)2 << 30) + 4096)
#define MOST_GROUPS "100" /* instead of 65535, which would take minutes */
#define MANY 130

static void a_fill_of_more_than_2_gib(void **state)
{
    (void)state;
    kn_device_properties p;
    assert_ok(kn_device_get_properties(kn_device_at(0), &p));
    if (p.max_allocation < (uint64_t)BYTES)
        skip();

    KN_SCOPE;
    kn_tensor *x = kn_full(KN_SHAPE(BYTES), 3, .dtype = KN_U8);
    assert_new(x);
    const int64_t gib = (int64_t)1 << 30, at[] = {0, gib - 1, gib, 2 * gib - 1, 2 * gib, BYTES - 1};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        double value = -1;
        assert_ok(kn_item(kn_narrow(x, 0, at[i], 1), &value));
        assert_true(value == 3);
    }
}

/* All elements have this value. */
static void expect_everywhere(kn_tensor *x, double expected)
{
    double low = NAN, high = NAN;
    assert_new(x);
    assert_ok(kn_item(kn_min(x), &low));
    assert_ok(kn_item(kn_max(x), &high));
    assert_true(fabs(low - expected) < 1e-5 && fabs(high - expected) < 1e-5);
}

static void products_of_many_matrices(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *a = kn_full(KN_SHAPE(MANY, 9, 2), 3), *b = kn_full(KN_SHAPE(MANY, 2, 9), 0.5);
    expect_everywhere(kn_bmm(a, b), 3);
}

static void attention_of_many_heads(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *query = kn_full(KN_SHAPE(MANY, 1, 2, 1), 1), *value = kn_full(KN_SHAPE(MANY, 1, 2, 1), 0.25);
    kn_set_requires_grad(value, true);
    kn_tensor *result = kn_scaled_dot_product_attention(query, query, value);
    expect_everywhere(result, 0.25);
    assert_ok(kn_backward(kn_sum(result)));
    expect_everywhere(kn_grad(value), 1);
}

int main(void)
{
    char program[] = "test_driver_limits", option[] = "--as-gpu", *as_gpu[] = {program, option};
    setenv("OPENCL_LAYERS", ODD_DRIVER_LAYER, 1);
    setenv("ODD_DRIVER", "fill,strict,group,arguments,align=32768,local=32,dims=" MOST_GROUPS, 1);
    obey_as_gpu(2, as_gpu);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fill_of_more_than_2_gib),
        cmocka_unit_test(products_of_many_matrices),
        cmocka_unit_test(attention_of_many_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
