/* koine/metrics.h - how well a network does: accuracy, precision, recall, F1, AUROC, confusion matrices, errors,
 * perplexity. Names and definitions are torchmetrics' and scikit-learn's.
 *
 *     kn_metric *f1 = kn_metric_f1_score(.num_classes = 10);
 *     KN_FOR_BATCHES (batch, loader, epoch)
 *         kn_metric_update(f1, kn_forward(net, batch->input), batch->target, 0);
 *     double value;
 *     kn_metric_compute(f1, &value);
 *
 * An update only enqueues kernels: a metric's state stays on the device, and is read once per report. The state is sums
 * that can be added (kn_metric_merge), so that the figure of all data follows from those of its parts, and not from
 * figures of batches; only AUROC keeps the scores themselves. Nothing is recorded for gradients, and autocast does not
 * apply. Without any row every figure is NaN.
 *
 * The trainer computes metrics for its history (koine/train.h, .metrics); koine/device_log.h reads those of several
 * entries in one transfer. A metric is used by one thread at a time. */
#ifndef KOINE_METRICS_H
#define KOINE_METRICS_H

#include <koine/common.h>
#include <koine/group.h>
#include <koine/status.h>

KN_BEGIN_DECLS

typedef struct kn_metric kn_metric;

/* --- use ------------------------------------------------------------------------------------------- */

/* Adds the output and target of one batch. Does not wait. `weight` is that of kn_metric_mean; others ignore it. */
KN_API kn_status kn_metric_update(kn_metric *metric, kn_tensor *output, kn_tensor *target, int64_t weight);

/* The figure; waits for the device. KN_ERR_STATE for a metric of several values. */
KN_API kn_status kn_metric_compute(kn_metric *metric, double *value);

/* All values, as a float64 tensor on the host: [] of a single one, [classes] with KN_AVERAGE_NONE, [classes, classes]
 * of a confusion matrix. NULL with an error. */
KN_API kn_tensor *kn_metric_values(kn_metric *metric);

/* Adds what `other`, a metric with the same parameters on any device, has seen. Waits for the device of `other`. */
KN_API kn_status kn_metric_merge(kn_metric *metric, kn_metric *other);

/* What the metric has seen becomes what those of all ranks have seen: each of them then has the figure of all data. The
 * ranks' metrics have the same parameters. A collective call (koine/group.h). */
KN_API kn_status kn_metric_all_reduce(kn_metric *metric, kn_group *group);

KN_API const char *kn_metric_name(const kn_metric *metric); /* "f1_score" */
KN_API void kn_metric_reset(kn_metric *metric);
KN_API void kn_metric_free(kn_metric *metric); /* NULL allowed */

/* --- of values --------------------------------------------------------------------------------- */

/* The mean of the values (a running loss): of a tensor of one element, NULL, and the weight, such as the batch size. */
KN_API kn_metric *kn_metric_mean(void);

/* Of output and target, floating tensors of one shape: the mean of (output - target)^2, or its root, and of |output -
 * target|. */
typedef struct kn_metric_mean_squared_error_params {
    bool squared; /* default true; false: its square root */
} kn_metric_mean_squared_error_params;
#define KN_METRIC_MEAN_SQUARED_ERROR_DEFAULTS .squared = true
KN_API kn_metric_mean_squared_error_params kn_metric_mean_squared_error_params_init(void);
KN_API kn_metric *kn_metric_mean_squared_error_with(const kn_metric_mean_squared_error_params *params);
#define kn_metric_mean_squared_error(...)                                                                              \
    KN_CALL(kn_metric_mean_squared_error_with(                                                                         \
        &(kn_metric_mean_squared_error_params){KN_METRIC_MEAN_SQUARED_ERROR_DEFAULTS, __VA_ARGS__}))
KN_API kn_metric *kn_metric_mean_absolute_error(void);

/* exp of the mean cross entropy per class index. output: logits [n, classes, ...] (torchmetrics has the classes last),
 * target: classes [n, ...]. */
