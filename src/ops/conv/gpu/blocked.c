/* ops/conv/gpu/blocked.c - convolution on GPUs as implicit GEMM (cl/conv/gpu/blocked.cl), with plain arithmetic or on
 * tensor cores. */
#include "ops/gemm/blocked.h"
#include "base/divisor.h"
#include "conv/gpu/blocked.h"
#include "loops/work_size.h"
#include "ops/conv/common/correlation.h"
#include "ops/conv/gpu/blocked.h"

/* --- pixels ----------------------------------------------------------------------------------------- */

static kn_conv_pixels number_pixels(const kn_conv_correlation *c)
{
    const kn_conv_grid *g = &c->grid;
    const kn_conv_padding *p = &c->padding; /* not materialised */
    return (kn_conv_pixels){.all = (int32_t)(g->images * g->rows * g->columns),
                            .height = (int32_t)p->height,
                            .width = (int32_t)p->width,
                            .row_origin = (int32_t)(c->taps.row_origin - p->top),
                            .row_step = (int32_t)(g->x_row / c->taps.pitch),
                            .column_origin = (int32_t)(c->taps.column_origin - p->left),
                            .column_step = (int32_t)g->x_column,
                            .image = (int32_t)(g->groups * c->taps.inner * p->height * p->width),
                            .area = kn_divisor_of(g->rows * g->columns),
                            .columns = kn_divisor_of(g->columns)};
}

static kn_conv_tap_numbers number_taps(const kn_conv_correlation *c)
{
    const kn_conv_tap_list *t = &c->taps;
    return (kn_conv_tap_numbers){.all = (int32_t)(t->inner * t->rows * t->columns),
                                 .plane = (int32_t)(c->padding.height * c->padding.width),
                                 .row_distance = (int32_t)t->row_distance,
                                 .column_distance = (int32_t)t->column_distance,
                                 .area = kn_divisor_of(t->rows * t->columns),
                                 .columns = kn_divisor_of(t->columns)};
}

static int64_t x_group(const kn_conv_correlation *c) { return c->taps.inner * c->padding.height * c->padding.width; }

/* --- the weights as a matrix -------------------------------------------------------------------------------------- */

/* Forward's weights are contiguous along the taps, those of 1 x 1 kernels along the channels in either pass; others are
 * packed. */
typedef struct matrix {
    kn_conv_weight_matrix layout;
    kn_conv_operand weight;
    kn_buffer *packed; /* NULL: used in place */
    bool along_taps;
} matrix;

static bool is_multiple(int64_t quantum, int64_t a, int64_t b, int64_t c)
{
    return a % quantum == 0 && b % quantum == 0 && c % quantum == 0;
}

static bool lies_along_taps(const kn_conv_correlation *c)
{
    const kn_conv_weight_layout *w = &c->weights;
    return w->inner_stride == c->taps.rows * c->taps.columns && w->row_first == 0 && w->row_step == 1 &&
           w->column_first == 0 && w->column_step == 1 && w->kernel_columns == c->taps.columns;
}

static kn_status pack(kn_stream *stream, const kn_conv_correlation *c, matrix *m, int64_t pitch)
{
    const kn_conv_weight_layout *w = &c->weights;
    const kn_conv_tap_list *t = &c->taps;
    const kn_conv_shape *s = &c->problem->shape;
    const int64_t taps = t->inner * t->rows * t->columns, count = w->groups * taps * pitch;
    const kn_conv_pack_layout p = {.group = w->group_stride,
                                   .channel = w->outer_stride,
                                   .inner = w->inner_stride,
                                   .first = (int32_t)(w->row_first * w->kernel_columns + w->column_first),
                                   .row = (int32_t)(w->row_step * w->kernel_columns),
                                   .column = (int32_t)w->column_step,
                                   .count = (int32_t)count,
                                   .pitch = kn_divisor_of(pitch),
                                   .taps = kn_divisor_of(taps),
                                   .area = kn_divisor_of(t->rows * t->columns),
                                   .columns = kn_divisor_of(t->columns)};
    const kn_work_size work = kn_work_for(kn_device_limits(kn_stream_device(stream)), count);
    KN_TRY(kn_buffer_alloc(&m->packed, stream, (size_t)(kn_max_i64(1, count) * kn_conv_element(s))));
    m->weight = (kn_conv_operand){m->packed, 0};
    m->layout = (kn_conv_weight_matrix){.channel = 1, .tap = pitch, .group = taps * pitch, .aligned = 1};
    if (count == 0)
        return KN_OK;
    return kn_run(stream, .source = "conv/gpu/pack_taps.cl", .kernel = "conv_pack_taps", .operation = "conv2d",
                  .options = kn_options_f64_or_f32(s->f64), .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_conv_arg(s, c->problem->weight), kn_arg_buffer(m->packed, 0), kn_arg_struct(&p, sizeof p),
                          kn_arg_i32(w->outer)));
}

