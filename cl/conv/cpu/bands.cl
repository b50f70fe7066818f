/* conv/cpu/bands.cl - convolution forward and backward-data on CPU devices, band by band.
 *
 * The same correlation as conv/cpu/direct.cl, with vectors along the pixels of a band (conv/cpu/bands.clh): for 1 x 1
 * kernels, few channels, few taps, depthwise, and strided first layers. A work-item copies a band of the image to its
 * scratch memory, once for all output channels; then, KX channels at a time, tiles of KX by VX vectors are summed over
 * the taps: per tap VX vector loads, KX weights read in place and broadcast, KX * VX multiply-adds. No padded image, no
 * packed weights, a single launch. KX * VX + VX + 1 vectors must fit in registers.
 *
 * Sums are written to a row buffer and copied from there to the result, without the gaps between rows and, in
 * backward-data with a stride, with the columns of the residues interleaved.
 *
 * Compiled in: T, VW, KX, VX. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/pack.clh"
#include "conv/cpu/bands.clh"

/* [groups][blocks][inner][taps][KX] from weights whose output channels are contiguous or `taps` apart: for
 * backward-data, which otherwise would use only part of each cache line. dim 0: KN_CONV_BAND_BLOCKS blocks of a
 * group. */
KN_KERNEL_ONCE(conv_bands_pack,
               (KN_ARG(w), KN_ARG(packed), groups, inner, outer, taps),
               KN_IN(w), KN_OUT(packed), long groups, long inner, long outer, long taps)
{
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, packed);
    const long blocks = (outer + KX - 1) / KX, parts = (blocks + KN_CONV_BAND_BLOCKS - 1) / KN_CONV_BAND_BLOCKS;
    const long group = KN_ID(0) / parts, first = KN_ID(0) % parts * KN_CONV_BAND_BLOCKS;
    w += group * inner * outer * taps;
    packed += group * blocks * inner * taps * KX;
    for (long c = 0; c < inner; c++)
        for (long block = first; block < min(blocks, first + KN_CONV_BAND_BLOCKS); block++) {
            const global T *from = w + (c * outer + block * KX) * taps;
            global T *to = packed + (block * inner + c) * taps * KX;
            const int channels = (int)min((long)KX, outer - block * KX);
            for (long t = 0; t < taps; t++)
                for (int k = 0; k < KX; k++)
                    to[t * KX + k] = k < channels ? from[k * taps + t] : (T)0;
        }
}

/* KX rows of VX accumulator vectors, summed over inner channels and taps; x and w point to the first of both. */
static inline void sum_tile(global T *restrict to, long to_pitch, const global T *restrict x, long x_inner,
                            const global T *restrict w, long w_inner, long w_outer, int channels, long inner, long taps,
                            const global int *restrict table, const T *start, T low, T high)
{
    const global T *row[KX];
    V sum[KX][VX];
#pragma unroll
    for (int k = 0; k < KX; k++) {
        row[k] = w + min(k, channels - 1) * w_outer; /* channels past the last repeat it and are not stored */
#pragma unroll
        for (int v = 0; v < VX; v++)
            sum[k][v] = (V)start[k];
    }
    for (long c = 0; c < inner; c++)
        for (long t = 0; t < taps; t++) {
            const global T *from = x + c * x_inner + table[2 * t];
            const long weight = c * w_inner + table[2 * t + 1];
            V value[VX];
#pragma unroll
            for (int v = 0; v < VX; v++)
                value[v] = VLOAD(v, from);
#pragma unroll
            for (int k = 0; k < KX; k++) {
                const V factor = (V)row[k][weight];
#pragma unroll
                for (int v = 0; v < VX; v++)
                    sum[k][v] = fma(factor, value[v], sum[k][v]);
            }
        }
#pragma unroll
    for (int k = 0; k < KX; k++)
#pragma unroll
        for (int v = 0; v < VX; v++)
            VSTORE(KN_CLAMP(sum[k][v], (V)low, (V)high), v, to + k * to_pitch);
}

/* Interleaves the classes' columns; with two classes 2 * VW at a time. */
static inline void interleave(global T *restrict to, const global T *restrict from, long class_pitch, int classes,
                              long n)
{
    long j = 0;
    if (classes == 2)
        for (; j + 2 * VW <= n; j += 2 * VW) {
            const V a = VLOAD(0, from + j / 2), b = VLOAD(0, from + class_pitch + j / 2);
            V low, high;
            low.even = a.lo;
            low.odd = b.lo;
            high.even = a.hi;
            high.odd = b.hi;
            VSTORE(low, 0, to + j);
            VSTORE(high, 1, to + j);
        }
    for (; j < n; j++)
        to[j] = from[j % classes * class_pitch + j / classes];
}

/* Copies the row buffers [KX][column classes][length] of one row class to the result, which starts at the group's block
 * of channels in image 0. */
