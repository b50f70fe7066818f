/* ops/conv/cpu/band_layout.c - splits images into bands of rows (cl/conv/cpu/bands.clh). */
#include "ops/conv/cpu/bands.h"

bool kn_conv_bands_fit(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const double most = 1 << 30;
    for (int d = 1; d < 3; d++) {
        double reach = (double)s->kernel_size[d] * (double)s->dilation[d];
        if (problem->pass == KN_CONV_DATA && s->stride[d] > KN_CONV_BAND_CLASSES)
            return false;
        if ((double)s->in_size[d] + 2 * (double)s->padding[d] + reach + (double)s->stride[d] > most ||
            (double)s->out_size[d] * (double)s->stride[d] + reach > most)
            return false;
    }
    double pixels = (double)s->in_size[1] * (double)s->in_size[2];
    return kn_conv_is_flat(s) && pixels < most && (double)s->kernel_size[1] * (double)s->kernel_size[2] * 64 < most;
}

static kn_conv_band_axis forward_axis(const kn_conv_shape *s, int d)
{
    return (kn_conv_band_axis){.in = (int32_t)s->in_size[d],
                               .out = (int32_t)s->out_size[d],
                               .rows = (int32_t)s->out_size[d],
                               .step = (int32_t)s->stride[d],
                               .low = -(int32_t)s->padding[d],
                               .halo = (int32_t)((s->kernel_size[d] - 1) * s->dilation[d]),
                               .classes = 1,
                               .of = {{.rows = (int32_t)s->out_size[d],
                                       .taps = (int32_t)s->kernel_size[d],
                                       .distance = (int32_t)s->dilation[d],
                                       .weight_step = 1}}};
}

static kn_conv_band_axis backward_axis(const kn_conv_shape *s, int d)
{
    kn_conv_band_axis a = {
        .in = (int32_t)s->out_size[d], .out = (int32_t)s->in_size[d], .step = 1, .classes = (int32_t)s->stride[d]};
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int i = 0; i < a.classes; i++) {
        kn_conv_residue_class r = kn_conv_choose_residue(s, d, i);
        a.rows = (int32_t)kn_max_i64(a.rows, r.rows);
        a.of[i] = (kn_conv_band_class){(int32_t)r.rows,     (int32_t)r.origin, (int32_t)r.taps,
                                       (int32_t)r.distance, (int32_t)r.first,  (int32_t)r.step};
        if (r.taps > 0) {
            low = kn_min_i64(low, r.origin + (r.taps - 1) * r.distance);
            high = kn_max_i64(high, r.origin);
        }
    }
    if (low > high)
        low = high = 0;
    a.low = (int32_t)low;
    a.halo = (int32_t)(high - low);
    for (int i = 0; i < a.classes; i++)
        a.of[i].origin -= a.low;
    return a;
}

/* Derives the planes from the reach of the taps. */
static void split_by_step(kn_conv_band_axis *a)
{
    a->phases = (int32_t)kn_min_i64(a->step, (int64_t)a->halo + 1);
    a->halo /= a->step;
}

void kn_conv_describe_bands(kn_conv_bands *b, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    kn_conv_band_axis (*axis)(const kn_conv_shape *, int) =
        problem->pass == KN_CONV_DATA ? backward_axis : forward_axis;
    *b = (kn_conv_bands){.rows = axis(s, 1),
                         .columns = axis(s, 2),
                         .layout = {.images = s->images,
                                    .groups = s->groups,
                                    .inner = kn_conv_from(problem).channels,
                                    .outer = kn_conv_to(problem).channels}};
    kn_conv_band_axis *r = &b->rows, *c = &b->columns;
    bool all = r->halo == 0 && c->halo == 0 && r->step == 1 && c->step == 1 && r->classes == 1 && c->classes == 1 &&
               r->low == 0 && c->low == 0 && r->in == r->rows && c->in == c->rows;
    if (all) {
        r->in = r->out = r->rows = r->of[0].rows = r->in * c->in;
        c->in = c->out = c->rows = c->of[0].rows = 1;
    }
    split_by_step(r);
    split_by_step(c);
    b->layout.flat = all;
    b->layout.pitch = c->rows + c->halo;
}

void kn_conv_split_bands(kn_conv_bands *b, int64_t most, int64_t tile)
{
    kn_conv_band_layout *g = &b->layout;
    int64_t rows = b->rows.rows, halo = b->rows.halo, all = g->images * rows;
    most = kn_max_i64(1, most / tile) * tile;
    /* The last row of a band needs only its own pixels, and an image's last row also those read past it. */
    int64_t per_band = kn_max_i64(0, most - b->columns.rows) / g->pitch + 1;
    g->in_place = g->flat && rows >= tile && 10 * kn_round_up_i64(rows, tile) <= 11 * rows && rows % 512 != 0;
    g->bands_per_image = 0;
    if (per_band < rows && (halo > 0 || g->in_place)) {
        g->bands_per_image = kn_div_up(rows, per_band);
        g->rows_per_band = kn_div_up(rows, g->bands_per_image);
        if (g->in_place)
            g->rows_per_band = kn_round_up_i64(g->rows_per_band, tile);
        g->bands_per_image = kn_div_up(rows, g->rows_per_band);
        g->bands = g->images * g->bands_per_image;
    } else if (g->in_place) {
        g->bands_per_image = 1;
        g->rows_per_band = rows;
        g->bands = g->images;
    } else if (halo > 0) {
        g->rows_per_band = kn_max_i64(1, (per_band + halo) / (rows + halo)) * rows;
        g->bands = kn_div_up(all, g->rows_per_band);
    } else {
        g->rows_per_band = kn_div_up(all, kn_div_up(all, per_band));
        g->bands = kn_div_up(all, g->rows_per_band);
    }
    int64_t segments = (g->rows_per_band + 2 * rows - 2) / rows;
    b->length = kn_round_up_i64((g->rows_per_band + (segments - 1) * halo) * g->pitch, tile);
    g->plane = kn_round_up_i64(b->length + halo * g->pitch + b->columns.halo, 16);
}
