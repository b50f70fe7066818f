/* ops/conv/cpu/images.c - convolution forward and backward-data on CPU devices, one pixel of several images at a time
 * (cl/conv/cpu/images.cl): for small images with relatively much padding. */
#include "ops/conv/common/correlation.h"

enum { VECTORS = 2 }; /* along the channels, by as many images as registers allow */
static int64_t images_per_tile(const kn_limits *limits) { return kn_conv_many_registers(limits) ? 8 : 4; }

typedef struct images_workspace {
    kn_buffer *repacked, *packed;
} images_workspace;

static kn_status prepare(kn_stream *stream, const kn_conv_correlation *c, const images_workspace *w,
                         const char *options, int64_t block, bool repack)
{
    const kn_conv_shape *s = &c->problem->shape;
    const int64_t repack_images = repack ? c->grid.images : 0;
    int64_t items = repack_images + c->grid.groups * kn_div_up(c->grid.outer, block) * c->taps.inner;
    return kn_run(stream, .source = "conv/cpu/images.cl", .kernel = "conv_images_prepare", .operation = "conv2d",
                  .options = options, .dims = 1, .global = {(size_t)items}, .local = {1},
                  KN_ARGS(kn_conv_arg(s, c->x), kn_conv_arg(s, c->problem->weight), kn_arg_buffer(w->repacked, 0),
                          kn_arg_buffer(w->packed, 0), kn_arg_i64(repack_images),
                          kn_arg_i64(c->grid.groups * c->taps.inner), kn_arg_i64(c->padding.height * c->padding.width),
                          kn_arg_struct(&c->weights, sizeof c->weights), kn_arg_struct(&c->taps, sizeof c->taps)));
}

static kn_status correlate(kn_stream *stream, const kn_conv_correlation *c, const images_workspace *w,
                           const char *options, int64_t block)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const kn_conv_problem *problem = c->problem;
    const kn_conv_shape *s = &problem->shape;
    int64_t blocks = c->grid.groups * kn_div_up(c->grid.outer, block);
    kn_conv_tap_list taps = c->taps; /* relative to the unpadded image */
    taps.row_origin -= c->padding.top;
    taps.column_origin -= c->padding.left;
    return kn_run(
        stream, .source = "conv/cpu/images.cl", .kernel = "conv_images", .operation = "conv2d", .options = options,
        .dims = 3,
        .global = {(size_t)c->grid.rows, (size_t)kn_div_up(c->grid.images, images_per_tile(limits)), (size_t)blocks},
        .local = {1, 1, 1},
        KN_ARGS(kn_arg_buffer(w->repacked, 0), kn_arg_buffer(w->packed, 0), kn_conv_bias_arg(problem),
                kn_conv_arg(s, c->y), kn_arg_struct(&c->grid, sizeof c->grid), kn_arg_struct(&taps, sizeof taps),
                kn_arg_i64(c->padding.height), kn_arg_i64(c->padding.width), kn_arg_i64(c->grid.x_row / taps.pitch),
                kn_arg_i64(c->grid.x_column), kn_arg_i64(c->grid.groups * taps.inner), KN_CONV_EPILOGUE_ARGS(problem)));
}

kn_status kn_conv_run_images(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_side from = kn_conv_from(problem), to = kn_conv_to(problem);
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    char options[KN_CONV_OPTIONS];
    images_workspace w = {0};
    kn_conv_correlation c;
    int64_t element = kn_conv_element(s), block = VECTORS * kn_conv_vector_width(limits, s->f64);
    int64_t read = s->images * s->groups * from.channels * from.size[1] * from.size[2];
    int64_t weights =
        s->groups * kn_div_up(to.channels, block) * block * from.channels * s->kernel_size[1] * s->kernel_size[2];
    kn_conv_options(options, limits, s->f64, VECTORS, "NX", (int)images_per_tile(limits));
    kn_status status = kn_buffer_alloc(&w.repacked, stream, (size_t)(read * element));
    if (status == KN_OK)
        status = kn_buffer_alloc(&w.packed, stream, (size_t)(weights * element));
    bool repacked = false;
    for (int64_t i = 0; status == KN_OK && i < kn_conv_correlations(problem); i++) {
        if (!kn_conv_describe_correlation(&c, limits, problem, i))
            continue;
        status = prepare(stream, &c, &w, options, block, !repacked);
        repacked = true;
        if (status == KN_OK)
            status = correlate(stream, &c, &w, options, block);
    }
    kn_buffer_free(w.repacked);
    kn_buffer_free(w.packed);
    return status;
}

/* The ratio of multiplications on the padded image to those done here; partial tiles count in full. */
static double gain(const kn_limits *limits, const kn_conv_problem *problem)
{
    const int64_t images = problem->shape.images, tile = images_per_tile(limits);
    return kn_conv_padding_factor(problem) * (double)images / (double)(kn_div_up(images, tile) * tile);
}

/* The kernel counts channels in int. */
bool kn_conv_supports_images(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    (void)limits;
    return kn_conv_is_flat(s) && s->in_channels < 32768 && s->out_channels < 32768;
}

bool kn_conv_prefers_images(const kn_limits *limits, const void *problem)
{
    const bool f64 = ((const kn_conv_problem *)problem)->shape.f64;
    return limits->is_cpu && kn_conv_from(problem).channels >= 16 &&
           2 * kn_conv_to(problem).channels > kn_conv_vector_width(limits, f64) &&
           kn_conv_correlations(problem) <= 16 && gain(limits, problem) > 1.1;
}
