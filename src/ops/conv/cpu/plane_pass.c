/* ops/conv/cpu/plane_pass.c - shared by the implementations of depthwise convolution: plane shapes, work-items and
 * their scratch memory, shares of the images. */
#include "ops/conv/cpu/planes.h"

enum { MIN_TASKS = 64 }; /* of backward-weights; independent of the device, because the order of sums must be */

/* --- shapes ------------------------------------------------------------------------------------------------------- */

kn_conv_plane_shape kn_conv_plane_shape_of_forward(const kn_conv_shape *s)
{
    return (kn_conv_plane_shape){.images = s->images,
                                 .read_channels = s->in_channels,
                                 .channels = s->out_channels,
                                 .read_rows = s->in_size[1],
                                 .read_columns = s->in_size[2],
                                 .rows = s->out_size[1],
                                 .columns = s->out_size[2],
                                 .width = s->in_size[2],
                                 .spread_rows = 1,
                                 .spread_columns = 1,
                                 .step_rows = s->stride[1],
                                 .step_columns = s->stride[2],
                                 .kernel_rows = s->kernel_size[1],
                                 .kernel_columns = s->kernel_size[2],
                                 .row_shift = -s->padding[1],
                                 .row_distance = s->dilation[1],
                                 .column_shift = -s->padding[2],
                                 .column_distance = s->dilation[2]};
}

kn_conv_plane_shape kn_conv_plane_shape_of(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    kn_conv_plane_shape p = kn_conv_plane_shape_of_forward(s);
    if (problem->pass != KN_CONV_DATA)
        return p;
    p.read_rows = s->out_size[1];
    p.read_columns = s->out_size[2];
    p.rows = s->in_size[1];
    p.columns = s->in_size[2];
    p.spread_rows = s->stride[1];
    p.spread_columns = s->stride[2];
    p.step_rows = p.step_columns = 1;
    p.row_shift = s->padding[1];
    p.row_distance = -s->dilation[1];
    p.column_shift = s->padding[2];
    p.column_distance = -s->dilation[2];
    return p;
}

bool kn_conv_is_depthwise(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    return kn_conv_is_flat(s) && s->groups == s->in_channels &&
           (problem->pass != KN_CONV_DATA || s->groups == s->out_channels);
}

bool kn_conv_is_depthwise_signal(const kn_limits *limits, const kn_conv_problem *problem)
{
    enum { MIN_VECTORS = 16 };
    const kn_conv_shape *s = &problem->shape;
    const bool one_row = s->in_size[1] == 1 && s->out_size[1] == 1 && s->kernel_size[1] == 1 && s->stride[1] == 1;
    return problem->pass != KN_CONV_WEIGHTS && kn_conv_is_depthwise(problem) && one_row && s->stride[2] == 1 &&
           s->out_size[2] >= (int64_t)MIN_VECTORS * kn_conv_vector_width(limits, s->f64);
}

/* --- forward and backward-data ------------------------------------------------------------------------------------ */

/* Enough work-items for load balance, each with several of `tasks` to amortise its preparation. */
static kn_status start_items(kn_conv_plane_pass *p, kn_stream *stream, int64_t tasks)
{
    const int64_t most = 16 * kn_device_limits(kn_stream_device(stream))->compute_units;
    p->per_item = kn_div_up(tasks, most);
    p->items = kn_div_up(tasks, p->per_item);
    return kn_buffer_alloc(&p->scratch, stream, (size_t)(p->items * p->scratch_size * p->element));
}

