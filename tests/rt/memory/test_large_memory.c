/* All of a device's memory: buffers larger than a quarter of it, offsets and counts beyond 32 bits, and training with a
 * growing batch until memory is exhausted.
 *
 *     test_large_memory [--as-gpu]            as if the device had 128 MiB, or 16 (or what KOINE_MEMORY_LIMIT says)
 *     test_large_memory [--as-gpu] --full     with all its memory: tools/gpu-check.sh, part "big"
 */
#include "rt/rt_test.h"

#include <stdlib.h>

#include "support/as_gpu.h"

#define GIB ((uint64_t)1 << 30)
#define COLUMNS 1024
#define MAX_PLACES 16

static bool full;

/* Positions that reveal wrong indices: the ends, and both sides of the 31-bit and 32-bit boundaries, in bytes and in
 * elements. Each holds a different power of two, so that the sum tells which were counted, and how often. */
typedef struct places {
    int count;
    int64_t at[MAX_PLACES];
} places;

static places places_in(int64_t n)
{
    const int64_t k = (int64_t)1 << 29;
    const int64_t wanted[] = {0,         1,     n / 2,     k - 1,       k,         2 * k - 1, 2 * k,          4 * k,
                              4 * k - 1, 8 * k, 8 * k - 1, n - COLUMNS, n / 4 * 3, n - 1,     n - 3 * COLUMNS};
    places p = {0};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        bool known = wanted[i] >= n;
        for (int j = 0; j < p.count; j++)
            known = known || p.at[j] == wanted[i];
        if (!known)
            p.at[p.count++] = wanted[i];
    }
    return p;
}

static double value_at(int place) { return (double)(1 << place); }

static double element(kn_tensor *x, int64_t i)
{
    double value = -1;

    KN_SCOPE;
    assert_ok(kn_item(kn_narrow(x, 0, i, 1), &value));

    return value;
}

/* Alternately by a kernel and by a copy from the host. */
static void mark(kn_tensor *x, const places *p)
{
    for (int i = 0; i < p->count; i++) {
        KN_SCOPE;
        kn_tensor *one = kn_narrow(x, 0, p->at[i], 1);
        const float value = (float)value_at(i);
        if (i % 2)
            assert_ok(kn_write(one, &value, sizeof value));
        else
            assert_non_null(kn_fill_(one, value));
    }
}

/* --- sizes ------------------------------------------------------------------------------------ */

static uint64_t total_memory(void)
{
    uint64_t free_bytes, total;
    assert_ok(kn_mem_get_info(test_device(), &free_bytes, &total));
    return total;
}

/* Zeros in f32: more than a quarter of the memory, the largest buffer that NVIDIA's driver reports, and more than 2^31
 * elements if memory permits; otherwise what the device reports. */
static kn_tensor *large_zeros(void)
{
    kn_device_properties properties;
    const uint64_t total = total_memory(), more_than_31_bits = 8 * GIB + ((uint64_t)64 << 20);
    uint64_t bytes = total / 4 + ((uint64_t)1 << 20);
    assert_ok(kn_device_get_properties(test_device(), &properties));
    if (bytes < more_than_31_bits && total > 3 * more_than_31_bits)
        bytes = more_than_31_bits;
    kn_tensor *x = kn_zeros(KN_SHAPE((int64_t)(bytes / 4) / COLUMNS * COLUMNS));
    if (!x && bytes > properties.max_allocation) {
        print_message("a buffer of %.2f GiB was refused: %s\n", (double)bytes / GIB, kn_error_message());
        kn_error_clear();
        x = kn_zeros(KN_SHAPE((int64_t)(properties.max_allocation / 4) / COLUMNS * COLUMNS));
    }
    if (!x)
        fail_msg("%s", kn_error_message());
    print_message("%.2f GiB of %.2f GiB in one buffer (%.2f GiB promised): %lld elements\n",
                  4 * (double)kn_numel(x) / GIB, (double)total / GIB, (double)properties.max_allocation / GIB,
                  (long long)kn_numel(x));
    return x;
}

