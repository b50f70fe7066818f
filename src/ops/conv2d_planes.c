/* ops/conv2d_planes.c - depthwise convolution on CPU devices, three passes, a channel's image at a time
 * (cl/conv/planes.cl). */
#include "ops/conv2d_planes.h"

#include <stdio.h>

enum { VECTORS = 4 };             /* at a time: VX in cl/conv/planes.cl */
enum { RUN = 1024 };              /* elements of the masks, which should stay in the first-level cache */
enum { PLANE_BYTES = 256 << 10 }; /* lines longer than that leave the second-level cache */
enum { LEAST_TASKS = 64 }; /* of backward-weights, whatever the device: the order of sums must not depend on it */

typedef struct planes_pass {
    const kn_conv2d_problem *problem;
    kn_conv2d_plane_shape shape;
    int64_t element, vector_width, items, per_item, scratch_size; /* elements */
    char options[KN_CONV2D_OPTIONS];
} planes_pass;

static int64_t round_up(int64_t n, int64_t step) { return kn_div_up(n, step) * step; }

/* Zeros before and after the line, so that all taps of all its pixels find some. */
static void choose_margins(kn_conv2d_plane_shape *p, int64_t rows, int64_t vector_width)
{
    int64_t last_row = p->row_shift + (p->kernel_rows - 1) * p->row_distance,
            last_column = p->column_shift + (p->kernel_columns - 1) * p->column_distance;
    int64_t low = kn_min_i64(p->row_shift, last_row) * p->width + kn_min_i64(p->column_shift, last_column),
            high = kn_max_i64(p->row_shift, last_row) * p->width + kn_max_i64(p->column_shift, last_column);
    int64_t filled = ((p->read_rows - 1) * p->spread_rows + 1) * p->width;
    p->before = round_up(kn_max_i64(0, -low), vector_width);
    p->line = p->before + kn_max_i64(filled, rows * p->width + kn_max_i64(0, high)) + VECTORS * vector_width;
    p->line = round_up(p->line, vector_width);
}

/* Rows of the result at a time: several, in one line, where it is the line's rows. */
static void choose_run(kn_conv2d_plane_shape *p, int64_t vector_width)
{
    bool same = p->step_rows == 1 && p->step_columns == 1 && p->columns == p->width;
    p->rows_per_run = same ? kn_max_i64(1, kn_min_i64(p->rows, RUN / p->width)) : 1;
    p->run = round_up(p->rows_per_run * p->width, VECTORS * vector_width);
}

kn_conv2d_plane_shape kn_conv2d_plane_shape_of_forward(const kn_conv2d_shape *s)
{
    return (kn_conv2d_plane_shape){.images = s->images,
                                   .read_channels = s->in_channels,
                                   .channels = s->out_channels,
                                   .read_rows = s->in_size[0],
                                   .read_columns = s->in_size[1],
                                   .rows = s->out_size[0],
                                   .columns = s->out_size[1],
                                   .width = s->in_size[1],
                                   .spread_rows = 1,
                                   .spread_columns = 1,
                                   .step_rows = s->stride[0],
                                   .step_columns = s->stride[1],
                                   .kernel_rows = s->kernel_size[0],
                                   .kernel_columns = s->kernel_size[1],
                                   .row_shift = -s->padding[0],
                                   .row_distance = s->dilation[0],
                                   .column_shift = -s->padding[1],
                                   .column_distance = s->dilation[1]};
}

kn_conv2d_plane_shape kn_conv2d_plane_shape_of_backward(const kn_conv2d_shape *s)
{
    kn_conv2d_plane_shape p = kn_conv2d_plane_shape_of_forward(s);
    p.read_rows = s->out_size[0];
    p.read_columns = s->out_size[1];
    p.rows = s->in_size[0];
    p.columns = s->in_size[1];
    p.spread_rows = s->stride[0];
    p.spread_columns = s->stride[1];
    p.step_rows = p.step_columns = 1;
    p.row_shift = s->padding[0];
    p.row_distance = -s->dilation[0];
    p.column_shift = s->padding[1];
    p.column_distance = -s->dilation[1];
    return p;
}

