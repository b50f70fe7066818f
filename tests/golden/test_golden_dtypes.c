/* test_golden_dtypes.c - promotion, conversions between all pairs of dtypes, and arithmetic in bfloat16, int16 and int8
 * as PyTorch has them. */
#include "support/check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/op.h"
#include "support/full.h"
#include "support/golden.h"
#include "support/values.h"

/* As in golden_dtypes.py. */
enum { NUM_DTYPES = KN_BOOL };
static const kn_dtype dtypes[] = {KN_F64, KN_F32, KN_F16, KN_BF16, KN_I64, KN_I32, KN_I16, KN_I8, KN_U8, KN_BOOL};
_Static_assert(sizeof dtypes / sizeof dtypes[0] == NUM_DTYPES, "a dtype is missing");

static kn_dtype dtype_or_default(const kn_tensor *tensor) { return tensor ? kn_dtype_of(tensor) : KN_DTYPE_DEFAULT; }

/* --- promotion ---------------------------------------------------------------------------------------------------- */

/* `b` is ignored where there is only one operand. */
typedef kn_dtype (*result_function)(kn_dtype a, kn_dtype b);

static kn_tensor *some(kn_dtype dtype) { return kn_empty(KN_SHAPE(2), .dtype = dtype); }
static kn_tensor *one(kn_dtype dtype) { return kn_empty(KN_SCALAR, .dtype = dtype); }

#define RESULT(name, expression)                                                                                       \
    static kn_dtype of_##name(kn_dtype a, kn_dtype b)                                                                  \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        return dtype_or_default(expression);                                                                           \
    }
RESULT(mul, kn_mul(some(a), some(b)))
RESULT(zero_dim, kn_mul(some(a), one(b)))
RESULT(zero_dim_first, kn_mul(one(b), some(a)))
RESULT(zero_dims, kn_mul(one(a), one(b)))
RESULT(whole, kn_mul_scalar(some(a), 2))
RESULT(fraction, kn_mul_scalar(some(a), 2.5))
RESULT(zero_dim_whole, kn_mul_scalar(one(a), 2))
RESULT(zero_dim_fraction, kn_mul_scalar(one(a), 2.5))
RESULT(div, kn_div(some(a), some(b)))
RESULT(eq, kn_eq(some(a), some(b)))
RESULT(sum, kn_sum(some(a)))
RESULT(logsumexp, kn_logsumexp(some(a), NULL, 0, false))

/* The table under `key`, row by row. */
static int check_table(const kn_tensor_file *file, const char *key, result_function function, bool of_pairs)
{
    char *words = golden_words(file, key);
    const char *word = words;
    int failed = 0;
    for (int a = 0; a < NUM_DTYPES; a++)
        for (int b = 0; b < (of_pairs ? NUM_DTYPES : 1); b++, word = GOLDEN_NEXT(word)) {
            KN_SCOPE;
            const kn_dtype made = function(dtypes[a], dtypes[b]);
            const char *name = made == KN_DTYPE_DEFAULT ? kn_error_message() : kn_dtype_name(made);
            if (strcmp(name, word) != 0) {
                print_error("%s of %s and %s gives %s, in PyTorch %s\n", key, kn_dtype_name(dtypes[a]),
                            of_pairs ? kn_dtype_name(dtypes[b]) : "a number", name, word);
                failed++;
            }
        }
    assert_true(words && *word == '\0');
    free(words);
    return failed;
}

/* Hundreds of kernels would be compiled, for a dtype that is known before: nothing is computed. */
TENSOR_TEST_F64(dtypes_promote_as_in_pytorch)
{
    static const struct {
        const char *key;
        result_function function;
        bool of_pairs;
    } tables[] = {{"promote_types", kn_promote_types, true},
                  {"promote_types", of_mul, true},
                  {"result_type_zero_dim", of_zero_dim, true},
                  {"result_type_zero_dim", of_zero_dim_first, true},
                  {"result_type_zero_dims", of_zero_dims, true},
                  {"result_type_whole", of_whole, false},
                  {"result_type_fraction", of_fraction, false},
                  {"result_type_zero_dim_whole", of_zero_dim_whole, false},
                  {"result_type_zero_dim_fraction", of_zero_dim_fraction, false},
                  {"div", of_div, true},
                  {"eq", of_eq, true},
                  {"sum", of_sum, false},
                  {"logsumexp", of_logsumexp, false}};
    const bool before = kn_op_set_dry_run(true);
    kn_tensor_file *file = golden_open("promotion");
    int failed = 0;
    assert_non_null(file);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        failed += check_table(file, tables[i].key, tables[i].function, tables[i].of_pairs);
    kn_tensor_file_free(file);
    kn_op_set_dry_run(before);
    assert_int_equal(failed, 0);
}

