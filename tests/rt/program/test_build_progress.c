/* Reports of kernels being compiled: observers, and the log at level debug. */
#include "rt/rt_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/program/build_progress.h"

/* --- observers ------------------------------------------------------------------------------------------------ */

typedef struct seen {
    int begun, over, done;
    double seconds;
    char kernel[64];
} seen;

static void note(const kn_build_notice *notice, void *user)
{
    seen *s = user;
    s->begun += !notice->is_over;
    s->over += notice->is_over;
    s->done = notice->done;
    s->seconds += notice->seconds;
    snprintf(s->kernel, sizeof s->kernel, "%s", notice->kernel);
}

static void whoever_waits_is_told(void **state)
{
    (void)state;
    seen mine = {0}, other = {0};
    kn_build_observer before = kn_build_observe((kn_build_observer){.notice = note, .user = &mine});
    assert_null(before.notice);
    kn_build_end(kn_build_begin("program"), false); /* compiled, but not launched */
    assert_int_equal(mine.done, 0);
    kn_build_wait wait = kn_build_begin("softmax");
    assert_int_equal(mine.begun, 2);
    assert_int_equal(mine.over, 1);
    assert_string_equal(mine.kernel, "softmax");
    wait.started -= 3;
    assert_true(kn_build_end(wait, true) >= 3);
    assert_int_equal(mine.done, 1);
    assert_true(mine.seconds >= 3);

    /* nested, as in a fit inside a fit */
    before = kn_build_observe((kn_build_observer){.notice = note, .user = &other});
    kn_build_end(kn_build_begin("inner"), true);
    kn_build_observe(before);
    assert_int_equal(other.done, 1);
    assert_string_equal(mine.kernel, "softmax");
    kn_build_end(kn_build_begin("outer"), true);
    assert_int_equal(mine.done, 2);
    kn_build_observe((kn_build_observer){0});
    kn_build_end(kn_build_begin("nobody's"), true);
    assert_string_equal(mine.kernel, "outer");
}

static void a_kernel_is_told_once(void **state)
{
    (void)state;
    seen s = {0};
    KN_SCOPE;
    kn_tensor *x = kn_ones(KN_SHAPE(10));
    kn_build_observe((kn_build_observer){.notice = note, .user = &s});
    assert_non_null(kn_tanh(x));
    int begun = s.begun;
    assert_int_equal(begun, s.over);
    assert_true(s.done == 1 && s.seconds > 0);
    assert_string_equal(s.kernel, "pointwise_tanh");
    assert_non_null(kn_tanh(x));
    assert_int_equal(s.begun, begun);
    kn_build_observe((kn_build_observer){0});
}

/* --- the log ---------------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/koine-builds-XXXXXX";

/* In a new process, because programs are cached per process; returns the library's stderr. */
static char *log_of_a_process(const char *level)
{
    char path[128];
    snprintf(path, sizeof path, "%s/log", folder);
    pid_t child = fork();
    if (child == 0) {
        setenv("KOINE_LOG", level, 1);
        setenv("KOINE_CACHE_DIR", folder, 1);
        setenv("POCL_CACHE_DIR", folder, 1);
        setenv("KOINE_PROGRAM_CACHE", "1", 1);
        bool fine = freopen(path, "w", stderr) != NULL && kn_clamp(kn_ones(KN_SHAPE(100)), .min = 2) != NULL;
        fflush(stderr);
        _exit(fine ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, (1 << 16) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void expect(const char *level, const char *const *pieces)
{
    char *text = log_of_a_process(level);
    for (; *pieces; pieces++)
        if (!strstr(text, *pieces))
            fail_msg("no `%s` in:\n%s", *pieces, text);
    free(text);
}

/* Before this process uses a device, because fork does not copy the driver's threads. */
static void each_build_is_logged_with_its_time(void **state)
{
    (void)state;
    expect("debug", (const char *const[]){"koine: debug: ", "pointwise_clamp built in ", " s, compiled",
                                          "options: -cl-std=CL1.2", "kernels: ", "pointwise_clamp", NULL});
    expect("debug", (const char *const[]){"pointwise_clamp built in ", "from the disk cache", "pointwise_clamp", NULL});
    char *quiet = log_of_a_process("warning");
    assert_string_equal(quiet, "");
    free(quiet);
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_build_is_logged_with_its_time),
        cmocka_unit_test(whoever_waits_is_told),
        cmocka_unit_test(a_kernel_is_told_once),
    };
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
