/* ops/conv2d_pointwise.c - 1 x 1 convolutions forward and backward-data on CPU devices as matrix products over the
 * pixels of all images (cl/conv/pointwise.cl). */
#include "ops/conv2d.h"

enum { VECTORS = 2 };             /* along the channels, by as many pixels as leave registers for their values */
enum { CHUNK_BYTES = 128 << 10 }; /* of weights, in a level-2 cache */
enum { BLOCK_BYTES = 128 << 10 }; /* of results, there too */

/* Mirrors of the structs in cl/conv/pointwise.cl. */
typedef struct pointwise_grid {
    int64_t images, rows, columns, height, width, row_step, column_step, top, left;
} pointwise_grid;
typedef struct pointwise_shape {
    int64_t inner, outer, inner_stride, outer_stride, tiles, chunk, a_step, spread, scratch;
} pointwise_shape;

typedef struct pointwise {
    const kn_conv2d_problem *problem;
    bool backward;
    pointwise_grid grid;
    pointwise_shape shape;
    bool in_place;                              /* tiles of pixels are read where they lie */
    int64_t element, tile, block, tiles, items; /* tile: pixels, block: channels of one; tiles: of all pixels */
    char options[KN_CONV2D_OPTIONS];
    kn_buffer *panels, *scratch;
} pointwise;

static pointwise_grid strided_grid(const kn_conv2d_shape *s)
{
    return (pointwise_grid){.images = s->images,
                            .rows = s->out_size[0],
                            .columns = s->out_size[1],
                            .height = s->in_size[0],
                            .width = s->in_size[1],
                            .row_step = s->stride[0],
                            .column_step = s->stride[1],
                            .top = s->padding[0],
                            .left = s->padding[1]};
}

static pointwise_grid whole_grid(const kn_conv2d_shape *s)
{
    int64_t pixels = s->out_size[0] * s->out_size[1];
    return (pointwise_grid){.images = s->images,
                            .rows = 1,
                            .columns = pixels,
                            .height = 1,
                            .width = pixels,
                            .row_step = 1,
                            .column_step = 1};
}

static bool reads_all(const kn_conv2d_shape *s)
{
    for (int d = 0; d < 2; d++)
        if (s->stride[d] != 1 || s->padding[d] != 0 || s->in_size[d] != s->out_size[d])
            return false;
    return true;
}

/* Blocks of tiles as large as the cache allows, but so many that the cores have about equally many pairs. */
static void choose_blocks(pointwise *p, const kn_limits *limits)
{
    pointwise_shape *s = &p->shape;
    int64_t most = kn_max_i64(1, BLOCK_BYTES / (p->element * p->block * p->tile));
    int64_t cores = limits->compute_units, channel_blocks = kn_div_up(s->outer, p->block), blocks, pairs;
    for (blocks = kn_div_up(p->tiles, most);; blocks++) {
        s->tiles = kn_max_i64(1, kn_div_up(p->tiles, kn_max_i64(1, blocks)));
        pairs = kn_div_up(p->tiles, s->tiles) * channel_blocks;
        if (s->tiles <= 4 || 20 * kn_div_up(pairs, cores) * cores <= 21 * pairs)
            break;
    }
    p->items = kn_min_i64(pairs, cores);
}

static void describe(pointwise *p, const kn_limits *limits, const kn_conv2d_problem *problem, bool backward)
{
    const kn_conv2d_shape *s = &problem->shape;
    bool all = reads_all(s);
    int64_t width = kn_conv2d_vector_width(limits, s->f64);
    *p = (pointwise){.problem = problem, .backward = backward, .element = s->f64 ? 8 : 4, .block = VECTORS * width};
    p->tile = kn_conv2d_many_registers(limits) ? 14 : 6;
    p->grid = all ? whole_grid(s) : strided_grid(s);
    p->tiles = kn_div_up(s->images * s->out_size[0] * s->out_size[1], p->tile);
    p->shape = (pointwise_shape){.inner = backward ? s->out_channels : s->in_channels,
                                 .outer = backward ? s->in_channels : s->out_channels,
                                 .inner_stride = backward ? s->in_channels : 1,
                                 .outer_stride = backward ? 1 : s->in_channels,
                                 .spread = backward && !all};
    p->in_place = s->out_size[0] * s->out_size[1] % p->tile == 0;
    p->shape.a_step = p->in_place ? s->out_size[0] * s->out_size[1] : p->tile;
    int64_t chunks = kn_div_up(p->shape.inner * p->block * p->element, CHUNK_BYTES);
    p->shape.chunk = kn_max_i64(16, kn_div_up(kn_div_up(p->shape.inner, kn_max_i64(1, chunks)), 16) * 16);
    choose_blocks(p, limits);
    p->shape.scratch = p->block * (p->shape.chunk + p->shape.tiles * p->tile * (p->shape.spread ? 2 : 1));
    kn_conv2d_options(p->options, limits, s->f64, VECTORS, "MT", (int)p->tile);
}

