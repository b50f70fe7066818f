/* Out of memory, with a small fraction of the device: the cache is freed and the driver retried, the error gives the
 * figures, training continues with a smaller batch, nothing leaks. */
#include "rt/rt_test.h"

#include <unistd.h>

#include "rt/device/inject.h"
#include "rt/memory/pool.h"

#define MIB ((int64_t)1 << 20)
#define SHARE (24.0 / 64) /* of the 64 MiB that KOINE_MEMORY_LIMIT makes of the device */

static int64_t stat(const char *key)
{
    int64_t value = -2;
    assert_ok(kn_memory_stat(test_device(), key, &value));
    return value;
}

static int fresh(void **state)
{
    (void)state;
    assert_ok(kn_empty_cache(test_device()));
    kn_reset_accumulated_memory_stats(test_device());
    return 0;
}

static int whole_device(void **state)
{
    (void)state;
    return kn_set_per_process_memory_fraction(test_device(), 1) == KN_OK ? 0 : -1;
}

static void a_share_limits_what_is_reserved(void **state)
{
    (void)state;
    kn_device *device = test_device();
    uint64_t free_bytes, total_bytes;
    assert_true(kn_get_per_process_memory_fraction(device) == 1);
    assert_ok(kn_set_per_process_memory_fraction(device, SHARE));
    assert_true(kn_get_per_process_memory_fraction(device) == SHARE);
    assert_ok(kn_mem_get_info(device, &free_bytes, &total_bytes));
    assert_int_equal(total_bytes, 64 * MIB); /* a fraction does not change the device's total */
    {
        KN_SCOPE;
        assert_non_null(kn_zeros(KN_SHAPE(20 * MIB / 4)));
        assert_null(kn_zeros(KN_SHAPE(5 * MIB / 4)));
        assert_int_equal(kn_error_status(), KN_ERR_MEMORY);
        const char *message = kn_error_message();
        assert_non_null(strstr(message,
                               "asked for 5.0 MiB; 20.0 MiB in use, 0 B cached, 64.0 MiB in all, of which this "
                               "process may have 24.0 MiB"));
        kn_error_clear();
        assert_non_null(kn_zeros(KN_SHAPE(4 * MIB / 4)));
    }
    assert_int_equal(stat("num_ooms"), 1);
    assert_true(stat("num_alloc_retries") >= 1);
    assert_true(stat("reserved_bytes.all.peak") <= 24 * MIB);
}

static void the_cache_is_given_back_and_the_driver_asked_again(void **state)
{
    (void)state;
    assert_ok(kn_set_per_process_memory_fraction(test_device(), SHARE));
    {
        KN_SCOPE;
        assert_non_null(kn_zeros(KN_SHAPE(12 * MIB / 4)));
    } /* cached: 12 MiB in one piece */
    {
        KN_SCOPE;
        assert_non_null(kn_zeros(KN_SHAPE(22 * MIB / 4)));
    } /* fits only without that */
    assert_int_equal(stat("num_alloc_retries"), 1);
    assert_int_equal(stat("num_ooms"), 0);
    assert_int_equal(stat("num_sync_all_streams"), 1);
    assert_int_equal(stat("reserved_bytes.all.current"), 22 * MIB);
}

/* A request that would have got a larger segment gets one that just fits. */
static void the_second_try_asks_for_no_more_than_needed(void **state)
{
    (void)state;
    assert_ok(kn_set_per_process_memory_fraction(test_device(), 10.0 / 64));
    {
        KN_SCOPE;
        assert_non_null(kn_zeros(KN_SHAPE(9 * MIB / 4)));
    }
    assert_int_equal(stat("reserved_bytes.all.current"), 10 * MIB);
}

static void a_limit_below_what_is_used_spares_it(void **state)
{
    (void)state;
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(30 * MIB / 4));
        assert_non_null(x);
        assert_ok(kn_set_per_process_memory_fraction(test_device(), 0.1));
        double value;
        assert_ok(kn_item(kn_select(x, 0, 7), &value)); /* existing tensors still work */
        assert_true(value == 1);
        assert_null(kn_zeros(KN_SHAPE(MIB)));
        assert_message("of which this process may have 6.4 MiB");
    }
    {
        KN_SCOPE;
        assert_non_null(kn_zeros(KN_SHAPE(MIB)));
    } /* 4 MiB fit once the large one is gone */
}

static void a_limit_for_nothing_says_so(void **state)
{
    (void)state;
    assert_ok(kn_set_per_process_memory_fraction(test_device(), 1e-9));
    assert_null(kn_zeros(KN_SHAPE(1)));
    assert_message("of which this process may have 0 B");
    assert_ok(kn_set_per_process_memory_fraction(test_device(), 1));

    KN_SCOPE;
    assert_non_null(kn_zeros(KN_SHAPE(1)));
}

