/* train/steps.c - per-step figures: recorded on the device at each step, transferred asynchronously from time to time,
 * added to the table of steps, shown in the progress bar, and checked for a loss that is not finite. */
#include <math.h>
#include <stdio.h>

#include <koine/autograd.h>
#include <koine/tensor.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "base/text.h"
#include "train/device_log.h"
#include "train/ranks.h"

#define OUTSIDE 3 /* counts of a histogram outside its bins */

static int parameters_of(const kn_trainer *trainer) { return kn_module_parameters(trainer->params.module).count; }

/* --- the log and its tables ------------------------------------------------------------------------------------ */

static kn_status add_histograms(kn_trainer *trainer)
{
    const double range = trainer->params.log_range;
    kn_parameter_list list = kn_module_parameters(trainer->params.module);
    for (int i = 0; i < list.count; i++) {
        kn_text name = {0};
        kn_text_format(&name, "histogram.%d", i);
        char *text = kn_text_finish(&name);
        int entry =
            text ? kn_device_log_add_histogram(trainer->log, text, trainer->params.log_histograms, -range, range) : -1;
        kn_free(text);
        if (entry < 0)
            return kn_error_status();
        if (i == 0)
            trainer->log_histograms = entry;
    }
    return KN_OK;
}

static kn_status make_log(kn_trainer *trainer)
{
    kn_device_log_free(trainer->log);
    trainer->log_norm = trainer->log_histograms = -1;
    trainer->log = kn_device_log_new();
    if (trainer->log == NULL)
        return KN_ERR_MEMORY;
    trainer->log_loss = kn_device_log_add_scalar(trainer->log, "loss");
    KN_TRY(kn_trainer_add_metrics(trainer, false));
    if (trainer->params.log_grad_norm)
        trainer->log_norm =
            kn_device_log_add_grad_norm(trainer->log, "grad_norm", kn_module_parameters(trainer->params.module));
    if (trainer->log_loss < 0 || (trainer->params.log_grad_norm && trainer->log_norm < 0))
        return kn_error_status();
    if (trainer->log_norm >= 0)
        trainer->log->entries[trainer->log_norm].skips_infinite = trainer->scaler != NULL;
    return trainer->params.log_histograms > 0 ? add_histograms(trainer) : KN_OK;
}

static kn_status start_steps(kn_trainer *trainer)
{
    kn_parameter_list list = kn_module_parameters(trainer->params.module);
    kn_history *steps = &trainer->steps;
    KN_TRY(kn_history_add_column(steps, "step"));
    KN_TRY(kn_history_add_column(steps, "epoch"));
    KN_TRY(kn_history_add_column(steps, "loss"));
    for (int i = 0; i < trainer->num_metrics; i++)
        KN_TRY(kn_history_add_column(steps, trainer->metrics[i].name));
    KN_TRY(kn_history_add_column(steps, "lr"));
    if (!trainer->params.log_grad_norm)
        return KN_OK;
    KN_TRY(kn_history_add_column(steps, "grad_norm"));
    for (int i = 0; i < list.count; i++) {
        kn_text name = {0};
        kn_text_format(&name, "grad_norm.%s", list.names[i]);
        char *text = kn_text_finish(&name);
        kn_status status = text ? kn_history_add_column(steps, text) : KN_ERR_MEMORY;
        kn_free(text);
        KN_TRY(status);
    }
    return KN_OK;
}

