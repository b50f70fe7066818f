/* data/counted.c - the dataset of the loader tests. */
#include "data/counted.h"

#include <time.h>

#include "data/sampler.h"
#include "io/check.h"

static int64_t counted_length(void *self) { return ((counted *)self)->length; }

/* Sample i: input i, i + 1, ...; target -i. */
static kn_status counted_get(void *self, int64_t index, void *const *fields)
{
    counted *data = self;
    atomic_fetch_add(&data->calls, 1);
    if (data->nanoseconds)
        nanosleep(&(struct timespec){.tv_nsec = data->nanoseconds}, NULL);
    if (index == data->bad)
        return data->silent ? KN_ERR_IO : kn_error_set(KN_ERR_IO, "sample %d is gone", (int)index);
    float *values = fields[0];
    for (int i = 0; i < WIDTH; i++)
        values[i] = (float)(index + i);
    *(int64_t *)fields[1] = -index;
    return KN_OK;
}

kn_dataset *counted_dataset(counted *data, int64_t length)
{
    static const kn_dataset_functions functions = {.length = counted_length, .get = counted_get};
    *data = (counted){.length = length, .bad = -1};
    return kn_dataset_new(&functions, data,
                          KN_FIELDS({.dtype = KN_F32, .ndim = 1, .shape = {WIDTH}}, {.dtype = KN_I64}));
}

kn_device *devices[2];
int num_devices;

int find_devices(void **state)
{
    (void)state;
    num_devices = 0; /* each group of tests calls this */
    devices[num_devices++] = kn_device_host();
    if (kn_is_available())
        devices[num_devices++] = kn_device_current();
    else
        print_message("no OpenCL device: only the host is tested\n");
    return 0;
}

kn_status next_pair(kn_loader *loader, kn_tensor **input, kn_tensor **target)
{
    const kn_batch *batch = NULL;
    kn_status status = kn_loader_next(loader, &batch);
    if (status != KN_OK)
        return status;
    assert_true(!batch || (batch->num_fields == 2 && batch->size == kn_size(batch->input, 0)));
    *input = batch ? batch->input : NULL;
    *target = batch ? batch->target : NULL;
    return KN_OK;
}

void assert_batch(kn_tensor *input, kn_tensor *target, const int64_t *order, int64_t size)
{
    static float values[4096];
    static int64_t labels[128];
    assert_int_equal(kn_ndim(input), 2);
    assert_int_equal(kn_size(input, 0), size);
    assert_int_equal(kn_size(input, 1), WIDTH);
    assert_int_equal(kn_ndim(target), 1);
    assert_int_equal(kn_size(target, 0), size);
    assert_ok(kn_read(input, values, (size_t)(size * WIDTH) * sizeof(float)));
    assert_ok(kn_read(target, labels, (size_t)size * sizeof(int64_t)));
    for (int64_t i = 0; i < size; i++) {
        assert_int_equal(labels[i], -order[i]);
        for (int k = 0; k < WIDTH; k++)
            assert_true(values[i * WIDTH + k] == (float)(order[i] + k));
    }
}

void expected_order(int64_t *order, int64_t length, bool shuffle, uint64_t seed, int64_t epoch)
{
    kn_sampler *sampler = NULL;
    assert_ok(kn_sampler_make_default(&sampler, length, shuffle));
    assert_ok(kn_sampler_order(sampler, seed, epoch, order));
    kn_sampler_free(sampler);
}

void assert_epoch(kn_loader *loader, const kn_loader_params *params, int64_t length, int64_t epoch)
{
    int64_t order[1024], done = 0,
                         samples = params->drop_last ? length / params->batch_size * params->batch_size : length;
    expected_order(order, length, params->shuffle, params->seed, epoch);
    assert_int_equal(kn_loader_samples(loader), samples);
    assert_ok(kn_loader_start(loader, epoch));
    for (int64_t batch = 0; batch < kn_loader_batches(loader); batch++) {
        KN_SCOPE;
        kn_tensor *input = NULL, *target = NULL;
        assert_ok(next_pair(loader, &input, &target));
        assert_non_null(input);
        int64_t size = samples - done < params->batch_size ? samples - done : params->batch_size;
        assert_batch(input, target, order + done, size);
        assert_ptr_equal(kn_device_of(input), params->device);
        done += size;
    }
    assert_int_equal(done, samples);
    kn_tensor *input = (kn_tensor *)(uintptr_t)8, *target = input;
    for (int i = 0; i < 2; i++) { /* the end stays the end */
        assert_ok(next_pair(loader, &input, &target));
        assert_null(input);
        assert_null(target);
    }
}
