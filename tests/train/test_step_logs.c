/* test_step_logs.c - the trainer's step logs, and that training steps do not wait, neither the trainer's nor those of
 * an explicit loop. */
#include "trainer_case.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "rt/rt.h"
#include "support/values.h"

static int column(const kn_history *table, const char *name)
{
    for (int c = 0; c < kn_history_columns(table); c++)
        if (strcmp(kn_history_column(table, c), name) == 0)
            return c;
    fail_msg("there is no column %s", name);
    return -1;
}

static double cell(const kn_history *table, int row, const char *name)
{
    return kn_history_value(table, row, column(table, name));
}

/* --- tables ------------------------------------------------------------------------------------- */

/* Values read by a step callback, for comparison. */
typedef struct witness {
    trainer_case *c;
    int steps;
    double loss[64], norm[64], weight_norm[64];
} witness;

static double norm_of(const kn_tensor *gradient)
{
    double *values = read_doubles(gradient), sum = 0;
    for (int64_t i = 0; i < kn_numel(gradient); i++)
        sum += values[i] * values[i];
    free(values);
    return sqrt(sum);
}

static kn_status watch(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer;
    (void)epoch;
    (void)step;
    witness *w = user;
    kn_parameter_list list = kn_module_parameters(w->c->net);
    double squares = 0;
    for (int i = 0; i < list.count; i++) {
        double norm = norm_of(kn_grad(list.tensors[i]));
        squares += norm * norm;
        if (i == 0)
            w->weight_norm[w->steps] = norm;
    }
    w->norm[w->steps] = sqrt(squares);
    return kn_item(loss, &w->loss[w->steps++]);
}

TENSOR_TEST(steps_are_logged_as_they_are)
{
    trainer_case c = case_make(0, 0.05);
    witness w = {.c = &c};
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 2, .quiet = true, .log_every = 2,
                                         .log_grad_norm = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &(kn_callback){.on_step_end = watch, .user = &w}));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    const kn_history *steps = kn_trainer_steps(c.trainer), *history = kn_trainer_history(c.trainer);
    assert_int_equal(w.steps, 2 * CASE_STEPS);
    assert_int_equal(kn_history_epochs(steps), CASE_STEPS); /* every second of two epochs */
    for (int r = 0; r < CASE_STEPS; r++) {
        int at = 2 * r + 1; /* step index, from 0 */
        assert_true(cell(steps, r, "step") == at + 1);
        assert_true(cell(steps, r, "epoch") == at / CASE_STEPS + 1);
        assert_true(cell(steps, r, "lr") == 0.05);
        assert_true(fabs(cell(steps, r, "loss") - (w.loss[at] + w.loss[at - 1]) / 2) < 1e-5);
        assert_true(cell(steps, r, "acc") >= 0 && cell(steps, r, "acc") <= 1);
        assert_true(fabs(cell(steps, r, "grad_norm") - w.norm[at]) < 1e-5 * (1 + w.norm[at]));
        assert_true(fabs(cell(steps, r, "grad_norm.0.weight") - w.weight_norm[at]) < 1e-5 * (1 + w.weight_norm[at]));
    }
    double mean = 0;
    for (int s = 0; s < CASE_STEPS; s++)
        mean += w.norm[s] / CASE_STEPS;
    assert_true(fabs(cell(history, 0, "grad_norm") - mean) < 1e-5 * (1 + mean));
    assert_int_equal(column(history, "lr"), kn_history_columns(history) - 1);
    case_free(&c);
}

TENSOR_TEST(logging_changes_no_bit_of_the_training)
{
    trainer_case plain = case_make(7, 0.05);
    CHECK_NEW(plain.trainer = kn_trainer_new(.module = plain.net, .optim = plain.optim, .epochs = 2, .quiet = true));
    CHECK_OK(kn_trainer_fit(plain.trainer, plain.train, plain.test));
    assert_int_equal(kn_history_columns(kn_trainer_steps(plain.trainer)), 0);
    trainer_case logged = case_make(7, 0.05);
    CHECK_NEW(logged.trainer = kn_trainer_new(.module = logged.net, .optim = logged.optim, .epochs = 2, .quiet = true,
                                              .log_every = 1, .log_grad_norm = true, .log_histograms = 16));
    CHECK_OK(kn_trainer_fit(logged.trainer, logged.train, logged.test));
    assert_true(case_same_weights(plain.net, logged.net));
    case_free(&plain);
    case_free(&logged);
}

