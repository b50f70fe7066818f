/* ops/conv/gpu/depthwise.c - depthwise convolution on GPUs, all three passes (cl/conv/depthwise*.cl). */
#include <stdio.h>

#include "base/divisor.h"
#include "conv/gpu/depthwise.h"
#include "ops/conv/common/conv.h"

/* Work division of a pass. Input columns are read in vectors of `vector`; a work-item handles `rows` rows of dy. */
typedef struct depthwise_cut {
    int kernel, stride; /* compile-time values; kernel 0: passed at run time */
    int vector, rows, group;
} depthwise_cut;

enum { VECTOR_BYTES = 16, GROUP = 128, SMALL_GROUP = 64, ROWS_OF_ANY = 4 };

/* --- what is compiled in ------------------------------------------------------------------------------------------ */

static bool is_compiled_in(const kn_conv_shape *s)
{
    const int64_t kernel = s->kernel_size[1], stride = s->stride[1], padding = s->padding[1];
    return (kernel == 3 || kernel == 5 || kernel == 7) && s->kernel_size[2] == kernel && stride <= 2 &&
           s->stride[2] == stride && s->padding[2] == padding && padding < kernel && s->dilation[1] == 1 &&
           s->dilation[2] == 1;
}

/* The widest vector to which all rows of both images, and the images themselves, are aligned. */
static int choose_vector(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    int64_t all = s->in_size[2] | s->out_size[2] | problem->x.offset | problem->y.offset;
    int vector = VECTOR_BYTES / (int)kn_conv_element(s);
    while (all % vector != 0)
        vector /= 2;
    return vector;
}

/* Rows per work-item, 7 or 4: whichever rereads less, with `more` rows read twice at each cut. Images often have 7 *
 * 2^k rows. */
static int choose_rows(int64_t n, int64_t more)
{
    const int64_t of_7 = kn_div_up(n, 7) * (7 + more), of_4 = kn_div_up(n, 4) * (4 + more);
    return of_7 <= of_4 ? 7 : 4;
}

static depthwise_cut choose_cut(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const bool data = problem->pass == KN_CONV_DATA;
    if (!is_compiled_in(s))
        return (depthwise_cut){.vector = 1, .rows = data ? 1 : ROWS_OF_ANY, .group = GROUP};
    const int64_t more = s->kernel_size[1] - s->stride[1];
    depthwise_cut cut = {.kernel = (int)s->kernel_size[1], .stride = (int)s->stride[1], .group = GROUP};
    cut.vector = choose_vector(problem);
    /* Limits registers: with whole vectors a work-item has enough results. With stride 2, dx has four results per
     * element of dy. */
    bool many = s->f64 || cut.vector == VECTOR_BYTES / 4;
    cut.rows = many || (data && cut.stride == 2) ? 4 : choose_rows(kn_conv_to(problem).size[1], more);
    if (many && data && cut.stride == 2)
        cut.rows = 2;
    return cut;
}

#define OPTIONS 160
static const char *format_options(char *buffer, const kn_conv_shape *s, const depthwise_cut *cut)
{
    snprintf(buffer, OPTIONS, "%s -DC=%d -DKERNEL=%d -DSTRIDE=%d -DROWS=%d -DLEFT=%d -DGROUP=%d",
             kn_options_f64_or_f32(s->f64), cut->vector, cut->kernel, cut->stride, cut->rows,
             cut->kernel ? (int)s->padding[2] : 0, cut->group);
    return buffer;
}

static const char *source_of(const depthwise_cut *cut)
{
    return cut->kernel ? "conv/gpu/depthwise.cl" : "conv/gpu/depthwise_any.cl";
}

/* --- forward and backward-data ------------------------------------------------------------------------------------ */

static kn_depthwise_shape describe(const kn_conv_shape *s)
{
    return (kn_depthwise_shape){.height = (int32_t)s->in_size[1],
                                .width = (int32_t)s->in_size[2],
                                .out_height = (int32_t)s->out_size[1],
                                .out_width = (int32_t)s->out_size[2],
                                .top = (int32_t)s->padding[1],
                                .left = (int32_t)s->padding[2],
                                .multiplier = kn_divisor_of(s->out_channels / s->groups),
                                .kernel_height = (int32_t)s->kernel_size[1],
                                .kernel_width = (int32_t)s->kernel_size[2],
                                .dilation_height = (int32_t)s->dilation[1],
                                .dilation_width = (int32_t)s->dilation[2],
                                .stride_height = kn_divisor_of(s->stride[1]),
                                .stride_width = kn_divisor_of(s->stride[2])};
}

