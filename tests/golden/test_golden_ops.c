/* test_golden_ops.c - every operation against PyTorch's results: outputs and gradients, on every device, in float32;
 * with KOINE_TEST_FULL=1 in float64 too, which tests/ops compares with the references.
 *
 *     test_golden_ops [FILE [CASE]]      one golden file, one case of it
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "golden/golden_ops.h"
#include "support/full.h"
#include "support/values.h"

static const char *only_file, *only_case;

typedef struct golden_run {
    const char *file;
    const golden_case *c;
    kn_dtype dtype;
    kn_device *device;
} golden_run;

static int complain(const golden_run *run, const char *what, const char *message)
{
    print_error("%s %s in %s on %s: %s: %s\n     again: test_golden_ops %s %s\n", run->file, run->c->name,
                kn_dtype_name(run->dtype), kn_device_string(run->device), what, message, run->file, run->c->name);
    return 1;
}

/* How many terms the longest sum has: `terms` or, in older files, `reduction`, which now is a loss's parameter. */
static int64_t terms_of(const golden_case *c)
{
    const int64_t terms = golden_whole(c, "terms", golden_whole(c, "reduction", 1));
    return terms > 0 ? terms : 1;
}

/* Compares shape and values of `actual` with `expected`, computed by PyTorch in float64 (or in a dtype independent of
 * the run's). */
static int compare(const golden_run *run, const kn_tensor *actual, const kn_tensor *expected, const char *what)
{
    bool floating = kn_dtype_is_floating(kn_dtype_of(expected));
    kn_dtype dtype = floating && kn_dtype_of(expected) == KN_F64 ? run->dtype : kn_dtype_of(expected);
    if (!actual)
        return complain(run, what, kn_error_message());
    if (kn_dtype_of(actual) != dtype)
        return complain(run, what, kn_dtype_name(kn_dtype_of(actual)));
    bool same = kn_ndim(actual) == kn_ndim(expected);
    for (int d = 0; same && d < kn_ndim(actual); d++)
        same = kn_size(actual, d) == kn_size(expected, d);
    if (!same)
        return complain(run, what, "another shape than PyTorch's");
    char message[400];
    double *a = read_doubles(actual), *b = read_doubles(expected);
    closeness limit = closeness_of(dtype, terms_of(run->c));
    int failed = 0;
    if (!a || !b)
        failed = complain(run, what, kn_error_message());
    else if (!values_close(a, b, kn_numel(expected), limit, message, sizeof message))
        failed = complain(run, what, message);
    free(a);
    free(b);
    return failed;
}

static int compare_gradients(const golden_run *run, kn_tensor *output, kn_tensor *const *x)
{
    kn_tensor *gout = golden_tensor(run->c, "gout", -1);
    if (!gout)
        return 0;
    if (kn_backward_with(output, golden_on_device(gout, run->dtype), false) != KN_OK)
        return complain(run, "backward", kn_error_message());
    int failed = 0;
    for (int i = 0; i < GOLDEN_MAX_INPUTS; i++) {
        kn_tensor *expected = golden_tensor(run->c, "grad", i);
        char what[32];
        snprintf(what, sizeof what, "gradient of input %d", i);
        if (expected && !kn_grad(x[i]))
            failed += complain(run, what, "there is none");
        else if (expected)
            failed += compare(run, kn_grad(x[i]), expected, what);
    }
    return failed;
}

static int check_case(const golden_run *run)
{
    kn_tensor *x[GOLDEN_MAX_INPUTS] = {NULL}, *more[GOLDEN_MORE] = {NULL};
    for (int i = 0; i < GOLDEN_MAX_INPUTS; i++) {
        kn_tensor *host = golden_tensor(run->c, "in", i);
        if (!host)
            continue;
        x[i] = golden_on_device(host, run->dtype);
        if (x[i] && golden_tensor(run->c, "grad", i))
            kn_set_requires_grad(x[i], true);
    }
    kn_tensor *output = golden_apply(run->c, x, more);
    int failed = compare(run, output, golden_tensor(run->c, "out", -1), "output");
    for (int i = 0; i < GOLDEN_MORE; i++) {
        kn_tensor *expected = golden_tensor(run->c, "out", 1 + i);
        char what[32];
        snprintf(what, sizeof what, "output %d", 1 + i);
        if (expected)
            failed += compare(run, more[i], expected, what);
    }
    if (failed == 0)
        failed += compare_gradients(run, output, x);
    kn_error_clear();
    return failed > 0;
}

static int check_file(const char *name, kn_dtype dtype, kn_device *device)
{
    if (only_file && strcmp(only_file, name) != 0)
        return 0;
    kn_tensor_file *file = golden_open(name);
    assert_non_null(file);
    assert_int_equal(kn_device_set_current(device), KN_OK);
    char *words = golden_words(file, "cases");
    int failed = 0, cases = 0;
    for (const char *word = words; *word; word = GOLDEN_NEXT(word)) {
        if (only_case && strcmp(only_case, word) != 0)
            continue;
        golden_case c = golden_case_of(file, word);
        golden_run run = {name, &c, dtype, device};
        {
            KN_SCOPE;
            failed += check_case(&run);
        }
        cases++;
    }
    print_message("%s in %s on %s: %d of %d cases differ\n", name, kn_dtype_name(dtype), kn_device_string(device),
                  failed, cases);
    free(words);
    kn_tensor_file_free(file);
    return failed;
}

static void test_family(void **state)
{
    int failed = 0;
    for (int i = 0; i < kn_device_count(); i++) {
        kn_device_properties properties;
        kn_device *device = kn_device_at(i);
        assert_int_equal(kn_device_get_properties(device, &properties), KN_OK);
        failed += check_file(*state, KN_F32, device);
        if (properties.has_f64 && test_full())
            failed += check_file(*state, KN_F64, device);
    }
    assert_int_equal(failed, 0);
}

#define FAMILY(name) cmocka_unit_test_prestate(test_family, (void *)name)

int main(int argc, char **argv)
{
    only_file = argc > 1 ? argv[1] : NULL;
    only_case = argc > 2 ? argv[2] : NULL;
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        FAMILY("conv2d"),
        FAMILY("conv"),
        FAMILY("attention"),
        FAMILY("products"),
        FAMILY("pool2d"),
        FAMILY("pool"),
        FAMILY("functions"),
        FAMILY("activation"),
        FAMILY("linalg"),
        FAMILY("loss"),
        FAMILY("losses"),
        FAMILY("pairs"),
        FAMILY("composed"),
        FAMILY("elementwise"),
        FAMILY("reduction"),
        FAMILY("rows"),
        FAMILY("matmul"),
        FAMILY("norm"),
        FAMILY("activations"),
        FAMILY("binary"),
        FAMILY("logic"),
        FAMILY("special"),
        FAMILY("index"),
        FAMILY("norms"),
        FAMILY("vision"),
        FAMILY("pool_more"),
        FAMILY("sort"),
        FAMILY("rnn"),
    };
    /* clang-format on */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