typedef struct kn_metric_perplexity_params {
    int64_t ignore_index; /* default -100: targets of this value are left out */
} kn_metric_perplexity_params;
#define KN_METRIC_PERPLEXITY_DEFAULTS .ignore_index = -100
KN_API kn_metric_perplexity_params kn_metric_perplexity_params_init(void);
KN_API kn_metric *kn_metric_perplexity_with(const kn_metric_perplexity_params *params);
#define kn_metric_perplexity(...)                                                                                      \
    KN_CALL(kn_metric_perplexity_with(&(kn_metric_perplexity_params){KN_METRIC_PERPLEXITY_DEFAULTS, __VA_ARGS__}))

/* --- of classes -------------------------------------------------------------------------------- *
 * target: classes [n, ...] (int64, int32, uint8). output: scores [n, classes, ...], the largest of which (the first of
 * equal ones) is the predicted class; or the predicted classes themselves, integers of the target's shape. With
 * KN_AVERAGE_BINARY, and for a confusion matrix of two classes, output may also be one score per target: those above
 * `threshold` are class 1 (choose 0 for logits: torchmetrics guesses), and the target may be floating, 0 or 1.
 *
 * A class outside 0 .. num_classes - 1 is reported when the device is next synchronised or read; accuracy counts it as
 * wrong. */

typedef enum kn_average {
    KN_AVERAGE_MACRO = 0, /* the mean over the classes that occur or are predicted */
    KN_AVERAGE_MICRO,     /* of all rows together */
    KN_AVERAGE_WEIGHTED,  /* the mean over the classes, each weighted by how often it occurs */
    KN_AVERAGE_NONE,      /* a value per class: kn_metric_values */
    KN_AVERAGE_BINARY     /* the value of class 1 of two */
} kn_average;

/* The share of the rows that are predicted correctly; macro, weighted and none: recall (macro is the balanced
 * accuracy). */
typedef struct kn_metric_accuracy_params {
    int top_k;            /* default 1; k: a row is correct if its class is among the k largest scores */
    kn_average average;   /* default micro, which with binary allows scores per target; others need num_classes */
    int num_classes;      /* default 0: any, for micro and binary */
    double threshold;     /* default 0.5 */
    int64_t ignore_index; /* default -100 */
} kn_metric_accuracy_params;
#define KN_METRIC_ACCURACY_DEFAULTS .top_k = 1, .average = KN_AVERAGE_MICRO, .threshold = 0.5, .ignore_index = -100
KN_API kn_metric_accuracy_params kn_metric_accuracy_params_init(void);
KN_API kn_metric *kn_metric_accuracy_with(const kn_metric_accuracy_params *params);
#define kn_metric_accuracy(...)                                                                                        \
    KN_CALL(kn_metric_accuracy_with(&(kn_metric_accuracy_params){KN_METRIC_ACCURACY_DEFAULTS, __VA_ARGS__}))

/* Of a class, with the counts of rows that have it and are predicted as it (hits), are predicted as it, and have it:
 * precision hits / predicted, recall hits / having, F1 their harmonic mean, 2 hits / (predicted + having). */
typedef struct kn_metric_class_params {
    int num_classes;      /* required, 2 or more; with KN_AVERAGE_BINARY 2, the default */
    kn_average average;   /* default macro */
    double threshold;     /* default 0.5 */
    int64_t ignore_index; /* default -100: rows with this target are left out */
    double zero_division; /* default 0: the value of a class for which the formula divides by 0; 0, 1 or NaN,
                           * which averages leave out */
} kn_metric_class_params;
#define KN_METRIC_CLASS_DEFAULTS .threshold = 0.5, .ignore_index = -100
KN_API kn_metric_class_params kn_metric_class_params_init(void);
KN_API kn_metric *kn_metric_precision_with(const kn_metric_class_params *params);
KN_API kn_metric *kn_metric_recall_with(const kn_metric_class_params *params);
KN_API kn_metric *kn_metric_f1_score_with(const kn_metric_class_params *params);
#define KN_METRIC_CLASS_PARAMS(...)                                                                                    \
    &(kn_metric_class_params) { KN_METRIC_CLASS_DEFAULTS, __VA_ARGS__ }
