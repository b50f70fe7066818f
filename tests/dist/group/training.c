/* training.c - a small network in float64, its batches and its steps, for the cases of distributed training. */
#include "dist/group/training.h"

#include <math.h>

/* Numbers that depend on `seed` alone: generators are shared by threads. */
void fill(kn_tensor *tensor, double seed)
{
    const int64_t count = kn_numel(tensor);
    KN_SCOPE;
    KN_NO_GRAD;
    kn_tensor *host = kn_empty(KN_SHAPE(count), .dtype = KN_F64, .device = kn_device_host());
    double *values = kn_data(host);
    for (int64_t i = 0; i < count; i++)
        values[i] = 0.4 * sin(1.7 * (double)i + seed);
    kn_tensor *flat = kn_to(host, kn_device_of(tensor));
    kn_copy_(tensor, kn_view_as(flat, tensor));
}

kn_module *network(double seed)
{
    kn_module *net = kn_nn_sequential(kn_nn_linear(.in_features = FEATURES, .out_features = 9), kn_nn_relu(),
                                      kn_nn_linear(.in_features = 9, .out_features = 5), kn_nn_tanh(),
                                      kn_nn_linear(.in_features = 5, .out_features = 2));
    kn_module_to_dtype(net, KN_F64);
    const kn_parameter_list list = kn_module_parameters(net);
    for (int i = 0; i < list.count; i++)
        fill(list.tensors[i], seed + i);
    return net;
}

/* The joint batch of a step; `part` of it. */
kn_tensor *batch(state *s, int columns, double seed, bool part)
{
    kn_tensor *all = kn_empty(KN_SHAPE(ROWS * s->size, columns), .dtype = KN_F64, .device = s->device);
    fill(all, seed);
    return part ? kn_narrow(all, 0, ROWS * s->rank, ROWS) : all;
}

double step(state *s, kn_module *net, kn_optim *optim, int number, bool part)
{
    double value = NAN;
    KN_SCOPE;
    if (optim)
        kn_optim_zero_grad(optim);
    kn_tensor *y = kn_forward(net, batch(s, FEATURES, number, part));
    kn_tensor *loss = kn_mse_loss(y, batch(s, 2, number + 0.5, part), KN_REDUCTION_MEAN);
    EXPECT_OK(kn_backward(loss));
    if (optim)
        EXPECT_OK(kn_optim_step(optim));
    kn_item(loss, &value);
    return value;
}

double difference(kn_module *a, kn_module *b, bool gradients)
{
    const kn_parameter_list of_a = kn_module_parameters(a), of_b = kn_module_parameters(b);
    double most = 0;
    for (int i = 0; i < of_a.count; i++) {
        KN_SCOPE;
        KN_NO_GRAD;
        double value = INFINITY;
        kn_tensor *x = gradients ? kn_grad(of_a.tensors[i]) : of_a.tensors[i];
        kn_tensor *y = gradients ? kn_grad(of_b.tensors[i]) : of_b.tensors[i];
        kn_item(kn_max(kn_abs(kn_sub(x, y))), &value);
        kn_error_clear();
        most = fmax(most, isfinite(value) ? value : INFINITY);
    }
    return most;
}

/* Buckets of one or two tensors. */
kn_module *wrap_small(state *s, kn_module *net)
{
    kn_module *wrapped = kn_nn_distributed(net, s->group, .first_bucket_bytes = 64, .bucket_bytes = 400);
    EXPECT(wrapped != NULL);
    return wrapped;
}
