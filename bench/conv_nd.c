/* conv_nd.c - convolutions of signals and volumes, each pass separately. The signals are those of audio and text models
 * (the first layers of wav2vec 2.0, a temporal convolutional network, a depthwise layer as in Conformer), the volumes
 * those of video and medical networks (C3D, 3D U-Net, a factorised layer as in R(2+1)D). Transposed ones enlarge: an
 * upsampling layer of HiFi-GAN, and of 3D U-Net. Named images,channels,sizes-outputs,kernel, then s: stride, d:
 * dilation, g: groups; padding is half the kernel's extent, of transposed ones half of what exceeds the stride. */
#include "bench.h"

static kn_tensor *signal(kn_tensor *const *x, const double *p)
{
    return kn_conv1d(x[0], x[1], NULL, .stride = (int64_t)p[0], .padding = (int64_t)p[1], .dilation = (int64_t)p[2],
                     .groups = (int64_t)p[3]);
}

static kn_tensor *volume(kn_tensor *const *x, const double *p)
{
    return kn_conv3d(x[0], x[1], NULL, .stride = (int64_t)p[0],
                     .paddings = {(int64_t)p[2], (int64_t)p[1], (int64_t)p[1]}, .groups = (int64_t)p[3]);
}

static kn_tensor *enlarged_signal(kn_tensor *const *x, const double *p)
{
    return kn_conv_transpose1d(x[0], x[1], NULL, .stride = (int64_t)p[0], .padding = (int64_t)p[1]);
}

static kn_tensor *enlarged_volume(kn_tensor *const *x, const double *p)
{
    return kn_conv_transpose3d(x[0], x[1], NULL, .stride = (int64_t)p[0], .padding = (int64_t)p[1]);
}

/* Outputs along a dimension padded by half the kernel's extent. */
#define OUT(size, r, stride, d) ((double)(((size) + 2 * ((r) / 2 * (d)) - (d) * ((r)-1) - 1) / (stride) + 1))

#define SIGNAL(group, label, wanted, suffix, n, c, l, k, r, s, d, g)                                                   \
    {                                                                                                                  \
        .name = group "conv1d/" #n "," #c "," #l "-" #k "," #r suffix "/" label,                                       \
        .shape = #n "," #c "," #l "-" #k "," #r suffix, .dtype = KN_F32,                                               \
        .flops = 2.0 * n * k * (c / (g)) * r * OUT(l, r, s, d),                                                        \
        .bytes = 4.0 * ((double)n * c * l + (double)k * (c / (g)) * r + n * k * OUT(l, r, s, d)), BENCH_OPERATION,     \
        .operation = &(const bench_operation){                                                                         \
            .name = "conv1d",                                                                                          \
            .apply = signal,                                                                                           \
            .inputs = {{.ndim = 3, .shape = {n, c, l}}, {.ndim = 3, .shape = {k, c / (g), r}}},                        \
            .parameters = {s, (r) / 2 * (d), d, g},                                                                    \
            .gradients = wanted},                                                                                      \
    }
#define SIGNALS(group, suffix, ...)                                                                                    \
    SIGNAL(group, "fwd", 0, suffix, __VA_ARGS__), SIGNAL(group, "bwd_data", 1, suffix, __VA_ARGS__),                   \
        SIGNAL(group, "bwd_weights", 2, suffix, __VA_ARGS__)

/* t x r x r windows. */
#define VOLUME(group, label, wanted, suffix, n, c, f, h, k, t, r, s, g)                                                \
    {                                                                                                                  \
        .name = group "conv3d/" #n "," #c "," #f "," #h "," #h "-" #k "," #t "x" #r "x" #r suffix "/" label,           \
        .shape = #n "," #c "," #f "," #h "," #h "-" #k "," #t "x" #r "x" #r suffix, .dtype = KN_F32,                   \
        .flops = 2.0 * n * k * (c / (g)) * t * r * r * OUT(f, t, s, 1) * OUT(h, r, s, 1) * OUT(h, r, s, 1),            \
        .bytes = 4.0 * ((double)n * c * f * h * h + (double)k * (c / (g)) * t * r * r +                                \
                        n * k * OUT(f, t, s, 1) * OUT(h, r, s, 1) * OUT(h, r, s, 1)),                                  \
        BENCH_OPERATION,                                                                                               \
        .operation = &(const bench_operation){                                                                         \
            .name = "conv3d",                                                                                          \
            .apply = volume,                                                                                           \
            .inputs = {{.ndim = 5, .shape = {n, c, f, h, h}}, {.ndim = 5, .shape = {k, c / (g), t, r, r}}},            \
            .parameters = {s, (r) / 2, (t) / 2, g},                                                                    \
            .gradients = wanted},                                                                                      \
    }
