/* conv.c - convolution layers, each pass separately: forward, gradient of the input (bwd_data), gradient of the weight
 * (bwd_weights). The layers are those of the examples, AlexNet, OverFeat, VGG-A (convnet-benchmarks), ResNet, Inception
 * (DeepBench), MobileNet, ViT and DeepLab. Named images,channels,height,width-outputs,kernel, then s: stride, p:
 * padding unless it is half the kernel, g: groups, d: dilation.
 *
 * All layers are measured with a batch for CPUs (8 images) and, under gpu/conv/, with a batch for GPUs: 128 images, or
 * 32 of 112 x 112 pixels and more. */
#include "bench.h"

static kn_tensor *apply(kn_tensor *const *x, const double *parameters)
{
    return kn_conv2d(x[0], x[1], NULL, .stride = (int64_t)parameters[0], .padding = (int64_t)parameters[1],
                     .groups = (int64_t)parameters[2], .dilation = (int64_t)parameters[3]);
}

#define OUT(size, r, stride, padding, dilation)                                                                        \
    ((double)((size + 2 * (padding) - (dilation) * ((r)-1) - 1) / (stride) + 1))
#define TYPED(group, label, wanted, type, size, tf32_, suffix, n, c, h, w, k, r, s, p, g, d)                           \
    {                                                                                                                  \
        .name = group "conv/" #n "," #c "," #h "," #w "-" #k "," #r "x" #r suffix "/" label,                           \
        .shape = #n "," #c "," #h "," #w "-" #k "," #r "x" #r suffix, .dtype = type,                                   \
        .flops = 2.0 * n * k * (c / (g)) * r * r * OUT(h, r, s, p, d) * OUT(w, r, s, p, d),                            \
        .bytes = size * ((double)n * c * h * w + (double)k * (c / (g)) * r * r +                                       \
                         n * k * OUT(h, r, s, p, d) * OUT(w, r, s, p, d)),                                             \
        BENCH_OPERATION,                                                                                               \
        .operation = &(const bench_operation){                                                                         \
            .name = "conv2d",                                                                                          \
            .apply = apply,                                                                                            \
            .inputs = {{.ndim = 4, .shape = {n, c, h, w}}, {.ndim = 4, .shape = {k, c / (g), r, r}}},                  \
            .parameters = {s, p, g, d},                                                                                \
            .gradients = wanted,                                                                                       \
            .tf32 = tf32_},                                                                                            \
    }
#define PASS(group, label, wanted, tf32, suffix, n, c, h, w, k, r, s, p, g, d)                                         \
    TYPED(group, label, wanted, KN_F32, 4.0, tf32, suffix, n, c, h, w, k, r, s, p, g, d)
#define WITH(group, suffix, n, c, h, w, k, r, s, p, g, d)                                                              \
    PASS(group, "fwd", 0, false, suffix, n, c, h, w, k, r, s, p, g, d),                                                \
        PASS(group, "bwd_data", 1, false, suffix, n, c, h, w, k, r, s, p, g, d),                                       \
        PASS(group, "bwd_weights", 2, false, suffix, n, c, h, w, k, r, s, p, g, d)
#define TF32(group, n, c, h, w, k, r)                                                                                  \
    PASS(group, "fwd/tf32", 0, true, "", n, c, h, w, k, r, 1, r / 2, 1, 1),                                            \
        PASS(group, "bwd_data/tf32", 1, true, "", n, c, h, w, k, r, 1, r / 2, 1, 1),                                   \
        PASS(group, "bwd_weights/tf32", 2, true, "", n, c, h, w, k, r, 1, r / 2, 1, 1)
#define BF16(suffix, n, c, h, w, k, r, s, p)                                                                           \
    TYPED("bf16/", "fwd", 0, KN_BF16, 2.0, false, suffix, n, c, h, w, k, r, s, p, 1, 1),                               \
        TYPED("bf16/", "bwd_data", 1, KN_BF16, 2.0, false, suffix, n, c, h, w, k, r, s, p, 1, 1),                      \
        TYPED("bf16/", "bwd_weights", 2, KN_BF16, 2.0, false, suffix, n, c, h, w, k, r, s, p, 1, 1)

#define LAYER(group, n, c, h, w, k, r) WITH(group, "", n, c, h, w, k, r, 1, r / 2, 1, 1)
#define STRIDED(group, n, c, h, w, k, r, s) WITH(group, "s" #s, n, c, h, w, k, r, s, r / 2, 1, 1)
#define PADDED(group, n, c, h, w, k, r, s, p) WITH(group, "s" #s "p" #p, n, c, h, w, k, r, s, p, 1, 1)
#define UNPADDED(group, n, c, h, w, k, r) WITH(group, "p0", n, c, h, w, k, r, 1, 0, 1, 1)
#define SEED(n, c, h, w, k, r) WITH("", "", n, c, h, w, k, r, 1, 0, 1, 1)
#define DILATED(group, n, c, h, w, k, r, d) WITH(group, "d" #d, n, c, h, w, k, r, 1, (d) * (r / 2), 1, d)
#define DEPTHWISE(group, n, c, h, w) WITH(group, "g" #c, n, c, h, w, c, 3, 1, 1, c, 1)
#define DEPTHWISE_STRIDED(group, n, c, h, w) WITH(group, "s2g" #c, n, c, h, w, c, 3, 2, 1, c, 1)

