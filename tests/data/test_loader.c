/* test_loader - batches: the right samples in the right order for any number of workers, on the host and on a
 * device. */
#include <koine/data.h>
#include <koine/device.h>
#include <koine/memory.h>
#include <koine/stream.h>
#include <stdlib.h>

#include "data/counted.h"
#include "io/check.h"
#include "tensor/tensor.h"

static void test_epochs(void **state)
{
    (void)state;
    static const struct {
        int64_t length, batch_size;
        bool shuffle, drop_last;
    } cases[] = {{1000, 32, true, false}, {1000, 32, false, true}, {64, 32, true, false}, {5, 32, true, false},
                 {5, 32, true, true},     {0, 4, true, false},     {7, 1, true, false}};
    static const int workers[][2] = {{0, 2}, {1, 1}, {1, 2}, {4, 2}};
    for (int d = 0; d < num_devices; d++)
        for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
            for (size_t w = 0; w < sizeof(workers) / sizeof(workers[0]); w++) {
                counted data;
                kn_dataset *dataset = counted_dataset(&data, cases[c].length);
                kn_loader_params params = {.batch_size = cases[c].batch_size,
                                           .shuffle = cases[c].shuffle,
                                           .drop_last = cases[c].drop_last,
                                           .num_workers = workers[w][0],
                                           .prefetch_factor = workers[w][1],
                                           .seed = 5,
                                           .device = devices[d]};
                kn_loader *loader = kn_loader_new_with(dataset, &params);
                assert_new(loader);
                for (int64_t epoch = 0; epoch < 3; epoch++)
                    assert_epoch(loader, &params, cases[c].length, epoch);
                kn_loader_free(loader);
                kn_dataset_free(dataset);
            }
}

static void test_defaults(void **state)
{
    (void)state;
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 3);
    kn_loader *loader = kn_loader_new(dataset, .device = kn_device_host());
    assert_new(loader);
    assert_int_equal(kn_loader_batches(loader), 3);
    assert_epoch(loader, &(kn_loader_params){.batch_size = 1, .device = kn_device_host()}, 3, 0);
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

/* Without a scope the caller owns the batch; retained batches are not changed by later ones, nor by freeing the
 * loader. */
static void test_batches_outlive_the_loader(void **state)
{
    (void)state;
    for (int d = 0; d < num_devices; d++) {
        enum { BATCHES = 25, SIZE = 4 };
        counted data;
        kn_dataset *dataset = counted_dataset(&data, BATCHES * SIZE);
        kn_loader *loader = NULL;
        kn_tensor *inputs[BATCHES], *targets[BATCHES];
        assert_new(loader = kn_loader_new(dataset, .batch_size = SIZE, .num_workers = 2, .device = devices[d]));
        assert_ok(kn_loader_start(loader, 0));
        for (int i = 0; i < BATCHES; i++)
            assert_ok(next_pair(loader, &inputs[i], &targets[i]));
        kn_loader_free(loader);
        kn_dataset_free(dataset);
        for (int i = 0; i < BATCHES; i++) {
            assert_batch(inputs[i], targets[i], (const int64_t[]){i * SIZE, i * SIZE + 1, i * SIZE + 2, i * SIZE + 3},
                         SIZE);
            kn_release(inputs[i]);
            kn_release(targets[i]);
        }
    }
}

/* Batches freed immediately, so that later ones reuse their memory, while another stream of the caller reads them:
 * nothing is overwritten too early. */