static kn_status make_matrix(kn_stream *stream, const kn_conv_correlation *c, int quantum, matrix *m)
{
    const kn_conv_weight_layout *w = &c->weights;
    const kn_conv_operand weight = c->problem->weight;
    *m = (matrix){.weight = weight, .along_taps = lies_along_taps(c)};
    m->layout = (kn_conv_weight_matrix){.channel = w->outer_stride, .tap = 1, .group = w->group_stride};
    if (m->along_taps) {
        m->layout.aligned = is_multiple(quantum, weight.offset, w->outer_stride, w->group_stride);
        return KN_OK;
    }
    if (w->outer_stride != 1)
        return pack(stream, c, m, kn_div_up(w->outer, quantum) * quantum);
    m->layout.tap = w->inner_stride;
    m->layout.aligned = is_multiple(quantum, weight.offset, w->inner_stride, w->group_stride);
    return KN_OK;
}

/* --- forward and backward-data ------------------------------------------------------------------------------------ */

static kn_conv_result describe_result(const kn_conv_correlation *c, const kn_conv_pixels *p, int quantum)
{
    const kn_conv_grid *g = &c->grid;
    const kn_conv_tap_list *t = &c->taps;
    const bool whole = g->rows * g->columns % quantum == 0;
    return (kn_conv_result){.x_group = x_group(c),
                            .image = g->y_image,
                            .channel = g->y_channel,
                            .row = g->y_row,
                            .column = g->y_column,
                            .channels = (int32_t)g->outer,
                            .has_bias = c->problem->bias.buffer != NULL,
                            .dense = whole && g->y_column == 1 && g->y_row == g->columns &&
                                     g->y_channel == g->rows * g->columns && c->y.offset % quantum == 0,
                            .pointwise = whole && t->rows == 1 && t->columns == 1 && p->row_origin == 0 &&
                                         p->column_origin == 0 && p->row_step == 1 && p->column_step == 1 &&
                                         p->height == g->rows && p->width == g->columns && c->x.offset % quantum == 0};
}

static kn_status correlate(kn_stream *stream, const kn_conv_correlation *c, kn_block_arithmetic arithmetic)
{
    const kn_conv_problem *problem = c->problem;
    const int quantum = kn_block_quantum(arithmetic);
    const kn_conv_pixels pixels = number_pixels(c);
    const kn_conv_tap_numbers taps = number_taps(c);
    const kn_conv_result result = describe_result(c, &pixels, quantum);
    const kn_block_shape *s = kn_choose_block(kn_device_limits(kn_stream_device(stream)), arithmetic, c->grid.outer,
                                              pixels.all, c->grid.groups);
    const size_t items = (size_t)kn_block_items(s);
    char options[KN_BLOCK_OPTIONS];
    matrix m;
    KN_TRY(make_matrix(stream, c, quantum, &m));
    const kn_status status = kn_run(
        stream, .source = "conv/gpu/blocked.cl", .kernel = "conv_blocked", .operation = "conv2d",
        .options = kn_block_options(options, s, arithmetic, m.along_taps, false, " -DPASS=0"), .dims = 3,
        .global = {(size_t)kn_div_up(pixels.all, s->columns) * items, (size_t)kn_div_up(c->grid.outer, s->rows),
                   (size_t)c->grid.groups},
        .local = {items, 1, 1},
        KN_ARGS(kn_conv_arg(&problem->shape, c->x), kn_conv_arg(&problem->shape, m.weight), kn_conv_bias_arg(problem),
                kn_conv_arg(&problem->shape, c->y), kn_arg_struct(&pixels, sizeof pixels),
                kn_arg_struct(&taps, sizeof taps), kn_arg_struct(&m.layout, sizeof m.layout),
                kn_arg_struct(&result, sizeof result), KN_CONV_BOUND_ARGS(problem)));
    kn_buffer_free(m.packed);
    return status;
}

