/* train/fit.c - the fit: epochs, validation, early stopping, and an orderly end in all cases. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "data/loader.h"
#include "nn/module.h"
#include "train/interrupt.h"
#include "train/ranks.h"

/* --- the beginning --------------------------------------------------------------------------------------------- */

static kn_status find_monitor(kn_trainer *trainer, bool validation)
{
    const char *monitor = trainer->params.monitor;
    if (!validation && strcmp(monitor, "val_loss") == 0)
        monitor = "train_loss"; /* the documented default without validation data */
    trainer->monitor_column = kn_history_find(&trainer->history, monitor);
    if (trainer->monitor_column > 0)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT,
                   "trainer: cannot monitor \"%s\" without validation data; monitor train_loss instead",
                   monitor); /* all other names were rejected by kn_trainer_new */
}

static void forget_course(kn_trainer *trainer)
{
    trainer->stop = false;
    trainer->signal = 0;
    trainer->global_step = 0;
    trainer->num_written = 0;
    trainer->epoch = trainer->best_epoch = trainer->epochs_since_best = 0;
    trainer->best_value = (double)NAN;
    kn_tensor_list_free(&trainer->best);
}

static kn_status check_data(kn_trainer *trainer, kn_loader *train, kn_loader *validation)
{
    const kn_loader_part whole = kn_ranks_divide(trainer, train, true);
    kn_status status = kn_ranks_compare_settings(trainer, train, validation);
    if (status == KN_OK && kn_loader_batches(train) == 0)
        status = kn_fail(KN_ERR_ARGUMENT, "trainer: the training data has no batches%s",
                         trainer->group != NULL ? " for a rank" : "");
    if (status == KN_OK && trainer->has_parts && kn_loader_batches(train) % trainer->params.accumulate != 0)
        status = kn_fail(KN_ERR_ARGUMENT,
                         "trainer: a rank's %lld batches do not make whole steps of %d, which the distributed module's "
                         "parts need",
                         (long long)kn_loader_batches(train), trainer->params.accumulate);
    kn_loader_divide(train, whole);
    KN_TRY(status);
    if (validation != NULL && kn_loader_batches(validation) == 0)
        return kn_fail(KN_ERR_ARGUMENT, "trainer: the validation data has no batches");
    const bool measure = trainer->num_metrics > 0;
    KN_TRY(kn_trainer_check_fields(trainer, train, measure, "training data"));
    if (validation != NULL)
        KN_TRY(kn_trainer_check_fields(trainer, validation, measure, "validation data"));
    return kn_trainer_check_classes(trainer, train);
}

/* Have all ranks read the same state? */
static kn_status compare_course(kn_trainer *trainer)
{
    char text[128];
    snprintf(text, sizeof text, "resumed after epoch: %d\nafter step: %lld\n", trainer->epoch,
             (long long)trainer->global_step);
    kn_status status = kn_ranks_compare(trainer, text);
    if (status == KN_ERR_ARGUMENT)
        kn_error_suffix("; the output must be a folder that all ranks see");
    return status;
}

/* Writes the tables first, empty in a new run, so that a directory that is not writable is found before an epoch is
 * lost. */
static kn_status prepare_output(kn_trainer *trainer)
{
    bool resumed;
    KN_TRY(kn_ranks_agree(trainer, kn_trainer_open_output(trainer)));
    KN_TRY(kn_ranks_agree(trainer, kn_trainer_resume(trainer, &resumed)));
    KN_TRY(compare_course(trainer));
    KN_TRY(kn_trainer_save_tables(trainer));
    if (resumed)
        kn_progress_note(&trainer->progress, "resuming after epoch %d", trainer->epoch);
    else if (trainer->params.resume)
        kn_progress_note(&trainer->progress, "nothing to resume from in %s: starting from scratch",
                         trainer->params.output);
    return KN_OK;
}

/* That of the parameters, or a new one for float16. */
static kn_status make_scaler(kn_trainer *trainer)
{
    if (trainer->params.grad_scaler != NULL || trainer->params.precision != KN_F16)
        return KN_OK;
    kn_grad_scaler_free(trainer->scaler);
    return kn_status_of(trainer->scaler = kn_grad_scaler_new());
}

static kn_status prepare(kn_trainer *trainer, kn_loader *train, kn_loader *validation)
{
    kn_parameter_list list; /* caches the list here, where failure is reported */
    KN_TRY(kn_module_find_parameters(&list, trainer->params.module));
    forget_course(trainer);
    const char *names[KN_TRAINER_METRICS];
    for (int i = 0; i < trainer->num_metrics; i++)
        names[i] = trainer->metrics[i].name;
    KN_TRY(kn_history_start(&trainer->history, names, trainer->num_metrics, validation != NULL,
                            trainer->params.log_grad_norm));
    KN_TRY(make_scaler(trainer));
    KN_TRY(kn_steps_start(trainer));
    KN_TRY(find_monitor(trainer, validation != NULL));
    kn_trainer_note_settings(trainer, train, validation);
    KN_TRY(check_data(trainer, train, validation));
    kn_progress_start(&trainer->progress, trainer->params.quiet || !kn_ranks_leads(trainer));
    trainer->progress.num_metrics = trainer->num_metrics;
    memcpy(trainer->progress.names, names, (size_t)trainer->num_metrics * sizeof *names);
    KN_TRY(kn_trainer_keep_best(trainer)); /* the initial state, until there is a best epoch */
    return prepare_output(trainer);
}