static void test_other_stream(void **state)
{
    (void)state;
    if (num_devices < 2)
        skip();
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 800);
    kn_stream *stream = NULL, *before = kn_stream_current(devices[1]);
    kn_loader *loader = NULL;
    assert_new(stream = kn_stream_new(devices[1]));
    assert_ok(kn_stream_set_current(stream));
    assert_new(loader = kn_loader_new(dataset, .batch_size = 8, .num_workers = 2, .device = devices[1]));
    kn_tensor *copies[100];
    for (int epoch = 0; epoch < 3; epoch++) {
        assert_ok(kn_loader_start(loader, epoch));
        for (int i = 0; i < 100; i++) {
            KN_SCOPE;
            kn_tensor *input = NULL, *target = NULL;
            assert_ok(next_pair(loader, &input, &target));
            assert_ok(kn_tensor_new(&copies[i], KN_I64, 1, (const int64_t[]){8}, devices[1]));
            assert_ok(kn_tensor_copy(copies[i], target));
        }
        for (int i = 0; i < 100; i++) {
            int64_t labels[8];
            assert_ok(kn_read(copies[i], labels, sizeof(labels)));
            for (int k = 0; k < 8; k++)
                assert_int_equal(labels[k], -(8 * i + k));
            kn_release(copies[i]);
        }
    }
    kn_loader_free(loader);
    kn_dataset_free(dataset);
    assert_ok(kn_stream_set_current(before));
    assert_ok(kn_stream_free(stream));
}

/* Memory does not grow from epoch to epoch. */
static void test_no_growth(void **state)
{
    (void)state;
    if (num_devices < 2)
        skip();
    counted data;
    kn_dataset *dataset = counted_dataset(&data, 200);
    kn_loader *loader = kn_loader_new(dataset, .batch_size = 8, .num_workers = 2, .device = devices[1]);
    assert_new(loader);
    uint64_t allocated = kn_memory_allocated(devices[1]), reserved = 0;
    for (int epoch = 0; epoch < 40; epoch++) {
        assert_ok(kn_loader_start(loader, epoch));
        for (int i = 0; i < 25; i++) {
            KN_SCOPE;
            kn_tensor *input = NULL, *target = NULL;
            assert_ok(next_pair(loader, &input, &target));
        }
        assert_int_equal(kn_memory_allocated(devices[1]), allocated);
        if (epoch == 10)
            reserved = kn_memory_reserved(devices[1]);
    }
    assert_int_equal(kn_memory_reserved(devices[1]), reserved);
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

/* --- randomness ------------------------------------------------------------------------------- */

static kn_status write_random(void *value, const kn_field *field, uint64_t random, void *user)
{
    (void)field;
    (void)user;
    *(float *)value = (float)(random >> 40);
    return KN_OK;
}

static void first_values(float *values, int num_workers, uint64_t seed, int64_t epoch)
{
    counted data;
    kn_dataset *dataset = NULL;
    kn_loader *loader = NULL;
    assert_new(dataset = kn_transform_dataset(counted_dataset(&data, 100), write_random, NULL));
    assert_new(loader = kn_loader_new(dataset, .batch_size = 10, .shuffle = true, .seed = seed,
                                      .num_workers = num_workers, .device = kn_device_host()));
    assert_ok(kn_loader_start(loader, epoch));
    for (int i = 0; i < 100; i += 10) {
        KN_SCOPE;
        kn_tensor *input = NULL, *target = NULL;
        assert_ok(next_pair(loader, &input, &target));
        for (int k = 0; k < 10; k++)
            values[i + k] = ((float *)kn_data(input))[k * WIDTH];
    }
    kn_loader_free(loader);
    kn_dataset_free(dataset);
}

/* Augmentation depends on seed, epoch and sample, not on the worker. */
static void test_random_transforms(void **state)
{
    (void)state;
    float alone[100], helped[100], later[100], other[100];
    first_values(alone, 0, 1, 2);
    first_values(helped, 3, 1, 2);
    first_values(later, 3, 1, 3);
    first_values(other, 3, 2, 2);
    assert_memory_equal(alone, helped, sizeof(alone));
    assert_memory_not_equal(alone, later, sizeof(alone));
    assert_memory_not_equal(alone, other, sizeof(alone));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_batches_outlive_the_loader),
        cmocka_unit_test(test_other_stream),
        cmocka_unit_test(test_no_growth),
        cmocka_unit_test(test_random_transforms),
    };
    return cmocka_run_group_tests(tests, find_devices, NULL);
}
