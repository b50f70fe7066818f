/* train/plot.c - loss, accuracy, learning rate and gradient norm against epoch or step, as a script for gnuplot;
 * base/plot.c runs it. */
#include <math.h>
#include <string.h>

#include "base/error.h"
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

/* The panels: one per figure, with one or two columns; drawn if the first exists. */
static const struct panel {
    const char *column, *validation, *title;
    bool is_share; /* from 0 to 1 */
    bool is_rate;  /* from zero, or logarithmic */
} panels[] = {{"train_loss", "val_loss", "Loss", false, false},   {"loss", NULL, "Loss", false, false},
              {"train_acc", "val_acc", "Accuracy", true, false},  {"acc", NULL, "Accuracy", true, false},
              {"grad_norm", NULL, "Gradient norm", false, false}, {"lr", NULL, "Learning rate", false, true}};
#define PANELS (sizeof panels / sizeof panels[0])

static int count_panels(const kn_history *history)
{
    int count = 0;
    for (size_t i = 0; i < PANELS; i++)
        count += kn_history_find(history, panels[i].column) >= 0;
    return count;
}

static void append_vertical_axis(kn_text *script, const kn_history *history, const struct panel *panel)
{
    extent e = {0};
    include(&e, history, kn_history_find(history, panel->column));
    if (panel->validation != NULL)
        include(&e, history, kn_history_find(history, panel->validation));
    if (panel->is_rate && e.known && e.low > 0 && e.high / e.low >= DECADES) {
        append_logarithmic_axis(script, e);
        return;
    }
    if (panel->is_rate && e.known) {
        e.low = fmin(e.low, 0);
        e.high *= 1.1; /* often constant at its maximum: keep the line off the edge */
    }
    append_linear_axis(script, e, panel->is_share);
}

/* Marks points if there are few. */
static void append_panel(kn_text *script, const kn_history *history, const struct panel *panel)
{
    const char *with = history->epochs > 100 ? "lines" : "linespoints";
    int column = kn_history_find(history, panel->column);
    int validation = panel->validation != NULL ? kn_history_find(history, panel->validation) : -1;
    if (column < 0)
        return;
    append_vertical_axis(script, history, panel);
    kn_text_format(script, "set title '%s' offset 0, 0.6\nset key %s right\n", panel->title,
                   panel->is_share ? "bottom" : "top");
    kn_text_format(script, "plot $history using 1:%d with %s ls 1 %s", column + 1, with,
                   panel->validation != NULL ? "title 'training'" : "notitle");
    if (validation >= 0)
        kn_text_format(script, ", $history using 1:%d with %s ls 2 title 'validation'", validation + 1, with);
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
    int count = count_panels(history);
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
    for (size_t i = 0; i < PANELS; i++)
        append_panel(script, history, &panels[i]);
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