/* Each work-item computes a block of a plane of the result, `times` rows and columns for each of the cut. */
static kn_depthwise_shape cut_result(const kn_conv_problem *problem, const depthwise_cut *cut)
{
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_side to = kn_conv_to(problem);
    const int64_t times = problem->pass == KN_CONV_DATA && cut->kernel ? cut->stride : 1;
    const int64_t blocks = kn_div_up(to.size[1], times * cut->rows),
                  strips = kn_div_up(to.size[2], times * cut->vector);
    kn_depthwise_shape d = describe(s);
    d.blocks = kn_divisor_of(blocks);
    d.strips = kn_divisor_of(strips);
    d.channels = kn_divisor_of(s->groups * to.channels);
    d.items = (uint32_t)(s->images * s->groups * to.channels * blocks * strips);
    return d;
}

static kn_status correlate(kn_stream *stream, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const bool data = problem->pass == KN_CONV_DATA;
    const size_t most = kn_device_limits(kn_stream_device(stream))->max_work_group_size;
    const depthwise_cut cut = choose_cut(problem);
    const kn_depthwise_shape d = cut_result(problem, &cut);
    const kn_arg from = kn_conv_arg(s, kn_conv_from(problem).operand), weight = kn_conv_arg(s, problem->weight),
                 to = kn_conv_arg(s, kn_conv_to(problem).operand), shape = kn_arg_struct(&d, sizeof d);
    const kn_arg forward_args[] = {from, weight, kn_conv_bias_arg(problem), to, shape, KN_CONV_EPILOGUE_ARGS(problem)};
    const kn_arg data_args[] = {from, weight, to, shape};
    char options[OPTIONS];
    return kn_run(stream, .source = source_of(&cut), .kernel = data ? "conv_depthwise_data" : "conv_depthwise",
                  .operation = kn_conv_operation(problem), .options = format_options(options, s, &cut), .dims = 1,
                  .global = {d.items}, .local = {most < GROUP ? most : GROUP}, .args = data ? data_args : forward_args,
                  .num_args = data ? 4 : 8);
}

/* --- backward-weights --------------------------------------------------------------------------------------------- */

/* Work-groups that fill any device, and the range of row blocks per work-item: enough to amortise the final sum, more
 * are split into shares. Constant, so that the order of the sums depends on the shape alone. */
enum { GROUPS = 1024, MIN_UNITS = 2, MAX_UNITS = 64 };

typedef struct depthwise_weights_pass {
    const kn_conv_problem *problem;
    depthwise_cut cut;
    kn_depthwise_shape shape;
    kn_depthwise_shares cut_up;
    int64_t shares;
    kn_buffer *sums, *bias_sums; /* NULL with a single share */
} depthwise_weights_pass;

static void choose_shares(depthwise_weights_pass *w)
{
    const kn_conv_shape *s = &w->problem->shape;
    const int64_t columns = s->out_size[2], taps = w->cut.kernel ? 1 : kn_conv_taps(s);
    const int64_t blocks = kn_div_up(s->out_size[1], w->cut.rows), units = s->images * blocks;
    const int64_t chunks = kn_max_i64(1, kn_div_up(columns, w->cut.group)), chunk = kn_div_up(columns, chunks);
    const int64_t walkers = w->cut.group / kn_max_i64(1, chunk);
    int64_t ranges = kn_min_i64(kn_div_up(GROUPS, s->out_channels * taps * chunks), units / (walkers * MIN_UNITS));
    ranges = kn_max_i64(kn_max_i64(1, ranges), kn_div_up(units, walkers * MAX_UNITS));
    const int64_t per_share = kn_max_i64(1, kn_div_up(units, ranges));
    w->shape.blocks = kn_divisor_of(blocks);
    w->cut_up = (kn_depthwise_shares){.chunk = kn_divisor_of(chunk),
                                      .chunks = kn_divisor_of(chunks),
                                      .channels = kn_divisor_of(s->out_channels),
                                      .taps = kn_divisor_of(taps),
                                      .units = (int32_t)units,
                                      .units_per_share = (int32_t)per_share,
                                      .walkers = (int32_t)walkers};
    w->shares = kn_max_i64(1, kn_div_up(units, per_share)) * chunks;
}

