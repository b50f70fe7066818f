/* train/metric.c - metrics as objects: a log of one entry, and what was merged into it. */
#include "train/metric.h"

#include <math.h>
#include <string.h>

#include <koine/amp.h>
#include <koine/autograd.h>

#include "base/memory.h"
#include "train/device_log.h"

struct kn_metric {
    kn_device_log *log;
    double *merged;               /* sums of other metrics; NULL: none */
    kn_metric_samples others;     /* likewise */
    double *sums, *values;        /* as last read */
    int64_t num_sums, num_values; /* their lengths */
};

/* --- making one ------------------------------------------------------------------------------------------------- */

kn_metric *kn_metric_new(const kn_metric_spec *spec)
{
    kn_metric *metric = kn_calloc(1, sizeof *metric);
    if (metric == NULL)
        return kn_error_make_sticky();
    metric->num_sums = kn_metric_sum_count(spec);
    metric->num_values = kn_metric_value_count(spec);
    metric->sums = kn_calloc((size_t)metric->num_sums + 1, sizeof *metric->sums);
    metric->values = kn_calloc((size_t)metric->num_values, sizeof *metric->values);
    metric->log = kn_device_log_new();
    if (metric->sums != NULL && metric->values != NULL && metric->log != NULL &&
        kn_log_add_metric(metric->log, spec->kind->name, spec) == 0)
        return metric;
    kn_metric_free(metric);
    return kn_error_make_sticky();
}

void kn_metric_free(kn_metric *metric)
{
    if (metric == NULL)
        return;
    kn_device_log_free(metric->log);
    kn_metric_drop(&metric->others);
    kn_free(metric->merged);
    kn_free(metric->sums);
    kn_free(metric->values);
    kn_free(metric);
}

const kn_metric_spec *kn_metric_spec_of(const kn_metric *metric) { return &metric->log->entries[0].spec; }

const char *kn_metric_name(const kn_metric *metric)
{
    return metric == NULL ? "" : kn_metric_spec_of(metric)->kind->name;
}

/* --- state ------------------------------------------------------------------------------------------------------ */

/* If clearing fails, the next update retries and reports the error. */
void kn_metric_reset(kn_metric *metric)
{
    if (metric == NULL)
        return;
    KN_PRESERVE_ERROR;
    kn_device_log_reset(metric->log);
    kn_metric_drop(&metric->others);
    kn_free(metric->merged);
    metric->merged = NULL;
}

kn_status kn_metric_update(kn_metric *metric, kn_tensor *output, kn_tensor *target, int64_t weight)
{
    if (metric == NULL || output == NULL)
        return kn_fail_argument_null("metric_update", metric == NULL ? "metric" : "output");
    return kn_log_update_metric(metric->log, &metric->log->entries[0], output, target, weight);
}

static kn_status read_sums(kn_metric *metric)
{
    KN_TRY(kn_device_log_read(metric->log));
    kn_log_metric_sums(metric->log, 0, metric->sums);
    for (int64_t i = 0; metric->merged != NULL && i < metric->num_sums; i++)
        metric->sums[i] += metric->merged[i];
    return KN_OK;
}

/* The log's samples and those merged, borrowed, in one array. */
static kn_status compute_samples(kn_metric *metric)
{
    const kn_metric_spec *spec = kn_metric_spec_of(metric);
    const kn_metric_samples *own = &metric->log->entries[0].samples, *others = &metric->others;
    const int count = own->count + others->count;
    kn_tensor **all = kn_calloc(2 * (size_t)count + 1, sizeof(kn_tensor *));
    if (all == NULL)
        return KN_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        const kn_metric_samples *from = i < own->count ? own : others;
        const int index = i < own->count ? i : i - own->count;
        all[i] = from->outputs[index];
        all[count + i] = from->targets[index];
    }
    const kn_metric_samples both = {.outputs = all, .targets = all + count, .count = count};
    kn_status status = kn_metric_compute_samples(spec, &both, metric->values);
    kn_free(all);
    return status;
}

