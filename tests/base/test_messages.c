/* test_messages.c - unprintable characters are escaped in every message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"

static void assert_shown(const char *text, bool keep_lines, const char *expected)
{
    char buffer[64];
    snprintf(buffer, sizeof buffer, "%s", text);
    kn_make_printable(buffer, sizeof buffer, keep_lines);
    assert_string_equal(buffer, expected);
    kn_text appended = {0};
    kn_text_append_printable(&appended, text, keep_lines);
    assert_string_equal(appended.data ? appended.data : "", expected);
    kn_text_free(&appended);
}

static void what_commands_a_terminal_is_quoted(void **state)
{
    (void)state;
    assert_shown("plain, Größe, 大きさ, 🙂", false, "plain, Größe, 大きさ, 🙂");
    assert_shown("", false, "");
    assert_shown("\033[31m\a\b\x7f", false, "\\x1b[31m\\x07\\x08\\x7f");
    assert_shown("a\nb\tc\r", false, "a\\nb\\tc\\r");
    assert_shown("a\nb\tc\r", true, "a\nb\tc\\r");
    assert_shown("\xc2\x9b"
                 "31m",
                 false, "\\u009b31m"); /* U+009B, which is ESC [ */
    assert_shown("\x9b"
                 "31m",
                 false, "\\x9b31m"); /* the same in Latin-1 */
    assert_shown("a\xe2\x80\xae"
                 "b\xe2\x81\xa6",
                 false, "a\\u202eb\\u2066");
    assert_shown("\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80", false, "\\xc0\\x80\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
    assert_shown("\\x1b", false, "\\x1b");
}

/* Escaping makes texts longer: nothing is written past the end, and no escape or character is cut. */
static void what_does_not_fit_is_cut_off(void **state)
{
    (void)state;
    char buffer[12] = "abcdefg\033xyz", end[8] = "abcdefg";
    kn_make_printable(buffer, sizeof buffer, false);
    assert_string_equal(buffer, "abcdefg\\x1b");
    char tight[11] = "abcdefg\033xy";
    kn_make_printable(tight, sizeof tight, false);
    assert_string_equal(tight, "abcdefg");
    memcpy(end + 4, "\xe2\x82\xac", 4); /* whole */
    kn_make_printable(end, sizeof end, false);
    assert_string_equal(end, "abcd\xe2\x82\xac");
    memcpy(end, "abcde\xe2\x82", 8); /* truncated when it was formatted */
    kn_make_printable(end, sizeof end, false);
    assert_string_equal(end, "abcde");
}

static void errors_are_quoted(void **state)
{
    (void)state;
    const char *bad = "x\033[2J\n";
    kn_error_clear();
    assert_int_equal(kn_fail(KN_ERR_IO, "cannot open '%s'", bad), KN_ERR_IO);
    kn_error_prefix("in %s", bad);
    kn_error_suffix(" of %s", bad);
    assert_string_equal(kn_error_message(), "in x\\x1b[2J\\n: cannot open 'x\\x1b[2J\\n' of x\\x1b[2J\\n");
    kn_error_append_lines(": line\n  line\033");
    assert_non_null(strstr(kn_error_message(), ": line\n  line\\x1b"));
    kn_error_clear();
    assert_int_equal(kn_error_set(KN_ERR_STATE, "%s", bad), KN_ERR_STATE);
    assert_string_equal(kn_error_message(), "x\\x1b[2J\\n");
    kn_error_clear();
    kn_fail_null(KN_ERR_STATE, "%s", bad);
    assert_string_equal(kn_error_message(), "x\\x1b[2J\\n");
    kn_error_clear();
    /* The maximum length, all of it escaped. */
    char longest[3000];
    memset(longest, '\033', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    kn_fail(KN_ERR_STATE, "%s", longest);
    assert_true(strlen(kn_error_message()) < 1024 && strlen(kn_error_message()) > 1000);
    assert_null(strchr(kn_error_message(), '\033'));
    kn_error_clear();
}

static char heard[4096];
static void hear(kn_log_level level, const char *message, void *user)
{
    (void)level;
    (void)user;
    snprintf(heard, sizeof heard, "%s", message);
}

static void logs_are_quoted(void **state)
{
    (void)state;
    kn_log_set_level(KN_LOG_DEBUG);
    kn_log_set_handler(hear, NULL);
    kn_log_message(KN_LOG_INFO, "it says `%s`", "\033]0;title\a\n");
    assert_string_equal(heard, "it says `\\x1b]0;title\\x07\\n`");
    kn_log_lines(KN_LOG_INFO, "the log", "one\ntwo\033");
    assert_string_equal(heard, "the log:\none\ntwo\\x1b");
    kn_log_set_handler(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_commands_a_terminal_is_quoted),
        cmocka_unit_test(what_does_not_fit_is_cut_off),
        cmocka_unit_test(errors_are_quoted),
        cmocka_unit_test(logs_are_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
