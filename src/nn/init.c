/* nn/init.c - torch.nn.init: random initialisation in place. */
#include <math.h>

#include <koine/autograd.h>
#include <koine/init.h>
#include <koine/random.h>

#include "base/error.h"
#include "nn/module.h"
#include "tensor/liveness.h"
#include "tensor/tensor.h"

/* Initialising a parameter is not recorded. */
kn_tensor *kn_init_uniform_with_(kn_tensor *tensor, double low, double high, const kn_random_params *params)
{
    bool enabled = kn_set_grad_enabled(false);
    kn_tensor *result = kn_uniform_with_(tensor, low, high, params);
    kn_set_grad_enabled(enabled);
    return result;
}

kn_tensor *kn_init_normal_with_(kn_tensor *tensor, double mean, double std, const kn_random_params *params)
{
    bool enabled = kn_set_grad_enabled(false);
    kn_tensor *result = kn_normal_with_(tensor, mean, std, params);
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

kn_tensor *kn_init_kaiming_uniform_with_(kn_tensor *tensor, double a, const kn_random_params *params)
{
    double fan_in = 0, fan_out = 0;
    if (fans(tensor, "init_kaiming_uniform_", &fan_in, &fan_out) != KN_OK)
        return kn_error_make_sticky();
    if (kn_numel(tensor) == 0)
        return tensor;
    double bound = sqrt(6 / ((1 + a * a) * fan_in));
    return kn_init_uniform_with_(tensor, -bound, bound, params);
}

kn_tensor *kn_init_xavier_uniform_with_(kn_tensor *tensor, double gain, const kn_random_params *params)
{
    double fan_in = 0, fan_out = 0;
    if (fans(tensor, "init_xavier_uniform_", &fan_in, &fan_out) != KN_OK)
        return kn_error_make_sticky();
    if (kn_numel(tensor) == 0)
        return tensor;
    double bound = gain * sqrt(6 / (fan_in + fan_out));
    return kn_init_uniform_with_(tensor, -bound, bound, params);
}