/* --- one large buffer ------------------------------------------------------------------------- */

static void sums_and_maxima_reach_every_place(kn_tensor *y, const places *p, double factor)
{
    double sum = 0, value;
    int64_t index;
    for (int i = 0; i < p->count; i++)
        sum += factor * value_at(i);
    assert_ok(kn_item(kn_sum(y), &value));
    assert_true(value == sum);
    assert_ok(kn_item(kn_max(y), &value));
    assert_true(value == factor * value_at(p->count - 1));
    assert_ok(kn_item_i64(kn_argmax(y, 0, false), &index));
    assert_int_equal(index, p->at[p->count - 1]);
}

static void a_buffer_above_a_quarter_of_the_memory(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *x = large_zeros(), *y;
    const places p = places_in(kn_numel(x));
    mark(x, &p);
    sums_and_maxima_reach_every_place(x, &p, 1);
    assert_non_null(y = kn_add(x, x));
    for (int i = 0; i < p.count; i++) {
        assert_true(element(x, p.at[i]) == value_at(i));
        assert_true(element(y, p.at[i]) == 2 * value_at(i));
    }
    sums_and_maxima_reach_every_place(y, &p, 2);
}

static void a_large_buffer_is_transposed(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *x = large_zeros(), *y;
    const int64_t n = kn_numel(x), rows = n / COLUMNS;
    const places p = places_in(n);
    mark(x, &p);
    y = kn_contiguous(kn_t(kn_reshape(x, KN_SHAPE(rows, COLUMNS))));
    assert_non_null(y = kn_reshape(y, KN_SHAPE(n)));
    for (int i = 0; i < p.count; i++)
        assert_true(element(y, p.at[i] % COLUMNS * rows + p.at[i] / COLUMNS) == value_at(i));
}

static void a_large_buffer_is_filled(void **state)
{
    (void)state;

    KN_SCOPE;
    kn_tensor *x = large_zeros();
    const double n = (double)kn_numel(x);
    double value;
    assert_non_null(kn_fill_(x, 1));
    assert_ok(kn_item(kn_max(kn_neg(x)), &value)); /* -1 unless something is missing */
    assert_true(value == -1);
    assert_ok(kn_item(kn_sum(x), &value));
    assert_true(value > n * (1 - 1e-6) && value < n * (1 + 1e-6));
}

/* More than 2^31 elements if f32 would be too large. */
static void bytes_beyond_31_bits(void **state)
{
    (void)state;
    const int64_t middle = (int64_t)1 << 31, n = middle + 4 * COLUMNS, rows = n / COLUMNS;
    const int64_t at[] = {0, middle - 1, middle, middle + 1, n - 1};
    const double wanted[] = {6, 6, 10, 6, 6};
    int64_t found;
    if (!full || total_memory() < 5 * GIB)
        skip();

    KN_SCOPE;
    kn_tensor *x = kn_full(KN_SHAPE(n), 3, .dtype = KN_U8);
    const unsigned char five = 5;
    assert_non_null(x);
    assert_ok(kn_write(kn_narrow(x, 0, middle, 1), &five, 1));
    assert_ok(kn_item_i64(kn_sum(x), &found));
    assert_int_equal(found, 3 * n + 2);
    assert_ok(kn_item_i64(kn_argmax(x, 0, false), &found));
    assert_int_equal(found, middle);
    {
        KN_SCOPE;
        kn_tensor *y = kn_add(x, x);
        assert_non_null(y);
        for (int i = 0; i < 5; i++)
            assert_true(element(y, at[i]) == wanted[i]);
    }

    KN_SCOPE;
    kn_tensor *y = kn_contiguous(kn_t(kn_reshape(x, KN_SHAPE(rows, COLUMNS))));
    assert_non_null(y = kn_reshape(y, KN_SHAPE(n)));
    assert_true(element(y, rows - 4) == 5); /* the first of row 2^21 */
    assert_true(element(y, rows - 3) == 3 && element(y, n - 1) == 3);
}

