/* base/layout.c - see base/layout.h. */
#include "base/layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define GAP 2 /* blanks between columns */

static bool is_continuation(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

static int width_of(const char *text, size_t bytes)
{
    int width = 0;
    for (size_t i = 0; i < bytes; i++)
        width += !is_continuation(text[i]);
    return width;
}

int kn_text_width(const char *text) { return width_of(text, strlen(text)); }

/* --- filling a table in ------------------------------------------------------------------------------------------- */

void kn_table_put(kn_table *table, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == '\x7f')
            *c = ' ';
    char *cell = NULL;
    if (!table->failed && KN_GROW(table->cells, table->num_cells, table->capacity) == KN_OK)
        cell = kn_strdup(text);
    if (cell)
        table->cells[table->num_cells++] = cell;
    else
        table->failed = true;
}

void kn_table_free(kn_table *table)
{
    for (int i = 0; i < table->num_cells; i++)
        kn_free(table->cells[i]);
    kn_free(table->cells);
    table->cells = NULL;
    table->num_cells = table->capacity = 0;
}

/* --- fitting it to a page ----------------------------------------------------------------------------------------- */

/* Of a column. natural: the width of its longest cell; smallest: the least width it may be cut to. */
typedef struct fit {
    int natural, smallest, width;
    bool shown;
} fit;

static int rows_of(const kn_table *table) { return table->num_cells / table->num_columns; }

static const char *cell_at(const kn_table *table, int row, int column)
{
    return table->cells[row * table->num_columns + column];
}

static int larger(int a, int b) { return a > b ? a : b; }
static int smaller(int a, int b) { return a < b ? a : b; }

static int total_width(const kn_table *table, const fit *f, bool smallest)
{
    int sum = -GAP;
    for (int c = 0; c < table->num_columns; c++)
        sum += f[c].shown ? (smallest ? f[c].smallest : f[c].width) + GAP : 0;
    return sum;
}

static void measure(fit *f, const kn_table *table)
{
    for (int c = 0; c < table->num_columns; c++) {
        const kn_table_column *column = &table->columns[c];
        int title = kn_text_width(column->title);
        f[c].natural = title;
        for (int r = 0; r < rows_of(table); r++)
            f[c].natural = larger(f[c].natural, kn_text_width(cell_at(table, r, c)));
        int cut = larger(column->shortest, title);
        f[c].smallest = column->shortest > 0 ? smaller(cut, f[c].natural) : f[c].natural;
        f[c].width = larger(f[c].natural, column->least);
        f[c].shown = true;
    }
}

/* Leaves out one column; false if no other may be dropped. */
static bool drop_one(fit *f, const kn_table *table)
{
    int last = -1;
    for (int c = 0; c < table->num_columns; c++)
        if (f[c].shown && table->columns[c].rank > 0 &&
            (last < 0 || table->columns[c].rank >= table->columns[last].rank))
            last = c;
    if (last >= 0)
        f[last].shown = false;
    return last >= 0;
}

/* The remaining width goes to the columns that were cut, from the left. */
static void fit_to(fit *f, const kn_table *table, int page)
{
    while (total_width(table, f, true) > page && drop_one(f, table))
        ;
    int spare = page - total_width(table, f, true);
    for (int c = 0; c < table->num_columns; c++) {
        f[c].width = f[c].smallest;
        if (!f[c].shown || spare <= 0)
            continue;
        int more = smaller(spare, f[c].natural - f[c].smallest);
        f[c].width += more;
        spare -= more;
    }
}

/* --- printing it -------------------------------------------------------------------------------------------------- */

/* `text` cut to `width` characters, ending in "..." if it was longer. */
static void append_cut(kn_text *out, const char *text, int width)
{
    bool fits = kn_text_width(text) <= width;
    int left = fits ? width : larger(width - 3, 0);
    const char *end = text;
    while (*end && (left > 0 || is_continuation(*end)))
        left -= !is_continuation(*end++);
    kn_text_append_bytes(out, text, (size_t)(end - text));
    if (!fits)
        kn_text_append(out, "...");
}

static void append_blanks(kn_text *out, int count)
{
    if (count > 0)
        kn_text_format(out, "%*s", count, "");
}

