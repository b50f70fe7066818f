/* test_layout.c - tables that fit a page, wrapped lines, and page widths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"

enum { COLUMNS_OF_TABLE = 4 };
static const kn_table_column columns[COLUMNS_OF_TABLE] = {
    {.title = "DEVICE"},
    {.title = "NAME", .shortest = 8},
    {.title = "LOAD", .is_number = true, .rank = 1, .least = 6},
    {.title = "FAN", .is_number = true, .rank = 2},
};

static void expect(const char *expected, kn_page page, int hidden)
{
    kn_table table = {.columns = columns, .num_columns = COLUMNS_OF_TABLE};
    kn_text out = {0};
    kn_table_put(&table, "gpu:%d", 0);
    kn_table_put(&table, "A GPU of a long name");
    kn_table_put(&table, "87 %%");
    kn_table_put(&table, "%s", "");
    kn_table_put(&table, "cpu:0");
    kn_table_put(&table, "\xC3\xA4\033[2J");
    kn_table_put(&table, "-");
    kn_table_put(&table, "40 %%");
    assert_int_equal(kn_table_append(&out, &table, page), hidden);
    char *text = kn_text_finish(&out);
    assert_string_equal(text, expected);
    kn_free(text);
    kn_table_free(&table);
}

static void a_table_gives_up_first_what_matters_least(void **state)
{
    (void)state;
    expect("DEVICE  NAME                    LOAD   FAN\n"
           "gpu:0   A GPU of a long name    87 %\n"
           "cpu:0   \xC3\xA4 [2J                      -  40 %\n",
           (kn_page){0}, 0);
    expect("DEVICE  NAME                  LOAD   FAN\n" /* drops the space reserved for larger numbers */
           "gpu:0   A GPU of a long name  87 %\n"
           "cpu:0   \xC3\xA4 [2J                    -  40 %\n",
           (kn_page){.width = 41}, 0);
    expect("DEVICE  NAME          LOAD   FAN\n" /* shortens the name */
           "gpu:0   A GPU of ...  87 %\n"
           "cpu:0   \xC3\xA4 [2J            -  40 %\n",
           (kn_page){.width = 32}, 0);
    expect("DEVICE  NAME        LOAD\n" /* drops a column */
           "gpu:0   A GPU o...  87 %\n"
           "cpu:0   \xC3\xA4 [2J          -\n",
           (kn_page){.width = 24}, 1);
    expect("DEVICE  NAME\n" /* the rest is never dropped */
           "gpu:0   A GPU...\n"
           "cpu:0   \xC3\xA4 [2J\n",
           (kn_page){.width = 5}, 2);
    expect("\033[1mDEVICE  NAME\n\033[0m"
           "gpu:0   A GPU...\n"
           "cpu:0   \xC3\xA4 [2J\n",
           (kn_page){.width = 16, .colour = true}, 2);
}

static void a_table_may_have_rules(void **state)
{
    (void)state;
    kn_table table = {.columns = columns, .num_columns = COLUMNS_OF_TABLE, .has_rules = true};
    kn_text out = {0};
    assert_int_equal(kn_table_append(&out, &table, (kn_page){.width = 12}), 2);
    char *text = kn_text_finish(&out);
    assert_string_equal(text, "------  ----\nDEVICE  NAME\n------  ----\n------  ----\n");
    kn_free(text);
    kn_table_free(&table);
}

static void lines_are_wrapped_between_words(void **state)
{
    (void)state;
    kn_text out = {0};
    kn_text_append(&out, "problem ");
    kn_append_wrapped(&out, "one two  three averylongwordindeed four\nlines", 8, 2, 16);
    kn_text_append(&out, "\n");
    kn_append_usage(&out, "usage: koine x [--one] [--two]\n\n  --one X  does this and that\n  more of it\nAnd so on.\n",
                    20);
    kn_append_usage(&out, "as long as it is", 0);
    char *text = kn_text_finish(&out);
    assert_string_equal(text, "problem one two\n  three\n  averylongwordindeed\n  four\n  lines\n"
                              "usage: koine x\n       [--one]\n       [--two]\n\n"
                              "  --one X  does this\n           and that\n  more of it\nAnd so on.\n"
                              "as long as it is\n");
    kn_free(text);
}

/* A pipe has no width unless the environment sets one, and no colours. */
static void what_is_no_terminal_has_no_limit(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    unsetenv("COLUMNS");
    assert_int_equal(kn_page_of(fileno(file)).width, 0);
    setenv("COLUMNS", "72", 1);
    assert_int_equal(kn_page_of(fileno(file)).width, 72);
    static const char *const wrong[] = {"", "x", "-3", "0", "80x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("COLUMNS", wrong[i], 1);
        assert_int_equal(kn_page_of(fileno(file)).width, 0);
    }
    unsetenv("COLUMNS");
    assert_false(kn_page_of(fileno(file)).colour);
    assert_false(kn_terminal_redraws(fileno(file)));
    assert_string_equal(kn_colour_on(kn_page_of(fileno(file)), KN_COLOUR_BAD), "");
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_gives_up_first_what_matters_least),
        cmocka_unit_test(a_table_may_have_rules),
        cmocka_unit_test(lines_are_wrapped_between_words),
        cmocka_unit_test(what_is_no_terminal_has_no_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
