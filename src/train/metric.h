/* train/metric.h - what a metric is: its state as cells of a log (train/device_log.h), an update on the device, and a
 * formula on the host.
 *
 * The cells are `scalars` running sums (cl/train/cells.h) and then int64 counts. Read, they are an array of doubles,
 * the sums: sum and weight of each scalar, then the counts. The formula takes only these, so figures of parts can be
 * added or subtracted before it is applied: several metrics together, the steps since the last report.
 *
 * AUROC is not a formula of sums. Such a metric keeps samples instead, output and target of each update. */
#pragma once

#include <koine/group.h>
#include <koine/metrics.h>

#include "base/error.h"
#include "tensor/tensor.h"

struct kn_device_log;
struct kn_log_entry;
typedef struct kn_metric_kind kn_metric_kind;

/* A metric and its parameters. */
typedef struct kn_metric_spec {
    const kn_metric_kind *kind;
    int num_classes, top_k;
    kn_average average;
    kn_normalize_mode normalize;
    double threshold, zero_division;
    int64_t ignore_index;
    bool squared;
} kn_metric_spec;

/* Outputs and targets that were kept, contiguous on one device; one reference each. */
typedef struct kn_metric_samples {
    kn_tensor **outputs, **targets;
    int count, capacity;
} kn_metric_samples;

struct kn_metric_kind {
    const char *name;
    bool is_of_classes; /* targets are class indices */
    int scalars;
    int64_t (*counts)(const kn_metric_spec *spec); /* NULL: none */
    /* Without gradients and autocast. Checks output and target, which are on one device. */
    kn_status (*update)(struct kn_device_log *log, struct kn_log_entry *entry, kn_tensor *output, kn_tensor *target);
    void (*compute)(const kn_metric_spec *spec, const double *sums, double *values);
    /* instead of it: from all that was kept */
    kn_status (*compute_samples)(const kn_metric_spec *spec, const kn_metric_samples *samples, double *values);
    int dims; /* of the result: 2 for a confusion matrix, else 0: [] or [classes] */
};

static inline int64_t kn_metric_sum_count(const kn_metric_spec *spec)
{
    return 2 * spec->kind->scalars + (spec->kind->counts != NULL ? spec->kind->counts(spec) : 0);
}
static inline bool kn_metric_is_per_class(const kn_metric_spec *spec)
{
    return spec->kind->dims == 0 && spec->average == KN_AVERAGE_NONE;
}
static inline int64_t kn_metric_value_count(const kn_metric_spec *spec)
{
    const int64_t classes = spec->num_classes;
    return spec->kind->dims == 2 ? classes * classes : kn_metric_is_per_class(spec) ? classes : 1;
}
/* May output be one score per target? Then targets may be floating, too. */
static inline bool kn_metric_takes_scores(const kn_metric_spec *spec)
{
    return spec->average == KN_AVERAGE_BINARY || (spec->kind->dims == 2 && spec->num_classes == 2) ||
           (spec->kind->compute_samples != NULL && spec->num_classes == 0);
}

/* metric.c: what a metric is, without its state / a new one, NULL with a sticky error. */
const kn_metric_spec *kn_metric_spec_of(const kn_metric *metric);
kn_metric *kn_metric_new(const kn_metric_spec *spec);
bool kn_metric_is_mean(const kn_metric_spec *spec); /* metric_values.c */
/* metric_classes.c: refuses bad numbers of classes, averages and thresholds */
kn_status kn_metric_check_spec(const kn_metric_spec *spec, int most_classes);

/* metric.c: makes room for one more pair, and copies it / drops all / frees. */
kn_status kn_metric_keep(kn_metric_samples *samples, const kn_tensor *output, const kn_tensor *target,
                         kn_device *device);
void kn_metric_drop(kn_metric_samples *samples);
/* log_ranks.c: sums[i] becomes the sum of all ranks' sums[i]. */
kn_status kn_sums_add_up(double *sums, int64_t count, kn_group *group);
/* log_ranks.c: the samples of all ranks, one after another, on `device`. */
kn_status kn_metric_gather(const kn_metric_spec *spec, const kn_metric_samples *own, kn_group *group, kn_device *device,
                           kn_metric_samples *all);
/* compute_samples of a kind that has it, without gradients and autocast. */
kn_status kn_metric_compute_samples(const kn_metric_spec *spec, const kn_metric_samples *samples, double *values);

/* metric_classes.c: adds the predictions and targets of a batch to an entry's counts with a kernel of
 * cl/train/metrics.cl; confusion_matrix.c: the counts of a confusion matrix. */
typedef struct kn_metric_rows {
    kn_tensor *predicted, *target; /* int64, contiguous; predicted [n, top_k, inner], target [n, inner] */
    int64_t rows, inner;
} kn_metric_rows;
kn_status kn_metric_prepare_rows(const kn_metric_spec *spec, kn_tensor *output, kn_tensor *target,
                                 kn_metric_rows *rows);
kn_status kn_metric_count_classes(struct kn_device_log *log, struct kn_log_entry *entry, const char *kernel,
                                  kn_tensor *output, kn_tensor *target);
/* metric_classes.c: scores [n, classes, ...] and target [n, ...]? / one score per target, also [n, 1] for [n]? */
bool kn_metric_has_scores(const kn_tensor *output, const kn_tensor *target);
bool kn_metric_has_one_score(const kn_metric_spec *spec, const kn_tensor *output, const kn_tensor *target);
/* metric_classes.c: reports elements of target, contiguous int64, that are neither a class nor `ignored`. */
kn_status kn_metric_check_classes(kn_tensor *target, const char *metric, int64_t classes, int64_t ignored);

extern const kn_metric_kind kn_metric_accuracy_kind;
extern const kn_metric_spec kn_metric_plain_accuracy; /* kn_metric_accuracy() */
