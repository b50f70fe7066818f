/* survey.c - operators that no other file covers, by their names in the list, forward and backward: losses, padding,
 * resizing, pooling, normalisations, joins, small products and factorisations. On request: --only survey/. */
#include "bench.h"

static kn_tensor *affine_grid(kn_tensor *const *x, const double *p)
{
    return (void)p, kn_affine_grid(x[0], KN_SHAPE(4, 16, 96, 96), false);
}
static kn_tensor *lp_pool2d(kn_tensor *const *x, const double *p)
{
    return (void)p, kn_lp_pool2d(x[0], 2, .kernel_size = 2);
}
static kn_tensor *pixel_shuffle(kn_tensor *const *x, const double *p) { return (void)p, kn_pixel_shuffle(x[0], 2); }
static kn_tensor *pixel_unshuffle(kn_tensor *const *x, const double *p) { return (void)p, kn_pixel_unshuffle(x[0], 2); }
static kn_tensor *channel_shuffle(kn_tensor *const *x, const double *p) { return (void)p, kn_channel_shuffle(x[0], 4); }

#define CASE(label, text, python, wanted, pass, ...)                                                                   \
    {                                                                                                                  \
        .name = "survey/" label pass, .shape = "", .dtype = KN_F32, .on_request = true, BENCH_OPERATION,               \
        .operation = &(const bench_operation){text, .peer = python, .inputs = {__VA_ARGS__}, .gradients = wanted},     \
    }
#define FORWARD(label, text, python, ...) CASE(label, .call = text, python, 0, "/fwd", __VA_ARGS__)
#define BACKWARD(label, text, python, wanted, ...) CASE(label, .call = text, python, wanted, "/bwd", __VA_ARGS__)
#define BOTH(label, text, python, wanted, ...)                                                                         \
    FORWARD(label, text, python, __VA_ARGS__), BACKWARD(label, text, python, wanted, __VA_ARGS__)

/* Functions that are no operators of the list. */
#define APPLIED(label, function, python, ...)                                                                          \
    CASE(label, .apply = function, python, 0, "/fwd", __VA_ARGS__),                                                    \
        CASE(label, .apply = function, python, 1, "/bwd", __VA_ARGS__)

/* clang-format off */
#define LINE(n, ...) {.ndim = 1, .shape = {n}, __VA_ARGS__}
#define MATRIX(rows, columns, ...) {.ndim = 2, .shape = {rows, columns}, __VA_ARGS__}
#define BATCH(n, rows, columns, ...) {.ndim = 3, .shape = {n, rows, columns}, __VA_ARGS__}
#define IMAGES(n, c, h, w, ...) {.ndim = 4, .shape = {n, c, h, w}, __VA_ARGS__}
#define VOLUMES(n, c, d, h, w, ...) {.ndim = 5, .shape = {n, c, d, h, w}, __VA_ARGS__}
#define U .fill = BENCH_UNIFORM
#define BELOW(n) .fill = BENCH_INDICES, .below = n

/* Of an image of this size that several rows use. */
#define PICTURES IMAGES(8, 32, 64, 64)
#define OF_PICTURES(label, text, python) BOTH(label, text, python, 1, PICTURES)
#define LOSS(name, ...) BOTH("loss/" #name, #name, "F." #name "(a, b)", 1, __VA_ARGS__)

