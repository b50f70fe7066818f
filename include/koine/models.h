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
#include <koine/embedding.h>
#include <koine/module.h>

KN_BEGIN_DECLS

typedef struct kn_models_params {
    int64_t num_classes; /* default 1000 */
    int64_t in_channels; /* default 3 */
    double dropout;      /* of the classifier; default -1: the network's own */
    /* EfficientNet, ConvNeXt: the probability of leaving out the last block's branch, which grows linearly from the
     * first; default -1: the network's own */
    double stochastic_depth;
    /* default false; true: a stem for images of about 32 pixels, as usual for CIFAR: ResNets and DenseNets begin with a
     * 3x3 convolution without pooling, mobile networks with stride 1, ConvNeXts with patches of 2 pixels and vision
     * transformers with patches a quarter as long */
    bool small_images;
    int64_t image_size; /* of a vision transformer; default 0: 224, or 32 with small_images */
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

/* ConvNeXt (Liu et al. 2022). */
#define kn_models_convnext_tiny(...) kn_models_new("convnext_tiny", __VA_ARGS__)
#define kn_models_convnext_small(...) kn_models_new("convnext_small", __VA_ARGS__)
#define kn_models_convnext_base(...) kn_models_new("convnext_base", __VA_ARGS__)
#define kn_models_convnext_large(...) kn_models_new("convnext_large", __VA_ARGS__)

/* Vision transformers (Dosovitskiy et al. 2021) for square images of one size, a multiple of the length of a patch,
 * which is the number in the name. `dropout`: of embeddings and blocks. */
#define kn_models_vit_b_16(...) kn_models_new("vit_b_16", __VA_ARGS__)
#define kn_models_vit_b_32(...) kn_models_new("vit_b_32", __VA_ARGS__)
#define kn_models_vit_l_16(...) kn_models_new("vit_l_16", __VA_ARGS__)
#define kn_models_vit_l_32(...) kn_models_new("vit_l_32", __VA_ARGS__)
#define kn_models_vit_h_14(...) kn_models_new("vit_h_14", __VA_ARGS__)

/* The same of any size, torchvision's VisionTransformer. */
typedef struct kn_models_vit_params {
    int64_t image_size, patch_size;    /* defaults 224, 16 */
    int64_t num_layers, num_heads;     /* defaults 12, 12 */
    int64_t hidden_dim, mlp_dim;       /* defaults 768, 3072; hidden_dim is a multiple of num_heads */
    double dropout, attention_dropout; /* default 0 */
    int64_t num_classes, in_channels;  /* defaults 1000, 3 */
} kn_models_vit_params;
#define KN_MODELS_VIT_DEFAULTS                                                                                         \
    .image_size = 224, .patch_size = 16, .num_layers = 12, .num_heads = 12, .hidden_dim = 768, .mlp_dim = 3072,        \
    .num_classes = 1000, .in_channels = 3
KN_API kn_models_vit_params kn_models_vit_params_init(void);
KN_API kn_module *kn_models_vit_with(const kn_models_vit_params *params);
#define kn_models_vit(...) KN_CALL(kn_models_vit_with(&(kn_models_vit_params){KN_MODELS_VIT_DEFAULTS, __VA_ARGS__}))

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

/* A classifier of texts: an embedding, an LSTM, and a linear layer of its last state (of a bidirectional one, those of
 * both directions). Inputs: tokens [N, T], int64, and optionally the texts' lengths [N], int64 (koine/nn/rnn.h), whose
 * padding then has no influence; result: logits [N, num_classes]. Parameters: embedding.weight, lstm.weight_ih_l0, ...,
 * fc.weight, fc.bias, initialised as the layers are in PyTorch. */
typedef struct kn_models_lstm_classifier_params {
    int64_t vocab_size;                 /* required */
    int64_t num_classes;                /* default 2 */
    int64_t embedding_dim, hidden_size; /* defaults 128, 256 */
    int64_t num_layers;                 /* default 1 */
    bool bidirectional;                 /* default false */
    double dropout;                     /* default 0: between the LSTM's layers, and of its last state */
    int64_t padding_idx;                /* default KN_NO_PADDING_IDX */
} kn_models_lstm_classifier_params;
#define KN_MODELS_LSTM_CLASSIFIER_DEFAULTS                                                                             \
    .num_classes = 2, .embedding_dim = 128, .hidden_size = 256, .num_layers = 1, .padding_idx = KN_NO_PADDING_IDX
KN_API kn_models_lstm_classifier_params kn_models_lstm_classifier_params_init(void);
KN_API kn_module *kn_models_lstm_classifier_with(const kn_models_lstm_classifier_params *params);
#define kn_models_lstm_classifier(...)                                                                                 \
    KN_CALL(kn_models_lstm_classifier_with(                                                                            \
        &(kn_models_lstm_classifier_params){KN_MODELS_LSTM_CLASSIFIER_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
