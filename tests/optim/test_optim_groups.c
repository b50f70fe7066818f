/* test_optim_groups.c - groups, master weights, PyTorch's state files, clipping, gradient scalers, averages. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "support/values.h"

#define FOLDER KOINE_BINARY_DIR "/tests/optim_groups"

static kn_parameter_list one(kn_tensor **tensor) { return (kn_parameter_list){tensor, NULL, 1}; }

static kn_tensor *leaf(double value, kn_dtype dtype)
{
    return kn_full(KN_SHAPE(3), value, .dtype = dtype, .requires_grad = true);
}

static double first_of(const kn_tensor *tensor)
{
    double *values = read_doubles(tensor), first = values[0];
    free(values);
    return first;
}

/* --- groups ---------------------------------------------------------------------------------------------------- */

TENSOR_TEST_F64(groups_have_their_own_hyperparameters)
{
    kn_tensor *p = leaf(1, KN_F64), *q = leaf(1, KN_F64);
    kn_optim *optim = kn_optim_sgd(one(&p), .lr = 0.5);
    double value;
    CHECK_OK(kn_optim_add_group(optim, one(&q), {"lr", 0.25}, {"weight_decay", 1}, {"maximize", 1}));
    assert_int_equal(kn_optim_num_groups(optim), 2);
    assert_ptr_equal(kn_optim_group_parameters(optim, 1).tensors[0], q);
    CHECK_OK(kn_set_grad(p, kn_ones(KN_SHAPE(3), .dtype = KN_F64)));
    CHECK_OK(kn_set_grad(q, kn_ones(KN_SHAPE(3), .dtype = KN_F64)));
    CHECK_OK(kn_optim_step(optim));
    CHECK_VALUES(p, 0.5, 0.5, 0.5);
    CHECK_VALUES(q, 1, 1, 1); /* -1 and the decay of 1 */
    CHECK_OK(kn_optim_set(optim, 1, "weight_decay", 0));
    CHECK_OK(kn_optim_get(optim, 1, "lr", &value));
    assert_true(value == 0.25);
    CHECK_OK(kn_optim_step(optim));
    CHECK_VALUES(q, 1.25, 1.25, 1.25);
    CHECK_OK(kn_optim_set_lr(optim, 1));
    CHECK_OK(kn_optim_get(optim, 1, "lr", &value));
    assert_true(value == 1 && kn_optim_lr(optim) == 1);
    kn_optim_free(optim);
}

#define EXPECT(status, call, ...)                                                                                      \
    do {                                                                                                               \
        assert_int_equal(call, status);                                                                                \
        CHECK_ERROR(status, __VA_ARGS__);                                                                              \
        kn_error_clear();                                                                                              \
    } while (0)

/* As of the weights without decay, of which a network may have none. */
TENSOR_TEST(a_further_group_may_be_empty)
{
    kn_tensor *p = leaf(1, KN_F32), *q = leaf(1, KN_F32);
    kn_optim *optim = kn_optim_adamw(one(&p));
    CHECK_OK(kn_optim_add_group(optim, ((kn_parameter_list){&q, NULL, 0}), {"weight_decay", 0}));
    CHECK_OK(kn_optim_add_group(optim, one(&q)));
    assert_int_equal(kn_optim_num_groups(optim), 3);
    assert_int_equal(kn_optim_group_parameters(optim, 1).count, 0);
    CHECK_OK(kn_backward(kn_sum(kn_add(p, q))));
    CHECK_OK(kn_optim_step(optim));
    EXPECT(KN_ERR_ARGUMENT, kn_optim_add_group(optim, ((kn_parameter_list){0})), "no parameters");
    kn_optim_free(optim);
}

TENSOR_TEST(groups_and_options_that_do_not_do)
{
    kn_tensor *p = leaf(1, KN_F32), *q = leaf(1, KN_F32);
    kn_optim *optim = kn_optim_adamw(one(&p));
    EXPECT(KN_ERR_ARGUMENT, kn_optim_add_group(optim, one(&p)), "0 and 1 are the same");
    EXPECT(KN_ERR_ARGUMENT, kn_optim_add_group(optim, one(&q), {"momentum", 0.5}), "AdamW", "\"momentum\"");
    EXPECT(KN_ERR_ARGUMENT, kn_optim_add_group(optim, one(&q), {"beta1", 1}), "beta1 (1)");
    EXPECT(KN_ERR_ARGUMENT, kn_optim_set(optim, 1, "lr", 1), "no group 1");
    EXPECT(KN_ERR_ARGUMENT, kn_optim_set(optim, 0, "lr", -1), "lr (-1)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_named("Adamm", one(&p))), "\"Adamm\"");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_adadelta(one(&p), .rho = 2)), "rho (2)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_rprop(one(&p), .etaplus = 0.5)), "etaplus (0.5)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_rmsprop(one(&p), .eps = -1)), "eps (-1)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_optim_lion(one(&p), .beta2 = -0.1)), "beta2 (-0.1)");
    kn_optim_free(optim);
}

