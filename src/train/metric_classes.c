/* train/metric_classes.c - metrics of predicted classes: accuracy, precision, recall, F1. */
#include <math.h>
#include <stdio.h>

#include <koine/logic.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/sort.h>

#include "train/device_log.h"

#define ROWS_PER_ITEM 16
#define MAX_ITEMS 256
#define MAX_CLASSES (1 << 24)

/* --- predictions ------------------------------------------------------------------------------------------------ */

static bool is_class_dtype(kn_dtype dtype) { return dtype == KN_I64 || dtype == KN_I32 || dtype == KN_U8; }

bool kn_metric_has_scores(const kn_tensor *output, const kn_tensor *target)
{
    bool fits = kn_dtype_is_floating(output->dtype) && output->ndim >= 2 && target->ndim == output->ndim - 1 &&
                output->shape[0] == target->shape[0] && output->shape[1] > 0;
    for (int d = 2; fits && d < output->ndim; d++)
        fits = output->shape[d] == target->shape[d - 1];
    return fits;
}

static bool same_shape(const kn_tensor *output, const kn_tensor *target)
{
    bool same = output->ndim == target->ndim;
    for (int d = 0; same && d < output->ndim; d++)
        same = output->shape[d] == target->shape[d];
    return same;
}

bool kn_metric_has_one_score(const kn_metric_spec *spec, const kn_tensor *output, const kn_tensor *target)
{
    return kn_metric_takes_scores(spec) && kn_dtype_is_floating(output->dtype) &&
           (same_shape(output, target) || (kn_metric_has_scores(output, target) && output->shape[1] == 1));
}

static kn_status check(const kn_metric_spec *spec, const kn_tensor *output, const kn_tensor *target)
{
    const char *name = spec->kind->name;
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    const bool one = kn_metric_has_one_score(spec, output, target);
    if (!one && !kn_metric_has_scores(output, target) && !(is_class_dtype(output->dtype) && same_shape(output, target)))
        return kn_fail(KN_ERR_SHAPE, "%s: needs output [n, classes, ...] and target classes [n, ...], not %s and %s",
                       name, kn_tensor_describe(a, sizeof a, output), kn_tensor_describe(b, sizeof b, target));
    if (!is_class_dtype(target->dtype) && !(kn_metric_takes_scores(spec) && kn_dtype_is_floating(target->dtype)))
        return kn_fail(KN_ERR_DTYPE, "%s: target classes must be integers, not %s", name,
                       kn_tensor_describe(b, sizeof b, target));
    if (one || !kn_metric_has_scores(output, target))
        return KN_OK;
    if (spec->num_classes > 0 && output->shape[1] != spec->num_classes)
        return kn_fail(KN_ERR_SHAPE, "%s: has %d classes, but output is %s", name, spec->num_classes,
                       kn_tensor_describe(a, sizeof a, output));
    if (spec->top_k > output->shape[1])
        return kn_fail(KN_ERR_SHAPE, "%s: top_k (%d) is more than the classes of output, %s", name, spec->top_k,
                       kn_tensor_describe(a, sizeof a, output));
    return KN_OK;
}

static kn_tensor *predictions(const kn_metric_spec *spec, kn_tensor *output, kn_tensor *target)
{
    kn_tensor *best = NULL;
    if (kn_metric_has_one_score(spec, output, target))
        return kn_gt_scalar(output, spec->threshold);
    if (!kn_metric_has_scores(output, target))
        return output;
    if (spec->top_k <= 1)
        return kn_argmax(output, 1, false);
    return kn_topk(output, spec->top_k, &best, .dim = 1) != NULL ? best : NULL;
}

kn_status kn_metric_prepare_rows(const kn_metric_spec *spec, kn_tensor *output, kn_tensor *target, kn_metric_rows *rows)
{
    KN_TRY(check(spec, output, target));
    rows->rows = kn_numel(target);
    rows->inner = target->ndim > 0 && target->shape[0] > 0 ? rows->rows / target->shape[0] : 1;
    if (rows->rows == 0)
        return KN_OK;
    rows->predicted = kn_contiguous(kn_to_dtype(predictions(spec, output, target), KN_I64));
    rows->target = kn_contiguous(kn_to_dtype(target, KN_I64));
    return kn_status_of(rows->predicted != NULL ? rows->target : NULL);
}