/* --- training until the memory is full -------------------------------------------------------- */

typedef struct training {
    kn_module *net;
    kn_optim *optim;
} training;

static training new_training(void)
{
    training t;
    kn_manual_seed(1);
    t.net = kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3), kn_nn_relu(),
                             kn_nn_max_pool2d(.kernel_size = 2), kn_nn_flatten(),
                             kn_nn_linear(.in_features = 5408, .out_features = 10));
    t.optim = kn_optim_adam(kn_module_parameters(t.net), .lr = 0.001);
    assert_non_null(t.optim);
    return t;
}

static void end_training(training *t)
{
    kn_optim_free(t->optim);
    kn_module_free(t->net);
}

static kn_status step(training *t, int64_t batch, double *loss)
{
    kn_status status = KN_ERR_MEMORY;

    KN_SCOPE;
    kn_tensor *images = kn_rand(KN_SHAPE(batch, 1, 28, 28)), *labels = kn_randint(0, 10, KN_SHAPE(batch));
    kn_tensor *error = kn_cross_entropy(kn_forward(t->net, images), labels);
    status = kn_backward(error);
    if (status == KN_OK)
        status = kn_optim_step(t->optim);
    if (status == KN_OK)
        status = kn_item(error, loss);
    kn_optim_zero_grad(t->optim);

    return status;
}

#define STEPS 3
#define SMALL_BATCH 16

static void train(double losses[STEPS])
{
    training t = new_training();
    for (int i = 0; i < STEPS; i++)
        assert_ok(step(&t, SMALL_BATCH, &losses[i]));
    end_training(&t);
}

static void assert_sentence(void)
{
    static const char *const parts[] = {"out of memory on ", "asked for ", " in use, ",
                                        " cached, ",         " in all",    "a smaller batch needs less"};
    const char *message = kn_error_message();
    print_message("%s\n", message);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(message, parts[i]))
            fail_msg("the message is `%s`, without `%s`", message, parts[i]);
    kn_error_clear();
}

static void a_batch_that_fills_the_memory(void **state)
{
    (void)state;
    double before[STEPS], after[STEPS], loss = 0;
    train(before);
    training t = new_training();
    assert_ok(step(&t, SMALL_BATCH, &loss));
    const uint64_t between_steps = kn_memory_allocated(test_device());
    int64_t batch = SMALL_BATCH;
    kn_status status;
    while ((status = step(&t, 2 * batch, &loss)) == KN_OK)
        batch *= 2;
    print_message("a batch of %lld trains (%.2f GiB reserved), one of %lld does not:\n", (long long)batch,
                  (double)kn_memory_reserved(test_device()) / GIB, 2 * (long long)batch);
    assert_int_equal(status, KN_ERR_MEMORY);
    assert_sentence();
    assert_int_equal(kn_memory_allocated(test_device()), between_steps); /* the failed step leaks nothing */
    assert_ok(step(&t, batch, &loss));
    end_training(&t);
    train(after);
    assert_memory_equal(before, after, sizeof before);
}

static int empty(void **state)
{
    (void)state;
    return kn_empty_cache(test_device()) == KN_OK ? 0 : -1;
}

#define TEST(function) cmocka_unit_test_teardown(function, empty)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_buffer_above_a_quarter_of_the_memory),
        TEST(a_large_buffer_is_transposed),
        TEST(a_large_buffer_is_filled),
        TEST(bytes_beyond_31_bits),
        TEST(a_batch_that_fills_the_memory),
    };
    full = argc > 1 && strcmp(argv[argc - 1], "--full") == 0;
    if (!full) /* less for GPU kernels, which are unoptimised here */
        setenv("KOINE_MEMORY_LIMIT", argc > 1 ? "16777216" : "134217728", 0);
    obey_as_gpu(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