static void wrong_shares_are_refused(void **state)
{
    (void)state;
    const double wrong[] = {0, -0.5, 1.01, 0.0 / 0.0, 1.0 / 0.0};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(kn_set_per_process_memory_fraction(test_device(), wrong[i]), KN_ERR_ARGUMENT);
        assert_message("above 0 and at most 1");
    }
    assert_int_equal(kn_set_per_process_memory_fraction(NULL, 0.5), KN_ERR_ARGUMENT);
    assert_message("device");
    assert_true(kn_get_per_process_memory_fraction(NULL) == 0);
    assert_message("device");
    assert_true(kn_get_per_process_memory_fraction(test_device()) == 1);
}

/* --- launches --------------------------------------------------------------------------------- */

static void work_on(void *x)
{
    usleep(50000); /* meanwhile the launch below makes room */

    KN_SCOPE;
    kn_relu(x);
}

/* Drivers may allocate memory on a kernel's first use. Freeing memory then waits for the device's work, but not for
 * callbacks, which may launch that very kernel, and does not count as an explicit wait. */
static void a_launch_without_memory_is_tried_again(void **state)
{
    (void)state;
    kn_stream *stream = kn_stream_default(test_device());

    KN_SCOPE;
    kn_tensor *x = kn_ones(KN_SHAPE(100)), *y;
    double value;
    assert_non_null(kn_relu(x));
    assert_ok(kn_stream_add_callback(stream, work_on, x));
    kn_set_sync_debug_mode(KN_SYNC_DEBUG_ERROR);
    kn_inject(KN_CL_LAUNCH, 1, CL_MEM_OBJECT_ALLOCATION_FAILURE, false);
    y = kn_relu(x);
    kn_inject_stop();
    kn_set_sync_debug_mode(KN_SYNC_DEBUG_OFF);
    assert_non_null(y);
    assert_ok(kn_item(kn_sum(y), &value));
    assert_true(value == 100);
    assert_ok(kn_stream_synchronize(stream));
}

/* --- training --------------------------------------------------------------------------------- */

static kn_status step(kn_module *net, kn_optim *optim, int64_t batch)
{
    kn_status status = KN_ERR_MEMORY;

    KN_SCOPE;
    kn_tensor *images = kn_rand(KN_SHAPE(batch, 1, 28, 28)), *labels = kn_randint(0, 10, KN_SHAPE(batch));
    status = kn_backward(kn_cross_entropy(kn_forward(net, images), labels));
    if (status == KN_OK)
        status = kn_optim_step(optim);
    kn_optim_zero_grad(optim);

    return status;
}

static void training_goes_on_with_a_smaller_batch(void **state)
{
    (void)state;
    kn_device *device = test_device();
    uint64_t before = kn_memory_allocated(device);
    assert_ok(kn_set_per_process_memory_fraction(device, SHARE));
    kn_module *net = kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 16, .kernel_size = 3),
                                      kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 2), kn_nn_flatten(),
                                      kn_nn_linear(.in_features = 2704, .out_features = 10));
    kn_optim *optim = kn_optim_adam(kn_module_parameters(net), .lr = 0.01);
    assert_non_null(optim);
    assert_ok(step(net, optim, 8));
    assert_ok(kn_synchronize(device));
    uint64_t between_steps = kn_memory_allocated(device);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(step(net, optim, 1024), KN_ERR_MEMORY);
        assert_message("out of memory");
        assert_int_equal(kn_memory_allocated(device), between_steps); /* the failed step leaks nothing */
        assert_ok(step(net, optim, 64));
        assert_int_equal(kn_memory_allocated(device), between_steps);
    }
    assert_true(stat("num_ooms") >= 3);
    assert_true(kn_memory_reserved(device) <= 24 * (uint64_t)MIB);
    kn_optim_free(optim);
    kn_module_free(net);
    assert_int_equal(kn_memory_allocated(device), before);
    assert_ok(kn_empty_cache(device));
}

#define LIMIT_TEST(function) cmocka_unit_test_setup_teardown(function, fresh, whole_device)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIMIT_TEST(a_share_limits_what_is_reserved),
        LIMIT_TEST(the_cache_is_given_back_and_the_driver_asked_again),
        LIMIT_TEST(the_second_try_asks_for_no_more_than_needed),
        LIMIT_TEST(a_limit_below_what_is_used_spares_it),
        LIMIT_TEST(a_limit_for_nothing_says_so),
        LIMIT_TEST(wrong_shares_are_refused),
        LIMIT_TEST(a_launch_without_memory_is_tried_again),
        LIMIT_TEST(training_goes_on_with_a_smaller_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
