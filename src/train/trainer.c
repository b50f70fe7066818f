/* train/trainer.c - making trainers, their callbacks, and what is asked of them. */
#include "train/trainer.h"

#include <math.h>
#include <string.h>

#include <koine/functional.h>

#include "base/memory.h"
#include "train/interrupt.h"

/* --- making ---------------------------------------------------------------------------------------------------- */

static kn_status check_params(const kn_trainer_params *params)
{
    if (params->module == NULL || params->optim == NULL)
        return kn_fail_argument_null("trainer_new", params->module == NULL ? "module" : "optim");
    if (params->epochs < 0 || params->patience < 0)
        return kn_fail(KN_ERR_ARGUMENT, "trainer: epochs (%d) and patience (%d) must be 0 or more", params->epochs,
                       params->patience);
    if (!(params->min_delta >= 0))
        return kn_fail(KN_ERR_ARGUMENT, "trainer: min_delta (%g) must be 0 or more", params->min_delta);
    if (params->mode != KN_MONITOR_MIN && params->mode != KN_MONITOR_MAX)
        return kn_fail(KN_ERR_ARGUMENT, "trainer: mode (%d) is neither KN_MONITOR_MIN nor KN_MONITOR_MAX",
                       (int)params->mode);
    if (params->log_every < 0 || params->log_histograms < 0 || params->log_histograms > KN_MAX_BINS)
        return kn_fail(KN_ERR_ARGUMENT,
                       "trainer: log_every (%d) must be 0 or more, log_histograms (%d) from 0 to %d bins",
                       params->log_every, params->log_histograms, KN_MAX_BINS);
    if (params->log_histograms > 0 && (params->log_every == 0 || !(params->log_range > 0)))
        return kn_fail(KN_ERR_ARGUMENT,
                       "trainer: log_histograms needs log_every and a log_range above 0, not %d and %g",
                       params->log_every, params->log_range);
    if (params->resume && params->output == NULL)
        return kn_fail(KN_ERR_ARGUMENT, "trainer: resume needs an output directory to resume from");
    return KN_OK;
}

static kn_status set_up(kn_trainer *trainer, const kn_trainer_params *params)
{
    trainer->params = *params;
    trainer->params.output = NULL;
    trainer->params.monitor = kn_strdup(params->monitor != NULL ? params->monitor : "val_loss");
    if (trainer->params.monitor == NULL)
        return KN_ERR_MEMORY;
    if (params->output != NULL && (trainer->params.output = kn_strdup(params->output)) == NULL)
        return KN_ERR_MEMORY;
    trainer->evaluation = kn_device_log_new();
    if (trainer->evaluation == NULL)
        return KN_ERR_MEMORY;
    trainer->evaluation_loss = kn_device_log_add_scalar(trainer->evaluation, "loss");
    trainer->evaluation_accuracy = kn_device_log_add_accuracy(trainer->evaluation, "accuracy");
    return trainer->evaluation_loss >= 0 && trainer->evaluation_accuracy >= 0 ? KN_OK : KN_ERR_MEMORY;
}

kn_trainer_params kn_trainer_params_init(void) { return (kn_trainer_params){KN_TRAINER_DEFAULTS}; }

kn_status kn_trainer_new_with(kn_trainer **trainer, const kn_trainer_params *params)
{
    params = params ? params : &(kn_trainer_params){KN_TRAINER_DEFAULTS};
    if (trainer == NULL)
        return kn_fail_argument_null("trainer_new", "trainer");
    KN_TRY(check_params(params));
    kn_trainer *made = kn_calloc(1, sizeof *made);
    if (made == NULL)
        return KN_ERR_MEMORY;
    kn_status status = set_up(made, params);
    if (status != KN_OK) {
        kn_trainer_free(made);
        return status;
    }
    *trainer = made;
    return KN_OK;
}

void kn_trainer_free(kn_trainer *trainer)
{
    if (trainer == NULL)
        return;
    kn_device_log_free(trainer->log);
    kn_device_log_free(trainer->evaluation);
    kn_history_clear(&trainer->history);
    kn_history_clear(&trainer->steps);
    kn_history_clear(&trainer->histograms);
    kn_tensor_list_free(&trainer->best);
    kn_free(trainer->callbacks);
    kn_free((char *)trainer->params.monitor);
    kn_free((char *)trainer->params.output);
    kn_free(trainer);
}

