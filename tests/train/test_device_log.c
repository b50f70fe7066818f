/* test_device_log.c - figures kept on the device: their values, no waits, one transfer per read. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rt/rt.h"
#include "support/as_gpu.h"
#include "support/busy.h"
#include "support/values.h"

static double value(const kn_device_log *log, int entry, kn_log_statistic figure)
{
    return kn_device_log_value(log, entry, figure);
}

static bool close_to(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * (1 + fabs(b)); }

/* --- scalars --------------------------------------------------------------------------------------------------- */

TENSOR_TEST_F64(a_scalar_has_all_its_figures)
{
    for (int wide = 0; wide < 2; wide++) {
        kn_device_log *log = kn_device_log_new();
        int entry = kn_device_log_add_scalar(log, "loss"), other = kn_device_log_add_scalar(log, "other");
        assert_int_equal(entry, 0);
        assert_int_equal(kn_device_log_find(log, "other"), other);
        assert_int_equal(kn_device_log_find(log, "none"), -1);
        assert_true(isnan(value(log, entry, KN_FIGURE_LAST))); /* never read */
        CHECK_OK(kn_device_log_read(log));
        assert_true(isnan(value(log, entry, KN_FIGURE_MEAN)) && isnan(value(log, entry, KN_FIGURE_MIN)));
        assert_true(value(log, entry, KN_FIGURE_COUNT) == 0 && value(log, entry, KN_FIGURE_SUM) == 0);
        const double values[] = {2, -5, 8, 0.5};
        for (int i = 0; i < 4; i++)
            CHECK_OK(kn_device_log_scalar(log, entry, kn_full(KN_SCALAR, values[i], .dtype = wide ? KN_F64 : KN_F32),
                                          i + 1));
        /* a different dtype in another entry */
        CHECK_OK(kn_device_log_scalar(log, other, kn_full(KN_SHAPE(1, 1), 3), 0));
        CHECK_OK(kn_device_log_read(log));
        assert_true(value(log, entry, KN_FIGURE_LAST) == 0.5);
        assert_true(value(log, entry, KN_FIGURE_MIN) == -5 && value(log, entry, KN_FIGURE_MAX) == 8);
        assert_true(value(log, entry, KN_FIGURE_SUM) == 2 - 10 + 24 + 2);
        assert_true(value(log, entry, KN_FIGURE_WEIGHT) == 10 && value(log, entry, KN_FIGURE_COUNT) == 4);
        assert_true(value(log, entry, KN_FIGURE_MEAN) == 1.8);
        assert_true(value(log, other, KN_FIGURE_LAST) == 3 && isnan(value(log, other, KN_FIGURE_MEAN)));
        assert_true(isnan(value(log, 7, KN_FIGURE_LAST)) && isnan(value(log, -1, KN_FIGURE_LAST)));
        assert_int_equal(kn_device_log_first_bad(log, entry, NULL), 0);
        CHECK_OK(kn_device_log_reset(log));
        assert_true(value(log, entry, KN_FIGURE_COUNT) == 4); /* as of the last read */
        CHECK_OK(kn_device_log_read(log));
        assert_true(value(log, entry, KN_FIGURE_COUNT) == 0);
        kn_device_log_free(log);
    }
}

TENSOR_TEST(the_first_value_that_is_no_number_is_remembered)
{
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_scalar(log, "loss");
    bool is_nan = true;
    CHECK_OK(kn_device_log_scalar(log, entry, kn_full(KN_SCALAR, 1), 1));
    CHECK_OK(kn_device_log_read(log));
    assert_int_equal(kn_device_log_first_bad(log, entry, &is_nan), 0);
    CHECK_OK(kn_device_log_scalar(log, entry, kn_full(KN_SCALAR, INFINITY), 1));
    CHECK_OK(kn_device_log_scalar(log, entry, kn_full(KN_SCALAR, NAN), 1));
    CHECK_OK(kn_device_log_read(log));
    assert_int_equal(kn_device_log_first_bad(log, entry, &is_nan), 2);
    assert_false(is_nan);
    assert_true(isnan(value(log, entry, KN_FIGURE_MAX)) && isnan(value(log, entry, KN_FIGURE_MIN)));
    CHECK_OK(kn_device_log_reset(log));
    CHECK_OK(kn_device_log_scalar(log, entry, kn_full(KN_SCALAR, NAN), 1));
    CHECK_OK(kn_device_log_read(log));
    assert_int_equal(kn_device_log_first_bad(log, entry, &is_nan), 1);
    assert_true(is_nan && isnan(value(log, entry, KN_FIGURE_MEAN)));
    kn_device_log_free(log);
}

