/* test_golden_training.c - optimizers against PyTorch's trajectories of twenty steps (in f64 with
 * KOINE_TEST_FULL=1), and the statistics of the default
 * initialisation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/full.h"
#include "support/golden.h"
#include "support/values.h"

/* --- optimizers ------------------------------------------------------------------------------------------ */

/* The case's words: "op=AdamW lr=0.1 amsgrad=1". */
static kn_optim *make_optimizer(const golden_case *c, kn_parameter_list parameters)
{
    char text[400], *rest = NULL;
    kn_optim_option options[KN_OPTIM_MAX_OPTIONS] = {{0}};
    snprintf(text, sizeof text, "%s", c->text);
    const char *op = strtok_r(text, " ", &rest) + strlen("op=");
    for (int i = 0; (options[i].name = strtok_r(NULL, " ", &rest)) != NULL; i++) {
        char *equals = strchr(options[i].name, '=');
        *equals = '\0';
        options[i].value = atof(equals + 1);
    }
    return kn_optim_named_with(op, parameters, options);
}

static kn_tensor *leaf_from(const kn_tensor_file *file, const char *name, kn_dtype dtype)
{
    kn_tensor *leaf = kn_clone(golden_on_device(kn_tensor_file_get(file, name), dtype));
    assert_non_null(leaf);
    assert_int_equal(kn_set_requires_grad(leaf, true), KN_OK);
    return leaf;
}

static void set_gradient(kn_tensor *leaf, const kn_tensor_file *file, const char *name, int step)
{
    kn_tensor *all = golden_on_device(kn_tensor_file_get(file, name), kn_dtype_of(leaf));
    kn_tensor *gradient = kn_clone(kn_select(all, 0, step));
    if (kn_ndim(leaf) > kn_ndim(gradient))
        gradient = kn_unsqueeze(gradient, 1);
    assert_int_equal(kn_set_grad(leaf, gradient), KN_OK);
}

static int compare_step(const golden_case *c, const char *which, int step, const kn_tensor *leaf, double tolerance)
{
    kn_tensor *all = golden_tensor(c, which, -1);
    double *actual = read_doubles(leaf), *expected = read_doubles(all);
    char message[400];
    int64_t count = kn_numel(leaf);
    closeness limit = closeness_of(kn_dtype_of(leaf), 1);
    limit.atol = tolerance > 0 ? tolerance : limit.atol;
    bool close = values_close(actual, expected + step * count, count, limit, message, sizeof message);
    if (!close)
        print_error("%s in %s, %s after step %d: %s\n", c->name, kn_dtype_name(kn_dtype_of(leaf)), which, step,
                    message);
    free(actual);
    free(expected);
    return !close;
}

static int follow_optimizer(const golden_case *c, kn_dtype dtype)
{
    char name[80];
    snprintf(name, sizeof name, "%s/extras", c->name);
    const golden_case extras = golden_case_of(c->file, name);
    const bool column = golden_number(&extras, "matrices", 0) != 0;
    const double tolerance = golden_number(&extras, "tolerance", 0);
    kn_tensor *leaves[2] = {leaf_from(c->file, "p", dtype), leaf_from(c->file, "q", dtype)};
    if (column) {
        leaves[1] = kn_clone(kn_unsqueeze(kn_detach(leaves[1]), 1));
        assert_int_equal(kn_set_requires_grad(leaves[1], true), KN_OK);
    }
    static const char *const names[2] = {"p", "q"};
    kn_parameter_list parameters = {leaves, names, 2};
    kn_optim *optimizer = make_optimizer(c, parameters);
    assert_non_null(optimizer);
    int failed = 0, steps = atoi(kn_tensor_file_metadata(c->file, "steps"));
    int without = atoi(kn_tensor_file_metadata(c->file, "step_without_grad_q"));
    for (int step = 0; step < steps && failed == 0; step++) {
        kn_optim_zero_grad(optimizer);
        set_gradient(leaves[0], c->file, "grad_p", step);
        if (step != without)
            set_gradient(leaves[1], c->file, "grad_q", step);
        assert_int_equal(kn_optim_step(optimizer), KN_OK);
        failed += compare_step(c, "p", step, leaves[0], tolerance) + compare_step(c, "q", step, leaves[1], tolerance);
    }
    kn_optim_free(optimizer);
    return failed;
}

