/* test_limit_sweep.c - training under many memory limits: what runs under a limit runs under larger ones, and the pool
 * never exceeds the limit. */

#include "rt/device/device_struct.h"
#include "rt/memory/pool.h"
#include "rt/rt_test.h"

#define STEPS 3

static bool all; /* every limit; otherwise some */

typedef struct workload {
    const char *name;
    kn_module *(*make)(void);
    int64_t batch, channels, side; /* of the input */
    bool with_loader;
} workload;

static kn_module *lenet(void)
{
    return kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 6, .kernel_size = 5, .padding = 2),
                            kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 2),
                            kn_nn_conv2d(.in_channels = 6, .out_channels = 16, .kernel_size = 5), kn_nn_relu(),
                            kn_nn_max_pool2d(.kernel_size = 2), kn_nn_flatten(),
                            kn_nn_linear(.in_features = 400, .out_features = 120), kn_nn_relu(),
                            kn_nn_linear(.in_features = 120, .out_features = 10));
}

static kn_module *wide(void)
{
    return kn_nn_sequential(kn_nn_flatten(), kn_nn_linear(.in_features = 784, .out_features = 700), kn_nn_relu(),
                            kn_nn_linear(.in_features = 700, .out_features = 10));
}

static kn_module *deep(void)
{
    return kn_nn_sequential(kn_nn_conv2d(.in_channels = 3, .out_channels = 16, .kernel_size = 3, .padding = 1),
                            kn_nn_batch_norm2d(.num_features = 16), kn_nn_relu(),
                            kn_nn_conv2d(.in_channels = 16, .out_channels = 16, .kernel_size = 3, .padding = 1),
                            kn_nn_batch_norm2d(.num_features = 16), kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 2),
                            kn_nn_conv2d(.in_channels = 16, .out_channels = 32, .kernel_size = 3, .padding = 1),
                            kn_nn_relu(), kn_nn_max_pool2d(.kernel_size = 4), kn_nn_flatten(),
                            kn_nn_linear(.in_features = 512, .out_features = 10));
}

static const workload workloads[] = {
    {"LeNet", lenet, 64, 1, 28, false},
    {"LeNet, large batches", lenet, 200, 1, 28, false},
    {"LeNet with a loader", lenet, 64, 1, 28, true},
    {"wide", wide, 100, 1, 28, false},
    {"deep", deep, 24, 3, 32, false},
};

static kn_status step(kn_module *net, kn_optim *optim, kn_tensor *x, kn_tensor *y)
{
    kn_optim_zero_grad(optim);
    kn_status status = kn_backward(kn_cross_entropy(kn_forward(net, x), y));
    return status == KN_OK ? kn_optim_step(optim) : status;
}

static kn_status steps(const workload *w, kn_module *net, kn_optim *optim, kn_loader *loader)
{
    kn_status status = KN_OK;
    for (int i = 0; i < STEPS && status == KN_OK; i++) {
        KN_SCOPE;
        const kn_batch *batch = NULL;
        kn_tensor *x = NULL, *y = NULL;
        if (loader && (status = kn_loader_next(loader, &batch)) == KN_OK)
            x = batch->input, y = batch->target;
        else if (!loader)
            x = kn_rand(KN_SHAPE(w->batch, w->channels, w->side, w->side)),
            y = kn_zeros(KN_SHAPE(w->batch), .dtype = KN_I64);
        if (status == KN_OK)
            status = step(net, optim, x, y);
    }
    return status == KN_OK ? kn_synchronize(kn_device_current()) : status;
}

static kn_status train(const workload *w, kn_dataset *data)
{
    kn_loader *loader = NULL;
    kn_module *net = w->make();
    kn_optim *optim = net ? kn_optim_adam(kn_module_parameters(net)) : NULL;
    kn_status status = optim ? KN_OK : kn_error_status();
    if (status == KN_OK && w->with_loader)
        status = kn_status_of(loader = kn_loader_new(data, .batch_size = w->batch, .num_workers = 2));
    if (status == KN_OK && w->with_loader)
        status = kn_loader_start(loader, 0);
    if (status == KN_OK)
        status = steps(w, net, optim, loader);
    kn_loader_free(loader);
    kn_optim_free(optim);
    kn_module_free(net);
    return status;
}

/* Does it run? */
static bool fits(const workload *w, kn_device *device, kn_dataset *data, uint64_t limit)
{
    kn_error_clear();
    kn_empty_cache(device);
    device->pool->limit = limit;
    kn_reset_peak_memory_stats(device);
    kn_status status = train(w, data);
    device->pool->limit = 0;
    if (status != KN_OK && status != KN_ERR_MEMORY)
        fail_msg("%s with %llu bytes: %s", w->name, (unsigned long long)limit, kn_error_message());
    assert_true(kn_max_memory_reserved(device) <= limit);
    kn_error_clear();
    return status == KN_OK;
}

/* Limits in MB: once the training fits, it fits under all larger limits. */
static void sweep(const workload *w, kn_device *device, int from, int to, int step)
{
    kn_dataset *data;
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(STEPS * w->batch, w->channels, w->side, w->side), .device = kn_device_host());
        kn_tensor *y = kn_zeros(KN_SHAPE(STEPS * w->batch), .dtype = KN_I64, .device = kn_device_host());
        assert_new(data = kn_tensor_dataset(x, y));
    }
    int first = 0;
    for (int limit = from; limit <= to; limit += step) {
        bool fine = fits(w, device, data, (uint64_t)limit * 1000000);
        if (fine && !first)
            first = limit;
        if (!fine && first)
            fail_msg("%s runs with %d MB but not with %d", w->name, first, limit);
    }
    print_message("%s: from %d MB\n", w->name, first);
    assert_true(first > 0);
    kn_dataset_free(data);
}

static void more_memory_is_never_worse(void **state)
{
    (void)state;
    kn_device *device = test_device();
    if (!all) { /* around the size of a medium segment, 20 MiB */
        sweep(&workloads[1], device, 9, 29, 2);
        return;
    }
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        sweep(&workloads[i], device, 1, 64, 1);
        sweep(&workloads[i], device, 325, 350, 5); /* medium segments begin there */
    }
}

int main(int argc, char **argv)
{
    all = argc > 1 && strcmp(argv[1], "--all") == 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(more_memory_is_never_worse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
