/* train/metric.c - accuracy and mean, accumulated on the device by one launch per update and read when asked for. */
#include "train/metric.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor.h"

/* Work-items of the accuracy kernel, each with a count of its own, on devices that are not CPUs. */
#define COUNTERS 256
#define ROWS_PER_ITEM 16

typedef enum metric_kind { METRIC_ACCURACY, METRIC_MEAN } metric_kind;

struct kn_metric {
    metric_kind kind;
    kn_device *device; /* where the state is; NULL until the first update */
    kn_dtype dtype;    /* of the values */
    kn_tensor *sums;   /* mean: [2], see cl/train/metrics.cl */
    kn_tensor *counts; /* int64; accuracy: one per work-item; mean: [3] */
    int64_t num_counts;
    double weight; /* since the last reset: rows, or the weights given; known without asking the device */
    int64_t updates;
};

static kn_metric *make(metric_kind kind)
{
    kn_metric *metric = kn_calloc(1, sizeof *metric);
    if (metric == NULL)
        return kn_stick();
    metric->kind = kind;
    return metric;
}

kn_metric *kn_metric_accuracy(void) { return make(METRIC_ACCURACY); }
kn_metric *kn_metric_mean(void) { return make(METRIC_MEAN); }

static void drop_state(kn_metric *metric)
{
    kn_release(metric->sums);
    kn_release(metric->counts);
    metric->sums = metric->counts = NULL;
    metric->device = NULL;
}

void kn_metric_free(kn_metric *metric)
{
    if (metric == NULL)
        return;
    drop_state(metric);
    kn_free(metric);
}

/* The state is cleared by the next update, which knows where it has to be. */
void kn_metric_reset(kn_metric *metric)
{
    if (metric == NULL)
        return;
    metric->weight = 0;
    metric->updates = 0;
}

static kn_status make_state(kn_metric *metric, kn_device *device, kn_dtype dtype)
{
    const kn_limits *limits = kn_device_limits(device);
    const int64_t two = 2;
    metric->num_counts = metric->kind == METRIC_MEAN ? 3
                         : limits->is_cpu            ? 4 * (int64_t)limits->compute_units
                                                     : COUNTERS;
    drop_state(metric);
    if (metric->kind == METRIC_MEAN)
        KN_TRY(kn_tensor_new(&metric->sums, dtype, 1, &two, device));
    KN_TRY(kn_tensor_new(&metric->counts, KN_I64, 1, &metric->num_counts, device));
    metric->device = device;
    metric->dtype = dtype;
    return KN_OK;
}

/* Before an update: the state is on `output`'s device, and zero when this is the first. */
static kn_status ready(kn_metric *metric, const kn_tensor *output)
{
    kn_device *device = output->storage->device;
    bool fits = metric->counts != NULL && metric->device == device && metric->dtype == output->dtype;
    if (metric->updates > 0 && !fits)
        return kn_fail(KN_ERR_DEVICE,
                       "a metric that holds %s values on %s cannot take %s ones on %s before it is reset",
                       kn_dtype_name(metric->dtype), kn_device_string(metric->device), kn_dtype_name(output->dtype),
                       kn_device_string(device));
    if (metric->updates > 0)
        return KN_OK;
    if (!fits)
        KN_TRY(make_state(metric, device, output->dtype));
    if (metric->sums != NULL)
        KN_TRY(kn_tensor_fill(metric->sums, 0));
    return kn_tensor_fill(metric->counts, 0);
}

static kn_status update_mean(kn_metric *metric, const kn_tensor *value, int64_t weight)
{
    if (kn_numel(value) != 1 || weight < 0) {
        char text[KN_DESCRIBE];
        return kn_fail(KN_ERR_ARGUMENT,
                       "metric_mean: needs a value of one element and a weight of 0 or more, not %s and %lld",
                       kn_tensor_describe(text, sizeof text, value), (long long)weight);
    }
    KN_TRY(ready(metric, value));
    KN_TRY(kn_run(kn_stream_current(metric->device), .source = "train/metrics.cl",
                  .options = kn_dtype_options(value->dtype), .kernel = "add_weighted", .operation = "metric_mean",
                  .dims = 1, .global = {1},
                  KN_ARGS(kn_arg_tensor(value), kn_arg_tensor(metric->sums), kn_arg_tensor(metric->counts),
                          kn_arg_real(value->dtype, (double)weight))));
    metric->weight += (double)weight;
    return KN_OK;
}

/* output [n, classes, ...], target [n, ...]. */
static kn_status check_accuracy(const kn_tensor *output, const kn_tensor *target)
{
    bool fits = output->ndim >= 2 && target->ndim == output->ndim - 1 && output->shape[0] == target->shape[0] &&
                output->shape[1] > 0;
    for (int d = 2; fits && d < output->ndim; d++)
        fits = output->shape[d] == target->shape[d - 1];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    if (!fits)
        return kn_fail(KN_ERR_SHAPE,
                       "metric_accuracy: needs output [n, classes, ...] and target classes [n, ...], not %s and %s",
                       kn_tensor_describe(a, sizeof a, output), kn_tensor_describe(b, sizeof b, target));
    if (target->dtype != KN_I64 && target->dtype != KN_I32 && target->dtype != KN_U8)
        return kn_fail(KN_ERR_DTYPE, "metric_accuracy: target classes are whole numbers, not %s",
                       kn_tensor_describe(b, sizeof b, target));
    if (target->storage->device != output->storage->device)
        return kn_fail(KN_ERR_DEVICE, "metric_accuracy: output is %s but target is %s",
                       kn_tensor_describe(a, sizeof a, output), kn_tensor_describe(b, sizeof b, target));
    return KN_OK;
}

