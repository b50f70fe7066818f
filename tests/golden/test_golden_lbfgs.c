/* test_golden_lbfgs.c - LBFGS on Rosenbrock's function against PyTorch's twenty steps: parameters, losses and numbers
 * of evaluations; its state from PyTorch's file. */
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

#define SAVED_AFTER 10 /* steps */
#define COLUMNS 8      /* of a path: three elements of p and of q, the loss, evaluations */

typedef struct problem {
    kn_tensor *p, *q;
    kn_optim *optim;
    double sign;
    int evaluations;
} problem;

static kn_tensor *rosenbrock(void *user)
{
    problem *it = user;
    it->evaluations++;
    kn_optim_zero_grad(it->optim);
    kn_tensor *left = kn_sum(kn_square(kn_sub_scalar(it->p, 1)));
    kn_tensor *right = kn_sum(kn_square(kn_sub(it->q, kn_mul(it->p, it->p))));
    kn_tensor *loss = kn_mul_scalar(kn_add(left, kn_mul_scalar(right, 10)), it->sign);
    return kn_backward(loss) == KN_OK ? loss : NULL;
}

static problem start(const golden_case *c, const double *p, const double *q, kn_dtype dtype)
{
    problem it = {.p = tensor_of_doubles(p, KN_SHAPE(3), dtype, true),
                  .q = tensor_of_doubles(q, KN_SHAPE(3), dtype, true),
                  .sign = golden_number(c, "maximize", 0) != 0 ? -1 : 1};
    kn_tensor *leaves[] = {it.p, it.q};
    it.optim = kn_optim_lbfgs(
        ((kn_parameter_list){leaves, NULL, 2}), .lr = golden_number(c, "lr", 1),
        .max_iter = (int)golden_number(c, "max_iter", 20), .max_eval = (int)golden_number(c, "max_eval", 0),
        .history_size = (int)golden_number(c, "history_size", 100),
        .tolerance_grad = golden_number(c, "tolerance_grad", 1e-7),
        .tolerance_change = golden_number(c, "tolerance_change", 1e-9),
        .line_search_fn = (kn_lbfgs_line_search)golden_number(c, "line_search_fn", 0), .maximize = it.sign < 0);
    assert_non_null(it.optim);
    return it;
}

/* Steps first .. end - 1 against the rows of the path. */
static int follow(const golden_case *c, problem *it, int first, int end, double tolerance)
{
    const double *path = kn_data(golden_tensor(c, "path", -1));
    int failed = 0;
    for (int step = first; step < end && failed == 0; step++) {
        KN_SCOPE;
        double found[COLUMNS];
        const double *expected = path + (ptrdiff_t)step * COLUMNS;
        kn_tensor *loss = kn_optim_step_closure(it->optim, rosenbrock, it);
        assert_non_null(loss);
        double *p = read_doubles(it->p), *q = read_doubles(it->q);
        memcpy(found, p, 3 * sizeof *p);
        memcpy(found + 3, q, 3 * sizeof *q);
        assert_int_equal(kn_item(loss, &found[6]), KN_OK);
        found[7] = it->evaluations;
        for (int i = 0; i < COLUMNS; i++)
            if (!(fabs(found[i] - expected[i]) <= tolerance * (1 + fabs(expected[i])))) {
                print_error("%s, step %d, column %d: %.17g, expected %.17g\n", c->name, step, i, found[i], expected[i]);
                failed = 1;
            }
        free(p);
        free(q);
    }
    return failed;
}

static void test_paths(void **state)
{
    (void)state;
    check_needs_f64();
    KN_SCOPE;
    kn_tensor_file *file = golden_open("lbfgs");
    assert_non_null(file);
    char *words = golden_words(file, "cases");
    int failed = 0;
    for (const char *word = words; *word; word = GOLDEN_NEXT(word)) {
        KN_SCOPE;
        golden_case c = golden_case_of(file, word);
        problem it = start(&c, kn_data(kn_tensor_file_get(file, "p")), kn_data(kn_tensor_file_get(file, "q")), KN_F64);
        failed += follow(&c, &it, 0, 20, 1e-7);
        kn_optim_free(it.optim);
    }
    free(words);
    kn_tensor_file_free(file);
    assert_int_equal(failed, 0);
}

/* From PyTorch's file; then through one of Koine's after each step, which changes no bit. */
static void test_state(void **state)
{
    (void)state;
    check_needs_f64();
    KN_SCOPE;
    kn_tensor_file *file = golden_open("lbfgs");
    golden_case c = golden_case_of(file, "wolfe_history");
    const double *row = (const double *)kn_data(golden_tensor(&c, "path", -1)) + (SAVED_AFTER - 1) * COLUMNS;
    problem it = start(&c, row, row + 3, KN_F64), other = start(&c, row, row + 3, KN_F64);
    it.evaluations = (int)row[7];
    const char *path = KOINE_SOURCE_DIR "/tests/golden/optim_state_LBFGS.safetensors";
    const char *own = KOINE_BINARY_DIR "/tests/golden/lbfgs_state.safetensors";
    assert_int_equal(kn_optim_load(it.optim, path), KN_OK);
    assert_int_equal(kn_optim_load(other.optim, path), KN_OK);
    for (int step = SAVED_AFTER; step < 20; step++) {
        assert_int_equal(follow(&c, &it, step, step + 1, 1e-7), 0);
        assert_non_null(kn_optim_step_closure(other.optim, rosenbrock, &other));
        assert_int_equal(kn_optim_save(other.optim, own), KN_OK);
        assert_int_equal(kn_optim_load(other.optim, own), KN_OK);
        double *a = read_doubles(it.p), *b = read_doubles(other.p);
        assert_memory_equal(a, b, 3 * sizeof *a);
        free(a);
        free(b);
    }
    kn_optim_free(it.optim);
    kn_optim_free(other.optim);
    kn_tensor_file_free(file);
}

/* float32 and halves find the minimum too, within their resolution. */
static void test_other_dtypes(void **state)
{
    (void)state;
    const struct {
        kn_dtype dtype;
        double tolerance;
    } rows[] = {{KN_F32, 1e-3}, {KN_F16, 0.05}};
    for (int i = 0; i < 2; i++) {
        KN_SCOPE;
        golden_case c = {.name = "wolfe", .text = "op=LBFGS line_search_fn=1 max_iter=40"};
        problem it = start(&c, (double[]){-0.5, 0.5, 1.5}, (double[]){1, -0.75, 2}, rows[i].dtype);
        assert_non_null(kn_optim_step_closure(it.optim, rosenbrock, &it));
        double *p = read_doubles(it.p);
        for (int k = 0; k < 3; k++)
            if (!(fabs(p[k] - 1) <= rows[i].tolerance))
                fail_msg("%s: %g, expected 1", kn_dtype_name(rows[i].dtype), p[k]);
        free(p);
        kn_optim_free(it.optim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_paths), cmocka_unit_test(test_state),
                                       cmocka_unit_test(test_other_dtypes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
