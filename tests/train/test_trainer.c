/* test_trainer.c - the course of a fit: learning, monitoring, early stopping, the best epoch, callbacks, evaluation. */
#include "trainer_case.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/as_gpu.h"

static double last_value(const kn_history *history, const char *column)
{
    for (int c = 0; c < kn_history_columns(history); c++) {
        if (strcmp(kn_history_column(history, c), column) == 0)
            return kn_history_value(history, kn_history_epochs(history) - 1, c);
    }
    fail_msg("there is no column %s", column);
    return 0;
}

TENSOR_TEST(a_fit_learns)
{
    trainer_case c = case_make(0, 0.05);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 8, .quiet = true));
    assert_int_equal(kn_trainer_best_epoch(c.trainer), 0);
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    const kn_history *history = kn_trainer_history(c.trainer);
    assert_int_equal(kn_history_epochs(history), 8);
    assert_int_equal(kn_history_columns(history), 6);
    assert_true(last_value(history, "epoch") == 8);
    assert_true(last_value(history, "lr") == 0.05);
    assert_true(last_value(history, "val_acc") > 0.85);
    assert_true(last_value(history, "train_loss") < 0.5 * kn_history_value(history, 0, 1) + 0.2);
    assert_true(kn_trainer_best_epoch(c.trainer) >= 1);
    assert_true(kn_module_is_training(c.net));
    case_free(&c);
}

TENSOR_TEST(the_same_seed_gives_the_same_bits)
{
    trainer_case a = case_make(3, 0.05), b;
    CHECK_NEW(a.trainer = kn_trainer_new(.module = a.net, .optim = a.optim, .epochs = 3, .quiet = true));
    CHECK_OK(kn_trainer_fit(a.trainer, a.train, a.test));
    b = case_make(3, 0.05);
    CHECK_NEW(b.trainer = kn_trainer_new(.module = b.net, .optim = b.optim, .epochs = 3, .quiet = true));
    CHECK_OK(kn_trainer_fit(b.trainer, b.train, b.test));
    assert_true(case_same_weights(a.net, b.net));
    const kn_history *x = kn_trainer_history(a.trainer), *y = kn_trainer_history(b.trainer);
    for (int e = 0; e < 3; e++) {
        for (int column = 0; column < 6; column++)
            assert_true(kn_history_value(x, e, column) == kn_history_value(y, e, column));
    }
    case_free(&a);
    case_free(&b);
}

/* With a learning rate of 0 nothing improves after the first epoch. */
TENSOR_TEST(patience_ends_a_fit_that_does_not_improve)
{
    trainer_case c = case_make(0, 0);
    CHECK_NEW(c.trainer =
                  kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 20, .patience = 3, .quiet = true));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    assert_int_equal(kn_history_epochs(kn_trainer_history(c.trainer)), 1 + 3);
    assert_int_equal(kn_trainer_best_epoch(c.trainer), 1);
    case_free(&c);

    c = case_make(0, 0);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 7, .patience = 0, .quiet = true));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    assert_int_equal(kn_history_epochs(kn_trainer_history(c.trainer)), 7);
    case_free(&c);
}

TENSOR_TEST(improvements_below_min_delta_do_not_count)
{
    trainer_case c = case_make(0, 0.001);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 20, .patience = 2,
                                         .min_delta = 10, .quiet = true));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    assert_int_equal(kn_history_epochs(kn_trainer_history(c.trainer)), 3);
    case_free(&c);
}

/* --- the best epoch -------------------------------------------------------------------------------------------- */

typedef struct spoiler {
    kn_optim *optim;
    kn_module *net;
    void *best;
    size_t size;
} spoiler;

/* After the third epoch the learning rate becomes huge; the network's state at that time is kept for comparison. */
static kn_status spoil(kn_trainer *trainer, int epoch, const kn_history *history, void *user)
{
    spoiler *s = user;
    assert_int_equal(kn_history_epochs(history), epoch);
    if (kn_trainer_best_epoch(trainer) == epoch) {
        free(s->best);
        s->best = case_weights(s->net, &s->size);
    }
    return epoch == 3 ? kn_optim_set_lr(s->optim, 100) : KN_OK;
}