static int follow_optimizers(kn_dtype dtype)
{
    kn_tensor_file *file = golden_open("optimizers");
    assert_non_null(file);
    char *words = golden_words(file, "cases");
    int failed = 0;
    for (const char *word = words; *word; word = GOLDEN_NEXT(word)) {
        KN_SCOPE;
        golden_case c = golden_case_of(file, word);
        failed += follow_optimizer(&c, dtype);
    }
    free(words);
    kn_tensor_file_free(file);
    return failed;
}

static void test_optimizers(void **state)
{
    (void)state;
    for (int i = 0; i < kn_device_count(); i++) {
        kn_device_properties properties;
        assert_int_equal(kn_device_set_current(kn_device_at(i)), KN_OK);
        assert_int_equal(kn_device_get_properties(kn_device_at(i), &properties), KN_OK);
        assert_int_equal(follow_optimizers(KN_F32), 0);
        if (properties.has_f64 && test_full())
            assert_int_equal(follow_optimizers(KN_F64), 0);
    }
}

/* --- default initialisation ------------------------------------------------------------------------------ */

static kn_module *make_layer(const char *name)
{
    if (strcmp(name, "linear_64_32") == 0)
        return kn_nn_linear(.in_features = 64, .out_features = 32);
    if (strcmp(name, "linear_3_500") == 0)
        return kn_nn_linear(.in_features = 3, .out_features = 500);
    if (strcmp(name, "conv2d_1_32_3") == 0)
        return kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3);
    if (strcmp(name, "conv2d_32_64_5") == 0)
        return kn_nn_conv2d(.in_channels = 32, .out_channels = 64, .kernel_size = 5);
    if (strcmp(name, "conv2d_8_16_3_groups_4") == 0)
        return kn_nn_conv2d(.in_channels = 8, .out_channels = 16, .kernel_size = 3, .groups = 4);
    if (strcmp(name, "conv2d_4_6_2x5") == 0)
        return kn_nn_conv2d(.in_channels = 4, .out_channels = 6, .kernel_sizes = {2, 5});
    fail_msg("no layer called %s here", name);
    return NULL;
}

typedef struct statistics {
    double sum, squares, largest;
    int64_t count;
} statistics;

static void add_values(statistics *s, const kn_tensor *tensor)
{
    double *values = read_doubles(tensor);
    assert_non_null(values);
    for (int64_t i = 0; i < kn_numel(tensor); i++) {
        s->sum += values[i];
        s->squares += values[i] * values[i];
        s->largest = fabs(values[i]) > s->largest ? fabs(values[i]) : s->largest;
    }
    s->count += kn_numel(tensor);
    free(values);
}

/* Mean, standard deviation and largest magnitude agree with PyTorch's within five standard errors. */
static void compare_statistics(const golden_case *c, const char *which, const statistics *s)
{
    double *golden = read_doubles(golden_tensor(c, which, -1));
    assert_non_null(golden);
    double mean = s->sum / (double)s->count, std = sqrt(s->squares / (double)s->count - mean * mean);
    double error = 5 * golden[1] * sqrt(2.0 / (double)(s->count < 200000 ? s->count : 200000));
    print_message("%s %s: mean %.2g (PyTorch %.2g), std %.5g (%.5g), largest %.5g (%.5g)\n", c->name, which, mean,
                  golden[0], std, golden[1], s->largest, golden[2]);
    assert_true(fabs(mean - golden[0]) <= error);
    assert_true(fabs(std - golden[1]) <= error);
    /* The bound of a uniform distribution is std * sqrt(3): never exceeded, and nearly reached. */
    assert_true(s->largest <= golden[1] * sqrt(3.0) * 1.01);
    assert_true(s->count < 1000 || s->largest >= golden[2] * 0.97);
    free(golden);
}

static void test_initialisation(void **state)
{
    (void)state;
    kn_tensor_file *file = golden_open("initialisation");
    assert_non_null(file);
    char *words = golden_words(file, "cases");
    kn_manual_seed(0);
    for (const char *word = words; *word; word = GOLDEN_NEXT(word)) {
        statistics weight = {0, 0, 0, 0}, bias = {0, 0, 0, 0};
        while (weight.count < 20000) {
            kn_module *layer = make_layer(word);
            assert_non_null(layer);
            add_values(&weight, kn_module_get(layer, "weight"));
            add_values(&bias, kn_module_get(layer, "bias"));
            kn_module_free(layer);
        }
        golden_case c = golden_case_of(file, word);
        compare_statistics(&c, "weight", &weight);
        compare_statistics(&c, "bias", &bias);
    }
    free(words);
    kn_tensor_file_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_initialisation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
