/* test_flags.c - the flags of koine/flags.h: their values, and their effect on the choice of implementations. With an
 * argument: the flags set by the environment (see CMakeLists.txt). */
#include "support/check.h"

#include <string.h>

#include "autograd/op.h"
#include "ops/dispatch/choice.h"
#include "tensor/tensor.h"

static void reset(void)
{
    kn_set_benchmark(false);
    kn_set_deterministic(false);
    kn_set_fusion(true);
    kn_use_deterministic_algorithms(KN_DETERMINISTIC_OFF);
    kn_set_allow_reduced_precision(KN_MATMUL_ALLOW_TF32 | KN_MATMUL_ALLOW_FP16_REDUCTION | KN_CONV_ALLOW_TF32 |
                                       KN_CONV_ALLOW_FP16_REDUCTION,
                                   false);
}

/* --- values ------------------------------------------------------------------------------------------------ */

static void test_defaults(void **state)
{
    (void)state;
    assert_false(kn_get_benchmark());
    assert_false(kn_get_deterministic());
    assert_true(kn_get_fusion());
    assert_false(kn_are_deterministic_algorithms_enabled());
    assert_int_equal(kn_get_deterministic_debug_mode(), KN_DETERMINISTIC_OFF);
    for (unsigned bit = 1; bit < 16; bit *= 2)
        assert_false(kn_get_allow_reduced_precision(bit));
    assert_string_equal(kn_get_float32_matmul_precision(), "highest");
}