TENSOR_TEST(the_best_weights_are_there_at_the_end)
{
    trainer_case c = case_make(1, 0.02);
    spoiler s = {.optim = c.optim, .net = c.net};
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 6, .monitor = "val_acc",
                                         .mode = KN_MONITOR_MAX, .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &(kn_callback){.on_epoch_end = spoil, .user = &s}));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    const kn_history *history = kn_trainer_history(c.trainer);
    int best = kn_trainer_best_epoch(c.trainer);
    assert_true(best >= 1 && best <= 3);
    assert_true(kn_history_value(history, 5, 5) == 100); /* lr set by a callback */
    size_t size;
    void *now = case_weights(c.net, &size);
    assert_int_equal(size, s.size);
    assert_memory_equal(now, s.best, size);
    /* Evaluation gives the best epoch's figures again. */
    double loss, accuracy;
    CHECK_OK(kn_trainer_evaluate(c.trainer, c.test, &loss, &accuracy));
    assert_true(loss == kn_history_value(history, best - 1, 3));
    assert_true(accuracy == kn_history_value(history, best - 1, 4));
    free(now);
    free(s.best);
    case_free(&c);
}

/* --- optional parts -------------------------------------------------------------------------------------- */

static kn_tensor *squared(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    (*(int *)user)++;
    return kn_mse_loss(kn_select(outputs[0], 1, 1), kn_to_dtype(batch->target, KN_F32), KN_REDUCTION_MEAN);
}

TENSOR_TEST(a_loss_of_ones_own_without_validation_or_accuracy)
{
    trainer_case c = case_make(0, 0.05);
    int calls = 0;
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 2, .loss = squared,
                                         .loss_user = &calls, .accuracy = false, .quiet = true));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, NULL));
    assert_int_equal(calls, 2 * CASE_STEPS);
    const kn_history *history = kn_trainer_history(c.trainer);
    assert_int_equal(kn_history_columns(history), 3);
    assert_true(kn_trainer_best_epoch(c.trainer) > 0); /* by train_loss */
    double loss;
    CHECK_OK(kn_trainer_evaluate(c.trainer, c.test, &loss, NULL));
    assert_true(loss > 0 && loss < 1);
    case_free(&c);
}

/* A misspelt name is rejected by kn_trainer_new, which lists the names; missing validation data by fit. */
TENSOR_TEST(what_cannot_be_monitored_is_refused)
{
    trainer_case c = case_make(0, 0.05);
    assert_int_equal(kn_status_of(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .monitor = "val_f1")),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "\"val_f1\"", "train_loss, train_acc, val_loss, val_acc");
    assert_int_equal(
        kn_status_of(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .monitor = "grad_norm")),
        KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "\"grad_norm\"");
    assert_int_equal(kn_status_of(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .monitor = "val_acc",
                                                             .accuracy = false)),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "the columns are train_loss, val_loss", ".accuracy = true");
    assert_null(c.trainer);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .monitor = "grad_norm", .log_every = 1,
                                         .log_grad_norm = true));
    kn_trainer_free(c.trainer);
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .monitor = "val_acc", .quiet = true));
    assert_int_equal(kn_trainer_fit(c.trainer, c.train, NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "val_acc", "without validation data");
    kn_error_clear();
    case_free(&c);
}

/* --- targets other than classes ------------------------------------------------------------------------------- */

/* Classes as probabilities, float32 [n, 2], on the host. */
static kn_tensor *soft(kn_tensor *classes)
{
    int64_t count = kn_size(classes, 0);
    kn_tensor *probabilities = kn_empty(KN_SHAPE(count, 2), .device = kn_device_host());
    const int64_t *from = kn_data(classes);
    float *to = kn_data(probabilities);
    for (int64_t i = 0; i < count; i++) {
        to[2 * i] = from[i] == 0 ? 0.9F : 0.1F;
        to[2 * i + 1] = 1 - to[2 * i];
    }
    return probabilities;
}

