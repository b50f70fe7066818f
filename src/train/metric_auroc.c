/* train/metric_auroc.c - the area under the receiver operating characteristic, from all scores, sorted on the
 * device. */
#include <math.h>

#include <koine/index.h>
#include <koine/join.h>
#include <koine/logic.h>
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/sort.h>

#include "base/memory.h"
#include "train/device_log.h"

#define CHUNK ((int64_t)1 << 22) /* scores sorted at a time, to bound the memory */
#define MAX_CLASSES (1 << 20)

/* --- keeping ---------------------------------------------------------------------------------------------------- */

/* [n, classes, ...] to [rows, classes]; one score per target to [rows, 1]. */
static kn_tensor *as_rows(kn_tensor *scores, int64_t classes)
{
    if (classes > 1 && scores->ndim > 2)
        scores = kn_transpose(kn_reshape(scores, KN_SHAPE(scores->shape[0], classes, -1)), 1, 2);
    return kn_reshape(scores, KN_SHAPE(kn_numel(scores) / classes, classes));
}

static kn_status update(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target)
{
    const kn_metric_spec *spec = &entry->spec;
    const int64_t classes = spec->num_classes > 0 ? spec->num_classes : 1;
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    const bool fits = classes > 1 ? kn_metric_has_scores(output, target) && output->shape[1] == classes
                                  : kn_metric_has_one_score(spec, output, target);
    if (!fits)
        return kn_fail(KN_ERR_SHAPE, "auroc: needs scores %s and targets %s, not %s and %s",
                       classes > 1 ? "[n, classes, ...]" : "[n, ...]", classes > 1 ? "[n, ...]" : "of their shape",
                       kn_tensor_describe(a, sizeof a, output), kn_tensor_describe(b, sizeof b, target));
    kn_device *device = output->storage->device;
    if (kn_is_current_stream_capturing(device))
        return kn_fail(KN_ERR_STATE, "auroc: keeps each batch, which a graph that is being captured cannot");
    KN_TRY(kn_log_prepare(log, entry, device, KN_I64));
    if (kn_numel(target) == 0)
        return KN_OK;
    output = as_rows(output, classes);
    target = kn_reshape(target, KN_SHAPE(-1));
    KN_TRY(kn_status_of(output != NULL ? target : NULL));
    KN_TRY(kn_metric_keep(&entry->samples, output, target, device));
    return kn_metric_check_classes(entry->samples.targets[entry->samples.count - 1], "auroc", classes > 1 ? classes : 2,
                                   spec->ignore_index);
}

/* --- areas ------------------------------------------------------------------------------------------------------ */

/* x without its last row, after a row of zeros. */
static kn_tensor *one_later(kn_tensor *x)
{
    kn_tensor *zero = kn_mul_scalar(kn_narrow(x, 0, 0, 1), 0);
    return kn_cat(KN_TENSORS(zero, kn_narrow(x, 0, 0, kn_size(x, 0) - 1)), 0);
}

/* Is it the last of equal scores? The curve has a point there, and a straight line across them. */
static kn_tensor *last_of_equals(kn_tensor *sorted)
{
    const int64_t rows = kn_size(sorted, 0);
    kn_tensor *changes = kn_ne(kn_narrow(sorted, 0, 0, rows - 1), kn_narrow(sorted, 0, 1, rows - 1));
    kn_tensor *last = kn_ones(KN_SHAPE(1, kn_size(sorted, 1)), .dtype = KN_BOOL, .device = kn_device_of(sorted));
    return kn_to_dtype(kn_cat(KN_TENSORS(changes, last), 0), KN_I64);
}

/* Of each column of scores [rows, columns], which are the classes from `first` on, numbers of rows, as int64: twice the
 * area, and the positives and negatives by which it is to be divided: [3, columns]. */
static kn_tensor *count_areas(kn_tensor *scores, kn_tensor *target, int64_t first, int64_t ignored)
{
    const int64_t rows = kn_size(scores, 0), columns = kn_size(scores, 1);
    const int along[] = {0};
    kn_tensor *order = NULL, *sorted = kn_sort(scores, &order, .dim = 0, .descending = true);
    kn_tensor *wide = kn_expand(kn_unsqueeze(target, 1), KN_SHAPE(rows, columns));
    kn_tensor *wanted = kn_gather(wide, 0, order);
    kn_tensor *classes =
        kn_arange((double)first, (double)(first + columns), 1, .dtype = KN_I64, .device = kn_device_of(scores));
    kn_tensor *counts = kn_ne_scalar(wanted, ignored), *is_class = kn_logical_and(kn_eq(wanted, classes), counts);
    kn_tensor *right = kn_cumsum(kn_to_dtype(is_class, KN_I64), 0);
    kn_tensor *wrong = kn_sub(kn_cumsum(kn_to_dtype(counts, KN_I64), 0), right);
    kn_tensor *points = last_of_equals(sorted);
    kn_tensor *right_before = one_later(kn_cummax(kn_mul(right, points), 0, NULL));
    kn_tensor *wrong_before = one_later(kn_cummax(kn_mul(wrong, points), 0, NULL));
    kn_tensor *slices = kn_mul(kn_sub(wrong, wrong_before), kn_add(right, right_before));
    kn_tensor *area = kn_sum_dims(kn_mul(slices, points), along, 1, true);
    return kn_cat(KN_TENSORS(area, kn_narrow(right, 0, rows - 1, 1), kn_narrow(wrong, 0, rows - 1, 1)), 0);
}

