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

/* --- language ----------------------------------------------------------------------------------------------------- */

/* GPT-2 (Radford et al. 2019). Input: tokens [N, T], int64; result: logits [N, T, vocab_size] of the next token. The
 * head shares the embedding's weight. Names are those of the published files (wte.weight, h.0.attn.c_attn.weight),
 * which also hold masks that are not needed here:
 *
 *     kn_module *net = kn_models_gpt2();
 *     kn_module_load(net, "model.safetensors", .strict = false);
 *
 * For files of the whole Hugging Face model, "transformer.wte.weight": .prefix = "transformer.". */
typedef struct kn_models_gpt2_params {
    int64_t vocab_size;              /* default 50257 */
    int64_t n_positions;             /* default 1024: the longest T */
    int64_t n_embd, n_layer, n_head; /* defaults 768, 12, 12; n_embd is a multiple of n_head */
    double dropout;                  /* default 0.1: of embeddings, attention and residual branches */
} kn_models_gpt2_params;
#define KN_MODELS_GPT2_DEFAULTS                                                                                        \
    .vocab_size = 50257, .n_positions = 1024, .n_embd = 768, .n_layer = 12, .n_head = 12, .dropout = 0.1
KN_API kn_models_gpt2_params kn_models_gpt2_params_init(void);
KN_API kn_module *kn_models_gpt2_with(const kn_models_gpt2_params *params);
#define kn_models_gpt2(...) KN_CALL(kn_models_gpt2_with(&(kn_models_gpt2_params){KN_MODELS_GPT2_DEFAULTS, __VA_ARGS__}))
#define kn_models_gpt2_medium(...) kn_models_gpt2(.n_embd = 1024, .n_layer = 24, .n_head = 16, __VA_ARGS__)
#define kn_models_gpt2_large(...) kn_models_gpt2(.n_embd = 1280, .n_layer = 36, .n_head = 20, __VA_ARGS__)
#define kn_models_gpt2_xl(...) kn_models_gpt2(.n_embd = 1600, .n_layer = 48, .n_head = 25, __VA_ARGS__)

/* The encoder of BERT (Devlin et al. 2019). Inputs: tokens [N, T], int64; optionally an attention mask [N, T], nonzero
 * for tokens and 0 for padding, and token types [N, T]. Outputs: the states of the last layer [N, T, hidden_size], and
 * the first one's, pooled: [N, hidden_size]. Names as in Hugging Face's BertModel; for files with a head, .prefix =
 * "bert.". */
typedef struct kn_models_bert_params {
    int64_t vocab_size;                                                  /* default 30522 */
    int64_t hidden_size, num_hidden_layers, num_attention_heads;         /* defaults 768, 12, 12 */
    int64_t intermediate_size, max_position_embeddings, type_vocab_size; /* defaults 3072, 512, 2 */
    double dropout;                                                      /* default 0.1 */
} kn_models_bert_params;
#define KN_MODELS_BERT_DEFAULTS                                                                                        \
    .vocab_size = 30522, .hidden_size = 768, .num_hidden_layers = 12, .num_attention_heads = 12,                       \
    .intermediate_size = 3072, .max_position_embeddings = 512, .type_vocab_size = 2, .dropout = 0.1
KN_API kn_models_bert_params kn_models_bert_params_init(void);
KN_API kn_module *kn_models_bert_with(const kn_models_bert_params *params);
#define kn_models_bert(...) KN_CALL(kn_models_bert_with(&(kn_models_bert_params){KN_MODELS_BERT_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
