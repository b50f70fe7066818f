/* test_choice.c - which implementation runs: tables are well formed, KOINE_IMPL and tests force rows, and problems that
 * a forced row does not support. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "ops/dispatch/choice.h"

static void test_tables(void **state)
{
    (void)state;
    int count = 0;
    for (const kn_implementation_table *table; (table = kn_implementation_tables[count]); count++) {
        const kn_implementation *last = &table->rows[table->count - 1];
        assert_ptr_equal(kn_implementation_table_find(table->operation), table);
        assert_string_equal(last->name, "reference");
        assert_true(!last->supports && !last->prefers); /* runs any problem on any device */
        for (int i = 0; i < table->count; i++)
            for (int j = 0; j < i; j++)
                assert_string_not_equal(table->rows[i].name, table->rows[j].name);
    }
    assert_true(count >= 4);
    assert_null(kn_implementation_table_find("no such operation"));
}

/* KOINE_IMPL asks for gemm:split, which computes no batches. */
TENSOR_TEST(test_environment)
{
    kn_tensor *a = kn_ones(KN_SHAPE(2, 3)), *b = kn_ones(KN_SHAPE(3, 2));
    CHECK_VALUES(kn_matmul(a, b), 3, 3, 3, 3);
    assert_null(kn_matmul(kn_ones(KN_SHAPE(2, 2, 3)), kn_ones(KN_SHAPE(2, 3, 2))));
    CHECK_ERROR(KN_ERR_ARGUMENT, "KOINE_IMPL", "gemm", "split");
}

TENSOR_TEST(test_forced)
{
    kn_tensor *a = kn_ones(KN_SHAPE(2, 1, 2)), *b = kn_ones(KN_SHAPE(2, 2, 1));
    kn_force_implementation("gemm", "reference");
    CHECK_VALUES(kn_matmul(a, b), 2, 2);
    assert_int_equal(kn_count_forced("gemm").ran, 1);
    assert_int_equal(kn_count_forced("gemm").unsupported, 0);
    kn_force_implementation("gemm", "split"); /* forced by a test: another row computes what it does not support */
    CHECK_VALUES(kn_matmul(a, b), 2, 2);
    assert_int_equal(kn_count_forced("gemm").ran, 0);
    assert_int_equal(kn_count_forced("gemm").unsupported, 1);
    kn_force_implementation("gemm", "bogus");
    assert_null(kn_matmul(a, b));
    CHECK_ERROR(KN_ERR_ARGUMENT, "gemm", "bogus", "split", "reference");
    kn_force_implementation("gemm", NULL);
    assert_null(kn_matmul(a, b)); /* KOINE_IMPL applies again */
    CHECK_ERROR(KN_ERR_ARGUMENT, "split");
    assert_int_equal(kn_count_forced("conv2d").ran, 0); /* never forced */
}

/* Slices of volumes are images, which the row that makes them does not support: KOINE_IMPL means the whole problem. */
TENSOR_TEST(test_nested)
{
    kn_tensor *x = kn_ones(KN_SHAPE(1, 1, 2, 2, 2)), *weight = kn_ones(KN_SHAPE(1, 1, 2, 2, 1));
    CHECK_VALUES(kn_conv3d(x, weight, NULL, .padding = 0), 4, 4);
    assert_null(kn_conv2d(kn_ones(KN_SHAPE(1, 1, 2, 2)), kn_ones(KN_SHAPE(1, 1, 1, 2)), NULL, .padding = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "KOINE_IMPL", "conv2d", "slices");
}

/* Wrong values of KOINE_IMPL: given as the only argument, each by a separate test in CMakeLists.txt. */
static int check_refused(const char *value, const char *piece)
{
    setenv("KOINE_IMPL", value, 1);
    bool refused = false;
    {
        KN_SCOPE;
        refused = !kn_matmul(kn_ones(KN_SHAPE(1, 1)), kn_ones(KN_SHAPE(1, 1)));
    }
    return refused && strstr(kn_error_message(), "KOINE_IMPL") && strstr(kn_error_message(), piece) ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return check_refused(argv[1], argv[2]);
    setenv("KOINE_IMPL", "conv2d:slices,gemm:split", 1);
    const struct CMUnitTest tests[] = {TEST(test_tables), TEST(test_environment), TEST(test_forced), TEST(test_nested)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