/* An infinite value gives an infinite sum; compensation would make it NaN. */
TENSOR_TEST(an_infinite_sum_is_infinite)
{
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_scalar(log, "loss");
    CHECK_OK(kn_device_log_scalar(log, entry, kn_full(KN_SCALAR, 1), 1));
    CHECK_OK(kn_device_log_scalar(log, entry, kn_full(KN_SCALAR, INFINITY), 1));
    CHECK_OK(kn_device_log_read(log));
    assert_true(isinf(value(log, entry, KN_FIGURE_SUM)));
    kn_device_log_free(log);
}

/* --- histograms ------------------------------------------------------------------------------------------------ */

/* torch.histc in double precision. */
static void check_histogram(const float *values, int64_t n, int bins, double low, double high)
{
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_histogram(log, "h", bins, low, high);
    int64_t *expected = calloc((size_t)bins, sizeof *expected), outside[3], counted[3] = {0};
    for (int64_t i = 0; i < n; i++) {
        double x = values[i];
        int bin = isnan(x) ? 0 : (int)((x - low) * bins / (high - low));
        if (isnan(x))
            counted[2]++;
        else if (x < low)
            counted[0]++;
        else if (x > high)
            counted[1]++;
        else
            expected[bin < bins ? bin : bins - 1]++;
    }
    kn_tensor *x = kn_from_data(values, KN_SHAPE(n));
    for (int round = 1; round <= 2; round++) {
        CHECK_OK(kn_device_log_histogram(log, entry, round == 1 ? x : kn_to_dtype(x, KN_F32)));
        CHECK_OK(kn_device_log_read(log));
        const int64_t *found = kn_device_log_bins(log, entry, outside);
        assert_non_null(found);
        for (int b = 0; b < bins; b++)
            assert_int_equal(found[b], round * expected[b]);
        for (int i = 0; i < 3; i++)
            assert_int_equal(outside[i], round * counted[i]);
        assert_true(value(log, entry, KN_FIGURE_COUNT) == (double)(round * n));
    }
    free(expected);
    kn_device_log_free(log);
}

TENSOR_TEST(a_histogram_is_histc)
{
    /* torch.histc(tensor([1., 2, 1]), bins=4, min=0, max=3) is [0, 2, 1, 0]; both edges are included. */
    check_histogram((float[]){1, 2, 1}, 3, 4, 0, 3);
    check_histogram((float[]){0, 3, -0.01f, 3.01f, NAN, INFINITY, -INFINITY, 1.5f}, 8, 4, 0, 3);
    check_histogram((float[]){0}, 0, 1, 0, 1);
    const int sizes[] = {1, 17, 4099, 300007};
    float *values = malloc(300007 * sizeof *values);
    test_random random = test_random_from("histogram");
    for (int i = 0; i < 300007; i++) /* on a grid, so that float and double agree on the bin */
        values[i] = (float)((int)test_random_uniform(&random, -300, 300)) / 256;
    for (int i = 0; i < 4; i++) {
        check_histogram(values, sizes[i], 64, -1, 1);
        check_histogram(values, sizes[i], 1, -1, 1);
        check_histogram(values, sizes[i], 4096, -2, 2);
    }
    free(values);
}

/* --- gradient norms -------------------------------------------------------------------------------------------- */

