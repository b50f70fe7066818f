/* ops/conv/cpu/images.c - convolution forward and backward-data on CPU devices, one pixel of several images at a time
 * (cl/conv/cpu/images.cl): for small images with relatively much padding. */
#include "conv/cpu/images.h"
#include "ops/conv/cpu/line.h"

enum { VECTORS = 2 }; /* along the channels, by as many images as registers allow */
enum { TILE = 6, SMALL_TILE = 4, LARGE_TILE = 8 };

/* In time of an image in a full tile. A small tile takes longer: it has too few sums to hide the latency. */
static double cost(int64_t images, int64_t tile)
{
    return (double)(kn_div_up(images, tile) * tile) * (tile == SMALL_TILE ? 1.3 : 1);
}

static int64_t images_per_tile(const kn_limits *limits, int64_t images)
{
    if (kn_conv_many_registers(limits))
        return LARGE_TILE;
    return cost(images, SMALL_TILE) < cost(images, TILE) ? SMALL_TILE : TILE;
}

/* Of packed weights, and of sums: both stay in the L2 cache. */
static int64_t most_bytes(const kn_limits *limits)
{
    return limits->core_cache >= KN_CONV_LARGE_CACHE ? 512 << 10 : 256 << 10;
}

static kn_conv_images_shape describe(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t inner = kn_conv_from(problem).channels, outer = kn_conv_to(problem).channels;
    const int64_t area = s->kernel_size[1] * s->kernel_size[2];
    const bool data = problem->pass == KN_CONV_DATA;
    return (kn_conv_images_shape){.images = s->images,
                                  .groups = s->groups,
                                  .inner = inner,
                                  .outer = outer,
                                  .group_stride = outer * inner * area,
                                  .outer_stride = data ? area : inner * area,
                                  .inner_stride = data ? outer * area : area,
                                  .rows = kn_conv_line_of(problem, 1),
                                  .columns = kn_conv_line_of(problem, 2)};
}

/* Chooses chunks and runs. Returns the number of work-items, one per core, because each has its own scratch memory;
 * several runs for each, or some would end late. */
static int64_t share(kn_conv_images_shape *s, const kn_limits *limits, bool f64)
{
    const int64_t width = kn_conv_vector_width(limits, f64), block = VECTORS * width, element = f64 ? 8 : 4;
    const int64_t images = images_per_tile(limits, s->images), tile = images * block;
    const int64_t units = kn_div_up(s->images, images) * s->rows.to, area = s->rows.taps * s->columns.taps;
    const int64_t blocks = s->groups * kn_div_up(s->outer, block);
    const int64_t wanted = kn_div_up(8 * limits->compute_units, blocks);
    const int64_t most = most_bytes(limits), channel = area * block * element;
    const int64_t chunks = kn_max_i64(1, kn_div_up(s->inner * channel, most));
    s->chunk = kn_max_i64(width, kn_round_up_i64(kn_div_up(s->inner, chunks), width));
    s->run = kn_min_i64(kn_max_i64(1, units / wanted), kn_max_i64(1, most / (s->columns.to * tile * element)));
    s->scratch = s->chunk * area * (block + width) + s->run * s->columns.to * tile;
    return kn_min_i64(blocks * kn_div_up(units, s->run), limits->compute_units);
}

