/* train/plot.c - loss, accuracy and gradient norm against epoch or step, as a script for gnuplot; base/plot.c runs it.
 */
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

/* What may be drawn: a panel per figure, of one or two columns, where the first is there. */
static const struct panel {
    const char *column, *validation, *title;
} panels[] = {{"train_loss", "val_loss", "Loss"},
              {"loss", NULL, "Loss"},
              {"train_acc", "val_acc", "Accuracy"},
              {"acc", NULL, "Accuracy"},
              {"grad_norm", NULL, "Gradient norm"}};
#define PANELS (sizeof panels / sizeof panels[0])

static int count_panels(const kn_history *history)
{
    int count = 0;
    for (size_t i = 0; i < PANELS; i++)
        count += kn_history_find(history, panels[i].column) >= 0;
    return count;
}

/* Points are marked where they are few. */
static void append_panel(kn_text *script, const kn_history *history, const struct panel *panel)
{
    const char *with = history->epochs > 100 ? "lines" : "linespoints";
    int column = kn_history_find(history, panel->column);
    int validation = panel->validation != NULL ? kn_history_find(history, panel->validation) : -1;
    if (column < 0)
        return;
    bool falls = strstr(panel->column, "acc") == NULL;
    kn_text_format(script, "set title '%s'\nset key %s right\n", panel->title, falls ? "top" : "bottom");
    kn_text_format(script, "plot $history using 1:%d with %s ls 1 %s", column + 1, with,
                   panel->validation != NULL ? "title 'training'" : "notitle");
    if (validation >= 0)
        kn_text_format(script, ", $history using 1:%d with %s ls 2 title 'validation'", validation + 1, with);
    kn_text_append(script, "\n");
}

static void append_style(kn_text *script, const kn_history *history)
{
    kn_text_append(script, "set style line 1 lc rgb '#3b6ea8' lw 2 pt 7 ps 0.5\n"
                           "set style line 2 lc rgb '#d1662a' lw 2 pt 7 ps 0.5\n"
                           "set offsets graph 0, 0, graph 0.06, graph 0.06\n");
    kn_text_format(script, "set xlabel '%s'\n", kn_history_column(history, 0));
    int first = (int)kn_history_value(history, 0, 0), last = (int)kn_history_value(history, history->epochs - 1, 0);
    int room = first == last ? 1 : 0; /* an axis of no length cannot be drawn */
    kn_text_format(script, "set xrange [%d:%d]\n", first - room, last + room);
    if (last - first < 100) /* whole numbers; elsewhere gnuplot's choice is one of round ones */
        kn_text_format(script, "set xtics %d, %d\n", first, 1 + (last - first) / 10);
    if (history->best_epoch <= 0)
        return;
    bool right = 2 * history->best_epoch > first + last; /* the label goes where there is more room */
    kn_text_format(script,
                   "set arrow 1 from %d, graph 0 to %d, graph 1 nohead dt 2 lw 1 lc rgb '#888888'\n"
                   "set label 1 ' best: %d ' at %d, graph 0.5 %s textcolor rgb '#666666'\n",
                   history->best_epoch, history->best_epoch, history->best_epoch, history->best_epoch,
                   right ? "right" : "left");
}

static void write_script(kn_text *script, const void *subject)
{
    const kn_history *history = subject;
    int count = count_panels(history);
    append_data(script, history);
    append_style(script, history);
    kn_text_format(script, "set multiplot layout 1, %d\n", count > 0 ? count : 1);
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
    int count = count_panels(history);
    const kn_plot plot = {.width = count > 1 ? 500 * count : 560,
                          .height = 400,
                          .write = write_script,
                          .subject = history,
                          .hurry = kn_interrupted};
    return kn_plot_save(&plot, path);
}