static kn_status count_rows(kn_metric *metric, const kn_tensor *output, const kn_tensor *target, int64_t rows)
{
    const kn_limits *limits = kn_device_limits(metric->device);
    size_t items = limits->is_cpu ? kn_work_items(limits, rows, ROWS_PER_ITEM) : COUNTERS;
    char options[128];
    snprintf(options, sizeof options, "%s -DTARGET=%s", kn_dtype_options(output->dtype), kn_dtype_cl(target->dtype));
    return kn_run(kn_stream_current(metric->device), .source = "train/metrics.cl", .options = options,
                  .kernel = "count_correct", .operation = "metric_accuracy", .dims = 1, .global = {items},
                  .local = {limits->is_cpu ? 1 : 64},
                  KN_ARGS(kn_arg_tensor(output), kn_arg_tensor(target), kn_arg_tensor(metric->counts),
                          kn_arg_i64(output->shape[0]), kn_arg_i64(output->shape[1]),
                          kn_arg_i64(output->shape[0] > 0 ? rows / output->shape[0] : 1)));
}

static kn_status update_accuracy(kn_metric *metric, kn_tensor *output, kn_tensor *target)
{
    if (target == NULL)
        return kn_fail_argument_null("metric_update", "target");
    KN_TRY(check_accuracy(output, target));
    KN_TRY(ready(metric, output));
    int64_t rows = kn_numel(target);
    kn_tensor *scores = NULL, *classes = NULL;
    kn_status status = kn_tensor_contiguous(&scores, output);
    if (status == KN_OK)
        status = kn_tensor_contiguous(&classes, target);
    if (status == KN_OK && rows > 0)
        status = count_rows(metric, scores, classes, rows);
    kn_release(scores);
    kn_release(classes);
    if (status == KN_OK)
        metric->weight += (double)rows;
    return status;
}

kn_status kn_metric_update(kn_metric *metric, kn_tensor *output, kn_tensor *target, int64_t weight)
{
    if (metric == NULL || output == NULL)
        return kn_fail_argument_null("metric_update", metric == NULL ? "metric" : "output");
    if (output->dtype != KN_F32 && output->dtype != KN_F64)
        return kn_fail(KN_ERR_DTYPE, "metric_update: takes float32 and float64, not %s", kn_dtype_name(output->dtype));
    if (kn_device_is_host(output->storage->device))
        return kn_fail(KN_ERR_DEVICE,
                       "metric_update: the output is on the host; metrics accumulate on the device of the values");
    KN_TRY(metric->kind == METRIC_MEAN ? update_mean(metric, output, weight) : update_accuracy(metric, output, target));
    metric->updates++;
    return KN_OK;
}

static kn_status read_mean(const kn_metric *metric, double *sum, kn_metric_fault *fault)
{
    double sums[2];
    int64_t counts[3];
    if (metric->dtype == KN_F64) {
        KN_TRY(kn_read(metric->sums, sums, sizeof sums));
    } else {
        float narrow[2];
        KN_TRY(kn_read(metric->sums, narrow, sizeof narrow));
        sums[0] = narrow[0];
        sums[1] = narrow[1];
    }
    *sum = sums[0] + sums[1];
    if (fault == NULL)
        return KN_OK;
    KN_TRY(kn_read(metric->counts, counts, sizeof counts));
    *fault = (kn_metric_fault){counts[1], counts[2] != 0};
    return KN_OK;
}

static kn_status read_counts(const kn_metric *metric, double *sum)
{
    size_t bytes = (size_t)metric->num_counts * sizeof(int64_t);
    int64_t *counts = kn_malloc(bytes);
    if (counts == NULL)
        return KN_ERR_MEMORY;
    kn_status status = kn_read(metric->counts, counts, bytes);
    int64_t total = 0;
    for (int64_t i = 0; status == KN_OK && i < metric->num_counts; i++)
        total += counts[i];
    kn_free(counts);
    *sum = (double)total;
    return status;
}

kn_status kn_metric_read(kn_metric *metric, double *value, kn_metric_fault *fault)
{
    if (fault != NULL)
        *fault = (kn_metric_fault){0};
    double sum = 0;
    if (metric->updates > 0)
        KN_TRY(metric->kind == METRIC_MEAN ? read_mean(metric, &sum, fault) : read_counts(metric, &sum));
    *value = metric->weight > 0 ? sum / metric->weight : (double)NAN;
    return KN_OK;
}

kn_status kn_metric_compute(kn_metric *metric, double *value)
{
    if (metric == NULL || value == NULL)
        return kn_fail_argument_null("metric_compute", metric == NULL ? "metric" : "value");
    return kn_metric_read(metric, value, NULL);
}
