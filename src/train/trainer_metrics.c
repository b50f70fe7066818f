/* train/trainer_metrics.c - the metrics of a trainer: names, entries in the logs of training and of evaluation,
 * values. */
#include <string.h>

#include "base/memory.h"
#include "train/device_log.h"
#include "train/trainer.h"

#define ACCURACY "acc"

/* --- names ------------------------------------------------------------------------------------------------------ */

/* Of columns, files and plots: plain characters only. */
static bool is_plain(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return name[0] != '\0' && name[strspn(name, plain)] == '\0';
}

static bool is_taken(const kn_trainer *trainer, const char *name)
{
    static const char *const columns[] = {"epoch", "step", "loss", "lr", "grad_norm"};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (strcmp(name, columns[i]) == 0)
            return true;
    for (int i = 0; i < trainer->num_metrics; i++)
        if (strcmp(name, trainer->metrics[i].name) == 0)
            return true;
    return false;
}

static kn_status add(kn_trainer *trainer, const char *name, const kn_metric_spec *spec)
{
    if (!is_plain(name) || is_taken(trainer, name))
        return kn_fail(KN_ERR_ARGUMENT, "trainer: a metric cannot be named \"%s\"%s", name,
                       is_plain(name) ? ": there is a column of this name" : ": use letters, digits, _ and -");
    if (trainer->num_metrics == KN_TRAINER_METRICS)
        return kn_fail(KN_ERR_ARGUMENT, "trainer: there are more than %d metrics, accuracy included",
                       KN_TRAINER_METRICS);
    if (kn_metric_is_mean(spec) || kn_metric_value_count(spec) != 1)
        return kn_fail(KN_ERR_ARGUMENT, "trainer: the metric \"%s\" (%s) %s", name, spec->kind->name,
                       kn_metric_is_mean(spec) ? "is not one of output and target"
                                               : "has several values: compute it with kn_trainer_measure");
    kn_trainer_metric *metric = &trainer->metrics[trainer->num_metrics];
    metric->name = kn_strdup(name);
    metric->spec = *spec;
    trainer->num_metrics += metric->name != NULL;
    return metric->name != NULL ? KN_OK : KN_ERR_MEMORY;
}

kn_status kn_trainer_take_metrics(kn_trainer *trainer, const kn_trainer_params *params)
{
    if (params->accuracy)
        KN_TRY(add(trainer, ACCURACY, &kn_metric_plain_accuracy));
    for (const kn_named_metric *m = params->metrics; m != NULL && m->name != NULL; m++) {
        if (m->metric == NULL)
            return kn_fail(KN_ERR_ARGUMENT, "trainer: the metric \"%s\" is NULL", m->name);
        KN_TRY(add(trainer, m->name, kn_metric_spec_of(m->metric)));
    }
    return KN_OK;
}

void kn_trainer_free_metrics(kn_trainer *trainer)
{
    for (int i = 0; i < trainer->num_metrics; i++)
        kn_free(trainer->metrics[i].name);
    trainer->num_metrics = 0;
}

/* --- entries ---------------------------------------------------------------------------------------------------- */

static kn_device_log *log_of(const kn_trainer *trainer, bool evaluation)
{
    return evaluation ? trainer->evaluation : trainer->log;
}

static int entry_of(const kn_trainer_metric *metric, bool evaluation)
{
    return evaluation ? metric->evaluated : metric->logged;
}

kn_status kn_trainer_add_metrics(kn_trainer *trainer, bool evaluation)
{
    for (int i = 0; i < trainer->num_metrics; i++) {
        kn_trainer_metric *metric = &trainer->metrics[i];
        int *entry = evaluation ? &metric->evaluated : &metric->logged;
        *entry = kn_log_add_metric(log_of(trainer, evaluation), metric->name, &metric->spec);
        if (*entry < 0)
            return kn_error_status();
    }
    return KN_OK;
}

kn_status kn_trainer_note_metrics(kn_trainer *trainer, bool evaluation, const kn_applied_batch *applied)
{
    kn_device_log *log = log_of(trainer, evaluation);
    for (int i = 0; i < trainer->num_metrics; i++) {
        const kn_trainer_metric *metric = &trainer->metrics[i];
        kn_status status = kn_device_log_metric(log, entry_of(metric, evaluation), applied->output, applied->target);
        if ((status == KN_ERR_SHAPE || status == KN_ERR_DTYPE) && strcmp(metric->name, ACCURACY) == 0)
            kn_error_suffix("; other targets need a trainer with .accuracy = false");
        KN_TRY(status);
    }
    return KN_OK;
}

void kn_trainer_read_metrics(const kn_trainer *trainer, bool evaluation, double *values)
{
    for (int i = 0; i < trainer->num_metrics; i++)
        values[i] = kn_device_log_value(log_of(trainer, evaluation), entry_of(&trainer->metrics[i], evaluation),
                                        KN_FIGURE_MEAN);
}

bool kn_trainer_needs_classes(const kn_trainer *trainer)
{
    bool needs = false;
    for (int i = 0; i < trainer->num_metrics; i++)
        needs = needs ||
                (trainer->metrics[i].spec.kind->is_of_classes && !kn_metric_takes_scores(&trainer->metrics[i].spec));
    return needs;
}
