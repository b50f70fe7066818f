/* train/trainer.c - creating trainers, and their accessors. */
#include "train/trainer.h"

#include <signal.h>
#include <string.h>

#include <koine/tensor.h>

#include "base/memory.h"
#include "base/text.h"
#include "train/interrupt.h"
#include "train/ranks.h"

/* --- creation ---------------------------------------------------------------------------------------------------- */

/* The monitor must be a possible figure. Whether there is validation data is known only at fit. */
static kn_status check_monitor(const kn_trainer *trainer, const char *monitor)
{
    kn_history columns = {0};
    kn_text there = {0};
    const char *names[KN_TRAINER_METRICS];
    for (int i = 0; i < trainer->num_metrics; i++)
        names[i] = trainer->metrics[i].name;
    kn_status status = kn_history_start(&columns, names, trainer->num_metrics, true, trainer->params.log_grad_norm);
    const int found = monitor == NULL ? 1 : status == KN_OK ? kn_history_find(&columns, monitor) : 0;
    const bool is_figure = found > 0 && found < columns.columns - 1; /* not the epoch and not the learning rate */
    for (int c = 1; c < columns.columns - 1; c++)
        kn_text_format(&there, "%s%s", c > 1 ? ", " : "", columns.names[c]);
    if (status == KN_OK && !is_figure)
        status = there.failed
                     ? KN_ERR_MEMORY
                     : kn_fail(KN_ERR_ARGUMENT, "trainer: there is no column \"%s\" to monitor; the columns are %s%s",
                               monitor, there.data,
                               trainer->params.accuracy ? "" : " (.accuracy = true adds train_acc and val_acc)");
    kn_text_free(&there);
    kn_history_clear(&columns);
    return status;
}

/* A loss module takes the target and some of the module's outputs. */
static kn_status check_loss(const kn_trainer_params *params)
{
    if (params->loss_module == NULL)
        return KN_OK;
    if (params->loss != NULL)
        return kn_fail(KN_ERR_ARGUMENT, "trainer: loss and loss_module are both given");
    const int inputs = kn_module_input_count(params->loss_module), outputs = kn_module_output_count(params->module);
    if (inputs < 2 || inputs > KN_LOSS_INPUTS || inputs > outputs + 1 ||
        kn_module_output_count(params->loss_module) != 1)
        return kn_fail(KN_ERR_ARGUMENT,
                       "trainer: the loss module %s needs an output of its own, and 2 to %d inputs for the module's "
                       "first outputs and the target, not %d; for other losses there is .loss, a function",
                       kn_module_type_name(params->loss_module), outputs + 1, inputs);
    return KN_OK;
}

static kn_status check_precision(const kn_trainer_params *params)
{
    if (params->precision == KN_F32 || params->precision == KN_F16 || params->precision == KN_BF16)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "trainer: precision (%s) must be KN_F32, KN_F16 or KN_BF16",
                   params->precision == KN_DTYPE_DEFAULT ? "KN_DTYPE_DEFAULT" : kn_dtype_name(params->precision));
}

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
    if (params->accumulate < 1 || !(params->clip_grad_norm >= 0))
        return kn_fail(KN_ERR_ARGUMENT, "trainer: accumulate (%d) must be 1 or more, clip_grad_norm (%g) 0 or more",
                       params->accumulate, params->clip_grad_norm);
    if (params->scheduler != NULL && params->scheduler_per_step && kn_lr_scheduler_takes_metric(params->scheduler))
        return kn_fail(KN_ERR_ARGUMENT,
                       "trainer: ReduceLROnPlateau needs a figure of the epoch: no scheduler_per_step");
    if (params->resume && params->output == NULL)
        return kn_fail(KN_ERR_ARGUMENT, "trainer: resume needs an output directory to resume from");
    KN_TRY(check_precision(params));
    return check_loss(params);
}

/* Copies the names of the input and target fields, and allocates scratch for inputs and outputs. */
static kn_status copy_fields(kn_trainer *trainer, const kn_trainer_params *params)
{
    static const char *const input[] = {"input", NULL};
    const char *const *given = params->inputs != NULL ? params->inputs : input;
    while (given[trainer->num_inputs] != NULL)
        trainer->num_inputs++;
    trainer->num_outputs = kn_module_output_count(params->module);
    const size_t inputs = (size_t)trainer->num_inputs;
    const char **names = kn_calloc(inputs + 1, sizeof *names);
    trainer->params.inputs = names;
    trainer->params.target = kn_strdup(params->target != NULL ? params->target : "target");
    trainer->tensors = kn_calloc(inputs + (size_t)trainer->num_outputs, sizeof *trainer->tensors);
    if (names == NULL || trainer->params.target == NULL || trainer->tensors == NULL)
        return KN_ERR_MEMORY;
    for (size_t i = 0; i < inputs; i++)
        if ((names[i] = kn_strdup(given[i])) == NULL)
            return KN_ERR_MEMORY;
    return KN_OK;
}