/* Hyperparameters that need other state may change until there is state. */
TENSOR_TEST(changes_of_state)
{
    kn_tensor *p = leaf(1, KN_F32), *q = leaf(1, KN_F32);
    kn_optim *optim = kn_optim_sgd(one(&p), .lr = 1), *other = kn_optim_sgd(one(&q), .lr = 1, .momentum = 0.5);
    kn_optim *adam = kn_optim_adamw(one(&p));
    CHECK_OK(kn_optim_set(adam, 0, "amsgrad", 1));
    CHECK_OK(kn_optim_set(optim, 0, "momentum", 0.5));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(kn_backward(kn_sum(kn_mul(p, p))));
        CHECK_OK(kn_backward(kn_sum(kn_mul(q, q))));
        CHECK_OK(kn_optim_step(optim));
        CHECK_OK(kn_optim_step(other));
    }
    assert_true(first_of(p) == first_of(q));
    EXPECT(KN_ERR_STATE, kn_optim_set(optim, 0, "momentum", 0), "momentum (0.5) cannot become 0 after the first step");
    CHECK_OK(kn_optim_set(optim, 0, "momentum", 0.25));
    kn_optim_free(optim);
    kn_optim_free(other);
    kn_optim_free(adam);
}

/* --- half precision -------------------------------------------------------------------------------------------- */

/* Steps of 1e-4 are below the resolution of float16 near 1; their sum is not. */
TENSOR_TEST(master_weights_add_up_small_steps)
{
    const kn_dtype dtypes[] = {KN_F16, KN_BF16};
    for (int i = 0; i < 2; i++)
        for (int master = 0; master < 2; master++) {
            kn_tensor *p = leaf(1, dtypes[i]);
            kn_optim *optim = kn_optim_sgd(one(&p), .lr = 1e-4, .momentum = 0.5, .master_weights = master != 0);
            CHECK_OK(kn_set_grad(p, kn_ones(KN_SHAPE(3), .dtype = dtypes[i])));
            for (int step = 0; step < 200; step++) {
                if (step == 100) { /* through a file */
                    CHECK_OK(kn_optim_save(optim, FOLDER "/master.safetensors"));
                    CHECK_OK(kn_optim_load(optim, FOLDER "/master.safetensors"));
                }
                CHECK_OK(kn_optim_step(optim));
            }
            const double expected = master ? 1 - 1e-4 * (2 * 200 - 2) : 1, found = first_of(p);
            if (!(fabs(found - expected) <= (i == 0 ? 5e-4 : 4e-3)))
                fail_msg("master weights %d: %g, expected %g", master, found, expected);
            kn_optim_free(optim);
        }
}

/* --- PyTorch's state files ------------------------------------------------------------------------------------- */

static kn_tensor *golden_leaf(const kn_tensor_file *file, const char *name)
{
    kn_tensor *tensor = kn_clone(golden_on_device(kn_tensor_file_get(file, name), KN_F64));
    CHECK_OK(kn_set_requires_grad(tensor, true));
    return tensor;
}

static void check_leaf(const char *name, const kn_tensor *leaf, const kn_tensor *after)
{
    double *values = read_doubles(leaf), *expected = read_doubles(after);
    for (int k = 0; k < 6; k++)
        if (!(fabs(values[k] - expected[k]) <= 1e-12))
            fail_msg("%s: %.17g, expected %.17g", name, values[k], expected[k]);
    free(values);
    free(expected);
}

/* Three steps of `optim`, of p and q, from the state in a file; `path` has their gradients and results. */
static void continue_with(const char *name, kn_optim *optim, kn_tensor *p, kn_tensor *q, const char *state,
                          const kn_tensor_file *path)
{
    char text[300];
    kn_tensor *gradients = golden_on_device(kn_tensor_file_get(path, "gradients"), KN_F64);
    snprintf(text, sizeof text, KOINE_SOURCE_DIR "/tests/golden/%s_%s.safetensors", state, name);
    CHECK_OK(kn_optim_load(optim, text));
    for (int step = 3; step < 6; step++) {
        CHECK_OK(kn_set_grad(p, kn_clone(kn_select(gradients, 0, step))));
        CHECK_OK(kn_set_grad(q, kn_clone(kn_select(gradients, 0, 5 - step))));
        CHECK_OK(kn_optim_step(optim));
    }
    check_leaf(name, p, kn_tensor_file_get(path, "p_after"));
    check_leaf(name, q, kn_tensor_file_get(path, "q_after"));
}

