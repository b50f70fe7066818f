/* test_golden_text.c - printing, type promotion and conversion as in PyTorch. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "support/full.h"
#include "support/golden.h"
#include "support/values.h"

/* --- printing ---------------------------------------------------------------------------------------- */

static int check_text(const kn_tensor_file *file, const char *name)
{
    kn_tensor *tensor = kn_tensor_file_get(file, name);
    assert_non_null(tensor);
    if (strcmp(name, "requires_grad") == 0)
        CHECK_OK(kn_set_requires_grad(tensor, true));
    char *text = kn_to_string(tensor);
    const char *expected = kn_tensor_file_metadata(file, name);
    int failed = !text || strcmp(text, expected) != 0;
    if (failed)
        print_error("%s prints as\n%s\nand in PyTorch as\n%s\n", name, text ? text : kn_error_message(), expected);
    kn_free(text);
    return failed;
}

static void test_printing(void **state)
{
    (void)state;
    kn_tensor_file *file = golden_open("printing");
    assert_non_null(file);
    char *words = golden_words(file, "cases");
    int failed = 0;
    for (const char *word = words; *word; word = GOLDEN_NEXT(word))
        failed += check_text(file, word);
    free(words);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

/* --- promotion --------------------------------------------------------------------------------------- */

#define NUM_DTYPES 7
static const kn_dtype dtypes[NUM_DTYPES] = {KN_F64, KN_F32, KN_F16, KN_I64, KN_I32, KN_U8, KN_BOOL};

typedef kn_dtype (*result_function)(kn_dtype a, kn_dtype b);

/* Empty tensors, so that no kernel runs: hundreds would be compiled otherwise. */
static kn_tensor *ones(kn_dtype dtype) { return kn_ones(KN_SHAPE(test_full() ? 2 : 0), .dtype = dtype); }

static kn_dtype dtype_or_default(const kn_tensor *tensor) { return tensor ? kn_dtype_of(tensor) : KN_DTYPE_DEFAULT; }

static kn_dtype of_mul(kn_dtype a, kn_dtype b) { return dtype_or_default(kn_mul(ones(a), ones(b))); }
static kn_dtype of_div(kn_dtype a, kn_dtype b) { return dtype_or_default(kn_div(ones(a), ones(b))); }
static kn_dtype of_eq(kn_dtype a, kn_dtype b) { return dtype_or_default(kn_eq(ones(a), ones(b))); }
static kn_dtype of_zero_dim(kn_dtype a, kn_dtype b)
{
    return dtype_or_default(kn_mul(ones(a), kn_ones(KN_SCALAR, .dtype = b)));
}
static kn_dtype of_whole(kn_dtype a, kn_dtype b)
{
    (void)b;
    return dtype_or_default(kn_mul_scalar(ones(a), 2));
}
static kn_dtype of_fraction(kn_dtype a, kn_dtype b)
{
    (void)b;
    return dtype_or_default(kn_mul_scalar(ones(a), 2.5));
}
static kn_dtype of_sum(kn_dtype a, kn_dtype b)
{
    (void)b;
    return dtype_or_default(kn_sum(ones(a)));
}

/* The table under `key`, row by row; `columns` is 1 with a single operand. */
static int check_table(const kn_tensor_file *file, const char *key, result_function function, int columns)
{
    char *words = golden_words(file, key);
    const char *word = words;
    int failed = 0;
    for (int a = 0; a < NUM_DTYPES; a++)
        for (int b = 0; b < columns; b++, word = GOLDEN_NEXT(word)) {
            KN_SCOPE;
            kn_dtype made = function(dtypes[a], dtypes[b]);
            const char *name = made == KN_DTYPE_DEFAULT ? kn_error_message() : kn_dtype_name(made);
            if (strcmp(name, word) != 0) {
                print_error("%s of %s and %s gives %s, in PyTorch %s\n", key, kn_dtype_name(dtypes[a]),
                            columns > 1 ? kn_dtype_name(dtypes[b]) : "a number", name, word);
                failed++;
            }
        }
    free(words);
    return failed;
}

static void test_promotion(void **state)
{
    (void)state;
    kn_tensor_file *file = golden_open("promotion");
    assert_non_null(file);
    int failed = check_table(file, "promote_types", kn_promote_types, NUM_DTYPES);
    failed += check_table(file, "mul", of_mul, NUM_DTYPES);
    failed += check_table(file, "div", of_div, NUM_DTYPES);
    failed += check_table(file, "eq", of_eq, NUM_DTYPES);
    failed += check_table(file, "mul_scalar_whole", of_whole, 1);
    failed += check_table(file, "mul_scalar_fraction", of_fraction, 1);
    failed += check_table(file, "sum", of_sum, 1);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

/* A 0-dimensional tensor does not widen one with dimensions within the same kind of dtype. */
static void test_promotion_of_scalars(void **state)
{
    (void)state;
    kn_tensor_file *file = golden_open("promotion");
    assert_non_null(file);
    int failed = check_table(file, "mul_zero_dim", of_zero_dim, NUM_DTYPES);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

/* --- conversion -------------------------------------------------------------------------------------- */

static int check_conversion(const kn_tensor_file *file, const char *from, kn_dtype dtype, bool on_host)
{
    char name[64], message[400];
    snprintf(name, sizeof name, "%s_to_%s", from, kn_dtype_name(dtype));
    kn_tensor *golden = kn_tensor_file_get(file, name);
    if (!golden)
        return 0;
    kn_tensor *source = kn_tensor_file_get(file, from);
    kn_tensor *made = kn_to_dtype(on_host ? source : kn_to(source, kn_device_current()), dtype);
    double *a = read_doubles(made), *b = read_doubles(golden);
    bool same = a && b && kn_dtype_of(made) == dtype &&
                values_close(a, b, kn_numel(golden), (closeness){0, 0}, message, sizeof message);
    if (!same)
        print_error("%s on %s: %s\n", name, on_host ? "the host" : "the device", a && b ? message : kn_error_message());
    kn_error_clear();
    free(a);
    free(b);
    return !same;
}

static void test_conversion(void **state)
{
    (void)state;
    kn_tensor_file *file = golden_open("promotion");
    assert_non_null(file);
    int failed = 0;
    for (int i = 0; i < NUM_DTYPES; i++)
        for (int on_host = 0; on_host < 2; on_host++) {
            KN_SCOPE;
            failed += check_conversion(file, "floats", dtypes[i], on_host);
            failed += check_conversion(file, "integers", dtypes[i], on_host);
        }
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_printing),
        TEST(test_promotion),
        TEST(test_promotion_of_scalars),
        TEST(test_conversion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