static kn_status pack(pointwise *p, kn_stream *stream)
{
    enum { TILES = 8, CHANNELS = 32 }; /* of a work-item; TILES: PACKED in cl/conv/pointwise.cl */
    const kn_conv2d_problem *problem = p->problem;
    const kn_conv2d_shape *s = &problem->shape;
    int64_t inner = p->shape.inner;
    return kn_run(stream, .source = "conv/pointwise.cl", .kernel = "pointwise_pack", .operation = "conv2d",
                  .options = p->options, .dims = 2,
                  .global = {(size_t)kn_div_up(p->tiles, TILES), (size_t)kn_div_up(inner, CHANNELS)}, .local = {1, 1},
                  KN_ARGS(kn_conv2d_arg(s, p->backward ? problem->y : problem->x), kn_arg_buffer(p->panels, 0),
                          kn_arg_i64(s->images), kn_arg_i64(s->out_size[0] * s->out_size[1]), kn_arg_i64(inner),
                          kn_arg_i64(CHANNELS)));
}

static kn_status multiply(pointwise *p, kn_stream *stream)
{
    const kn_conv2d_problem *problem = p->problem;
    const kn_conv2d_shape *s = &problem->shape;
    bool has_bias = !p->backward && problem->bias.buffer;
    kn_activation activation = p->backward ? KN_ACTIVATION_NONE : problem->activation;
    return kn_run(
        stream, .source = "conv/pointwise.cl", .kernel = "pointwise_multiply", .operation = "conv2d",
        .options = p->options, .dims = 1, .global = {(size_t)p->items}, .local = {1},
        KN_ARGS(p->in_place ? kn_conv2d_arg(s, p->backward ? problem->y : problem->x) : kn_arg_buffer(p->panels, 0),
                kn_conv2d_arg(s, problem->weight), kn_conv2d_arg(s, has_bias ? problem->bias : problem->weight),
                kn_conv2d_arg(s, p->backward ? problem->x : problem->y), kn_arg_buffer(p->scratch, 0),
                kn_arg_struct(&p->grid, sizeof p->grid), kn_arg_struct(&p->shape, sizeof p->shape),
                kn_arg_i32(has_bias), KN_CONV2D_CUT_ARGS(s->f64, activation)));
}

static kn_status run(kn_stream *stream, const kn_conv2d_problem *problem, bool backward)
{
    pointwise p;
    describe(&p, kn_device_limits(kn_stream_device(stream)), problem, backward);
    kn_status status = KN_OK;
    if (!p.in_place)
        status = kn_buffer_alloc(&p.panels, stream, (size_t)(p.tiles * p.tile * p.shape.inner * p.element));
    if (status == KN_OK)
        status = kn_buffer_alloc(&p.scratch, stream, (size_t)(p.items * p.shape.scratch * p.element));
    if (status == KN_OK && p.shape.inner > 0 && !p.in_place)
        status = pack(&p, stream);
    if (status == KN_OK)
        status = multiply(&p, stream);
    kn_buffer_free(p.panels);
    kn_buffer_free(p.scratch);
    return status;
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

bool kn_conv2d_supports_pointwise_data(const kn_limits *limits, const void *problem)
{
    const kn_conv2d_shape *s = &((const kn_conv2d_problem *)problem)->shape;
    (void)limits;
    return s->kernel_size[0] == 1 && s->kernel_size[1] == 1 && s->groups == 1 &&
           (double)s->out_size[0] * (double)s->out_size[1] < (double)(1 << 26);
}
bool kn_conv2d_supports_pointwise(const kn_limits *limits, const void *problem)
{
    return kn_conv2d_supports_pointwise_data(limits, problem) &&
           reads_all(&((const kn_conv2d_problem *)problem)->shape);
}

/* Channels enough for what is transposed, and blocks that they fill; over large images of few channels bands are as
 * fast or faster. */
static bool prefers(const kn_limits *limits, const kn_conv2d_problem *problem, bool backward)
{
    const kn_conv2d_shape *s = &problem->shape;
    int64_t inner = backward ? s->out_channels : s->in_channels, outer = backward ? s->in_channels : s->out_channels;
    int64_t block = VECTORS * kn_conv2d_vector_width(limits, s->f64), pixels = s->out_size[0] * s->out_size[1];
    return limits->is_cpu && inner >= 48 && 5 * kn_div_up(outer, block) * block <= 6 * outer &&
           (outer > 2 * block || pixels < 512 || !reads_all(s));
}

bool kn_conv2d_prefers_pointwise(const kn_limits *limits, const void *problem)
{
    return prefers(limits, problem, false);
}
bool kn_conv2d_prefers_pointwise_data(const kn_limits *limits, const void *problem)
{
    return prefers(limits, problem, true);
}
kn_status kn_conv2d_pointwise_forward(kn_stream *stream, const void *problem) { return run(stream, problem, false); }
kn_status kn_conv2d_pointwise_backward_data(kn_stream *stream, const void *problem)
{
    return run(stream, problem, true);
}
