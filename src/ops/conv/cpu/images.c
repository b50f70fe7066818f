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
    int64_t element = c->f64 ? 8 : 4, repack_images = repack ? c->grid.images : 0;
    int64_t items = repack_images + c->grid.groups * kn_div_up(c->grid.outer, block) * c->taps.inner;
    return kn_run(stream, .source = "conv/cpu/images.cl", .kernel = "conv_images_prepare", .operation = "conv2d",
                  .options = options, .dims = 1, .global = {(size_t)items}, .local = {1},
                  KN_ARGS(kn_arg_buffer(c->x.buffer, c->x.offset * element),
                          kn_arg_buffer(c->weight.buffer, c->weight.offset * element), kn_arg_buffer(w->repacked, 0),
                          kn_arg_buffer(w->packed, 0), kn_arg_i64(repack_images),
                          kn_arg_i64(c->grid.groups * c->taps.inner), kn_arg_i64(c->padding.height * c->padding.width),
                          kn_arg_struct(&c->weights, sizeof c->weights), kn_arg_struct(&c->taps, sizeof c->taps)));
}

static kn_status correlate(kn_stream *stream, const kn_conv_correlation *c, const images_workspace *w,
                           const char *options, int64_t block)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    int64_t element = c->f64 ? 8 : 4, blocks = c->grid.groups * kn_div_up(c->grid.outer, block);
    kn_conv_tap_list taps = c->taps; /* relative to the unpadded image */
    taps.row_origin -= c->padding.top;
    taps.column_origin -= c->padding.left;
    kn_conv_operand bias = c->bias.buffer ? c->bias : c->weight;
    return kn_run(
        stream, .source = "conv/cpu/images.cl", .kernel = "conv_images", .operation = "conv2d", .options = options,
        .dims = 3,
        .global = {(size_t)c->grid.rows, (size_t)kn_div_up(c->grid.images, images_per_tile(limits)), (size_t)blocks},
        .local = {1, 1, 1},
        KN_ARGS(kn_arg_buffer(w->repacked, 0), kn_arg_buffer(w->packed, 0),
                kn_arg_buffer(bias.buffer, bias.offset * element), kn_arg_buffer(c->y.buffer, c->y.offset * element),
                kn_arg_struct(&c->grid, sizeof c->grid), kn_arg_struct(&taps, sizeof taps),
                kn_arg_i64(c->padding.height), kn_arg_i64(c->padding.width), kn_arg_i64(c->grid.x_row / taps.pitch),
                kn_arg_i64(c->grid.x_column), kn_arg_i64(c->grid.groups * taps.inner),
                kn_arg_i32(c->bias.buffer != NULL), KN_CONV_BOUND_ARGS(c->f64, c->activation)));
}

static kn_status run(kn_stream *stream, const kn_conv_problem *problem, bool backward)
{
    const kn_conv_shape *s = &problem->shape;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    char options[KN_CONV_OPTIONS];
    images_workspace w = {0};
    kn_conv_correlation c;
    int64_t element = s->f64 ? 8 : 4, block = VECTORS * kn_conv_vector_width(limits, s->f64);
    int64_t read = backward ? s->images * s->out_channels * s->out_size[1] * s->out_size[2]
                            : s->images * s->in_channels * s->in_size[1] * s->in_size[2];
    int64_t outer = (backward ? s->in_channels : s->out_channels) / s->groups,
            inner = (backward ? s->out_channels : s->in_channels) / s->groups;
    int64_t weights = s->groups * kn_div_up(outer, block) * block * inner * s->kernel_size[1] * s->kernel_size[2];
    kn_conv_options(options, limits, s->f64, VECTORS, "NX", (int)images_per_tile(limits));
    kn_status status = kn_buffer_alloc(&w.repacked, stream, (size_t)(read * element));
    if (status == KN_OK)
        status = kn_buffer_alloc(&w.packed, stream, (size_t)(weights * element));
    bool repacked = false;
    for (int64_t i = 0; status == KN_OK && i < (backward ? kn_conv_residues(s) : 1); i++) {
        if (!backward)
            kn_conv_describe_forward(&c, limits, problem);
        else if (!kn_conv_describe_residue(&c, limits, problem, i))
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
static double gain(const kn_limits *limits, const kn_conv_shape *s, bool backward)
{
    double gain = 1;
    for (int d = 1; d < 3; d++) {
        int64_t inside, all;
        kn_conv_count_pairs(s, d, backward, &inside, &all);
        gain *= (double)all / (double)kn_max_i64(inside, 1);
    }
    int64_t tile = images_per_tile(limits);
    return gain * (double)s->images / (double)(kn_div_up(s->images, tile) * tile);
}

/* The kernel counts channels in int. */
bool kn_conv_supports_images(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    (void)limits;
    return kn_conv_is_flat(s) && s->in_channels < 32768 && s->out_channels < 32768;
}

static bool prefers(const kn_limits *limits, const kn_conv_shape *s, bool backward)
{
    int64_t inner = (backward ? s->out_channels : s->in_channels) / s->groups,
            outer = (backward ? s->in_channels : s->out_channels) / s->groups;
    return limits->is_cpu && inner >= 16 && 2 * outer > kn_conv_vector_width(limits, s->f64) &&
           (!backward || kn_conv_residues(s) <= 16) && gain(limits, s, backward) > 1.1;
}

bool kn_conv_prefers_images(const kn_limits *limits, const void *problem)
{
    return prefers(limits, &((const kn_conv_problem *)problem)->shape, false);
}
bool kn_conv_prefers_images_data(const kn_limits *limits, const void *problem)
{
    return prefers(limits, &((const kn_conv_problem *)problem)->shape, true);
}
kn_status kn_conv_images_forward(kn_stream *stream, const void *problem) { return run(stream, problem, false); }
kn_status kn_conv_images_backward_data(kn_stream *stream, const void *problem) { return run(stream, problem, true); }
