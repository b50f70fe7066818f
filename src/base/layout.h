/* base/layout.h - text layout for a given page width: tables that drop columns that do not fit, and wrapped lines. */
#pragma once

#include "base/terminal.h"
#include "base/text.h"

/* --- tables ---------------------------------------------------------------------------------------------------- */

/* If the table is wider than the page, first `least` is ignored, then cells are cut, then columns are left out. */
typedef struct kn_table_column {
    const char *title;
    bool is_number; /* right-aligned */
    int least;      /* minimum width */
    int shortest;   /* the least width cells may be cut to, "..." included; 0: not cut */
    int rank;       /* columns of the highest rank are left out first, from the right; 0: never */
} kn_table_column;

/* Start with kn_table t = {.columns = ..., .num_columns = ...}. A failed allocation is reported by kn_table_append
 * through its text (kn_text.failed). */
typedef struct kn_table {
    const kn_table_column *columns;
    int num_columns;
    bool has_rules; /* lines of dashes around the headings and at the end */
    char **cells;   /* row by row */
    int num_cells, capacity;
    bool failed;
} kn_table;

/* Adds the next cell, row by row from the left. Control characters become blanks. */
void kn_table_put(kn_table *table, const char *format, ...) KN_PRINTF(2, 3);

/* Appends the headings (unless all are "") and the rows: columns two blanks apart, no trailing blanks. Returns the
 * number of columns left out. */
int kn_table_append(kn_text *out, const kn_table *table, kn_page page);
void kn_table_free(kn_table *table);

/* --- lines ----------------------------------------------------------------------------------------------------- */

/* Appends `text` to a line that already has `column` characters, wrapped to `width` (0: no limit); continuation lines,
 * also those after a newline, are indented by `indent`. */
void kn_append_wrapped(kn_text *out, const char *text, int column, int indent, int width);

/* Appends a usage text with each line wrapped; an option's description is wrapped within its own column. */
void kn_append_usage(kn_text *out, const char *usage, int width);

/* The number of characters, not bytes, of a UTF-8 text. */
int kn_text_width(const char *text);
