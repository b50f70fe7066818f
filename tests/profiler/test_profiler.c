/* The profiler: what it records of a training step, its rows, its table; replays. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "profiler/training.h"
#include "support/check.h"

/* --- records ---------------------------------------------------------------------------------- */

/* For rows by shapes: an operation may also be part of another, such as a product in a product's backward. */
static const kn_profiler_row *find_shaped(const kn_profiler_row *rows, int count, const char *name, const char *shapes)
{
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0 && strcmp(rows[i].input_shapes, shapes) == 0)
            return &rows[i];
    fail_msg("no row `%s` of %s", name, shapes);
    return NULL;
}

TENSOR_TEST(operations_and_kernels_are_recorded)
{
    kn_profiler_row *rows;
    int count;
    kn_tensor *a = kn_rand(KN_SHAPE(64, 32)), *b = kn_rand(KN_SHAPE(32, 16), .requires_grad = true);
    {
        KN_PROFILE(.record_shapes = true, .with_flops = true);
        {
            KN_RANGE("product");
            kn_tensor *c = kn_relu(kn_matmul(a, b));
            CHECK_OK(kn_backward(kn_sum(c)));
        }
        kn_mark("half way");
    }
    assert_false(kn_profiler_is_running());
    CHECK_NEW(rows = kn_profiler_key_averages(true, &count));
    const kn_profiler_row *row = find_shaped(rows, count, "matmul", "[[64, 32], [32, 16]]");
    assert_int_equal(row->count, 1);
    assert_true(row->flops == 2.0 * 64 * 32 * 16);
    assert_true(row->bytes == 4.0 * (64 * 32 + 32 * 16 + 64 * 16));
    assert_true(row->cpu_time_total > 0 && row->self_cpu_time_total <= row->cpu_time_total);
    assert_true(row->device_time_total > 0);
    row = find_row(rows, count, "matmul_backward", false);
    assert_string_equal(row->input_shapes, "[[64, 16], [64, 32], [32, 16]]");
    assert_true(row->flops == 2.0 * 64 * 32 * 16); /* only b requires a gradient */
    row = find_row(rows, count, "relu", false);
    assert_true(row->flops == 64.0 * 16);
    const kn_profiler_row *backward = find_row(rows, count, "backward", false);
    const kn_profiler_row *product = find_row(rows, count, "product", false);
    assert_true(product->cpu_time_total > backward->cpu_time_total);
    assert_true(product->device_time_total > backward->device_time_total && backward->device_time_total > 0);
    assert_true(product->flops > backward->flops && backward->flops > 0);
    kn_free(rows);
}

TENSOR_TEST(transfers_are_recorded)
{
    float numbers[1000] = {0};
    kn_profiler_row *rows;
    kn_profiler_totals totals;
    int count;
    CHECK_OK(kn_profiler_start());
    kn_tensor *x = kn_from_data(numbers, KN_SHAPE(1000));
    CHECK_OK(kn_read(x, numbers, sizeof numbers));
    CHECK_OK(kn_profiler_stop());
    CHECK_NEW(rows = kn_profiler_key_averages(false, &count));
    assert_true(find_row(rows, count, "Memcpy DtoH", true)->bytes == sizeof numbers);
    kn_free(rows);
    CHECK_OK(kn_profiler_get_totals(&totals));
    assert_int_equal(totals.untimed, 0);
    assert_true(totals.transfers >= 2 && totals.kernels == 0);
}