/* steps.csv, histograms.csv and steps.svg; each histogram has the elements of its parameter. */
TENSOR_TEST(the_output_directory_has_the_steps)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("steps"));
    trainer_case c = case_make(0, 0.05);
    CHECK_NEW(c.trainer =
                  kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 2, .quiet = true, .output = folder,
                                 .log_every = 3, .log_grad_norm = true, .log_histograms = 4, .log_range = 0.5));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL));
    size_t size;
    char *steps = case_file(folder, "steps.csv", &size), *histograms = case_file(folder, "histograms.csv", &size);
    assert_non_null(steps);
    assert_non_null(histograms);
    assert_non_null(strstr(steps, "step,epoch,loss,acc,lr,grad_norm,grad_norm.0.weight,grad_norm.0.bias,"));
    assert_non_null(strstr(steps, "\n3,1,"));
    assert_non_null(strstr(steps, "\n12,2,"));
    assert_non_null(
        strstr(histograms, "step,epoch,parameter,low,high,below,above,nan,bin0,bin1,bin2,bin3\n3,1,0,-0.5,0.5,"));
    int rows = 0;
    for (char *line = strchr(histograms, '\n') + 1; *line; line = strchr(line, '\n') + 1, rows++) {
        double n[12], total = 0;
        char *at = line;
        for (int i = 0; i < 12; i++, at++)
            n[i] = strtod(at, &at);
        for (int i = 5; i < 12; i++)
            total += n[i];
        assert_true(total == (double)kn_numel(kn_module_parameters(c.net).tensors[(int)n[2]]));
    }
    assert_int_equal(rows, 4 * 4); /* four steps, four parameters */
    kn_free(steps);
    kn_free(histograms);
    case_free(&c);
}

/* Interrupted after two epochs and resumed: the same table of steps. */
TENSOR_TEST(resuming_goes_on_with_the_table_of_steps)
{
    char broken[4096], whole[4096];
    snprintf(broken, sizeof broken, "%s", case_folder("steps-broken"));
    snprintf(whole, sizeof whole, "%s", case_folder("steps-whole"));
    for (int part = 0; part < 3; part++) {
        trainer_case c = case_make(2, 0.05);
        CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = part == 0 ? 2 : 4,
                                             .quiet = true, .output = part == 2 ? whole : broken, .resume = part == 1,
                                             .log_every = 2, .log_grad_norm = true, .log_histograms = 3));
        CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL));
        case_free(&c);
    }
    case_same_file(broken, whole, "steps.csv");
    case_same_file(broken, whole, "histograms.csv");
    case_same_file(broken, whole, "history.csv");
}

/* Epochs that are not multiples of log_every, or shorter: each step is in a row, and no row spans epochs. */
TENSOR_TEST(an_epoch_ends_with_a_row)
{
    const int every[] = {4, 5, 100};
    for (int e = 0; e < 3; e++) {
        trainer_case c = case_make(0, 0.05);
        witness w = {.c = &c};
        CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 2, .quiet = true,
                                             .log_every = every[e], .log_grad_norm = true));
        CHECK_OK(kn_trainer_add_callback(c.trainer, &(kn_callback){.on_step_end = watch, .user = &w}));
        CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL));
        const kn_history *steps = kn_trainer_steps(c.trainer);
        const int per_epoch = every[e] < CASE_STEPS ? 2 : 1;
        assert_int_equal(kn_history_epochs(steps), 2 * per_epoch);
        for (int r = 0, from = 0; r < 2 * per_epoch; r++) {
            int epoch = r / per_epoch, last = (r + 1) % per_epoch == 0 ? CASE_STEPS : every[e];
            double mean = 0;
            int to = epoch * CASE_STEPS + last;
            for (int s = from; s < to; s++)
                mean += w.loss[s] / (to - from);
            assert_true(cell(steps, r, "step") == to && cell(steps, r, "epoch") == epoch + 1);
            assert_true(fabs(cell(steps, r, "loss") - mean) < 1e-5);
            assert_true(fabs(cell(steps, r, "grad_norm") - w.norm[to - 1]) < 1e-5 * (1 + w.norm[to - 1]));
            from = to;
        }
        case_free(&c);
    }
}