/* --- asking ---------------------------------------------------------------------------------------------------- */

const kn_history *kn_trainer_steps(const kn_trainer *trainer) { return trainer == NULL ? NULL : &trainer->steps; }

const kn_history *kn_trainer_history(const kn_trainer *trainer) { return trainer == NULL ? NULL : &trainer->history; }

int kn_trainer_best_epoch(const kn_trainer *trainer) { return trainer == NULL ? 0 : trainer->best_epoch; }

void kn_trainer_stop(kn_trainer *trainer)
{
    if (trainer != NULL)
        trainer->stop = true;
}

bool kn_trainer_interrupted(const kn_trainer *trainer) { return !trainer->params.keep_interrupt && kn_interrupted(); }

kn_device *kn_trainer_device(kn_trainer *trainer)
{
    kn_parameter_list list = kn_module_parameters(trainer->params.module);
    return list.count > 0 ? kn_device_of(list.tensors[0]) : kn_device_current();
}

kn_tensor *kn_trainer_loss(kn_trainer *trainer, kn_tensor *output, kn_tensor *target)
{
    if (output == NULL)
        return NULL;
    if (trainer->params.loss == NULL)
        return kn_cross_entropy(output, target);
    kn_tensor *loss = trainer->params.loss(output, target, trainer->params.loss_user);
    if (loss == NULL && kn_error_status() == KN_OK)
        return kn_fail_null(KN_ERR_STATE, "trainer: the loss function returned NULL without an error");
    return loss;
}

/* --- callbacks ------------------------------------------------------------------------------------------------- */

kn_status kn_trainer_add_callback(kn_trainer *trainer, const kn_callback *callback)
{
    if (trainer == NULL || callback == NULL)
        return kn_fail_argument_null("trainer_add_callback", trainer == NULL ? "trainer" : "callback");
    if (trainer->num_callbacks == trainer->callback_capacity) {
        int capacity = trainer->callback_capacity > 0 ? 2 * trainer->callback_capacity : 4;
        kn_callback *callbacks = kn_realloc(trainer->callbacks, (size_t)capacity * sizeof *callbacks);
        if (callbacks == NULL)
            return KN_ERR_MEMORY;
        trainer->callbacks = callbacks;
        trainer->callback_capacity = capacity;
    }
    trainer->callbacks[trainer->num_callbacks++] = *callback;
    return KN_OK;
}

static kn_status call_one(kn_trainer *trainer, const kn_callback *c, kn_moment moment, int epoch, int64_t step,
                          kn_tensor *loss)
{
    switch (moment) {
    case KN_FIT_START:
        return c->on_fit_start != NULL ? c->on_fit_start(trainer, c->user) : KN_OK;
    case KN_EPOCH_START:
        return c->on_epoch_start != NULL ? c->on_epoch_start(trainer, epoch, c->user) : KN_OK;
    case KN_STEP_END:
        return c->on_step_end != NULL ? c->on_step_end(trainer, epoch, step, loss, c->user) : KN_OK;
    case KN_EPOCH_END:
        return c->on_epoch_end != NULL ? c->on_epoch_end(trainer, epoch, &trainer->history, c->user) : KN_OK;
    case KN_FIT_END:
        return c->on_fit_end != NULL ? c->on_fit_end(trainer, c->user) : KN_OK;
    }
    return KN_OK;
}

kn_status kn_trainer_call(kn_trainer *trainer, kn_moment moment, int epoch, int64_t step, kn_tensor *loss)
{
    static const char *const names[] = {"on_fit_start", "on_epoch_start", "on_step_end", "on_epoch_end", "on_fit_end"};
    for (int i = 0; i < trainer->num_callbacks; i++) {
        kn_callback callback = trainer->callbacks[i]; /* a copy: it may add callbacks itself */
        kn_status status = call_one(trainer, &callback, moment, epoch, step, loss);
        if (status == KN_OK)
            continue;
        if (kn_error_status() != status)
            kn_fail(status, "trainer: callback %d ended the training in %s with %s", i, names[moment],
                    kn_status_name(status));
        return status;
    }
    return KN_OK;
}
