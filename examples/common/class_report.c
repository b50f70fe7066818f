/* common/class_report.c - figures per class, computed in one pass over the data. */
#include "common/class_report.h"

#include <stdio.h>
#include <stdlib.h>

enum { PRECISION, RECALL, F1, MATRIX, METRICS };

/* The values of a metric, which the caller frees. */
static double *values_of(kn_metric *metric)
{
    KN_SCOPE;
    kn_tensor *values = kn_metric_values(metric);
    if (values == NULL)
        return NULL;
    const size_t bytes = (size_t)kn_numel(values) * sizeof(double);
    double *copy = malloc(bytes);
    if (copy != NULL && kn_read(values, copy, bytes) == KN_OK)
        return copy;
    free(copy);
    return NULL;
}

static kn_status show_classes(kn_metric *const *metrics, const char *const *names, int classes)
{
    double *values[MATRIX] = {values_of(metrics[PRECISION]), values_of(metrics[RECALL]), values_of(metrics[F1])};
    kn_status status = kn_error_status();
    if (status == KN_OK)
        printf("\n%-16s %9s %9s %9s\n", "class", "precision", "recall", "F1");
    for (int c = 0; c < classes && status == KN_OK; c++)
        printf("%-16s %9.3f %9.3f %9.3f\n", names[c], values[PRECISION][c], values[RECALL][c], values[F1][c]);
    for (int m = 0; m < MATRIX; m++)
        free(values[m]);
    return status;
}

/* A missing gnuplot is no error. */
static void draw(const kn_tensor *matrix, const char *const *names, const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/confusion.svg", folder);
    if (kn_confusion_matrix_save_plot(matrix, names, path) == KN_OK) {
        printf("written to %s\n", path);
        return;
    }
    printf("no picture was drawn: %s\n", kn_error_message());
    kn_error_clear();
}

static kn_status show_matrix(kn_metric *metric, const char *const *names, const char *folder)
{
    KN_SCOPE;
    kn_tensor *matrix = kn_metric_values(metric);
    char *text = matrix != NULL ? kn_confusion_matrix_text(matrix, names) : NULL;
    if (text == NULL)
        return kn_error_status();
    printf("\n%s\n", text);
    kn_free(text);
    if (folder != NULL)
        draw(matrix, names, folder);
    return KN_OK;
}

kn_status class_report(kn_trainer *trainer, kn_loader *data, const char *const *names, int classes, const char *folder)
{
    kn_metric *const metrics[METRICS] = {
        [PRECISION] = kn_metric_precision(.num_classes = classes, .average = KN_AVERAGE_NONE),
        [RECALL] = kn_metric_recall(.num_classes = classes, .average = KN_AVERAGE_NONE),
        [F1] = kn_metric_f1_score(.num_classes = classes, .average = KN_AVERAGE_NONE),
        [MATRIX] = kn_metric_confusion_matrix(.num_classes = classes)};
    kn_status status = kn_error_status();
    if (status == KN_OK)
        status = kn_trainer_measure(trainer, data, metrics, METRICS);
    if (status == KN_OK)
        status = show_classes(metrics, names, classes);
    if (status == KN_OK)
        status = show_matrix(metrics[MATRIX], names, folder);
    for (int m = 0; m < METRICS; m++)
        kn_metric_free(metrics[m]);
    return status;
}