static void continue_from(const char *name)
{
    char part[80];
    snprintf(part, sizeof part, "optim_path_%s", name);
    kn_tensor_file *file = golden_open(part);
    CHECK_NEW(file);
    kn_tensor *p = golden_leaf(file, "p"), *q = golden_leaf(file, "q");
    const kn_optim_option none[] = {{NULL, 0}}, state[] = {{"amsgrad", 1}, {NULL, 0}},
                          momentum[] = {{"momentum", 0.9}, {NULL, 0}};
    const kn_optim_option centered[] = {{"centered", 1}, {"momentum", 0.5}, {NULL, 0}};
    const bool is_sgd = strcmp(name, "SGD") == 0, is_rmsprop = strcmp(name, "RMSprop") == 0;
    kn_optim *optim = kn_optim_named_with(name, one(&p),
                                          is_sgd                       ? momentum
                                          : is_rmsprop                 ? centered
                                          : strcmp(name, "AdamW") == 0 ? state
                                                                       : none);
    CHECK_NEW(optim);
    CHECK_OK(kn_optim_add_group_with(optim, one(&q), NULL));
    continue_with(name, optim, p, q, "optim_state", file);
    kn_optim_free(optim);
    kn_tensor_file_free(file);
}

TENSOR_TEST(state_made_by_pytorch_is_continued)
{
    static const char *const names[] = {"AdamW", "SGD", "NAdam", "ASGD", "RMSprop", "Rprop", "Adafactor"};
    kn_device_properties properties;
    CHECK_OK(kn_device_get_properties(kn_device_current(), &properties));
    if (!properties.has_f64)
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        continue_from(names[i]);
}

/* The form that optimizers had before groups: "step", "hyperparameters", "exp_avg.0", ... */
TENSOR_TEST(state_made_by_earlier_versions_is_continued)
{
    kn_device_properties properties;
    CHECK_OK(kn_device_get_properties(kn_device_current(), &properties));
    for (int i = 0; i < 2 && properties.has_f64; i++) {
        const char *name = i == 0 ? "Adam" : "SGD";
        kn_tensor_file *file = golden_open(i == 0 ? "optim_earlier_path_Adam" : "optim_earlier_path_SGD");
        CHECK_NEW(file);
        kn_tensor *leaves[] = {golden_leaf(file, "p"), golden_leaf(file, "q")};
        kn_parameter_list both = {leaves, NULL, 2};
        kn_optim *optim = i == 0 ? kn_optim_adam(both, .amsgrad = true) : kn_optim_sgd(both, .momentum = 0.1);
        continue_with(name, optim, leaves[0], leaves[1], "optim_earlier", file);
        assert_true(kn_optim_lr(optim) == 0.1);
        kn_optim_free(optim);
        kn_tensor_file_free(file);
    }
}

/* --- clipping -------------------------------------------------------------------------------------------------- */

TENSOR_TEST(norms_of_float64_are_float64)
{
    if (!check_has_f64())
        skip();
    kn_tensor *w = leaf(0, KN_F64);
    const kn_parameter_list list = {&w, NULL, 1};
    CHECK_OK(kn_set_grad(w, kn_full(KN_SHAPE(3), 3, .dtype = KN_F64)));
    assert_true(fabs(first_of(kn_clip_grad_norm_(list, 100, .norm_type = 0.5)) - 27) < 1e-12);
}