static kn_status correlate_all(kn_stream *stream, const kn_conv_problem *problem, kn_block_arithmetic arithmetic)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    kn_conv_correlation c;
    for (int64_t i = 0; i < kn_conv_correlations(problem); i++)
        if (kn_conv_describe_correlation(&c, limits, problem, i))
            KN_TRY(correlate(stream, &c, arithmetic));
    return KN_OK;
}

/* --- backward-weights --------------------------------------------------------------------------------------------- */

/* Work-groups in the third dimension of a launch, on some GPUs: channel groups times shares. */
enum { MOST_LAYERS = 65535 };

/* Total blocks to aim for with few weights, shares included: enough for any device. Constant, so that the order of the
 * sums does not depend on the device. */
enum { BLOCKS = 1024, MIN_PIXELS = 512 };
#define MAX_SUMS ((int64_t)256 << 20) /* bytes */
#define MAX_OFFSET ((int64_t)INT32_MAX)

/* Elements of the larger of the images of x and y. */
static int64_t image_elements(const kn_conv_shape *s)
{
    return kn_max_i64(s->in_channels * s->in_size[1] * s->in_size[2],
                      s->out_channels * s->out_size[1] * s->out_size[2]);
}

static int64_t count_pixels(const kn_conv_shape *s) { return s->images * s->out_size[1] * s->out_size[2]; }

/* The images that a share touches must be within 32-bit offsets. */
static int64_t choose_share(const kn_conv_shape *s)
{
    const int64_t area = s->out_size[1] * s->out_size[2], pixels = count_pixels(s), element = kn_conv_element(s);
    const int64_t weights = s->out_channels * kn_conv_taps(s), blocks = kn_div_up(weights, 64 * 64);
    const int64_t within_reach = kn_max_i64(1, MAX_OFFSET / kn_max_i64(1, image_elements(s)) - 2) * area;
    int64_t shares = kn_min_i64(kn_div_up(BLOCKS, kn_max_i64(1, blocks)), kn_div_up(pixels, MIN_PIXELS));
    shares = kn_min_i64(shares, MOST_LAYERS / s->groups);
    shares = kn_max_i64(1, kn_min_i64(shares, MAX_SUMS / (weights * element + 1)));
    return kn_max_i64(1, kn_min_i64(kn_div_up(pixels, shares), within_reach));
}

int64_t kn_conv_blocked_shares(const kn_conv_shape *s)
{
    return kn_max_i64(1, kn_div_up(count_pixels(s), choose_share(s)));
}

static kn_status sum_shares(kn_stream *stream, const kn_conv_problem *problem, int64_t per_share, int64_t shares,
                            kn_arg sums, kn_block_arithmetic arithmetic)
{
    kn_conv_correlation c;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    kn_conv_describe_correlation(&c, limits, problem, 0);
    const kn_conv_pixels pixels = number_pixels(&c);
    const kn_conv_tap_numbers taps = number_taps(&c);
    const int64_t groups = c.grid.groups, channels = c.grid.outer;
    const kn_conv_shares layout = {.x_group = x_group(&c),
                                   .dy_image = c.grid.y_image,
                                   .per_share = (int32_t)per_share,
                                   .channels = (int32_t)channels,
                                   .groups = (int32_t)groups};
    const kn_block_shape *s = kn_choose_block(limits, arithmetic, channels, taps.all, groups * shares);
    const size_t items = (size_t)kn_block_items(s);
    char options[KN_BLOCK_OPTIONS];
    return kn_run(stream, .source = "conv/gpu/blocked.cl", .kernel = "conv_blocked_weights",
                  .operation = "conv2d_backward_weights",
                  .options = kn_block_options(options, s, arithmetic, true, true, " -DPASS=1"), .dims = 3,
                  .global = {(size_t)kn_div_up(taps.all, s->columns) * items, (size_t)kn_div_up(channels, s->rows),
                             (size_t)(groups * shares)},
                  .local = {items, 1, 1},
                  KN_ARGS(kn_conv_arg(&problem->shape, problem->x), kn_conv_arg(&problem->shape, problem->y), sums,
                          kn_arg_struct(&pixels, sizeof pixels), kn_arg_struct(&taps, sizeof taps),
                          kn_arg_struct(&layout, sizeof layout)));
}