/* All classes, some at a time. areas: [classes], NaN where there is none; positives likewise. */
static kn_status measure(const kn_metric_spec *spec, kn_tensor *scores, kn_tensor *target, double *areas,
                         double *positives)
{
    const int64_t rows = kn_size(scores, 0), classes = kn_size(scores, 1);
    const int64_t step = rows >= CHUNK ? 1 : CHUNK / rows < classes ? CHUNK / rows : classes;
    int64_t *counts = kn_calloc(3 * (size_t)step, sizeof *counts);
    kn_status status = counts != NULL ? KN_OK : KN_ERR_MEMORY;
    for (int64_t c = 0; c < classes && status == KN_OK; c += step) {
        KN_SCOPE;
        const int64_t columns = classes - c < step ? classes - c : step;
        /* one score per target is that of class 1 */
        kn_tensor *found =
            count_areas(kn_narrow(scores, 1, c, columns), target, classes == 1 ? 1 : c, spec->ignore_index);
        status = kn_status_of(found);
        if (status == KN_OK)
            status = kn_read(found, counts, 3 * (size_t)columns * sizeof *counts);
        for (int64_t i = 0; i < columns && status == KN_OK; i++) {
            const double right = (double)counts[columns + i], wrong = (double)counts[2 * columns + i];
            areas[c + i] = right > 0 && wrong > 0 ? (double)counts[i] / (2 * right * wrong) : (double)NAN;
            positives[c + i] = right;
        }
    }
    kn_free(counts);
    return status;
}

/* Probabilities of several classes, from logits if they are not in [0, 1]. */
static kn_status as_probabilities(kn_tensor **scores)
{
    double low, high;
    KN_TRY(kn_status_of(*scores));
    if (kn_size(*scores, 1) == 1)
        return KN_OK;
    kn_tensor *least = kn_min(*scores), *most = kn_max(*scores);
    KN_TRY(kn_status_of(least != NULL ? most : NULL));
    KN_TRY(kn_item(least, &low));
    KN_TRY(kn_item(most, &high));
    if (!(low >= 0 && high <= 1))
        *scores = kn_softmax(*scores, 1);
    return kn_status_of(*scores);
}

static double average_of(const kn_metric_spec *spec, const double *areas, const double *positives, int64_t classes)
{
    double sum = 0, weights = 0;
    for (int64_t c = 0; c < classes; c++) {
        const double weight = isnan(areas[c]) ? 0 : spec->average == KN_AVERAGE_WEIGHTED ? positives[c] : 1;
        sum += weight > 0 ? weight * areas[c] : 0;
        weights += weight;
    }
    return sum / weights;
}

static kn_status compute_samples(const kn_metric_spec *spec, const kn_metric_samples *samples, double *values)
{
    const int64_t classes = spec->num_classes > 0 ? spec->num_classes : 1, count = kn_metric_value_count(spec);
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)NAN;
    if (samples->count == 0)
        return KN_OK;
    kn_tensor *scores = kn_cat(samples->outputs, samples->count, 0);
    kn_tensor *target = kn_cat(samples->targets, samples->count, 0);
    KN_TRY(kn_status_of(target));
    KN_TRY(as_probabilities(&scores));
    double *areas = kn_calloc(2 * (size_t)classes, sizeof *areas);
    kn_status status = areas != NULL ? measure(spec, scores, target, areas, areas + classes) : KN_ERR_MEMORY;
    if (status == KN_OK && count == 1)
        values[0] = average_of(spec, areas, areas + classes, classes);
    for (int64_t c = 0; c < count && status == KN_OK && count > 1; c++)
        values[c] = areas[c];
    kn_free(areas);
    return status;
}

/* --- the metric ------------------------------------------------------------------------------------------------- */

static const kn_metric_kind kind = {
    .name = "auroc", .is_of_classes = true, .update = update, .compute_samples = compute_samples};

kn_metric_auroc_params kn_metric_auroc_params_init(void) { return (kn_metric_auroc_params){KN_METRIC_AUROC_DEFAULTS}; }

kn_metric *kn_metric_auroc_with(const kn_metric_auroc_params *params)
{
    params = params ? params : &(kn_metric_auroc_params){KN_METRIC_AUROC_DEFAULTS};
    const kn_metric_spec spec = {.kind = &kind,
                                 .num_classes = params->num_classes,
                                 .average = params->average,
                                 .ignore_index = params->ignore_index};
    return kn_metric_check_spec(&spec, MAX_CLASSES) == KN_OK ? kn_metric_new(&spec) : kn_error_make_sticky();
}
