/* ops/conv/common/correlation.c - describes forward and backward-data as correlations, and runs them with a given
 * tile. */
#include "ops/conv/common/correlation.h"

#include <stdio.h>

/* --- shared with backward-weights --------------------------------------------------------------------------------- */

int kn_conv_vector_width(const kn_limits *limits, bool f64) { return kn_limits_vector_width(limits, f64); }

bool kn_conv_many_registers(const kn_limits *limits) { return limits->vector_registers >= 32; }

const char *kn_conv_options(char *buffer, const kn_limits *limits, bool f64, int vectors, const char *rows_name,
                            int rows)
{
    snprintf(buffer, KN_CONV_OPTIONS, "%s -DVW=%d -DKV=%d -D%s=%d", f64 ? "-DT=double -DKN_USE_F64" : "-DT=float",
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

bool kn_conv_table_fits(const kn_conv_shape *s, int64_t channels)
{
    return kn_conv_is_flat(s) && (double)(channels / s->groups) * padded_size(s, 1) * padded_size(s, 2) < 2147483647.0;
}

/* What forward and backward-weights read of x. */
static void describe_reading(const kn_conv_shape *s, const kn_limits *limits, kn_conv_padding *padding,
                             kn_conv_tap_list *taps)
{
    int64_t low[3], high[3];
    for (int d = 1; d < 3; d++) {
        low[d] = -s->padding[d];
        high[d] = low[d] + (s->out_size[d] - 1) * s->stride[d] + (s->kernel_size[d] - 1) * s->dilation[d];
    }
    *padding = kn_conv_choose_padding(limits, s->in_size, s->images * s->in_channels, low, high);
    *taps = (kn_conv_tap_list){.inner = s->in_channels / s->groups,
                               .rows = s->kernel_size[1],
                               .columns = s->kernel_size[2],
                               .plane = padding->padded_height * padding->padded_width,
                               .pitch = padding->padded_width,
                               .row_distance = s->dilation[1],
                               .column_distance = s->dilation[2]};
}

void kn_conv_describe_gradient(const kn_conv_shape *s, const kn_limits *limits, kn_conv_padding *padding,
                               kn_conv_tap_list *taps, kn_conv_gradient_layout *layout)
{
    describe_reading(s, limits, padding, taps);
    *layout = (kn_conv_gradient_layout){.images = s->images,
                                        .rows = s->out_size[1],
                                        .columns = s->out_size[2],
                                        .groups = s->groups,
                                        .outer = s->out_channels / s->groups,
                                        .taps = kn_conv_taps(s),
                                        .x_image = s->in_channels * taps->plane,
                                        .x_group = taps->inner * taps->plane,
                                        .x_row = s->stride[1] * taps->pitch,
                                        .x_column = s->stride[2]};
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

void kn_conv_describe_forward(kn_conv_correlation *c, const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    int64_t inner = s->in_channels / s->groups, outer = s->out_channels / s->groups;
    int64_t kernel_area = s->kernel_size[1] * s->kernel_size[2], out_area = s->out_size[1] * s->out_size[2];
    *c = (kn_conv_correlation){.f64 = s->f64,
                               .x = problem->x,
                               .weight = problem->weight,
                               .bias = problem->bias,
                               .y = problem->y,
                               .activation = problem->activation};
    describe_reading(s, limits, &c->padding, &c->taps);
    const int64_t pitch = c->taps.pitch, plane = c->taps.plane;
    c->weights = (kn_conv_weight_layout){.groups = s->groups,
                                         .outer = outer,
                                         .group_stride = outer * inner * kernel_area,
                                         .outer_stride = inner * kernel_area,
                                         .inner_stride = kernel_area,
                                         .row_step = 1,
                                         .column_step = 1,
                                         .kernel_columns = s->kernel_size[2]};
    c->grid = (kn_conv_grid){.images = s->images,
                             .rows = s->out_size[1],
                             .columns = s->out_size[2],
                             .x_image = s->in_channels * plane,
                             .x_group = inner * plane,
                             .x_row = s->stride[1] * pitch,
                             .x_column = s->stride[2],
                             .y_image = s->out_channels * out_area,
                             .y_channel = out_area,
                             .y_row = s->out_size[2],
                             .y_column = 1,
                             .taps = inner * kernel_area,
                             .outer = outer,
                             .groups = s->groups};
}

/* --- backward-data ------------------------------------------------------------------------------------------------ */

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

/* The range of rows of dy that dx reads, including rows in the padding. */
static void range_read(const kn_conv_shape *s, int d, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (int64_t residue = 0; residue < s->stride[d]; residue++) {
        kn_conv_residue_class r = kn_conv_choose_residue(s, d, residue);
        if (r.taps == 0 || r.rows == 0)
            continue;
        *low = kn_min_i64(*low, r.origin + (r.taps - 1) * r.distance);
        *high = kn_max_i64(*high, r.origin + r.rows - 1);
    }
}

int64_t kn_conv_residues(const kn_conv_shape *s) { return s->stride[1] * s->stride[2]; }

bool kn_conv_describe_residue(kn_conv_correlation *c, const kn_limits *limits, const kn_conv_problem *problem,
                              int64_t residue)
{
    const kn_conv_shape *s = &problem->shape;
    int64_t row = residue / s->stride[2], column = residue % s->stride[2], low[3], high[3];
    kn_conv_residue_class r[2] = {kn_conv_choose_residue(s, 1, row), kn_conv_choose_residue(s, 2, column)};
    for (int d = 1; d < 3; d++)
        range_read(s, d, &low[d], &high[d]);
    int64_t inner = s->out_channels / s->groups, outer = s->in_channels / s->groups;
    int64_t kernel_area = s->kernel_size[1] * s->kernel_size[2], in_area = s->in_size[1] * s->in_size[2];
    *c = (kn_conv_correlation){.f64 = s->f64, .x = problem->y, .weight = problem->weight};
    c->y = (kn_conv_operand){problem->x.buffer, problem->x.offset + row * s->in_size[2] + column};
    c->padding = kn_conv_choose_padding(limits, s->out_size, s->images * s->out_channels, low, high);
    int64_t pitch = c->padding.padded_width, plane = c->padding.padded_height * pitch;
    c->taps = (kn_conv_tap_list){.inner = inner,
                                 .rows = r[0].taps,
                                 .columns = r[1].taps,
                                 .plane = plane,
                                 .pitch = pitch,
                                 .row_origin = c->padding.top + r[0].origin,
                                 .row_distance = r[0].distance,
                                 .column_origin = c->padding.left + r[1].origin,
                                 .column_distance = r[1].distance};
    c->weights = (kn_conv_weight_layout){.groups = s->groups,
                                         .outer = outer,
                                         .group_stride = inner * outer * kernel_area,
                                         .outer_stride = kernel_area,
                                         .inner_stride = outer * kernel_area,
                                         .row_first = r[0].first,
                                         .row_step = r[0].step,
                                         .column_first = r[1].first,
                                         .column_step = r[1].step,
                                         .kernel_columns = s->kernel_size[2]};
    c->grid = (kn_conv_grid){.images = s->images,
                             .rows = r[0].rows,
                             .columns = r[1].rows,
                             .x_image = s->out_channels * plane,
                             .x_group = inner * plane,
                             .x_row = pitch,
                             .x_column = 1,
                             .y_image = s->in_channels * in_area,
                             .y_channel = in_area,
                             .y_row = s->stride[1] * s->in_size[2],
                             .y_column = s->stride[2],
                             .taps = inner * r[0].taps * r[1].taps,
                             .outer = outer,
                             .groups = s->groups};
    return r[0].rows > 0 && r[1].rows > 0;
}

void kn_conv_count_pairs(const kn_conv_shape *s, int d, bool backward, int64_t *inside, int64_t *all)
{
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

/* --- running ------------------------------------------------------------------------------------------------------ */

static void free_workspace(kn_conv_workspace *w)
{
    kn_buffer_free(w->padded);
    kn_buffer_free(w->packed);
    kn_buffer_free(w->table);
}

/* `taps` is per group; output channels are padded to whole blocks. */
static kn_status alloc_workspace(kn_conv_workspace *w, kn_stream *stream, const kn_conv_correlation *c, int64_t block,
                                 int64_t taps)
{
    int64_t element = c->f64 ? 8 : 4, channels = c->grid.groups * kn_div_up(c->grid.outer, block) * block;
    const kn_conv_padding *p = &c->padding;
    if (p->planes > 0)
        KN_TRY(kn_buffer_alloc(&w->padded, stream, (size_t)(p->planes * p->padded_height * p->padded_width * element)));
    KN_TRY(kn_buffer_alloc(&w->packed, stream, (size_t)(channels * taps * element)));
    return kn_buffer_alloc(&w->table, stream, (size_t)taps * sizeof(int32_t));
}

static kn_status prepare(kn_stream *stream, const kn_conv_correlation *c, const kn_conv_workspace *w, int64_t block)
{
    char options[KN_CONV_OPTIONS];
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    int64_t element = c->f64 ? 8 : 4;
    int64_t items =
        kn_conv_pad_items(&c->padding) + c->grid.groups * kn_div_up(c->grid.outer, block) * c->taps.inner + 1;
    snprintf(options, sizeof options, "%s -DVW=%d -DKB=%d", c->f64 ? "-DT=double -DKN_USE_F64" : "-DT=float",
             kn_conv_vector_width(limits, c->f64), (int)block);
    return kn_run(stream, .source = "conv/common/prepare.cl", .kernel = "conv_prepare", .operation = "conv2d",
                  .options = options, .dims = 1, .global = {(size_t)items}, .local = {1},
                  KN_ARGS(kn_arg_buffer(c->x.buffer, c->x.offset * element),
                          kn_arg_buffer(c->weight.buffer, c->weight.offset * element),
                          kn_arg_buffer(w->padded ? w->padded : w->packed, 0), kn_arg_buffer(w->packed, 0),
                          kn_arg_buffer(w->table, 0), kn_arg_struct(&c->padding, sizeof c->padding),
                          kn_arg_struct(&c->weights, sizeof c->weights), kn_arg_struct(&c->taps, sizeof c->taps)));
}

kn_status kn_conv_correlate_forward(kn_stream *stream, const kn_conv_problem *problem, const kn_conv_tile *tile)
{
    kn_conv_correlation c;
    kn_conv_workspace w = {0};
    kn_conv_describe_forward(&c, kn_device_limits(kn_stream_device(stream)), problem);
    kn_status status = alloc_workspace(&w, stream, &c, tile->block, c.grid.taps);
    if (status == KN_OK)
        status = prepare(stream, &c, &w, tile->block);
    if (status == KN_OK)
        status = tile->launch(stream, &c, &w, tile);
    free_workspace(&w);
    return status;
}

kn_status kn_conv_correlate_backward(kn_stream *stream, const kn_conv_problem *problem, const kn_conv_tile *tile)
{
    const kn_conv_shape *s = &problem->shape;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    kn_conv_correlation c;
    kn_conv_workspace w = {0};
    kn_conv_describe_residue(&c, limits, problem, 0);
    kn_status status = alloc_workspace(&w, stream, &c, tile->block,
                                       s->out_channels / s->groups * s->kernel_size[1] * s->kernel_size[2]);
    bool padded = false;
    for (int64_t i = 0; status == KN_OK && i < kn_conv_residues(s); i++) {
        if (!kn_conv_describe_residue(&c, limits, problem, i))
            continue;
        if (padded)
            c.padding.planes = 0; /* dy is padded once for all residues */
        status = prepare(stream, &c, &w, tile->block);
        padded = true;
        if (status == KN_OK)
            status = tile->launch(stream, &c, &w, tile);
    }
    free_workspace(&w);
    return status;
}
