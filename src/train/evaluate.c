/* train/evaluate.c - one pass over data without gradients, in evaluation mode. */
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
    KN_TRY(kn_metric_update(trainer->evaluation_loss, loss, NULL, *samples));
    if (accuracy)
        KN_TRY(kn_metric_update(trainer->evaluation_accuracy, output, target, 0));
    return KN_OK;
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
            return kn_fail(KN_ERR_INTERRUPTED, "training was interrupted during the validation of epoch %d",
                           trainer->epoch + 1);
    }
    return KN_OK;
}

kn_status kn_trainer_run_evaluation(kn_trainer *trainer, kn_loader *loader, double *loss, double *accuracy,
                                    kn_metric_fault *fault)
{
    kn_module *module = trainer->params.module;
    kn_metric_reset(trainer->evaluation_loss);
    kn_metric_reset(trainer->evaluation_accuracy);
    KN_TRY(kn_loader_start(loader, trainer->epoch + 1));
    bool training = kn_module_is_training(module);
    bool recording = kn_set_grad_enabled(false);
    kn_module_train(module, false);
    kn_status status = run(trainer, loader, accuracy != NULL);
    kn_module_train(module, training);
    kn_set_grad_enabled(recording);
    if (status == KN_OK)
        status = kn_metric_read(trainer->evaluation_loss, loss, fault);
    if (status == KN_OK && accuracy != NULL)
        status = kn_metric_read(trainer->evaluation_accuracy, accuracy, NULL);
    return status;
}

kn_status kn_trainer_evaluate(kn_trainer *trainer, kn_loader *data, double *loss, double *accuracy)
{
    if (trainer == NULL || data == NULL || loss == NULL)
        return kn_fail_argument_null("trainer_evaluate", trainer == NULL ? "trainer" : data == NULL ? "data" : "loss");
    /* Called from a callback it is no part of the epoch that the bar shows. */
    bool fitting = trainer->is_fitting;
    trainer->is_fitting = false;
    kn_status status = kn_trainer_run_evaluation(trainer, data, loss, accuracy, NULL);
    trainer->is_fitting = fitting;
    return status;
}