/* --- counting --------------------------------------------------------------------------------------------------- */

static size_t items(const kn_tensor *target, int64_t rows)
{
    const size_t wanted = kn_work_items(kn_tensor_limits(target), rows, ROWS_PER_ITEM);
    return wanted < MAX_ITEMS ? wanted : MAX_ITEMS;
}

static kn_status update_accuracy(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target)
{
    const kn_metric_spec *spec = &entry->spec;
    kn_metric_rows rows;
    KN_TRY(kn_metric_prepare_rows(spec, output, target, &rows));
    KN_TRY(kn_log_prepare(log, entry, output->storage->device, KN_I64));
    if (rows.rows == 0)
        return KN_OK;
    const int64_t k = kn_numel(rows.predicted) / rows.rows;
    return kn_run(
        kn_tensor_stream(rows.target), .source = "train/metrics.cl", .options = "-DT=long", .kernel = "count_right",
        .operation = "accuracy", .dims = 1, .global = {items(rows.target, rows.rows)},
        KN_ARGS(kn_arg_tensor(rows.predicted), kn_arg_tensor(rows.target), kn_log_arg(log, entry),
                kn_arg_i64(rows.rows), kn_arg_i64(rows.inner), kn_arg_i64(k), kn_arg_i64(spec->ignore_index)));
}

kn_status kn_metric_count_classes(kn_device_log *log, kn_log_entry *entry, const char *kernel, kn_tensor *output,
                                  kn_tensor *target)
{
    const kn_metric_spec *spec = &entry->spec;
    kn_metric_rows rows;
    KN_TRY(kn_metric_prepare_rows(spec, output, target, &rows));
    KN_TRY(kn_log_prepare(log, entry, output->storage->device, KN_I64));
    if (rows.rows == 0)
        return KN_OK;
    return kn_run(kn_tensor_stream(rows.target), .source = "train/metrics.cl", .options = "-DT=long", .kernel = kernel,
                  .operation = spec->kind->name, .dims = 1, .global = {items(rows.target, rows.rows)},
                  KN_ARGS(kn_arg_tensor(rows.predicted), kn_arg_tensor(rows.target), kn_log_arg(log, entry),
                          kn_arg_i64(rows.rows), kn_arg_i64(spec->num_classes), kn_arg_i64(spec->ignore_index),
                          kn_arg_fault()));
}

kn_status kn_metric_check_classes(kn_tensor *target, const char *metric, int64_t classes, int64_t ignored)
{
    const int64_t rows = kn_numel(target);
    return kn_run(
        kn_tensor_stream(target), .source = "train/metrics.cl", .options = "-DT=long", .kernel = "check_classes",
        .operation = metric, .dims = 1, .global = {items(target, rows)},
        KN_ARGS(kn_arg_tensor(target), kn_arg_i64(rows), kn_arg_i64(classes), kn_arg_i64(ignored), kn_arg_fault()));
}

static kn_status update_classes(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target)
{
    return kn_metric_count_classes(log, entry, "count_classes", output, target);
}

/* --- formulas --------------------------------------------------------------------------------------------------- */

static int64_t two_counts(const kn_metric_spec *spec)
{
    (void)spec;
    return 2;
}

static int64_t counts_per_class(const kn_metric_spec *spec) { return 3 * (int64_t)spec->num_classes; }

static void compute_accuracy(const kn_metric_spec *spec, const double *sums, double *values)
{
    (void)spec;
    values[0] = sums[1] > 0 ? sums[0] / sums[1] : (double)NAN;
}

/* Rows of a class, or of all: predicted correctly, predicted, having it. */
typedef struct tally {
    double hits, predicted, having;
} tally;

