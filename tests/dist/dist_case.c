/* dist_case.c - networks and batches for the tests of data parallelism, and comparison of two runs. */
#include "dist_case.h"

#include <math.h>
#include <stdlib.h>

#include "support/values.h"

kn_device *const *case_devices(int count)
{
    static kn_device *all[MAX_DEVICES];
    if (kn_device_count() < count)
        skip();
    for (int i = 0; i < count; i++)
        all[i] = kn_device_at(i);
    CHECK_OK(kn_device_set_current(all[0]));
    return all;
}

kn_module *case_network(kn_dtype dtype)
{
    kn_manual_seed(11);
    kn_module *net = kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 32, .kernel_size = 3),
                                      kn_nn_max_pool2d(.kernel_size = 2, .stride = 2),
                                      kn_nn_conv2d(.in_channels = 32, .out_channels = 64, .kernel_size = 5),
                                      kn_nn_max_pool2d(.kernel_size = 2, .stride = 2), kn_nn_adaptive_max_pool2d(1, 1),
                                      kn_nn_flatten(), kn_nn_linear(.in_features = 64, .out_features = 32),
                                      kn_nn_relu(), kn_nn_linear(.in_features = 32, .out_features = 10));
    CHECK_TENSOR(net);
    CHECK_OK(kn_module_to_dtype(net, dtype));
    return net;
}

void case_batch(kn_tensor **images, kn_tensor **classes, int64_t size, kn_dtype dtype, int number)
{
    kn_manual_seed(100 + (uint64_t)number);
    *images = kn_rand(KN_SHAPE(size, 1, 28, 28), .dtype = dtype);
    *classes = kn_randint(0, 10, KN_SHAPE(size));
    CHECK_TENSOR(*images);
    CHECK_TENSOR(*classes);
}

double case_step(kn_module *net, kn_optim *optim, int64_t size, kn_dtype dtype, int number)
{
    double value = NAN;

    KN_SCOPE;
    kn_tensor *images, *classes;
    case_batch(&images, &classes, size, dtype, number);
    kn_optim_zero_grad(optim);
    kn_tensor *loss = kn_cross_entropy(kn_forward(net, images), classes);
    CHECK_TENSOR(loss);
    CHECK_OK(kn_backward(loss));
    CHECK_OK(kn_optim_step(optim));
    CHECK_OK(kn_item(loss, &value));

    return value;
}

static double tensors_differ(kn_tensor *a, kn_tensor *b)
{
    CHECK_TENSOR(a);
    CHECK_TENSOR(b);
    assert_int_equal(kn_numel(a), kn_numel(b));
    double *x = read_doubles(a), *y = read_doubles(b), largest = 0, apart = 0;
    for (int64_t i = 0; i < kn_numel(a); i++) {
        largest = fmax(largest, fabs(x[i]));
        apart = fmax(apart, fabs(x[i] - y[i]));
        assert_false(isnan(x[i]) || isnan(y[i]));
    }
    free(x);
    free(y);
    return largest > 0 ? apart / largest : apart;
}

static double lists_differ(kn_module *a, kn_module *b, bool gradients)
{
    kn_parameter_list left = kn_module_parameters(a), right = kn_module_parameters(b);
    double worst = 0;
    assert_int_equal(left.count, right.count);
    for (int i = 0; i < left.count; i++) {
        kn_tensor *x = left.tensors[i], *y = right.tensors[i];
        worst = fmax(worst, gradients ? tensors_differ(kn_grad(x), kn_grad(y)) : tensors_differ(x, y));
    }
    return worst;
}

double case_parameters_differ(kn_module *a, kn_module *b) { return lists_differ(a, b, false); }
double case_gradients_differ(kn_module *a, kn_module *b) { return lists_differ(a, b, true); }