static void test_set_and_get(void **state)
{
    (void)state;
    kn_set_benchmark(true);
    kn_set_deterministic(true);
    kn_set_fusion(false);
    assert_true(kn_get_benchmark() && kn_get_deterministic() && !kn_get_fusion());
    assert_false(kn_are_deterministic_algorithms_enabled()); /* another flag */
    CHECK_OK(kn_use_deterministic_algorithms(KN_DETERMINISTIC_WARN));
    assert_true(kn_are_deterministic_algorithms_enabled() && kn_is_deterministic_algorithms_warn_only_enabled());
    CHECK_OK(kn_use_deterministic_algorithms(KN_DETERMINISTIC_ERROR));
    assert_int_equal(kn_get_deterministic_debug_mode(), KN_DETERMINISTIC_ERROR);
    assert_false(kn_is_deterministic_algorithms_warn_only_enabled());
    assert_int_equal(kn_use_deterministic_algorithms((kn_deterministic_mode)7), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_use_deterministic_algorithms", "7");
    assert_int_equal(kn_get_deterministic_debug_mode(), KN_DETERMINISTIC_ERROR);
    CHECK_OK(kn_set_allow_reduced_precision(KN_CONV_ALLOW_TF32 | KN_MATMUL_ALLOW_FP16_REDUCTION, true));
    assert_true(kn_get_allow_reduced_precision(KN_CONV_ALLOW_TF32));
    assert_false(kn_get_allow_reduced_precision(KN_CONV_ALLOW_TF32 | KN_MATMUL_ALLOW_TF32));
    assert_int_equal(kn_set_allow_reduced_precision(16, true), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "16");
    assert_int_equal(kn_set_allow_reduced_precision(0, true), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_set_allow_reduced_precision");
    reset();
    test_defaults(state);
}

static void test_matmul_precision(void **state)
{
    (void)state;
    static const char *const names[] = {"high", "medium", "highest"};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(kn_set_float32_matmul_precision(names[i]));
        assert_string_equal(kn_get_float32_matmul_precision(), names[i]);
        assert_int_equal(kn_get_allow_reduced_precision(KN_MATMUL_ALLOW_TF32), i < 2);
    }
    CHECK_OK(kn_set_allow_reduced_precision(KN_MATMUL_ALLOW_TF32, true)); /* the same flag by its other name */
    assert_string_equal(kn_get_float32_matmul_precision(), "high");
    assert_int_equal(kn_set_float32_matmul_precision("low"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "low", "highest, high or medium");
    assert_int_equal(kn_set_float32_matmul_precision(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "NULL");
    reset();
}

static void test_backends(void **state)
{
    (void)state;
    assert_true(kn_backend_is_available("clblast") && kn_backend_is_available("opencl"));
    assert_false(kn_backend_is_available("cudnn") || kn_backend_is_available(NULL));
    assert_int_equal(kn_error_status(), KN_OK); /* querying is not an error */
    assert_non_null(strchr(kn_backend_version("clblast"), '.'));
    assert_ptr_equal(strstr(kn_backend_version("opencl"), "OpenCL"), kn_backend_version("opencl"));
    assert_null(kn_backend_version("cudnn"));
    CHECK_ERROR(KN_ERR_ARGUMENT, "cudnn", "clblast");
}

/* --- effects ------------------------------------------------------------------------------------------------- */

static const char *ran; /* the row that ran */

#define ROW(name)                                                                                                      \
    static kn_status run_##name(kn_stream *stream, const void *problem)                                                \
    {                                                                                                                  \
        (void)stream, (void)problem;                                                                                   \
        ran = #name;                                                                                                   \
        return KN_OK;                                                                                                  \
    }
ROW(tf32)
ROW(racy)
ROW(plain)

static bool never(const kn_limits *limits, const void *problem)
{
    (void)limits, (void)problem;
    return false;
}

static const kn_implementation with_tf32[] = {{.name = "tf32", .run = run_tf32, .reduced_precision = KN_USES_TF32},
                                              {.name = "plain", .run = run_plain}};
static const kn_implementation with_race[] = {{.name = "racy", .run = run_racy, .nondeterministic = true},
                                              {.name = "plain", .prefers = never, .run = run_plain}};
static const kn_implementation only_race[] = {{.name = "racy", .run = run_racy, .nondeterministic = true}};
static const kn_implementation_table fake_matmul =
    KN_IMPLEMENTATION_TABLE("fake_matmul", with_tf32, KN_FAMILY_MATMUL, NULL);
static const kn_implementation_table fake_conv = KN_IMPLEMENTATION_TABLE("fake_conv", with_tf32, KN_FAMILY_CONV, NULL);
static const kn_implementation_table races = KN_IMPLEMENTATION_TABLE("races", with_race, KN_FAMILY_MATMUL, NULL);
static const kn_implementation_table only_races =
    KN_IMPLEMENTATION_TABLE("only_races", only_race, KN_FAMILY_MATMUL, NULL);

static kn_stream *stream(void) { return kn_stream_current(kn_device_current()); }

static const char *choice(const kn_implementation_table *table)
{
    ran = "nothing";
    CHECK_OK(kn_run_implementation(table, stream(), NULL));
    return ran;
}

/* A convolution implemented as a product. */
static kn_status run_product(kn_stream *on, const void *problem)
{
    return kn_run_implementation(&fake_matmul, on, problem);
}
static const kn_implementation as_product[] = {{.name = "lowered", .run = run_product}};
static const kn_implementation_table fake_lowered =
    KN_IMPLEMENTATION_TABLE("fake_lowered", as_product, KN_FAMILY_CONV, NULL);

static void test_reduced_precision(void **state)
{
    (void)state;
    assert_string_equal(choice(&fake_matmul), "plain");
    CHECK_OK(kn_set_allow_reduced_precision(KN_MATMUL_ALLOW_TF32, true));
    assert_string_equal(choice(&fake_matmul), "tf32");
    assert_string_equal(choice(&fake_conv), "plain");
    assert_string_equal(choice(&fake_lowered), "plain"); /* the product obeys the convolution's flag */
    reset();
    CHECK_OK(kn_set_allow_reduced_precision(KN_CONV_ALLOW_TF32, true));
    assert_string_equal(choice(&fake_matmul), "plain");
    assert_string_equal(choice(&fake_conv), "tf32");
    assert_string_equal(choice(&fake_lowered), "tf32");
    reset();
    kn_force_implementation("fake_matmul", "tf32"); /* not even if forced */
    assert_int_equal(kn_run_implementation(&fake_matmul, stream(), NULL), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "fake_matmul", "tf32", "reduced precision");
    kn_force_implementation("fake_matmul", NULL);
}

static int warnings;
static void count_warnings(kn_log_level level, const char *message, void *user)
{
    (void)user;
    warnings += level == KN_LOG_WARNING && strstr(message, "only_races") != NULL;
}

static void test_determinism(void **state)
{
    (void)state;
    assert_string_equal(choice(&races), "racy");
    kn_set_deterministic(true);
    assert_string_equal(choice(&races), "plain"); /* which is not preferred otherwise */
    assert_string_equal(choice(&only_races), "racy");
    CHECK_OK(kn_use_deterministic_algorithms(KN_DETERMINISTIC_ERROR));
    assert_string_equal(choice(&races), "plain");
    assert_int_equal(kn_run_implementation(&only_races, stream(), NULL), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "only_races", "deterministic");
    CHECK_OK(kn_use_deterministic_algorithms(KN_DETERMINISTIC_WARN));
    kn_log_set_handler(count_warnings, NULL);
    assert_string_equal(choice(&only_races), "racy");
    kn_log_set_handler(NULL, NULL);
    assert_int_equal(warnings, 1);
    reset();
}

static kn_status same_output(kn_call *call)
{
    return kn_call_output(call, call->inputs[0]->dtype, call->inputs[0]->ndim, call->inputs[0]->shape);
}
static kn_status copy(kn_call *call) { return kn_tensor_copy(call->outputs[0], call->inputs[0]); }

TENSOR_TEST(test_nondeterministic_operation)
{
    static const kn_op op = {
        .name = "racy_op", .inputs = {"x"}, .shape = same_output, .forward = copy, .nondeterministic = true};
    kn_tensor *x = kn_ones(KN_SHAPE(2));
    CHECK_VALUES(kn_apply(&op, NULL, x), 1, 1);
    CHECK_OK(kn_use_deterministic_algorithms(KN_DETERMINISTIC_ERROR));
    assert_null(kn_apply(&op, NULL, x));
    CHECK_ERROR(KN_ERR_STATE, "racy_op", "kn_use_deterministic_algorithms");
    CHECK_VALUES(kn_add(x, x), 2, 2); /* other operations still work */
    reset();
}

/* No row of the current tables is nondeterministic: each gives the same bits every time, including CLBlast. */
TENSOR_TEST(test_rows_are_deterministic)
{
    enum { M = 37, N = 65, K = 301 };
    static float first[M * N], again[M * N];
    kn_tensor *a = kn_rand(KN_SHAPE(M, K)), *b = kn_rand(KN_SHAPE(K, N));
    for (int t = 0; kn_implementation_tables[t]; t++)
        for (int i = 0; i < kn_implementation_tables[t]->count; i++)
            assert_false(kn_implementation_tables[t]->rows[i].nondeterministic);
    const kn_implementation_table *gemm = kn_implementation_table_find("gemm");
    for (int i = 0; i < gemm->count; i++) {
        if (!kn_implementation_allowed(&gemm->rows[i], kn_implementation_flags(gemm)))
            continue;
        kn_force_implementation("gemm", gemm->rows[i].name);
        for (int j = 0; j < 4; j++) {
            CHECK_OK(kn_read(kn_matmul(a, b), j ? again : first, sizeof first));
            if (j > 0 && memcmp(first, again, sizeof first) != 0)
                fail_msg("gemm:%s gives other bits the %d. time", gemm->rows[i].name, j + 1);
        }
    }
    kn_force_implementation("gemm", NULL);
}

static int check_environment(const char *benchmark, const char *deterministic, const char *mode, const char *fusion)
{
    static const char *const modes[] = {"off", "error", "warn"};
    return kn_get_benchmark() == (*benchmark == '1') && kn_get_deterministic() == (*deterministic == '1') &&
                   strcmp(modes[kn_get_deterministic_debug_mode()], mode) == 0 && kn_get_fusion() == (*fusion == '1')
               ? 0
               : 1;
}

int main(int argc, char **argv)
{
    if (argc == 5)
        return check_environment(argv[1], argv[2], argv[3], argv[4]);
    const struct CMUnitTest tests[] = {
        TEST(test_defaults),
        TEST(test_set_and_get),
        TEST(test_matmul_precision),
        TEST(test_backends),
        TEST(test_reduced_precision),
        TEST(test_determinism),
        TEST(test_nondeterministic_operation),
        TEST(test_rows_are_deterministic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
