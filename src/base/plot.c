/* base/plot.c - plots drawn by gnuplot, written atomically like all files (base/files.h).
 *
 * gnuplot reads the script from memory on its standard input and draws to its standard output, a file that is already
 * open: no path is ever part of its commands. */
#include "base/plot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/error.h"
#include "base/files.h"
#include "base/plain_numbers.h"
#include "base/system.h"

/* A plot takes a fraction of a second; the first on a machine takes some seconds (font search). */
#define LIMIT_SECONDS 30
#define HURRIED_SECONDS 5

/* --- gnuplot ------------------------------------------------------------------------------------------------------ */

static kn_status fail_with_messages(int messages)
{
    char said[300];
    const ssize_t length = kn_sys_read(messages, said, sizeof said - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    for (char *c = said; *c != '\0'; c++)
        *c = *c == '\n' ? ' ' : *c;
    return kn_fail(KN_ERR_IO, "plot: gnuplot failed: %s", length > 0 ? said : "it printed no message");
}

static kn_status run(const char *script, int input, int picture, int messages, bool (*is_exiting)(void))
{
    struct stat info;
    pid_t pid;
    int ended = 0;
    if (kn_sys_write(input, script, strlen(script)) != 0 || lseek(input, 0, SEEK_SET) != 0)
        return kn_fail(KN_ERR_IO, "plot: writing gnuplot's script failed: %s", strerror(errno));
    /* Plots must not depend on the user's gnuplot settings. */
    const char *const arguments[] = {"gnuplot", "--default-settings", NULL};
    const int error = kn_child_start(&pid, arguments, (const int[]){input, picture, messages});
    if (error == ENOENT)
        return kn_fail(KN_ERR_IO, "plot: gnuplot is not installed; install the package gnuplot-nox (or gnuplot)");
    if (error != 0)
        return kn_fail(KN_ERR_IO, "plot: gnuplot could not be started: %s", strerror(error));
    if (!kn_child_wait(pid, &ended, LIMIT_SECONDS, HURRIED_SECONDS, is_exiting))
        return kn_fail(KN_ERR_IO, "plot: gnuplot did not finish in time and was killed");
    if (ended != -1 && (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)) /* -1: judged by the picture */
        return fail_with_messages(messages);
    if (kn_sys_fstat(picture, &info) != 0)
        return kn_fail(KN_ERR_IO, "plot: the picture cannot be read: %s", strerror(errno));
    return info.st_size > 0 ? KN_OK : kn_fail(KN_ERR_IO, "plot: gnuplot drew nothing");
}

kn_status kn_gnuplot_run(const char *script, int picture, bool (*is_exiting)(void))
{
    if (!kn_trusted_environment("PATH"))
        return kn_fail(KN_ERR_IO, "plot: gnuplot is not searched for: PATH is not set, or the program runs with more "
                                  "privileges than its user");
    const int input = kn_sys_memory_file("gnuplot script"), messages = kn_sys_memory_file("gnuplot messages");
    kn_status status = input >= 0 && messages >= 0
                           ? run(script, input, picture, messages, is_exiting)
                           : kn_fail(KN_ERR_IO, "plot: no memory for gnuplot's script: %s", strerror(errno));
    if (input >= 0)
        kn_sys_close(input);
    if (messages >= 0)
        kn_sys_close(messages);
    return status;
}

/* --- the script --------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && kn_text_equals_nocase(text + length - tail, ending);
}

/* The gnuplot terminal and the common style. */
static void append_terminal(kn_text *script, bool png, int width, int height)
{
    if (png)
        kn_text_format(
            script,
            "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) { set terminal pngcairo size %d,%d font 'Sans,10' } "
            "else { set terminal png size %d,%d }\n",
            width, height, width, height);
    else
        kn_text_format(script, "set terminal svg size %d,%d name 'Koine' font 'Helvetica,13' background rgb 'white'\n",
                       width, height);
    kn_text_append(script, "set datafile missing 'nan'\n"
                           "set border 3 lc rgb '#555555'\n"
                           "set tics nomirror out textcolor rgb '#333333'\n"
                           "set grid ytics lc rgb '#e4e4e4' lw 1\n"
                           "set key noautotitle samplen 2 textcolor rgb '#333333'\n");
}

/* --- the picture -------------------------------------------------------------------------------------------------- */

static char *script_of(const kn_plot *plot, bool png)
{
    kn_text text = {0};
    KN_PLAIN_NUMBERS;
    append_terminal(&text, png, plot->width, plot->height);
    plot->write(&text, plot->subject);
    return kn_text_finish(&text);
}

static kn_status draw(const char *script, const kn_plot *plot, const char *path)
{
    kn_atomic_file file;
    KN_TRY(kn_file_begin(&file, path));
    return kn_file_end(&file, kn_gnuplot_run(script, file.descriptor, plot->is_exiting));
}

kn_status kn_plot_check_path(const char *path)
{
    if (ends_with(path, ".svg") || ends_with(path, ".png"))
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "plot: %s must end in .svg or .png", path);
}

kn_status kn_plot_save(const kn_plot *plot, const char *path)
{
    KN_TRY(kn_plot_check_path(path));
    char *script = script_of(plot, ends_with(path, ".png"));
    if (script == NULL)
        return KN_ERR_MEMORY;
    kn_status status = draw(script, plot, path);
    kn_free(script);
    return status;
}
