/* train/plot.c - loss, metrics, learning rate and gradient norm against epoch or step, as a script for gnuplot;
 * base/plot.c runs it. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/plot.h"
#include "train/history.h"
#include "train/interrupt.h"

static void append_data(kn_text *script, const kn_history *history)
{
    char number[KN_NUMBER_TEXT];
    kn_text_append(script, "$history << EOD\n");
    for (int e = 0; e < history->epochs; e++) {
        for (int c = 0; c < history->columns; c++)
            kn_text_format(script, "%s ", kn_format_number(number, kn_history_value(history, e, c)));
        kn_text_append(script, "\n");
    }
    kn_text_append(script, "EOD\n");
}

/* --- axes ------------------------------------------------------------------------------------------------------ */

#define INTERVALS 5  /* approximate number, between ticks */
#define DECADES 50.0 /* ratio from which a logarithmic scale is used */

/* The smallest of 1, 2, 5, 10, 20, ... (and 0.5, 0.2, ...) that is not below `least`. */
static double round_step(double least)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(least)));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (steps[i] * power >= least * (1 - 1e-9))
            return steps[i] * power;
    return 10 * power;
}

typedef struct extent {
    double low, high; /* of the finite values */
    bool known;       /* there is at least one */
} extent;

static void include(extent *e, const kn_history *history, int column)
{
    for (int row = 0; column >= 0 && row < history->epochs; row++) {
        double value = kn_history_value(history, row, column);
        if (!isfinite(value))
            continue;
        e->low = e->known ? fmin(e->low, value) : value;
        e->high = e->known ? fmax(e->high, value) : value;
        e->known = true;
    }
}

/* Ticks at round numbers, the first and the last of them at the axis' ends. */
static void append_linear_axis(kn_text *script, extent e, bool is_share)
{
    if (!e.known || e.low == e.high) { /* all values equal: from zero to slightly above it */
        e.low = e.known ? fmin(e.low, 0) : 0;
        e.high = e.known && e.high > 0 ? 1.1 * e.high : e.known && e.low < 0 ? 0 : 1;
    }
    double step = round_step((e.high - e.low) / INTERVALS);
    double low = floor(e.low / step + 1e-9) * step, high = ceil(e.high / step - 1e-9) * step;
    high = is_share && high > 1 ? 1 : high; /* accuracy cannot exceed 1 */
    kn_text_format(script, "unset logscale y\nset yrange [%.10g:%.10g]\nset ytics %.10g, %.10g\nset format y '%%g'\n",
                   low, high, low, step);
}

static void append_logarithmic_axis(kn_text *script, extent e)
{
    kn_text_format(script, "set logscale y\nset yrange [%.10g:%.10g]\nset ytics autofreq\nset format y '%%g'\n",
                   pow(10, floor(log10(e.low))), pow(10, ceil(log10(e.high))));
}

/* Ticks at multiples of a round number of epochs or steps. */
static void append_horizontal_axis(kn_text *script, const kn_history *history)
{
    double first = kn_history_value(history, 0, 0), last = kn_history_value(history, history->epochs - 1, 0);
    double room = first == last ? 0.5 : 0; /* gnuplot cannot draw an axis of length zero */
    double step = last - first > 10 ? round_step((last - first) / 10) : 1;
    kn_text_format(script, "set xlabel '%s'\nset xrange [%.10g:%.10g]\nset xtics %.10g\n",
                   kn_history_column(history, 0), first - room, last + room, step);
}

/* --- panels ---------------------------------------------------------------------------------------------------- */

/* A panel: one figure, with one or two columns. */
typedef struct panel {
    int column, validation; /* validation: -1 if there is none */
    const char *title;
    bool is_share; /* from 0 to 1 */
    bool is_rate;  /* from zero, or logarithmic */
} panel;

static const char *title_of(const char *figure)
{
    static const char *const titles[][2] = {
        {"loss", "Loss"}, {"acc", "Accuracy"}, {"grad_norm", "Gradient norm"}, {"lr", "Learning rate"}};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (strcmp(figure, titles[i][0]) == 0)
            return titles[i][1];
    return figure;
}

static bool starts_with(const char *name, const char *start) { return strncmp(name, start, strlen(start)) == 0; }

/* The figure of a column, without the pass; NULL for columns that have no panel of their own. */
static const char *figure_of(const char *column)
{
    if (strcmp(column, "epoch") == 0 || strcmp(column, "step") == 0 || starts_with(column, "val_") ||
        starts_with(column, "grad_norm."))
        return NULL;
    return starts_with(column, "train_") ? column + strlen("train_") : column;
}

static int find_validation(const kn_history *history, const char *figure)
{
    for (int c = 0; c < history->columns; c++)
        if (starts_with(history->names[c], "val_") && strcmp(history->names[c] + strlen("val_"), figure) == 0)
            return c;
    return -1;
}

/* Are all known values from 0 to 1? */
static bool are_shares(const kn_history *history, int column, int validation)
{
    extent e = {0};
    include(&e, history, column);
    include(&e, history, validation);
    return e.known && e.low >= 0 && e.high <= 1;
}

/* Sorts the learning rate last, and before it the norm of the gradients. */
static int rank_of(const char *figure) { return strcmp(figure, "lr") == 0 ? 2 : strcmp(figure, "grad_norm") == 0; }