/* Precision, recall and F1 differ in how much of the two counts is in the denominator. */
static double ratio(const kn_metric_spec *spec, tally t, double of_predicted)
{
    const double below = of_predicted * t.predicted + (1 - of_predicted) * t.having;
    return below > 0 ? t.hits / below : spec->zero_division;
}

static tally tally_of(const double *sums, int classes, int c)
{
    return (tally){sums[c], sums[classes + c], sums[2 * classes + c]};
}

static double averaged(const kn_metric_spec *spec, const double *sums, double of_predicted)
{
    double sum = 0, weights = 0;
    for (int c = 0; c < spec->num_classes; c++) {
        const tally t = tally_of(sums, spec->num_classes, c);
        const bool is_there = t.predicted > 0 || t.having > 0;
        const double weight = spec->average == KN_AVERAGE_WEIGHTED ? t.having : is_there ? 1 : 0;
        const double value = ratio(spec, t, of_predicted);
        if (weight > 0 && !isnan(value)) { /* NaN: a zero_division, which is left out, as by scikit-learn */
            sum += weight * value;
            weights += weight;
        }
    }
    return sum / weights;
}

static void compute(const kn_metric_spec *spec, const double *sums, double *values, double of_predicted)
{
    tally all = {0};
    for (int c = 0; c < spec->num_classes; c++) {
        const tally t = tally_of(sums, spec->num_classes, c);
        all = (tally){all.hits + t.hits, all.predicted + t.predicted, all.having + t.having};
    }
    const int64_t count = kn_metric_value_count(spec);
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)NAN;
    if (all.having == 0)
        return;
    for (int c = 0; c < count && spec->average == KN_AVERAGE_NONE; c++)
        values[c] = ratio(spec, tally_of(sums, spec->num_classes, c), of_predicted);
    if (spec->average == KN_AVERAGE_MICRO)
        values[0] = ratio(spec, all, of_predicted);
    else if (spec->average == KN_AVERAGE_BINARY)
        values[0] = ratio(spec, tally_of(sums, 2, 1), of_predicted);
    else if (spec->average != KN_AVERAGE_NONE)
        values[0] = averaged(spec, sums, of_predicted);
}

static void compute_precision(const kn_metric_spec *spec, const double *sums, double *values)
{
    compute(spec, sums, values, 1);
}
static void compute_recall(const kn_metric_spec *spec, const double *sums, double *values)
{
    compute(spec, sums, values, 0);
}
static void compute_f1(const kn_metric_spec *spec, const double *sums, double *values)
{
    compute(spec, sums, values, 0.5);
}

/* --- the metrics ------------------------------------------------------------------------------------------------ */

#define OF_CLASSES .is_of_classes = true, .counts = counts_per_class, .update = update_classes
const kn_metric_kind kn_metric_accuracy_kind = {.name = "accuracy",
                                                .is_of_classes = true,
                                                .counts = two_counts,
                                                .update = update_accuracy,
                                                .compute = compute_accuracy};
static const kn_metric_kind class_accuracy_kind = {.name = "accuracy", OF_CLASSES, .compute = compute_recall};
static const kn_metric_kind precision_kind = {.name = "precision", OF_CLASSES, .compute = compute_precision};
static const kn_metric_kind recall_kind = {.name = "recall", OF_CLASSES, .compute = compute_recall};
static const kn_metric_kind f1_kind = {.name = "f1_score", OF_CLASSES, .compute = compute_f1};

const kn_metric_spec kn_metric_plain_accuracy = {
    .kind = &kn_metric_accuracy_kind, .top_k = 1, .average = KN_AVERAGE_MICRO, .threshold = 0.5, .ignore_index = -100};

kn_metric_accuracy_params kn_metric_accuracy_params_init(void)
{
    return (kn_metric_accuracy_params){KN_METRIC_ACCURACY_DEFAULTS};
}

kn_metric_class_params kn_metric_class_params_init(void) { return (kn_metric_class_params){KN_METRIC_CLASS_DEFAULTS}; }

