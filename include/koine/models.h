/* koine/models.h - well-known networks, built from the layers of koine/nn.h.
 *
 * Parameters and buffers have the names of PyTorch's own implementations (torchvision, unless stated otherwise), and
 * initial values of the same distributions, so that their published files load once they are converted to safetensors:
 *
 *     kn_module *net = kn_models_resnet50();
 *     kn_module_load(net, "resnet50.safetensors");
 *
 *     kn_module *small = kn_models_resnet18(.num_classes = 10, .in_channels = 1, .small_images = true);
 *
 * Inputs are float images [N, in_channels, H, W], results logits [N, num_classes]. Constructors as in
 * koine/module.h. */
#ifndef KOINE_MODELS_H
#define KOINE_MODELS_H

#include <koine/common.h>
#include <koine/module.h>

KN_BEGIN_DECLS

typedef struct kn_models_params {
    int64_t num_classes; /* default 1000 */
    int64_t in_channels; /* default 3 */
    double dropout;      /* of the classifier; default -1: the network's own */
    /* EfficientNet: the probability of leaving out the last block's branch, which grows linearly from the first; default
     * -1: the network's own */
    double stochastic_depth;
    /* default false; true: a stem that keeps the size of images of about 32 pixels, as usual for CIFAR: ResNets and
     * DenseNets begin with a 3x3 convolution without pooling, mobile networks with stride 1 */
    bool small_images;
} kn_models_params;
#define KN_MODELS_DEFAULTS .num_classes = 1000, .in_channels = 3, .dropout = -1, .stochastic_depth = -1
#define KN_MODELS_PARAMS(...)                                                                                          \
    &(kn_models_params) { KN_MODELS_DEFAULTS, __VA_ARGS__ }
KN_API kn_models_params kn_models_params_init(void);

/* A multilayer perceptron: flattens its input, then `count` - 1 linear layers between the given sizes, with ReLU between
 * them: kn_models_mlp(KN_SIZES(784, 256, 10)). */
KN_API kn_module *kn_models_mlp(const int64_t *sizes, int count);
#define KN_SIZES(...) ((const int64_t[]){__VA_ARGS__}), ((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* LeNet-5 with ReLU and max pooling; for images of 28 or 32 pixels. */
KN_API kn_module *kn_models_lenet5_with(const kn_models_params *params);
#define kn_models_lenet5(...) KN_CALL(kn_models_lenet5_with(KN_MODELS_PARAMS(__VA_ARGS__)))

KN_API kn_module *kn_models_alexnet_with(const kn_models_params *params);
#define kn_models_alexnet(...) KN_CALL(kn_models_alexnet_with(KN_MODELS_PARAMS(__VA_ARGS__)))

KN_API kn_module *kn_models_vgg11_with(const kn_models_params *params);
KN_API kn_module *kn_models_vgg13_with(const kn_models_params *params);
KN_API kn_module *kn_models_vgg16_with(const kn_models_params *params);
KN_API kn_module *kn_models_vgg19_with(const kn_models_params *params);
KN_API kn_module *kn_models_vgg11_bn_with(const kn_models_params *params);
KN_API kn_module *kn_models_vgg13_bn_with(const kn_models_params *params);
KN_API kn_module *kn_models_vgg16_bn_with(const kn_models_params *params);
KN_API kn_module *kn_models_vgg19_bn_with(const kn_models_params *params);
#define kn_models_vgg11(...) KN_CALL(kn_models_vgg11_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_vgg13(...) KN_CALL(kn_models_vgg13_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_vgg16(...) KN_CALL(kn_models_vgg16_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_vgg19(...) KN_CALL(kn_models_vgg19_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_vgg11_bn(...) KN_CALL(kn_models_vgg11_bn_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_vgg13_bn(...) KN_CALL(kn_models_vgg13_bn_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_vgg16_bn(...) KN_CALL(kn_models_vgg16_bn_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_vgg19_bn(...) KN_CALL(kn_models_vgg19_bn_with(KN_MODELS_PARAMS(__VA_ARGS__)))

KN_API kn_module *kn_models_resnet18_with(const kn_models_params *params);
KN_API kn_module *kn_models_resnet34_with(const kn_models_params *params);
KN_API kn_module *kn_models_resnet50_with(const kn_models_params *params);
KN_API kn_module *kn_models_resnet101_with(const kn_models_params *params);
KN_API kn_module *kn_models_resnet152_with(const kn_models_params *params);
KN_API kn_module *kn_models_resnext50_32x4d_with(const kn_models_params *params);
KN_API kn_module *kn_models_resnext101_32x8d_with(const kn_models_params *params);
KN_API kn_module *kn_models_wide_resnet50_2_with(const kn_models_params *params);
KN_API kn_module *kn_models_wide_resnet101_2_with(const kn_models_params *params);
#define kn_models_resnet18(...) KN_CALL(kn_models_resnet18_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_resnet34(...) KN_CALL(kn_models_resnet34_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_resnet50(...) KN_CALL(kn_models_resnet50_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_resnet101(...) KN_CALL(kn_models_resnet101_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_resnet152(...) KN_CALL(kn_models_resnet152_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_resnext50_32x4d(...) KN_CALL(kn_models_resnext50_32x4d_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_resnext101_32x8d(...) KN_CALL(kn_models_resnext101_32x8d_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_wide_resnet50_2(...) KN_CALL(kn_models_wide_resnet50_2_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_wide_resnet101_2(...) KN_CALL(kn_models_wide_resnet101_2_with(KN_MODELS_PARAMS(__VA_ARGS__)))

KN_API kn_module *kn_models_mobilenet_v2_with(const kn_models_params *params);
KN_API kn_module *kn_models_mobilenet_v3_large_with(const kn_models_params *params);
KN_API kn_module *kn_models_mobilenet_v3_small_with(const kn_models_params *params);
#define kn_models_mobilenet_v2(...) KN_CALL(kn_models_mobilenet_v2_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_mobilenet_v3_large(...) KN_CALL(kn_models_mobilenet_v3_large_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_mobilenet_v3_small(...) KN_CALL(kn_models_mobilenet_v3_small_with(KN_MODELS_PARAMS(__VA_ARGS__)))

KN_API kn_module *kn_models_efficientnet_b0_with(const kn_models_params *params);
#define kn_models_efficientnet_b0(...) KN_CALL(kn_models_efficientnet_b0_with(KN_MODELS_PARAMS(__VA_ARGS__)))

KN_API kn_module *kn_models_densenet121_with(const kn_models_params *params);
KN_API kn_module *kn_models_densenet161_with(const kn_models_params *params);
KN_API kn_module *kn_models_densenet169_with(const kn_models_params *params);
KN_API kn_module *kn_models_densenet201_with(const kn_models_params *params);
#define kn_models_densenet121(...) KN_CALL(kn_models_densenet121_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_densenet161(...) KN_CALL(kn_models_densenet161_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_densenet169(...) KN_CALL(kn_models_densenet169_with(KN_MODELS_PARAMS(__VA_ARGS__)))
#define kn_models_densenet201(...) KN_CALL(kn_models_densenet201_with(KN_MODELS_PARAMS(__VA_ARGS__)))

/* U-Net: the result is [N, num_classes, H, W]; H and W are multiples of 16. Names as in milesial/Pytorch-UNet. */
KN_API kn_module *kn_models_unet_with(const kn_models_params *params);
#define kn_models_unet(...) KN_CALL(kn_models_unet_with(KN_MODELS_PARAMS(__VA_ARGS__)))

KN_END_DECLS

#endif