static void describe(planes_pass *p, const kn_limits *limits, kn_conv2d_plane_shape shape)
{
    const kn_conv2d_shape *s = &p->problem->shape;
    p->shape = shape;
    p->element = s->f64 ? 8 : 4;
    p->vector_width = kn_conv2d_vector_width(limits, s->f64);
    choose_run(&p->shape, p->vector_width);
    choose_margins(&p->shape, (shape.rows - 1) * shape.step_rows + 1, p->vector_width);
    snprintf(p->options, sizeof p->options, "%s -DVW=%d", s->f64 ? "-DT=double -DKN_USE_F64" : "-DT=float",
             (int)p->vector_width);
}

/* Work-items enough to even out, and each with several of `tasks`, for what it prepares once. */
static void choose_items(planes_pass *p, const kn_limits *limits, int64_t tasks)
{
    p->per_item = kn_div_up(tasks, 16 * limits->compute_units);
    p->items = kn_div_up(tasks, p->per_item);
}

static kn_status run(kn_stream *stream, const kn_conv2d_problem *problem, bool backward)
{
    const kn_conv2d_shape *s = &problem->shape;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    planes_pass p = {.problem = problem};
    kn_buffer *scratch = NULL;
    bool has_bias = !backward && problem->bias.buffer;
    kn_activation activation = backward ? KN_ACTIVATION_NONE : problem->activation;
    describe(&p, limits, backward ? kn_conv2d_plane_shape_of_backward(s) : kn_conv2d_plane_shape_of_forward(s));
    choose_items(&p, limits, p.shape.images * p.shape.channels);
    p.scratch_size = p.shape.line + p.shape.run * (1 + p.shape.kernel_columns);
    KN_TRY(kn_buffer_alloc(&scratch, stream, (size_t)(p.items * p.scratch_size * p.element)));
    kn_status status =
        kn_run(stream, .source = "conv/planes.cl", .kernel = "conv_planes",
               .operation = backward ? "conv2d_backward_data" : "conv2d", .options = p.options, .dims = 1,
               .global = {(size_t)p.items}, .local = {1},
               KN_ARGS(kn_conv2d_arg(s, backward ? problem->y : problem->x), kn_conv2d_arg(s, problem->weight),
                       kn_conv2d_arg(s, has_bias ? problem->bias : problem->weight),
                       kn_conv2d_arg(s, backward ? problem->x : problem->y), kn_arg_buffer(scratch, 0),
                       kn_arg_struct(&p.shape, sizeof p.shape), kn_arg_i64(p.per_item), kn_arg_i64(p.scratch_size),
                       kn_arg_i32(has_bias), KN_CONV2D_CUT_ARGS(s->f64, activation)));
    kn_buffer_free(scratch);
    return status;
}

kn_status kn_conv2d_planes_forward(kn_stream *stream, const void *problem) { return run(stream, problem, false); }
kn_status kn_conv2d_planes_backward_data(kn_stream *stream, const void *problem) { return run(stream, problem, true); }

/* --- backward-weights --------------------------------------------------------------------------------------------- */

kn_status kn_conv2d_choose_plane_shares(kn_conv2d_plane_shares *b, kn_stream *stream, const kn_conv2d_problem *problem,
                                        int64_t tasks)
{
    const kn_conv2d_shape *s = &problem->shape;
    int64_t element = s->f64 ? 8 : 4;
    b->images_per_share = kn_div_up(s->images, kn_min_i64(s->images, kn_div_up(LEAST_TASKS, tasks)));
    b->shares = kn_div_up(s->images, b->images_per_share);
    if (b->shares == 1)
        return KN_OK;
    KN_TRY(kn_buffer_alloc(&b->sums, stream, (size_t)(b->shares * s->out_channels * kn_conv2d_taps(s) * element)));
    return kn_buffer_alloc(&b->bias_part, stream, (size_t)(b->shares * s->out_channels * element));
}

kn_arg kn_conv2d_plane_sums(const kn_conv2d_plane_shares *b, const kn_conv2d_problem *problem)
{
    return b->sums ? kn_arg_buffer(b->sums, 0) : kn_conv2d_arg(&problem->shape, problem->weight);
}

kn_arg kn_conv2d_plane_bias_sums(const kn_conv2d_plane_shares *b, const kn_conv2d_problem *problem)
{
    return b->bias_part ? kn_arg_buffer(b->bias_part, 0)
                        : kn_conv2d_arg(&problem->shape, problem->bias.buffer ? problem->bias : problem->weight);
}

