/* test_device_log_numbers.c - the device log with many, large or close numbers, with late entries, and with a first
 * update inside a graph. */
#include "support/check.h"

#include <math.h>

#include "support/as_gpu.h"

/* A graph of a thousand updates, replayed: a million take seconds. */
static void update_often(kn_device_log *log, int entry, kn_tensor *x, int thousands)
{
    kn_graph *graph = NULL;
    kn_stream *stream = NULL, *before = kn_stream_current(kn_device_current());
    CHECK_OK(kn_device_log_scalar(log, entry, x, 1));
    CHECK_OK(kn_device_log_reset(log));
    CHECK_NEW(graph = kn_graph_new());
    CHECK_NEW(stream = kn_stream_new(kn_device_current()));
    CHECK_OK(kn_stream_wait_stream(stream, before));
    CHECK_OK(kn_stream_set_current(stream));
    CHECK_OK(kn_graph_capture_begin(graph, stream));
    for (int i = 0; i < 1000; i++)
        CHECK_OK(kn_device_log_scalar(log, entry, x, 1));
    CHECK_OK(kn_graph_capture_end(graph));
    for (int i = 0; i < thousands; i++)
        CHECK_OK(kn_graph_replay(graph));
    CHECK_OK(kn_device_log_read(log));
    CHECK_OK(kn_stream_set_current(before));
    kn_graph_free(graph);
    CHECK_OK(kn_stream_free(stream));
}

/* Adding 0.1 rounds in the same direction for long stretches: without compensation the error accumulates. */
TENSOR_TEST(a_mean_of_many_values_is_exact)
{
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_scalar(log, "x");
    update_often(log, entry, kn_full(KN_SCALAR, 0.1), 300);
    assert_true(kn_device_log_value(log, entry, KN_FIGURE_COUNT) == 300000);
    double error = kn_device_log_value(log, entry, KN_FIGURE_MEAN) / (double)0.1f - 1;
    if (!(fabs(error) < 1e-10))
        fail_msg("the relative error of the mean is %g", error);
    kn_device_log_free(log);
}

TENSOR_TEST(sums_that_overflow_are_infinite)
{
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_scalar(log, "x");
    for (int i = 0; i < 3; i++)
        CHECK_OK(kn_device_log_scalar(log, entry, kn_full(KN_SCALAR, i < 2 ? 3e38 : 1), 1));
    CHECK_OK(kn_device_log_read(log));
    assert_true(isinf(kn_device_log_value(log, entry, KN_FIGURE_MEAN)));
    assert_int_equal(kn_device_log_first_bad(log, entry, NULL), 0); /* all values are finite */
    kn_device_log_free(log);
}

/* --- histograms ------------------------------------------------------------------------------------------------ */

static void check_bin(double low, double high, double x, int expected)
{
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_histogram(log, "h", 10, low, high);
    CHECK_OK(kn_device_log_histogram(log, entry, kn_full(KN_SHAPE(100), x)));
    CHECK_OK(kn_device_log_read(log));
    assert_int_equal(kn_device_log_bins(log, entry, NULL)[expected], 100);
    kn_device_log_free(log);
}

TENSOR_TEST(histograms_of_very_large_and_very_small_ranges)
{
    check_bin(0, 1e38, 5.5e37, 5); /* ten times that is infinite */
    check_bin(0, 3.4e38, 3.4e38, 9);
    check_bin(-1e38, 1e38, 0.9e38, 9);
    check_bin(0, 1e-30, 2.5e-31, 2);
    check_bin(1, 1 + 1e-6, 1, 0);
}

/* These would have given arbitrary bins, and out-of-bounds writes. */
TENSOR_TEST_F64(ranges_that_a_dtype_has_not_are_refused)
{
    const double ranges[][2] = {{-3e38, 3e38}, {0, 1e39}, {-1e300, 0}, {1, 1 + 1e-12}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        kn_device_log *log = kn_device_log_new();
        int entry = kn_device_log_add_histogram(log, "h", 10, ranges[i][0], ranges[i][1]);
        assert_int_equal(entry, 0);
        assert_int_equal(kn_device_log_histogram(log, entry, kn_full(KN_SHAPE(3), 1)), KN_ERR_ARGUMENT);
        CHECK_ERROR(KN_ERR_ARGUMENT, "\"h\"", "not a valid range in float32");
        CHECK_OK(kn_device_log_histogram(log, entry, kn_zeros(KN_SHAPE(3), .dtype = KN_F64)));
        kn_device_log_free(log);
    }
}

/* --- late entries, graphs ---------------------------------------------------------------------------- */

TENSOR_TEST(a_late_entry_has_no_updates)
{
    kn_device_log *log = kn_device_log_new();
    int first = kn_device_log_add_scalar(log, "first");
    for (int way = 0; way < 2; way++) {
        CHECK_OK(kn_device_log_scalar(log, first, kn_ones(KN_SCALAR), 1));
        int late = kn_device_log_add_scalar(log, way ? "one" : "two");
        int bins = kn_device_log_add_histogram(log, way ? "three" : "four", 5, 0, 1);
        if (way) {
            CHECK_OK(kn_device_log_request(log));
            CHECK_OK(kn_device_log_wait(log));
        } else {
            CHECK_OK(kn_device_log_read(log));
        }
        assert_true(kn_device_log_value(log, first, KN_FIGURE_COUNT) == way + 1);
        assert_true(kn_device_log_value(log, late, KN_FIGURE_COUNT) == 0);
        assert_true(kn_device_log_value(log, late, KN_FIGURE_SUM) == 0);
        assert_true(isnan(kn_device_log_value(log, late, KN_FIGURE_MEAN)));
        assert_non_null(kn_device_log_bins(log, bins, NULL));
        assert_int_equal(kn_device_log_bins(log, bins, NULL)[4], 0);
    }
    kn_device_log_free(log);
}

/* Memory allocated in the graph would be cleared at each replay. */
TENSOR_TEST(a_first_update_cannot_be_in_a_graph)
{
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_scalar(log, "loss");
    kn_tensor *x = kn_ones(KN_SCALAR);
    kn_stream *stream = NULL, *before = kn_stream_current(kn_device_current());
    kn_graph *graph = kn_graph_new();
    CHECK_NEW(graph);
    CHECK_NEW(stream = kn_stream_new(kn_device_current()));
    CHECK_OK(kn_stream_set_current(stream));
    CHECK_OK(kn_graph_capture_begin(graph, stream));
    assert_int_equal(kn_device_log_scalar(log, entry, x, 1), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "before the capture");
    assert_int_equal(kn_graph_capture_end(graph), KN_ERR_STATE);
    kn_error_clear();
    CHECK_OK(kn_device_log_scalar(log, entry, x, 1));
    CHECK_OK(kn_device_log_read(log));
    assert_true(kn_device_log_value(log, entry, KN_FIGURE_COUNT) == 1);
    CHECK_OK(kn_stream_set_current(before));
    kn_graph_free(graph);
    CHECK_OK(kn_stream_synchronize(stream));
    CHECK_OK(kn_stream_free(stream));
    kn_device_log_free(log);
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(a_mean_of_many_values_is_exact),
        TEST(sums_that_overflow_are_infinite),
        TEST(histograms_of_very_large_and_very_small_ranges),
        TEST(ranges_that_a_dtype_has_not_are_refused),
        TEST(a_late_entry_has_no_updates),
        TEST(a_first_update_cannot_be_in_a_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
