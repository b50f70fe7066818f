/* test_trainer_metrics.c - the trainer with metrics of the program's choice, with loss modules, and in mixed precision. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer_case.h"

static double cell(const kn_history *history, int row, const char *name)
{
    for (int c = 0; c < kn_history_columns(history); c++)
        if (strcmp(kn_history_column(history, c), name) == 0)
            return kn_history_value(history, row, c);
    fail_msg("there is no column %s", name);
    return 0;
}

static void expect_columns(const kn_history *history, const char *expected)
{
    char columns[256] = "";
    for (int c = 0; c < kn_history_columns(history); c++) {
        const size_t used = strlen(columns);
        snprintf(columns + used, sizeof columns - used, "%s%s", c > 0 ? "," : "", kn_history_column(history, c));
    }
    assert_string_equal(columns, expected);
}

/* --- metrics ----------------------------------------------------------------------------------------------------- */

/* At the end the module has its best weights: measured again, they have the best epoch's figures. */
TENSOR_TEST(metrics_are_columns_that_can_be_monitored)
{
    trainer_case c = case_make(0, 0.05);
    kn_metric *f1 = kn_metric_f1_score(.average = KN_AVERAGE_BINARY), *auroc = kn_metric_auroc(.num_classes = 2);
    kn_metric *matrix = kn_metric_confusion_matrix(.num_classes = 2);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 3, .quiet = true, .log_every = 2,
                                         .metrics = KN_METRICS({"f1", f1}, {"auc", auroc}), .monitor = "val_auc",
                                         .mode = KN_MONITOR_MAX));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    const kn_history *history = kn_trainer_history(c.trainer), *steps = kn_trainer_steps(c.trainer);
    expect_columns(history, "epoch,train_loss,train_acc,train_f1,train_auc,val_loss,val_acc,val_f1,val_auc,lr");
    expect_columns(steps, "step,epoch,loss,acc,f1,auc,lr");
    const int best = kn_trainer_best_epoch(c.trainer) - 1;
    for (int e = 0; e < 3; e++)
        assert_true(cell(history, best, "val_auc") >= cell(history, e, "val_auc"));
    assert_true(cell(history, best, "val_auc") > 0.9 && cell(history, best, "train_auc") > 0.5);
    for (int r = 0; r < kn_history_epochs(steps); r++) {
        assert_true(cell(steps, r, "f1") >= 0 && cell(steps, r, "f1") <= 1);
        assert_true(isnan(cell(steps, r, "auc"))); /* not in the middle of an epoch */
    }
    double value;
    kn_metric *const measured[] = {f1, auroc, matrix};
    CHECK_OK(kn_trainer_measure(c.trainer, c.test, measured, 3));
    CHECK_OK(kn_metric_compute(f1, &value));
    assert_true(value == cell(history, best, "val_f1"));
    CHECK_OK(kn_metric_compute(auroc, &value));
    assert_true(value == cell(history, best, "val_auc"));
    double counts[4], right;
    CHECK_OK(kn_read(kn_metric_values(matrix), counts, sizeof counts));
    right = (counts[0] + counts[3]) / CASE_SAMPLES;
    assert_true(counts[0] + counts[1] + counts[2] + counts[3] == CASE_SAMPLES);
    assert_true(fabs(right - cell(history, best, "val_acc")) < 1e-12);
    kn_metric_free(f1);
    kn_metric_free(auroc);
    kn_metric_free(matrix);
    case_free(&c);
}

static kn_tensor *squared(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    (void)user;
    return kn_mse_loss(outputs[0], batch->input, KN_REDUCTION_MEAN);
}

/* A regression: no accuracy, and the loss is the metric. */
TENSOR_TEST(the_error_of_a_regression)
{
    trainer_case c = case_make(0, 0.05);
    kn_metric *error = kn_metric_mean_squared_error();
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 2, .quiet = true,
                                         .target = "input", .loss = squared, .accuracy = false,
                                         .metrics = KN_METRICS({"mse", error}), .monitor = "train_mse"));
    kn_metric_free(error); /* its parameters were copied */
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    const kn_history *history = kn_trainer_history(c.trainer);
    expect_columns(history, "epoch,train_loss,train_mse,val_loss,val_mse,lr");
    for (int e = 0; e < 2; e++) {
        assert_true(fabs(cell(history, e, "train_mse") - cell(history, e, "train_loss")) < 1e-6);
        assert_true(fabs(cell(history, e, "val_mse") - cell(history, e, "val_loss")) < 1e-6);
    }
    case_free(&c);
}

