/* ops/conv/cpu/planes.c - depthwise convolution on CPU devices, three passes, a channel's image at a time
 * (cl/conv/cpu/planes.cl). */
#include "ops/conv/cpu/planes.h"

#include <stdio.h>

enum { VECTORS = 4 };             /* at a time: VX in cl/conv/cpu/planes.cl */
enum { RUN = 1024 };              /* elements of the masks, which should stay in the L1 cache */
enum { PLANE_BYTES = 256 << 10 }; /* longer lines do not fit the L2 cache */

/* Zeros before and after the line, for taps outside the image. */
static void choose_margins(kn_conv_plane_shape *p, int64_t rows, int64_t vector_width)
{
    int64_t last_row = p->row_shift + (p->kernel_rows - 1) * p->row_distance,
            last_column = p->column_shift + (p->kernel_columns - 1) * p->column_distance;
    int64_t low = kn_min_i64(p->row_shift, last_row) * p->width + kn_min_i64(p->column_shift, last_column),
            high = kn_max_i64(p->row_shift, last_row) * p->width + kn_max_i64(p->column_shift, last_column);
    int64_t filled = ((p->read_rows - 1) * p->spread_rows + 1) * p->width;
    p->before = kn_round_up_i64(kn_max_i64(0, -low), vector_width);
    p->line = p->before + kn_max_i64(filled, rows * p->width + kn_max_i64(0, high)) + VECTORS * vector_width;
    p->line = kn_round_up_i64(p->line, vector_width);
}

/* Output rows processed at a time: several, as one line, if they correspond to the line's rows. */
static void choose_run(kn_conv_plane_shape *p, int64_t vector_width)
{
    bool same = p->step_rows == 1 && p->step_columns == 1 && p->columns == p->width;
    p->rows_per_run = same ? kn_max_i64(1, kn_min_i64(p->rows, RUN / p->width)) : 1;
    p->run = kn_round_up_i64(p->rows_per_run * p->width, VECTORS * vector_width);
}

static void describe(kn_conv_plane_pass *p, const kn_limits *limits)
{
    const kn_conv_shape *s = &p->problem->shape;
    const kn_conv_plane_shape shape = kn_conv_plane_shape_of(p->problem);
    p->shape = shape;
    p->element = kn_conv_element(s);
    p->vector_width = kn_conv_vector_width(limits, s->f64);
    choose_run(&p->shape, p->vector_width);
    choose_margins(&p->shape, (shape.rows - 1) * shape.step_rows + 1, p->vector_width);
    snprintf(p->options, sizeof p->options, "%s -DVW=%d", kn_options_f64_or_f32(s->f64), (int)p->vector_width);
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

kn_status kn_conv_run_planes(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    kn_conv_plane_pass p = {.problem = problem, .source = "conv/cpu/planes.cl", .kernel = "conv_planes"};
    describe(&p, kn_device_limits(kn_stream_device(stream)));
    p.tasks = p.shape.images * p.shape.channels;
    p.scratch_size = p.shape.line + p.shape.run * (1 + p.shape.kernel_columns);
    if (problem->pass == KN_CONV_WEIGHTS) {
        p.kernel = "conv_planes_weights";
        p.tasks = s->out_channels;
        p.shape.gradient_line =
            kn_round_up_i64(p.shape.rows * s->stride[1] * p.shape.width, p.vector_width) + p.vector_width;
        p.scratch_size = p.shape.line + p.shape.gradient_line + kn_conv_taps(s) * p.vector_width +
                         p.shape.kernel_columns * p.shape.run;
    }
    return kn_conv_run_plane_pass(stream, &p);
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* Every pixel of the result must correspond to a pixel of the line. */
bool kn_conv_supports_planes(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    const double most = 1 << 28;
    double rows = (double)s->in_size[1] + (double)s->out_size[1] * (double)s->stride[1] +
                  2 * (double)s->kernel_size[1] * (double)s->dilation[1] + 2 * (double)s->padding[1];
    double width = (double)s->in_size[2] + 2 * (double)s->kernel_size[2] * (double)s->dilation[2];
    (void)limits;
    return kn_conv_is_depthwise(problem) && (s->out_size[2] - 1) * s->stride[2] < s->in_size[2] && rows * width < most;
}

bool kn_conv_prefers_planes(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    bool small = s->in_size[1] * s->in_size[2] * (s->f64 ? 8 : 4) <= PLANE_BYTES;
    return limits->is_cpu && s->groups > 1 && small && s->stride[1] <= 2 && s->stride[2] <= 2 &&
           !kn_conv_is_depthwise_signal(limits, problem) && !kn_conv_sums_rows(limits, problem);
}
