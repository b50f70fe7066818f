/* ops/conv/cpu/weights_taps.c - the gradient of a convolution's weights on CPU devices, one tap at a time over the
 * pixels that it reads inside the image (cl/conv/cpu/weights_taps.cl): for images with relatively much padding. */
#include "conv/cpu/weights_taps.h"
#include "ops/conv/cpu/line.h"

enum { VECTORS = 2 };               /* along the channels of x, by as many of dy's as registers allow */
enum { TILE = 6, LARGE_TILE = 12 }; /* ROWS of weights_taps.cl */
enum { SUM_BYTES = 128 << 10 };     /* of a run of tiles: with a block of an image in the L2 cache */
enum { MOST_PIXELS = 16384 };       /* of a share, for the accuracy of its sums */
enum { RUNS_WANTED = 32 };          /* constant: the order of the sums must not depend on the number of cores */

typedef struct taps_pass {
    const kn_conv_problem *problem;
    kn_conv_taps_shape shape;
    int64_t element, rows, block, runs, items;
    char options[KN_CONV_OPTIONS];
    kn_buffer *x, *dy, *sums, *scratch;
} taps_pass;

static int64_t taps_of(const kn_conv_taps_shape *t) { return t->rows.taps * t->columns.taps; }

/* Shares for parallelism where channels are few, and for accuracy where pixels are many. */
static void choose_shares(kn_conv_taps_shape *t, int64_t runs)
{
    const int64_t pixels = t->images * t->rows.to * t->columns.to;
    const int64_t wanted = kn_max_i64(kn_div_up(pixels, MOST_PIXELS), kn_div_up(RUNS_WANTED, kn_max_i64(1, runs)));
    t->images_per_share = kn_max_i64(1, t->images / kn_max_i64(1, kn_min_i64(wanted, t->images)));
    t->shares = kn_max_i64(1, kn_div_up(t->images, t->images_per_share));
}

static taps_pass pass_of(const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t inner = s->in_channels / s->groups, outer = s->out_channels / s->groups;
    taps_pass p = {.problem = problem,
                   .element = kn_conv_element(s),
                   .rows = kn_conv_many_registers(limits) ? LARGE_TILE : TILE,
                   .block = VECTORS * kn_conv_vector_width(limits, s->f64),
                   .shape = {.groups = s->groups,
                             .inner = inner,
                             .outer = outer,
                             .images = s->images,
                             .rows = kn_conv_line_of(problem, 1),
                             .columns = kn_conv_line_of(problem, 2)}};
    kn_conv_taps_shape *t = &p.shape;
    const int64_t tiles = kn_div_up(outer, p.rows), blocks = kn_div_up(inner, p.block);
    const int64_t fitting = SUM_BYTES / kn_max_i64(1, taps_of(t) * p.rows * p.block * p.element);
    t->tiles = kn_max_i64(1, kn_min_i64(fitting, tiles));
    p.runs = s->groups * blocks * kn_div_up(tiles, t->tiles);
    choose_shares(t, p.runs);
    p.items = kn_min_i64(t->shares * p.runs, limits->compute_units);
    kn_conv_options(p.options, limits, s->f64, VECTORS, "ROWS", (int)p.rows);
    return p;
}

/* Elements of the packed images of one side. */
static int64_t packed(const taps_pass *p, bool y)
{
    const kn_conv_side side = kn_conv_side_of(p->problem, y);
    const int64_t width = y ? p->rows : p->block;
    return p->shape.images * p->shape.groups * kn_div_up(side.channels, width) * width * kn_conv_volume(side.size);
}

