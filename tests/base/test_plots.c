/* test_plots.c - plots by gnuplot, real and fake: paths are not commands, plots are complete or absent, and a hanging
 * gnuplot is killed. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/files.h"
#include "base/plot.h"

static char folder[] = "/tmp/koine-plots-XXXXXX", before[8192];

static void command(const char *format, ...) KN_PRINTF(1, 2);
static void command(const char *format, ...)
{
    char line[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert_int_equal(system(line), 0);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    return mkdtemp(folder) ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    command("rm -rf '%s'", folder);
    return 0;
}

/* Replaces gnuplot by this shell script; NULL: the real one. */
static void be_gnuplot(const char *script)
{
    char path[9000];
    snprintf(path, sizeof path, "%s/bin:%s", folder, before);
    setenv("PATH", script ? path : before, 1);
    if (!script)
        return;
    command("mkdir -p '%s/bin' && cat >'%s/bin/gnuplot' <<'EOF'\n#!/bin/sh\n%s\nEOF\nchmod +x '%s/bin/gnuplot'", folder,
            folder, script, folder);
}

static void write_line(kn_text *script, const void *subject)
{
    (void)subject;
    kn_text_append(script, "plot x\n");
}

static bool at_once(void) { return true; }

static kn_status draw(const char *name)
{
    const kn_plot plot = {.width = 300, .height = 200, .write = write_line, .is_exiting = at_once};
    char *path = kn_path_join(folder, name);
    kn_status status = kn_plot_save(&plot, path);
    assert_int_equal(kn_error_status(), status);
    kn_free(path);
    return status;
}

static bool is_there(const char *name)
{
    char *path = kn_path_join(folder, name);
    const bool there = kn_file_exists(path);
    kn_free(path);
    return there;
}

static void assert_failed(kn_status status, const char *piece)
{
    assert_int_equal(status, KN_ERR_IO);
    if (!strstr(kn_error_message(), piece))
        fail_msg("expected \"%s\" in: %s", piece, kn_error_message());
    kn_error_clear();
    char *listing = kn_path_join(folder, ".koine-tmp-*");
    command("! ls %s >/dev/null 2>&1", listing); /* no temporary file is left */
    kn_free(listing);
}

/* Paths that would be commands if gnuplot read them. */
static const char *const strange_names[] = {
    "line\n!touch injected\n.svg", "quote'; system('touch injected'); '.svg",
    "`touch injected`.svg",        "\"double\"\\\".svg",
    "$(touch injected).svg",       "@macro \x1b[31m.svg",
};

static void paths_are_no_commands(void **state)
{
    (void)state;
    if (system("gnuplot --version >/dev/null 2>&1") != 0)
        skip();
    be_gnuplot(NULL);
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof strange_names / sizeof strange_names[0]; i++) {
        assert_int_equal(draw(strange_names[i]), KN_OK);
        assert_true(is_there(strange_names[i]));
        assert_false(is_there("injected"));
    }
    assert_int_equal(draw("picture.png"), KN_OK);
    command("head -c 4 picture.png | grep -q PNG");
    command("rm -f -- *.svg *.png && test -z \"$(ls)\"");
}

/* No part of a path is in gnuplot's script, arguments or environment. */
static void gnuplot_never_sees_the_path(void **state)
{
    (void)state;
    be_gnuplot("cat; echo \"$@\"; env");
    assert_int_equal(draw("unmistakable.svg"), KN_OK);
    command("! grep -q unmistakable '%s/unmistakable.svg'", folder);
    command("grep -q 'plot x' '%s/unmistakable.svg'", folder);
}

static void failures_leave_the_old_picture(void **state)
{
    (void)state;
    be_gnuplot("echo old");
    assert_int_equal(draw("kept.svg"), KN_OK);
    be_gnuplot("echo half; echo 'line 3: no such \033[31mthing' >&2; exit 1");
    assert_failed(draw("kept.svg"), "gnuplot failed: line 3: no such \\x1b[31mthing");
    be_gnuplot("cat >/dev/null");
    assert_failed(draw("kept.svg"), "gnuplot drew nothing");
    be_gnuplot("echo half; kill -SEGV $$");
    assert_failed(draw("kept.svg"), "gnuplot failed: it printed no message");
    command("test \"$(cat '%s/kept.svg')\" = old", folder);
    command("chmod -x '%s/bin/gnuplot'", folder);
    setenv("PATH", "/nonexistent", 1);
    kn_status status = draw("kept.svg");
    setenv("PATH", before, 1);
    assert_failed(status, "gnuplot is not installed; install the package gnuplot-nox");
}

/* A link that another user may have created is not replaced, nor is its target. */
static void links_are_followed_or_refused(void **state)
{
    (void)state;
    be_gnuplot("echo new");
    command("cd '%s' && echo old >target.svg && ln -s target.svg link.svg && ln -s nowhere.svg dangling.svg", folder);
    assert_int_equal(draw("link.svg"), KN_OK);
    command("cd '%s' && test -L link.svg && test \"$(cat target.svg)\" = new", folder);
    assert_failed(draw("dangling.svg"), "broken symbolic link");
    command("cd '%s' && test -L dangling.svg && test ! -e nowhere.svg", folder);
}

/* Including its child processes, even if it ignores signals. */
static void a_gnuplot_that_hangs_is_killed(void **state)
{
    (void)state;
    char pids[600], text[64] = "";
    struct timespec start, end;
    snprintf(pids, sizeof pids, "%s/pids", folder);
    be_gnuplot("trap '' TERM INT HUP\nsleep 1000 &\necho $$ $! >pids; wait; wait; sleep 1000");
    assert_int_equal(chdir(folder), 0);
    clock_gettime(CLOCK_MONOTONIC, &start);
    assert_failed(draw("never.svg"), "gnuplot did not finish in time and was killed");
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(end.tv_sec - start.tv_sec < 20);
    assert_false(is_there("never.svg"));
    FILE *file = fopen(pids, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    int shell = 0, sleeper = 0;
    assert_int_equal(sscanf(text, "%d %d", &shell, &sleeper), 2);
    assert_true(kill(shell, 0) != 0 && errno == ESRCH);
    for (int i = 0; i < 100 && kill(sleeper, 0) == 0; i++) { /* until init has reaped it, if it does */
        char stat_path[64], line[256] = "";
        snprintf(stat_path, sizeof stat_path, "/proc/%d/stat", sleeper);
        FILE *stat_file = fopen(stat_path, "r");
        if (stat_file && fgets(line, sizeof line, stat_file) && strstr(line, ") Z "))
            i = 100;
        else if (i == 99)
            fail_msg("what gnuplot started goes on: %s", line);
        if (stat_file)
            fclose(stat_file);
        usleep(20000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_no_commands),          cmocka_unit_test(gnuplot_never_sees_the_path),
        cmocka_unit_test(failures_leave_the_old_picture), cmocka_unit_test(links_are_followed_or_refused),
        cmocka_unit_test(a_gnuplot_that_hangs_is_killed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