TENSOR_TEST(gradients_are_clipped_to_a_norm)
{
    kn_tensor *w[3] = {leaf(0, KN_F32), leaf(0, KN_F16), leaf(0, KN_F32)}; /* the last has no gradient */
    const kn_parameter_list list = {w, NULL, 3};
    for (int i = 0; i < 2; i++)
        CHECK_OK(kn_set_grad(w[i], kn_full(KN_SHAPE(3), i == 0 ? 2 : -4, .dtype = kn_dtype_of(w[i]))));
    assert_true(fabs(first_of(kn_clip_grad_norm_(list, 100, .norm_type = INFINITY)) - 4) < 1e-6);
    assert_true(fabs(first_of(kn_clip_grad_norm_(list, 100, .norm_type = 1)) - 18) < 1e-5);
    assert_true(fabs(first_of(kn_clip_grad_norm_(list, 100, .norm_type = 3)) - pow(3 * 8 + 3 * 64, 1.0 / 3)) < 1e-4);
    assert_true(fabs(first_of(kn_clip_grad_norm_(list, 1)) - sqrt(60)) < 1e-5);
    assert_true(fabs(first_of(kn_grad(w[0])) - 2 / (sqrt(60) + 1e-6)) < 1e-6);
    assert_true(fabs(first_of(kn_grad(w[1])) + 4 / (sqrt(60) + 1e-6)) < 5e-4);
    CHECK_OK(kn_clip_grad_value_(list, 0.3));
    assert_true(fabs(first_of(kn_grad(w[0])) - 2 / sqrt(60)) < 1e-5 && fabs(first_of(kn_grad(w[1])) + 0.3) < 5e-4);
    kn_tensor *both[] = {kn_grad(w[0]), kn_grad(w[1])};
    assert_true(first_of(kn_get_total_norm(both, 0)) == 0 && first_of(kn_get_total_norm(both, 2)) > 0);
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_clip_grad_norm_(list, 1, .norm_type = 0)), "norm_type (0)");
    EXPECT(KN_ERR_ARGUMENT, kn_clip_grad_value_(list, -1), "clip_value (-1)");
    CHECK_OK(kn_set_grad(w[0], kn_full(KN_SHAPE(3), NAN)));
    EXPECT(KN_ERR_NUMERIC, kn_status_of(kn_clip_grad_norm_(list, 1, .error_if_nonfinite = true)), "nan");
    assert_true(isnan(first_of(kn_clip_grad_norm_(list, 1))) && isnan(first_of(kn_grad(w[1]))));
    /* An infinite norm: finite gradients become 0, infinite ones NaN. */
    CHECK_OK(kn_set_grad(w[0], kn_full(KN_SHAPE(3), -INFINITY)));
    CHECK_OK(kn_set_grad(w[1], kn_full(KN_SHAPE(3), 2, .dtype = KN_F16)));
    EXPECT(KN_ERR_NUMERIC, kn_status_of(kn_clip_grad_norm_(list, 1, .error_if_nonfinite = true)), "inf");
    assert_true(isinf(first_of(kn_clip_grad_norm_(list, 1))));
    assert_true(isnan(first_of(kn_grad(w[0]))) && first_of(kn_grad(w[1])) == 0);
    CHECK_OK(kn_set_grad(w[0], kn_full(KN_SHAPE(3), -INFINITY)));
    CHECK_OK(kn_clip_grad_value_(list, 0.5));
    assert_true(first_of(kn_grad(w[0])) == -0.5);
}

/* --- the gradient scaler --------------------------------------------------------------------------------------- */

/* Steps with and without infinities: as many as are finite, and the scale of each moment. */
static void scale_steps(const char *name)
{
    kn_tensor *p = leaf(1, KN_F32);
    kn_optim *optim = kn_optim_named(name, one(&p), {"lr", 0.1}), *plain;
    kn_grad_scaler *scaler = kn_grad_scaler_new(.init_scale = 1024, .growth_interval = 2);
    const double scales[] = {1024, 2048, 1024, 1024, 2048};
    for (int step = 0; step < 5; step++) {
        double scale;
        CHECK_OK(kn_grad_scaler_get_scale(scaler, &scale));
        CHECK_OK(kn_set_grad(p, kn_full(KN_SHAPE(3), step == 2 ? INFINITY : scale)));
        CHECK_OK(kn_grad_scaler_step(scaler, optim));
        CHECK_OK(kn_grad_scaler_update(scaler));
        CHECK_OK(kn_grad_scaler_get_scale(scaler, &scale));
        assert_true(scale == scales[step]);
        CHECK_OK(kn_grad_scaler_save(scaler, FOLDER "/scaler.safetensors"));
        CHECK_OK(kn_grad_scaler_load(scaler, FOLDER "/scaler.safetensors"));
    }

    /* The same as four steps without. */
    kn_tensor *q = leaf(1, KN_F32);
    plain = kn_optim_named(name, one(&q), {"lr", 0.1});
    CHECK_OK(kn_set_grad(q, kn_ones(KN_SHAPE(3))));
    for (int step = 0; step < 4; step++)
        CHECK_OK(kn_optim_step(plain));
    if (!(fabs(first_of(p) - first_of(q)) < 1e-6))
        fail_msg("%s: %g, expected %g", name, first_of(p), first_of(q));
    /* The skipped step is not counted in the file either. */
    CHECK_OK(kn_optim_save(optim, FOLDER "/scaled.safetensors"));
    CHECK_OK(kn_optim_load(plain, FOLDER "/scaled.safetensors"));
    CHECK_OK(kn_optim_step(plain));
    CHECK_OK(kn_set_grad(p, kn_ones(KN_SHAPE(3))));
    CHECK_OK(kn_optim_step(optim));
    if (!(fabs(first_of(p) - first_of(q)) < 1e-6))
        fail_msg("%s after the file: %g, expected %g", name, first_of(p), first_of(q));
    kn_grad_scaler_free(scaler);
    kn_optim_free(optim);
    kn_optim_free(plain);
}