/* Parameters of many sizes with known gradients; more than fit in one launch. */
static void check_norms(kn_dtype dtype, int count)
{
    const int64_t sizes[] = {1, 3, 64, 1000, 65537, 0, 17, 300001};
    kn_tensor *parameters[24];
    const char *names[24];
    double squares = 0, norms[24];
    kn_device_log *log = kn_device_log_new();
    for (int i = 0; i < count; i++) {
        int64_t n = sizes[i % 8];
        names[i] = "p";
        parameters[i] = kn_zeros(KN_SHAPE(n), .dtype = dtype, .requires_grad = true);
        norms[i] = 0;
        if (i == 2) /* without a gradient */
            continue;
        double g = 0.01 * (i + 1);
        {
            KN_NO_GRAD;
            CHECK_OK(kn_set_grad(parameters[i], kn_full(KN_SHAPE(n), g, .dtype = dtype)));
        }
        g = dtype == KN_F64 ? g : (double)(float)g;
        norms[i] = sqrt((double)n) * g;
        squares += norms[i] * norms[i];
    }
    int entry = kn_device_log_add_grad_norm(log, "norm", (kn_parameter_list){parameters, names, count});
    const double tolerance = dtype == KN_F64 ? 1e-12 : 1e-6;
    for (int step = 1; step <= 2; step++) {
        CHECK_OK(kn_device_log_grad_norm(log, entry));
        CHECK_OK(kn_device_log_read(log));
        assert_true(close_to(value(log, entry, KN_FIGURE_LAST), sqrt(squares), tolerance));
        assert_true(close_to(value(log, entry, KN_FIGURE_MEAN), sqrt(squares), tolerance));
        assert_true(value(log, entry, KN_FIGURE_COUNT) == step);
        for (int i = 0; i < count; i++)
            assert_true(close_to(kn_device_log_parameter_norm(log, entry, i), norms[i], tolerance));
        assert_true(isnan(kn_device_log_parameter_norm(log, entry, count)));
    }
    kn_device_log_free(log);
}

TENSOR_TEST_F64(gradient_norms_of_all_and_of_each)
{
    for (int count = 1; count <= 24; count += 23) {
        check_norms(KN_F32, count);
        check_norms(KN_F64, count);
    }
}

/* --- one buffer, one transfer, no wait ------------------------------------------------------------------------- */

typedef struct everything {
    kn_device_log *log;
    kn_tensor *parameter;
    int loss, accuracy, histogram, norm;
} everything;

static everything make_everything(void)
{
    everything e = {.log = kn_device_log_new()};
    static const char *const names[] = {"w"};
    e.parameter = kn_zeros(KN_SHAPE(100), .requires_grad = true);
    CHECK_OK(kn_set_grad(e.parameter, kn_ones(KN_SHAPE(100))));
    e.loss = kn_device_log_add_scalar(e.log, "loss");
    e.accuracy = kn_device_log_add_accuracy(e.log, "accuracy");
    e.histogram = kn_device_log_add_histogram(e.log, "histogram", 8, -1, 1);
    e.norm = kn_device_log_add_grad_norm(e.log, "norm", (kn_parameter_list){&e.parameter, names, 1});
    return e;
}

static void note_everything(everything *e, double loss)
{
    CHECK_OK(kn_device_log_scalar(e->log, e->loss, kn_full(KN_SCALAR, loss), 1));
    CHECK_OK(
        kn_device_log_accuracy(e->log, e->accuracy, kn_ones(KN_SHAPE(5, 3)), kn_zeros(KN_SHAPE(5), .dtype = KN_I64)));
    CHECK_OK(kn_device_log_histogram(e->log, e->histogram, kn_zeros(KN_SHAPE(33))));
    CHECK_OK(kn_device_log_grad_norm(e->log, e->norm));
}

static void check_everything(const everything *e, int updates, double last)
{
    assert_true(value(e->log, e->loss, KN_FIGURE_COUNT) == updates);
    assert_true(value(e->log, e->loss, KN_FIGURE_LAST) == last);
    assert_true(value(e->log, e->accuracy, KN_FIGURE_MEAN) == 1);
    assert_true(value(e->log, e->accuracy, KN_FIGURE_COUNT) == 5 * updates);
    assert_int_equal(kn_device_log_bins(e->log, e->histogram, NULL)[4], 33 * updates);
    assert_true(value(e->log, e->norm, KN_FIGURE_LAST) == 10);
}

TENSOR_TEST(updates_do_not_wait_and_a_read_is_one_transfer)
{
    everything e = make_everything();
    note_everything(&e, 0); /* compiles */
    CHECK_OK(kn_device_log_read(e.log));
    uint64_t before = kn_host_wait_count();
    kn_set_sync_debug_mode(KN_SYNC_DEBUG_ERROR);
    for (int i = 1; i < 5; i++)
        note_everything(&e, i);
    CHECK_OK(kn_device_log_request(e.log));
    kn_set_sync_debug_mode(KN_SYNC_DEBUG_OFF);
    assert_int_equal(kn_host_wait_count() - before, 0);
    CHECK_OK(kn_device_log_read(e.log));
    assert_int_equal(kn_host_wait_count() - before, 1);
    check_everything(&e, 5, 4);
    kn_device_log_free(e.log);
}