#define kn_metric_precision(...) KN_CALL(kn_metric_precision_with(KN_METRIC_CLASS_PARAMS(__VA_ARGS__)))
#define kn_metric_recall(...) KN_CALL(kn_metric_recall_with(KN_METRIC_CLASS_PARAMS(__VA_ARGS__)))
#define kn_metric_f1_score(...) KN_CALL(kn_metric_f1_score_with(KN_METRIC_CLASS_PARAMS(__VA_ARGS__)))

/* The area under the curve of true positives against false positives, which is the probability that a row of the class
 * has a higher score than one of another class (equal scores count half): exact, by sorting all scores, which the
 * metric keeps on the device. One score per target and targets 0 and 1, or scores [n, classes, ...]: each class against
 * the rest. Scores of several classes outside [0, 1] are logits: softmax is applied (torchmetrics does so per batch). A
 * class that no row has, or all have, is NaN, and left out of averages. */
typedef struct kn_metric_auroc_params {
    int num_classes;      /* default 0: one score per target */
    kn_average average;   /* default macro; weighted; none: a value per class */
    int64_t ignore_index; /* default -100 */
} kn_metric_auroc_params;
#define KN_METRIC_AUROC_DEFAULTS .ignore_index = -100
KN_API kn_metric_auroc_params kn_metric_auroc_params_init(void);
KN_API kn_metric *kn_metric_auroc_with(const kn_metric_auroc_params *params);
#define kn_metric_auroc(...)                                                                                           \
    KN_CALL(kn_metric_auroc_with(&(kn_metric_auroc_params){KN_METRIC_AUROC_DEFAULTS, __VA_ARGS__}))

/* --- confusion matrices ---------------------------------------------------------------------------- */

typedef enum kn_normalize_mode {
    KN_NORMALIZE_NONE = 0, /* counts */
    KN_NORMALIZE_TRUE,     /* shares of each row, the true class */
    KN_NORMALIZE_PRED,     /* shares of each column, the predicted class */
    KN_NORMALIZE_ALL       /* shares of all */
} kn_normalize_mode;

/* [true class][predicted class]; shares of nothing are 0. */
typedef struct kn_metric_confusion_matrix_params {
    int num_classes; /* required, 2 to 4096 */
    kn_normalize_mode normalize;
    double threshold;     /* default 0.5 */
    int64_t ignore_index; /* default -100 */
} kn_metric_confusion_matrix_params;
#define KN_METRIC_CONFUSION_MATRIX_DEFAULTS .threshold = 0.5, .ignore_index = -100
KN_API kn_metric_confusion_matrix_params kn_metric_confusion_matrix_params_init(void);
KN_API kn_metric *kn_metric_confusion_matrix_with(const kn_metric_confusion_matrix_params *params);
#define kn_metric_confusion_matrix(...)                                                                                \
    KN_CALL(kn_metric_confusion_matrix_with(                                                                           \
        &(kn_metric_confusion_matrix_params){KN_METRIC_CONFUSION_MATRIX_DEFAULTS, __VA_ARGS__}))

/* The matrix, as returned by kn_metric_values, as a table, and as a picture (.svg or .png, drawn by gnuplot;
 * KN_ERR_IO names the package if it is missing). `names` of the classes, NULL: 0, 1, ... The text is freed with
 * kn_free. */
KN_API char *kn_confusion_matrix_text(const kn_tensor *matrix, const char *const *names);
KN_API kn_status kn_confusion_matrix_save_plot(const kn_tensor *matrix, const char *const *names, const char *path);

KN_END_DECLS

#endif
