/* train/metric.c - accuracy and mean: a log of one entry each. */
#include "base/error.h"
#include "base/memory.h"
#include "train/device_log.h"

#include <koine/train.h>

struct kn_metric {
    kn_device_log *log;
    bool is_mean;
};

static kn_metric *make(bool is_mean)
{
    kn_metric *metric = kn_calloc(1, sizeof *metric);
    if (metric == NULL)
        return kn_error_make_sticky();
    metric->is_mean = is_mean;
    metric->log = kn_device_log_new();
    int entry = -1;
    if (metric->log != NULL)
        entry = is_mean ? kn_device_log_add_scalar(metric->log, "mean")
                        : kn_device_log_add_accuracy(metric->log, "accuracy");
    if (entry == 0)
        return metric;
    kn_metric_free(metric);
    return kn_error_make_sticky();
}

kn_metric *kn_metric_accuracy(void) { return make(false); }
kn_metric *kn_metric_mean(void) { return make(true); }

void kn_metric_free(kn_metric *metric)
{
    if (metric == NULL)
        return;
    kn_device_log_free(metric->log);
    kn_free(metric);
}

/* If clearing fails, the next update retries and reports the error. */
void kn_metric_reset(kn_metric *metric)
{
    if (metric == NULL)
        return;
    KN_PRESERVE_ERROR;
    kn_device_log_reset(metric->log);
}

kn_status kn_metric_update(kn_metric *metric, kn_tensor *output, kn_tensor *target, int64_t weight)
{
    if (metric == NULL || output == NULL)
        return kn_fail_argument_null("metric_update", metric == NULL ? "metric" : "output");
    return metric->is_mean ? kn_device_log_scalar(metric->log, 0, output, weight)
                           : kn_device_log_accuracy(metric->log, 0, output, target);
}

kn_status kn_metric_compute(kn_metric *metric, double *value)
{
    if (metric == NULL || value == NULL)
        return kn_fail_argument_null("metric_compute", metric == NULL ? "metric" : "value");
    KN_TRY(kn_device_log_read(metric->log));
    *value = kn_device_log_value(metric->log, 0, KN_FIGURE_MEAN);
    return KN_OK;
}