static inline void store_band(global T *restrict y, const global T *restrict from, long length,
                              const kn_conv_band_layout *g, const kn_conv_band_axis *r, const kn_conv_band_axis *c,
                              int row_class, long band, int channels)
{
    const long last = last_row_of(g, r, band), plane = (long)r->out * c->out;
    long base = 0;
    for (long row = first_row_of(g, r, band); row < last;) {
        const long image = row / r->rows, i0 = row % r->rows, rows = min(r->rows - i0, last - row);
        const long stored = min(rows, r->of[row_class].rows - i0);
        for (int k = 0; k < channels; k++) {
            global T *to = y + (image * g->groups * g->outer + k) * plane;
            const global T *line = from + k * c->classes * length + base * g->pitch;
            if (c->classes == 1 && r->classes == 1 && g->pitch == c->rows)
                copy_run(to + i0 * c->out, line, rows * c->out);
            else
                for (long i = 0; i < stored; i++) {
                    global T *out = to + ((i0 + i) * r->classes + row_class) * c->out;
                    if (c->classes == 1)
                        copy_run(out, line + i * g->pitch, c->out);
                    else
                        interleave(out, line + i * g->pitch, length, c->classes, c->out);
                }
        }
        base += rows + r->halo;
        row += rows;
    }
}

/* The taps, {offset in the band, offset in the weights} each, class by class. */
static inline void write_table(global int *restrict table, const kn_conv_band_layout *g, const kn_conv_band_axis *r,
                               const kn_conv_band_axis *c, const kn_conv_band_weights *weights)
{
    for (int a = 0; a < r->classes; a++)
        for (int b = 0; b < c->classes; b++) {
            const kn_conv_band_class rows = r->of[a], columns = c->of[b];
            for (long u = 0; u < rows.taps; u++)
                for (long v = 0; v < columns.taps; v++) {
                    *table++ = (int)tap_place(g, r, c, &rows, &columns, u, v);
                    *table++ = (int)((rows.first + u * rows.weight_step) * weights->row +
                                     (columns.first + v * columns.weight_step) * weights->column);
                }
        }
}

/* dim 0: units_per_item units; a unit is a block of KX result channels of a band, numbered block fastest, then group,
 * then band. A work-item's part of `scratch` holds the table of taps, the band and the row buffers. */
KN_KERNEL_ONCE(conv_bands,
               (KN_ARG(x), KN_ARG(w), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), g, r, c, weights, units_per_item,
                scratch_size, table_size, length, has_bias, low, high),
               KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), kn_conv_band_layout g, kn_conv_band_axis r,
               kn_conv_band_axis c, kn_conv_band_weights weights, long units_per_item, long scratch_size,
               long table_size, long length, int has_bias, T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long blocks = (g.outer + KX - 1) / KX, units = blocks * g.groups * g.bands;
    const long first = KN_ID(0) * units_per_item, last = min(units, first + units_per_item);
    scratch += KN_ID(0) * scratch_size;
    global int *table = (global int *)scratch;
    global T *band_memory = scratch + table_size;
    const long channel_planes = (long)r.phases * c.phases * g.plane;
    const long inner_distance = g.in_place ? r.in : channel_planes;
    global T *lines = band_memory + (g.in_place ? 0 : g.inner * channel_planes);

    write_table(table, &g, &r, &c, &weights);
    for (long unit = first; unit < last; unit++) {
        const long block = unit % blocks, group = unit / blocks % g.groups, band = unit / blocks / g.groups;
        const int channels = (int)min((long)KX, g.outer - block * KX);
        const long first_channel = group * g.outer + block * KX;
        const long first_row = first_row_of(&g, &r, band), rows = last_row_of(&g, &r, band) - first_row;
        const global T *pixels = band_memory;
        if (g.in_place)
            pixels = x + (first_row / r.rows * g.groups + group) * g.inner * r.in + first_row % r.rows;
        else if (block == 0 || unit == first)
            fill_band(band_memory, x, &g, &r, &c, band, group);
        T start[KX];
        for (int k = 0; k < KX; k++)
            start[k] = has_bias && k < channels ? bias[first_channel + k] : (T)0;
        const long segments = (first_row + rows - 1) / r.rows - first_row / r.rows + 1;
        const long used = (rows + (segments - 1) * r.halo - 1) * g.pitch + c.rows; /* to the last pixel */
        const global T *weight = w + group * weights.group + block * weights.block;
        const global int *class_table = table;
        if (g.in_place && channels == KX) { /* tile by tile, so that stores overlap computation */
            const long plane = first_row / r.rows * g.groups * g.outer + first_channel;
            global T *result = y + (plane * r.out + first_row % r.rows);
            for (long i = 0; i < used; i += VX * VW) {
                const long e = min(i, used - VX * VW); /* the last tile starts earlier, to not read past the end */
                sum_tile(result + e, r.out, pixels + e, inner_distance, weight, weights.inner, weights.outer, channels,
                         g.inner, 1, table, start, low, high);
            }
            continue;
        }
        for (int a = 0; a < r.classes; a++) {
            for (int b = 0; b < c.classes; b++) {
                const long taps = (long)r.of[a].taps * c.of[b].taps;
                for (long i = 0; i < used; i += VX * VW) {
                    const long e = g.in_place ? min(i, used - VX * VW) : i;
                    sum_tile(lines + b * length + e, c.classes * length, pixels + e, inner_distance, weight,
                             weights.inner, weights.outer, channels, g.inner, taps, class_table, start, low, high);
                }
                class_table += 2 * taps;
            }
            store_band(y + first_channel * r.out * c.out, lines, length, &g, &r, &c, a, band, channels);
        }
    }
}