static kn_status compute(kn_metric *metric)
{
    const kn_metric_spec *spec = kn_metric_spec_of(metric);
    if (spec->kind->compute_samples != NULL)
        return compute_samples(metric);
    KN_TRY(read_sums(metric));
    spec->kind->compute(spec, metric->sums, metric->values);
    return KN_OK;
}

kn_status kn_metric_compute(kn_metric *metric, double *value)
{
    if (metric == NULL || value == NULL)
        return kn_fail_argument_null("metric_compute", metric == NULL ? "metric" : "value");
    if (metric->num_values != 1)
        return kn_fail(KN_ERR_STATE, "metric_compute: %s has %lld values: kn_metric_values returns them",
                       kn_metric_name(metric), (long long)metric->num_values);
    KN_TRY(compute(metric));
    *value = metric->values[0];
    return KN_OK;
}

kn_tensor *kn_metric_values(kn_metric *metric)
{
    if (metric == NULL) {
        kn_fail_argument_null("metric_values", "metric");
        return kn_error_make_sticky();
    }
    const kn_metric_spec *spec = kn_metric_spec_of(metric);
    const int64_t shape[] = {spec->num_classes, spec->num_classes};
    const int ndim = spec->kind->dims == 2 ? 2 : kn_metric_is_per_class(spec) ? 1 : 0;
    kn_tensor *values = NULL;
    if (compute(metric) != KN_OK || kn_tensor_new(&values, KN_F64, ndim, shape, kn_device_host()) != KN_OK)
        return kn_error_make_sticky();
    memcpy(values->storage->host, metric->values, (size_t)metric->num_values * sizeof *metric->values);
    return kn_scope_adopt(values);
}

/* --- several ---------------------------------------------------------------------------------------------------- */

