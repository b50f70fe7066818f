/* train/history.c - the figures of each epoch, as CSV and as a table. */
#include "train/history.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/layout.h"
#include "base/memory.h"

/* --- filling it in --------------------------------------------------------------------------------------------- */

kn_status kn_history_add_column(kn_history *history, const char *name)
{
    char **names = kn_realloc(history->names, (size_t)(history->columns + 1) * sizeof *names);
    if (names == NULL)
        return KN_ERR_MEMORY;
    history->names = names;
    names[history->columns] = kn_strdup(name);
    if (names[history->columns] == NULL)
        return KN_ERR_MEMORY;
    history->columns++;
    return KN_OK;
}

static kn_status add_prefixed(kn_history *history, const char *prefix, const char *name)
{
    kn_text text = {0};
    kn_text_format(&text, "%s%s", prefix, name);
    char *column = kn_text_finish(&text);
    kn_status status = column != NULL ? kn_history_add_column(history, column) : KN_ERR_MEMORY;
    kn_free(column);
    return status;
}

kn_status kn_history_start(kn_history *history, const char *const *metrics, int num_metrics, bool validation,
                           bool grad_norm)
{
    static const char *const passes[] = {"train_", "val_"};
    kn_history_clear(history);
    KN_TRY(kn_history_add_column(history, "epoch"));
    for (int p = 0; p < (validation ? 2 : 1); p++) {
        KN_TRY(add_prefixed(history, passes[p], "loss"));
        for (int i = 0; i < num_metrics; i++)
            KN_TRY(add_prefixed(history, passes[p], metrics[i]));
    }
    if (grad_norm)
        KN_TRY(kn_history_add_column(history, "grad_norm"));
    return kn_history_add_column(history, "lr");
}

kn_status kn_history_append(kn_history *history, const double *row)
{
    const size_t bytes = (size_t)history->columns * sizeof *row;
    KN_TRY(kn_grow(&history->values, history->epochs, &history->capacity, bytes));
    memcpy(history->values + (size_t)history->epochs * (size_t)history->columns, row, bytes);
    history->epochs++;
    return KN_OK;
}

int kn_history_find(const kn_history *history, const char *name)
{
    for (int c = 0; c < history->columns; c++) {
        if (strcmp(history->names[c], name) == 0)
            return c;
    }
    return -1;
}

void kn_history_clear(kn_history *history)
{
    for (int c = 0; c < history->columns; c++)
        kn_free(history->names[c]);
    kn_free(history->names);
    kn_free(history->values);
    *history = (kn_history){0};
}

/* --- reading it ------------------------------------------------------------------------------------------------ */

int kn_history_epochs(const kn_history *history) { return history == NULL ? 0 : history->epochs; }
int kn_history_columns(const kn_history *history) { return history == NULL ? 0 : history->columns; }

const char *kn_history_column(const kn_history *history, int column)
{
    return history == NULL || column < 0 || column >= history->columns ? "" : history->names[column];
}

double kn_history_value(const kn_history *history, int epoch, int column)
{
    bool there = history != NULL && epoch >= 0 && epoch < history->epochs && column >= 0 && column < history->columns;
    return there ? history->values[(size_t)epoch * (size_t)history->columns + (size_t)column] : 0;
}

static void append_names(kn_text *text, const kn_history *history)
{
    for (int c = 0; c < history->columns; c++)
        kn_text_format(text, "%s%s", c > 0 ? "," : "", history->names[c]);
}

char *kn_history_column_names(const kn_history *history)
{
    kn_text text = {0};
    append_names(&text, history);
    return kn_text_finish(&text);
}

static char *csv_of(const kn_history *history)
{
    kn_text text = {0};
    char number[KN_NUMBER_TEXT];
    append_names(&text, history);
    kn_text_append(&text, "\n");
    for (int e = 0; e < history->epochs; e++) {
        for (int c = 0; c < history->columns; c++)
            kn_text_format(&text, "%s%s", c > 0 ? "," : "", kn_format_number(number, kn_history_value(history, e, c)));
        kn_text_append(&text, "\n");
    }
    return kn_text_finish(&text);
}

kn_status kn_history_save_csv(const kn_history *history, const char *path)
{
    if (history == NULL || path == NULL)
        return kn_fail_argument_null("history_save_csv", history == NULL ? "history" : "path");
    char *text = csv_of(history);
    if (text == NULL)
        return KN_ERR_MEMORY;
    kn_status status = kn_file_save_text(path, text);
    kn_free(text);
    return status;
}

/* Losses and accuracies with four decimals, epochs and steps as integers, the learning rate with four digits. */
static void put_cell(kn_table *table, const char *name, double value)
{
    if (strcmp(name, "epoch") == 0 || strcmp(name, "step") == 0)
        kn_table_put(table, "%lld", (long long)value);
    else
        kn_table_put(table, strcmp(name, "lr") == 0 ? "%.4g" : "%.4f", value);
}

static void put_rows(kn_table *table, const kn_history *history)
{
    for (int e = 0; e < history->epochs; e++) {
        for (int c = 0; c < history->columns; c++)
            put_cell(table, history->names[c], kn_history_value(history, e, c));
        kn_table_put(table, "%s", (int)kn_history_value(history, e, 0) == history->best_epoch ? "best" : "");
    }
}

char *kn_history_table(const kn_history *history)
{
    if (history == NULL) {
        kn_fail_argument_null("history_table", "history");
        return NULL;
    }
    kn_table_column *columns = kn_calloc((size_t)history->columns + 1, sizeof *columns);
    if (columns == NULL)
        return NULL;
    for (int c = 0; c < history->columns; c++)
        columns[c] = (kn_table_column){.title = history->names[c], .is_number = true, .least = c > 0 ? 8 : 0};
    columns[history->columns].title = "";
    kn_table table = {.columns = columns, .num_columns = history->columns + 1};
    kn_text text = {0};
    put_rows(&table, history);
    kn_table_append(&text, &table, (kn_page){0});
    kn_table_free(&table);
    kn_free(columns);
    return kn_text_finish(&text);
}