static kn_status backward_weights(kn_stream *stream, const kn_conv_problem *problem, kn_block_arithmetic arithmetic)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t element = kn_conv_element(s), weights = s->out_channels * kn_conv_taps(s);
    const int64_t per_share = choose_share(s), shares = kn_conv_blocked_shares(s);
    kn_buffer *sums = NULL;
    if (shares > 1)
        KN_TRY(kn_buffer_alloc(&sums, stream, (size_t)(shares * weights * element)));
    kn_status status =
        sum_shares(stream, problem, per_share, shares, kn_conv_arg_or(sums, s, problem->weight), arithmetic);
    kn_conv_problem weights_only = *problem;
    weights_only.bias.buffer = NULL;
    if (status == KN_OK && sums)
        status = kn_conv_total_gradient(stream, &weights_only, sums, shares, sums, 0, 0);
    kn_buffer_free(sums);
    return status == KN_OK && problem->bias.buffer ? kn_conv_bias_gradient(stream, problem) : status;
}

/* --- rows of the tables ------------------------------------------------------------------------------------------- */

static kn_block_arithmetic plain(const kn_conv_problem *problem) { return kn_block_plain(problem->shape.f64); }

static kn_status run(kn_stream *stream, const kn_conv_problem *problem, kn_block_arithmetic arithmetic)
{
    return (problem->pass == KN_CONV_WEIGHTS ? backward_weights : correlate_all)(stream, problem, arithmetic);
}

kn_status kn_conv_run_blocked(kn_stream *stream, const void *problem) { return run(stream, problem, plain(problem)); }
kn_status kn_conv_run_tensor(kn_stream *stream, const void *problem) { return run(stream, problem, KN_BLOCK_TF32); }

/* Pixels of all images, taps and weights must have 32-bit indices; the images that a block of pixels touches must be
 * within 32-bit offsets; the work-group must fit the device, and the launch any. */
static bool supports(const kn_limits *limits, const kn_conv_problem *problem, kn_block_arithmetic arithmetic)
{
    const kn_conv_shape *s = &problem->shape;
    const double most = (double)(MAX_OFFSET - 1024), images = (double)s->images;
    const int64_t out_area = s->out_size[1] * s->out_size[2];
    const int64_t residue_area = s->in_size[1] / s->stride[1] * (s->in_size[2] / s->stride[2]); /* the smallest */
    const int64_t area = kn_max_i64(1, kn_min_i64(out_area, residue_area));
    const double touched = (double)kn_min_i64(s->images, KN_BLOCK_MOST / area + 2);
    const double kernel_area = (double)(s->kernel_size[1] * s->kernel_size[2]);
    return kn_conv_is_flat(s) && images * (double)out_area < most &&
           images * (double)s->in_size[1] * (double)s->in_size[2] < most &&
           (double)(s->in_channels + 4) * (double)(s->out_channels + 4) * kernel_area < most &&
           touched * (double)image_elements(s) < most && kn_choose_block(limits, arithmetic, 1, 1, 1) != NULL &&
           s->groups * (problem->pass == KN_CONV_WEIGHTS ? kn_conv_blocked_shares(s) : 1) <= MOST_LAYERS;
}

bool kn_conv_supports_blocked(const kn_limits *limits, const void *problem)
{
    return supports(limits, problem, plain(problem));
}

bool kn_conv_supports_tensor(const kn_limits *limits, const void *problem)
{
    return !((const kn_conv_problem *)problem)->shape.f64 && supports(limits, problem, KN_BLOCK_TF32);
}

/* On non-CPU devices, all but depthwise convolutions: with one channel per group most of a block is empty. The
 * alternative, lowering, writes and reads a matrix of the image size times the number of taps. Benchmark mode corrects
 * the choice. */
bool kn_conv_prefers_blocked(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    return !limits->is_cpu && (s->groups == 1 || (s->in_channels != s->groups && s->out_channels != s->groups));
}

bool kn_conv_prefers_tensor(const kn_limits *limits, const void *problem)
{
    return kn_conv_prefers_blocked(limits, problem);
}
