/* nn/init.c - torch.nn.init: random initialisation in place, with the generator of the tensor's device. */
#include <math.h>

#include <koine/autograd.h>
#include <koine/init.h>
#include <koine/random.h>

#include "base/error.h"
#include "nn/module.h"
#include "tensor/liveness.h"
#include "tensor/tensor.h"

/* Initialising a parameter is not recorded. */
static kn_tensor *fill_uniform(kn_tensor *tensor, double low, double high)
{
    bool enabled = kn_set_grad_enabled(false);
    kn_tensor *result = kn_uniform_(tensor, low, high);
    kn_set_grad_enabled(enabled);
    return result;
}

kn_tensor *kn_init_uniform_(kn_tensor *tensor, double low, double high) { return fill_uniform(tensor, low, high); }

kn_tensor *kn_init_normal_(kn_tensor *tensor, double mean, double std)
{
    bool enabled = kn_set_grad_enabled(false);
    kn_tensor *result = kn_normal_(tensor, mean, std);
    kn_set_grad_enabled(enabled);
    return result;
}

/* A weight is [out, in, receptive field...]: fan_in = in * field, fan_out = out * field. */
static kn_status fans(const kn_tensor *tensor, const char *function, double *fan_in, double *fan_out)
{
    KN_TRY(kn_check_tensor(function, "tensor", tensor));
    if (tensor->ndim < 2) {
        char shape[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE, "%s: fan in and fan out need a weight of at least 2 dimensions, not %s", function,
                       kn_tensor_describe(shape, sizeof shape, tensor));
    }
    double field = 1;
    for (int i = 2; i < tensor->ndim; i++)
        field *= (double)tensor->shape[i];
    *fan_in = (double)tensor->shape[1] * field;
    *fan_out = (double)tensor->shape[0] * field;
    return KN_OK;
}

kn_tensor *kn_init_kaiming_uniform_(kn_tensor *tensor, double a)
{
    double fan_in = 0, fan_out = 0;
    if (fans(tensor, "init_kaiming_uniform_", &fan_in, &fan_out) != KN_OK)
        return kn_error_make_sticky();
    if (kn_numel(tensor) == 0)
        return tensor;
    double bound = sqrt(6 / ((1 + a * a) * fan_in));
    return fill_uniform(tensor, -bound, bound);
}

kn_tensor *kn_init_xavier_uniform_(kn_tensor *tensor, double gain)
{
    double fan_in = 0, fan_out = 0;
    if (fans(tensor, "init_xavier_uniform_", &fan_in, &fan_out) != KN_OK)
        return kn_error_make_sticky();
    if (kn_numel(tensor) == 0)
        return tensor;
    double bound = gain * sqrt(6 / (fan_in + fan_out));
    return fill_uniform(tensor, -bound, bound);
}
