/* ops/conv/cpu/stencil.c - depthwise convolution with stride 1 and a small kernel on CPU devices, three passes, a
 * channel's image at a time in a padded grid (cl/conv/cpu/stencil.cl). */
#include "ops/conv/cpu/planes.h"

#include <stdio.h>

enum { ROWS = 4 };         /* of the result at a time: ROWS in cl/conv/cpu/stencil.cl */
enum { MAX_TAPS = 5 };     /* along each dimension: all are unrolled */
enum { MIN_VECTORS = 16 }; /* of a result: of less, preparing a plane takes longer than conv/cpu/channels.cl does */
enum { PLANE_BYTES = 256 << 10 }; /* larger grids do not fit the L2 cache */

/* The grid: rows of `width` pixels, the image's first at `before`. */
static kn_conv_plane_shape grid_of(const kn_conv_problem *problem)
{
    kn_conv_plane_shape p = kn_conv_plane_shape_of(problem);
    p.width = p.columns + p.kernel_columns - 1;
    p.line = (p.rows + p.kernel_rows - 1) * p.width;
    p.before = -kn_conv_first_tap(p.row_shift, p.row_distance, p.kernel_rows) * p.width -
               kn_conv_first_tap(p.column_shift, p.column_distance, p.kernel_columns);
    return p;
}

static void describe(kn_conv_plane_pass *p, const kn_limits *limits)
{
    const kn_conv_shape *s = &p->problem->shape;
    p->shape = grid_of(p->problem);
    p->element = kn_conv_element(s);
    p->vector_width = kn_conv_vector_width(limits, s->f64);
    p->scratch_size = kn_round_up_i64(p->shape.line, p->vector_width);
    snprintf(p->options, sizeof p->options, "%s -DVW=%d -DKR=%d -DKC=%d", kn_options_f64_or_f32(s->f64),
             (int)p->vector_width, (int)s->kernel_size[1], (int)s->kernel_size[2]);
}

kn_status kn_conv_run_stencil(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    kn_conv_plane_pass p = {.problem = problem, .source = "conv/cpu/stencil.cl", .kernel = "conv_stencil"};
    describe(&p, kn_device_limits(kn_stream_device(stream)));
    p.tasks = p.shape.images * p.shape.channels;
    if (problem->pass == KN_CONV_WEIGHTS) {
        p.kernel = "conv_stencil_weights";
        p.tasks = p.shape.channels;
    }
    return kn_conv_run_plane_pass(stream, &p);
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* Does the input along a dimension start and end within the grid, for `results` results? */
static bool fits_grid(int64_t read, int64_t spread, int64_t results, int64_t shift, int64_t distance, int64_t taps)
{
    const int64_t first = kn_conv_first_tap(shift, distance, taps);
    return first <= 0 && read > 0 && -first + (read - 1) * spread + 1 <= results + taps - 1;
}

bool kn_conv_supports_stencil(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_plane_shape p = kn_conv_plane_shape_of(problem);
    const int64_t width = kn_conv_vector_width(limits, s->f64);
    for (int d = 1; d < 3; d++)
        if (s->dilation[d] != 1 || s->kernel_size[d] > MAX_TAPS || (s->stride[d] != 1 && problem->pass != KN_CONV_DATA))
            return false;
    return kn_conv_is_depthwise(problem) && p.rows >= ROWS && p.columns >= width && p.rows * p.columns < 1 << 24 &&
           fits_grid(p.read_rows, p.spread_rows, p.rows, p.row_shift, p.row_distance, p.kernel_rows) &&
           fits_grid(p.read_columns, p.spread_columns, p.columns, p.column_shift, p.column_distance, p.kernel_columns);
}

/* Of the weights' gradient, where many of the lanes of a row's last vector would be idle (rows of 17 and 18 pixels),
 * conv/cpu/channels.c takes 0.7 to 0.95 of the time; of 20 and more pixels up to 2 times as long. */
bool kn_conv_prefers_stencil(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_plane_shape p = grid_of(problem);
    const int64_t width = kn_conv_vector_width(limits, s->f64);
    const bool fills = problem->pass != KN_CONV_WEIGHTS || 5 * p.columns >= 3 * kn_round_up_i64(p.columns, width);
    return limits->is_cpu && s->groups > 1 && fills && kn_conv_supports_stencil(limits, problem) &&
           p.rows * p.columns >= MIN_VECTORS * width && p.line * kn_conv_element(s) <= PLANE_BYTES;
}
