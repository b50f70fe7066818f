/* test_loader_errors - the loader with bad parameters, failing datasets, too little memory, and abandoned epochs. */
#include <koine/data.h>
#include <koine/device.h>
#include <time.h>

#include "base/memory.h"
#include "data/counted.h"
#include "io/check.h"

/* --- errors ----------------------------------------------------------------------------------- */

static void test_bad_parameters(void **state)
{
    (void)state;
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 10);
    kn_loader *loader = NULL;
    kn_tensor *input, *target;
    kn_device *host = kn_device_host();
    assert_fails(kn_status_of(loader = kn_loader_new(dataset, .batch_size = 0, .device = host)), KN_ERR_ARGUMENT,
                 "the batch size is 0; it must be at least 1");
    assert_fails(kn_status_of(loader = kn_loader_new(dataset, .batch_size = -3, .device = host)), KN_ERR_ARGUMENT,
                 "the batch size is -3; it must be at least 1");
    assert_fails(kn_status_of(loader = kn_loader_new(dataset, .num_workers = -1, .device = host)), KN_ERR_ARGUMENT,
                 "num_workers is -1");
    assert_fails(kn_status_of(loader = kn_loader_new(dataset, .num_workers = 1000000, .device = host)), KN_ERR_ARGUMENT,
                 "num_workers is 1000000");
    assert_fails(kn_status_of(loader = kn_loader_new(dataset, .num_workers = 1, .prefetch_factor = 0, .device = host)),
                 KN_ERR_ARGUMENT, "prefetch_factor is 0");
    assert_fails(kn_status_of(loader = kn_loader_new(NULL, .batch_size = 1)), KN_ERR_ARGUMENT, "dataset");
    assert_null(loader);
    assert_new(loader = kn_loader_new(dataset, .batch_size = INT64_MAX, .device = host));
    assert_int_equal(kn_loader_batches(loader), 1);
    assert_fails(next_pair(loader, &input, &target), KN_ERR_STATE, "kn_loader_start first");
    assert_fails(kn_loader_start(loader, -1), KN_ERR_ARGUMENT, "the epoch is -1");
    assert_fails(kn_loader_start(NULL, 0), KN_ERR_ARGUMENT, "loader");
    assert_ok(kn_loader_start(loader, 0));
    assert_fails(kn_loader_next(loader, NULL), KN_ERR_ARGUMENT, "batch");
    assert_fails(kn_loader_next(NULL, &(const kn_batch *){NULL}), KN_ERR_ARGUMENT, "loader");
    kn_loader_free(loader);
    kn_dataset_free(dataset);
    kn_loader_free(NULL);
}

/* Only the batch with the bad sample fails; those before and after arrive. */
static void test_errors_spoil_one_batch(void **state)
{
    (void)state;
    for (int d = 0; d < num_devices; d++)
        for (int silent = 0; silent < 2; silent++)
            for (int workers = 0; workers <= 3; workers += 3) {
                counted data;
                kn_dataset *dataset = counted_dataset(&data, 40);
                kn_loader *loader = NULL;
                data.bad = 21;
                data.silent = silent;
                assert_new(loader =
                               kn_loader_new(dataset, .batch_size = 4, .num_workers = workers, .device = devices[d]));
                for (int epoch = 0; epoch < 2; epoch++) {
                    assert_ok(kn_loader_start(loader, epoch));
                    for (int64_t batch = 0; batch < 10; batch++) {
                        kn_tensor *input = NULL, *target = NULL;
                        kn_status status = next_pair(loader, &input, &target);
                        if (batch == 5) {
                            assert_fails(status, KN_ERR_IO,
                                         silent ? "loader: sample 21: the dataset's `get` returned KN_ERR_IO"
                                                : "loader: sample 21: sample 21 is gone");
                            assert_null(input);
                            continue;
                        }
                        assert_ok(status);
                        assert_batch(input, target,
                                     (const int64_t[]){4 * batch, 4 * batch + 1, 4 * batch + 2, 4 * batch + 3}, 4);
                        kn_release(input);
                        kn_release(target);
                    }
                }
                kn_loader_free(loader);
                kn_dataset_free(dataset);
            }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 40);
    kn_loader *loader = NULL;
    kn_loader_params params = {.batch_size = 4, .num_workers = 2, .prefetch_factor = 2, .device = kn_device_host()};
    for (long n = 1; !loader; n++) {
        kn_fail_alloc_after(n, 0);
        kn_status status = kn_status_of(loader = kn_loader_new_with(dataset, &params));
        kn_fail_alloc_after(0, 0);
        if (status != KN_OK)
            assert_fails(status, KN_ERR_MEMORY, "");
        assert_true(n < 100);
    }
    assert_epoch(loader, &params, 40, 0);
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

/* --- abandoned epochs ---------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void test_start_again_half_way(void **state)
{
    (void)state;
    for (int d = 0; d < num_devices; d++) {
        counted data;
        kn_dataset *dataset = counted_dataset(&data, 500);
        kn_loader_params params = {
            .batch_size = 8, .shuffle = true, .num_workers = 3, .prefetch_factor = 2, .device = devices[d]};
        kn_loader *loader = kn_loader_new_with(dataset, &params);
        assert_new(loader);
        for (int taken = 0; taken < 20; taken++) {
            assert_ok(kn_loader_start(loader, taken));
            for (int i = 0; i < taken; i++) {
                KN_SCOPE;
                kn_tensor *input = NULL, *target = NULL;
                assert_ok(next_pair(loader, &input, &target));
            }
        }
        assert_epoch(loader, &params, 500, 99);
        kn_loader_free(loader);
        kn_dataset_free(dataset);
    }
}

/* A batch takes ten seconds here: neither restarting nor freeing may wait for it. */
static void test_leaving_does_not_wait(void **state)
{
    (void)state;
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 4000);
    data.nanoseconds = 10000000;
    kn_loader *loader = NULL;
    double start = seconds();
    assert_new(loader = kn_loader_new(dataset, .batch_size = 1000, .num_workers = 2, .device = kn_device_host()));
    assert_ok(kn_loader_start(loader, 0));
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    assert_ok(kn_loader_start(loader, 1));
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    kn_loader_free(loader);
    kn_dataset_free(dataset);
    assert_true(atomic_load(&data.calls) > 0);
    assert_true(seconds() - start < 5);
}

/* Workers prefetch no more than the slots allow. */
static void test_prefetch_is_bounded(void **state)
{
    (void)state;
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 1000);
    kn_loader *loader =
        kn_loader_new(dataset, .batch_size = 10, .num_workers = 2, .prefetch_factor = 3, .device = kn_device_host());
    assert_new(loader);
    assert_ok(kn_loader_start(loader, 0));
    for (int i = 0; i < 200 && atomic_load(&data.calls) < 60; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_int_equal(atomic_load(&data.calls), 60);
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_parameters),        cmocka_unit_test(test_errors_spoil_one_batch),
        cmocka_unit_test(test_out_of_memory),         cmocka_unit_test(test_start_again_half_way),
        cmocka_unit_test(test_leaving_does_not_wait), cmocka_unit_test(test_prefetch_is_bounded),
    };
    return cmocka_run_group_tests(tests, find_devices, NULL);
}
