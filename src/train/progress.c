/* train/progress.c - the progress bar, and the line per epoch. */
#include "train/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/layout.h"
#include "base/utf8.h"

#define DRAW_SECONDS 0.1
#define LOOK_SECONDS 0.5       /* when a bar is drawn */
#define LOOK_SECONDS_QUIET 2.0 /* otherwise: only to detect a loss that is not finite */
#define BAR_CELLS 28
#define NARROWEST_BAR 5

/* --- phases ---------------------------------------------------------------------------------------------------- */

static void on_build(const kn_build_notice *notice, void *user);

void kn_progress_start(kn_progress *progress, bool quiet)
{
    *progress = (kn_progress){.lines = !quiet, .bar = !quiet && kn_terminal_redraws(STDERR_FILENO), .phase = ""};
    progress->outer = kn_build_observe((kn_build_observer){.notice = on_build, .user = progress});
    progress->watches_builds = true;
}

void kn_progress_stop(kn_progress *progress)
{
    if (progress->watches_builds)
        kn_build_observe(progress->outer);
    progress->watches_builds = false;
}

void kn_progress_epoch(kn_progress *progress, int epoch, int epochs)
{
    progress->epoch = epoch;
    progress->epochs = epochs;
    progress->epoch_started = kn_clock_seconds();
}

void kn_progress_phase(kn_progress *progress, const char *phase, int64_t steps)
{
    progress->phase = phase;
    progress->steps = steps;
    progress->steps_done = progress->samples_done = 0;
    progress->started = progress->looked = kn_clock_seconds();
    progress->drawn = 0;
    progress->loss = (double)NAN;
    for (int i = 0; i < progress->num_metrics; i++)
        progress->metrics[i] = (double)NAN;
}

bool kn_progress_step(kn_progress *progress, int64_t samples)
{
    progress->steps_done++;
    progress->samples_done += samples;
    double now = kn_clock_seconds();
    if (now - progress->looked < (progress->bar ? LOOK_SECONDS : LOOK_SECONDS_QUIET))
        return false;
    progress->looked = now;
    return true;
}

/* --- drawing --------------------------------------------------------------------------------------------------- */

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

/* The text to the right of the bar. */
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
    for (int i = 0; i < progress->num_metrics; i++)
        if (!isnan(progress->metrics[i]))
            kn_text_format(line, "  %s %.4f", progress->names[i], progress->metrics[i]);
}

static void append_head(kn_text *line, const kn_progress *progress)
{
    if (progress->epoch > 0)
        kn_text_format(line, "epoch %d/%d%s%s", progress->epoch, progress->epochs,
                       progress->phase[0] != '\0' ? " " : "", progress->phase);
}

/* Leaves one column free: a full line wraps on some terminals. */
static int bar_width(void) { return kn_page_of(STDERR_FILENO).width - 1; }

static char *bar_line(const kn_progress *progress, double now)
{
    kn_text head = {0}, tail = {0};
    append_head(&head, progress);
    append_figures(&tail, progress, now);
    int width = bar_width(), room = width - (int)(head.length + tail.length) - 3;
    int cells = room < BAR_CELLS ? room : BAR_CELLS;
    if (cells >= NARROWEST_BAR)
        append_bar(&head, progress->steps > 0 ? (double)progress->steps_done / (double)progress->steps : 1, cells);
    if (tail.data != NULL)
        kn_text_append(&head, tail.data);
    kn_text_free(&tail);
    return kn_text_finish(&head);
}

/* Overwrites the current line, cut to the terminal's width. Frees the line; NULL allowed. */
static void draw_over(kn_progress *progress, char *line, double now)
{
    progress->drawn = now;
    if (line != NULL)
        fprintf(stderr, "\r%.*s\033[K", bar_width(), line);
    fflush(stderr);
    kn_free(line);
}

void kn_progress_draw(kn_progress *progress)
{
    double now = progress->bar ? kn_clock_seconds() : 0;
    if (progress->bar && (progress->shows_build || now - progress->drawn >= DRAW_SECONDS))
        draw_over(progress, bar_line(progress, now), now);
    progress->shows_build = false;
}