static kn_status soften(const kn_batch *batch, void *user)
{
    batch->fields[1] = soft(batch->target);
    return kn_collate_to_device(batch, user);
}

static kn_dataset *soft_points(void)
{
    kn_dataset *dataset = NULL;
    kn_tensor *x = kn_full(KN_SHAPE(8, 2), 0.5, .device = kn_device_host());
    CHECK_NEW(dataset = kn_tensor_dataset(x, soft(kn_ones(KN_SHAPE(8), .dtype = KN_I64, .device = kn_device_host()))));
    return dataset;
}

/* Detected from the dataset before anything changes, including the previous history; or from the first batch if a
 * collate function makes the targets. */
TENSOR_TEST(soft_targets_need_a_trainer_without_accuracy)
{
    trainer_case c = case_make(0, 0.05);
    kn_dataset *data = soft_points();
    kn_loader *plain, *collated;
    CHECK_NEW(plain = kn_loader_new(data, .batch_size = 4));
    CHECK_NEW(collated = kn_loader_new(c.train_data, .batch_size = CASE_BATCH, .collate = soften));
    kn_loader *const loaders[] = {plain, collated};
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", case_folder("soft"));
    for (int i = 0; i < 2; i++) {
        kn_trainer *without;
        CHECK_NEW(c.trainer =
                      kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 2, .output = folder, .quiet = true));
        assert_int_equal(kn_trainer_fit(c.trainer, loaders[i], NULL), KN_ERR_DTYPE);
        CHECK_ERROR(KN_ERR_DTYPE, "the targets are float32", ".accuracy = false");
        size_t size;
        char *history = case_file(folder, "history.csv", &size);
        assert_int_equal(history == NULL, i == 0);
        kn_free(history);
        CHECK_NEW(without =
                      kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .accuracy = false, .quiet = true));
        CHECK_OK(kn_trainer_fit(without, loaders[i], NULL));
        kn_trainer_free(without);
        kn_trainer_free(c.trainer);
        c.trainer = NULL;
    }
    kn_loader_free(plain);
    kn_loader_free(collated);
    kn_dataset_free(data);
    case_free(&c);
}

/* Integers of another shape: detected once the network's output is known. */
static kn_tensor *summed(kn_tensor *const *outputs, const kn_batch *batch, void *user)
{
    (void)batch, (void)user;
    return kn_mean(outputs[0]);
}

TENSOR_TEST(targets_of_another_shape_need_a_trainer_without_accuracy)
{
    trainer_case c = case_make(0, 0.05);
    kn_dataset *data;
    kn_loader *loader;
    kn_tensor *x = kn_ones(KN_SHAPE(8, 2), .device = kn_device_host());
    kn_tensor *y = kn_ones(KN_SHAPE(8, 2), .dtype = KN_I64, .device = kn_device_host());
    CHECK_NEW(data = kn_tensor_dataset(x, y));
    CHECK_NEW(loader = kn_loader_new(data, .batch_size = 4));
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .loss = summed, .quiet = true));
    assert_int_equal(kn_trainer_fit(c.trainer, loader, NULL), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "int64 [4, 2]", ".accuracy = false");
    kn_loader_free(loader);
    kn_dataset_free(data);
    case_free(&c);
}

TENSOR_TEST(wrong_parameters_are_refused)
{
    trainer_case c = case_make(0, 0.05);
    assert_int_equal(kn_status_of(c.trainer = kn_trainer_new(.optim = c.optim)), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "module");
    kn_error_clear();
    assert_int_equal(kn_status_of(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = -1)),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "epochs (-1)");
    kn_error_clear();
    assert_int_equal(kn_status_of(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .resume = true)),
                     KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "resume", "output");
    kn_error_clear();
    assert_null(c.trainer);
    case_free(&c);
}

