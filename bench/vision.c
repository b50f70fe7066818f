/* vision.c - padding, patches, resizing and sampling of images, forward and backward. */
#include "bench.h"

static kn_tensor *pad(kn_tensor *const *x, const double *p)
{
    return kn_pad(x[0], KN_SHAPE((int64_t)p[0], (int64_t)p[0], (int64_t)p[0], (int64_t)p[0]), .mode = KN_PAD_REFLECT);
}

static kn_tensor *unfold(kn_tensor *const *x, const double *p)
{
    return kn_unfold(x[0], .kernel_size = (int64_t)p[0], .padding = (int64_t)p[1]);
}

static kn_tensor *interpolate(kn_tensor *const *x, const double *p)
{
    (void)p;
    return kn_interpolate(x[0], .scale_factor = 2, .mode = KN_INTERPOLATE_BILINEAR);
}

static kn_tensor *grid_sample(kn_tensor *const *x, const double *p)
{
    (void)p;
    return kn_grid_sample(x[0], x[1]);
}

#define CASE(group, operation_, label, n, c, h, w, passes, wanted, other, ...)                                         \
    {                                                                                                                  \
        .name = group "vision/" operation_ "/" #n "," #c "," #h "," #w label,                                          \
        .shape = operation_ " " #n "," #c "," #h "," #w, .dtype = KN_F32, .bytes = 4.0 * (passes)*n * c * h * w,       \
        BENCH_OPERATION,                                                                                               \
        .operation = &(const bench_operation){.name = "vision_" operation_,                                            \
                                              .apply = other,                                                          \
                                              .inputs = {{.ndim = 4, .shape = {n, c, h, w}}, __VA_ARGS__},             \
                                              .parameters = PARAMETERS_##other,                                        \
                                              .gradients = wanted},                                                    \
    }
#define PARAMETERS_pad                                                                                                 \
    {                                                                                                                  \
        3                                                                                                              \
    }
#define PARAMETERS_unfold                                                                                              \
    {                                                                                                                  \
        3, 1                                                                                                           \
    }
#define PARAMETERS_interpolate                                                                                         \
    {                                                                                                                  \
        0                                                                                                              \
    }
#define PARAMETERS_grid_sample                                                                                         \
    {                                                                                                                  \
        0                                                                                                              \
    }
#define BOTH(group, operation_, n, c, h, w, passes, function, all, ...)                                                \
    CASE(group, operation_, "/fwd", n, c, h, w, passes, 0, function, __VA_ARGS__),                                     \
        CASE(group, operation_, "/bwd", n, c, h, w, passes, all, function, __VA_ARGS__)

/* clang-format off */
#define PLACES(n, h, w) {.ndim = 4, .shape = {n, h, w, 2}}
static const bench_case cases[] = {
    BOTH("", "pad", 8, 32, 64, 64, 2, pad, 1, {0}),
    BOTH("", "unfold", 4, 32, 56, 56, 10, unfold, 1, {0}),
    BOTH("", "bilinear", 8, 32, 64, 64, 5, interpolate, 1, {0}),
    BOTH("", "grid_sample", 4, 16, 96, 96, 2, grid_sample, 3, PLACES(4, 96, 96)),
    BOTH("gpu/", "pad", 64, 64, 128, 128, 2, pad, 1, {0}),
    BOTH("gpu/", "unfold", 32, 64, 56, 56, 10, unfold, 1, {0}),
    BOTH("gpu/", "bilinear", 64, 64, 128, 128, 5, interpolate, 1, {0}),
    BOTH("gpu/", "grid_sample", 32, 32, 128, 128, 2, grid_sample, 3, PLACES(32, 128, 128)),
};
/* clang-format on */
const bench_list bench_vision = {cases, sizeof cases / sizeof cases[0]};