TENSOR_TEST(requests_arrive_in_order_each_as_of_its_time)
{
    everything e = make_everything();
    const bool blocks = copies_block(kn_device_current());
    bool arrived = true;
    CHECK_OK(kn_device_log_poll(e.log, &arrived));
    assert_false(arrived);
    assert_int_equal(kn_device_log_wait(e.log), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "nothing was requested");
    CHECK_OK(kn_device_log_request(e.log)); /* before any update */
    CHECK_OK(kn_device_log_poll(e.log, &arrived));
    assert_true(arrived && value(e.log, e.loss, KN_FIGURE_COUNT) == 0);

    note_everything(&e, 0);
    CHECK_OK(kn_device_log_reset(e.log));
    CHECK_OK(kn_synchronize(kn_device_current()));
    for (int round = 0; round < 3; round++) {
        CHECK_OK(kn_device_log_reset(e.log));
        keep_busy(kn_device_current());
        for (int i = 1; i <= KN_LOG_REQUESTS; i++) {
            note_everything(&e, i);
            CHECK_OK(kn_device_log_request(e.log));
            if (i == 1 && round == 0 && !blocks) {
                CHECK_OK(kn_device_log_poll(e.log, &arrived));
                assert_false(arrived); /* the device is busy */
            }
        }
        assert_int_equal(kn_device_log_requests(e.log), KN_LOG_REQUESTS);
        assert_int_equal(kn_device_log_request(e.log), KN_ERR_STATE);
        CHECK_ERROR(KN_ERR_STATE, "pending");
        for (int i = 1; i <= KN_LOG_REQUESTS; i++) {
            if (round == 1)
                CHECK_OK(kn_device_log_wait(e.log));
            else
                for (arrived = false; !arrived;)
                    CHECK_OK(kn_device_log_poll(e.log, &arrived));
            check_everything(&e, i, i);
        }
        assert_int_equal(kn_device_log_requests(e.log), 0);
    }
    keep_busy(kn_device_current()); /* freed with a pending request */
    CHECK_OK(kn_device_log_request(e.log));
    kn_device_log_free(e.log);
}

TENSOR_TEST(entries_may_come_later)
{
    kn_device_log *log = kn_device_log_new();
    int first = kn_device_log_add_scalar(log, "first");
    CHECK_OK(kn_device_log_scalar(log, first, kn_full(KN_SCALAR, 4), 2));
    CHECK_OK(kn_device_log_read(log));
    int second = kn_device_log_add_histogram(log, "second", 3, 0, 1);
    assert_null(kn_device_log_bins(log, second, NULL)); /* not yet read */
    CHECK_OK(kn_device_log_histogram(log, second, kn_ones(KN_SHAPE(6))));
    CHECK_OK(kn_device_log_scalar(log, first, kn_full(KN_SCALAR, 5), 2));
    CHECK_OK(kn_device_log_read(log));
    assert_true(value(log, first, KN_FIGURE_MEAN) == 4.5);
    assert_int_equal(kn_device_log_bins(log, second, NULL)[2], 6);
    assert_null(kn_device_log_bins(log, first, NULL));
    kn_device_log_free(log);
}

TENSOR_TEST(the_same_updates_give_the_same_bits)
{
    double norms[2], means[2];
    for (int run = 0; run < 2; run++) {
        kn_manual_seed(5);
        kn_device_log *log = kn_device_log_new();
        kn_tensor *p = kn_zeros(KN_SHAPE(123457), .requires_grad = true);
        static const char *const names[] = {"w"};
        int norm = kn_device_log_add_grad_norm(log, "n", (kn_parameter_list){&p, names, 1});
        int mean = kn_device_log_add_scalar(log, "m");
        for (int i = 0; i < 5; i++) {
            CHECK_OK(kn_set_grad(p, kn_randn(KN_SHAPE(123457))));
            CHECK_OK(kn_device_log_grad_norm(log, norm));
            CHECK_OK(kn_device_log_scalar(log, mean, kn_rand(KN_SCALAR), 3));
        }
        CHECK_OK(kn_device_log_read(log));
        norms[run] = value(log, norm, KN_FIGURE_MEAN);
        means[run] = value(log, mean, KN_FIGURE_MEAN);
        kn_device_log_free(log);
    }
    assert_true(norms[0] == norms[1] && means[0] == means[1] && norms[0] > 0);
}

