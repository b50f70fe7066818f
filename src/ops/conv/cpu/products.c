/* ops/conv/cpu/products.c - 1 x 1 convolutions of 64 pixels and more on CPU devices, forward and backward-data, as one
 * matrix product per image (cl/gemm/tile.cl): vectors run along the pixels, which are read and written where they are.
 *
 *     forward:        y = W x
 *     backward-data:  dx = W^T dy */
#include "ops/conv/cpu/products.h"

#include "base/integer.h"

static kn_gemm_layout weight_layout(const kn_conv_problem *problem) /* to.channels rows */
{
    const int64_t row = problem->shape.in_channels;
    return problem->pass == KN_CONV_DATA ? (kn_gemm_layout){1, row, 0} : (kn_gemm_layout){row, 1, 0};
}

kn_tile_product kn_conv_product_of(kn_gemm_problem *gemm, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_side from = kn_conv_from(problem), to = kn_conv_to(problem);
    const int64_t pixels = kn_conv_volume(s->out_size);
    *gemm = (kn_gemm_problem){
        .product = {.f64 = s->f64,
                    .alpha = 1,
                    .b = {.buffer = from.operand.buffer, .offset = from.operand.offset},
                    .c = {.buffer = to.operand.buffer, .offset = to.operand.offset}},
        .bias = problem->bias.buffer,
        .bias_offset = problem->bias.offset,
        .activation = problem->activation,
    };
    return (kn_tile_product){
        .problem = gemm,
        .turned = true, /* the bias belongs to the rows */
        .f64 = s->f64,
        .m = to.channels,
        .n = pixels,
        .k = from.channels,
        .batch = s->images,
        .a = {problem->weight.buffer, problem->weight.offset, weight_layout(problem)},
        .b = {from.operand.buffer, from.operand.offset, {pixels, 1, from.channels * pixels}},
        .c = {pixels, 1, to.channels * pixels},
    };
}

kn_status kn_conv_run_products(kn_stream *stream, const void *problem)
{
    kn_gemm_problem gemm;
    const kn_tile_product x = kn_conv_product_of(&gemm, problem);
    return kn_tile_run(stream, &x);
}

bool kn_conv_supports_products(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    (void)limits;
    return s->groups == 1 && kn_conv_reads_each_pixel_once(s);
}

/* A vector of pixels. */
enum { LANES = 16 };

/* What decides. Weights are read again for each image. */
typedef struct extent {
    int64_t pixels, in_channels, out_channels, least_channels, weight_bytes;
    bool fills_vectors; /* but for a 16th */
} extent;

static extent extent_of(const kn_conv_shape *s)
{
    const int64_t pixels = kn_conv_volume(s->out_size);
    return (extent){.pixels = pixels,
                    .in_channels = s->in_channels,
                    .out_channels = s->out_channels,
                    .least_channels = kn_min_i64(s->in_channels, s->out_channels),
                    .weight_bytes = s->in_channels * s->out_channels * kn_conv_element(s),
                    .fills_vectors = kn_round_up_i64(pixels, LANES) * 16 <= pixels * 17};
}

/* To fewer channels than a vector has lanes: small images, and those of some size to a quarter of the lanes. It takes
 * 0.3 to 0.8 of the time of the others (Intel Xeon). */
static bool wins_to_few_channels(const extent *e)
{
    return e->pixels >= 32 && (e->pixels < 512 || (e->pixels < 2048 && e->out_channels <= LANES / 4));
}

/* Vectors of 16 floats and 2 MiB of L2 per core: it takes 0.8 of the time of bands.c and pointwise.c, and 0.3 to 0.7
 * for a few channels or where images are a multiple of 2 KiB apart (Intel Xeon). */
static bool wins_with_large_cache(int64_t cache, const extent *e, kn_conv_pass pass)
{
    /* With many channels lanes at an image's end may not be idle, least of all forward, whose weights are in place. */
    const bool fills = e->pixels % LANES == 0 || (pass == KN_CONV_DATA && e->fills_vectors && e->least_channels < 256);
    if (e->least_channels < LANES)
        return pass == KN_CONV_FORWARD && e->in_channels >= LANES && wins_to_few_channels(e);
    if (e->pixels >= 512)
        return e->least_channels >= 64 || e->weight_bytes <= cache / 2;
    return e->pixels >= 64 && (fills || e->least_channels < 128) &&
           e->weight_bytes <= kn_min_i64(e->pixels * 8192, cache / 2);
}

/* 1 MiB: 0.8 of their time on average, 0.3 to 0.6 of pointwise.c's for a few channels, and 0.6 to 0.8 of bands.c's
 * where images are a multiple of 2 KiB apart (EPYC of family 25, model 17). With idle lanes packing pixels of several
 * images is better, unless a few channels make it expensive; of large images bands.c reads a few channels faster, and
 * forward also many if products do not fetch them ahead. */
static bool wins_with_small_cache(const kn_limits *limits, const extent *e, kn_conv_pass pass)
{
    enum { SETS = 512 }; /* pixels; of images that are a multiple of it channels share few sets of the L1 cache */
    const bool apart = e->pixels > SETS && e->pixels % SETS != 0;
    if (e->pixels < LANES || e->least_channels < LANES / 2 ||
        (pass == KN_CONV_DATA && e->pixels < 256 && e->weight_bytes > 4 * (int64_t)limits->core_cache))
        return false;
    if (e->least_channels < LANES)
        return e->pixels < SETS && e->pixels % LANES == 0;
    if (e->least_channels >= 256)
        return e->pixels % LANES == 0;
    if (apart)
        return e->fills_vectors && e->least_channels >= 24 &&
               (pass == KN_CONV_DATA || e->least_channels < 64 || kn_tile_fetches_ahead(limits));
    return e->fills_vectors || e->least_channels < 64;
}

/* Without such vectors this takes 0.4 to 0.8 of the others' time. With fewer pixels the weights have to be few for each
 * pixel, and stay in the cache; and an image of 10 x 10 pixels, say, is 6 vectors and a rest. */
static bool wins_with_narrow_vectors(int64_t cache, const extent *e)
{
    const bool weights_stay = e->weight_bytes <= kn_min_i64(e->pixels * 1024, cache);
    return e->least_channels >= 8 && (e->pixels >= 512 || (e->pixels >= 64 && e->fills_vectors && weights_stay));
}

bool kn_conv_prefers_products(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const extent e = extent_of(&problem->shape);
    if (!limits->is_cpu)
        return false;
    const int64_t cache = (int64_t)limits->core_cache;
    if (!kn_conv_many_registers(limits))
        return wins_with_narrow_vectors(cache, &e);
    if (cache >= KN_CONV_LARGE_CACHE)
        return wins_with_large_cache(cache, &e, problem->pass);
    return limits->vector_width_f32 >= LANES && wins_with_small_cache(limits, &e, problem->pass); /* not on Arm */
}
