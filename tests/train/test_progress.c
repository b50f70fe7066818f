/* test_progress.c - terminal output: epoch lines that fit, kernels being compiled. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/layout.h"
#include "train/history.h"
#include "train/progress.h"

#define CAUGHT KOINE_BINARY_DIR "/tests/progress.txt"

static int real_stderr = -1;

/* Redirects stderr to a file until `caught`, which returns its contents. */
static void catch_stderr(const char *columns)
{
    fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    assert_non_null(freopen(CAUGHT, "w", stderr));
    if (columns)
        setenv("COLUMNS", columns, 1);
    else
        unsetenv("COLUMNS");
}

static char *caught(void)
{
    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    unsetenv("COLUMNS");
    char *text = NULL;
    size_t size;
    CHECK_OK(kn_file_read_all(&text, &size, CAUGHT, 1 << 20));
    return text;
}

static char *epochs_at(const char *columns, bool grad_norm)
{
    kn_history history = {0};
    kn_progress progress;
    CHECK_OK(kn_history_start(&history, (const char *[]){"acc"}, 1, true, grad_norm));
    catch_stderr(columns);
    kn_progress_start(&progress, false);
    for (int e = 1; e <= 10; e += 9) {
        kn_progress_epoch(&progress, e, 10);
        if (grad_norm)
            CHECK_OK(kn_history_append(&history, (double[]){e, 0.598, 0.7815, 0.4344, 0.8394, 1.5, 0.01}));
        else
            CHECK_OK(kn_history_append(&history, (double[]){e, 0.598, 0.7815, 0.4344, 0.8394, 0.05000000000000008}));
        kn_progress_epoch_line(&progress, &history, 1234.54, 14955, e == 1);
    }
    kn_progress_stop(&progress);
    kn_history_clear(&history);
    return caught();
}

TENSOR_TEST(epochs_are_lines_where_they_fit)
{
    static const char *const wide[] = {NULL, "124"};
    for (int i = 0; i < 2; i++) {
        char *text = epochs_at(wide[i], false);
        assert_string_equal(text, "epoch 1/10  train_loss 0.5980  train_acc 0.7815  val_loss 0.4344  val_acc 0.8394  "
                                  "lr 0.05  1234.5 s  14955 samples/s  best\n"
                                  "epoch 10/10  train_loss 0.5980  train_acc 0.7815  val_loss 0.4344  val_acc 0.8394  "
                                  "lr 0.05  1234.5 s  14955 samples/s\n");
        kn_free(text);
    }
}

TENSOR_TEST(epochs_are_rows_of_a_table_elsewhere)
{
    char *text = epochs_at("80", false);
    assert_string_equal(text, "epoch  train_loss  train_acc  val_loss  val_acc         lr  seconds\n"
                              " 1/10      0.5980     0.7815    0.4344   0.8394       0.05   1234.5  best\n"
                              "10/10      0.5980     0.7815    0.4344   0.8394       0.05   1234.5\n");
    kn_free(text);
    text = epochs_at("80", true);
    assert_non_null(strstr(text, "grad_norm"));
    assert_null(strstr(text, "samples/s"));
    kn_free(text);
    static const char *const widths[] = {"100", "80", "70", "60", "55"};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        text = epochs_at(widths[i], i % 2 == 0);
        for (const char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
            if (kn_text_width(line) > atoi(widths[i]))
                fail_msg("wider than %s: %s", widths[i], line);
        kn_free(text);
    }
}

static void wait_for(const char *kernel, double seconds)
{
    kn_build_wait wait = kn_build_begin(kernel);
    wait.started -= seconds;
    kn_build_end(wait, true);
}

/* A line after some seconds of compiling, further ones from time to time; none after stop, none when quiet. */
TENSOR_TEST(compiling_is_told)
{
    kn_progress progress;
    catch_stderr(NULL);
    kn_progress_start(&progress, false);
    kn_progress_epoch(&progress, 1, 3);
    kn_progress_phase(&progress, "", 10);
    double started = progress.started;
    wait_for("relu", 3);
    wait_for("softmax", 3.2);
    wait_for("adam", 9);
    wait_for("gemm", 7);
    /* compile time does not count as training */
    assert_true(progress.started - started > 22 && progress.started - started < 23);
    kn_progress_stop(&progress);
    wait_for("conv", 60);
    kn_progress_start(&progress, true);
    wait_for("conv", 60);
    kn_progress_stop(&progress);
    char *text = caught();
    assert_string_equal(text, "epoch 1/3  compiling kernels: 2 done (softmax)  0:06\n"
                              "epoch 1/3  compiling kernels: 4 done (gemm)  0:22\n");
    kn_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(epochs_are_lines_where_they_fit),
        TEST(epochs_are_rows_of_a_table_elsewhere),
        TEST(compiling_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