/* One by one: on the host's clock, in order, with the thread's number. */
TENSOR_TEST(commands_are_listed)
{
    float numbers[1000];
    int64_t count, second = 1000000000;
    kn_tensor *x = kn_rand(KN_SHAPE(1000));
    kn_relu(x);
    CHECK_OK(kn_synchronize(kn_device_current()));
    assert_true(kn_profiler_correlate(7) == 0);
    const int64_t before = kn_clock_now();
    CHECK_OK(kn_profiler_start());
    kn_tensor *y = kn_relu(x);
    assert_true(kn_profiler_correlate(0) == 7);
    CHECK_OK(kn_read(y, numbers, sizeof numbers));
    CHECK_OK(kn_profiler_stop());
    const int64_t after = kn_clock_now();
    kn_profiler_command *commands = kn_profiler_commands(&count);
    CHECK_TENSOR((void *)commands);
    assert_int_equal(count, 2);
    assert_true(commands[0].kind == KN_PROFILER_KERNEL && commands[1].kind == KN_PROFILER_COPY);
    assert_string_equal(commands[0].operation, "relu");
    assert_string_equal(commands[1].name, "Memcpy DtoH");
    assert_true(commands[0].global[0] > 0 && commands[1].bytes == sizeof numbers);
    assert_true(commands[0].correlation == 7 && commands[1].correlation == 0);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(commands[i].device, kn_device_current());
        assert_true(commands[i].enqueued >= before && commands[i].enqueued <= after);
        assert_true(commands[i].start >= before && commands[i].end >= commands[i].start);
        assert_true(commands[i].end <= after + second); /* the clocks' offset is as exact as the host is idle */
    }
    assert_true(commands[1].start >= commands[0].end); /* one stream, in order */
    kn_free(commands);
}

TENSOR_TEST(work_is_counted_by_formula)
{
    kn_profiler_row *rows;
    int count;
    kn_tensor *x = kn_rand(KN_SHAPE(2, 3, 8, 8), .requires_grad = true),
              *w = kn_rand(KN_SHAPE(4, 3, 3, 3), .requires_grad = true);
    kn_tensor *bias = kn_rand(KN_SHAPE(4), .requires_grad = true);
    kn_tensor *log_probabilities = kn_rand(KN_SHAPE(7, 10), .requires_grad = true);
    kn_tensor *labels = kn_randint(0, 10, KN_SHAPE(7));
    {
        KN_PROFILE(.with_flops = true);
        kn_tensor *y = kn_conv2d(x, w, bias);
        CHECK_OK(kn_backward(kn_sum(kn_max_pool2d(y, .kernel_size = 2))));
        CHECK_OK(kn_backward(kn_nll_loss(log_probabilities, labels)));
    }
    CHECK_NEW(rows = kn_profiler_key_averages(false, &count));
    const double outputs = 2 * 4 * 6 * 6, products = 2 * 3 * 3 * 3;
    assert_true(find_row(rows, count, "conv2d", false)->flops == outputs * (products + 1));
    assert_true(find_row(rows, count, "conv2d_backward", false)->flops == outputs * (2 * products + 1));
    assert_true(find_row(rows, count, "max_pool2d", false)->flops == outputs);
    assert_true(find_row(rows, count, "sum", false)->flops == outputs / 4);
    assert_true(find_row(rows, count, "nll_loss", false)->flops == 7); /* one per row, for any reduction */
    assert_true(find_row(rows, count, "nll_loss_backward", false)->flops == 7);
    kn_free(rows);
}

/* The backward pass of a layer with a bias includes a separate sum over many rows: its kernels get the sum's work, the
 * other kernels the rest. */
TENSOR_TEST(kernels_have_each_operations_work_once)
{
    kn_profiler_row *rows;
    int count;
    double of_kernels = 0;
    kn_tensor *x = kn_rand(KN_SHAPE(2000, 8)), *w = kn_rand(KN_SHAPE(4, 8), .requires_grad = true),
              *bias = kn_rand(KN_SHAPE(4), .requires_grad = true), *y = kn_linear(x, w, bias);
    {
        KN_PROFILE(.with_flops = true);
        CHECK_OK(kn_backward_with(y, kn_ones(KN_SHAPE(2000, 4)), false));
    }
    CHECK_NEW(rows = kn_profiler_key_averages(false, &count));
    assert_true(find_row(rows, count, "sum", false)->flops > 0);
    double of_operation = find_row(rows, count, "linear_backward", false)->flops;
    for (int i = 0; i < count; i++)
        if (rows[i].on_device && strcmp(rows[i].name, "Memset") != 0 && strcmp(rows[i].name, "fill") != 0)
            of_kernels += rows[i].flops;
    if (of_kernels < 0.999 * of_operation || of_kernels > 1.001 * of_operation)
        fail_msg("the kernels have %g flops, the operation %g", of_kernels, of_operation);
    kn_free(rows);
}

