/* base/layout.h - text laid out for a page: tables that leave out what there is no room for, and wrapped lines. */
#ifndef KN_BASE_LAYOUT_H
#define KN_BASE_LAYOUT_H

#include "base/terminal.h"
#include "base/text.h"

/* --- tables ---------------------------------------------------------------------------------------------------- */

/* Where the table is wider than the page, first `least` is given up, then cells are cut, then columns are left out. */
typedef struct kn_table_column {
    const char *title;
    bool is_number; /* stands to the right */
    int least;      /* at least so wide */
    int shortest;   /* cells may be cut to so many characters, "..." included; 0: they are not cut */
    int rank;       /* the highest goes first, of equals the last; 0: it stays */
} kn_table_column;

/* Start with kn_table t = {.columns = ..., .num_columns = ...}. Failed allocations are told by kn_table_append's text
 * (kn_text.failed). */
typedef struct kn_table {
    const kn_table_column *columns;
    int num_columns;
    bool has_rules; /* lines of dashes around the headings and at the end */
    char **cells;   /* row by row */
    int num_cells, capacity;
    bool failed;
} kn_table;

/* The next cell, row by row from the left. Characters that control a terminal become blanks. */
void kn_table_put(kn_table *table, const char *format, ...) KN_PRINTF(2, 3);

/* The headings (unless all are "") and the rows, columns two blanks apart, no blanks at a line's end. Returns how many
 * columns were left out. */
int kn_table_append(kn_text *out, const kn_table *table, kn_page page);
void kn_table_free(kn_table *table);

/* --- lines ----------------------------------------------------------------------------------------------------- */

/* Appends the words of `text`, which follow `column` characters that the line has already; what does not fit within
 * `width` (0: no limit), and what follows a newline, goes to further lines, indented by `indent`. */
void kn_append_wrapped(kn_text *out, const char *text, int column, int indent, int width);

/* A usage text: each of its lines wrapped, the words of an option's description below each other. */
void kn_append_usage(kn_text *out, const char *usage, int width);

/* Characters, not bytes, of a UTF-8 text. */
int kn_text_width(const char *text);

#endif