kn_status kn_conv_run_images(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_side from = kn_conv_from(problem), to = kn_conv_to(problem);
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const bool f64 = problem->shape.f64;
    const int64_t pixels = from.size[1] * from.size[2], element = kn_conv_element(&problem->shape);
    kn_conv_images_shape s = describe(problem);
    const int64_t items = share(&s, limits, f64), channels = s.groups * s.inner;
    char options[KN_CONV_OPTIONS];
    kn_conv_options(options, limits, f64, VECTORS, "NX", (int)images_per_tile(limits, s.images));
    kn_buffer *repacked = NULL, *scratch = NULL;
    kn_status status = kn_buffer_alloc(&repacked, stream, (size_t)(s.images * channels * pixels * element));
    if (status == KN_OK)
        status = kn_buffer_alloc(&scratch, stream, (size_t)(items * s.scratch * element));
    if (status == KN_OK && channels * pixels > 0)
        status = kn_run(stream, .source = "conv/cpu/images.cl", .kernel = "conv_images_repack", .operation = "conv2d",
                        .options = options, .dims = 1, .global = {(size_t)s.images}, .local = {1},
                        KN_ARGS(kn_conv_arg(&problem->shape, from.operand), kn_arg_buffer(repacked, 0),
                                kn_arg_i64(channels), kn_arg_i64(pixels)));
    if (status == KN_OK)
        status =
            kn_run(stream, .source = "conv/cpu/images.cl", .kernel = "conv_images", .operation = "conv2d",
                   .options = options, .dims = 1, .global = {(size_t)items}, .local = {1},
                   KN_ARGS(kn_arg_buffer(repacked, 0), kn_conv_arg(&problem->shape, problem->weight),
                           kn_conv_bias_arg(problem), kn_conv_arg(&problem->shape, to.operand),
                           kn_arg_buffer(scratch, 0), kn_arg_struct(&s, sizeof s), KN_CONV_EPILOGUE_ARGS(problem)));
    kn_buffer_free(repacked);
    kn_buffer_free(scratch);
    return status;
}

/* The time of images in full tiles by that of these. */
static double fullness(const kn_limits *limits, int64_t images)
{
    return (double)images / cost(images, images_per_tile(limits, images));
}

double kn_conv_images_time(const kn_limits *limits, const kn_conv_problem *problem)
{
    return 1 / (kn_conv_padding_factor(problem) * fullness(limits, problem->shape.images));
}

/* Without much padding, against conv/cpu/direct.cl, on an AMD EPYC (Zen 3): that copies images row by row, and in
 * backward-data with strides packs weights for every residue class of the pixels. With full tiles, short rows take 0.4
 * to 0.7 of its time here, rows of 8 to 15 pixels 0.8 to 1, longer ones in backward-data with strides 0.75 to 0.85; but
 * up to 1.3 if a block's weights are packed in several chunks and rows are not short. With vectors of 16 taken in
 * halves (Zen 4) backward-data with strides to 128 channels and more takes 0.72 to 1 of it, the others up to 1.3. */
static bool beats_direct(const kn_limits *limits, const kn_conv_problem *problem)
{
    enum { SHORT_ROW = 8, LONG_ROW = 16 };
    const kn_conv_shape *s = &problem->shape;
    const int64_t taps = s->kernel_size[1] * s->kernel_size[2], block = VECTORS * kn_conv_vector_width(limits, s->f64);
    const int64_t weight_bytes = kn_conv_from(problem).channels * taps * block * kn_conv_element(s);
    const bool spreads = problem->pass == KN_CONV_DATA && s->stride[1] > 1 && s->stride[2] > 1;
    if (taps == 1)
        return false;
    if (kn_conv_many_registers(limits))
        return spreads && fullness(limits, s->images) > 0.85 && kn_conv_to(problem).channels >= 4 * block &&
               kn_limits_halves_vectors(limits);
    if (s->out_size[2] < SHORT_ROW)
        return fullness(limits, s->images) > 0.6;
    return fullness(limits, s->images) > 0.85 && weight_bytes <= most_bytes(limits) &&
           (spreads || s->out_size[2] < LONG_ROW);
}

/* The kernel counts channels, and the elements of a few of them, in int. */
bool kn_conv_supports_images(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    (void)limits;
    return kn_conv_is_flat(s) && s->in_channels < 32768 && s->out_channels < 32768 &&
           (double)kn_conv_to(problem).size[1] * (double)kn_conv_to(problem).size[2] < (double)(1 << 26);
}

bool kn_conv_prefers_images(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    return limits->is_cpu && kn_conv_from(problem).channels >= 16 &&
           2 * kn_conv_to(problem).channels > kn_conv_vector_width(limits, s->f64) &&
           kn_conv_correlations(problem) <= 16 &&
           (kn_conv_images_time(limits, problem) < 1 / 1.1 || beats_direct(limits, problem));
}