/* --- graphs ---------------------------------------------------------------------------------------------------- */

TENSOR_TEST(updates_in_a_replayed_graph_go_on_counting)
{
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_scalar(log, "loss");
    kn_tensor *x = kn_zeros(KN_SCALAR);
    CHECK_OK(kn_device_log_scalar(log, entry, x, 1)); /* warms up, creates the state */
    CHECK_OK(kn_device_log_reset(log));
    kn_graph *graph = kn_graph_new();
    CHECK_NEW(graph);
    kn_stream *stream = NULL, *before = kn_stream_current(kn_device_current());
    CHECK_NEW(stream = kn_stream_new(kn_device_current()));
    CHECK_OK(kn_stream_wait_stream(stream, before));
    CHECK_OK(kn_stream_set_current(stream));
    CHECK_OK(kn_graph_capture_begin(graph, stream));
    CHECK_OK(kn_device_log_scalar(log, entry, x, 1));
    CHECK_OK(kn_graph_capture_end(graph));
    for (int round = 0; round < 3; round++) { /* with a reset in between, followed only by replays */
        for (int i = 1; i <= 5; i++) {
            {
                KN_NO_GRAD;
                CHECK_OK(kn_copy_(x, kn_full(KN_SCALAR, i)));
            }
            CHECK_OK(kn_graph_replay(graph));
        }
        CHECK_OK(kn_device_log_read(log));
        assert_true(value(log, entry, KN_FIGURE_COUNT) == 5 && value(log, entry, KN_FIGURE_MEAN) == 3);
        CHECK_OK(kn_device_log_reset(log));
    }
    CHECK_OK(kn_stream_set_current(before));
    kn_graph_free(graph);
    CHECK_OK(kn_stream_synchronize(stream));
    CHECK_OK(kn_stream_free(stream));
    kn_device_log_free(log);
}

/* --- misuse ---------------------------------------------------------------------------------------------------- */