/* Returns how many there are; `panels` may be NULL. */
static int list_panels(const kn_history *history, panel *panels)
{
    int count = 0;
    for (int rank = 0; rank < 3; rank++)
        for (int c = 0; c < history->columns; c++) {
            const char *figure = figure_of(history->names[c]);
            if (figure == NULL || rank_of(figure) != rank)
                continue;
            const int validation = find_validation(history, figure);
            if (panels != NULL)
                panels[count] =
                    (panel){.column = c,
                            .validation = validation,
                            .title = title_of(figure),
                            .is_share = rank == 0 && strcmp(figure, "loss") != 0 && are_shares(history, c, validation),
                            .is_rate = rank == 2};
            count++;
        }
    return count;
}

static void append_vertical_axis(kn_text *script, const kn_history *history, const panel *p)
{
    extent e = {0};
    include(&e, history, p->column);
    include(&e, history, p->validation);
    if (p->is_rate && e.known && e.low > 0 && e.high / e.low >= DECADES) {
        append_logarithmic_axis(script, e);
        return;
    }
    if (p->is_rate && e.known) {
        e.low = fmin(e.low, 0);
        e.high *= 1.1; /* often constant at its maximum: keep the line off the edge */
    }
    append_linear_axis(script, e, p->is_share);
}

/* Marks points if there are few. */
static void append_panel(kn_text *script, const kn_history *history, const panel *p)
{
    const char *with = history->epochs > 100 ? "lines" : "linespoints";
    append_vertical_axis(script, history, p);
    kn_text_format(script, "set title '%s' noenhanced offset 0, 0.6\nset key %s right\n", p->title,
                   p->is_share ? "bottom" : "top");
    kn_text_format(script, "plot $history using 1:%d with %s ls 1 %s", p->column + 1, with,
                   starts_with(history->names[p->column], "train_") ? "title 'training'" : "notitle");
    if (p->validation >= 0)
        kn_text_format(script, ", $history using 1:%d with %s ls 2 title 'validation'", p->validation + 1, with);
    kn_text_append(script, "\n");
}

/* A vertical line through all panels, labelled above them. */
static void append_best(kn_text *script, const kn_history *history)
{
    double first = kn_history_value(history, 0, 0), last = kn_history_value(history, history->epochs - 1, 0);
    double place = last > first ? (history->best_epoch - first) / (last - first) : 0.5;
    if (history->best_epoch <= 0)
        return;
    kn_text_format(script,
                   "set arrow 1 from %d, graph 0 to %d, graph 1 nohead dt 2 lw 1 lc rgb '#888888'\n"
                   "set label 1 'best: %d' at %d, graph 1 %s offset 0, 0.6 textcolor rgb '#666666'\n",
                   history->best_epoch, history->best_epoch, history->best_epoch, history->best_epoch,
                   place > 0.8   ? "right"
                   : place < 0.2 ? "left"
                                 : "center");
}

/* --- the picture ----------------------------------------------------------------------------------------------- */

typedef struct layout {
    int rows, columns, width, height;
} layout;

static layout layout_of(const kn_history *history)
{
    int count = list_panels(history, NULL);
    if (count > 3)
        return (layout){.rows = (count + 1) / 2, .columns = 2, .width = 1000, .height = 360 * ((count + 1) / 2) + 40};
    return (layout){.rows = 1,
                    .columns = count > 0 ? count : 1,
                    .width = count == 3   ? 1140
                             : count == 2 ? 900
                                          : 560,
                    .height = 400};
}

static void append_title(kn_text *script, const kn_history *history)
{
    const char *unit = kn_history_column(history, 0);
    int last = (int)kn_history_value(history, history->epochs - 1, 0);
    kn_text_format(script, "title 'Training, %d %s%s", last, unit, last == 1 ? "" : "s");
    if (history->best_epoch > 0)
        kn_text_format(script, "; the best is %s %d", unit, history->best_epoch);
    kn_text_append(script, "'");
}

static void write_script(kn_text *script, const void *subject)
{
    const kn_history *history = subject;
    const layout l = layout_of(history);
    append_data(script, history);
    kn_text_append(script, "set style line 1 lc rgb '#3b6ea8' lw 2 pt 7 ps 0.5\n"
                           "set style line 2 lc rgb '#d1662a' lw 2 pt 7 ps 0.5\n"
                           "set tmargin 4\n");
    append_horizontal_axis(script, history);
    append_best(script, history);
    kn_text_format(script, "set multiplot layout %d, %d ", l.rows, l.columns);
    append_title(script, history);
    kn_text_append(script, "\n");
    panel *panels = kn_calloc((size_t)list_panels(history, NULL), sizeof *panels);
    const int count = panels != NULL ? list_panels(history, panels) : 0;
    for (int i = 0; i < count; i++)
        append_panel(script, history, &panels[i]);
    script->failed = script->failed || panels == NULL;
    kn_free(panels);
    kn_text_append(script, "unset multiplot\n");
}

kn_status kn_history_save_plot(const kn_history *history, const char *path)
{
    if (history == NULL || path == NULL)
        return kn_fail_argument_null("history_save_plot", history == NULL ? "history" : "path");
    KN_TRY(kn_plot_check_path(path));
    if (history->epochs == 0)
        return kn_fail(KN_ERR_STATE, "plot: the history is empty; there is nothing to draw in %s", path);
    const layout l = layout_of(history);
    const kn_plot plot = {
        .width = l.width, .height = l.height, .write = write_script, .subject = history, .is_exiting = kn_interrupted};
    return kn_plot_save(&plot, path);
}
