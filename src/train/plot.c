/* train/plot.c - loss and accuracy against epoch, as a script for gnuplot; base/plot.c runs it. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plot.h"
#include "train/history.h"

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

/* One panel: the training and, where there is one, the validation curve of `what` ("loss", "acc"). */
static void append_panel(kn_text *script, const kn_history *history, const char *what, const char *title)
{
    char name[32];
    snprintf(name, sizeof name, "train_%s", what);
    int train = kn_history_find(history, name);
    snprintf(name, sizeof name, "val_%s", what);
    int validation = kn_history_find(history, name);
    kn_text_format(script, "set title '%s'\nset key %s right\n", title, strcmp(what, "loss") == 0 ? "top" : "bottom");
    kn_text_format(script, "plot $history using 1:%d with linespoints ls 1 title 'training'", train + 1);
    if (validation >= 0)
        kn_text_format(script, ", $history using 1:%d with linespoints ls 2 title 'validation'", validation + 1);
    kn_text_append(script, "\n");
}

static void append_style(kn_text *script, const kn_history *history)
{
    kn_text_append(script, "set style line 1 lc rgb '#3b6ea8' lw 2 pt 7 ps 0.5\n"
                           "set style line 2 lc rgb '#d1662a' lw 2 pt 7 ps 0.5\n"
                           "set xlabel 'epoch'\n"
                           "set offsets graph 0, 0, graph 0.06, graph 0.06\n");
    int first = (int)kn_history_value(history, 0, 0), last = (int)kn_history_value(history, history->epochs - 1, 0);
    int room = first == last ? 1 : 0; /* an axis of no length cannot be drawn */
    kn_text_format(script, "set xrange [%d:%d]\nset xtics %d, %d\n", first - room, last + room, first,
                   1 + (last - first) / 10);
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
    bool accuracy = kn_history_find(history, "train_acc") >= 0;
    append_data(script, history);
    append_style(script, history);
    kn_text_format(script, "set multiplot layout 1, %d\n", accuracy ? 2 : 1);
    append_panel(script, history, "loss", "Loss");
    if (accuracy)
        append_panel(script, history, "acc", "Accuracy");
    kn_text_append(script, "unset multiplot\n");
}

kn_status kn_history_save_plot(const kn_history *history, const char *path)
{
    if (history == NULL || path == NULL)
        return kn_fail_argument_null("history_save_plot", history == NULL ? "history" : "path");
    KN_TRY(kn_plot_check_path(path));
    if (history->epochs == 0)
        return kn_fail(KN_ERR_STATE, "plot: the history is empty; there is nothing to draw in %s", path);
    bool accuracy = kn_history_find(history, "train_acc") >= 0;
    const kn_plot plot = {.width = accuracy ? 1000 : 560, .height = 400, .write = write_script, .subject = history};
    return kn_plot_save(&plot, path);
}