TENSOR_TEST(an_infinity_skips_the_step_of_any_optimizer)
{
    scale_steps("AdamW");
    scale_steps("SGD");
    scale_steps("RMSprop");
    scale_steps("NAdam");
}

TENSOR_TEST(the_scaled_loss_has_scaled_gradients)
{
    kn_tensor *p = leaf(1, KN_F32);
    kn_optim *optim = kn_optim_sgd(one(&p), .lr = 1);
    kn_grad_scaler *scaler = kn_grad_scaler_new(.init_scale = 8);
    CHECK_OK(kn_backward(kn_grad_scaler_scale(scaler, kn_sum(p))));
    CHECK_VALUES(kn_grad(p), 8, 8, 8);
    CHECK_OK(kn_grad_scaler_unscale_(scaler, optim));
    CHECK_VALUES(kn_grad(p), 1, 1, 1);
    EXPECT(KN_ERR_STATE, kn_grad_scaler_unscale_(scaler, optim), "already");
    CHECK_OK(kn_grad_scaler_step(scaler, optim));
    CHECK_VALUES(p, 0, 0, 0);
    kn_grad_scaler_free(scaler);
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_grad_scaler_new(.growth_factor = 1)), "growth_factor (1)");
    EXPECT(KN_ERR_ARGUMENT, kn_status_of(kn_grad_scaler_new(.backoff_factor = 1)), "backoff_factor (1)");
    kn_optim_free(optim);
}

/* --- averages -------------------------------------------------------------------------------------------------- */

TENSOR_TEST(averages_of_both_kinds)
{
    for (int ema = 0; ema < 2; ema++) {
        kn_tensor *p = leaf(1, KN_F32);
        kn_averaged_model *model = kn_averaged_model_new(one(&p), .decay = ema ? 0.9 : 0);
        double expected = 1;
        for (int i = 0; i < 4; i++) {
            KN_NO_GRAD;
            kn_fill_(p, i + 1);
            CHECK_OK(kn_averaged_model_update(model));
            expected = i == 0 ? 1 : ema ? 0.9 * expected + 0.1 * (i + 1) : expected + (i + 1 - expected) / (i + 1);
        }
        assert_true(kn_averaged_model_n_averaged(model) == 4);
        assert_true(fabs(first_of(kn_averaged_model_parameter(model, 0)) - expected) < 1e-6);
        CHECK_OK(kn_averaged_model_save(model, FOLDER "/average.safetensors"));
        CHECK_OK(kn_averaged_model_swap(model));
        assert_true(fabs(first_of(p) - expected) < 1e-6);
        assert_true(first_of(kn_averaged_model_parameter(model, 0)) == 4);
        CHECK_OK(kn_averaged_model_load(model, FOLDER "/average.safetensors"));
        assert_true(fabs(first_of(kn_averaged_model_parameter(model, 0)) - expected) < 1e-6);
        kn_averaged_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(groups_have_their_own_hyperparameters),
        TEST(a_further_group_may_be_empty),
        TEST(groups_and_options_that_do_not_do),
        TEST(changes_of_state),
        TEST(master_weights_add_up_small_steps),
        TEST(state_made_by_pytorch_is_continued),
        TEST(state_made_by_earlier_versions_is_continued),
        TEST(norms_of_float64_are_float64),
        TEST(gradients_are_clipped_to_a_norm),
        TEST(an_infinity_skips_the_step_of_any_optimizer),
        TEST(the_scaled_loss_has_scaled_gradients),
        TEST(averages_of_both_kinds),
    };
    check_make_folder(FOLDER);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
