/* train/history.h - the figures of each epoch, or of each logged step, as filled in by the trainer. */
#pragma once

#include <koine/train.h>

#include "base/text.h"

#define KN_TRAINER_METRICS 16                                 /* maximum number, accuracy included */
#define KN_HISTORY_EPOCH_COLUMNS (5 + 2 * KN_TRAINER_METRICS) /* maximum number of columns per epoch */

struct kn_history {
    char **names;
    int columns, epochs, capacity; /* epochs: rows in use */
    int best_epoch;                /* from 1; 0: none yet; marked in the table and the plot */
    double *values;                /* [epochs][columns] */
};

/* Clears it and sets the columns: epoch, train_loss and train_NAME of each metric, val_loss and val_NAME, grad_norm, lr,
 * without the unwanted ones. */
kn_status kn_history_start(kn_history *history, const char *const *metrics, int num_metrics, bool validation,
                           bool grad_norm);
/* only while there are no rows; copies the name */
kn_status kn_history_add_column(kn_history *history, const char *name);
kn_status kn_history_append(kn_history *history, const double *row);
char *kn_history_column_names(const kn_history *history);         /* joined by commas; freed with kn_free */
int kn_history_find(const kn_history *history, const char *name); /* the column's index, or -1 */
void kn_history_clear(kn_history *history);                       /* frees rows and columns */
