/* train/history.h - the figures of each epoch, or of each logged step, as filled in by the trainer. */
#pragma once

#include <koine/train.h>

#include "base/text.h"

#define KN_HISTORY_EPOCH_COLUMNS 7 /* maximum number of columns per epoch */

struct kn_history {
    char **names;
    int columns, epochs, capacity; /* epochs: rows in use */
    int best_epoch;                /* from 1; 0: none yet; marked in the table and the plot */
    double *values;                /* [epochs][columns] */
};

/* Clears it and sets the columns: epoch, train_loss, train_acc, val_loss, val_acc, grad_norm, lr, without the unwanted
 * ones. */
kn_status kn_history_start(kn_history *history, bool accuracy, bool validation, bool grad_norm);
/* only while there are no rows; copies the name */
kn_status kn_history_add_column(kn_history *history, const char *name);
kn_status kn_history_append(kn_history *history, const double *row);
int kn_history_find(const kn_history *history, const char *name); /* the column's index, or -1 */
void kn_history_clear(kn_history *history);                       /* frees rows and columns */
