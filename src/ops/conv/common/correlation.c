/* ops/conv/common/correlation.c - describes forward and backward-data as correlations, and prepares their images and
 * weights. */
#include "ops/conv/common/correlation.h"

#include <stdio.h>

/* --- shared with backward-weights --------------------------------------------------------------------------------- */

int kn_conv_vector_width(const kn_limits *limits, bool f64) { return kn_limits_vector_width(limits, f64); }

bool kn_conv_many_registers(const kn_limits *limits) { return limits->vector_registers >= 32; }

const char *kn_conv_options(char *buffer, const kn_limits *limits, bool f64, int vectors, const char *rows_name,
                            int rows)
{
    snprintf(buffer, KN_CONV_OPTIONS, "%s -DVW=%d -DKV=%d -D%s=%d", kn_options_f64_or_f32(f64),
             kn_conv_vector_width(limits, f64), vectors, rows_name, rows);
    return buffer;
}

int kn_conv_row_vector_width(const kn_limits *limits, bool f64, int64_t columns)
{
    int width = kn_conv_vector_width(limits, f64);
    while (width > columns && width > 2)
        width /= 2;
    return width <= columns ? width : 0;
}

bool kn_conv_row_is_wide(const kn_limits *limits, bool f64, int64_t columns)
{
    return columns >= kn_min_i64(4, kn_conv_vector_width(limits, f64));
}

kn_conv_padding kn_conv_choose_padding(const kn_limits *limits, const int64_t size[3], int64_t planes,
                                       const int64_t low[3], const int64_t high[3])
{
    if (low[1] >= 0 && low[2] >= 0 && high[1] < size[1] && high[2] < size[2])
        return (kn_conv_padding){.height = size[1],
                                 .width = size[2],
                                 .padded_height = size[1],
                                 .padded_width = size[2],
                                 .planes_per_item = 1};
    kn_conv_padding padding = {.height = size[1],
                               .width = size[2],
                               .padded_height = high[1] - low[1] + 1,
                               .padded_width = high[2] - low[2] + 1,
                               .top = -low[1],
                               .left = -low[2],
                               .planes = planes,
                               .planes_per_item = kn_max_i64(1, planes / (16 * limits->compute_units))};
    return padding;
}

int64_t kn_conv_pad_items(const kn_conv_padding *padding)
{
    return kn_div_up(padding->planes, padding->planes_per_item);
}

static double padded_size(const kn_conv_shape *s, int d)
{
    const int64_t read = kn_max_i64(s->in_size[d], s->out_size[d] * s->stride[d]);
    return (double)read + 2.0 * (double)(s->kernel_size[d] * s->dilation[d] + s->padding[d]);
}

bool kn_conv_table_fits(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const double channels = (double)kn_conv_from(problem).channels;
    return kn_conv_is_flat(s) && channels * padded_size(s, 1) * padded_size(s, 2) < 2147483647.0;
}

/* --- descriptions ----------------------------------------------------------------------------------------------- */

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

kn_conv_residue_class kn_conv_choose_residue(const kn_conv_shape *s, int d, int64_t residue)
{
    int64_t stride = s->stride[d], dilation = s->dilation[d];
    kn_conv_residue_class r = {.rows = residue < s->in_size[d] ? (s->in_size[d] - residue - 1) / stride + 1 : 0,
                               .step = stride / greatest_common_divisor(stride, dilation)};
    while (r.first < r.step && (residue + s->padding[d] - r.first * dilation) % stride != 0)
        r.first++;
    r.taps = r.first < r.step && r.first < s->kernel_size[d] ? (s->kernel_size[d] - 1 - r.first) / r.step + 1 : 0;
    r.origin = r.taps > 0 ? (residue + s->padding[d] - r.first * dilation) / stride : 0;
    r.distance = -(r.step * dilation) / stride;
    return r;
}

kn_conv_residue_class kn_conv_choose_class(const kn_conv_problem *problem, int d, int64_t residue)
{
    const kn_conv_shape *s = &problem->shape;
    if (problem->pass == KN_CONV_DATA)
        return kn_conv_choose_residue(s, d, residue);
    return (kn_conv_residue_class){.rows = s->out_size[d],
                                   .step = 1,
                                   .taps = s->kernel_size[d],
                                   .origin = -s->padding[d],
                                   .distance = s->dilation[d]};
}

