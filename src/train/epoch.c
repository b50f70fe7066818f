/* train/epoch.c - one pass over the training data. */
#include <koine/autograd.h>

#include "train/trainer.h"

/* Where the pass is. */
typedef struct training {
    kn_trainer *trainer;
    kn_loader *loader;
    int epoch; /* from 1 */
    int64_t step;
    kn_step_watch watch;
} training;

/* Gradients, update, figures. Nothing here waits for the device. */
static kn_status learn(training *pass, kn_tensor *input, kn_tensor *target, int64_t samples)
{
    kn_trainer *trainer = pass->trainer;
    KN_TRY(kn_trainer_check_target(trainer, kn_dtype_of(target)));
    kn_optim_zero_grad(trainer->params.optim);
    kn_tensor *output = kn_forward(trainer->params.module, input);
    kn_tensor *loss = kn_trainer_loss(trainer, output, target);
    if (loss == NULL)
        return kn_error_status();
    KN_TRY(kn_backward(loss));
    KN_TRY(kn_steps_note(&pass->watch, pass->step, output, target, loss, samples));
    KN_TRY(kn_trainer_call(trainer, KN_BEFORE_OPTIMIZER_STEP, pass->epoch, pass->step, loss));
    KN_TRY(kn_optim_step(trainer->params.optim));
    trainer->global_step++;
    return kn_trainer_call(trainer, KN_STEP_END, pass->epoch, pass->step, loss);
}

/* One batch in a scope of its own: every temporary of the step ends with it. `more` is false at the end of the epoch.
 */
static kn_status step_in_scope(training *pass, int64_t *samples, bool *more)
{
    kn_tensor *input, *target;
    KN_TRY(kn_loader_next(pass->loader, &input, &target));
    *more = input != NULL;
    if (input == NULL)
        return KN_OK;
    pass->step++;
    *samples = kn_ndim(input) > 0 ? kn_size(input, 0) : 1;
    return learn(pass, input, target, *samples);
}

static kn_status step(training *pass, bool *more)
{
    int64_t samples = 0;
    int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    kn_status status = step_in_scope(pass, &samples, more);
    kn_scope_end(depth);
    if (status != KN_OK || !*more)
        return status;
    kn_progress *progress = &pass->trainer->progress;
    KN_TRY(kn_steps_look(&pass->watch, pass->step, kn_progress_step(progress, samples)));
    kn_progress_draw(progress);
    return KN_OK;
}

static kn_status run(training *pass)
{
    bool more = true;
    while (more) {
        KN_TRY(step(pass, &more));
        if (more && kn_trainer_interrupted(pass->trainer))
            return kn_fail(KN_ERR_INTERRUPTED, "training was interrupted by %s at epoch %d, step %lld of %lld",
                           kn_trainer_signal_name(pass->trainer), pass->epoch, (long long)pass->step,
                           (long long)kn_loader_batches(pass->loader));
    }
    return KN_OK;
}

kn_status kn_trainer_train_epoch(kn_trainer *trainer, kn_loader *loader, kn_pass_figures *figures)
{
    training pass = {.trainer = trainer, .loader = loader, .epoch = trainer->epoch + 1};
    kn_module_train(trainer->params.module, true);
    KN_TRY(kn_steps_begin_epoch(&pass.watch, trainer, loader));
    kn_status status = kn_loader_start(loader, pass.epoch);
    kn_progress_phase(&trainer->progress, "", kn_loader_batches(loader));
    bool recording = kn_set_grad_enabled(true);
    if (status == KN_OK)
        status = run(&pass);
    kn_set_grad_enabled(recording);
    kn_optim_zero_grad(trainer->params.optim); /* the memory is validation's */
    if (status == KN_OK)
        status = kn_steps_end_epoch(&pass.watch, figures);
    else if (status == KN_ERR_INTERRUPTED)
        kn_steps_drain(&pass.watch); /* the steps done have their rows; this status is the one to report */
    kn_steps_free(&pass.watch);
    return status;
}
