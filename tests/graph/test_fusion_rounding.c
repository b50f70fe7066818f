/* test_fusion_rounding.c - with the compiler's optimiser, too, fused operations round as separate ones do. */
#include "fusion_case.h"

static kn_dtype dtype;

static void two_matrices_and_a_row(kn_tensor *inputs[4])
{
    inputs[0] = fusion_input("a", KN_SHAPE(7, 33), dtype);
    inputs[1] = fusion_input("b", KN_SHAPE(7, 33), dtype);
    inputs[2] = fusion_input("row", KN_SHAPE(33), dtype);
}

/* Products that are summed: a compiler would compute a fused multiply-add across operators. */
static void sums_of_products(fusion_run *run, kn_tensor *const *inputs)
{
    kn_tensor *product = kn_mul(inputs[0], inputs[1]);
    fusion_result(run, kn_add(product, inputs[2]));
    fusion_result(run, kn_sub(kn_mul(inputs[1], inputs[1]), kn_exp(kn_mul(inputs[0], inputs[0]))));
    fusion_result(run, product);
}

static void products_and_sums_are_rounded_apart(void **state)
{
    (void)state;
    const kn_dtype dtypes[] = {KN_F32, KN_F64};
    for (size_t i = 0; i < (check_has_f64() ? 2 : 1); i++) {
        dtype = dtypes[i];
        fusion_compare(sums_of_products, two_matrices_and_a_row, 1);
    }
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {TEST(products_and_sums_are_rounded_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
