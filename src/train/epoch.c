/* train/epoch.c - one pass over the training data. */
#include <koine/autograd.h>
#include <koine/clip_grad.h>
#include <koine/grad_scaler.h>
#include <koine/pointwise.h>

#include "train/ranks.h"

/* State of the pass. */
typedef struct training {
    kn_trainer *trainer;
    kn_loader *loader;
    int epoch; /* from 1 */
    int64_t step;
    kn_step_watch watch;
} training;

/* The gradients of one batch, or its part of those of several; scaled, if there is a scaler. Ranks average them once
 * per step. */
static kn_status add_gradients(const kn_trainer *trainer, kn_tensor *loss, bool is_last)
{
    const int batches = trainer->params.accumulate;
    loss = batches > 1 && !trainer->has_parts ? kn_mul_scalar(loss, 1.0 / batches) : loss;
    loss = trainer->scaler != NULL ? kn_grad_scaler_scale(trainer->scaler, loss) : loss;
    if (is_last)
        return kn_backward(loss);
    KN_NO_SYNC(trainer->params.module);
    return kn_backward(loss);
}

static kn_status step_optimizer(const kn_trainer *trainer)
{
    if (trainer->scaler == NULL)
        return kn_optim_step(trainer->params.optim);
    KN_TRY(kn_grad_scaler_step(trainer->scaler, trainer->params.optim));
    return kn_grad_scaler_update(trainer->scaler);
}

/* A step with the gradients that have been added up. */
static kn_status update(training *pass, kn_tensor *loss)
{
    kn_trainer *trainer = pass->trainer;
    const double max_norm = trainer->params.clip_grad_norm;
    if (trainer->scaler != NULL)
        KN_TRY(kn_grad_scaler_unscale_(trainer->scaler, trainer->params.optim));
    KN_TRY(kn_steps_note_gradients(&pass->watch, pass->step));
    if (max_norm > 0 && kn_clip_grad_norm_(kn_module_parameters(trainer->params.module), max_norm) == NULL)
        return kn_error_status();
    KN_TRY(kn_trainer_call(trainer, KN_BEFORE_OPTIMIZER_STEP, pass->epoch, pass->step, loss));
    KN_TRY(step_optimizer(trainer));
    trainer->global_step++;
    if (trainer->params.scheduler != NULL && trainer->params.scheduler_per_step)
        KN_TRY(kn_lr_scheduler_step(trainer->params.scheduler));
    return kn_trainer_call(trainer, KN_STEP_END, pass->epoch, pass->step, loss);
}

/* One batch: gradients, figures, and a step, if it is time. Does not wait for the device. */
static kn_status learn(training *pass, const kn_batch *batch)
{
    kn_trainer *trainer = pass->trainer;
    kn_applied_batch applied;
    const int64_t batches = trainer->params.accumulate;
    if ((pass->step - 1) % batches == 0)
        kn_optim_zero_grad(trainer->params.optim);
    const bool is_time = pass->step % batches == 0 || pass->step == kn_loader_batches(pass->loader);
    KN_TRY(kn_trainer_apply(trainer, batch, trainer->num_metrics > 0, &applied));
    KN_TRY(add_gradients(trainer, applied.loss, is_time));
    KN_TRY(kn_steps_note(&pass->watch, &applied, batch->size));
    return is_time ? update(pass, applied.loss) : KN_OK;
}

static kn_status check_interrupt(const training *pass)
{
    if (!kn_trainer_interrupted(pass->trainer))
        return KN_OK;
    return kn_fail(KN_ERR_INTERRUPTED, "training was interrupted by %s at epoch %d, step %lld of %lld",
                   kn_trainer_signal_name(pass->trainer), pass->epoch, (long long)pass->step,
                   (long long)kn_loader_batches(pass->loader));
}

static kn_status run_batches(training *pass)
{
    kn_progress *progress = &pass->trainer->progress;
    KN_FOR_BATCHES (batch, pass->loader, pass->epoch) {
        pass->step++;
        KN_TRY(learn(pass, batch));
        kn_status status = kn_steps_poll(&pass->watch, pass->step, kn_progress_step(progress, batch->size));
        kn_progress_draw(progress);
        KN_TRY(kn_ranks_vote(pass->trainer, status));
        KN_TRY(check_interrupt(pass));
    }
    return kn_loader_status(pass->loader);
}

/* A signal that the last step's vote told of is found after the epoch. */
static kn_status run(training *pass) { return kn_ranks_end_votes(pass->trainer, run_batches(pass)); }

kn_status kn_trainer_train_epoch(kn_trainer *trainer, kn_loader *loader, kn_pass_figures *figures)
{
    training pass = {.trainer = trainer, .loader = loader, .epoch = trainer->epoch + 1};
    kn_module_train(trainer->params.module, true);
    KN_TRY(kn_steps_begin_epoch(&pass.watch, trainer, loader));
    kn_progress_phase(&trainer->progress, "", kn_loader_batches(loader));
    bool recording = kn_set_grad_enabled(true);
    kn_ranks_start_clock(trainer);
    kn_status status = run(&pass);
    kn_set_grad_enabled(recording);
    kn_optim_zero_grad(trainer->params.optim); /* frees memory for validation */
    if (status == KN_OK)
        status = kn_steps_drain(&pass.watch);
    else if (status == KN_ERR_INTERRUPTED)
        kn_steps_drain(&pass.watch); /* completes the rows of finished steps; the earlier status is reported */
    status = kn_steps_find_bad(&pass.watch, kn_ranks_agree(trainer, status));
    if (status == KN_OK)
        status = kn_ranks_stop_clock(trainer, pass.step);
    if (status == KN_OK)
        status = kn_ranks_share_buffers(trainer);
    if (status == KN_OK)
        status = kn_steps_end_epoch(&pass.watch, figures);
    kn_steps_free(&pass.watch);
    return status;
}
