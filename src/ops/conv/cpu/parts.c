/* ops/conv/cpu/parts.c - the parts of a convolution's pixels that a work-item takes at a time. */
#include "ops/conv/cpu/parts.h"

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* Of classes that write nothing nothing is read. */
kn_conv_axis kn_conv_axis_of(const kn_conv_problem *problem, int d, int64_t residue, int64_t classes, int64_t y_step)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int64_t i = residue; i < residue + classes; i++) {
        const kn_conv_residue_class r = kn_conv_choose_class(problem, d, i);
        const int64_t last = r.origin + (r.taps - 1) * r.distance;
        if (r.taps == 0 || r.rows == 0)
            continue;
        low = kn_min_i64(low, kn_min_i64(r.origin, last));
        high = kn_max_i64(high, kn_max_i64(r.origin, last));
    }
    if (low > high)
        low = high = 0;
    kn_conv_axis axis = {.in = kn_conv_from(problem).size[d],
                         .out = kn_conv_choose_class(problem, d, residue).rows,
                         .step = problem->pass == KN_CONV_DATA ? 1 : problem->shape.stride[d],
                         .first = low,
                         .reach = high - low,
                         .y_step = y_step,
                         .part = 1};
    axis.copied_step = d == 1 ? kn_min_i64(axis.step, axis.reach + 1) : axis.step; /* rows are copied whole */
    return axis;
}

int64_t kn_conv_copied(const kn_conv_axis *a) { return (a->part - 1) * a->copied_step + a->reach + 1; }

/* Rows or images that are divided into parts: `count` of them, each of `pixels` output pixels and `size` copied
 * elements; a part copies `halo` more that it shares with the next. */
typedef struct divided {
    int64_t count, pixels, size, halo;
} divided;

/* The estimated cycles per input channel. */
static double cost_of(const kn_conv_unit_limits *l, divided d, int64_t part)
{
    const int64_t parts = kn_div_up(d.count, part), rest = d.count - (parts - 1) * part;
    const int64_t tiles = (parts - 1) * kn_div_up(part * d.pixels, l->tile) + kn_div_up(rest * d.pixels, l->tile);
    return (double)(tiles * l->tile) * l->pixel + (double)parts * l->part +
           (double)(d.count * d.size + parts * d.halo) * 0.25;
}

/* The cheapest part of up to `most`; parts are then evened out. */
static int64_t choose_part(const kn_conv_unit_limits *l, divided d, int64_t most)
{
    int64_t best = 1;
    double least = cost_of(l, d, best);
    for (int64_t part = 2; part <= kn_min_i64(d.count, most); part++) {
        const double cost = cost_of(l, d, part);
        if (cost >= least)
            continue;
        least = cost;
        best = part;
    }
    return kn_div_up(d.count, kn_div_up(d.count, best));
}

void kn_conv_choose_parts(kn_conv_parts *g, const kn_conv_unit_limits *l, int64_t block)
{
    kn_conv_axis *r = &g->rows, *c = &g->columns;
    const int64_t columns = (l->elements / (r->reach + 1) - c->reach - 1) / c->copied_step + 1;
    c->part = kn_max_i64(l->least, kn_min_i64(l->pixels, columns));
    c->part = kn_round_up_i64(kn_div_up(c->out, kn_div_up(c->out, c->part)), l->least);
    c->part = kn_min_i64(c->out, c->part);
    const int64_t width = kn_conv_copied(c), rows = (l->elements / width - r->reach - 1) / r->copied_step + 1;
    const divided by_rows = {r->out, c->part, r->copied_step * width, (r->reach + 1 - r->copied_step) * width};
    r->part = choose_part(l, by_rows, kn_min_i64(rows, l->pixels / c->part));
    g->image_part = 1;
    if (r->part == r->out && c->part == c->out) {
        const divided by_images = {g->x.images, r->part * c->part, kn_conv_copied(r) * width, 0};
        g->image_part =
            choose_part(l, by_images, kn_min_i64(l->elements / by_images.size, l->pixels / by_images.pixels));
    }
    kn_conv_count_units(g, block);
}

void kn_conv_count_units(kn_conv_parts *g, int64_t block)
{
    g->rows.parts = kn_div_up(g->rows.out, g->rows.part);
    g->columns.parts = kn_div_up(g->columns.out, g->columns.part);
    g->image_parts = kn_div_up(g->x.images, g->image_part);
    g->units = g->groups * g->image_parts * g->rows.parts * g->columns.parts *
               kn_div_up(kn_div_up(g->outer, block), g->unit_blocks);
}

/* --- copy --------------------------------------------------------------------------------------------------------- */

static bool is_inside(const kn_conv_axis *a)
{
    return a->first >= 0 && (a->out - 1) * a->step + a->first + a->reach < a->in;
}

enum { MANY_PLANES = 16 };

/* A copy costs more than it saves if each value is used for a single tap, unless many channels' planes share cache
 * sets. */
static bool reads_in_place(const kn_conv_parts *g, int64_t taps, int64_t planes)
{
    const double image = (double)g->x.volume * (double)g->x.plane;
    return taps == 1 && g->x.depth == 1 && g->x.slices == 1 && g->x.taps == 1 && g->x.origin == 0 &&
           is_inside(&g->rows) && is_inside(&g->columns) && (planes < MANY_PLANES || g->x.plane % 512 != 0) &&
           (double)g->image_part * image < 2147483647.0;
}

void kn_conv_lay_out_copy(kn_conv_parts *g, int64_t taps, int64_t planes)
{
    g->in_place = reads_in_place(g, taps, planes);
    if (g->in_place) {
        g->rows.copied_step = g->rows.step;
        g->pitch = g->columns.in;
        g->plane = g->x.plane;
        g->image = g->x.volume * g->plane;
        return;
    }
    g->pitch = kn_conv_copied(&g->columns);
    g->plane = kn_conv_copied(&g->rows) * g->pitch;
    g->image = g->chunk * g->plane;
    g->copy_size = kn_round_up_i64(g->image_part * g->image, 64);
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

/* With 32 registers: the number of vectors that wastes the fewest channels in the last block; among equals the largest,
 * because vectors share loaded values. With a single one there are more loads than multiply-adds. */
kn_conv_tile kn_conv_choose_channel_tile(const kn_limits *limits, bool f64, int64_t channels)
{
    static const int columns[] = {0, 14, 10, 7, 6}; /* indexed by vectors */
    const int width = kn_conv_vector_width(limits, f64);
    int vectors = kn_conv_many_registers(limits) && channels <= width ? 1 : 2;
    int64_t least = INT64_MAX;
    for (int v = 4; v >= 2 && vectors != 1 && kn_conv_many_registers(limits); v--) {
        int64_t padded = kn_div_up(channels, (int64_t)v * width) * v * width;
        if (padded < least) {
            least = padded;
            vectors = v;
        }
    }
    return (kn_conv_tile){.vector_width = width,
                          .channels = vectors,
                          .columns = kn_conv_many_registers(limits) ? columns[vectors] : 6,
                          .block = (int64_t)vectors * width};
}