TENSOR_TEST(what_does_not_fit_is_refused)
{
    kn_device_log *log = kn_device_log_new();
    int scalar = kn_device_log_add_scalar(log, "s"), histogram = kn_device_log_add_histogram(log, "h", 4, 0, 1);
    assert_int_equal(kn_device_log_add_scalar(log, "s"), -1);
    CHECK_ERROR(KN_ERR_ARGUMENT, "already", "\"s\"");
    assert_int_equal(kn_device_log_add_scalar(log, NULL), -1);
    CHECK_ERROR(KN_ERR_ARGUMENT, "name");
    assert_int_equal(kn_device_log_add_scalar(NULL, "x"), -1);
    CHECK_ERROR(KN_ERR_ARGUMENT, "log");
    assert_int_equal(kn_device_log_add_histogram(log, "x", 0, 0, 1), -1);
    CHECK_ERROR(KN_ERR_ARGUMENT, "1 to 4096 bins");
    assert_int_equal(kn_device_log_add_histogram(log, "x", 4097, 0, 1), -1);
    CHECK_ERROR(KN_ERR_ARGUMENT, "4097");
    assert_int_equal(kn_device_log_add_histogram(log, "x", 4, 1, 1), -1);
    CHECK_ERROR(KN_ERR_ARGUMENT, "from 1 to 1");
    assert_int_equal(kn_device_log_add_histogram(log, "x", 4, NAN, 1), -1);
    CHECK_ERROR(KN_ERR_ARGUMENT, "finite");
    assert_int_equal(kn_device_log_add_grad_norm(log, "x", (kn_parameter_list){0}), -1);
    CHECK_ERROR(KN_ERR_ARGUMENT, "at least one parameter");
    assert_int_equal(kn_device_log_scalar(log, 9, kn_ones(KN_SCALAR), 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "no entry 9", "has 2");
    assert_int_equal(kn_device_log_scalar(log, histogram, kn_ones(KN_SCALAR), 1), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "\"h\" is a histogram");
    assert_int_equal(kn_device_log_grad_norm(log, scalar), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "\"s\" is a scalar");
    assert_int_equal(kn_device_log_scalar(log, scalar, NULL, 1), KN_ERR_ARGUMENT);
    kn_error_clear();
    assert_int_equal(kn_device_log_histogram(log, histogram, kn_ones(KN_SHAPE(2), .dtype = KN_I32)), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "int32");
    assert_int_equal(kn_device_log_histogram(log, histogram, kn_ones(KN_SHAPE(2), .device = kn_device_host())),
                     KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "host");
    CHECK_OK(kn_device_log_scalar(log, scalar, kn_ones(KN_SCALAR), 1));
    if (kn_device_limits(kn_device_current())->has_f64) {
        assert_int_equal(kn_device_log_scalar(log, scalar, kn_ones(KN_SCALAR, .dtype = KN_F64), 1), KN_ERR_DEVICE);
        CHECK_ERROR(KN_ERR_DEVICE, "\"s\"", "float32", "float64", "reset");
        CHECK_OK(kn_device_log_reset(log));
        CHECK_OK(kn_device_log_scalar(log, scalar, kn_ones(KN_SCALAR, .dtype = KN_F64), 1));
    }
    assert_int_equal(kn_device_log_read(NULL), KN_ERR_ARGUMENT);
    assert_int_equal(kn_device_log_request(NULL), KN_ERR_ARGUMENT);
    assert_int_equal(kn_device_log_poll(log, NULL), KN_ERR_ARGUMENT);
    assert_int_equal(kn_device_log_reset(NULL), KN_ERR_ARGUMENT);
    assert_int_equal(kn_device_log_requests(NULL), 0);
    kn_device_log_free(NULL);
    kn_error_clear();
    kn_device_log_free(log);
}

TENSOR_TEST(two_devices_are_told_apart)
{
    if (kn_device_count() < 2)
        skip();
    kn_device_log *log = kn_device_log_new();
    int entry = kn_device_log_add_scalar(log, "s");
    CHECK_OK(kn_device_log_scalar(log, entry, kn_ones(KN_SCALAR, .device = kn_device_at(0)), 1));
    assert_int_equal(kn_device_log_scalar(log, entry, kn_ones(KN_SCALAR, .device = kn_device_at(1)), 1), KN_ERR_DEVICE);
    CHECK_ERROR(KN_ERR_DEVICE, "reset");
    CHECK_OK(kn_device_log_reset(log));
    CHECK_OK(kn_device_log_scalar(log, entry, kn_full(KN_SCALAR, 6, .device = kn_device_at(1)), 1));
    CHECK_OK(kn_device_log_read(log));
    assert_true(value(log, entry, KN_FIGURE_SUM) == 6);
    kn_device_log_free(log);
}

/* Whichever allocation fails, the log stays usable and loses nothing. */
TENSOR_TEST(every_allocation_may_fail)
{
    kn_tensor *one = kn_ones(KN_SCALAR);
    static const char *const names[] = {"w"};
    kn_tensor *p = kn_zeros(KN_SHAPE(3), .requires_grad = true);
    for (long n = 1; n < 60; n++) {
        kn_fail_alloc_after(n, 0);
        kn_device_log *log = kn_device_log_new();
        bool arrived;
        if (log) {
            int s = kn_device_log_add_scalar(log, "s"), h = kn_device_log_add_histogram(log, "h", 4, 0, 2);
            int g = kn_device_log_add_grad_norm(log, "g", (kn_parameter_list){&p, names, 1});
            kn_device_log_scalar(log, s, one, 1);
            kn_device_log_histogram(log, h, one);
            kn_device_log_grad_norm(log, g);
            kn_device_log_request(log);
            kn_device_log_poll(log, &arrived);
            kn_device_log_read(log);
        }
        kn_fail_alloc_after(0, 0);
        kn_error_clear();
        kn_device_log_free(log);
    }
    CHECK_OK(kn_synchronize(kn_device_current()));
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(a_scalar_has_all_its_figures),
        TEST(the_first_value_that_is_no_number_is_remembered),
        TEST(an_infinite_sum_is_infinite),
        TEST(a_histogram_is_histc),
        TEST(gradient_norms_of_all_and_of_each),
        TEST(updates_do_not_wait_and_a_read_is_one_transfer),
        TEST(requests_arrive_in_order_each_as_of_its_time),
        TEST(entries_may_come_later),
        TEST(the_same_updates_give_the_same_bits),
        TEST(updates_in_a_replayed_graph_go_on_counting),
        TEST(what_does_not_fit_is_refused),
        TEST(two_devices_are_told_apart),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