/* Rows per block that divide evenly, if possible. */
static void cut_weights(depthwise_weights_pass *w)
{
    const kn_conv_shape *s = &w->problem->shape;
    w->cut = choose_cut(w->problem);
    w->cut.vector = 1;
    w->cut.rows = s->f64 ? 4 : s->out_size[1] % 7 == 0 ? 7 : s->out_size[1] % 8 == 0 ? 8 : 4;
    w->cut.group = s->out_size[2] <= SMALL_GROUP ? SMALL_GROUP : GROUP;
    w->shape = describe(s);
    choose_shares(w);
}

static kn_status alloc_sums(depthwise_weights_pass *w, kn_stream *stream)
{
    const kn_conv_shape *s = &w->problem->shape;
    const int64_t bytes = w->shares * s->out_channels * kn_conv_element(s);
    if (w->shares == 1)
        return KN_OK;
    KN_TRY(kn_buffer_alloc(&w->sums, stream, (size_t)(bytes * kn_conv_taps(s))));
    return kn_buffer_alloc(&w->bias_sums, stream, (size_t)bytes);
}

static kn_status launch_sums(const depthwise_weights_pass *w, kn_stream *stream)
{
    const kn_conv_problem *problem = w->problem;
    const kn_conv_shape *s = &problem->shape;
    const int64_t groups = s->out_channels * w->shares * w->cut_up.taps.divisor;
    char options[OPTIONS];
    return kn_run(stream, .source = "conv/gpu/depthwise_weights.cl", .kernel = "conv_depthwise_weights",
                  .operation = "conv2d_backward_weights", .options = format_options(options, s, &w->cut), .dims = 1,
                  .global = {(size_t)(groups * w->cut.group)}, .local = {(size_t)w->cut.group},
                  KN_ARGS(kn_conv_arg(s, problem->x), kn_conv_arg(s, problem->y),
                          kn_conv_arg_or(w->sums, s, problem->weight),
                          w->sums ? kn_arg_buffer(w->bias_sums, 0) : kn_conv_bias_arg(problem),
                          kn_arg_struct(&w->shape, sizeof w->shape), kn_arg_struct(&w->cut_up, sizeof w->cut_up),
                          kn_arg_i32(problem->bias.buffer != NULL)));
}

static kn_status run_weights(kn_stream *stream, const kn_conv_problem *problem)
{
    depthwise_weights_pass w = {.problem = problem};
    cut_weights(&w);
    kn_status status = alloc_sums(&w, stream);
    if (status == KN_OK)
        status = launch_sums(&w, stream);
    if (status == KN_OK && w.sums)
        status = kn_conv_total_gradient(stream, problem, w.sums, w.shares, w.bias_sums, w.shares,
                                        problem->shape.out_channels / problem->shape.groups);
    kn_buffer_free(w.sums);
    kn_buffer_free(w.bias_sums);
    return status;
}

kn_status kn_conv_run_depthwise(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    return problem->pass == KN_CONV_WEIGHTS ? run_weights(stream, problem) : correlate(stream, problem);
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* Offsets in a plane, and planes, blocks and work-items, must have 32-bit indices. */
static bool is_numbered(const kn_conv_shape *s, int d)
{
    return (double)s->in_size[d] + (double)s->out_size[d] * (double)s->stride[d] + (double)s->padding[d] +
               (double)s->kernel_size[d] * (double)s->dilation[d] <
           1 << 28;
}

static bool holds_weights_group(const kn_limits *limits)
{
    return limits->max_work_group_size >= GROUP && limits->local_memory >= (size_t)16 << 10;
}

bool kn_conv_supports_depthwise(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const double most = 2147483647.0, in = (double)s->in_size[1] * (double)s->in_size[2],
                 out = (double)s->out_size[1] * (double)s->out_size[2];
    const double planes = (double)s->images * (double)s->out_channels;
    if (problem->pass == KN_CONV_WEIGHTS && !holds_weights_group(limits))
        return false;
    return kn_conv_is_flat(s) && s->groups == s->in_channels && is_numbered(s, 1) && is_numbered(s, 2) && in < most &&
           out < most && planes * in < most && planes * out < most;
}

bool kn_conv_prefers_depthwise(const kn_limits *limits, const void *problem)
{
    return !limits->is_cpu && ((const kn_conv_problem *)problem)->shape.groups > 1;
}
