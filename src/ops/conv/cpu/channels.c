/* ops/conv/cpu/channels.c - depthwise convolution of small images on CPU devices, all three passes, vectors along the
 * channels (cl/conv/cpu/channels.cl). */
#include "ops/conv/cpu/planes.h"

#include <stdio.h>

enum { MAX_TAPS = 9 }; /* of a gradient at a time: their sums are in registers */
/* Size of a grid and its result beyond which conv/cpu/planes.cl is faster: that reads its input once, though twice as
 * much for the weights. Grids scale with the device's vector width, and so, roughly, do the caches. */
enum { GRID_BYTES = 288 << 10, MANY_TAPS_GRID_BYTES = 512 << 10, WEIGHTS_GRID_BYTES = 1 << 20 };
/* For the weights of stride 1 conv/cpu/weights_rows.cl is faster beyond less. Of others planes take 2 to 30 times as
 * long with many taps or few rows, so the limit is one of memory. */
enum { ROWS_WEIGHTS_GRID_BYTES = 192 << 10, LARGE_WEIGHTS_GRID_BYTES = 4 << 20, FEW_ROWS = 4 };
enum { SIGNAL_TAPS = 12 }; /* up to which conv/cpu/bands.cl is faster for long signals */

/* Rows or columns of zeros before the image, for the first tap of the first pixel; and the grid's total: image, margins
 * and the reach of the last pixel's last tap. */
static int64_t margin(int64_t shift, int64_t distance, int64_t taps)
{
    return kn_max_i64(0, -kn_conv_first_tap(shift, distance, taps));
}

static int64_t extent(int64_t read, int64_t results, int64_t shift, int64_t distance, int64_t taps)
{
    int64_t reach = results + kn_max_i64(shift, shift + (taps - 1) * distance);
    return margin(shift, distance, taps) + kn_max_i64(read, reach);
}

static void choose_grid(kn_conv_plane_shape *p)
{
    int64_t rows = extent((p->read_rows - 1) * p->spread_rows + 1, (p->rows - 1) * p->step_rows + 1, p->row_shift,
                          p->row_distance, p->kernel_rows);
    p->width = extent((p->read_columns - 1) * p->spread_columns + 1, (p->columns - 1) * p->step_columns + 1,
                      p->column_shift, p->column_distance, p->kernel_columns);
    p->before = margin(p->row_shift, p->row_distance, p->kernel_rows) * p->width +
                margin(p->column_shift, p->column_distance, p->kernel_columns);
    p->line = rows * p->width;
}

/* All, or as few parts as possible, of about the same size. */
static int64_t taps_at_a_time(int64_t taps) { return kn_div_up(taps, kn_div_up(taps, MAX_TAPS)); }

static void describe(kn_conv_plane_pass *p, const kn_limits *limits)
{
    const kn_conv_shape *s = &p->problem->shape;
    kn_conv_plane_shape shape = kn_conv_plane_shape_of(p->problem);
    int64_t taps = kn_conv_taps(s), pixels = shape.rows * shape.columns;
    choose_grid(&shape);
    p->shape = shape;
    p->element = kn_conv_element(s);
    p->vector_width = kn_conv_vector_width(limits, s->f64);
    p->tasks = kn_div_up(shape.channels, p->vector_width);                /* blocks of channels */
    p->scratch_size = (shape.line + pixels + taps + 1) * p->vector_width; /* plus tables of 32-bit integers */
    p->scratch_size += shape.read_rows * shape.read_columns + 2 * pixels + taps;
    p->scratch_size = kn_div_up(p->scratch_size, p->vector_width) * p->vector_width;
    snprintf(p->options, sizeof p->options, "%s -DVW=%d -DTAPS=%d", kn_options_f64_or_f32(s->f64), (int)p->vector_width,
             (int)taps_at_a_time(taps));
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

kn_status kn_conv_run_channels(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    kn_conv_plane_pass p = {.problem = problem, .source = "conv/cpu/channels.cl"};
    p.kernel = problem->pass == KN_CONV_WEIGHTS ? "conv_channels_weights" : "conv_channels";
    describe(&p, kn_device_limits(kn_stream_device(stream)));
    if (problem->pass != KN_CONV_WEIGHTS)
        p.tasks *= p.shape.images;
    return kn_conv_run_plane_pass(stream, &p);
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* Offsets within the grid are 32 bits wide. Unlike in conv/cpu/planes.cl, columns of the result need not be columns of
 * the image. */
bool kn_conv_supports_channels(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    const double most = 1 << 24;
    double size = 1;
    (void)limits;
    for (int d = 1; d < 3; d++)
        size *= (double)s->in_size[d] + (double)s->out_size[d] * (double)s->stride[d] +
                2 * (double)s->kernel_size[d] * (double)s->dilation[d] + 2 * (double)s->padding[d];
    return kn_conv_is_depthwise(problem) && size < most;
}

static int64_t most_grid_bytes(const kn_limits *limits, const kn_conv_problem *problem)
{
    const bool many_taps = kn_conv_taps(&problem->shape) > MAX_TAPS;
    if (problem->pass != KN_CONV_WEIGHTS)
        return many_taps ? MANY_TAPS_GRID_BYTES : GRID_BYTES;
    if (kn_conv_sums_rows(limits, problem))
        return ROWS_WEIGHTS_GRID_BYTES;
    return many_taps || problem->shape.in_size[1] <= FEW_ROWS ? LARGE_WEIGHTS_GRID_BYTES : WEIGHTS_GRID_BYTES;
}

bool kn_conv_prefers_channels(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    kn_conv_plane_shape p = kn_conv_plane_shape_of_forward(s);
    int64_t lanes = kn_conv_vector_width(limits, s->f64), pixels = p.rows * p.columns;
    if (!limits->is_cpu || s->groups < lanes || kn_min_i64(p.read_rows * p.read_columns, pixels) < lanes ||
        (kn_conv_is_depthwise_signal(limits, problem) && kn_conv_taps(s) <= SIGNAL_TAPS))
        return false;
    choose_grid(&p);
    return (p.line + pixels) * lanes * kn_conv_element(s) <= most_grid_bytes(limits, problem);
}
