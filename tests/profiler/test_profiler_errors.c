/* The profiler misused, stopped with ranges open, among operations that fail, and without host memory. */
#include <string.h>

#include "base/memory.h"
#include "profiler/training.h"
#include "support/check.h"

TENSOR_TEST(misuse_is_an_error_and_nothing_else)
{
    kn_profiler_row *rows;
    kn_profiler_totals totals;
    int count;
    int64_t commands;
    kn_profiler_clear();
    assert_int_equal(kn_profiler_stop(), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "not running");
    assert_int_equal(kn_profiler_step(), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "not running");
    assert_null(kn_profiler_table());
    CHECK_ERROR(KN_ERR_STATE, "nothing has been recorded");
    assert_int_equal(kn_profiler_export_chrome_trace("/nonexistent/trace.json"), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "nothing has been recorded");
    assert_int_equal(kn_profiler_start(.active = -1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "active -1");
    assert_int_equal(kn_profiler_start(.wait = 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "active is 0");
    CHECK_OK(kn_profiler_start());
    assert_int_equal(kn_profiler_start(), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "running already");
    assert_int_equal(kn_status_of(rows = kn_profiler_key_averages(false, &count)), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "is recording");
    assert_int_equal(kn_profiler_get_totals(&totals), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "is recording");
    assert_null(kn_profiler_commands(&commands));
    CHECK_ERROR(KN_ERR_STATE, "is recording");
    assert_null(kn_profiler_commands(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "count");
    CHECK_OK(kn_profiler_stop());
    assert_int_equal(kn_profiler_export_chrome_trace("/nonexistent/trace.json"), KN_ERR_IO);
    CHECK_ERROR(KN_ERR_IO, "/nonexistent/trace.json");
    assert_int_equal(kn_profiler_export_chrome_trace(NULL), KN_ERR_ARGUMENT);
    kn_error_clear();
}

TENSOR_TEST(open_ranges_are_closed_and_noted)
{
    kn_profiler_totals totals;
    CHECK_OK(kn_profiler_start());
    CHECK_OK(kn_range_push("left open"));
    CHECK_OK(kn_range_push("this too"));
    kn_relu(kn_ones(KN_SHAPE(10)));
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_get_totals(&totals));
    assert_int_equal(totals.still_open, 2);
    char *table = kn_profiler_table();
    assert_non_null(strstr(table, "2 ranges or operations were still open"));
    kn_free(table);
    CHECK_OK(kn_range_pop());
    CHECK_OK(kn_range_pop());
    assert_int_equal(kn_range_pop(), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "a pop too many");
}

/* A failing operation is recorded too, and the profile stays valid. */
TENSOR_TEST(failing_operations_close_their_spans)
{
    kn_profiler_totals totals;
    CHECK_OK(kn_profiler_start(.record_shapes = true, .with_flops = true, .profile_memory = true));
    assert_null(kn_matmul(kn_ones(KN_SHAPE(2, 3)), kn_ones(KN_SHAPE(2, 3))));
    kn_error_clear();
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_get_totals(&totals));
    assert_int_equal(totals.still_open, 0);
    assert_int_equal(totals.operations, 1);
}

/* Running out of host memory loses records, but nothing else. */
static void short_memory_loses_records_only(void **state)
{
    (void)state;
    for (int n = 1; n <= 14; n++) {
        kn_profiler_totals totals;
        CHECK_OK(kn_profiler_start());
        kn_fail_alloc_after(n, 1);
        kn_range_push("outer");
        kn_range_push("inner");
        kn_mark("here");
        assert_int_equal(kn_range_pop(), KN_OK);
        assert_int_equal(kn_range_pop(), KN_OK);
        assert_int_equal(kn_profiler_stop(), KN_OK);
        assert_null(kn_profiler_table(.peak = false));
        kn_fail_alloc_after(0, 0);
        CHECK_ERROR(KN_ERR_MEMORY, "memory");
        CHECK_OK(kn_profiler_get_totals(&totals));
        assert_int_equal(totals.still_open, 0);
        assert_true(totals.ranges + totals.dropped >= 2);
    }
    kn_profiler_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(misuse_is_an_error_and_nothing_else),
        TEST(open_ranges_are_closed_and_noted),
        TEST(failing_operations_close_their_spans),
        TEST(short_memory_loses_records_only),
    };
    return cmocka_run_group_tests(tests, NULL, close_profiler);
}