/* --- an epoch -------------------------------------------------------------------------------------------------- */

static kn_status validate(kn_trainer *trainer, kn_loader *loader, kn_pass_figures *figures)
{
    const kn_loader_part whole = kn_ranks_divide(trainer, loader, false);
    const int64_t batches = kn_loader_batches(loader);
    kn_progress_phase(&trainer->progress, "validation", batches);
    kn_status status = kn_trainer_run_evaluation(trainer, loader, figures);
    kn_loader_divide(loader, whole);
    KN_TRY(status);
    if (figures->bad_step > 0)
        return kn_fail(KN_ERR_NUMERIC, "%sthe validation loss became %s at epoch %d, batch %lld of %lld",
                       trainer->group != NULL ? kn_ranks_name(trainer, figures->bad_rank) : "",
                       figures->is_nan ? "NaN" : "infinite", trainer->epoch + 1, (long long)figures->bad_step,
                       (long long)batches);
    return KN_OK;
}

/* In the order of kn_history_start; `validation` may be NULL. */
static kn_status append_row(kn_trainer *trainer, const kn_pass_figures *training, const kn_pass_figures *validation)
{
    double row[KN_HISTORY_EPOCH_COLUMNS];
    const kn_pass_figures *const passes[] = {training, validation};
    int n = 0;
    row[n++] = trainer->epoch + 1;
    for (int p = 0; p < 2 && passes[p] != NULL; p++) {
        row[n++] = passes[p]->loss;
        for (int i = 0; i < trainer->num_metrics; i++)
            row[n++] = passes[p]->metrics[i];
    }
    if (trainer->params.log_grad_norm)
        row[n++] = training->grad_norm;
    row[n++] = kn_optim_lr(trainer->params.optim);
    return kn_history_append(&trainer->history, row);
}

/* After an epoch; a plateau is one of the monitored figure. */
static kn_status step_schedule(kn_trainer *trainer)
{
    kn_lr_scheduler *scheduler = trainer->params.scheduler;
    if (scheduler == NULL || trainer->params.scheduler_per_step)
        return KN_OK;
    if (!kn_lr_scheduler_takes_metric(scheduler))
        return kn_lr_scheduler_step(scheduler);
    return kn_lr_scheduler_step_metric(
        scheduler, kn_history_value(&trainer->history, trainer->history.epochs - 1, trainer->monitor_column));
}

static kn_status run_epoch(kn_trainer *trainer, kn_loader *train, kn_loader *validation)
{
    kn_progress *progress = &trainer->progress;
    kn_progress_epoch(progress, trainer->epoch + 1, trainer->params.epochs);
    KN_TRY(kn_trainer_call(trainer, KN_EPOCH_START, trainer->epoch + 1, 0, NULL));
    kn_pass_figures figures, validated;
    const kn_loader_part whole = kn_ranks_divide(trainer, train, true);
    const double samples = (double)kn_loader_samples(train) * kn_ranks_count(trainer);
    kn_status status = kn_trainer_train_epoch(trainer, train, &figures);
    kn_loader_divide(train, whole);
    KN_TRY(status);
    double training_seconds = kn_clock_seconds() - progress->started;
    if (validation != NULL)
        KN_TRY(validate(trainer, validation, &validated));
    KN_TRY(append_row(trainer, &figures, validation != NULL ? &validated : NULL));
    trainer->epoch++;
    bool is_best;
    KN_TRY(kn_trainer_note_epoch(trainer, &is_best));
    kn_progress_epoch_line(progress, &trainer->history, kn_clock_seconds() - progress->epoch_started,
                           samples / training_seconds, is_best);
    kn_ranks_report_slow(trainer);
    KN_TRY(step_schedule(trainer));
    /* Before saving: changes by a callback, such as the learning rate, are part of what the next epoch starts from. */
    KN_TRY(kn_trainer_call(trainer, KN_EPOCH_END, trainer->epoch, 0, NULL));
    return kn_trainer_save_last(trainer);
}

/* True when the fit is over; prints why. */
static bool is_over(kn_trainer *trainer)
{
    if (trainer->stop || trainer->epoch >= trainer->params.epochs)
        return true;
    if (trainer->params.patience == 0 || trainer->epochs_since_best < trainer->params.patience)
        return false;
    kn_progress_note(&trainer->progress, "%s has not improved for %d epochs: stopping early",
                     trainer->history.names[trainer->monitor_column], trainer->epochs_since_best);
    return true;
}

