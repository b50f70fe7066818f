/* train/history.h - the figures of each epoch, or of each step that was logged, as the trainer fills them in. */
#ifndef KN_TRAIN_HISTORY_H
#define KN_TRAIN_HISTORY_H

#include <koine/train.h>

#define KN_HISTORY_EPOCH_COLUMNS 7 /* at most, of the figures of epochs */
#define KN_NUMBER_TEXT 40

struct kn_history {
    char **names;
    int columns, epochs, capacity; /* epochs: rows in use */
    int best_epoch;                /* from 1; 0: none yet; marked in the table and the plot */
    double *values;                /* [epochs][columns] */
};

/* Empties it and sets the columns: epoch, train_loss, train_acc, val_loss, val_acc, grad_norm, lr, without those that
 * are not wanted. */
kn_status kn_history_start(kn_history *history, bool accuracy, bool validation, bool grad_norm);
kn_status kn_history_add_column(kn_history *history, const char *name); /* while it has no rows; the name is copied */
kn_status kn_history_append(kn_history *history, const double *row);
int kn_history_find(const kn_history *history, const char *name); /* a column's index, -1 when there is none */
void kn_history_clear(kn_history *history);                       /* frees rows and columns */

/* The shortest text that reads back as exactly `value`, with a point whatever the locale. Returns buffer. */
const char *kn_format_number(char buffer[KN_NUMBER_TEXT], double value);

#endif
