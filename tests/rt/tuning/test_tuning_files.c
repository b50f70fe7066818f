/* Large, too large, damaged, locked or temporarily unreadable files of tuning results: stored results are never lost,
 * and the time is linear. */
#include "rt/rt_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <errno.h>

#include "base/files.h"
#include "base/system.h"
#include "base/text.h"
#include "rt/tuning/list.h"

static char folder[] = "/tmp/koine-tuning-XXXXXX";
static char said[4096]; /* the warnings of a test */

static void hear(kn_log_level level, const char *message, void *user)
{
    (void)user;
    if (level >= KN_LOG_WARNING)
        snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", message);
}

static int begin(void **state)
{
    (void)state;
    char line[200];
    snprintf(line, sizeof line, "rm -rf '%s'/*", folder);
    said[0] = '\0';
    kn_tuning_forget();
    kn_log_set_handler(hear, NULL);
    return system(line);
}

static kn_device *device(void)
{
    kn_device *current = kn_device_current();
    assert_non_null(current);
    return current;
}

static double seconds_of_cpu(void) { return (double)clock() / CLOCKS_PER_SEC; }

static kn_tuning_result result_of(const char *question, const char *choice)
{
    kn_tuning_result result = {.question = (char *)question, .choice = (char *)choice, .complete = true};
    assert_int_equal(kn_tuning_append(&result, choice, 0.5), KN_OK);
    return result;
}

static void free_figures(kn_tuning_result *result)
{
    result->question = result->choice = NULL;
    kn_tuning_free(result);
}

static kn_status store(const char *question, const char *choice)
{
    kn_tuning_result result = result_of(question, choice);
    kn_status status = kn_tuning_store(device(), &result);
    free_figures(&result);
    return status;
}

static bool is_known(const char *question, const char *choice)
{
    kn_tuning_result found;
    const bool known = kn_tuning_find(&found, device(), question) && strcmp(found.choice, choice) == 0;
    kn_tuning_free(&found);
    return known;
}

/* A file of `count` results with `different` distinct keys; the caller frees its path. */
static char *large_file(const char *name, int count, int different)
{
    char *path = kn_path_join(folder, name), *text;
    assert_int_equal(store("seed", "one"), KN_OK);
    assert_int_equal(kn_tuning_export(device(), path), KN_OK);
    size_t size;
    assert_int_equal(kn_file_read_all(&text, &size, path, 1 << 20), KN_OK);
    char *results = strstr(text, "\"results\"");
    assert_non_null(results);
    kn_text whole = {0};
    kn_text_append_bytes(&whole, text, (size_t)(results - text));
    kn_text_append(&whole, "\"results\": [");
    for (int i = 0; i < count; i++)
        kn_text_format(&whole, "%s{\"question\":\"q%d\",\"choice\":\"c\",\"complete\":true,\"seconds\":{\"c\":1}}",
                       i > 0 ? "," : "", i % different);
    kn_text_append(&whole, "]}");
    kn_free(text);
    text = kn_text_finish(&whole);
    assert_int_equal(kn_file_save_text(path, text), KN_OK);
    kn_free(text);
    return path;
}

/* The thread's error agrees with the status and has a message; clears it. */
static void assert_fails(kn_status status, kn_status expected, const char *piece)
{
    assert_int_equal(status, expected);
    assert_int_equal(kn_error_status(), expected);
    if (!strstr(kn_error_message(), piece))
        fail_msg("expected \"%s\" in: %s", piece, kn_error_message());
    kn_error_clear();
}

/* --- large files ------------------------------------------------------------------------------ */

static void as_many_as_are_kept_are_imported(void **state)
{
    (void)state;
    char *path = large_file("full.json", KN_TUNING_MAX_RESULTS - 1, KN_TUNING_MAX_RESULTS);
    const double start = seconds_of_cpu();
    assert_int_equal(kn_tuning_import(device(), path), KN_OK); /* with the existing `seed`, the maximum */
    const double seconds = seconds_of_cpu() - start;
    print_message("%d results imported in %.2f s\n", KN_TUNING_MAX_RESULTS, seconds);
    assert_true(seconds < 8); /* was once 23 */
    kn_tuning_forget();
    assert_true(is_known("q0", "c") && is_known("q19998", "c") && is_known("seed", "one"));
    assert_string_equal(said, "");
    /* One more is an error with a message, and loses no stored result. */
    assert_fails(store("one more", "c"), KN_ERR_STATE, "more than which are not kept");
    kn_tuning_forget();
    assert_true(is_known("q0", "c") && is_known("seed", "one") && !is_known("one more", "c"));
    assert_int_equal(store("q7", "other"), KN_OK); /* replaces an older one */
    kn_tuning_forget();
    assert_true(is_known("q7", "other"));
    kn_free(path);
}

