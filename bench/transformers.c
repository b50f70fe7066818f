/* transformers.c - one training step, and inference, of a language model, GPT-2, and of a vision transformer. */
#include "bench.h"

enum { EXPANSION = 4 }; /* of a block's feed-forward layers */

typedef struct transformer {
    int64_t layers, heads, width;
    int64_t outputs; /* the vocabulary or the classes */
    int64_t patch;   /* 0: a language model */
} transformer;

static const transformer transformers[] = {
    {4, 4, 256, 4096, 0}, {6, 3, 192, 10, 4}, {12, 12, 768, 50257, 0}, {12, 12, 768, 1000, 16}};
enum { GPT, VIT, GPT_GPU, VIT_GPU };

/* --- the networks ------------------------------------------------------------------------------------------------- */

static kn_tensor *loss_of_tokens(kn_tensor *output, kn_tensor *target)
{
    return output ? kn_cross_entropy(kn_reshape(output, KN_SHAPE(-1, kn_size(output, 2))), kn_flatten(target, 0, -1))
                  : NULL;
}

static kn_module *make(const transformer *of, int64_t size)
{
    if (of->patch == 0)
        return kn_models_gpt2(.vocab_size = of->outputs, .n_positions = size, .n_embd = of->width,
                              .n_layer = of->layers, .n_head = of->heads, .dropout = 0);
    return kn_models_vit(.image_size = size, .patch_size = of->patch, .num_layers = of->layers, .num_heads = of->heads,
                         .hidden_dim = of->width, .mlp_dim = EXPANSION * of->width, .num_classes = of->outputs);
}

/* Multiply-adds of a forward pass: of each token the products with a block's weights, and with the keys and values of
 * the tokens it sees; the first and the last layer. */
static double products(const transformer *of, double batch, double size)
{
    const double side = of->patch ? size / (double)of->patch : 0, width = (double)of->width;
    const double tokens = of->patch ? side * side + 1 : size, seen = of->patch ? tokens : tokens / 2;
    const double block = (4 + 2 * EXPANSION) * width * width + 2 * seen * width, last = width * (double)of->outputs;
    const double first = of->patch ? side * side * 3 * (double)(of->patch * of->patch) * width : 0;
    return batch * (first + tokens * (double)of->layers * block + last * (of->patch ? 1 : tokens));
}

/* size: batch, length of the text or side of the images, which, inference */
static kn_status setup(const bench_case *self, bench_state *state)
{
    const transformer *of = &transformers[self->size[2]];
    const int64_t batch = self->size[0], size = self->size[1];
    bench_training *t = bench_training_new(state);
    if (!t)
        return KN_ERR_MEMORY;
    t->module = make(of, size);
    t->optim = t->module ? kn_optim_adamw(kn_module_parameters(t->module), .lr = 3e-4) : NULL;
    state->flops = (self->size[3] ? 1 : 3) * 2 * products(of, (double)batch, (double)size);
    {
        KN_SCOPE;
        if (of->patch == 0)
            t->criterion = loss_of_tokens;
        t->x = kn_retain(of->patch ? kn_randn(KN_SHAPE(batch, 3, size, size))
                                   : kn_randint(0, of->outputs, KN_SHAPE(batch, size)));
        t->y = kn_retain(of->patch ? kn_randint(0, of->outputs, KN_SHAPE(batch))
                                   : kn_randint(0, of->outputs, KN_SHAPE(batch, size)));
    }
    return t->optim && t->x && t->y ? KN_OK : kn_error_status();
}

#define CASE(label, type, text, batch, length, which, inference, ...)                                                  \
    {                                                                                                                  \
        .name = label, .shape = text, .dtype = type, .setup = setup, .size = {batch, length, which, inference},        \
        __VA_ARGS__                                                                                                    \
    }
#define NETWORK(label, ...)                                                                                            \
    CASE(label, KN_F32, __VA_ARGS__, 0, BENCH_TRAINING),                                                               \
        CASE(label "/replayed", KN_F32, __VA_ARGS__, 0, BENCH_TRAINING, .replayed = true),                             \
        CASE(label "/autocast", KN_BF16, __VA_ARGS__, 0, BENCH_TRAINING),                                              \
        CASE(label "/inference", KN_F32, __VA_ARGS__, 1, BENCH_INFERENCE)

static const bench_case cases[] = {
    NETWORK("gpt", "batch 8, 128 tokens; 4 layers of 256", 8, 128, GPT),
    NETWORK("vit", "batch 16, 3x32x32; 6 layers of 192", 16, 32, VIT),
    NETWORK("gpu/gpt", "batch 8, 1024 tokens; 12 layers of 768", 8, 1024, GPT_GPU),
    NETWORK("gpu/vit", "batch 64, 3x224x224; 12 layers of 768", 64, 224, VIT_GPU),
};
const bench_list bench_transformers = {cases, sizeof cases / sizeof cases[0]};
