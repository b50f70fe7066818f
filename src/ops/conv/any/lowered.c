/* ops/conv/any/lowered.c - convolution as matrix products (ops/gemm/gemm.h), on any device.
 *
 * With X the im2col matrix [taps, pixels] of one image and group (x itself for a 1 x 1 kernel with stride 1 and no
 * padding):
 *
 *     y = W X,    dX = W^T dy and dx = col2im(dX),    dW = sum over images of dy X^T
 *
 * Images are processed in chunks to bound the workspace; within a chunk the batch of one product is either the images
 * or the groups, whichever are more. */
#include "ops/conv/common/conv.h"

#include "ops/gemm/gemm.h"
#include "ops/vision/fold.h"

#define CHUNK_BYTES ((int64_t)256 << 20)

typedef struct lowered {
    const kn_conv_problem *problem;
    int64_t element, pixels, taps, outer; /* taps and output channels of one group */
    int64_t chunk;                        /* images per chunk */
    bool in_place;                        /* x itself is the matrix X */
    kn_buffer *columns;                   /* [chunk][groups][taps][pixels] */
    kn_buffer *products;                  /* backward-weights: [chunk][groups][outer][taps] */
} lowered;

static kn_status begin(lowered *l, kn_stream *stream, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const bool weights = problem->pass == KN_CONV_WEIGHTS;
    int64_t limit = (int64_t)(kn_device_limits(kn_stream_device(stream))->max_allocation / 4);
    *l = (lowered){.problem = problem,
                   .element = s->f64 ? 8 : 4,
                   .pixels = kn_conv_volume(s->out_size),
                   .taps = kn_conv_taps(s),
                   .outer = s->out_channels / s->groups};
    l->in_place = kn_conv_reads_each_pixel_once(s);
    int64_t columns = l->in_place ? 0 : s->groups * l->taps * l->pixels,
            products = weights ? s->out_channels * l->taps : 0;
    int64_t bytes = kn_max_i64(1, (columns + products) * l->element);
    l->chunk = kn_max_i64(1, kn_min_i64(s->images, kn_min_i64(CHUNK_BYTES, limit) / bytes));
    if (!l->in_place)
        KN_TRY(kn_buffer_alloc(&l->columns, stream, (size_t)(l->chunk * columns * l->element)));
    if (weights)
        KN_TRY(kn_buffer_alloc(&l->products, stream, (size_t)(l->chunk * products * l->element)));
    return KN_OK;
}

/* The matrices of one image must fit a buffer. */
bool kn_conv_supports_lowered(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    for (int d = 0; d < 3; d++)
        if (s->in_size[d] > KN_FOLD_LARGEST || s->padding[d] > KN_FOLD_LARGEST || s->stride[d] > KN_FOLD_LARGEST ||
            s->dilation[d] * s->kernel_size[d] > KN_FOLD_LARGEST)
            return false;
    double taps = (double)kn_conv_taps(s), pixels = (double)kn_conv_volume(s->out_size);
    double largest = taps * ((double)s->groups * pixels > (double)s->out_channels ? (double)s->groups * pixels
                                                                                  : (double)s->out_channels);
    return largest * (s->f64 ? 8 : 4) <= (double)limits->max_allocation;
}

bool kn_conv_windows_are_apart(const kn_conv_shape *s)
{
    for (int d = 0; d < 3; d++)
        if (s->stride[d] < (s->kernel_size[d] - 1) * s->dilation[d] + 1)
            return false;
    return true;
}

/* For depthwise convolutions the products would be matrix-vector products. */
bool kn_conv_prefers_lowered(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    (void)limits;
    return s->groups == 1 || (s->in_channels != s->groups && s->out_channels != s->groups);
}

/* Backward-data of windows that do not overlap, as of a transposed convolution that enlarges images: each element of dx
 * comes from one product. Where they do, sums of several channels' taps are better made in registers. */
bool kn_conv_supports_patches(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    return kn_conv_windows_are_apart(s) && problem->pass == KN_CONV_DATA && kn_conv_volume(s->kernel_size) > 1 &&
           kn_conv_supports_lowered(limits, problem);
}

/* With vectors of 16 in halves others take 0.5 to 0.95 of the time for windows of 2 x 2 and 1 x 2 pixels from up to 64
 * channels, and as much for 1 x 4 (EPYC of family 25, model 17). */
