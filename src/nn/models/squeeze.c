/* nn/models/squeeze.c - see squeeze.h. */
#include "nn/models/squeeze.h"

#include <koine/pointwise.h>

static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    kn_tensor *scale = x;
    for (int i = 0; i < 5; i++) /* avgpool, fc1, activation, fc2, gate */
        scale = kn_apply_child(m, (const int[]){0, 1, 3, 2, 4}[i], scale);
    return kn_mul(x, scale);
}

static kn_module *pointwise(int64_t in, int64_t out)
{
    return kn_nn_conv2d(.in_channels = in, .out_channels = out, .kernel_size = 1);
}

kn_module *kn_model_squeeze(int64_t channels, int64_t squeezed, kn_module *(*activation)(void),
                            kn_module *(*gate)(void))
{
    return KN_MODEL_OF("SqueezeExcitation", forward, {"avgpool", kn_nn_adaptive_avg_pool2d(1, 1)},
                       {"fc1", pointwise(channels, squeezed)}, {"fc2", pointwise(squeezed, channels)},
                       {"activation", activation()}, {"scale_activation", gate()});
}

int64_t kn_model_divisible(double value, int64_t divisor)
{
    int64_t nearest = (int64_t)(value + (double)divisor / 2) / divisor * divisor;
    nearest = nearest < divisor ? divisor : nearest;
    return (double)nearest < 0.9 * value ? nearest + divisor : nearest;
}