/* Padding is written only once something follows it. */
static void append_row(kn_text *out, const kn_table *table, const fit *f, int row)
{
    int owed = 0;
    for (int c = 0; c < table->num_columns; c++) {
        if (!f[c].shown)
            continue;
        const char *text = row < 0 ? table->columns[c].title : cell_at(table, row, c);
        int padding = larger(f[c].width - kn_text_width(text), 0);
        if (*text) {
            append_blanks(out, owed + (table->columns[c].is_number ? padding : 0));
            append_cut(out, text, f[c].width);
            owed = GAP + (table->columns[c].is_number ? 0 : padding);
        } else {
            owed += f[c].width + GAP;
        }
    }
    kn_text_append(out, "\n");
}

static void append_rule(kn_text *out, const kn_table *table, const fit *f)
{
    int owed = 0;
    for (int c = 0; c < table->num_columns; c++) {
        if (!f[c].shown)
            continue;
        append_blanks(out, owed);
        for (int i = 0; i < f[c].width; i++)
            kn_text_append(out, "-");
        owed = GAP;
    }
    kn_text_append(out, "\n");
}

static bool has_titles(const kn_table *table)
{
    for (int c = 0; c < table->num_columns; c++)
        if (*table->columns[c].title)
            return true;
    return false;
}

int kn_table_append(kn_text *out, const kn_table *table, kn_page page)
{
    int hidden = 0;
    fit *f = table->failed ? NULL : kn_calloc((size_t)table->num_columns, sizeof *f);
    out->failed |= !f;
    if (!f)
        return 0;
    measure(f, table);
    if (page.width > 0 && total_width(table, f, false) > page.width)
        fit_to(f, table, page.width);
    if (table->has_rules)
        append_rule(out, table, f);
    if (has_titles(table)) {
        kn_text_append(out, kn_colour_on(page, KN_COLOUR_BOLD));
        append_row(out, table, f, -1);
        kn_text_append(out, kn_colour_off(page));
    }
    if (table->has_rules)
        append_rule(out, table, f);
    for (int r = 0; r < rows_of(table); r++)
        append_row(out, table, f, r);
    if (table->has_rules)
        append_rule(out, table, f);
    for (int c = 0; c < table->num_columns; c++)
        hidden += !f[c].shown;
    kn_free(f);
    return hidden;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void break_line(kn_text *out, int indent)
{
    kn_text_append(out, "\n");
    append_blanks(out, indent);
}

void kn_append_wrapped(kn_text *out, const char *text, int column, int indent, int width)
{
    bool first = true; /* the first word of a line stays, however long it is */
    while (*text) {
        int blanks = (int)strspn(text, " ");
        const char *word = text + blanks;
        size_t length = strcspn(word, " \n");
        int wide = width_of(word, length);
        if (width > 0 && !first && column + blanks + wide > width) {
            break_line(out, indent);
            column = indent;
        } else {
            append_blanks(out, blanks);
            column += blanks;
        }
        kn_text_append_bytes(out, word, length);
        column += wide;
        text = word + length;
        first = *text == '\n';
        if (first) {
            break_line(out, indent);
            column = indent;
            text++;
        }
    }
}

/* Where a line's continuation is indented to: an option's description (two or more blanks after its name), else the
 * line's first word. */
static int description_of(const char *line)
{
    size_t start = strspn(line, " ");
    const char *gap = start > 0 ? strstr(line + start, "  ") : NULL;
    return gap ? (int)(gap - line + (ptrdiff_t)strspn(gap, " ")) : (int)start;
}

void kn_append_usage(kn_text *out, const char *usage, int width)
{
    while (*usage) {
        size_t length = strcspn(usage, "\n");
        char line[1024];
        snprintf(line, sizeof line, "%.*s", (int)length, usage);
        int indent = strncmp(line, "usage: ", 7) == 0 ? 7 : description_of(line);
        append_blanks(out, (int)strspn(line, " "));
        kn_append_wrapped(out, line + strspn(line, " "), (int)strspn(line, " "), indent, width);
        kn_text_append(out, "\n");
        usage += length + (usage[length] == '\n');
    }
}
