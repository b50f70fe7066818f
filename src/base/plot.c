/* base/plot.c - pictures drawn by gnuplot.
 *
 * gnuplot reads the script from a temporary file as its standard input, draws into a temporary file beside the target,
 * and the target appears by a rename. */
#include "base/plot.h"

#include <errno.h>
#include <locale.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

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

/* Where the picture goes and what it is drawn with. */
static void append_terminal(kn_text *script, const char *output, bool png, int width, int height)
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
    kn_text_append(script, "set output ");
    append_quoted(script, output);
    kn_text_append(script, "\n"
                           "set datafile missing 'nan'\n"
                           "set border 3 lc rgb '#555555'\n"
                           "set tics nomirror out textcolor rgb '#333333'\n"
                           "set grid ytics lc rgb '#e4e4e4' lw 1\n"
                           "set key noautotitle samplen 2 textcolor rgb '#333333'\n");
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

/* --- the picture ----------------------------------------------------------------------------------------------- */

/* Draws into `temporary` and renames it. */
static kn_status draw_to(const kn_plot *plot, const char *path, const char *temporary)
{
    kn_text text = {0};
    /* printf follows the host program's locale, gnuplot's language has a point in its numbers. */
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = uselocale(plain);
    append_terminal(&text, temporary, ends_with(path, ".png"), plot->width, plot->height);
    plot->write(&text, plot->subject);
    uselocale(before);
    if (plain != (locale_t)0)
        freelocale(plain);
    kn_text_append(&text, "unset output\n");
    char *script = kn_text_finish(&text);
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

kn_status kn_plot_check_path(const char *path)
{
    if (ends_with(path, ".svg") || ends_with(path, ".png"))
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "plot: %s must end in .svg or .png", path);
}

kn_status kn_plot_save(const kn_plot *plot, const char *path)
{
    KN_TRY(kn_plot_check_path(path));
    kn_text name = {0};
    kn_text_format(&name, "%s.%ld.tmp", path, (long)getpid());
    char *temporary = kn_text_finish(&name);
    if (temporary == NULL)
        return KN_ERR_MEMORY;
    kn_status status = draw_to(plot, path, temporary);
    kn_free(temporary);
    return status;
}