void kn_progress_clear(kn_progress *progress)
{
    if (!progress->bar)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

/* --- kernels being compiled ------------------------------------------------------------------------------------ */

#define BUILD_LINE_SECONDS 5.0   /* compile time before a line is printed if there is no bar */
#define BUILD_AGAIN_SECONDS 15.0 /* until the next line */

/* "compiling kernels: 12 done (softmax)": the total is not known. */
static char *build_line(const kn_progress *progress, const kn_build_notice *notice)
{
    kn_text line = {0};
    char time[32];
    append_head(&line, progress);
    kn_text_format(&line, "%scompiling kernels: %d done (%s)  %s", line.length > 0 ? "  " : "", notice->done,
                   notice->kernel, format_time(time, progress->build_seconds));
    return kn_text_finish(&line);
}

static void report_build(kn_progress *progress, const kn_build_notice *notice)
{
    double before_next = progress->build_told > 0 ? BUILD_AGAIN_SECONDS : BUILD_LINE_SECONDS;
    if (progress->build_seconds - progress->build_told < before_next)
        return;
    progress->build_told = progress->build_seconds;
    char *line = build_line(progress, notice);
    if (line != NULL)
        fprintf(stderr, "%s\n", line);
    kn_free(line);
}

/* Compile time is excluded from the rate and the time left. */
static void on_build(const kn_build_notice *notice, void *user)
{
    kn_progress *progress = user;
    if (notice->is_over) {
        progress->build_seconds += notice->seconds;
        progress->started += notice->seconds;
    }
    double now = kn_clock_seconds();
    if (progress->bar && now - progress->drawn >= DRAW_SECONDS) {
        draw_over(progress, build_line(progress, notice), now);
        progress->shows_build = true;
    } else if (progress->lines && !progress->bar && notice->is_over) {
        report_build(progress, notice);
    }
}

/* --- lines ----------------------------------------------------------------------------------------------------- */

static char *labelled_line(const kn_progress *progress, const kn_history *history, double seconds, double rate,
                           bool best)
{
    kn_text line = {0};
    int last = history->epochs - 1;
    kn_text_format(&line, "epoch %d/%d", progress->epoch, progress->epochs);
    for (int c = 1; c < history->columns - 1; c++)
        kn_text_format(&line, "  %s %.4f", history->names[c], kn_history_value(history, last, c));
    kn_text_format(&line, "  lr %.4g  %.1f s  %.0f samples/s%s", kn_history_value(history, last, history->columns - 1),
                   seconds, rate, best ? "  best" : "");
    return kn_text_finish(&line);
}

/* The history's columns, then these. The least informative ones are dropped first if space is short. */
enum { OF_SECONDS, OF_RATE, OF_BEST, FURTHER_COLUMNS };

static void name_columns(kn_table_column *columns, const kn_history *history)
{
    const int named = history->columns, norm = kn_history_find(history, "grad_norm");
    for (int c = 0; c < named; c++)
        columns[c] = (kn_table_column){.title = history->names[c], .is_number = true};
    columns[named - 1].rank = 2; /* the learning rate */
    if (norm >= 0)
        columns[norm].rank = 1;
    columns[named + OF_SECONDS] = (kn_table_column){.title = "seconds", .is_number = true, .rank = 3};
    columns[named + OF_RATE] = (kn_table_column){.title = "samples/s", .is_number = true, .rank = 4};
    columns[named + OF_BEST] = (kn_table_column){.title = ""};
}

/* The widest possible figures, so that columns stay aligned from row to row. */
static void put_widest(kn_table *table, const kn_progress *progress, int columns)
{
    kn_table_put(table, "%d/%d", progress->epochs, progress->epochs);
    for (int c = 1; c < columns; c++)
        kn_table_put(table, c == columns - 1 ? "1.234e-05" : "12.3456");
    kn_table_put(table, "12345.6");
    kn_table_put(table, "1234567");
    kn_table_put(table, "best");
}

static void put_epoch(kn_table *table, const kn_progress *progress, const kn_history *history, double seconds,
                      double rate, bool best)
{
    const int last = history->epochs - 1;
    kn_table_put(table, "%d/%d", progress->epoch, progress->epochs);
    for (int c = 1; c < history->columns - 1; c++)
        kn_table_put(table, "%.4f", kn_history_value(history, last, c));
    kn_table_put(table, "%.4g", kn_history_value(history, last, history->columns - 1));
    kn_table_put(table, "%.1f", seconds);
    kn_table_put(table, "%.0f", rate);
    kn_table_put(table, "%s", best ? "best" : "");
}

/* A table of three lines: headings, the widest row (not shown), and the epoch's. */
static char *table_text(const kn_progress *progress, const kn_history *history, kn_page page, double seconds,
                        double rate, bool best)
{
    kn_table_column columns[KN_HISTORY_EPOCH_COLUMNS + FURTHER_COLUMNS];
    kn_table table = {.columns = columns, .num_columns = history->columns + FURTHER_COLUMNS};
    kn_text text = {0};
    name_columns(columns, history);
    put_widest(&table, progress, history->columns);
    put_epoch(&table, progress, history, seconds, rate, best);
    kn_table_append(&text, &table, (kn_page){.width = page.width});
    kn_table_free(&table);
    return kn_text_finish(&text);
}

/* Prints `line` without its newline, a final "best" in green. */
static void print_epoch(const char *line, kn_page page, bool best)
{
    int length = (int)strcspn(line, "\n"), plain = best ? length - (int)strlen("best") : length;
    fprintf(stderr, "%.*s%s%.*s%s\n", plain, line, best ? kn_colour_on(page, KN_COLOUR_GOOD) : "", length - plain,
            line + plain, best ? kn_colour_off(page) : "");
}

static void print_row(kn_progress *progress, const char *table, kn_page page, bool best)
{
    int headings = (int)strcspn(table, "\n");
    const char *widest = table + headings + 1, *row = widest + strcspn(widest, "\n") + 1;
    if (!progress->is_table)
        fprintf(stderr, "%s%.*s%s\n", kn_colour_on(page, KN_COLOUR_BOLD), headings, table, kn_colour_off(page));
    progress->is_table = true;
    print_epoch(row, page, best);
}

void kn_progress_epoch_line(kn_progress *progress, const kn_history *history, double seconds, double rate, bool best)
{
    if (!progress->lines)
        return;
    kn_progress_clear(progress);
    kn_page page = kn_page_of(STDERR_FILENO);
    char *line = labelled_line(progress, history, seconds, rate, best);
    bool fits =
        line != NULL && (page.width == 0 || kn_text_width(line) + (best ? 0 : (int)strlen("  best")) <= page.width);
    char *table = fits && !progress->is_table ? NULL : table_text(progress, history, page, seconds, rate, best);
    if (table != NULL)
        print_row(progress, table, page, best);
    else if (line != NULL)
        print_epoch(line, page, best);
    kn_free(line);
    kn_free(table);
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