static int64_t weights(const taps_pass *p)
{
    return p->shape.groups * p->shape.outer * p->shape.inner * taps_of(&p->shape);
}
static int64_t scratch(const taps_pass *p)
{
    return p->items * p->shape.tiles * taps_of(&p->shape) * p->rows * p->block;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static kn_status alloc_buffers(taps_pass *p, kn_stream *stream)
{
    KN_TRY(kn_buffer_alloc(&p->x, stream, (size_t)(packed(p, false) * p->element)));
    KN_TRY(kn_buffer_alloc(&p->dy, stream, (size_t)(packed(p, true) * p->element)));
    if (p->shape.shares > 1)
        KN_TRY(kn_buffer_alloc(&p->sums, stream, (size_t)(p->shape.shares * weights(p) * p->element)));
    return kn_buffer_alloc(&p->scratch, stream, (size_t)(scratch(p) * p->element));
}

static kn_status pack(const taps_pass *p, kn_stream *stream, bool y)
{
    const kn_conv_side side = kn_conv_side_of(p->problem, y);
    const int64_t width = y ? p->rows : p->block, pixels = kn_conv_volume(side.size);
    const int64_t panels = p->shape.images * p->shape.groups * kn_div_up(side.channels, width);
    if (panels * pixels == 0)
        return KN_OK;
    return kn_run(stream, .source = "conv/cpu/weights_taps.cl", .kernel = "conv_taps_pack",
                  .operation = "conv2d_backward_weights", .options = p->options, .dims = 1, .global = {(size_t)panels},
                  .local = {1},
                  KN_ARGS(kn_conv_arg(&p->problem->shape, side.operand), kn_arg_buffer(y ? p->dy : p->x, 0),
                          kn_arg_i64(side.channels), kn_arg_i64(pixels), kn_arg_i32((int32_t)width)));
}

static kn_status sum(const taps_pass *p, kn_stream *stream)
{
    const kn_conv_shape *s = &p->problem->shape;
    if (p->items == 0)
        return KN_OK;
    return kn_run(stream, .source = "conv/cpu/weights_taps.cl", .kernel = "conv_weights_taps",
                  .operation = "conv2d_backward_weights", .options = p->options, .dims = 1,
                  .global = {(size_t)p->items}, .local = {1},
                  KN_ARGS(kn_arg_buffer(p->x, 0), kn_arg_buffer(p->dy, 0),
                          kn_conv_arg_or(p->sums, s, p->problem->weight), kn_arg_buffer(p->scratch, 0),
                          kn_arg_struct(&p->shape, sizeof p->shape)));
}

static kn_status run(taps_pass *p, kn_stream *stream)
{
    KN_TRY(alloc_buffers(p, stream));
    KN_TRY(pack(p, stream, false));
    KN_TRY(pack(p, stream, true));
    KN_TRY(sum(p, stream));
    if (p->problem->bias.buffer)
        KN_TRY(kn_conv_bias_gradient(stream, p->problem));
    return p->sums ? kn_conv_total_gradient(stream, p->problem, p->sums, p->shape.shares, NULL, 0, 0) : KN_OK;
}

kn_status kn_conv_run_taps_weights(kn_stream *stream, const void *problem)
{
    taps_pass p = pass_of(kn_device_limits(kn_stream_device(stream)), problem);
    const kn_status status = run(&p, stream);
    kn_buffer_free(p.x);
    kn_buffer_free(p.dy);
    kn_buffer_free(p.sums);
    kn_buffer_free(p.scratch);
    return status;
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

bool kn_conv_supports_taps_weights(const kn_limits *limits, const void *problem)
{
    const taps_pass p = pass_of(limits, problem);
    const double most = (double)limits->max_allocation / (double)p.element;
    return kn_conv_is_flat(&p.problem->shape) && (double)packed(&p, false) <= most &&
           (double)packed(&p, true) <= most && (double)scratch(&p) <= most &&
           (double)p.shape.shares * (double)weights(&p) <= most;
}

/* Against conv/cpu/direct.c, with an Intel Xeon: as many multiplications in full tiles take as long, if a block of an
 * image leaves room in the core's cache, and otherwise up to 1.2 times as long. */
bool kn_conv_prefers_taps_weights(const kn_limits *limits, const void *problem)
{
    const taps_pass p = pass_of(limits, problem);
    const kn_conv_taps_shape *t = &p.shape;
    const double padded = (double)(kn_round_up_i64(t->inner, p.block) * kn_round_up_i64(t->outer, p.rows));
    const double gain = kn_conv_padding_factor(problem) * (double)(t->inner * t->outer) / padded;
    const int64_t panel_bytes = t->rows.from * t->columns.from * p.block * p.element;
    return limits->is_cpu && padded > 0 && gain > (panel_bytes <= (int64_t)limits->core_cache / 8 ? 1 : 1.2);
}