/* The range of rows that all correlations of a problem read, including rows in the padding. */
static void range_read(const kn_conv_problem *problem, int d, int64_t *low, int64_t *high)
{
    const kn_conv_shape *s = &problem->shape;
    *low = *high = 0;
    if (problem->pass != KN_CONV_DATA) {
        *low = -s->padding[d];
        *high = *low + (s->out_size[d] - 1) * s->stride[d] + (s->kernel_size[d] - 1) * s->dilation[d];
        return;
    }
    for (int64_t residue = 0; residue < s->stride[d]; residue++) {
        kn_conv_residue_class r = kn_conv_choose_residue(s, d, residue);
        if (r.taps == 0 || r.rows == 0)
            continue;
        *low = kn_min_i64(*low, r.origin + (r.taps - 1) * r.distance);
        *high = kn_max_i64(*high, r.origin + r.rows - 1);
    }
}

int64_t kn_conv_correlations(const kn_conv_problem *problem)
{
    return problem->pass == KN_CONV_DATA ? problem->shape.stride[1] * problem->shape.stride[2] : 1;
}

bool kn_conv_describe_correlation(kn_conv_correlation *c, const kn_limits *limits, const kn_conv_problem *problem,
                                  int64_t i)
{
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_side from = kn_conv_from(problem), to = kn_conv_to(problem);
    const bool data = problem->pass == KN_CONV_DATA;
    const int64_t row = i / s->stride[2], column = i % s->stride[2];
    const kn_conv_residue_class r[2] = {kn_conv_choose_class(problem, 1, row),
                                        kn_conv_choose_class(problem, 2, column)};
    const int64_t area = s->kernel_size[1] * s->kernel_size[2], to_area = to.size[1] * to.size[2];
    int64_t low[3], high[3];
    for (int d = 1; d < 3; d++)
        range_read(problem, d, &low[d], &high[d]);
    *c = (kn_conv_correlation){.problem = problem, .x = from.operand, .y = to.operand};
    c->y.offset += row * to.size[2] + column;
    c->padding = kn_conv_choose_padding(limits, from.size, s->images * s->groups * from.channels, low, high);
    const int64_t pitch = c->padding.padded_width, plane = c->padding.padded_height * pitch;
    c->taps = (kn_conv_tap_list){.inner = from.channels,
                                 .rows = r[0].taps,
                                 .columns = r[1].taps,
                                 .plane = plane,
                                 .pitch = pitch,
                                 .row_origin = c->padding.top + r[0].origin,
                                 .row_distance = r[0].distance,
                                 .column_origin = c->padding.left + r[1].origin,
                                 .column_distance = r[1].distance};
    c->weights = (kn_conv_weight_layout){.groups = s->groups,
                                         .outer = to.channels,
                                         .group_stride = to.channels * from.channels * area,
                                         .outer_stride = data ? area : from.channels * area,
                                         .inner_stride = data ? to.channels * area : area,
                                         .row_first = r[0].first,
                                         .row_step = r[0].step,
                                         .column_first = r[1].first,
                                         .column_step = r[1].step,
                                         .kernel_columns = s->kernel_size[2]};
    c->grid = (kn_conv_grid){.images = s->images,
                             .rows = r[0].rows,
                             .columns = r[1].rows,
                             .x_image = s->groups * from.channels * plane,
                             .x_group = from.channels * plane,
                             .x_row = data ? pitch : s->stride[1] * pitch,
                             .x_column = data ? 1 : s->stride[2],
                             .y_image = s->groups * to.channels * to_area,
                             .y_channel = to_area,
                             .y_row = data ? s->stride[1] * to.size[2] : to.size[2],
                             .y_column = data ? s->stride[2] : 1,
                             .taps = from.channels * r[0].taps * r[1].taps,
                             .outer = to.channels,
                             .groups = s->groups};
    return r[0].rows > 0 && r[1].rows > 0;
}

kn_conv_gradient_layout kn_conv_gradient_layout_of(const kn_conv_correlation *c)
{
    const kn_conv_grid *g = &c->grid;
    return (kn_conv_gradient_layout){.images = g->images,
                                     .rows = g->rows,
                                     .columns = g->columns,
                                     .groups = g->groups,
                                     .outer = g->outer,
                                     .taps = g->taps,
                                     .x_image = g->x_image,
                                     .x_group = g->x_group,
                                     .x_row = g->x_row};
}

