/* train/plot.c - loss, accuracy and gradient norm against epoch or step, drawn by gnuplot.
 *
 * gnuplot reads the script from a temporary file as its standard input, draws into a temporary file beside the target,
 * and the target appears by a rename. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "train/history.h"

extern char **environ;

/* --- the script ------------------------------------------------------------------------------------------------ */

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && kn_text_equals_nocase(text + length - tail, ending);
}

/* gnuplot's single-quoted strings take everything but the quote, which is doubled. */
static void append_quoted(kn_text *script, const char *text)
{
    kn_text_append(script, "'");
    for (const char *c = text; *c != '\0'; c++)
        kn_text_append_bytes(script, *c == '\'' ? "''" : c, *c == '\'' ? 2 : 1);
    kn_text_append(script, "'");
}

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
    kn_text_append(script, "set datafile missing 'nan'\n"
                           "set border 3 lc rgb '#555555'\n"
                           "set tics nomirror out textcolor rgb '#333333'\n"
                           "set grid ytics lc rgb '#e4e4e4' lw 1\n"
                           "set style line 1 lc rgb '#3b6ea8' lw 2 pt 7 ps 0.5\n"
                           "set style line 2 lc rgb '#d1662a' lw 2 pt 7 ps 0.5\n"
                           "set key noautotitle samplen 2 textcolor rgb '#333333'\n"
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

static char *script_of(const kn_history *history, const char *output, bool png)
{
    int count = count_panels(history), width = count > 1 ? 500 * count : 560, height = 400;
    kn_text script = {0};
    if (png)
        kn_text_format(
            &script,
            "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) { set terminal pngcairo size %d,%d font 'Sans,10' } "
            "else { set terminal png size %d,%d }\n",
            width, height, width, height);
    else
        kn_text_format(&script, "set terminal svg size %d,%d font 'Helvetica,13' background rgb 'white'\n", width,
                       height);
    kn_text_append(&script, "set output ");
    append_quoted(&script, output);
    kn_text_append(&script, "\n");
    append_data(&script, history);
    append_style(&script, history);
    kn_text_format(&script, "set multiplot layout 1, %d\n", count > 0 ? count : 1);
    for (size_t i = 0; i < PANELS; i++)
        append_panel(&script, history, &panels[i]);
    kn_text_append(&script, "unset multiplot\nunset output\n");
    return kn_text_finish(&script);
}

/* --- running gnuplot ------------------------------------------------------------------------------------------- */

/* Starts gnuplot with these files as its input and its output and errors; returns errno's value, ENOENT where it is not
 * installed. */
static int start(pid_t *pid, FILE *input, FILE *messages)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    posix_spawn_file_actions_adddup2(&actions, fileno(input), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(messages), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(messages), STDERR_FILENO);
    char *arguments[] = {(char[]){"gnuplot"}, NULL};
    error = posix_spawnp(pid, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Waits; true when the program ended with status 0. */
static bool succeeded(pid_t pid)
{
    int status = 0;
    pid_t waited;
    do {
        waited = waitpid(pid, &status, 0);
    } while (waited < 0 && errno == EINTR);
    /* A host program that ignores SIGCHLD leaves nothing to wait for: the picture itself then tells. */
    return waited < 0 ? errno == ECHILD : WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static kn_status run_script(const char *script, FILE *input, FILE *messages)
{
    if (fputs(script, input) < 0 || fflush(input) != 0)
        return kn_fail(KN_ERR_IO, "plot: writing gnuplot's script failed: %s", strerror(errno));
    rewind(input);
    pid_t pid;
    int error = start(&pid, input, messages);
    if (error == ENOENT)
        return kn_fail(KN_ERR_IO, "plot: gnuplot is not installed; install the package gnuplot-nox (or gnuplot)");
    if (error != 0)
        return kn_fail(KN_ERR_IO, "plot: gnuplot could not be started: %s", strerror(error));
    if (succeeded(pid))
        return KN_OK;
    char said[200] = "";
    rewind(messages);
    size_t length = fread(said, 1, sizeof said - 1, messages);
    said[length] = '\0';
    for (char *c = said; *c != '\0'; c++)
        *c = *c == '\n' ? ' ' : *c;
    return kn_fail(KN_ERR_IO, "plot: gnuplot failed: %s", length > 0 ? said : "it said nothing");
}

static kn_status draw(const char *script)
{
    FILE *input = tmpfile(), *messages = tmpfile();
    kn_status status = input != NULL && messages != NULL
                           ? run_script(script, input, messages)
                           : kn_fail(KN_ERR_IO, "plot: no temporary file for gnuplot's script: %s", strerror(errno));
    if (input != NULL)
        fclose(input);
    if (messages != NULL)
        fclose(messages);
    return status;
}

/* Draws into `temporary` and renames it. */
static kn_status draw_to(const kn_history *history, const char *path, const char *temporary)
{
    char *script = script_of(history, temporary, ends_with(path, ".png"));
    if (script == NULL)
        return KN_ERR_MEMORY;
    kn_status status = draw(script);
    kn_free(script);
    if (status == KN_OK && rename(temporary, path) != 0)
        status = kn_fail(KN_ERR_IO, "plot: %s could not be written: %s", path, strerror(errno));
    if (status != KN_OK)
        unlink(temporary);
    return status;
}

kn_status kn_history_save_plot(const kn_history *history, const char *path)
{
    if (history == NULL || path == NULL)
        return kn_fail_argument_null("history_save_plot", history == NULL ? "history" : "path");
    if (!ends_with(path, ".svg") && !ends_with(path, ".png"))
        return kn_fail(KN_ERR_ARGUMENT, "plot: %s must end in .svg or .png", path);
    if (history->epochs == 0)
        return kn_fail(KN_ERR_STATE, "plot: the history is empty; there is nothing to draw in %s", path);
    kn_text name = {0};
    kn_text_format(&name, "%s.%ld.tmp", path, (long)getpid());
    char *temporary = kn_text_finish(&name);
    if (temporary == NULL)
        return KN_ERR_MEMORY;
    kn_status status = draw_to(history, path, temporary);
    kn_free(temporary);
    return status;
}