static kn_status start_histograms(kn_trainer *trainer)
{
    static const char *const names[] = {"step", "epoch", "parameter", "low", "high", "below", "above", "nan"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        KN_TRY(kn_history_add_column(&trainer->histograms, names[i]));
    for (int b = 0; b < trainer->params.log_histograms; b++) {
        char name[32];
        snprintf(name, sizeof name, "bin%d", b);
        KN_TRY(kn_history_add_column(&trainer->histograms, name));
    }
    return KN_OK;
}

kn_status kn_steps_start(kn_trainer *trainer)
{
    kn_history_clear(&trainer->steps);
    kn_history_clear(&trainer->histograms);
    KN_TRY(make_log(trainer));
    if (trainer->params.log_every > 0)
        KN_TRY(start_steps(trainer));
    return trainer->params.log_histograms > 0 ? start_histograms(trainer) : KN_OK;
}

/* --- a step ---------------------------------------------------------------------------------------------------- */

/* Each epoch ends with a row, so that every step is covered. */
static bool is_row(const kn_step_watch *watch, int64_t step)
{
    const int every = watch->trainer->params.log_every;
    return every > 0 && (step % every == 0 || step == watch->steps);
}

static kn_status note_histograms(kn_trainer *trainer)
{
    kn_parameter_list list = kn_module_parameters(trainer->params.module);
    for (int i = 0; i < list.count; i++) {
        kn_tensor *gradient = kn_grad(list.tensors[i]);
        if (gradient != NULL && kn_dtype_is_reduced(kn_dtype_of(gradient)))
            gradient = kn_to_dtype(gradient, KN_F32);
        if (gradient != NULL)
            KN_TRY(kn_device_log_histogram(trainer->log, trainer->log_histograms + i, gradient));
    }
    return KN_OK;
}

kn_status kn_steps_note(kn_step_watch *watch, const kn_applied_batch *applied, int64_t samples)
{
    kn_trainer *trainer = watch->trainer;
    KN_TRY(kn_device_log_scalar(trainer->log, trainer->log_loss, applied->loss, samples));
    return kn_trainer_note_metrics(trainer, false, applied);
}

kn_status kn_steps_note_gradients(kn_step_watch *watch, int64_t step)
{
    kn_trainer *trainer = watch->trainer;
    if (trainer->log_norm >= 0)
        KN_TRY(kn_device_log_grad_norm(trainer->log, trainer->log_norm));
    return trainer->log_histograms >= 0 && is_row(watch, step) ? note_histograms(trainer) : KN_OK;
}

/* --- arrived figures -------------------------------------------------------------------------------------------- */

/* now - *before; sets *before = now. */
static double since(double *before, double now)
{
    double difference = now - *before;
    *before = now;
    return difference;
}

static double ratio(double a, double b) { return b > 0 ? a / b : (double)NAN; }

static int64_t count_sums(const kn_trainer *trainer)
{
    int64_t sums = 0;
    for (int i = 0; i < trainer->num_metrics; i++)
        sums += kn_metric_sum_count(&trainer->metrics[i].spec);
    return sums;
}

/* Of what was added to the metrics' sums since the last row. */
static void append_metrics(kn_step_watch *watch, double *row)
{
    const kn_trainer *trainer = watch->trainer;
    double *before = watch->sums;
    for (int i = 0; i < trainer->num_metrics; i++) {
        const kn_metric_spec *spec = &trainer->metrics[i].spec;
        const int64_t count = kn_metric_sum_count(spec);
        double *sums = trainer->log->entries[trainer->metrics[i].logged].sums;
        row[i] = (double)NAN;
        kn_log_metric_sums(trainer->log, trainer->metrics[i].logged, sums);
        for (int64_t s = 0; s < count; s++, before++)
            sums[s] = since(before, sums[s]);
        if (spec->kind->compute != NULL)
            spec->kind->compute(spec, sums, &row[i]);
    }
}

static kn_status append_step(kn_step_watch *watch, const kn_step_look *look)
{
    kn_trainer *trainer = watch->trainer;
    const kn_device_log *log = trainer->log;
    double *row = kn_calloc((size_t)trainer->steps.columns, sizeof *row);
    if (row == NULL)
        return KN_ERR_MEMORY;
    double loss = since(&watch->loss_sum, kn_device_log_value(log, trainer->log_loss, KN_FIGURE_SUM));
    double weight = since(&watch->loss_weight, kn_device_log_value(log, trainer->log_loss, KN_FIGURE_WEIGHT));
    int n = 0;
    row[n++] = (double)(watch->steps_before + look->step);
    row[n++] = watch->epoch;
    row[n++] = ratio(loss, weight);
    append_metrics(watch, row + n);
    n += trainer->num_metrics;
    row[n++] = look->lr;
    if (trainer->log_norm >= 0)
        row[n++] = kn_device_log_value(log, trainer->log_norm, KN_FIGURE_LAST);
    for (int i = 0; n < trainer->steps.columns; i++)
        row[n++] = kn_device_log_parameter_norm(log, trainer->log_norm, i);
    kn_status status = kn_history_append(&trainer->steps, row);
    kn_free(row);
    return status;
}

/* Histograms accumulate through the epoch: a row holds the counts since the previous row. */
static kn_status append_histogram(kn_step_watch *watch, const double *step_and_epoch, int parameter, double *row)
{
    kn_trainer *trainer = watch->trainer;
    const int bins = trainer->params.log_histograms;
    int64_t *before = watch->bins + (size_t)parameter * (size_t)(OUTSIDE + bins), outside[OUTSIDE];
    const int64_t *counts = kn_device_log_bins(trainer->log, trainer->log_histograms + parameter, outside);
    if (counts == NULL)
        return KN_OK;
    int n = 0;
    row[n++] = step_and_epoch[0];
    row[n++] = step_and_epoch[1];
    row[n++] = parameter;
    row[n++] = -trainer->params.log_range;
    row[n++] = trainer->params.log_range;
    for (int i = 0; i < OUTSIDE + bins; i++) {
        int64_t now = i < OUTSIDE ? outside[i] : counts[i - OUTSIDE];
        row[n++] = (double)(now - before[i]);
        before[i] = now;
    }
    return kn_history_append(&trainer->histograms, row);
}

static kn_status append_histograms(kn_step_watch *watch, const kn_step_look *look)
{
    kn_trainer *trainer = watch->trainer;
    const double step_and_epoch[] = {(double)(watch->steps_before + look->step), watch->epoch};
    double *row = kn_calloc((size_t)trainer->histograms.columns, sizeof *row);
    kn_status status = row == NULL ? KN_ERR_MEMORY : KN_OK;
    for (int i = 0; i < parameters_of(trainer) && status == KN_OK; i++)
        status = append_histogram(watch, step_and_epoch, i, row);
    kn_free(row);
    return status;
}

/* Fails if the loss is not finite. An error of the device may be the reason, as a class that is out of range is: then
 * that one is reported. `is_joint`: the figures are those of all ranks. */
static kn_status check_loss(const kn_step_watch *watch, bool is_joint)
{
    kn_trainer *trainer = watch->trainer;
    bool is_nan;
    int64_t step = kn_device_log_first_bad(trainer->log, trainer->log_loss, &is_nan);
    if (step == 0)
        return KN_OK;
    KN_TRY(kn_synchronize(kn_trainer_device(trainer)));
    return kn_fail(KN_ERR_NUMERIC,
                   "%sthe training loss became %s at epoch %d, step %lld of %lld; a lower learning rate (now %g) "
                   "or data without such values may help",
                   is_joint ? kn_ranks_name(trainer, trainer->log->entries[trainer->log_loss].bad_rank) : "",
                   is_nan ? "NaN" : "infinite", watch->epoch, (long long)step, (long long)watch->steps,
                   kn_optim_lr(trainer->params.optim));
}

/* Processes the figures of the oldest look, which have arrived. */
static kn_status take(kn_step_watch *watch)
{
    kn_trainer *trainer = watch->trainer;
    kn_step_look look = watch->looks[watch->first];
    watch->first = (watch->first + 1) % KN_LOG_REQUESTS;
    watch->count--;
    const bool is_joint = look.is_row && trainer->group != NULL;
    if (is_joint)
        KN_TRY(kn_log_add_up(trainer->log, trainer->group));
    KN_TRY(check_loss(watch, is_joint));
    trainer->progress.loss = kn_device_log_value(trainer->log, trainer->log_loss, KN_FIGURE_MEAN);
    kn_trainer_read_metrics(trainer, false, trainer->progress.metrics);
    if (!look.is_row)
        return KN_OK;
    KN_TRY(append_step(watch, &look));
    return trainer->log_histograms >= 0 ? append_histograms(watch, &look) : KN_OK;
}

static kn_status wait_for_oldest(kn_step_watch *watch)
{
    KN_TRY(kn_log_await(watch->trainer->log));
    return take(watch);
}

/* If all requests are pending, the host is far ahead of the device and waits for one. */
static kn_status ask(kn_step_watch *watch, int64_t step, bool row)
{
    if (watch->count == KN_LOG_REQUESTS)
        KN_TRY(wait_for_oldest(watch));
    KN_TRY(kn_device_log_request(watch->trainer->log));
    watch->looks[(watch->first + watch->count) % KN_LOG_REQUESTS] =
        (kn_step_look){.step = step, .lr = kn_optim_lr(watch->trainer->params.optim), .is_row = row};
    watch->count++;
    return KN_OK;
}

kn_status kn_steps_poll(kn_step_watch *watch, int64_t step, bool is_time)
{
    bool row = is_row(watch, step);
    if (row || (is_time && watch->count == 0))
        KN_TRY(ask(watch, step, row));
    if (row && watch->trainer->group != NULL)
        KN_TRY(kn_steps_drain(watch)); /* rows are of all ranks, which add them up at the same step */
    bool arrived = watch->count > 0;
    while (arrived && watch->count > 0) {
        KN_TRY(kn_device_log_poll(watch->trainer->log, &arrived));
        if (arrived)
            KN_TRY(take(watch));
    }
    return KN_OK;
}

/* --- an epoch -------------------------------------------------------------------------------------------------- */

kn_status kn_steps_begin_epoch(kn_step_watch *watch, kn_trainer *trainer, kn_loader *loader)
{
    *watch = (kn_step_watch){.trainer = trainer,
                             .epoch = trainer->epoch + 1,
                             .steps = kn_loader_batches(loader),
                             .steps_before = trainer->params.accumulate > 1 ? trainer->epoch * kn_loader_batches(loader)
                                                                            : trainer->global_step};
    KN_TRY(kn_device_log_reset(trainer->log));
    watch->sums = kn_calloc((size_t)count_sums(trainer) + 1, sizeof *watch->sums);
    if (watch->sums == NULL)
        return KN_ERR_MEMORY;
    if (trainer->log_histograms < 0)
        return KN_OK;
    watch->bins = kn_calloc((size_t)parameters_of(trainer) * (size_t)(OUTSIDE + trainer->params.log_histograms),
                            sizeof *watch->bins);
    return watch->bins != NULL ? KN_OK : KN_ERR_MEMORY;
}

kn_status kn_steps_drain(kn_step_watch *watch)
{
    while (watch->count > 0)
        KN_TRY(wait_for_oldest(watch));
    return KN_OK;
}

kn_status kn_steps_find_bad(kn_step_watch *watch, kn_status status)
{
    kn_trainer *trainer = watch->trainer;
    if (status != KN_ERR_NUMERIC || trainer->group == NULL)
        return status;
    KN_TRY(kn_log_read_all(trainer->log, trainer->group, kn_trainer_device(trainer)));
    return check_loss(watch, true);
}

kn_status kn_steps_end_epoch(kn_step_watch *watch, kn_pass_figures *figures)
{
    kn_trainer *trainer = watch->trainer;
    const kn_device_log *log = trainer->log;
    KN_TRY(kn_log_read_all(trainer->log, trainer->group, kn_trainer_device(trainer)));
    KN_TRY(check_loss(watch, trainer->group != NULL));
    *figures = (kn_pass_figures){.loss = kn_device_log_value(log, trainer->log_loss, KN_FIGURE_MEAN),
                                 .grad_norm = kn_device_log_value(log, trainer->log_norm, KN_FIGURE_MEAN)};
    kn_trainer_read_metrics(trainer, false, figures->metrics);
    return KN_OK;
}

void kn_steps_free(kn_step_watch *watch)
{
    kn_free(watch->sums);
    kn_free(watch->bins);
    watch->sums = NULL;
    watch->bins = NULL;
}