static int64_t step_device_time(training *t, double *wall, double *device)
{
    kn_profiler_totals totals;
    CHECK_OK(kn_synchronize(kn_device_current()));
    CHECK_OK(kn_profiler_start());
    for (int i = 0; i < 3; i++)
        training_step(t);
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_get_totals(&totals));
    *wall = totals.wall_time;
    *device = totals.device_time;
    return totals.kernels;
}

/* An in-order queue is busy for most of a realistic step, and never more than 100 %. */
static void kernels_add_up_to_the_step(void **state)
{
    training t;
    double wall, device;
    (void)state;
    training_open(&t, 64);
    for (int i = 0; i < 2; i++)
        training_step(&t); /* kernels are compiled */
    int64_t kernels = step_device_time(&t, &wall, &device);
    if (device < 0.5 * wall) /* the machine was busy: try again */
        kernels = step_device_time(&t, &wall, &device);
    if (kernels < 3 * 20 || device > wall || device < 0.5 * wall)
        fail_msg("%lld kernels took %.0f of %.0f us", (long long)kernels, device, wall);
    training_close(&t);
    kn_profiler_clear();
}

/* --- the table -------------------------------------------------------------------------------- */

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void the_table_has_pytorchs_columns(void **state)
{
    training t;
    (void)state;
    training_open(&t, 8);
    CHECK_OK(kn_profiler_start(.with_flops = true, .profile_memory = true, .record_shapes = true));
    training_step(&t);
    CHECK_OK(kn_profiler_stop());
    char *table = kn_profiler_table(.group_by_input_shape = true, .row_limit = 0, .width = KN_WIDE);
    CHECK_TENSOR((void *)table);
    static const char *const expected[] = {"Self CPU %",
                                           "CPU total",
                                           "CPU time avg",
                                           "Self Device",
                                           "# of Calls",
                                           "Input Shapes",
                                           "GFLOPs",
                                           "GB/s",
                                           "% of peak",
                                           "Device Mem",
                                           "conv2d_backward",
                                           "Optimizer.step#Adam.step",
                                           "[[8, 1, 28, 28], [32, 1, 3, 3], [32]]",
                                           "forward",
                                           "backward",
                                           "update",
                                           "Self CPU time total: ",
                                           "Self Device time total: "};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        if (!strstr(table, expected[i]))
            fail_msg("no `%s` in\n%s", expected[i], table);
    kn_free(table);
    table = kn_profiler_table(.sort_by = "cuda_time_total", .row_limit = 4, .peak = false);
    CHECK_TENSOR((void *)table);
    assert_int_equal(count_lines(table), 3 + 4 + 1 + 3);
    assert_null(strstr(table, "% of peak"));
    kn_free(table);
    assert_null(kn_profiler_table(.sort_by = "beauty"));
    CHECK_ERROR(KN_ERR_ARGUMENT, "`beauty`", "self_device_time_total");
    assert_null(kn_profiler_table(.row_limit = -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "row_limit");
    training_close(&t);
    kn_profiler_clear();
}

static int longest_of(char *text)
{
    int longest = 0;
    for (const char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        longest = (int)strlen(line) > longest ? (int)strlen(line) : longest;
    return longest;
}

/* By `width`, or by the environment without one. */
static void the_table_fits_a_page(void **state)
{
    training t;
    (void)state;
    training_open(&t, 8);
    CHECK_OK(kn_profiler_start(.with_flops = true, .profile_memory = true, .record_shapes = true));
    training_step(&t);
    CHECK_OK(kn_profiler_stop());
    static const int widths[] = {80, 100, 132, 60};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (int by_shape = 0; by_shape < 2; by_shape++) {
            char *table = kn_profiler_table(.width = widths[i], .group_by_input_shape = by_shape == 1);
            CHECK_TENSOR((void *)table);
            assert_non_null(strstr(table, "Self Device"));
            assert_non_null(strstr(table, "columns were left out"));
            if (by_shape)
                assert_non_null(strstr(table, "Input Shapes"));
            assert_in_range(longest_of(table), widths[i] - 25, widths[i]);
            kn_free(table);
        }
    setenv("COLUMNS", "80", 1);
    char *table = kn_profiler_table(), *all = kn_profiler_table(.width = KN_WIDE);
    unsetenv("COLUMNS");
    assert_in_range(longest_of(table), 40, 80);
    assert_true(longest_of(all) > 200);
    kn_free(table);
    kn_free(all);
    training_close(&t);
    kn_profiler_clear();
}

/* The peaks are measured within the process's memory limit; if that is too small, they stay unknown. */
TENSOR_TEST(a_small_share_of_memory_leaves_a_table)
{
    kn_device *device = kn_device_current();
    kn_tensor *x = kn_ones(KN_SHAPE(1 << 20));
    {
        KN_PROFILE(.with_flops = true);
        kn_relu(x);
    }
    CHECK_OK(kn_empty_cache(device));
    CHECK_OK(kn_set_per_process_memory_fraction(device, 1e-9));
    char *table = kn_profiler_table();
    assert_non_null(table);
    kn_free(table);
    uint64_t free_bytes, total;
    CHECK_OK(kn_mem_get_info(device, &free_bytes, &total));
    CHECK_OK(
        kn_set_per_process_memory_fraction(device, (double)(kn_memory_reserved(device) + (64 << 20)) / (double)total));
    kn_profiler_row *rows;
    int count;
    CHECK_NEW(rows = kn_profiler_key_averages(false, &count));
    assert_true(find_row(rows, count, "relu", false)->fraction_of_peak > 0);
    kn_free(rows);
    CHECK_OK(kn_set_per_process_memory_fraction(device, 1));
    kn_profiler_clear();
}

TENSOR_TEST(rows_sort_by_what_is_asked)
{
    {
        KN_PROFILE();
        kn_tensor *x = kn_ones(KN_SHAPE(10));
        for (int i = 0; i < 5; i++)
            kn_relu(x);
        kn_exp(x);
    }
    char *table = kn_profiler_table(.sort_by = "count");
    assert_true(strstr(table, "relu") < strstr(table, "exp"));
    kn_free(table);
    table = kn_profiler_table(.sort_by = "name");
    assert_true(strstr(table, "exp") < strstr(table, "relu"));
    kn_free(table);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void skip_if_guarded(void)
{
    if (getenv("KOINE_GUARD")) /* guards make buffers larger */
        skip();
}

TENSOR_TEST_AFTER(memory_is_told_by_operation, skip_if_guarded())
{
    kn_profiler_row *rows;
    int count;
    kn_tensor *x = kn_ones(KN_SHAPE(1 << 18));
    {
        KN_PROFILE(.profile_memory = true);
        kn_relu(x);
    }
    CHECK_NEW(rows = kn_profiler_key_averages(false, &count));
    assert_int_equal(find_row(rows, count, "relu", false)->device_memory_usage, 4 << 18);
    kn_free(rows);
}

/* --- graphs ----------------------------------------------------------------------------------- */

static void check_that_replays_have_their_numbers(void)
{
    int64_t count, of_replay[6] = {0};
    kn_profiler_command *commands = kn_profiler_commands(&count);
    CHECK_TENSOR((void *)commands);
    for (int64_t i = 0; i < count; i++) {
        assert_in_range(commands[i].correlation, 1, 5);
        of_replay[commands[i].correlation]++;
    }
    for (int i = 1; i <= 5; i++)
        assert_true(of_replay[i] == count / 5);
    kn_free(commands);
}

/* Another thread enqueues replays; stopping waits for the pending ones. */
static void replays_are_recorded(void **state)
{
    training t;
    kn_graph *graph;
    kn_profiler_totals totals;
    kn_profiler_row *rows;
    int count;
    (void)state;
    training_open(&t, 4);
    for (int i = 0; i < 2; i++)
        training_step(&t);
    CHECK_NEW(graph = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        training_step(&t);
    }
    CHECK_OK(kn_profiler_start());
    for (int i = 0; i < 5; i++) {
        kn_profiler_correlate((uint64_t)i + 1);
        CHECK_OK(kn_graph_replay(graph));
    }
    kn_profiler_correlate(0);
    CHECK_OK(kn_profiler_stop());
    CHECK_OK(kn_profiler_get_totals(&totals));
    assert_int_equal(totals.operations, 0); /* no operation ran, only recorded commands */
    assert_int_equal(totals.untimed, 0);
    CHECK_NEW(rows = kn_profiler_key_averages(false, &count));
    assert_int_equal(find_row(rows, count, "adam", true)->count % 5, 0);
    assert_int_equal(find_row(rows, count, "max_pool_forward", true)->count, 10);
    kn_free(rows);
    check_that_replays_have_their_numbers();
    kn_graph_free(graph);
    training_close(&t);
    kn_profiler_clear();
}

typedef struct replayer {
    kn_graph *graph;
    atomic_bool ends;
    atomic_int replays, errors;
} replayer;

static void *replay_on_and_on(void *argument)
{
    replayer *r = argument;
    while (!atomic_load(&r->ends)) {
        atomic_fetch_add(&r->errors, kn_graph_replay(r->graph) != KN_OK);
        atomic_fetch_add(&r->replays, 1);
    }
    return NULL;
}

/* Stopping waits for earlier replays, not for later ones by another thread. */
static void a_stop_comes_back_while_another_thread_replays(void **state)
{
    training t;
    pthread_t thread;
    kn_profiler_totals totals;
    replayer r = {0};
    (void)state;
    training_open(&t, 4);
    for (int i = 0; i < 2; i++)
        training_step(&t);
    CHECK_NEW(r.graph = kn_graph_new());
    {
        KN_GRAPH_CAPTURE(r.graph, NULL);
        training_step(&t);
    }
    assert_int_equal(pthread_create(&thread, NULL, replay_on_and_on, &r), 0);
    CHECK_OK(kn_profiler_start());
    while (atomic_load(&r.replays) < 10)
        sched_yield();
    CHECK_OK(kn_profiler_stop());
    atomic_store(&r.ends, true);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&r.errors), 0);
    CHECK_OK(kn_profiler_get_totals(&totals));
    assert_true(totals.kernels > 0);
    assert_int_equal(totals.untimed, 0);
    kn_graph_free(r.graph);
    training_close(&t);
    kn_profiler_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_small_share_of_memory_leaves_a_table), /* before the peaks are known */
        TEST(operations_and_kernels_are_recorded),
        TEST(transfers_are_recorded),
        TEST(commands_are_listed),
        TEST(work_is_counted_by_formula),
        TEST(kernels_have_each_operations_work_once),
        TEST(kernels_add_up_to_the_step),
        TEST(the_table_has_pytorchs_columns),
        TEST(the_table_fits_a_page),
        TEST(rows_sort_by_what_is_asked),
        TEST(memory_is_told_by_operation),
        TEST(replays_are_recorded),
        TEST(a_stop_comes_back_while_another_thread_replays),
    };
    return cmocka_run_group_tests(tests, NULL, close_profiler);
}