static void more_than_are_kept_is_an_error(void **state)
{
    (void)state;
    char *path = large_file("over.json", KN_TUNING_MAX_RESULTS + 1, KN_TUNING_MAX_RESULTS + 1);
    assert_fails(kn_tuning_import(device(), path), KN_ERR_FORMAT, "more than 20000 results");
    assert_true(is_known("seed", "one") && !is_known("q0", "c"));
    kn_free(path);
    path = large_file("sum.json", KN_TUNING_MAX_RESULTS, KN_TUNING_MAX_RESULTS); /* one too many with `seed` */
    assert_fails(kn_tuning_import(device(), path), KN_ERR_STATE, "more than which are not kept");
    kn_tuning_forget();
    assert_true(is_known("seed", "one"));
    kn_free(path);
}

/* 16 MiB of results with many duplicate keys: read in linear time. */
static void a_file_full_of_repetitions_does_not_hang(void **state)
{
    (void)state;
    char *path = large_file("repeated.json", 200000, 19000);
    const double start = seconds_of_cpu();
    assert_fails(kn_tuning_import(device(), path), KN_ERR_FORMAT, "more than 20000 results");
    assert_true(seconds_of_cpu() - start < 8);
    kn_free(path);
}

/* --- existing files that cannot be used -------------------------------------------------- */

/* A temporarily unreadable file may be intact: it is not overwritten. */
static void an_unreadable_file_is_not_begun_anew(void **state)
{
    (void)state;
    assert_int_equal(store("old", "kept"), KN_OK);
    for (int n = 1; n < 12; n++) {
        kn_fail_io_after(n, EIO, false);
        kn_status status = store("new", "c");
        const bool hit = kn_fail_io_left() == 0;
        kn_fail_io_after(0, 0, false);
        assert_int_equal(kn_error_status(), status);
        kn_error_clear();
        kn_tuning_forget();
        assert_true(is_known("old", "kept"));
        assert_true(hit);
    }
}

/* A damaged one is overwritten, with a warning. */
static void a_damaged_file_is_begun_anew_aloud(void **state)
{
    (void)state;
    assert_int_equal(store("old", "c"), KN_OK);
    char *path = kn_tuning_path(device());
    assert_int_equal(kn_file_save_text(path, "not JSON \033[2J"), KN_OK);
    assert_int_equal(store("new", "c"), KN_OK);
    assert_non_null(strstr(said, "are discarded"));
    kn_tuning_forget();
    assert_true(is_known("new", "c"));
    kn_free(path);
}

/* A lock held by a stopped process is not waited for forever. */
static void a_lock_that_stays_is_told_of(void **state)
{
    (void)state;
    assert_int_equal(store("old", "c"), KN_OK);
    char name[600], *path = kn_tuning_path(device());
    snprintf(name, sizeof name, "%s.lock", path);
    FILE *other = fopen(name, "w");
    assert_non_null(other);
    assert_int_equal(flock(fileno(other), LOCK_EX), 0);
    kn_tuning_lock_seconds = 1;
    assert_int_equal(store("new", "c"), KN_OK);
    fclose(other);
    assert_non_null(strstr(said, "is locked by another process"));
    kn_tuning_forget();
    assert_true(is_known("old", "c") && is_known("new", "c"));
    kn_free(path);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    setenv("KOINE_CACHE_DIR", folder, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(as_many_as_are_kept_are_imported, begin),
        cmocka_unit_test_setup(more_than_are_kept_is_an_error, begin),
        cmocka_unit_test_setup(a_file_full_of_repetitions_does_not_hang, begin),
        cmocka_unit_test_setup(an_unreadable_file_is_not_begun_anew, begin),
        cmocka_unit_test_setup(a_damaged_file_is_begun_anew_aloud, begin),
        cmocka_unit_test_setup(a_lock_that_stays_is_told_of, begin),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char line[200];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    return system(line) == 0 ? failed : 1;
}
