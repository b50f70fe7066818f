/* test_bypass.c - results that the caches cannot hold are stored past them (cl/common/bypass.clh): the same bits as of
 * small ones. */
#include "support/check.h"

#include "rt/rt.h"

enum { ELEMENTS = 20011, CACHE = 1 << 14, MOST = 7 /* results */ };

typedef int (*computation)(kn_tensor *results[MOST], kn_tensor *x, kn_tensor *z); /* returns how many */

static void check_same_past_the_caches(computation compute, kn_tensor *x, kn_tensor *z)
{
    kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(kn_device_current());
    const uint64_t cache = limits->global_cache;
    kn_tensor *small[MOST], *large[MOST];
    limits->global_cache = 1 << 30;
    compute(small, x, z);
    limits->global_cache = CACHE;
    const int count = compute(large, x, z);
    limits->global_cache = cache;
    for (int k = 0; k < count; k++)
        check_same_bits(small[k], large[k]);
}

/* Results of elements and of vectors, of one and of several inputs, of other sizes than the inputs', behind others. */
static int compute_elements(kn_tensor *results[MOST], kn_tensor *x, kn_tensor *z)
{
    kn_tensor *behind = kn_zeros(KN_SHAPE(ELEMENTS + 3), .dtype = kn_dtype_of(x));
    CHECK_OK(kn_copy_(kn_narrow(behind, 0, 3, ELEMENTS), x));
    results[0] = kn_relu(x);
    results[1] = kn_add(x, z);
    results[2] = kn_exp(x);
    results[3] = kn_mul(x, kn_full(KN_SCALAR, 3, .dtype = kn_dtype_of(x)));
    results[4] = kn_gt(x, z);
    results[5] = kn_to_dtype(x, KN_I16);
    results[6] = behind;
    return 7;
}

TENSOR_TEST(results_past_the_caches_have_the_same_bits)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F16, KN_BF16, KN_F64};
    for (int i = 0; i < (check_has_f64() ? 4 : 3); i++) {
        kn_tensor *x = kn_to_dtype(kn_randn(KN_SHAPE(ELEMENTS)), dtypes[i]);
        check_same_past_the_caches(compute_elements, x, kn_to_dtype(kn_randn(KN_SHAPE(ELEMENTS)), dtypes[i]));
    }
}

static int convert(kn_tensor *results[MOST], kn_tensor *x, kn_tensor *z)
{
    static const kn_dtype dtypes[MOST] = {KN_F32, KN_F16, KN_BF16, KN_I64, KN_I16, KN_U8, KN_BOOL};
    (void)z;
    for (int i = 0; i < MOST; i++)
        results[i] = kn_to_dtype(x, dtypes[i]);
    return MOST;
}

TENSOR_TEST(conversions_past_the_caches_have_the_same_bits)
{
    static const kn_dtype dtypes[] = {KN_F32, KN_F16, KN_I64, KN_BOOL, KN_F64};
    for (int i = 0; i < (check_has_f64() ? 5 : 4); i++) {
        kn_tensor *x = kn_to_dtype(kn_mul_scalar(kn_rand(KN_SHAPE(ELEMENTS)), 100), dtypes[i]);
        check_same_past_the_caches(convert, x, x);
    }
}

static kn_tensor *leaf_of(kn_tensor *x)
{
    kn_tensor *leaf = kn_detach(x);
    kn_set_requires_grad(leaf, true);
    return leaf;
}

static int normalize(kn_tensor *results[MOST], kn_tensor *x, kn_tensor *z)
{
    kn_tensor *leaf = leaf_of(x);
    results[0] = kn_batch_norm(leaf, .training = true);
    CHECK_OK(kn_backward(kn_sum(kn_mul(results[0], z))));
    results[1] = kn_grad(leaf);
    return 2;
}

/* Runs of whole lines, and others. */
TENSOR_TEST(batch_norm_past_the_caches_has_the_same_bits)
{
    for (int i = 0; i < 2; i++) {
        kn_tensor *x = kn_randn(KN_SHAPE(3, 4, i == 0 ? 64 : 13, 47));
        check_same_past_the_caches(normalize, x, x);
    }
}

/* Along rows and down columns. */
static int map_rows(kn_tensor *results[MOST], kn_tensor *x, kn_tensor *z)
{
    for (int dim = 0; dim < 2; dim++) {
        kn_tensor *leaf = leaf_of(x);
        results[3 * dim] = kn_log_softmax(leaf, dim);
        CHECK_OK(kn_backward(kn_sum(kn_mul(results[3 * dim], z))));
        results[3 * dim + 1] = kn_grad(leaf);
        results[3 * dim + 2] = kn_softmax(x, dim);
    }
    return 6;
}

/* Of whole vectors, and others. */
TENSOR_TEST(maps_of_rows_past_the_caches_have_the_same_bits)
{
    const kn_dtype dtypes[] = {KN_F32, check_has_f64() ? KN_F64 : KN_F32};
    for (int i = 0; i < 4; i++) {
        kn_tensor *x = kn_to_dtype(kn_randn(KN_SHAPE(90, i < 2 ? 208 : 203)), dtypes[i % 2]);
        check_same_past_the_caches(map_rows, x, x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(results_past_the_caches_have_the_same_bits),
        TEST(conversions_past_the_caches_have_the_same_bits),
        TEST(batch_norm_past_the_caches_has_the_same_bits),
        TEST(maps_of_rows_past_the_caches_have_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
