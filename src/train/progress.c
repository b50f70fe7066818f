/* train/progress.c - the progress bar, and the line per epoch. */
#include "train/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "train/history.h"

#define DRAW_SECONDS 0.1
#define LOOK_SECONDS 0.5       /* while a bar is drawn */
#define LOOK_SECONDS_QUIET 2.0 /* elsewhere: only to notice a loss that is no number any more */
#define BAR_CELLS 28
#define NARROWEST_BAR 5

double kn_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- phases ---------------------------------------------------------------------------------------------------- */

void kn_progress_start(kn_progress *progress, bool quiet)
{
    const char *terminal = getenv("TERM");
    bool dumb = terminal != NULL && strcmp(terminal, "dumb") == 0;
    *progress = (kn_progress){.lines = !quiet, .bar = !quiet && isatty(STDERR_FILENO) && !dumb, .phase = ""};
}

void kn_progress_epoch(kn_progress *progress, int epoch, int epochs)
{
    progress->epoch = epoch;
    progress->epochs = epochs;
    progress->epoch_started = kn_clock();
}

void kn_progress_phase(kn_progress *progress, const char *phase, int64_t steps)
{
    progress->phase = phase;
    progress->steps = steps;
    progress->steps_done = progress->samples_done = 0;
    progress->started = progress->looked = kn_clock();
    progress->drawn = 0;
    progress->loss = progress->accuracy = (double)NAN;
}

bool kn_progress_step(kn_progress *progress, int64_t samples)
{
    progress->steps_done++;
    progress->samples_done += samples;
    double now = kn_clock();
    if (now - progress->looked < (progress->bar ? LOOK_SECONDS : LOOK_SECONDS_QUIET))
        return false;
    progress->looked = now;
    return true;
}

/* --- drawing --------------------------------------------------------------------------------------------------- */

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

/* "1:02:03" or "2:03". */
static const char *format_time(char buffer[32], double seconds)
{
    long whole = seconds > 0 && seconds < 1e9 ? lround(seconds) : 0;
    if (whole >= 3600)
        snprintf(buffer, 32, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(buffer, 32, "%ld:%02ld", whole / 60, whole % 60);
    return buffer;
}

static void append_bar(kn_text *line, double done, int cells)
{
    int full = (int)(done * cells);
    kn_text_append(line, " [");
    for (int i = 0; i < cells; i++)
        kn_text_append(line, i < full ? "=" : i == full ? ">" : " ");
    kn_text_append(line, "]");
}

/* What stands right of the bar. */
static void append_figures(kn_text *line, const kn_progress *progress, double now)
{
    double seconds = now - progress->started;
    double rate = seconds > 0 ? (double)progress->samples_done / seconds : 0;
    double left = progress->steps_done > 0
                      ? seconds / (double)progress->steps_done * (double)(progress->steps - progress->steps_done)
                      : 0;
    char time[32];
    kn_text_format(line, " %lld/%lld", (long long)progress->steps_done, (long long)progress->steps);
    if (progress->steps_done > 0)
        kn_text_format(line, "  %.0f samples/s  %s left", rate, format_time(time, left));
    if (!isnan(progress->loss))
        kn_text_format(line, "  loss %.4f", progress->loss);
    if (!isnan(progress->accuracy))
        kn_text_format(line, "  acc %.4f", progress->accuracy);
}

static char *bar_line(const kn_progress *progress, double now)
{
    kn_text head = {0}, tail = {0};
    kn_text_format(&head, "epoch %d/%d%s%s", progress->epoch, progress->epochs, progress->phase[0] != '\0' ? " " : "",
                   progress->phase);
    append_figures(&tail, progress, now);
    int width = terminal_width() - 1, room = width - (int)(head.length + tail.length) - 3;
    int cells = room < BAR_CELLS ? room : BAR_CELLS;
    if (cells >= NARROWEST_BAR)
        append_bar(&head, progress->steps > 0 ? (double)progress->steps_done / (double)progress->steps : 1, cells);
    if (tail.data != NULL)
        kn_text_append(&head, tail.data);
    kn_text_free(&tail);
    if (!head.failed && (int)head.length > width)
        head.data[width > 0 ? width : 0] = '\0';
    return kn_text_finish(&head);
}

void kn_progress_draw(kn_progress *progress)
{
    double now = progress->bar ? kn_clock() : 0;
    if (!progress->bar || now - progress->drawn < DRAW_SECONDS)
        return;
    progress->drawn = now;
    char *line = bar_line(progress, now);
    if (line != NULL)
        fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    kn_free(line);
}

void kn_progress_clear(kn_progress *progress)
{
    if (!progress->bar)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

/* --- lines ----------------------------------------------------------------------------------------------------- */

void kn_progress_epoch_line(kn_progress *progress, const kn_history *history, double seconds, double rate, bool best)
{
    if (!progress->lines)
        return;
    kn_progress_clear(progress);
    kn_text line = {0};
    kn_text_format(&line, "epoch %d/%d", progress->epoch, progress->epochs);
    int last = history->epochs - 1;
    for (int c = 1; c < history->columns - 1; c++)
        kn_text_format(&line, "  %s %.4f", history->names[c], kn_history_value(history, last, c));
    kn_text_format(&line, "  lr %.4g  %.1f s  %.0f samples/s%s", kn_history_value(history, last, history->columns - 1),
                   seconds, rate, best ? "  best" : "");
    char *text = kn_text_finish(&line);
    if (text != NULL)
        fprintf(stderr, "%s\n", text);
    kn_free(text);
}

void kn_progress_note(kn_progress *progress, const char *format, ...)
{
    if (!progress->lines)
        return;
    kn_progress_clear(progress);
    char note[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(note, sizeof note, format, arguments);
    va_end(arguments);
    kn_make_printable(note, sizeof note, false);
    fprintf(stderr, "%s\n", note);
}
