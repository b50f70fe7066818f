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
    /* EfficientNet: the probability of leaving out the last block's branch, which grows linearly from the first;
     * default -1: the network's own */
    double stochastic_depth;
    /* default false; true: a stem that keeps the size of images of about 32 pixels, as usual for CIFAR: ResNets and
     * DenseNets begin with a 3x3 convolution without pooling, mobile networks with stride 1 */
    bool small_images;
} kn_models_params;
#define KN_MODELS_DEFAULTS .num_classes = 1000, .in_channels = 3, .dropout = -1, .stochastic_depth = -1
#define KN_MODELS_PARAMS(...)                                                                                          \
    &(kn_models_params) { KN_MODELS_DEFAULTS, __VA_ARGS__ }
KN_API kn_models_params kn_models_params_init(void);

/* A network by its name: kn_models_new("resnet18", .num_classes = 10) is kn_models_resnet18(.num_classes = 10). For an
 * unknown name the error lists all. kn_models_name: the names; NULL, without an error, after the last. */
KN_API kn_module *kn_models_new_with(const char *name, const kn_models_params *params);
KN_API const char *kn_models_name(int index);
#define kn_models_new(name, ...) KN_CALL(kn_models_new_with(name, KN_MODELS_PARAMS(__VA_ARGS__)))

/* A multilayer perceptron: flattens its input, then `count` - 1 linear layers between the given sizes, with ReLU
 * between them: kn_models_mlp(KN_SIZES(784, 256, 10)). */
KN_API kn_module *kn_models_mlp(const int64_t *sizes, int count);
#define KN_SIZES(...) ((const int64_t[]){__VA_ARGS__}), ((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* LeNet-5 with ReLU and max pooling; for images of 28 or 32 pixels. */
#define kn_models_lenet5(...) kn_models_new("lenet5", __VA_ARGS__)

#define kn_models_alexnet(...) kn_models_new("alexnet", __VA_ARGS__)

#define kn_models_vgg11(...) kn_models_new("vgg11", __VA_ARGS__)
#define kn_models_vgg13(...) kn_models_new("vgg13", __VA_ARGS__)
#define kn_models_vgg16(...) kn_models_new("vgg16", __VA_ARGS__)
#define kn_models_vgg19(...) kn_models_new("vgg19", __VA_ARGS__)
#define kn_models_vgg11_bn(...) kn_models_new("vgg11_bn", __VA_ARGS__)
#define kn_models_vgg13_bn(...) kn_models_new("vgg13_bn", __VA_ARGS__)
#define kn_models_vgg16_bn(...) kn_models_new("vgg16_bn", __VA_ARGS__)
#define kn_models_vgg19_bn(...) kn_models_new("vgg19_bn", __VA_ARGS__)

#define kn_models_resnet18(...) kn_models_new("resnet18", __VA_ARGS__)
#define kn_models_resnet34(...) kn_models_new("resnet34", __VA_ARGS__)
#define kn_models_resnet50(...) kn_models_new("resnet50", __VA_ARGS__)
#define kn_models_resnet101(...) kn_models_new("resnet101", __VA_ARGS__)
#define kn_models_resnet152(...) kn_models_new("resnet152", __VA_ARGS__)
#define kn_models_resnext50_32x4d(...) kn_models_new("resnext50_32x4d", __VA_ARGS__)
#define kn_models_resnext101_32x8d(...) kn_models_new("resnext101_32x8d", __VA_ARGS__)
#define kn_models_wide_resnet50_2(...) kn_models_new("wide_resnet50_2", __VA_ARGS__)
#define kn_models_wide_resnet101_2(...) kn_models_new("wide_resnet101_2", __VA_ARGS__)

#define kn_models_mobilenet_v2(...) kn_models_new("mobilenet_v2", __VA_ARGS__)
#define kn_models_mobilenet_v3_large(...) kn_models_new("mobilenet_v3_large", __VA_ARGS__)
#define kn_models_mobilenet_v3_small(...) kn_models_new("mobilenet_v3_small", __VA_ARGS__)

#define kn_models_efficientnet_b0(...) kn_models_new("efficientnet_b0", __VA_ARGS__)

#define kn_models_densenet121(...) kn_models_new("densenet121", __VA_ARGS__)
#define kn_models_densenet161(...) kn_models_new("densenet161", __VA_ARGS__)
#define kn_models_densenet169(...) kn_models_new("densenet169", __VA_ARGS__)
#define kn_models_densenet201(...) kn_models_new("densenet201", __VA_ARGS__)

/* U-Net: the result is [N, num_classes, H, W]; H and W are multiples of 16. Names as in milesial/Pytorch-UNet. */
#define kn_models_unet(...) kn_models_new("unet", __VA_ARGS__)

KN_END_DECLS

#endif