#define VOLUMES(group, suffix, ...)                                                                                    \
    VOLUME(group, "fwd", 0, suffix, __VA_ARGS__), VOLUME(group, "bwd_data", 1, suffix, __VA_ARGS__),                   \
        VOLUME(group, "bwd_weights", 2, suffix, __VA_ARGS__)

/* Outputs are `s` times the inputs along each of `dims` dimensions; r - s is even. */
#define ENLARGED(dims, op, function, label, wanted, sizes, shape_, n, c, pixels, k, taps, r, s, x_shape, w_shape)      \
    {                                                                                                                  \
        .name = op "/" shape_ "/" label, .shape = shape_, .dtype = KN_F32,                                             \
        .flops = 2.0 * n * k * c * (taps) * (pixels),                                                                  \
        .bytes = 4.0 * ((double)n * c * (pixels) + (double)k * c * (taps) + (double)n * k * (pixels) * (sizes)),       \
        BENCH_OPERATION,                                                                                               \
        .operation = &(const bench_operation){                                                                         \
            .name = op,                                                                                                \
            .apply = function,                                                                                         \
            .inputs = {{.ndim = dims + 2, .shape = x_shape}, {.ndim = dims + 2, .shape = w_shape}},                    \
            .parameters = {s, ((r) - (s)) / 2},                                                                        \
            .gradients = wanted},                                                                                      \
    }
#define SHAPE(...)                                                                                                     \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define ENLARGED_SIGNAL(label, wanted, n, c, l, k, r, s)                                                               \
    ENLARGED(1, "conv_transpose1d", enlarged_signal, label, wanted, s, #n "," #c "," #l "-" #k "," #r "s" #s, n, c, l, \
             k, r, r, s, SHAPE(n, c, l), SHAPE(c, k, r))
#define ENLARGED_VOLUME(label, wanted, n, c, f, h, k, r, s)                                                            \
    ENLARGED(3, "conv_transpose3d", enlarged_volume, label, wanted, (s) * (s) * (s),                                   \
             #n "," #c "," #f "," #h "," #h "-" #k "," #r "x" #r "x" #r "s" #s, n, c, f * h * h, k, r * r * r, r, s,   \
             SHAPE(n, c, f, h, h), SHAPE(c, k, r, r, r))
#define THREE_PASSES(row, ...)                                                                                         \
    row("fwd", 0, __VA_ARGS__), row("bwd_data", 1, __VA_ARGS__), row("bwd_weights", 2, __VA_ARGS__)

/* clang-format off */
static const bench_case cases[] = {
    SIGNALS("", "s2", 4, 64, 4000, 128, 3, 2, 1, 1),
    SIGNALS("", "", 8, 128, 1000, 128, 5, 1, 1, 1),
    SIGNALS("", "d4", 8, 64, 1000, 64, 3, 1, 4, 1),
    SIGNALS("", "", 8, 256, 500, 256, 1, 1, 1, 1),
    SIGNALS("", "g256", 8, 256, 500, 256, 31, 1, 1, 256),
    SIGNALS("", "g64", 1, 64, 20000, 64, 9, 1, 1, 64),
    VOLUMES("", "", 1, 3, 16, 112, 64, 3, 3, 1, 1),
    VOLUMES("", "", 1, 64, 8, 56, 64, 3, 3, 1, 1),
    VOLUMES("", "", 2, 128, 4, 28, 128, 3, 3, 1, 1),
    VOLUMES("", "s2", 1, 64, 16, 32, 128, 3, 3, 2, 1),
    VOLUMES("", "", 1, 64, 8, 56, 64, 3, 1, 1, 1),
    VOLUMES("", "", 2, 128, 8, 28, 256, 1, 1, 1, 1),
    THREE_PASSES(ENLARGED_SIGNAL, 4, 256, 500, 128, 16, 8),
    THREE_PASSES(ENLARGED_VOLUME, 1, 128, 8, 28, 64, 2, 2),
    THREE_PASSES(ENLARGED_VOLUME, 1, 64, 8, 28, 32, 4, 2),
    SIGNALS("gpu/", "", 64, 128, 4000, 128, 5, 1, 1, 1),
    SIGNALS("gpu/", "g256", 64, 256, 2000, 256, 31, 1, 1, 256),
    VOLUMES("gpu/", "", 8, 64, 16, 56, 64, 3, 3, 1, 1),
    VOLUMES("gpu/", "", 8, 128, 8, 28, 256, 1, 1, 1, 1),
};
/* clang-format on */
const bench_list bench_conv_nd = {cases, sizeof cases / sizeof cases[0]};