/* --- NaN losses ------------------------------------------------------------------------------------------------- */

typedef struct poison {
    int calls, at;
} poison;

static kn_tensor *poisoned(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    poison *p = user;
    kn_tensor *loss = kn_cross_entropy(outputs[0], batch->target);
    return ++p->calls == p->at ? kn_mul_scalar(loss, NAN) : loss;
}

TENSOR_TEST(a_log_notices_the_step_that_went_wrong)
{
    for (int every = 0; every < 3; every++) {
        trainer_case c = case_make(0, 0.05);
        poison p = {.at = CASE_STEPS + 3};
        CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 4, .loss = poisoned,
                                             .loss_user = &p, .quiet = true, .log_every = every));
        assert_int_equal(kn_trainer_fit(c.trainer, c.train, NULL), KN_ERR_NUMERIC);
        CHECK_ERROR(KN_ERR_NUMERIC, "became NaN at epoch 2, step 3 of 6");
        assert_true(p.calls <= 2 * CASE_STEPS);
        case_free(&c);
    }
}

/* The file contains the rows logged before the failure. */
TENSOR_TEST(the_rows_before_a_bad_step_are_written)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("steps-bad"));
    trainer_case c = case_make(0, 0.05);
    poison p = {.at = CASE_STEPS + 4};
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 4, .loss = poisoned,
                                         .loss_user = &p, .quiet = true, .log_every = 1, .output = folder));
    assert_int_equal(kn_trainer_fit(c.trainer, c.train, NULL), KN_ERR_NUMERIC);
    CHECK_ERROR(KN_ERR_NUMERIC, "epoch 2, step 4 of 6");
    size_t size;
    char *steps = case_file(folder, "steps.csv", &size);
    assert_non_null(strstr(steps, "\n9,2,"));
    assert_null(strstr(steps, "\n10,2,"));
    kn_free(steps);
    case_free(&c);
}

static kn_status break_off(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer;
    (void)loss;
    (void)user;
    return epoch == 2 && step == 5 ? (raise(SIGINT), KN_OK) : KN_OK;
}

TENSOR_TEST(the_rows_before_an_interrupt_are_written)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("steps-interrupted"));
    trainer_case c = case_make(0, 0.05);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 4, .quiet = true, .log_every = 1,
                                         .output = folder));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &(kn_callback){.on_step_end = break_off}));
    assert_int_equal(kn_trainer_fit(c.trainer, c.train, NULL), KN_ERR_INTERRUPTED);
    CHECK_ERROR(KN_ERR_INTERRUPTED, "epoch 2, step 5 of 6");
    assert_int_equal(kn_history_epochs(kn_trainer_steps(c.trainer)), CASE_STEPS + 5);
    size_t size;
    char *steps = case_file(folder, "steps.csv", &size);
    assert_non_null(strstr(steps, "\n11,2,"));
    kn_free(steps);
    case_free(&c);
}

TENSOR_TEST(bad_log_parameters_are_refused)
{
    trainer_case c = case_make(0, 0.05);
    assert_int_equal(kn_status_of(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .log_every = -1)),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "log_every (-1)");
    assert_int_equal(
        kn_status_of(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .log_histograms = 9999)),
        KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "9999", "4096");
    assert_int_equal(kn_status_of(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .log_histograms = 8)),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "needs log_every");
    assert_int_equal(kn_status_of(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .log_histograms = 8,
                                                             .log_every = 2, .log_range = -1)),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "log_range");
    assert_null(kn_trainer_steps(NULL));
    case_free(&c);
}

/* --- no wait --------------------------------------------------------------------------------------------------- */

typedef struct counter {
    uint64_t before;
    int steps;
} counter;

/* Between the first step (compiles kernels, pins memory) and the last nothing waits; waiting is an error. */
static kn_status count_waits(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer;
    (void)loss;
    counter *count = user;
    if (epoch == 2 && step == 1) {
        count->before = kn_host_wait_count();
        kn_set_sync_debug_mode(KN_SYNC_DEBUG_ERROR);
    }
    if (epoch == 2 && step > 1)
        count->steps++;
    if (epoch == 2 && step == CASE_STEPS) {
        kn_set_sync_debug_mode(KN_SYNC_DEBUG_OFF);
        assert_int_equal(kn_host_wait_count() - count->before, 0);
    }
    return KN_OK;
}