kn_status kn_metric_check_spec(const kn_metric_spec *spec, int most)
{
    const bool is_auroc = spec->kind->compute_samples != NULL, is_binary = spec->average == KN_AVERAGE_BINARY;
    const char *name = spec->kind->name;
    if ((int)spec->average < 0 || spec->average > KN_AVERAGE_BINARY ||
        (is_auroc && (is_binary || spec->average == KN_AVERAGE_MICRO)))
        return kn_fail(KN_ERR_ARGUMENT, "%s: average (%d) must be KN_AVERAGE_%sMACRO, _WEIGHTED or _NONE%s", name,
                       (int)spec->average, is_auroc ? "" : "MICRO, _", is_auroc ? "" : ", or _BINARY");
    const int least = is_auroc && spec->num_classes == 0 ? 0 : 2;
    if (spec->num_classes < least || spec->num_classes > most)
        return kn_fail(KN_ERR_ARGUMENT, "%s: num_classes (%d) must be from 2 to %d", name, spec->num_classes, most);
    if (is_binary && spec->num_classes != 2)
        return kn_fail(KN_ERR_ARGUMENT, "%s: KN_AVERAGE_BINARY is of 2 classes, not %d", name, spec->num_classes);
    if (is_auroc && spec->num_classes == 0 && spec->average == KN_AVERAGE_NONE)
        return kn_fail(KN_ERR_ARGUMENT, "%s: KN_AVERAGE_NONE needs num_classes", name);
    if (isnan(spec->threshold))
        return kn_fail(KN_ERR_ARGUMENT, "%s: threshold is NaN", name);
    return KN_OK;
}

kn_metric *kn_metric_accuracy_with(const kn_metric_accuracy_params *params)
{
    params = params ? params : &(kn_metric_accuracy_params){KN_METRIC_ACCURACY_DEFAULTS};
    const bool of_rows = params->average == KN_AVERAGE_MICRO || params->average == KN_AVERAGE_BINARY;
    const kn_metric_spec spec = {.kind = of_rows ? &kn_metric_accuracy_kind : &class_accuracy_kind,
                                 .top_k = params->top_k,
                                 .average = params->average,
                                 .num_classes = params->num_classes,
                                 .threshold = params->threshold,
                                 .ignore_index = params->ignore_index};
    if (params->top_k < 1 || (params->top_k > 1 && params->average != KN_AVERAGE_MICRO))
        return kn_fail_null(KN_ERR_ARGUMENT, "accuracy: top_k (%d) must be 1 or more, and 1 but for KN_AVERAGE_MICRO",
                            params->top_k);
    kn_metric_spec checked = spec;
    if (of_rows && spec.num_classes == 0)
        checked.num_classes = 2;
    return kn_metric_check_spec(&checked, MAX_CLASSES) == KN_OK ? kn_metric_new(&spec) : kn_error_make_sticky();
}

static kn_metric *make(const kn_metric_kind *kind, const kn_metric_class_params *params)
{
    params = params ? params : &(kn_metric_class_params){KN_METRIC_CLASS_DEFAULTS};
    const bool is_binary = params->average == KN_AVERAGE_BINARY;
    const kn_metric_spec spec = {.kind = kind,
                                 .num_classes = is_binary && params->num_classes == 0 ? 2 : params->num_classes,
                                 .average = params->average,
                                 .threshold = params->threshold,
                                 .ignore_index = params->ignore_index,
                                 .zero_division = params->zero_division};
    if (params->zero_division != 0 && params->zero_division != 1 && !isnan(params->zero_division))
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: zero_division (%g) must be 0, 1 or NaN", kind->name,
                            params->zero_division);
    return kn_metric_check_spec(&spec, MAX_CLASSES) == KN_OK ? kn_metric_new(&spec) : kn_error_make_sticky();
}

kn_metric *kn_metric_precision_with(const kn_metric_class_params *params) { return make(&precision_kind, params); }
kn_metric *kn_metric_recall_with(const kn_metric_class_params *params) { return make(&recall_kind, params); }
kn_metric *kn_metric_f1_score_with(const kn_metric_class_params *params) { return make(&f1_kind, params); }
