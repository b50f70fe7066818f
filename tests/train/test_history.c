/* test_history.c - the history as CSV, table and plot. */
#include "support/check.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "train/history.h"

#define FOLDER KOINE_BINARY_DIR "/tests/history"

static void fill(kn_history *history)
{
    CHECK_OK(kn_history_start(history, (const char *[]){"acc"}, 1, true, false));
    CHECK_OK(kn_history_append(history, (double[]){1, 0.75, 0.5, 0.625, 0.8125, 0.01}));
    CHECK_OK(kn_history_append(history, (double[]){2, 0.1, 0.9, 1.0 / 3, 0.84, 0.01}));
    CHECK_OK(kn_history_append(history, (double[]){3, 1e-7, 1, 12.5, 0.83, 0.05000000000000008}));
    history->best_epoch = 2;
}

static char *file_text(const char *path)
{
    char *text = NULL;
    size_t size;
    CHECK_OK(kn_file_read_all(&text, &size, path, 1 << 20));
    return text;
}

TENSOR_TEST(a_history_answers_for_its_figures)
{
    kn_history history = {0};
    fill(&history);
    assert_int_equal(kn_history_epochs(&history), 3);
    assert_int_equal(kn_history_columns(&history), 6);
    assert_string_equal(kn_history_column(&history, 4), "val_acc");
    assert_string_equal(kn_history_column(&history, 6), "");
    assert_true(kn_history_value(&history, 1, 4) == 0.84);
    assert_true(kn_history_value(&history, 3, 0) == 0 && kn_history_value(&history, 0, -1) == 0);
    CHECK_OK(kn_history_start(&history, NULL, 0, false, false));
    assert_int_equal(kn_history_columns(&history), 3);
    assert_string_equal(kn_history_column(&history, 1), "train_loss");
    kn_history_clear(&history);
}

TENSOR_TEST(csv_reads_back_exactly)
{
    kn_history history = {0};
    fill(&history);
    CHECK_OK(kn_history_save_csv(&history, FOLDER "/history.csv"));
    char *text = file_text(FOLDER "/history.csv");
    assert_string_equal(text, "epoch,train_loss,train_acc,val_loss,val_acc,lr\n"
                              "1,0.75,0.5,0.625,0.8125,0.01\n"
                              "2,0.1,0.9,0.3333333333333333,0.84,0.01\n"
                              "3,1e-07,1,12.5,0.83,0.05000000000000008\n");
    kn_free(text);
    assert_int_equal(kn_history_save_csv(&history, FOLDER "/no/folder.csv"), KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, "no/folder.csv");
    kn_error_clear();
    kn_history_clear(&history);
}

TENSOR_TEST(numbers_do_not_follow_the_locale)
{
    char number[KN_NUMBER_TEXT];
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "de_DE") == NULL)
        skip();
    assert_string_equal(kn_format_number(number, 0.84), "0.84");
    assert_string_equal(kn_format_number(number, 10), "10");
    assert_string_equal(kn_format_number(number, -120000), "-120000");
    assert_string_equal(kn_format_number(number, 1e20), "1e+20");
    setlocale(LC_NUMERIC, "C");
}

TENSOR_TEST(the_table_marks_the_best)
{
    kn_history history = {0};
    fill(&history);
    char *table = kn_history_table(&history);
    assert_string_equal(table, "epoch  train_loss  train_acc  val_loss   val_acc        lr\n"
                               "    1      0.7500     0.5000    0.6250    0.8125      0.01\n"
                               "    2      0.1000     0.9000    0.3333    0.8400      0.01  best\n"
                               "    3      0.0000     1.0000   12.5000    0.8300      0.05\n");
    kn_free(table);
    kn_history_clear(&history);
}

static bool has_gnuplot(void) { return system("gnuplot --version >/dev/null 2>&1") == 0; }

TENSOR_TEST(plots_are_drawn)
{
    if (!has_gnuplot())
        skip();
    kn_history history = {0};
    fill(&history);
    /* Names with quotes and spaces work. */
    const char *svg = FOLDER "/it's a plot.svg", *png = FOLDER "/plot.png";
    unlink(svg);
    CHECK_OK(kn_history_save_plot(&history, svg));
    char *text = file_text(svg);
    assert_true(strstr(text, "<svg") != NULL);
    assert_true(strstr(text, "validation") != NULL);
    assert_true(strstr(text, ">best: 2<") != NULL);
    assert_true(strstr(text, ">Training, 3 epochs; the best is epoch 2<") != NULL);
    assert_true(strstr(text, ">Learning rate<") != NULL);
    assert_true(strstr(text, ">0.8<") != NULL && strstr(text, ">1<") != NULL && strstr(text, ">1.1<") == NULL);
    kn_free(text);
    CHECK_OK(kn_history_save_plot(&history, png));
    FILE *file = fopen(png, "rb");
    char magic[4] = "";
    assert_int_equal(fread(magic, 1, 4, file), 4);
    fclose(file);
    assert_memory_equal(magic, "\x89PNG", 4);
    /* One epoch, one curve. */
    CHECK_OK(kn_history_start(&history, NULL, 0, false, false));
    CHECK_OK(kn_history_append(&history, (double[]){1, 0.75, 0.01}));
    CHECK_OK(kn_history_save_plot(&history, png));
    kn_history_clear(&history);
}

TENSOR_TEST(what_cannot_be_plotted_is_told)
{
    kn_history history = {0};
    assert_int_equal(kn_history_save_plot(&history, FOLDER "/x.svg"), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "empty");
    kn_error_clear();
    fill(&history);
    assert_int_equal(kn_history_save_plot(&history, FOLDER "/x.gif"), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "x.gif", ".svg or .png");
    kn_error_clear();
    if (has_gnuplot()) {
        assert_int_equal(kn_history_save_plot(&history, FOLDER "/no/x.svg"), KN_ERR_IO);
        CHECK_ERROR(KN_ERR_IO, "no/x.svg");
        kn_error_clear();
    }
    char *path = strdup(getenv("PATH"));
    setenv("PATH", FOLDER, 1);
    assert_int_equal(kn_history_save_plot(&history, FOLDER "/x.svg"), KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, "gnuplot is not installed");
    setenv("PATH", path, 1);
    free(path);
    kn_error_clear();
    kn_history_clear(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_history_answers_for_its_figures), TEST(csv_reads_back_exactly), TEST(numbers_do_not_follow_the_locale),
        TEST(the_table_marks_the_best),          TEST(plots_are_drawn),        TEST(what_cannot_be_plotted_is_told),
    };
    check_make_folder(FOLDER);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