static kn_status run_epochs(kn_trainer *trainer, kn_loader *train, kn_loader *validation)
{
    while (!is_over(trainer)) {
        KN_TRY(kn_ranks_agree(trainer, run_epoch(trainer, train, validation)));
        if (kn_trainer_interrupted(trainer))
            return kn_fail(KN_ERR_INTERRUPTED, "training was interrupted by %s after epoch %d",
                           kn_trainer_signal_name(trainer), trainer->epoch);
    }
    return KN_OK;
}

/* --- the end --------------------------------------------------------------------------------------------------- */

/* If interrupted before the first epoch finished, there is no best state: the current one is kept. If the loss is not
 * finite, neither are the weights: those from before the fit are restored. */
static kn_status restore_or_save(kn_trainer *trainer, kn_status status)
{
    if (trainer->best_epoch > 0 || status == KN_ERR_NUMERIC)
        return kn_trainer_restore_best(trainer);
    return status == KN_ERR_INTERRUPTED ? kn_trainer_save_checkpoint(trainer) : KN_OK;
}

/* The first error of the fit and its end, which is the one to report. */
typedef struct first_error {
    kn_status status;
    char message[1024];
} first_error;

static void remember(first_error *first, kn_status status)
{
    if (status != KN_OK && first->status == KN_OK) {
        first->status = status;
        snprintf(first->message, sizeof first->message, "%s", kn_error_message());
    }
    kn_error_clear();
}

/* However the fit ended: draws the plot, restores the best weights, notifies the callbacks. */
static kn_status finish(kn_trainer *trainer, kn_status status)
{
    first_error first = {.status = KN_OK};
    remember(&first, status);
    kn_progress_clear(&trainer->progress);
    if (status == KN_ERR_INTERRUPTED || status == KN_ERR_NUMERIC)
        remember(&first, kn_trainer_save_tables(trainer)); /* the steps since the last epoch */
    if (status == KN_OK || status == KN_ERR_INTERRUPTED || status == KN_ERR_NUMERIC)
        remember(&first, kn_trainer_save_plot(trainer));
    remember(&first, restore_or_save(trainer, status));
    remember(&first, kn_trainer_call(trainer, KN_FIT_END, trainer->epoch, 0, NULL));
    if (first.status != KN_OK)
        return kn_fail(first.status, "%s", first.message);
    if (trainer->best_epoch > 0)
        kn_progress_note(&trainer->progress, "best epoch: %d, %s %.4f", trainer->best_epoch,
                         trainer->history.names[trainer->monitor_column], trainer->best_value);
    return KN_OK;
}

/* A signal that arrived after the last check, for example while the plot was drawn, is still reported. */
static kn_status end_interrupt(kn_trainer *trainer, kn_status status)
{
    const int number = kn_interrupt_end();
    if (status != KN_OK || number == 0)
        return status;
    trainer->signal = number;
    return kn_fail(KN_ERR_INTERRUPTED, "training was interrupted by %s at its end, after epoch %d",
                   kn_trainer_signal_name(trainer), trainer->epoch);
}

static kn_status run_fit(kn_trainer *trainer, kn_loader *train, kn_loader *validation)
{
    bool training = kn_module_is_training(trainer->params.module);
    trainer->is_fitting = true;
    if (!trainer->params.keep_interrupt)
        kn_interrupt_begin();
    kn_status status = kn_ranks_agree(trainer, kn_trainer_call(trainer, KN_FIT_START, 0, 0, NULL));
    if (status == KN_OK)
        status = run_epochs(trainer, train, validation);
    status = finish(trainer, status);
    if (!trainer->params.keep_interrupt)
        status = end_interrupt(trainer, status);
    kn_ranks_reunite(trainer); /* so that no rank leaves before all have ended, and the files are written */
    status = kn_ranks_agree(trainer, status);
    trainer->is_fitting = false;
    kn_module_train(trainer->params.module, training);
    return status;
}

kn_status kn_trainer_fit(kn_trainer *trainer, kn_loader *train, kn_loader *validation)
{
    if (trainer == NULL || train == NULL)
        return kn_fail_argument_null("trainer_fit", trainer == NULL ? "trainer" : "train");
    if (trainer->is_fitting)
        return kn_fail(KN_ERR_STATE, "trainer: fit was called from within fit");
    kn_ranks_reunite(trainer);
    kn_status status = kn_ranks_agree(trainer, prepare(trainer, train, validation));
    if (status == KN_OK)
        status = run_fit(trainer, train, validation);
    kn_trainer_close_output(trainer);
    kn_progress_stop(&trainer->progress);
    kn_tensor_list_free(&trainer->best); /* no longer needed */
    return status;
}