/* In one dimension: the number of pairs of output row and tap that read inside the image, and of all pairs. */
static void count_pairs(const kn_conv_problem *problem, int d, int64_t *inside, int64_t *all)
{
    const kn_conv_shape *s = &problem->shape;
    const bool backward = problem->pass == KN_CONV_DATA;
    *inside = 0;
    *all = backward ? 0 : s->out_size[d] * s->kernel_size[d];
    for (int64_t r = 0; r < s->kernel_size[d]; r++) {
        /* first and last output row whose input row p * stride - padding + r * dilation lies in 0 .. size - 1 */
        int64_t shift = s->padding[d] - r * s->dilation[d], top = s->in_size[d] - 1 + shift;
        int64_t first = shift > 0 ? kn_div_up(shift, s->stride[d]) : 0;
        int64_t last = top < 0 ? -1 : kn_min_i64(s->out_size[d] - 1, top / s->stride[d]);
        *inside += kn_max_i64(0, last - first + 1);
    }
    for (int64_t residue = 0; backward && residue < s->stride[d]; residue++) {
        kn_conv_residue_class c = kn_conv_choose_residue(s, d, residue);
        *all += c.rows * c.taps;
    }
}

double kn_conv_padding_factor(const kn_conv_problem *problem)
{
    double factor = 1;
    for (int d = 1; d < 3; d++) {
        int64_t inside, all;
        count_pairs(problem, d, &inside, &all);
        factor *= (double)all / (double)kn_max_i64(inside, 1);
    }
    return factor;
}

/* --- preparation -------------------------------------------------------------------------------------------------- */

void kn_conv_free_workspace(kn_conv_workspace *w)
{
    kn_buffer_free(w->padded);
    kn_buffer_free(w->packed);
    kn_buffer_free(w->table);
}

kn_status kn_conv_alloc_padded(kn_buffer **padded, kn_stream *stream, const kn_conv_correlation *c)
{
    const kn_conv_shape *s = &c->problem->shape;
    const kn_conv_padding *p = &c->padding;
    if (p->planes == 0)
        return KN_OK;
    return kn_buffer_alloc(padded, stream,
                           (size_t)(p->planes * p->padded_height * p->padded_width * kn_conv_element(s)));
}

kn_status kn_conv_alloc_workspace(kn_conv_workspace *w, kn_stream *stream, const kn_conv_correlation *c, int64_t block)
{
    const kn_conv_shape *s = &c->problem->shape;
    const int64_t taps = c->taps.inner * s->kernel_size[1] * s->kernel_size[2];
    const int64_t channels = c->grid.groups * kn_div_up(c->grid.outer, block) * block;
    KN_TRY(kn_conv_alloc_padded(&w->padded, stream, c));
    KN_TRY(kn_buffer_alloc(&w->packed, stream, (size_t)(channels * taps * kn_conv_element(s))));
    return kn_buffer_alloc(&w->table, stream, (size_t)taps * sizeof(int32_t));
}

kn_status kn_conv_prepare(kn_stream *stream, const kn_conv_correlation *c, const kn_conv_workspace *w, int64_t block)
{
    char options[KN_CONV_OPTIONS];
    const kn_conv_shape *s = &c->problem->shape;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    int64_t items =
        kn_conv_pad_items(&c->padding) + c->grid.groups * kn_div_up(c->grid.outer, block) * c->taps.inner + 1;
    snprintf(options, sizeof options, "%s -DVW=%d", kn_options_f64_or_f32(s->f64),
             kn_conv_vector_width(limits, s->f64));
    return kn_run(stream, .source = "conv/common/prepare.cl", .kernel = "conv_prepare", .operation = "conv2d",
                  .options = options, .dims = 1, .global = {(size_t)items}, .local = {1},
                  KN_ARGS(kn_conv_arg(s, c->x), kn_conv_arg(s, c->problem->weight),
                          kn_arg_buffer(w->padded ? w->padded : w->packed, 0),
                          kn_arg_buffer(w->packed, w->weights_at * kn_conv_element(s)),
                          kn_arg_buffer(w->table, w->table_at * (int64_t)sizeof(int32_t)),
                          kn_arg_struct(&c->padding, sizeof c->padding), kn_arg_struct(&c->weights, sizeof c->weights),
                          kn_arg_struct(&c->taps, sizeof c->taps), kn_arg_i32(block)));
}