TENSOR_TEST(metrics_that_cannot_be_columns_are_refused)
{
    trainer_case c = case_make(0, 0.05);
    kn_metric *f1 = kn_metric_f1_score(.num_classes = 2), *mean = kn_metric_mean();
    kn_metric *matrix = kn_metric_confusion_matrix(.num_classes = 2);
    const struct {
        kn_named_metric metric;
        const char *message;
    } wrong[] = {{{"acc", f1}, "cannot be named \"acc\": there is a column of this name"},
                 {{"lr", f1}, "cannot be named \"lr\""},
                 {{"a,b", f1}, "use letters, digits, _ and -"},
                 {{"", f1}, "cannot be named \"\""},
                 {{"f1", NULL}, "the metric \"f1\" is NULL"},
                 {{"m", mean}, "the metric \"m\" (mean) is not one of output and target"},
                 {{"m", matrix}, "the metric \"m\" (confusion_matrix) has several values"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const kn_named_metric list[] = {wrong[i].metric, {NULL, NULL}};
        assert_null(kn_trainer_new(.module = c.net, .optim = c.optim, .metrics = list));
        CHECK_ERROR(KN_ERR_ARGUMENT, wrong[i].message);
    }
    assert_null(kn_trainer_new(.module = c.net, .optim = c.optim, .metrics = KN_METRICS({"f1", f1}), .monitor = "f1"));
    CHECK_ERROR(KN_ERR_ARGUMENT, "\"f1\"", "train_loss, train_acc, train_f1, val_loss, val_acc, val_f1");
    kn_metric_free(f1);
    kn_metric_free(mean);
    kn_metric_free(matrix);
    case_free(&c);
}

/* --- loss modules ------------------------------------------------------------------------------------------------ */

/* The weights after two epochs with this loss module, or with the default loss. */
static void fit_with(trainer_case *c, kn_module *loss)
{
    *c = case_make(5, 0.05);
    CHECK_NEW(c->trainer =
                  kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = 2, .quiet = true, .loss_module = loss));
    CHECK_OK(kn_trainer_fit(c->trainer, c->train, c->test));
}

TENSOR_TEST(a_loss_may_be_a_module)
{
    trainer_case plain, same, other;
    kn_module *entropy = kn_nn_cross_entropy_loss(), *margin = kn_nn_multi_margin_loss();
    fit_with(&plain, NULL);
    fit_with(&same, entropy);
    fit_with(&other, margin);
    assert_true(case_same_weights(plain.net, same.net));
    assert_false(case_same_weights(plain.net, other.net));
    kn_module *triplet = kn_nn_triplet_margin_loss(), *linear = kn_nn_linear(.in_features = 2, .out_features = 2);
    assert_null(kn_trainer_new(.module = plain.net, .optim = plain.optim, .loss_module = triplet));
    CHECK_ERROR(KN_ERR_ARGUMENT, "the loss module TripletMarginLoss", "2 to 2 inputs", "not 3");
    assert_null(kn_trainer_new(.module = plain.net, .optim = plain.optim, .loss_module = linear));
    CHECK_ERROR(KN_ERR_ARGUMENT, "the loss module Linear", "not 1");
    assert_null(kn_trainer_new(.module = plain.net, .optim = plain.optim, .loss_module = entropy, .loss = squared));
    CHECK_ERROR(KN_ERR_ARGUMENT, "loss and loss_module are both given");
    kn_module_free(entropy);
    kn_module_free(margin);
    kn_module_free(triplet);
    kn_module_free(linear);
    case_free(&plain);
    case_free(&same);
    case_free(&other);
}

/* --- precision --------------------------------------------------------------------------------------------------- */