TENSOR_TEST(a_trainers_step_waits_for_nothing)
{
    kn_metric *f1 = kn_metric_f1_score(.num_classes = 2), *auroc = kn_metric_auroc(.num_classes = 2);
    kn_metric *perplexity = kn_metric_perplexity();
    for (int workers = 0; workers <= 2; workers += 2) {
        trainer_case c = case_make(0, 0.05);
        counter count = {0};
        kn_loader_free(c.train);
        CHECK_NEW(c.train =
                      kn_loader_new(c.train_data, .batch_size = CASE_BATCH, .shuffle = true, .num_workers = workers));
        CHECK_NEW(c.trainer =
                      kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 2, .quiet = true, .log_every = 1,
                                     .log_grad_norm = true, .log_histograms = 8,
                                     .precision = workers > 0 ? KN_F16 : KN_F32,
                                     .metrics = KN_METRICS({"f1", f1}, {"auc", auroc}, {"perplexity", perplexity})));
        CHECK_OK(kn_trainer_add_callback(c.trainer, &(kn_callback){.on_step_end = count_waits, .user = &count}));
        CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
        assert_int_equal(count.steps, CASE_STEPS - 1);
        case_free(&c);
    }
    kn_metric_free(f1);
    kn_metric_free(auroc);
    kn_metric_free(perplexity);
}

/* An epoch waits once for its figures, and so does the validation. */
TENSOR_TEST(a_fit_waits_once_per_epoch)
{
    trainer_case c = case_make(0, 0.05);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 3, .quiet = true, .log_every = 2,
                                         .log_grad_norm = true));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    uint64_t before = kn_host_wait_count();
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    assert_int_equal(kn_host_wait_count() - before, 2 * 3);
    case_free(&c);
}

static void step_by_hand(trainer_case *c, kn_device_log *log, const kn_batch *batch)
{
    kn_optim_zero_grad(c->optim);
    kn_tensor *output = kn_forward(c->net, batch->input), *loss = kn_cross_entropy(output, batch->target);
    CHECK_OK(kn_backward(loss));
    CHECK_OK(kn_device_log_scalar(log, 0, loss, batch->size));
    CHECK_OK(kn_device_log_accuracy(log, 1, output, batch->target));
    CHECK_OK(kn_device_log_grad_norm(log, 2));
    CHECK_OK(kn_optim_step(c->optim));
}

TENSOR_TEST(a_loop_by_hand_waits_for_its_log_alone)
{
    trainer_case c = case_make(0, 0.05);
    kn_device_log *log = kn_device_log_new();
    kn_device_log_add_scalar(log, "loss");
    kn_device_log_add_accuracy(log, "accuracy");
    kn_device_log_add_grad_norm(log, "norm", kn_module_parameters(c.net));
    for (int epoch = 0; epoch < 3; epoch++) {
        CHECK_OK(kn_device_log_reset(log));
        uint64_t before = kn_host_wait_count();
        KN_FOR_BATCHES (batch, c.train, epoch)
            step_by_hand(&c, log, batch);
        CHECK_OK(kn_loader_status(c.train));
        if (epoch > 0) /* the first one compiles kernels */
            assert_int_equal(kn_host_wait_count() - before, 0);
        before = kn_host_wait_count();
        CHECK_OK(kn_device_log_read(log));
        assert_int_equal(kn_host_wait_count() - before, 1);
        assert_true(kn_device_log_value(log, 1, KN_FIGURE_COUNT) == CASE_SAMPLES);
    }
    kn_device_log_free(log);
    case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(steps_are_logged_as_they_are),           TEST(logging_changes_no_bit_of_the_training),
        TEST(the_output_directory_has_the_steps),     TEST(resuming_goes_on_with_the_table_of_steps),
        TEST(a_log_notices_the_step_that_went_wrong), TEST(bad_log_parameters_are_refused),
        TEST(a_trainers_step_waits_for_nothing),      TEST(a_fit_waits_once_per_epoch),
        TEST(a_loop_by_hand_waits_for_its_log_alone), TEST(an_epoch_ends_with_a_row),
        TEST(the_rows_before_a_bad_step_are_written), TEST(the_rows_before_an_interrupt_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
