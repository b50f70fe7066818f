/* train/epoch.c - one pass over the training data. */
#include <koine/autograd.h>

#include "train/trainer.h"

/* State of the pass. */
typedef struct training {
    kn_trainer *trainer;
    kn_loader *loader;
    int epoch; /* from 1 */
    int64_t step;
    kn_step_watch watch;
} training;

/* One step: gradients, update, figures. Does not wait for the device. */
static kn_status learn(training *pass, const kn_batch *batch)
{
    kn_trainer *trainer = pass->trainer;
    kn_applied_batch applied;
    kn_optim_zero_grad(trainer->params.optim);
    KN_TRY(kn_trainer_apply(trainer, batch, trainer->params.accuracy, &applied));
    KN_TRY(kn_backward(applied.loss));
    KN_TRY(kn_steps_note(&pass->watch, pass->step, &applied, batch->size));
    KN_TRY(kn_trainer_call(trainer, KN_BEFORE_OPTIMIZER_STEP, pass->epoch, pass->step, applied.loss));
    KN_TRY(kn_optim_step(trainer->params.optim));
    trainer->global_step++;
    return kn_trainer_call(trainer, KN_STEP_END, pass->epoch, pass->step, applied.loss);
}

static kn_status run(training *pass)
{
    kn_progress *progress = &pass->trainer->progress;
    KN_FOR_BATCHES (batch, pass->loader, pass->epoch) {
        pass->step++;
        KN_TRY(learn(pass, batch));
        KN_TRY(kn_steps_poll(&pass->watch, pass->step, kn_progress_step(progress, batch->size)));
        kn_progress_draw(progress);
        if (kn_trainer_interrupted(pass->trainer))
            return kn_fail(KN_ERR_INTERRUPTED, "training was interrupted by %s at epoch %d, step %lld of %lld",
                           kn_trainer_signal_name(pass->trainer), pass->epoch, (long long)pass->step,
                           (long long)kn_loader_batches(pass->loader));
    }
    return kn_loader_status(pass->loader);
}

kn_status kn_trainer_train_epoch(kn_trainer *trainer, kn_loader *loader, kn_pass_figures *figures)
{
    training pass = {.trainer = trainer, .loader = loader, .epoch = trainer->epoch + 1};
    kn_module_train(trainer->params.module, true);
    KN_TRY(kn_steps_begin_epoch(&pass.watch, trainer, loader));
    kn_progress_phase(&trainer->progress, "", kn_loader_batches(loader));
    bool recording = kn_set_grad_enabled(true);
    kn_status status = run(&pass);
    kn_set_grad_enabled(recording);
    kn_optim_zero_grad(trainer->params.optim); /* frees memory for validation */
    if (status == KN_OK)
        status = kn_steps_end_epoch(&pass.watch, figures);
    else if (status == KN_ERR_INTERRUPTED)
        kn_steps_drain(&pass.watch); /* completes the rows of finished steps; the earlier status is reported */
    kn_steps_free(&pass.watch);
    return status;
}