static const bench_case cases[] = {
    LOSS(mse_loss, MATRIX(512, 512), MATRIX(512, 512)),
    LOSS(l1_loss, MATRIX(512, 512), MATRIX(512, 512)),
    LOSS(smooth_l1_loss, MATRIX(512, 512), MATRIX(512, 512)),
    LOSS(huber_loss, MATRIX(512, 512), MATRIX(512, 512)),
    LOSS(kl_div, MATRIX(512, 512), MATRIX(512, 512, U)),
    LOSS(binary_cross_entropy, MATRIX(512, 512, U), MATRIX(512, 512, U)),
    LOSS(binary_cross_entropy_with_logits, MATRIX(512, 512), MATRIX(512, 512, U)),
    LOSS(poisson_nll_loss, MATRIX(512, 512), MATRIX(512, 512, U)),
    LOSS(soft_margin_loss, MATRIX(512, 512), MATRIX(512, 512)),
    LOSS(hinge_embedding_loss, MATRIX(512, 512), MATRIX(512, 512, .fill = BENCH_ONES)),
    LOSS(cosine_similarity, MATRIX(1024, 256), MATRIX(1024, 256)),
    LOSS(pairwise_distance, MATRIX(1024, 256), MATRIX(1024, 256)),
    LOSS(nll_loss, MATRIX(4096, 1000), LINE(4096, BELOW(1000))),
    LOSS(cross_entropy, MATRIX(512, 1000), LINE(512, BELOW(1000))),
    BOTH("loss/cross_entropy/128x10", "cross_entropy", "F.cross_entropy(a, b)", 1, MATRIX(128, 10),
         LINE(128, BELOW(10))),
    BOTH("loss/cross_entropy/images", "cross_entropy", "F.cross_entropy(a, b)", 1, IMAGES(4, 21, 64, 64),
         BATCH(4, 64, 64, BELOW(21))),
    BOTH("loss/gaussian_nll", "gaussian_nll_loss", "F.gaussian_nll_loss(a, b, c)", 1, MATRIX(512, 512),
         MATRIX(512, 512), MATRIX(512, 512, U)),
    BOTH("loss/triplet_margin", "triplet_margin_loss", "F.triplet_margin_loss(a, b, c)", 7, MATRIX(1024, 256),
         MATRIX(1024, 256), MATRIX(1024, 256)),
    BOTH("loss/multi_margin", "multi_margin_loss", "F.multi_margin_loss(a, b)", 1, MATRIX(512, 100),
         LINE(512, BELOW(100))),

    OF_PICTURES("pad/constant", "pad pad=3,3,3,3", "F.pad(a, [3] * 4)"),
    OF_PICTURES("pad/constant_one", "pad pad=1,1,1,1 value=1", "F.pad(a, [1] * 4, value=1)"),
    OF_PICTURES("pad/reflect", "pad pad=3,3,3,3 mode=reflect", "F.pad(a, [3] * 4, 'reflect')"),
    OF_PICTURES("pad/replicate", "pad pad=3,3,3,3 mode=replicate", "F.pad(a, [3] * 4, 'replicate')"),
    OF_PICTURES("pad/circular", "pad pad=3,3,3,3 mode=circular", "F.pad(a, [3] * 4, 'circular')"),
    OF_PICTURES("pad/crop", "pad pad=-3,-3,-3,-3", "F.pad(a, [-3] * 4)"),
    BOTH("pad/reflect_line", "pad pad=8,8 mode=reflect", "F.pad(a, [8] * 2, 'reflect')", 1, BATCH(16, 64, 1000)),
    BOTH("pad/replicate_volume", "pad pad=1,1,1,1,1,1 mode=replicate", "F.pad(a, [1] * 6, 'replicate')", 1,
         VOLUMES(2, 16, 16, 32, 32)),

    OF_PICTURES("interpolate/nearest", "interpolate scale_factor=2", "F.interpolate(a, scale_factor=2)"),
    OF_PICTURES("interpolate/bicubic", "interpolate scale_factor=2 mode=bicubic",
                "F.interpolate(a, scale_factor=2, mode='bicubic')"),
    OF_PICTURES("interpolate/bilinear_down", "interpolate scale_factor=0.5 mode=bilinear",
                "F.interpolate(a, scale_factor=0.5, mode='bilinear')"),
    OF_PICTURES("interpolate/antialias", "interpolate scale_factor=0.5 mode=bilinear antialias=true",
                "F.interpolate(a, scale_factor=0.5, mode='bilinear', antialias=True)"),
    BOTH("interpolate/linear", "interpolate scale_factor=2 mode=linear",
         "F.interpolate(a, scale_factor=2, mode='linear')", 1, BATCH(16, 64, 1000)),
    BOTH("interpolate/trilinear", "interpolate scale_factor=2 mode=trilinear",
         "F.interpolate(a, scale_factor=2, mode='trilinear')", 1, VOLUMES(2, 8, 16, 32, 32)),
    BOTH("grid_sample/bilinear", "grid_sample", "F.grid_sample(a, b, align_corners=False)", 3, IMAGES(4, 16, 96, 96),
         IMAGES(4, 96, 96, 2, .fill = BENCH_SIGNED)),
    BOTH("grid_sample/nearest", "grid_sample mode=nearest",
         "F.grid_sample(a, b, mode='nearest', align_corners=False)", 1, IMAGES(4, 16, 96, 96),
         IMAGES(4, 96, 96, 2, .fill = BENCH_SIGNED)),
    BOTH("grid_sample/border", "grid_sample padding_mode=border",
         "F.grid_sample(a, b, padding_mode='border', align_corners=False)", 3, IMAGES(4, 16, 96, 96),
         IMAGES(4, 96, 96, 2)),
    APPLIED("affine_grid", affine_grid, "F.affine_grid(a, [4, 16, 96, 96], align_corners=False)", BATCH(4, 2, 3)),
    APPLIED("pixel_shuffle", pixel_shuffle, "F.pixel_shuffle(a, 2)", IMAGES(8, 64, 32, 32)),
    APPLIED("pixel_unshuffle", pixel_unshuffle, "F.pixel_unshuffle(a, 2)", IMAGES(8, 16, 64, 64)),
    APPLIED("channel_shuffle", channel_shuffle, "F.channel_shuffle(a, 4)", PICTURES),
    BOTH("unfold", "unfold kernel_size=3 padding=1", "F.unfold(a, 3, padding=1)", 1, IMAGES(4, 32, 56, 56)),
    BOTH("fold", "fold output_size=56,56 kernel_size=3 padding=1", "F.fold(a, 56, 3, padding=1)", 1,
         BATCH(4, 288, 3136)),

    OF_PICTURES("pool/max2d", "max_pool2d kernel_size=2", "F.max_pool2d(a, 2)"),
    OF_PICTURES("pool/max2d_5s1", "max_pool2d kernel_size=5 stride=1 padding=2", "F.max_pool2d(a, 5, 1, 2)"),
    OF_PICTURES("pool/avg2d", "avg_pool2d kernel_size=2", "F.avg_pool2d(a, 2)"),
    OF_PICTURES("pool/avg2d_3s1", "avg_pool2d kernel_size=3 stride=1 padding=1", "F.avg_pool2d(a, 3, 1, 1)"),
    APPLIED("pool/lp2d", lp_pool2d, "F.lp_pool2d(a, 2, 2)", PICTURES),
    OF_PICTURES("pool/adaptive_avg2d", "adaptive_avg_pool2d output_size=7,7", "F.adaptive_avg_pool2d(a, 7)"),
    OF_PICTURES("pool/adaptive_max2d", "adaptive_max_pool2d output_size=7,7", "F.adaptive_max_pool2d(a, 7)"),
    BOTH("pool/mean_7x7", "adaptive_avg_pool2d output_size=1,1", "F.adaptive_avg_pool2d(a, 1)", 1,
         IMAGES(8, 512, 7, 7)),
    BOTH("pool/max1d", "max_pool1d kernel_size=2", "F.max_pool1d(a, 2)", 1, BATCH(16, 64, 1000)),
    BOTH("pool/avg1d", "avg_pool1d kernel_size=2", "F.avg_pool1d(a, 2)", 1, BATCH(16, 64, 1000)),
    BOTH("pool/max3d", "max_pool3d kernel_size=2", "F.max_pool3d(a, 2)", 1, VOLUMES(2, 16, 16, 32, 32)),
    BOTH("pool/avg3d", "avg_pool3d kernel_size=2", "F.avg_pool3d(a, 2)", 1, VOLUMES(2, 16, 16, 32, 32)),

    BOTH("norm/group", "group_norm num_groups=8", "F.group_norm(a, 8, b, c)", 7, PICTURES, LINE(32, U), LINE(32)),
    BOTH("norm/group_one", "group_norm num_groups=1", "F.group_norm(a, 1, b, c)", 7, PICTURES, LINE(32, U), LINE(32)),
    BOTH("norm/instance", "instance_norm", "F.instance_norm(a, None, None, b, c)", 7, PICTURES, LINE(32, U), LINE(32)),
    BOTH("norm/rms", "rms_norm shape=1024", "F.rms_norm(a, [1024], b)", 3, MATRIX(256, 1024), LINE(1024, U)),
    BOTH("norm/layer", "layer_norm shape=1024", "F.layer_norm(a, [1024], b, c)", 7, MATRIX(256, 1024), LINE(1024, U),
         LINE(1024)),
    OF_PICTURES("norm/local_response", "local_response_norm size=5", "F.local_response_norm(a, 5)"),
    BOTH("norm/normalize", "normalize", "F.normalize(a)", 1, MATRIX(1024, 256)),

    BOTH("join/cat_rows", "cat", "torch.cat([a, b])", 3, MATRIX(512, 512), MATRIX(512, 512)),
    BOTH("join/cat_columns", "cat dim=1", "torch.cat([a, b], 1)", 3, MATRIX(512, 512), MATRIX(512, 512)),
    BOTH("join/cat_channels", "cat dim=1", "torch.cat([a, b], 1)", 3, PICTURES, PICTURES),
    BOTH("join/stack", "stack", "torch.stack([a, b])", 3, MATRIX(512, 512), MATRIX(512, 512)),
    BOTH("join/stack_last", "stack dim=-1", "torch.stack([a, b], -1)", 3, MATRIX(512, 512), MATRIX(512, 512)),
    BOTH("flip", "flip dims=1", "torch.flip(a, [1])", 1, MATRIX(512, 512)),
    BOTH("roll", "roll shifts=5 dims=1", "torch.roll(a, 5, 1)", 1, MATRIX(512, 512)),
    BOTH("tril", "tril", "torch.tril(a)", 1, MATRIX(512, 512)),

    BOTH("linalg/bmm", "bmm", "torch.bmm(a, b)", 3, BATCH(64, 32, 32), BATCH(64, 32, 32)),
    BOTH("linalg/bmm_8", "bmm", "torch.bmm(a, b)", 3, BATCH(512, 8, 8), BATCH(512, 8, 8)),
    BOTH("linalg/mm_16", "mm", "a @ b", 3, MATRIX(16, 16), MATRIX(16, 16)),
    BOTH("linalg/mm_64", "mm", "a @ b", 3, MATRIX(64, 64), MATRIX(64, 64)),
    BOTH("linalg/mv", "mv", "a @ b", 3, MATRIX(1024, 1024), LINE(1024)),
    BOTH("linalg/dot", "dot", "a @ b", 3, LINE(65536), LINE(65536)),
    BOTH("linalg/outer", "outer", "torch.outer(a, b)", 3, LINE(512), LINE(512)),
    BOTH("linalg/linear", "linear", "F.linear(a, b, c)", 7, MATRIX(32, 256), MATRIX(256, 256), LINE(256)),
    FORWARD("linalg/slogdet", "linalg_slogdet", "torch.linalg.slogdet(a)[0]", BATCH(64, 16, 16)),
    BOTH("linalg/det", "linalg_det", "torch.linalg.det(a)", 1, BATCH(64, 8, 8)),
    BOTH("linalg/solve", "linalg_solve", "torch.linalg.solve(a, b)", 3, BATCH(64, 16, 16), BATCH(64, 16, 4)),
    BOTH("linalg/cdist", "cdist", "torch.cdist(a, b)", 3, MATRIX(256, 64), MATRIX(256, 64)),
    BOTH("reduce/var_rows", "var dims=1", "torch.var(a, 1)", 1, MATRIX(512, 512)),
    BOTH("reduce/std", "std", "torch.std(a)", 1, MATRIX(512, 512)),
    BOTH("reduce/norm", "norm", "torch.linalg.vector_norm(a)", 1, MATRIX(512, 512)),
    BOTH("reduce/logsumexp", "logsumexp dims=1", "torch.logsumexp(a, 1)", 1, MATRIX(512, 512)),
    BOTH("reduce/prod_rows", "prod dims=1", "torch.prod(a, 1)", 1, MATRIX(512, 512, .fill = BENCH_FROM_1)),
    BOTH("reduce/amax_rows", "amax dims=1", "torch.amax(a, 1)", 1, MATRIX(512, 512)),
    BOTH("reduce/sum_rows", "sum dims=1", "torch.sum(a, 1)", 1, MATRIX(512, 512)),
    BOTH("reduce/sum_tiny", "sum", "torch.sum(a)", 1, MATRIX(32, 32)),
};
/* clang-format on */
const bench_list bench_survey = {cases, sizeof cases / sizeof cases[0]};