bool kn_conv_prefers_patches(const kn_limits *limits, const void *problem)
{
    enum { LEAST_CHANNELS = 16, FEW_PIXELS = 4, FEW_CHANNELS = 64 };
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    const bool few =
        kn_conv_is_flat(s) && kn_conv_volume(s->kernel_size) <= FEW_PIXELS && s->out_channels <= FEW_CHANNELS;
    return limits->is_cpu && s->groups == 1 && s->out_channels >= LEAST_CHANNELS &&
           !(few && kn_limits_halves_vectors(limits));
}

kn_status kn_conv_run_patches(kn_stream *stream, const void *problem) { return kn_conv_run_lowered(stream, problem); }

/* The matrix X of a chunk that starts at image `first`. */
static kn_gemm_operand columns_operand(const lowered *l, int64_t first, bool transposed)
{
    const kn_conv_operand *x = &l->problem->x;
    int64_t offset = l->in_place ? x->offset + first * l->problem->shape.groups * l->taps * l->pixels : 0;
    return (kn_gemm_operand){l->in_place ? x->buffer : l->columns, offset, l->pixels, 0, transposed};
}

kn_fold_geometry kn_conv_patches_of(const kn_conv_shape *s, int64_t images)
{
    kn_fold_geometry g = {.planes = images * s->in_channels};
    for (int d = 0; d < 3; d++) {
        g.size[d] = (int32_t)s->in_size[d];
        g.windows[d] = (int32_t)s->out_size[d];
        g.kernel_size[d] = (int32_t)s->kernel_size[d];
        g.dilation[d] = (int32_t)s->dilation[d];
        g.padding[d] = (int32_t)s->padding[d];
        g.stride[d] = (int32_t)s->stride[d];
    }
    return g;
}

/* im2col, or col2im, of a chunk that starts at image `first`. */
static kn_status launch_columns(const lowered *l, kn_stream *stream, int64_t first, int64_t images)
{
    const kn_conv_problem *problem = l->problem;
    const kn_conv_shape *s = &problem->shape;
    const kn_fold_geometry g = kn_conv_patches_of(s, images);
    const bool folds = problem->pass == KN_CONV_DATA;
    const int64_t image = s->in_channels * kn_conv_volume(s->in_size);
    const kn_arg columns = kn_arg_buffer(l->columns, 0);
    const kn_arg x = kn_conv_arg(s, (kn_conv_operand){problem->x.buffer, problem->x.offset + first * image});
    return kn_fold_run(stream, folds ? "fold" : "unfold", kn_conv_operation(problem), &g, l->element,
                       folds ? columns : x, folds ? x : columns);
}

/* One product per image of the chunk and group. Each operand has its own stride per image and per group. */
typedef struct distances {
    int64_t image, group;
} distances;

static kn_status multiply(const lowered *l, kn_stream *stream, kn_gemm_params p, int64_t images, distances a,
                          distances b, distances c)
{
    int64_t groups = l->problem->shape.groups, outer = kn_min_i64(images, groups);
    bool batch_is_images = images >= groups;
    const int64_t a0 = p.a.offset, b0 = p.b.offset, c0 = p.c.offset;
    p.f64 = l->element == 8;
    p.alpha = 1;
    p.batch = batch_is_images ? images : groups;
    p.a.batch_stride = batch_is_images ? a.image : a.group;
    p.b.batch_stride = batch_is_images ? b.image : b.group;
    p.c.batch_stride = batch_is_images ? c.image : c.group;
    for (int64_t i = 0; i < outer; i++) {
        p.a.offset = a0 + i * (batch_is_images ? a.group : a.image);
        p.b.offset = b0 + i * (batch_is_images ? b.group : b.image);
        p.c.offset = c0 + i * (batch_is_images ? c.group : c.image);
        KN_TRY(kn_gemm(stream, &(kn_gemm_problem){.product = p}));
    }
    return KN_OK;
}

static distances weight_distances(const lowered *l) { return (distances){0, l->outer * l->taps}; }
static distances y_distances(const lowered *l)
{
    return (distances){l->problem->shape.groups * l->outer * l->pixels, l->outer * l->pixels};
}
static distances column_distances(const lowered *l)
{
    return (distances){l->problem->shape.groups * l->taps * l->pixels, l->taps * l->pixels};
}

/* --- the passes --------------------------------------------------------------------------------------------------- */