/* clang-format off */
/* n images, m if they are large. */
#define LAYERS(G, n, m)                                                \
    /* ResNet */                                                       \
    STRIDED(G, m, 3, 224, 224, 64, 7, 2),                              \
    LAYER(G, n, 64, 56, 56, 64, 3),                                    \
    LAYER(G, n, 128, 28, 28, 128, 3),                                  \
    LAYER(G, n, 256, 14, 14, 256, 3),                                  \
    LAYER(G, n, 512, 7, 7, 512, 3),                                    \
    STRIDED(G, n, 128, 56, 56, 128, 3, 2),                             \
    LAYER(G, n, 64, 56, 56, 256, 1),                                   \
    LAYER(G, n, 256, 56, 56, 64, 1),                                   \
    LAYER(G, n, 128, 28, 28, 512, 1),                                  \
    LAYER(G, n, 512, 28, 28, 128, 1),                                  \
    LAYER(G, n, 256, 14, 14, 1024, 1),                                 \
    LAYER(G, n, 1024, 14, 14, 256, 1),                                 \
    LAYER(G, n, 512, 7, 7, 2048, 1),                                   \
    LAYER(G, n, 2048, 7, 7, 512, 1),                                   \
    STRIDED(G, n, 256, 56, 56, 512, 1, 2),                             \
    /* AlexNet */                                                      \
    PADDED(G, m, 3, 224, 224, 64, 11, 4, 2),                           \
    LAYER(G, n, 64, 27, 27, 192, 5),                                   \
    LAYER(G, n, 192, 13, 13, 384, 3),                                  \
    LAYER(G, n, 384, 13, 13, 256, 3),                                  \
    LAYER(G, n, 256, 13, 13, 256, 3),                                  \
    /* OverFeat */                                                     \
    PADDED(G, m, 3, 231, 231, 96, 11, 4, 0),                           \
    UNPADDED(G, n, 96, 24, 24, 256, 5),                                \
    LAYER(G, n, 256, 12, 12, 512, 3),                                  \
    LAYER(G, n, 512, 12, 12, 1024, 3),                                 \
    LAYER(G, n, 1024, 12, 12, 1024, 3),                                \
    /* VGG-A */                                                        \
    LAYER(G, m, 3, 224, 224, 64, 3),                                   \
    LAYER(G, m, 64, 112, 112, 128, 3),                                 \
    LAYER(G, n, 128, 56, 56, 256, 3),                                  \
    LAYER(G, n, 256, 56, 56, 256, 3),                                  \
    LAYER(G, n, 256, 28, 28, 512, 3),                                  \
    LAYER(G, n, 512, 28, 28, 512, 3),                                  \
    LAYER(G, n, 512, 14, 14, 512, 3),                                  \
    LAYER(G, m, 64, 224, 224, 64, 3),                                  \
    /* Inception */                                                    \
    LAYER(G, n, 192, 28, 28, 32, 5),                                   \
    LAYER(G, n, 192, 28, 28, 64, 1),                                   \
    LAYER(G, n, 512, 14, 14, 48, 5),                                   \
    LAYER(G, n, 512, 14, 14, 192, 1),                                  \
    LAYER(G, n, 832, 7, 7, 256, 1),                                    \
    LAYER(G, n, 832, 7, 7, 128, 5),                                    \
    /* MobileNet: one filter per channel */                            \
    DEPTHWISE(G, m, 32, 112, 112),                                     \
    DEPTHWISE_STRIDED(G, m, 96, 112, 112),                             \
    DEPTHWISE(G, n, 144, 56, 56),                                      \
    DEPTHWISE(G, n, 384, 14, 14),                                      \
    DEPTHWISE(G, n, 960, 7, 7),                                        \
    /* ViT-B/16: patches */                                            \
    PADDED(G, n, 3, 224, 224, 768, 16, 16, 0),                         \
    /* DeepLab */                                                      \
    DILATED(G, n, 512, 33, 33, 512, 3, 2),                             \
    DILATED(G, n, 256, 33, 33, 256, 3, 12)
/* clang-format on */

static const bench_case cases[] = {
    /* the examples' network, unpadded */
    SEED(128, 1, 28, 28, 32, 3),
    SEED(128, 32, 13, 13, 64, 5),
    LAYERS("", 8, 8),
    LAYER("", 4, 96, 27, 27, 256, 5),
    /* MobileNet's blocks, for images of 32 x 32 */
    DEPTHWISE("", 32, 192, 16, 16),
    LAYER("", 32, 24, 32, 32, 144, 1),
    LAYER("", 32, 144, 32, 32, 24, 1),
    LAYER("", 32, 96, 8, 8, 576, 1),
    /* Of ResNet and ViT. */
    BF16("", 8, 64, 56, 56, 64, 3, 1, 1),
    BF16("", 8, 256, 56, 56, 64, 1, 1, 0),
    BF16("", 8, 128, 28, 28, 512, 1, 1, 0),
    BF16("", 8, 1024, 14, 14, 256, 1, 1, 0),
    BF16("", 8, 512, 7, 7, 2048, 1, 1, 0),
    BF16("s2", 8, 256, 56, 56, 512, 1, 2, 0),
    BF16("s2", 8, 128, 56, 56, 128, 3, 2, 1),
    BF16("s16p0", 8, 3, 224, 224, 768, 16, 16, 0),
    LAYERS("gpu/", 128, 32),
    LAYER("gpu/", 128, 96, 27, 27, 256, 5),
    DEPTHWISE("gpu/", 128, 192, 16, 16),
    TF32("gpu/", 128, 64, 56, 56, 64, 3),
    TF32("gpu/", 128, 256, 14, 14, 256, 3),
    TF32("gpu/", 128, 1024, 14, 14, 256, 1),
};
const bench_list bench_conv = {cases, sizeof cases / sizeof cases[0]};