/* Values outside the enum count as float32; the table is not read beyond its ends. */
TENSOR_TEST(there_are_only_these_dtypes)
{
    assert_string_equal(kn_dtype_name((kn_dtype)(KN_BOOL + 1)), "default");
    assert_string_equal(kn_dtype_name((kn_dtype)-1), "default");
    assert_int_equal(kn_promote_types((kn_dtype)99, KN_I8), KN_F32);
    assert_int_equal(kn_promote_types(KN_F64, (kn_dtype)-1), KN_F64);
    assert_null(kn_to_dtype(kn_ones(KN_SHAPE(1)), (kn_dtype)(KN_BOOL + 1)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "to_dtype: 11 is not a dtype");
}

/* --- conversions -------------------------------------------------------------------------------------------------- */

/* Equal bit by bit, but that any NaN equals any other. */
static int check_same(const char *name, const char *where, kn_tensor *made, kn_tensor *golden)
{
    size_t size = 0, golden_size = 0;
    const size_t element = kn_dtype_size(kn_dtype_of(golden));
    char *bytes = read_bytes(made, &size), *expected = read_bytes(golden, &golden_size);
    double *a = read_doubles(made), *b = read_doubles(golden);
    int failed = !bytes || !expected || kn_dtype_of(made) != kn_dtype_of(golden) || size != golden_size;
    if (failed)
        print_error("%s %s: %s\n", name, where, made ? kn_dtype_name(kn_dtype_of(made)) : kn_error_message());
    for (int64_t i = 0; !failed && i < kn_numel(golden); i++)
        if (memcmp(bytes + (size_t)i * element, expected + (size_t)i * element, element) != 0 &&
            !(isnan(a[i]) && isnan(b[i]))) {
            print_error("%s %s: [%d] is %.17g, should be %.17g\n", name, where, (int)i, a[i], b[i]);
            failed = 1;
        }
    kn_error_clear();
    free(bytes);
    free(expected);
    free(a);
    free(b);
    return failed;
}

/* On the host all pairs; on the device those that have kernels of a kind of their own. */
static bool is_tried(kn_dtype from, kn_dtype to, bool on_host)
{
    if (!on_host && !check_has_f64() && (from == KN_F64 || to == KN_F64))
        return false;
    return on_host || test_full() || from == KN_F32 || (from == KN_BF16 && (to == KN_F64 || to == KN_I8)) ||
           (to == KN_BF16 && kn_dtype_is_floating(from)) ||
           (from == KN_I64 && (to == KN_F32 || to == KN_F16 || to == KN_BF16 || to == KN_I16)) ||
           (to == KN_I8 && (from == KN_F64 || from == KN_I16)) || (from == KN_I8 && to == KN_U8);
}

static int check_conversion(const kn_tensor_file *file, kn_dtype from, kn_dtype to, bool on_host)
{
    char name[64];
    KN_SCOPE;
    kn_tensor *source = kn_tensor_file_get(file, kn_dtype_name(from));
    snprintf(name, sizeof name, "%s_to_%s", kn_dtype_name(from), kn_dtype_name(to));
    kn_tensor *golden = kn_tensor_file_get(file, name);
    CHECK_TENSOR(golden);
    if (!on_host)
        source = kn_to(source, kn_device_current());
    return check_same(name, on_host ? "on the host" : "on the device", kn_to_dtype(source, to), golden);
}

static void conversions_are_pytorchs(void **state)
{
    kn_tensor_file *file = golden_open("conversions");
    int failed = 0;
    (void)state;
    assert_non_null(file);
    for (int on_host = 0; on_host < 2; on_host++)
        for (int a = 0; a < NUM_DTYPES; a++)
            for (int b = 0; b < NUM_DTYPES; b++)
                if (a != b && is_tried(dtypes[a], dtypes[b], on_host))
                    failed += check_conversion(file, dtypes[a], dtypes[b], on_host);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

/* --- arithmetic --------------------------------------------------------------------------------------------------- */

typedef struct dtype_case {
    const char *name;
    kn_tensor *(*build)(kn_tensor *a, kn_tensor *b);
    bool is_rounded; /* a function or a sum: two libraries may differ in the last place */
} dtype_case;

#define BUILD(name, expression)                                                                                        \
    static kn_tensor *build_##name(kn_tensor *a, kn_tensor *b)                                                         \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        return expression;                                                                                             \
    }
BUILD(add, kn_add(a, b))
BUILD(sub, kn_sub(a, b))
BUILD(mul, kn_mul(a, b))
BUILD(div, kn_div(a, b))
BUILD(maximum, kn_maximum(a, b))
BUILD(lt, kn_lt(a, b))
BUILD(exp, kn_exp(a))
BUILD(log, kn_log(kn_abs(a)))
BUILD(sqrt, kn_sqrt(kn_abs(a)))
BUILD(sigmoid, kn_sigmoid(a))
BUILD(tanh, kn_tanh(a))
BUILD(relu, kn_relu(a))
BUILD(neg, kn_neg(a))
BUILD(abs, kn_abs(a))
BUILD(add_scalar, kn_add_scalar(a, 0.1))
BUILD(mul_scalar, kn_mul_scalar(a, 0.1))
BUILD(times_three, kn_mul_scalar(a, 3))
BUILD(sum, kn_sum(a))
BUILD(mean, kn_mean(a))
BUILD(prod, kn_prod(a))
BUILD(max, kn_max(a))
BUILD(argmax, kn_argmax(a, 0, false))
BUILD(cumsum, kn_cumsum(a, 0))
BUILD(softmax, kn_softmax(a, 0))

static void flush_denormals(double *values, int64_t count)
{
    for (int64_t i = 0; values && i < count; i++)
        values[i] = fabs(values[i]) < FLT_MIN ? 0 : values[i];
}

static int check_close(const char *name, kn_tensor *made, kn_tensor *golden, bool is_rounded)
{
    char message[400];
    double *a = read_doubles(made), *b = read_doubles(golden);
    if (!check_has_denormals()) {
        flush_denormals(a, kn_numel(made));
        flush_denormals(b, kn_numel(golden));
    }
    const double last_place = kn_dtype_of(golden) == KN_F32 ? 0x1p-20 : 0x1p-7;
    const bool same =
        a && b && kn_dtype_of(made) == kn_dtype_of(golden) && kn_numel(made) == kn_numel(golden) &&
        values_close(a, b, kn_numel(golden), (closeness){is_rounded ? last_place : 0, 0}, message, sizeof message);
    if (!same)
        print_error("%s: %s\n", name, a && b ? message : kn_error_message());
    kn_error_clear();
    free(a);
    free(b);
    return !same;
}

static kn_tensor *get(const kn_tensor_file *file, const char *prefix, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    kn_tensor *tensor = kn_tensor_file_get(file, full);
    return tensor ? kn_to(tensor, kn_device_current()) : NULL;
}

static int check_gradient(const kn_tensor_file *file, const dtype_case *c, const char *letter, kn_tensor *leaf)
{
    char name[64];
    snprintf(name, sizeof name, "%s/%s", c->name, letter);
    kn_tensor *golden = get(file, "", name);
    if (!golden) {
        kn_error_clear();
        return 0;
    }
    return check_close(name, kn_grad(leaf), golden, true);
}

static int check_bfloat(const kn_tensor_file *file, const dtype_case *c)
{
    KN_SCOPE;
    kn_tensor *a = get(file, "", "a"), *b = get(file, "", "b");
    CHECK_OK(kn_set_requires_grad(a, true));
    CHECK_OK(kn_set_requires_grad(b, true));
    kn_tensor *y = c->build(a, b);
    const int failed = check_close(c->name, y ? kn_detach(y) : NULL, get(file, "", c->name), c->is_rounded);
    CHECK_OK(kn_backward(kn_sum(y)));
    return failed + check_gradient(file, c, "a", a) + check_gradient(file, c, "b", b);
}

static void bfloat16_is_rounded_once(void **state)
{
    static const dtype_case cases[] = {{"add", build_add, false},
                                       {"sub", build_sub, false},
                                       {"mul", build_mul, false},
                                       {"div", build_div, false},
                                       {"maximum", build_maximum, false},
                                       {"exp", build_exp, true},
                                       {"log", build_log, true},
                                       {"sqrt", build_sqrt, false},
                                       {"sigmoid", build_sigmoid, true},
                                       {"tanh", build_tanh, true},
                                       {"relu", build_relu, false},
                                       {"neg", build_neg, false},
                                       {"add_scalar", build_add_scalar, false},
                                       {"mul_scalar", build_mul_scalar, false},
                                       {"sum", build_sum, true},
                                       {"mean", build_mean, true},
                                       {"cumsum", build_cumsum, true},
                                       {"softmax", build_softmax, true}};
    kn_tensor_file *file = golden_open("arithmetic");
    int failed = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        failed += check_bfloat(file, &cases[i]);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

TENSOR_TEST(bfloat16_with_other_dtypes)
{
    static const char *const others[] = {"float32", "float16", "int64", "int8", "bool"};
    kn_tensor_file *file = golden_open("arithmetic");
    int failed = 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        failed += check_close(others[i], kn_mul(get(file, "", "a"), get(file, "b_", others[i])),
                              get(file, "mul_with_", others[i]), false);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

TENSOR_TEST(small_integers_wrap_around)
{
    static const dtype_case cases[] = {
        {"add", build_add, false},       {"sub", build_sub, false}, {"mul", build_mul, false},
        {"div", build_div, true},        {"lt", build_lt, false},   {"maximum", build_maximum, false},
        {"neg", build_neg, false},       {"abs", build_abs, false}, {"sum", build_sum, false},
        {"prod", build_prod, false},     {"max", build_max, false}, {"argmax", build_argmax, false},
        {"cumsum", build_cumsum, false}, {"exp", build_exp, true},  {"mul_scalar", build_times_three, false}};
    static const char *const prefixes[] = {"int16_", "int8_"};
    kn_tensor_file *file = golden_open("arithmetic");
    int failed = 0;
    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            kn_tensor *y = cases[i].build(get(file, prefixes[p], "x"), get(file, prefixes[p], "y"));
            failed += check_close(cases[i].name, y, get(file, prefixes[p], cases[i].name), cases[i].is_rounded);
        }
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dtypes_promote_as_in_pytorch), TEST(there_are_only_these_dtypes), TEST(conversions_are_pytorchs),
        TEST(bfloat16_is_rounded_once),     TEST(bfloat16_with_other_dtypes),  TEST(small_integers_wrap_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
