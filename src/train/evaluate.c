/* train/evaluate.c - one pass over data without gradients, in evaluation mode. */
#include <math.h>

#include <koine/autograd.h>

#include "base/memory.h"
#include "train/device_log.h"
#include "train/ranks.h"

/* What a pass computes beside the loss: the metrics of the history, or others. */
typedef struct wanted {
    bool history;
    kn_metric *const *metrics;
    int num_metrics;
} wanted;

static kn_status evaluate_batch(kn_trainer *trainer, const kn_batch *batch, const wanted *wants)
{
    kn_applied_batch applied;
    const bool measure = wants->num_metrics > 0 || (wants->history && trainer->num_metrics > 0);
    KN_TRY(kn_trainer_apply(trainer, batch, measure, &applied));
    KN_TRY(kn_device_log_scalar(trainer->evaluation, trainer->evaluation_loss, applied.loss, batch->size));
    for (int i = 0; i < wants->num_metrics; i++)
        KN_TRY(kn_metric_update(wants->metrics[i], applied.output, applied.target, batch->size));
    return wants->history ? kn_trainer_note_metrics(trainer, true, &applied) : KN_OK;
}

static kn_status run(kn_trainer *trainer, kn_loader *loader, const wanted *wants)
{
    KN_FOR_BATCHES (batch, loader, trainer->epoch + 1) {
        KN_TRY(evaluate_batch(trainer, batch, wants));
        if (!trainer->is_fitting)
            continue;
        kn_progress_step(&trainer->progress, batch->size);
        kn_progress_draw(&trainer->progress);
        if (kn_trainer_signal_came(trainer))
            return kn_fail(KN_ERR_INTERRUPTED, "training was interrupted by %s during the validation of epoch %d",
                           kn_trainer_signal_name(trainer), trainer->epoch + 1);
    }
    return kn_loader_status(loader);
}

/* Reads the figures of the whole pass in one transfer. */
static kn_status read_figures(kn_trainer *trainer, kn_pass_figures *figures)
{
    const kn_device_log *log = trainer->evaluation;
    KN_TRY(kn_log_read_all(trainer->evaluation, trainer->group, kn_trainer_device(trainer)));
    *figures = (kn_pass_figures){.loss = kn_device_log_value(log, trainer->evaluation_loss, KN_FIGURE_MEAN),
                                 .grad_norm = (double)NAN};
    kn_trainer_read_metrics(trainer, true, figures->metrics);
    figures->bad_rank = log->entries[trainer->evaluation_loss].bad_rank;
    figures->bad_step = kn_device_log_first_bad(log, trainer->evaluation_loss, &figures->is_nan);
    return KN_OK;
}

static kn_status evaluate(kn_trainer *trainer, kn_loader *loader, const wanted *wants, kn_pass_figures *figures)
{
    kn_module *module = trainer->params.module;
    KN_TRY(kn_device_log_reset(trainer->evaluation));
    bool training = kn_module_is_training(module);
    bool recording = kn_set_grad_enabled(false);
    kn_module_train(module, false);
    kn_status status = kn_ranks_agree(trainer, run(trainer, loader, wants));
    kn_module_train(module, training);
    kn_set_grad_enabled(recording);
    return status == KN_OK ? read_figures(trainer, figures) : status;
}

kn_status kn_trainer_run_evaluation(kn_trainer *trainer, kn_loader *loader, kn_pass_figures *figures)
{
    return evaluate(trainer, loader, &(wanted){.history = true}, figures);
}

/* The batches of this rank, with the buffers of rank 0. */
static kn_status measure_part(kn_trainer *trainer, kn_loader *data, kn_metric *const *metrics, int num_metrics,
                              kn_pass_figures *figures)
{
    const kn_loader_part whole = kn_ranks_divide(trainer, data, false);
    kn_status status = kn_ranks_share_buffers(trainer);
    if (status == KN_OK)
        status = evaluate(trainer, data, &(wanted){.metrics = metrics, .num_metrics = num_metrics}, figures);
    kn_loader_divide(data, whole);
    return status;
}

/* Into metrics of their own, which are added up and then merged into the caller's. */
static kn_status measure_all(kn_trainer *trainer, kn_loader *data, kn_metric *const *metrics, int num_metrics,
                             kn_pass_figures *figures)
{
    if (trainer->group == NULL)
        return measure_part(trainer, data, metrics, num_metrics, figures);
    kn_metric **own = kn_calloc((size_t)num_metrics + 1, sizeof *own);
    kn_status status = own != NULL ? KN_OK : KN_ERR_MEMORY;
    for (int i = 0; i < num_metrics && status == KN_OK; i++)
        status = kn_status_of(own[i] = kn_metric_new(kn_metric_spec_of(metrics[i])));
    if (status == KN_OK)
        status = measure_part(trainer, data, own, num_metrics, figures);
    for (int i = 0; i < num_metrics && status == KN_OK; i++) {
        status = kn_metric_all_reduce(own[i], trainer->group);
        if (status == KN_OK)
            status = kn_metric_merge(metrics[i], own[i]);
    }
    for (int i = 0; own != NULL && i < num_metrics; i++)
        kn_metric_free(own[i]);
    kn_free(own);
    return kn_ranks_agree(trainer, status);
}

/* A pass for the program. Called from a callback, it is not part of the epoch that the bar shows. */
static kn_status measure(kn_trainer *trainer, kn_loader *data, kn_metric *const *metrics, int num_metrics, double *loss)
{
    KN_TRY(kn_trainer_check_fields(trainer, data, num_metrics > 0, "data"));
    const bool fitting = trainer->is_fitting;
    kn_pass_figures figures;
    trainer->is_fitting = false;
    if (!fitting)
        kn_ranks_reunite(trainer);
    kn_status status = measure_all(trainer, data, metrics, num_metrics, &figures);
    trainer->is_fitting = fitting;
    if (status == KN_OK)
        *loss = figures.loss;
    return status;
}

kn_status kn_trainer_evaluate(kn_trainer *trainer, kn_loader *data, double *loss, double *accuracy)
{
    if (trainer == NULL || data == NULL || loss == NULL)
        return kn_fail_argument_null("trainer_evaluate", trainer == NULL ? "trainer" : data == NULL ? "data" : "loss");
    if (accuracy == NULL)
        return measure(trainer, data, NULL, 0, loss);
    kn_metric *metric = kn_metric_accuracy();
    kn_status status = metric != NULL ? measure(trainer, data, &metric, 1, loss) : kn_error_status();
    if (status == KN_OK)
        status = kn_metric_compute(metric, accuracy);
    kn_metric_free(metric);
    return status;
}

kn_status kn_trainer_measure(kn_trainer *trainer, kn_loader *data, kn_metric *const *metrics, int num_metrics)
{
    double loss;
    if (trainer == NULL || data == NULL || metrics == NULL)
        return kn_fail_argument_null("trainer_measure", trainer == NULL ? "trainer"
                                                        : data == NULL  ? "data"
                                                                        : "metrics");
    for (int i = 0; i < num_metrics; i++)
        if (metrics[i] == NULL)
            return kn_fail_argument_null("trainer_measure", "metrics[i]");
    return measure(trainer, data, metrics, num_metrics, &loss);
}
