/* train/evaluate.c - one pass over data without gradients, in evaluation mode. */
#include <math.h>

#include <koine/autograd.h>

#include "train/trainer.h"

static kn_status evaluate_batch(kn_trainer *trainer, kn_loader *loader, bool accuracy, int64_t *samples, bool *more)
{
    kn_tensor *input, *target;
    KN_TRY(kn_loader_next(loader, &input, &target));
    *more = input != NULL;
    if (input == NULL)
        return KN_OK;
    *samples = kn_ndim(input) > 0 ? kn_size(input, 0) : 1;
    kn_tensor *output = kn_forward(trainer->params.module, input);
    kn_tensor *loss = kn_trainer_loss(trainer, output, target);
    if (loss == NULL)
        return kn_error_status();
    KN_TRY(kn_device_log_scalar(trainer->evaluation, trainer->evaluation_loss, loss, *samples));
    return accuracy ? kn_trainer_log_accuracy(trainer->evaluation, trainer->evaluation_accuracy, output, target)
                    : KN_OK;
}

static kn_status run(kn_trainer *trainer, kn_loader *loader, bool accuracy)
{
    bool more = true;
    while (more) {
        int64_t samples = 0;
        int depth = kn_scope_begin();
        if (depth == 0)
            return kn_error_status();
        kn_status status = evaluate_batch(trainer, loader, accuracy, &samples, &more);
        kn_scope_end(depth);
        KN_TRY(status);
        if (!trainer->is_fitting)
            continue;
        kn_progress_step(&trainer->progress, samples);
        kn_progress_draw(&trainer->progress);
        if (kn_trainer_interrupted(trainer))
            return kn_fail(KN_ERR_INTERRUPTED, "training was interrupted by %s during the validation of epoch %d",
                           kn_trainer_signal_name(trainer), trainer->epoch + 1);
    }
    return KN_OK;
}

/* The figures of the whole pass, in one transfer. */
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
    KN_TRY(kn_loader_start(loader, trainer->epoch + 1));
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
    /* Called from a callback it is no part of the epoch that the bar shows. */
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
