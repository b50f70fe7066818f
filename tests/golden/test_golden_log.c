/* test_golden_log.c - the device log against PyTorch: histograms of values on and next to bin edges, and the norm of
 * all gradients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/golden.h"
#include "support/values.h"

/* The number of values in a different bin than PyTorch's. */
static int64_t misplaced(const golden_case *c, bool wide)
{
    kn_tensor *x = golden_on_device(golden_tensor(c, wide ? "in_f64" : "in_f32", -1), wide ? KN_F64 : KN_F32);
    const int64_t *expected = kn_data(golden_tensor(c, wide ? "out_f64" : "out_f32", -1));
    int bins = (int)golden_whole(c, "bins", 0);
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_histogram(log, "h", bins, golden_number(c, "low", 0), golden_number(c, "high", 0));
    assert_int_equal(kn_device_log_histogram(log, entry, x), KN_OK);
    assert_int_equal(kn_device_log_read(log), KN_OK);
    const int64_t *found = kn_device_log_bins(log, entry, NULL);
    int64_t wrong = 0;
    for (int b = 0; b < bins; b++)
        wrong += llabs(found[b] - expected[b]);
    kn_device_log_free(log);
    return wrong;
}

/* OpenCL allows float32 division an error of 2.5 units in the last place, which most GPUs use: values next to an edge
 * may fall on its other side. So may the one next to 0, where subnormal numbers are 0. */
static void test_histograms(void **state)
{
    (void)state;
    kn_tensor_file *file = golden_open("log");
    assert_non_null(file);
    char *names = golden_words(file, "cases");
    for (const char *name = names; *name; name = GOLDEN_NEXT(name))
        for (int wide = 0; wide <= check_has_f64(); wide++) {
            KN_SCOPE;
            const golden_case c = golden_case_of(file, name);
            int64_t wrong = misplaced(&c, wide);
            const bool rounds = wide || check_rounds_division();
            if (wrong > (rounds ? !check_has_denormals() : 6 * golden_whole(&c, "bins", 0)))
                fail_msg("%s, %s: %lld values in other bins", name, wide ? "float64" : "float32", (long long)wrong);
        }
    free(names);
    kn_tensor_file_free(file);
}

static void test_gradient_norm(void **state)
{
    (void)state;
    enum { COUNT = 5 };
    kn_tensor_file *file = golden_open("log");
    static const char *const names[COUNT] = {"0", "1", "2", "3", "4"};
    double *expected = read_doubles(kn_tensor_file_get(file, "norm"));
    for (int wide = 0; wide <= check_has_f64(); wide++) {
        KN_SCOPE;
        kn_tensor *parameters[COUNT];
        for (int i = 0; i < COUNT; i++) {
            char name[16];
            snprintf(name, sizeof name, "grad%d", i);
            kn_tensor *gradient = golden_on_device(kn_tensor_file_get(file, name), wide ? KN_F64 : KN_F32);
            parameters[i] =
                kn_zeros(KN_SHAPE(kn_numel(gradient)), .dtype = kn_dtype_of(gradient), .requires_grad = true);
            assert_int_equal(kn_set_grad(parameters[i], gradient), KN_OK);
        }
        kn_device_log *log = kn_device_log_new();
        int entry = kn_device_log_add_grad_norm(log, "n", (kn_parameter_list){parameters, names, COUNT});
        assert_int_equal(kn_device_log_grad_norm(log, entry), KN_OK);
        assert_int_equal(kn_device_log_read(log), KN_OK);
        double norm = kn_device_log_value(log, entry, KN_FIGURE_LAST);
        if (!(fabs(norm / expected[0] - 1) < (wide ? 1e-14 : 2e-7)))
            fail_msg("the norm is %.17g, PyTorch's %.17g", norm, expected[0]);
        kn_device_log_free(log);
    }
    free(expected);
    kn_tensor_file_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_histograms), cmocka_unit_test(test_gradient_norm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
