/* ops/conv/gpu/winograd_plan.c - Winograd's convolution on GPUs: tiles, chunks, shares, and when it is preferred. */
#include "ops/conv/gpu/winograd.h"

#include <stdio.h>

#include "ops/gemm/blocked.h"

enum { LINE = 32 }; /* rows are padded to multiples of LINE tiles */

/* Bytes of a chunk's transformed tiles. Large, because the last wave of each chunk's products and transforms leaves the
 * device partly idle. */
static _Thread_local int64_t most_of_chunk = (int64_t)256 << 20;

int64_t kn_winograd_limit_chunks(int64_t bytes)
{
    const int64_t before = most_of_chunk;
    most_of_chunk = bytes;
    return before;
}

/* Gradients of few weights are summed over shares of the tiles, so that there are BLOCKS blocks of 64 x 64 results:
 * enough for any device. Constant, so that the order of the sums does not depend on the device. */
enum { BLOCK = 64, BLOCKS = 1024, MIN_TILES = 256 };

static int64_t tiles_of(const kn_winograd_plan *plan, int64_t images)
{
    return images * plan->tile_rows * plan->tile_columns;
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static void choose_chunk(kn_winograd_plan *plan)
{
    const int64_t bytes = plan->tile.values * tiles_of(plan, 1) * (plan->inner + plan->outer) * plan->groups *
                          plan->element,
                  most = kn_max_i64(1, most_of_chunk / kn_max_i64(1, bytes));
    const int64_t chunks = kn_max_i64(1, kn_div_up(plan->images, most));
    plan->chunk = kn_div_up(plan->images, chunks);
}

static int64_t taps_of(const kn_winograd_plan *plan) { return plan->tile.kernel_rows * plan->tile.kernel_columns; }
static bool is_weights(const kn_winograd_plan *plan) { return plan->problem->pass == KN_CONV_WEIGHTS; }

static void choose_shares(kn_winograd_plan *plan)
{
    const int64_t tiles = tiles_of(plan, plan->chunk), matrices = plan->tile.values * plan->groups,
                  blocks = matrices * kn_div_up(plan->inner, BLOCK) * kn_div_up(plan->outer, BLOCK);
    int64_t shares = is_weights(plan) ? kn_min_i64(kn_div_up(BLOCKS, blocks), tiles / MIN_TILES) : 1;
    plan->share = kn_round_up_i64(kn_div_up(tiles, kn_max_i64(1, shares)), LINE);
    plan->shares = kn_div_up(tiles, plan->share);
}

kn_winograd_plan kn_winograd_plan_of(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_side from = kn_conv_from(problem), to = kn_conv_to(problem);
    const bool data = problem->pass == KN_CONV_DATA;
    const kn_winograd_tile tile = kn_winograd_tile_of(problem);
    kn_winograd_plan plan = {.problem = problem,
                             .windows = from,
                             .tiles = to,
                             .f64 = s->f64,
                             .data = data,
                             .element = kn_conv_element(s),
                             .groups = s->groups,
                             .inner = from.channels,
                             .outer = to.channels,
                             .pairs = s->groups * from.channels * to.channels,
                             .tile = tile,
                             .top = data ? s->padding[1] - tile.kernel_rows + 1 : -s->padding[1],
                             .left = data ? s->padding[2] - tile.kernel_columns + 1 : -s->padding[2],
                             .images = s->images};
    plan.tile_rows = kn_div_up(to.size[1], tile.rows);
    plan.tile_columns = kn_div_up(to.size[2], tile.columns);
    choose_chunk(&plan);
    choose_shares(&plan);
    return plan;
}

int64_t kn_winograd_workspace(const kn_winograd_plan *plan, int64_t channels)
{
    return plan->tile.values * plan->groups * channels * plan->shares * plan->share;
}

/* --- kernel arguments --------------------------------------------------------------------------------------------- */

static kn_winograd_image image_of(const kn_winograd_plan *plan, int64_t images, const kn_conv_side *side)
{
    return (kn_winograd_image){.plane = side->size[1] * side->size[2],
                               .channels = (uint32_t)(plan->groups * side->channels),
                               .height = (int32_t)side->size[1],
                               .width = (int32_t)side->size[2],
                               .tiles = (uint32_t)tiles_of(plan, images),
                               .places = (uint32_t)kn_round_up_i64(tiles_of(plan, images), plan->share),
                               .share = kn_divisor_of(plan->share),
                               .columns = kn_divisor_of(plan->tile_columns),
                               .rows = kn_divisor_of(plan->tile_rows)};
}

kn_winograd_image kn_winograd_windows(const kn_winograd_plan *plan, int64_t images)
{
    kn_winograd_image image = image_of(plan, images, &plan->windows);
    image.top = (int32_t)plan->top;
    image.left = (int32_t)plan->left;
    return image;
}

kn_winograd_image kn_winograd_tiles(const kn_winograd_plan *plan, int64_t images)
{
    return image_of(plan, images, &plan->tiles);
}

static kn_arg operand_arg(const kn_winograd_plan *plan, const kn_conv_side *side, int64_t first)
{
    const int64_t image = plan->groups * side->channels * side->size[1] * side->size[2];
    return kn_arg_buffer(side->operand.buffer, (side->operand.offset + first * image) * plan->element);
}

kn_arg kn_winograd_windows_arg(const kn_winograd_plan *plan, int64_t first)
{
    return operand_arg(plan, &plan->windows, first);
}

kn_arg kn_winograd_tiles_arg(const kn_winograd_plan *plan, int64_t first)
{
    return operand_arg(plan, &plan->tiles, first);
}

/* The widest vectors, of 4, 2 or 1, to which rows, tiles and the operand are aligned. */
static int vector_of(const kn_conv_side *side)
{
    int vector = 4;
    while (side->size[2] % vector != 0 || side->operand.offset % vector != 0 || KN_WINOGRAD_COLUMNS % vector != 0)
        vector /= 2;
    return vector;
}

const char *kn_winograd_options(char *buffer, const kn_winograd_plan *plan)
{
    const int x = vector_of(&plan->windows), y = vector_of(&plan->tiles);
    const int phase = (int)((plan->left % x + x) % x);
    snprintf(buffer, KN_CONV_OPTIONS, "%s -DXN=%d -DXPHASE=%d -DYN=%d" KN_WINOGRAD_OPTIONS,
             kn_options_f64_or_f32(plan->f64), x, phase, y, KN_WINOGRAD_OPTION_VALUES(&plan->tile));
    return buffer;
}

size_t kn_winograd_group(kn_stream *stream, int64_t most)
{
    const size_t device = kn_device_limits(kn_stream_device(stream))->max_work_group_size;
    const size_t wanted = (size_t)kn_max_i64(1, most);
    return wanted < device ? wanted : device;
}

/* --- rows of the tables ------------------------------------------------------------------------------------------- */

/* Tiles, pixels of an image and channels must have 32-bit indices; channels (in and out) and products are launch
 * dimensions, limited to 65535. */
static bool fits(const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    enum { MOST = 30000, MAX_GROUPS = 1024 };
    const double most = 1 << 30;
    const double images = (double)s->images, out = (double)s->out_size[1] * (double)s->out_size[2],
                 in = (double)s->in_size[1] * (double)s->in_size[2];
    if (images * out >= most || images * in >= most || s->in_channels > MOST || s->out_channels > MOST ||
        s->groups > MAX_GROUPS)
        return false;
    const kn_winograd_plan plan = kn_winograd_plan_of(problem);
    const int64_t room = kn_max_i64(kn_winograd_workspace(&plan, kn_max_i64(plan.inner, plan.outer)),
                                    plan.tile.values * plan.shares * plan.pairs);
    return (uint64_t)(room * plan.element) <= limits->max_allocation;
}

bool kn_conv_supports_winograd_gpu(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    for (int d = 1; d < 3; d++)
        if (s->in_size[d] < 1 || s->out_size[d] < 1)
            return false;
    return kn_winograd_has_tile(problem) && s->images > 0 && s->in_channels > 0 && s->out_channels > 0 &&
           fits(limits, problem);
}

/* Costs are in flops of a fully used device. FLOPS_PER_BYTE is its compute to bandwidth ratio (12 to 14 on data-centre
 * GPUs in f32, more on others), LAUNCH the cost of a launch. */
enum { FLOPS_PER_BYTE = 16, LAUNCH = 300 * 1000 * 1000 };

static double slower_of(double flops, double bytes)
{
    return flops > bytes * FLOPS_PER_BYTE ? flops : bytes * FLOPS_PER_BYTE;
}

/* Cost of products of [rows, k] and [k, columns] in blocks, one at a time per compute unit; units idle in the last wave
 * count too. */
static double cost_of_blocks(const kn_limits *limits, bool f64, int64_t rows, int64_t columns, int64_t k, int64_t batch)
{
    const kn_block_arithmetic arithmetic = kn_block_plain(f64);
    const kn_block_shape *s = kn_choose_block(limits, arithmetic, rows, columns, batch);
    double rates[KN_BLOCK_SHAPES];
    if (!s)
        return 2.0 * (double)rows * (double)columns * (double)k * (double)batch;
    kn_block_rates(rates, limits, arithmetic);
    const int64_t units = kn_max_i64(1, limits->compute_units),
                  blocks = kn_div_up(rows, s->rows) * kn_div_up(columns, s->columns) * batch;
    return 2.0 * (double)(kn_div_up(blocks, units) * units * s->rows * s->columns) * (double)k /
           rates[s - kn_block_shape_at(0)];
}

/* The same for the pass: weight gradients are summed over enough shares of the pixels to fill the device in any
 * implementation. */
static double cost_of_products(const kn_limits *limits, const kn_winograd_plan *plan, int64_t k, int64_t columns,
                               int64_t batch)
{
    if (is_weights(plan))
        return 2.0 * (double)plan->outer * (double)columns * (double)k * (double)batch;
    return cost_of_blocks(limits, plan->f64, plan->outer, columns, k, batch);
}

/* The transforms are limited by memory; the products may be too. */
static double cost_of_winograd(const kn_limits *limits, const kn_winograd_plan *plan)
{
    const double element = (double)plan->element, images = (double)plan->images * (double)plan->groups;
    const double tiles = (double)tiles_of(plan, 1) * images * (double)plan->tile.values,
                 v = tiles * (double)plan->inner * element, m = tiles * (double)plan->outer * element;
    const double x = images * (double)(plan->inner * plan->windows.size[1] * plan->windows.size[2]) * element,
                 y = images * (double)(plan->outer * plan->tiles.size[1] * plan->tiles.size[2]) * element;
    const double kernels = (double)plan->pairs * (double)(taps_of(plan) + plan->tile.values) * element,
                 chunks = (double)kn_div_up(plan->images, plan->chunk);
    const double sums = is_weights(plan) ? kernels * (double)plan->shares * chunks : kernels;
    const double products = chunks * cost_of_products(limits, plan, plan->inner, tiles_of(plan, plan->chunk),
                                                      plan->tile.values * plan->groups);
    return slower_of(products, v + m + sums) + (x + v + m + y + sums) * FLOPS_PER_BYTE + LAUNCH * 3 * chunks;
}

static double cost_of_direct(const kn_limits *limits, const kn_winograd_plan *plan)
{
    const int64_t pixels = plan->images * plan->tiles.size[1] * plan->tiles.size[2];
    const double bytes = (double)(plan->element * plan->groups) *
                         ((double)plan->images * (double)(plan->windows.size[1] * plan->windows.size[2] * plan->inner) +
                          (double)pixels * (double)plan->outer);
    return slower_of(cost_of_products(limits, plan, plan->inner * taps_of(plan), pixels, plan->groups), bytes) + LAUNCH;
}

/* A margin: Winograd has larger rounding errors, and the cost model is approximate. */
#define WORTH 0.85

bool kn_conv_prefers_winograd_gpu(const kn_limits *limits, const void *problem)
{
    if (limits->is_cpu || !kn_conv_supports_winograd_gpu(limits, problem))
        return false;
    const kn_winograd_plan plan = kn_winograd_plan_of(problem);
    return kn_block_pays(limits, plan.inner, plan.outer) &&
           cost_of_winograd(limits, &plan) < WORTH * cost_of_direct(limits, &plan);
}