static bool equal_or_nan(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static bool is_same(const kn_metric_spec *a, const kn_metric_spec *b)
{
    return a->kind == b->kind && a->num_classes == b->num_classes && a->top_k == b->top_k && a->average == b->average &&
           a->normalize == b->normalize && a->threshold == b->threshold &&
           equal_or_nan(a->zero_division, b->zero_division) && a->ignore_index == b->ignore_index &&
           a->squared == b->squared;
}

static kn_status merge_samples(kn_metric *metric, const kn_metric_samples *from, kn_device *device)
{
    for (int i = 0; i < from->count; i++)
        KN_TRY(kn_metric_keep(&metric->others, from->outputs[i], from->targets[i], device));
    return KN_OK;
}

static kn_status merge_all_samples(kn_metric *metric, const kn_metric *other)
{
    const kn_metric_samples *own = &metric->log->entries[0].samples, *theirs = &other->log->entries[0].samples;
    const kn_metric_samples *first = own->count > 0 ? own : metric->others.count > 0 ? &metric->others : theirs;
    kn_device *device = first->count > 0 ? first->outputs[0]->storage->device : NULL;
    KN_TRY(merge_samples(metric, theirs, device));
    return merge_samples(metric, &other->others, device != NULL ? device : kn_device_current());
}

kn_status kn_metric_merge(kn_metric *metric, kn_metric *other)
{
    if (metric == NULL || other == NULL)
        return kn_fail_argument_null("metric_merge", metric == NULL ? "metric" : "other");
    if (metric == other || !is_same(kn_metric_spec_of(metric), kn_metric_spec_of(other)))
        return kn_fail(KN_ERR_ARGUMENT, "metric_merge: needs two metrics with the same parameters, not %s",
                       metric == other ? "one twice" : "different ones");
    if (kn_metric_spec_of(metric)->kind->compute_samples != NULL)
        return merge_all_samples(metric, other);
    KN_TRY(read_sums(other));
    if (metric->merged == NULL)
        metric->merged = kn_calloc((size_t)metric->num_sums, sizeof *metric->merged);
    if (metric->merged == NULL)
        return KN_ERR_MEMORY;
    for (int64_t i = 0; i < metric->num_sums; i++)
        metric->merged[i] += other->sums[i];
    return KN_OK;
}

/* Replaces what was merged, and forgets the log's, which it contains. */
static void take_over(kn_metric *metric, double *sums, const kn_metric_samples *samples)
{
    kn_metric_reset(metric);
    metric->merged = sums;
    metric->others = *samples;
}

static kn_status add_up_samples(kn_metric *metric, kn_group *group)
{
    const kn_metric_samples *own = &metric->log->entries[0].samples;
    kn_metric_samples mine = {0}, all = {0};
    const kn_metric_samples *first = own->count > 0 ? own : &metric->others;
    kn_device *device = first->count > 0 ? first->outputs[0]->storage->device : kn_device_current();
    kn_status status = kn_status_of(device);
    for (int part = 0; part < 2; part++) {
        const kn_metric_samples *from = part == 0 ? own : &metric->others;
        for (int i = 0; i < from->count && status == KN_OK; i++)
            status = kn_metric_keep(&mine, from->outputs[i], from->targets[i], device);
    }
    if (status == KN_OK)
        status = kn_metric_gather(kn_metric_spec_of(metric), &mine, group, device, &all);
    kn_metric_drop(&mine);
    if (status == KN_OK)
        take_over(metric, NULL, &all);
    else
        kn_metric_drop(&all);
    return status;
}

kn_status kn_metric_all_reduce(kn_metric *metric, kn_group *group)
{
    if (metric == NULL || group == NULL)
        return kn_fail_argument_null("metric_all_reduce", metric == NULL ? "metric" : "group");
    if (kn_metric_spec_of(metric)->kind->compute_samples != NULL)
        return add_up_samples(metric, group);
    KN_TRY(read_sums(metric));
    double *sums = kn_calloc((size_t)metric->num_sums, sizeof *sums);
    if (sums == NULL)
        return KN_ERR_MEMORY;
    memcpy(sums, metric->sums, (size_t)metric->num_sums * sizeof *sums);
    kn_status status = kn_sums_add_up(sums, metric->num_sums, group);
    if (status != KN_OK) {
        kn_free(sums);
        return status;
    }
    take_over(metric, sums, &(kn_metric_samples){0});
    return KN_OK;
}

/* --- samples ---------------------------------------------------------------------------------------------------- */

static kn_status make_room(kn_metric_samples *samples)
{
    if (samples->count < samples->capacity)
        return KN_OK;
    const int capacity = samples->capacity > 0 ? 2 * samples->capacity : 16;
    kn_tensor **outputs = kn_realloc(samples->outputs, (size_t)capacity * sizeof(kn_tensor *));
    samples->outputs = outputs != NULL ? outputs : samples->outputs;
    kn_tensor **targets = outputs != NULL ? kn_realloc(samples->targets, (size_t)capacity * sizeof(kn_tensor *)) : NULL;
    if (targets == NULL)
        return KN_ERR_MEMORY;
    samples->targets = targets;
    samples->capacity = capacity;
    return KN_OK;
}

kn_status kn_metric_keep(kn_metric_samples *samples, const kn_tensor *output, const kn_tensor *target,
                         kn_device *device)
{
    kn_tensor *scores = NULL, *classes = NULL;
    KN_TRY(make_room(samples));
    kn_status status = kn_tensor_cast(&scores, (kn_tensor *)output, output->dtype == KN_F64 ? KN_F64 : KN_F32, device);
    if (status == KN_OK)
        status = kn_tensor_cast(&classes, (kn_tensor *)target, KN_I64, device);
    if (status != KN_OK) {
        kn_release(scores);
        return status;
    }
    samples->outputs[samples->count] = scores;
    samples->targets[samples->count++] = classes;
    return KN_OK;
}

void kn_metric_drop(kn_metric_samples *samples)
{
    for (int i = 0; i < samples->count; i++) {
        kn_release(samples->outputs[i]);
        kn_release(samples->targets[i]);
    }
    kn_free(samples->outputs);
    kn_free(samples->targets);
    *samples = (kn_metric_samples){0};
}

kn_status kn_metric_compute_samples(const kn_metric_spec *spec, const kn_metric_samples *samples, double *values)
{
    KN_SCOPE;
    KN_NO_GRAD;
    const kn_dtype before = kn_autocast_enter(KN_DTYPE_DEFAULT);
    kn_status status = spec->kind->compute_samples(spec, samples, values);
    kn_autocast_leave(before);
    return status;
}