kn_status kn_conv2d_total_plane_shares(const kn_conv2d_plane_shares *b, kn_stream *stream,
                                       const kn_conv2d_problem *problem)
{
    const kn_conv2d_shape *s = &problem->shape;
    return b->shares == 1 ? KN_OK
                          : kn_conv2d_total_gradient(stream, problem, b->sums, b->shares, b->bias_part, b->shares,
                                                     s->out_channels / s->groups);
}

void kn_conv2d_free_plane_shares(const kn_conv2d_plane_shares *b)
{
    kn_buffer_free(b->sums);
    kn_buffer_free(b->bias_part);
}

static kn_status launch_weights(const planes_pass *p, kn_stream *stream, const kn_conv2d_plane_shares *b,
                                kn_buffer *scratch, int64_t dy_line)
{
    const kn_conv2d_problem *problem = p->problem;
    const kn_conv2d_shape *s = &problem->shape;
    return kn_run(stream, .source = "conv/planes.cl", .kernel = "conv_planes_weights",
                  .operation = "conv2d_backward_weights", .options = p->options, .dims = 1,
                  .global = {(size_t)p->items}, .local = {1},
                  KN_ARGS(kn_conv2d_arg(s, problem->x), kn_conv2d_arg(s, problem->y), kn_conv2d_plane_sums(b, problem),
                          kn_conv2d_plane_bias_sums(b, problem), kn_arg_buffer(scratch, 0),
                          kn_arg_struct(&p->shape, sizeof p->shape), kn_arg_i64(dy_line),
                          kn_arg_i64(b->images_per_share), kn_arg_i64(b->shares), kn_arg_i64(p->per_item),
                          kn_arg_i64(p->scratch_size), kn_arg_i32(problem->bias.buffer != NULL)));
}

kn_status kn_conv2d_planes_backward_weights(kn_stream *stream, const void *problem_)
{
    const kn_conv2d_problem *problem = problem_;
    const kn_conv2d_shape *s = &problem->shape;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    planes_pass p = {.problem = problem};
    kn_conv2d_plane_shares shares = {0};
    kn_buffer *scratch = NULL;
    kn_status status = kn_conv2d_choose_plane_shares(&shares, stream, problem, s->out_channels);
    describe(&p, limits, kn_conv2d_plane_shape_of_forward(s));
    choose_items(&p, limits, s->out_channels * shares.shares);
    int64_t taps = kn_conv2d_taps(s), dy_line = round_up(p.shape.rows * s->stride[0] * p.shape.width, p.vector_width);
    dy_line += p.vector_width;
    p.scratch_size = p.shape.line + dy_line + taps * p.vector_width + p.shape.kernel_columns * p.shape.run;
    if (status == KN_OK)
        status = kn_buffer_alloc(&scratch, stream, (size_t)(p.items * p.scratch_size * p.element));
    if (status == KN_OK)
        status = launch_weights(&p, stream, &shares, scratch, dy_line);
    if (status == KN_OK)
        status = kn_conv2d_total_plane_shares(&shares, stream, problem);
    kn_buffer_free(scratch);
    kn_conv2d_free_plane_shares(&shares);
    return status;
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* Every pixel of the result must have one of the line that it stands for. */
bool kn_conv2d_supports_planes(const kn_limits *limits, const void *problem)
{
    const kn_conv2d_shape *s = &((const kn_conv2d_problem *)problem)->shape;
    const double most = 1 << 28;
    double rows = (double)s->in_size[0] + (double)s->out_size[0] * (double)s->stride[0] +
                  2 * (double)s->kernel_size[0] * (double)s->dilation[0] + 2 * (double)s->padding[0];
    double width = (double)s->in_size[1] + 2 * (double)s->kernel_size[1] * (double)s->dilation[1];
    (void)limits;
    return s->groups == s->in_channels && (s->out_size[1] - 1) * s->stride[1] < s->in_size[1] && rows * width < most;
}

bool kn_conv2d_supports_planes_data(const kn_limits *limits, const void *problem)
{
    const kn_conv2d_shape *s = &((const kn_conv2d_problem *)problem)->shape;
    return kn_conv2d_supports_planes(limits, problem) && s->out_channels == s->groups;
}

bool kn_conv2d_prefers_planes(const kn_limits *limits, const void *problem)
{
    const kn_conv2d_shape *s = &((const kn_conv2d_problem *)problem)->shape;
    bool small = s->in_size[0] * s->in_size[1] * (s->f64 ? 8 : 4) <= PLANE_BYTES;
    return limits->is_cpu && s->groups > 1 && small && s->stride[0] <= 2 && s->stride[1] <= 2;
}