static kn_status set_up(kn_trainer *trainer, const kn_trainer_params *params)
{
    trainer->params = *params;
    trainer->lock = KN_NOT_LOCKED;
    trainer->params.metrics = NULL;
    trainer->scaler = params->grad_scaler;
    trainer->params.output = trainer->params.target = NULL;
    trainer->params.inputs = NULL;
    trainer->params.monitor = NULL;
    KN_TRY(kn_ranks_join(trainer));
    KN_TRY(kn_trainer_take_metrics(trainer, params));
    KN_TRY(check_monitor(trainer, params->monitor));
    KN_TRY(copy_fields(trainer, params));
    trainer->params.monitor = kn_strdup(params->monitor != NULL ? params->monitor : "val_loss");
    if (trainer->params.monitor == NULL)
        return KN_ERR_MEMORY;
    if (params->output != NULL && (trainer->params.output = kn_strdup(params->output)) == NULL)
        return KN_ERR_MEMORY;
    trainer->evaluation = kn_device_log_new();
    if (trainer->evaluation == NULL)
        return KN_ERR_MEMORY;
    trainer->evaluation_loss = kn_device_log_add_scalar(trainer->evaluation, "loss");
    return trainer->evaluation_loss >= 0 ? kn_trainer_add_metrics(trainer, true) : KN_ERR_MEMORY;
}

kn_trainer_params kn_trainer_params_init(void) { return (kn_trainer_params){KN_TRAINER_DEFAULTS}; }

kn_trainer *kn_trainer_new_with(const kn_trainer_params *params)
{
    params = params ? params : &(kn_trainer_params){KN_TRAINER_DEFAULTS};
    kn_trainer *trainer = check_params(params) == KN_OK ? kn_calloc(1, sizeof *trainer) : NULL;
    if (trainer != NULL && set_up(trainer, params) == KN_OK)
        return trainer;
    kn_trainer_free(trainer);
    return kn_error_make_sticky();
}

void kn_trainer_free(kn_trainer *trainer)
{
    if (trainer == NULL)
        return;
    kn_work_free(trainer->vote);
    kn_release(trainer->votes);
    kn_free(trainer->generators);
    kn_free(trainer->step_seconds);
    kn_device_log_free(trainer->log);
    kn_device_log_free(trainer->evaluation);
    kn_trainer_free_metrics(trainer);
    if (trainer->scaler != trainer->params.grad_scaler)
        kn_grad_scaler_free(trainer->scaler);
    kn_history_clear(&trainer->history);
    kn_history_clear(&trainer->steps);
    kn_history_clear(&trainer->histograms);
    kn_tensor_list_free(&trainer->best);
    kn_trainer_free_callbacks(trainer);
    for (int i = 0; i < trainer->num_inputs && trainer->params.inputs != NULL; i++)
        kn_free((char *)trainer->params.inputs[i]);
    kn_free((void *)trainer->params.inputs);
    kn_free((char *)trainer->params.target);
    kn_free(trainer->tensors);
    kn_free((char *)trainer->params.monitor);
    kn_free((char *)trainer->params.output);
    kn_free(trainer);
}

/* --- accessors ---------------------------------------------------------------------------------------------------- */

const kn_history *kn_trainer_steps(const kn_trainer *trainer) { return trainer == NULL ? NULL : &trainer->steps; }

const kn_history *kn_trainer_history(const kn_trainer *trainer) { return trainer == NULL ? NULL : &trainer->history; }

int kn_trainer_best_epoch(const kn_trainer *trainer) { return trainer == NULL ? 0 : trainer->best_epoch; }

void kn_trainer_stop(kn_trainer *trainer)
{
    if (trainer != NULL)
        trainer->stop = true;
}

int kn_trainer_epoch(const kn_trainer *trainer) { return trainer == NULL ? 0 : trainer->epoch; }

int64_t kn_trainer_global_step(const kn_trainer *trainer) { return trainer == NULL ? 0 : trainer->global_step; }

int kn_trainer_signal(const kn_trainer *trainer) { return trainer == NULL ? 0 : trainer->signal; }

bool kn_trainer_interrupted(kn_trainer *trainer)
{
    return trainer->group != NULL ? trainer->signal != 0 : kn_trainer_signal_came(trainer);
}

bool kn_trainer_signal_came(kn_trainer *trainer)
{
    if (!trainer->params.keep_interrupt && trainer->signal == 0)
        trainer->signal = kn_interrupt_signal();
    return trainer->signal != 0;
}

const char *kn_trainer_signal_name(const kn_trainer *trainer)
{
    return trainer->signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

kn_device *kn_trainer_device(kn_trainer *trainer)
{
    kn_parameter_list list = kn_module_parameters(trainer->params.module);
    return list.count > 0 ? kn_device_of(list.tensors[0]) : kn_device_current();
}