static double accuracy_in(kn_dtype precision, int accumulate)
{
    trainer_case c = case_make(0, 0.05);
    CHECK_NEW(c.trainer =
                  kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 8, .quiet = true, .precision = precision,
                                 .accumulate = accumulate, .log_grad_norm = true, .clip_grad_norm = 5));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    const kn_history *history = kn_trainer_history(c.trainer);
    for (int i = 0; i < kn_module_parameters(c.net).count; i++)
        CHECK_DTYPE(kn_module_parameters(c.net).tensors[i], KN_F32);
    for (int e = 0; e < 8; e++) /* of unscaled gradients */
        assert_true(cell(history, e, "grad_norm") > 0 && cell(history, e, "grad_norm") < 5);
    const double accuracy = cell(history, 7, "val_acc");
    case_free(&c);
    return accuracy;
}

TENSOR_TEST(mixed_precision_reaches_the_accuracy_of_float32)
{
    const double full = accuracy_in(KN_F32, 1);
    assert_true(full > 0.85);
    assert_true(fabs(accuracy_in(KN_F16, 1) - full) < 0.05);
    assert_true(fabs(accuracy_in(KN_BF16, 1) - full) < 0.05);
    assert_true(fabs(accuracy_in(KN_F16, 2) - accuracy_in(KN_F32, 2)) < 0.05);
}

/* A scale that overflows at first and grows again soon, so that all parts of the scaler's state matter. */
static void fit_half(trainer_case *c, const char *folder, kn_dtype precision, int epochs, bool resume)
{
    kn_grad_scaler *scaler = kn_grad_scaler_new(.init_scale = 0x1p40, .growth_interval = 4);
    *c = case_make(3, 0.05);
    CHECK_NEW(c->trainer = kn_trainer_new(.module = c->net, .optim = c->optim, .epochs = epochs, .patience = 0,
                                          .output = folder, .resume = resume, .quiet = true, .precision = precision,
                                          .grad_scaler = precision == KN_F16 ? scaler : NULL, .log_every = 1,
                                          .log_grad_norm = true));
    CHECK_OK(kn_trainer_fit(c->trainer, c->train, c->test));
    double scale;
    CHECK_OK(kn_grad_scaler_get_scale(scaler, &scale));
    assert_true(precision == KN_F16 ? scale < 0x1p40 && scale > 1 : scale == 0x1p40);
    kn_trainer_free(c->trainer);
    c->trainer = NULL;
    kn_grad_scaler_free(scaler);
}

TENSOR_TEST(a_resumed_run_in_mixed_precision_gives_the_same_bits)
{
    static const kn_dtype precisions[] = {KN_F16, KN_BF16};
    static const char *const files[] = {"history.csv", "steps.csv", "checkpoint.safetensors", "last.safetensors"};
    char whole[4096], broken[4096];
    for (int p = 0; p < 2; p++) {
        trainer_case a, b;
        snprintf(whole, sizeof whole, "%s", case_folder("precision-whole"));
        snprintf(broken, sizeof broken, "%s", case_folder("precision-broken"));
        fit_half(&a, whole, precisions[p], 5, false);
        for (int epochs = 2; epochs <= 5; epochs += 3) {
            fit_half(&b, broken, precisions[p], epochs, epochs > 2);
            if (epochs == 5)
                assert_true(case_same_weights(a.net, b.net));
            case_free(&b);
        }
        for (int f = 0; f < 4; f++)
            case_same_file(whole, broken, files[f]);
        case_free(&a);
    }
}

TENSOR_TEST(a_precision_must_be_one_of_three)
{
    trainer_case c = case_make(0, 0.05);
    assert_null(kn_trainer_new(.module = c.net, .optim = c.optim, .precision = KN_I32));
    CHECK_ERROR(KN_ERR_ARGUMENT, "precision (int32) must be KN_F32, KN_F16 or KN_BF16");
    case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(metrics_are_columns_that_can_be_monitored),
        TEST(the_error_of_a_regression),
        TEST(metrics_that_cannot_be_columns_are_refused),
        TEST(a_loss_may_be_a_module),
        TEST(mixed_precision_reaches_the_accuracy_of_float32),
        TEST(a_resumed_run_in_mixed_precision_gives_the_same_bits),
        TEST(a_precision_must_be_one_of_three),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
