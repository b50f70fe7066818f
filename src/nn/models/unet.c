/* nn/models/unet.c - U-Net (Ronneberger et al. 2015) with batch norm and convolutions that keep the size, so that the
 * result has one value per pixel and class. Height and width must be multiples of 16. Names as in
 * milesial/Pytorch-UNet. */
#include <koine/join.h>

#include "nn/models/build.h"

static kn_tensor *plain_forward(kn_module *m, kn_tensor *x) { return kn_apply_child(m, 0, x); }

/* (convolution, batch norm, ReLU) twice */
static kn_module *double_conv(int64_t in, int64_t out)
{
    return KN_MODEL_OF(
        "DoubleConv", plain_forward,
        {"double_conv",
         kn_nn_sequential(kn_model_conv(in, out, 3, 1, 1), kn_nn_batch_norm2d(.num_features = out), kn_nn_relu(),
                          kn_model_conv(out, out, 3, 1, 1), kn_nn_batch_norm2d(.num_features = out), kn_nn_relu())});
}

static kn_module *down(int64_t in, int64_t out)
{
    return KN_MODEL_OF("Down", plain_forward,
                       {"maxpool_conv", kn_nn_sequential(kn_nn_max_pool2d(.kernel_size = 2), double_conv(in, out))});
}

/* --- up: of the smaller image and the one from the way down ------------------------------------------------------- */

static kn_status up_forward(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_tensor *larger = kn_apply_child(m, 0, inputs[0]);
    outputs[0] = kn_apply_child(m, 1, kn_cat(KN_TENSORS(inputs[1], larger), 1));
    return KN_OK;
}

static kn_module *up(int64_t in, int64_t out)
{
    const kn_module_kind kind = KN_TWO_TO_ONE(up_forward, 0);
    kn_module *larger =
        kn_nn_conv_transpose2d(.in_channels = in, .out_channels = in / 2, .kernel_size = 2, .stride = 2);
    return kn_model_of_kind("Up", &kind, NULL, 0, KN_PARTS({"up", larger}, {"conv", double_conv(in, out)}));
}

/* --- the network: inc, down1 to down4, up1 to up4, outc ----------------------------------------------------------- */

enum { LEVELS = 4 };

static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    kn_tensor *levels[LEVELS + 1];
    levels[0] = kn_apply_child(m, 0, x);
    for (int i = 0; i < LEVELS; i++)
        levels[i + 1] = kn_apply_child(m, 1 + i, levels[i]);
    x = levels[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        kn_tensor *y = NULL;
        kn_forward_many(kn_module_child(m, 1 + LEVELS + i), KN_TENSORS(x, levels[LEVELS - 1 - i]), &y, 1);
        x = y;
    }
    return kn_apply_child(m, 1 + 2 * LEVELS, x);
}

kn_module *kn_model_unet(const kn_models_params *params)
{
    kn_module *last =
        KN_MODEL_OF("OutConv", plain_forward,
                    {"conv", kn_nn_conv2d(.in_channels = 64, .out_channels = params->num_classes, .kernel_size = 1)});
    return KN_MODEL_OF("UNet", forward, {"inc", double_conv(params->in_channels, 64)}, {"down1", down(64, 128)},
                       {"down2", down(128, 256)}, {"down3", down(256, 512)}, {"down4", down(512, 1024)},
                       {"up1", up(1024, 512)}, {"up2", up(512, 256)}, {"up3", up(256, 128)}, {"up4", up(128, 64)},
                       {"outc", last});
}