static kn_status forward_chunk(const lowered *l, kn_stream *stream, int64_t first, int64_t images)
{
    const kn_conv_problem *problem = l->problem;
    if (!l->in_place)
        KN_TRY(launch_columns(l, stream, first, images));
    kn_gemm_params p = {
        .m = l->outer,
        .n = l->pixels,
        .k = l->taps,
        .a = {problem->weight.buffer, problem->weight.offset, l->taps, 0, false},
        .b = columns_operand(l, first, false),
        .c = {problem->y.buffer, problem->y.offset + first * y_distances(l).image, l->pixels, 0, false}};
    return multiply(l, stream, p, images, weight_distances(l), column_distances(l), y_distances(l));
}

kn_status kn_conv_finish(kn_stream *stream, const kn_conv_problem *problem, kn_conv_operand y, int64_t channels,
                         int64_t pixels)
{
    const kn_conv_shape *s = &problem->shape;
    const bool has_bias = problem->bias.buffer != NULL;
    if (!has_bias && problem->activation == KN_ACTIVATION_NONE)
        return KN_OK;
    return kn_run(stream, .source = "conv/any/lowered.cl", .kernel = "conv_finish", .operation = "conv2d",
                  .options = kn_options_f64_or_f32(s->f64), .dims = 1,
                  .global = {kn_conv_work_items(stream, s->images * channels * pixels)},
                  KN_ARGS(kn_conv_arg(s, has_bias ? problem->bias : y), kn_conv_arg(s, y), kn_arg_i64(s->images),
                          kn_arg_i64(channels), kn_arg_i64(pixels), KN_CONV_EPILOGUE_ARGS(problem)));
}

static kn_status backward_data_chunk(const lowered *l, kn_stream *stream, int64_t first, int64_t images)
{
    const kn_conv_problem *problem = l->problem;
    kn_gemm_params p = {.m = l->taps,
                        .n = l->pixels,
                        .k = l->outer,
                        .a = {problem->weight.buffer, problem->weight.offset, l->taps, 0, true},
                        .b = {problem->y.buffer, problem->y.offset + first * y_distances(l).image, l->pixels, 0, false},
                        .c = columns_operand(l, first, false)};
    KN_TRY(multiply(l, stream, p, images, weight_distances(l), y_distances(l), column_distances(l)));
    return l->in_place ? KN_OK : launch_columns(l, stream, first, images);
}

static kn_status backward_weights_chunk(const lowered *l, kn_stream *stream, int64_t first, int64_t images)
{
    const kn_conv_problem *problem = l->problem;
    int64_t weights = problem->shape.out_channels * l->taps;
    if (!l->in_place)
        KN_TRY(launch_columns(l, stream, first, images));
    kn_gemm_params p = {.m = l->outer,
                        .n = l->taps,
                        .k = l->pixels,
                        .a = {problem->y.buffer, problem->y.offset + first * y_distances(l).image, l->pixels, 0, false},
                        .b = columns_operand(l, first, true),
                        .c = {l->products, 0, l->taps, 0, false}};
    KN_TRY(
        multiply(l, stream, p, images, y_distances(l), column_distances(l), (distances){weights, l->outer * l->taps}));
    return kn_run(stream, .source = "conv/any/lowered.cl", .kernel = "conv_sum_products",
                  .operation = "conv2d_backward_weights", .options = kn_options_f64_or_f32(l->problem->shape.f64),
                  .dims = 1, .global = {kn_conv_work_items(stream, weights)},
                  KN_ARGS(kn_arg_buffer(l->products, 0), kn_conv_arg(&problem->shape, problem->weight),
                          kn_arg_i64(weights), kn_arg_i64(images), kn_arg_i32(first > 0)));
}

static kn_status finish(const lowered *l, kn_stream *stream)
{
    const kn_conv_problem *problem = l->problem;
    if (problem->pass == KN_CONV_FORWARD)
        return kn_conv_finish(stream, problem, problem->y, problem->shape.out_channels, l->pixels);
    return problem->bias.buffer ? kn_conv_bias_gradient(stream, problem) : KN_OK;
}

kn_status kn_conv_run_lowered(kn_stream *stream, const void *problem_)
{
    static kn_status (*const chunks[])(const lowered *, kn_stream *, int64_t first,
                                       int64_t images) = {forward_chunk, backward_data_chunk, backward_weights_chunk};
    const kn_conv_problem *problem = problem_;
    lowered l;
    kn_status status = begin(&l, stream, problem);
    for (int64_t i = 0; status == KN_OK && i < problem->shape.images; i += l.chunk)
        status = chunks[problem->pass](&l, stream, i, kn_min_i64(l.chunk, problem->shape.images - i));
    if (status == KN_OK)
        status = finish(&l, stream);
    kn_buffer_free(l.columns);
    kn_buffer_free(l.products);
    return status;
}