/* --- memory ---------------------------------------------------------------------------------------------------- */

typedef struct usage {
    int64_t steps;
    uint64_t allocated, reserved;
} usage;

/* From the 200th step on memory does not grow, neither tensors nor driver allocations. */
static kn_status watch_memory(kn_trainer *trainer, int epoch, int64_t step, kn_tensor *loss, void *user)
{
    (void)trainer, (void)epoch, (void)step;
    usage *u = user;
    kn_device *device = kn_device_of(loss);
    if (++u->steps == 200) {
        u->allocated = kn_memory_allocated(device);
        u->reserved = kn_memory_reserved(device);
    }
    /* The host runs a few steps ahead: their memory varies by some batches, and may need another block once. */
    uint64_t allocated = kn_memory_allocated(device), reserved = kn_memory_reserved(device);
    if (u->steps > 200 && (allocated > u->allocated + (64 << 10) || reserved > u->reserved + (8 << 20)))
        fail_msg("step %lld: %llu bytes allocated, %llu reserved; at step 200 %llu and %llu", (long long)u->steps,
                 (unsigned long long)allocated, (unsigned long long)reserved, (unsigned long long)u->allocated,
                 (unsigned long long)u->reserved);
    return KN_OK;
}

TENSOR_TEST(a_thousand_steps_take_no_more_memory)
{
    trainer_case c = case_make(0, 0.01);
    usage u = {0};
    CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1200 / CASE_STEPS, .patience = 0,
                                         .quiet = true));
    CHECK_OK(kn_trainer_add_callback(c.trainer, &(kn_callback){.on_step_end = watch_memory, .user = &u}));
    CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
    assert_true(u.steps == 1200);
    char *summary = kn_memory_summary(kn_device_current());
    CHECK_TENSOR(summary);
    kn_free(summary);
    case_free(&c);
}

/* One trainer after another on the same loaders, module and optimizer. Uses malloc's statistics for host memory;
 * sanitizers replace malloc, and check for leaks themselves. */
TENSOR_TEST(trainers_made_used_and_freed_leave_no_memory_behind)
{
    const int warm = 50, rounds = 550;
    const size_t per_round = 256; /* for the driver's lists, which grow and shrink */
    trainer_case c = case_make(0, 0.01);
    size_t before = 0;
    uint64_t reserved = 0;
    for (int r = 0; r < rounds; r++) {
        if (r == warm) {
            before = mallinfo2().uordblks;
            reserved = kn_memory_reserved(kn_device_current());
        }
        CHECK_NEW(c.trainer = kn_trainer_new(.module = c.net, .optim = c.optim, .epochs = 1, .quiet = true,
                                             .log_every = 2, .log_grad_norm = true));
        CHECK_OK(kn_trainer_fit(c.trainer, c.train, c.test));
        kn_trainer_free(c.trainer);
        c.trainer = NULL;
    }
    size_t after = mallinfo2().uordblks;
    if (after > before + per_round * (size_t)(rounds - warm))
        fail_msg("%zu bytes grew to %zu in %d rounds", before, after, rounds - warm);
    assert_true(kn_memory_reserved(kn_device_current()) == reserved);
    case_free(&c);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(a_fit_learns),
        TEST(the_same_seed_gives_the_same_bits),
        TEST(patience_ends_a_fit_that_does_not_improve),
        TEST(improvements_below_min_delta_do_not_count),
        TEST(the_best_weights_are_there_at_the_end),
        TEST(a_loss_of_ones_own_without_validation_or_accuracy),
        TEST(what_cannot_be_monitored_is_refused),
        TEST(soft_targets_need_a_trainer_without_accuracy),
        TEST(targets_of_another_shape_need_a_trainer_without_accuracy),
        TEST(wrong_parameters_are_refused),
        TEST(a_thousand_steps_take_no_more_memory),
        TEST(trainers_made_used_and_freed_leave_no_memory_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