static kn_status run_correlation(kn_stream *stream, kn_conv_plane_pass *p)
{
    const kn_conv_problem *problem = p->problem;
    const kn_conv_shape *s = &problem->shape;
    KN_TRY(start_items(p, stream, p->tasks));
    kn_status status =
        kn_run(stream, .source = p->source, .kernel = p->kernel, .operation = kn_conv_operation(problem),
               .options = p->options, .dims = 1, .global = {(size_t)p->items}, .local = {1},
               KN_ARGS(kn_conv_arg(s, kn_conv_from(problem).operand), kn_conv_arg(s, problem->weight),
                       kn_conv_bias_arg(problem), kn_conv_arg(s, kn_conv_to(problem).operand),
                       kn_arg_buffer(p->scratch, 0), kn_arg_struct(&p->shape, sizeof p->shape), kn_arg_i64(p->per_item),
                       kn_arg_i64(p->scratch_size), KN_CONV_EPILOGUE_ARGS(problem)));
    kn_buffer_free(p->scratch);
    return status;
}

/* --- backward-weights --------------------------------------------------------------------------------------------- */

/* Splits the images into shares if there are too few channels for all cores; a single share writes the result
 * directly. */
typedef struct plane_shares {
    int64_t shares, images_per_share;
    kn_buffer *sums, *bias_part; /* NULL with a single share */
} plane_shares;

/* Enough shares that there are MIN_TASKS, with `tasks` independent tasks each. Frees nothing on failure. */
static kn_status choose_shares(plane_shares *b, kn_stream *stream, const kn_conv_problem *problem, int64_t tasks)
{
    const kn_conv_shape *s = &problem->shape;
    int64_t element = s->f64 ? 8 : 4;
    b->images_per_share = kn_div_up(s->images, kn_min_i64(s->images, kn_div_up(MIN_TASKS, tasks)));
    b->shares = kn_div_up(s->images, b->images_per_share);
    if (b->shares == 1)
        return KN_OK;
    KN_TRY(kn_buffer_alloc(&b->sums, stream, (size_t)(b->shares * s->out_channels * kn_conv_taps(s) * element)));
    return kn_buffer_alloc(&b->bias_part, stream, (size_t)(b->shares * s->out_channels * element));
}

static kn_status launch_weights(const kn_conv_plane_pass *p, kn_stream *stream, const plane_shares *b)
{
    const kn_conv_problem *problem = p->problem;
    const kn_conv_shape *s = &problem->shape;
    return kn_run(
        stream, .source = p->source, .kernel = p->kernel, .operation = "conv2d_backward_weights", .options = p->options,
        .dims = 1, .global = {(size_t)p->items}, .local = {1},
        KN_ARGS(kn_conv_arg(s, problem->x), kn_conv_arg(s, problem->y), kn_conv_arg_or(b->sums, s, problem->weight),
                b->sums ? kn_arg_buffer(b->bias_part, 0) : kn_conv_bias_arg(problem), kn_arg_buffer(p->scratch, 0),
                kn_arg_struct(&p->shape, sizeof p->shape), kn_arg_i64(b->images_per_share), kn_arg_i64(b->shares),
                kn_arg_i64(p->per_item), kn_arg_i64(p->scratch_size), kn_arg_i32(problem->bias.buffer != NULL)));
}

static kn_status run_weights(kn_stream *stream, kn_conv_plane_pass *p)
{
    const kn_conv_shape *s = &p->problem->shape;
    plane_shares b = {0};
    kn_status status = choose_shares(&b, stream, p->problem, p->tasks);
    if (status == KN_OK)
        status = start_items(p, stream, p->tasks * b.shares);
    if (status == KN_OK)
        status = launch_weights(p, stream, &b);
    if (status == KN_OK && b.sums)
        status = kn_conv_total_gradient(stream, p->problem, b.sums, b.shares, b.bias_part, b.shares,
                                        s->out_channels / s->groups);
    kn_buffer_free(p->scratch);
    kn_buffer_free(b.sums);
    kn_buffer_free(b.bias_part);
    return status;
}

kn_status kn_conv_run_plane_pass(kn_stream *stream, kn_conv_plane_pass *p)
{
    return p->problem->pass == KN_CONV_WEIGHTS ? run_weights(stream, p) : run_correlation(stream, p);
}
