/* train/evaluate.c - one pass over data without gradients, in evaluation mode. */
#include <math.h>

#include <koine/autograd.h>

#include "train/trainer.h"

static kn_status evaluate_batch(kn_trainer *trainer, const kn_batch *batch, bool accuracy)
{
    kn_applied_batch applied;
    KN_TRY(kn_trainer_apply(trainer, batch, accuracy, &applied));
    KN_TRY(kn_device_log_scalar(trainer->evaluation, trainer->evaluation_loss, applied.loss, batch->size));
    return accuracy ? kn_trainer_log_accuracy(trainer->evaluation, trainer->evaluation_accuracy, applied.output,
                                              applied.target)
                    : KN_OK;
}

static kn_status run(kn_trainer *trainer, kn_loader *loader, bool accuracy)
{
    KN_FOR_BATCHES (batch, loader, trainer->epoch + 1) {
        KN_TRY(evaluate_batch(trainer, batch, accuracy));
        if (!trainer->is_fitting)
            continue;
        kn_progress_step(&trainer->progress, batch->size);
        kn_progress_draw(&trainer->progress);
        if (kn_trainer_interrupted(trainer))
            return kn_fail(KN_ERR_INTERRUPTED, "training was interrupted by %s during the validation of epoch %d",
                           kn_trainer_signal_name(trainer), trainer->epoch + 1);
    }
    return kn_loader_status(loader);
}

/* Reads the figures of the whole pass in one transfer. */
static kn_status read_figures(kn_trainer *trainer, kn_pass_figures *figures)
{
    const kn_device_log *log = trainer->evaluation;
    KN_TRY(kn_device_log_read(trainer->evaluation));
    *figures = (kn_pass_figures){.loss = kn_device_log_value(log, trainer->evaluation_loss, KN_FIGURE_MEAN),
                                 .accuracy = kn_device_log_value(log, trainer->evaluation_accuracy, KN_FIGURE_MEAN),
                                 .grad_norm = (double)NAN};
    figures->bad_step = kn_device_log_first_bad(log, trainer->evaluation_loss, &figures->is_nan);
    return KN_OK;
}

kn_status kn_trainer_run_evaluation(kn_trainer *trainer, kn_loader *loader, bool accuracy, kn_pass_figures *figures)
{
    kn_module *module = trainer->params.module;
    KN_TRY(kn_device_log_reset(trainer->evaluation));
    bool training = kn_module_is_training(module);
    bool recording = kn_set_grad_enabled(false);
    kn_module_train(module, false);
    kn_status status = run(trainer, loader, accuracy);
    kn_module_train(module, training);
    kn_set_grad_enabled(recording);
    return status == KN_OK ? read_figures(trainer, figures) : status;
}

kn_status kn_trainer_evaluate(kn_trainer *trainer, kn_loader *data, double *loss, double *accuracy)
{
    if (trainer == NULL || data == NULL || loss == NULL)
        return kn_fail_argument_null("trainer_evaluate", trainer == NULL ? "trainer" : data == NULL ? "data" : "loss");
    KN_TRY(kn_trainer_check_fields(trainer, data, "data"));
    /* Called from a callback, it is not part of the epoch that the bar shows. */
    bool fitting = trainer->is_fitting;
    trainer->is_fitting = false;
    kn_pass_figures figures;
    kn_status status = kn_trainer_run_evaluation(trainer, data, accuracy != NULL, &figures);
    trainer->is_fitting = fitting;
    KN_TRY(status);
    *loss = figures.loss;
    if (accuracy != NULL)
        *accuracy = figures.accuracy;
    return KN_OK;
}
