/* conv/cpu/direct.cl - direct convolution on CPU devices from NCHW: no im2col, no blocked layout, no padded image.
 *
 * Forward and backward-data are both correlations of an image with a list of taps:
 *
 *     y[n, k, pixel] = bias[k] + sum over t of x[n, start(pixel) + tap[t]] * w[k, t],    clamped to [low, high]
 *
 * A tap is one (channel, row, column) of the kernel, and tap[t] the offset in elements from a pixel's start to the
 * element that the tap reads. Taps encode channels, kernel size and dilation, and start(pixel) the stride, so there is
 * a single flat loop over taps. A tile is PX pixels by KB = KV * VW output channels: accumulators are vectors along the
 * channels, each value of x is a scalar broadcast from any address, so that partial rows cost nothing. PX * KV + KV + 1
 * vectors must fit in registers.
 *
 * A unit of work is a part of the image, small enough for its sums to stay in the second cache. Its input channels are
 * taken a chunk at a time, so that a block's weights for one chunk stay in the first cache while all tiles of the unit
 * are summed; the sums wait in scratch memory for the next chunk. The unit's part of the chunk's image is copied to
 * scratch memory with its padding, so that the loop has no branches; images without padding and with a single tap per
 * channel are read in place.
 *
 * In backward-data with a stride, the output's rows and columns fall into residue classes with taps of their own
 * (src/ops/conv/common/correlation.h). A launch is for one class of rows and all classes of columns: the copy serves
 * all of them, and each line of y is written once.
 *
 * Compiled in: T, VW, KV, PX. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/pack.clh"
#include "conv/cpu/copy.clh"
#include "conv/cpu/direct.h"

#define KB (KV * VW)

/* The output pixels of a unit along one axis, and the first row of the image that they read. */
typedef struct part {
    long first, count, low;
} part;
static inline part part_of(const kn_conv_direct_axis *a, long i)
{
    const long first = i * a->part;
    return (part){first, min(a->part, a->out - first), first * a->step + a->first};
}

/* Copies what a unit reads of `channels` channels of one image. */
static inline void copy_image(global T *restrict to, const global T *restrict x, const kn_conv_direct_layout *g,
                              part rows, part columns, long channels)
{
    const kn_conv_direct_axis *r = &g->rows, *c = &g->columns;
    const long height = (rows.count - 1) * r->copied_step + r->reach + 1;
    const long width = (columns.count - 1) * c->step + c->reach + 1;
    for (long channel = 0; channel < channels; channel++) {
        long row = rows.low, of_step = 0;
        for (long i = 0; i < height; i++) {
            const bool inside = row >= 0 && row < r->in;
            copy_padded(to + channel * g->plane + i * g->pitch, x + channel * g->x_channel + (inside ? row * c->in : 0),
                        inside ? c->in : 0, columns.low, 1, width);
            row++;
            if (++of_step == r->copied_step) {
                row += r->step - r->copied_step;
                of_step = 0;
            }
        }
    }
}

/* The offset in the copy of each pixel's start; those that fill the last tile repeat the last pixel's. */
static inline void write_starts(global int *restrict starts, const kn_conv_direct_layout *g, long images, long rows,
                                long columns)
{
    long pixel = 0;
    for (long image = 0; image < images; image++)
        for (long i = 0; i < rows; i++) {
            const long start = image * g->image + i * g->rows.copied_step * g->pitch;
            for (long j = 0; j < columns; j++)
                starts[pixel + j] = (int)(start + j * g->columns.step);
            pixel += columns;
        }
    for (long i = pixel; i < pixel + PX - 1; i++)
        starts[i] = starts[pixel - 1];
}

/* Adds the taps of one chunk to the sums of PX pixels. */
static inline void sum_tile(global T *restrict sums, const global T *restrict x, const global int *restrict starts,
                            const global T *restrict weight, const global int *restrict table, long taps)
{
    const global T *from[PX];
    V sum[PX][KV];
#pragma unroll
    for (int i = 0; i < PX; i++) {
        from[i] = x + starts[i];
#pragma unroll
        for (int v = 0; v < KV; v++)
            sum[i][v] = VLOAD(v, sums + i * KB);
    }
    for (long t = 0; t < taps; t++) {
        const long offset = table[t];
        V w[KV];
#pragma unroll
        for (int v = 0; v < KV; v++)
            w[v] = VLOAD(v, weight);
        weight += KB;
#pragma unroll
        for (int i = 0; i < PX; i++) {
            const V value = (V)from[i][offset];
#pragma unroll
            for (int v = 0; v < KV; v++)
                sum[i][v] = fma(value, w[v], sum[i][v]);
        }
    }
#pragma unroll
    for (int i = 0; i < PX; i++)
#pragma unroll
        for (int v = 0; v < KV; v++)
            VSTORE(sum[i][v], v, sums + i * KB);
}

/* to[k] = sums[0 .. 7][k], clamped, for 8 channels. */
static inline void transpose_sums(V8 *to, const global T *restrict sums, T low, T high)
{
    V8 a[8];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const V8 value = vload8(0, sums + j * KB);
        a[j] = KN_CLAMP(value, (V8)low, (V8)high);
    }
    zip_round_8(to, a);
    zip_round_8(a, to);
    zip_round_8(to, a);
}

/* Stores the sums of n pixels of one row that are adjacent in y, 8 channels; n is at least 8. */
static inline void store_8_channels(global T *restrict y, long y_channel, const global T *restrict sums, long n, T low,
                                    T high)
{
    for (long j = 0; j < n; j += 8) {
        const long e = min(j, n - 8); /* the last 8 overlap those before */
        V8 value[8];
        transpose_sums(value, sums + e * KB, low, high);
#pragma unroll
        for (int k = 0; k < 8; k++)
            vstore8(value[k], 0, y + k * y_channel + e);
    }
}

/* The same for two classes that alternate in y, n pixels of each. */
static inline void store_pairs(global T *restrict y, long y_channel, const global T *restrict even,
                               const global T *restrict odd, long n, T low, T high)
{
    for (long j = 0; j < n; j += 8) {
        const long e = min(j, n - 8);
        V8 a[8], b[8];
        transpose_sums(a, even + e * KB, low, high);
        transpose_sums(b, odd + e * KB, low, high);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            vstore8(ZIP_LOW_8(a[k], b[k]), 0, y + k * y_channel + 2 * e);
            vstore8(ZIP_HIGH_8(a[k], b[k]), 1, y + k * y_channel + 2 * e);
        }
    }
}

/* Stores the sums of pixels j .. n - 1 of one row: channels k .. channels - 1 of all classes, of which `wide` have
 * pixel n - 1. */
static inline void store_rest(global T *restrict y, const global T *restrict sums, const kn_conv_direct_layout *g,
                              long k, long channels, long j, long n, long wide, T low, T high)
{
    for (; k < channels; k++)
        for (long i = j; i < n; i++)
            for (long b = 0; b < (i < n - 1 ? g->classes : wide); b++)
                y[k * g->y_channel + i * g->columns.y_step + b] =
                    KN_CLAMP(sums[(b * g->sums + i) * KB + k], low, high);
}

/* Stores the sums of n pixels of one row. */
static inline void store_row(global T *restrict y, const global T *restrict sums, const kn_conv_direct_layout *g,
                             long n, long wide, long channels, T low, T high)
{
    const bool pairs = g->classes == 2 && g->columns.y_step == 2;
    const long whole = wide == g->classes ? n : n - 1; /* pixels that all classes have */
    long k = 0;
    if ((pairs || g->columns.y_step == 1) && whole >= 8)
        for (; k + 8 <= channels; k += 8) {
            global T *to = y + k * g->y_channel;
            if (pairs)
                store_pairs(to, g->y_channel, sums + k, sums + g->sums * KB + k, whole, low, high);
            else
                store_8_channels(to, g->y_channel, sums + k, whole, low, high);
        }
    store_rest(y, sums, g, 0, k, whole, n, wide, low, high);
    store_rest(y, sums, g, k, channels, 0, n, wide, low, high);
}

/* Stores one image's sums of a block, row by row; rows without a gap in y as one. */
static inline void store_image(global T *restrict y, const global T *restrict sums, const kn_conv_direct_layout *g,
                               part rows, part columns, long channels, T low, T high)
{
    const long y_row = g->rows.y_step, y_column = g->columns.y_step;
    long wide = 0; /* classes that have the part's last column */
    while (wide < g->classes && g->of[wide].out >= columns.first + columns.count)
        wide++;
    y += rows.first * y_row + columns.first * y_column;
    if (y_column == 1 && columns.count == y_row) {
        store_row(y, sums, g, rows.count * columns.count, wide, channels, low, high);
        return;
    }
    for (long i = 0; i < rows.count; i++)
        store_row(y + i * y_row, sums + i * columns.count * KB, g, columns.count, wide, channels, low, high);
}

static inline void start_sums(global T *restrict sums, const global T *restrict bias, int channels, long pixels)
{
    T start[KB];
    for (int k = 0; k < KB; k++)
        start[k] = k < channels ? bias[k] : (T)0;
    for (long i = 0; i < pixels; i++)
#pragma unroll
        for (int v = 0; v < KV; v++)
            VSTORE(VLOAD(v, start), v, sums + i * KB);
}

/* What a work-item knows of its unit. */
typedef struct unit {
    part rows, columns;
    long group, first_image, images, first_block, blocks;
    long block; /* the first one's number among those of all groups */
    long image_pixels, pixels; /* of one image, and of all */
} unit;
static inline unit unit_of(const kn_conv_direct_layout *g, long id)
{
    const long blocks = (g->outer + KB - 1) / KB, sets = (blocks + g->unit_blocks - 1) / g->unit_blocks;
    const long over_columns = id / sets, over_rows = over_columns / g->columns.parts;
    const long over_images = over_rows / g->rows.parts;
    unit u = {.rows = part_of(&g->rows, over_rows % g->rows.parts),
              .columns = part_of(&g->columns, over_columns % g->columns.parts),
              .group = over_images / g->image_parts,
              .first_image = over_images % g->image_parts * g->image_part,
              .first_block = id % sets * g->unit_blocks};
    u.images = min(g->image_part, g->images - u.first_image);
    u.blocks = min(g->unit_blocks, blocks - u.first_block);
    u.block = u.group * blocks + u.first_block;
    u.image_pixels = u.rows.count * u.columns.count;
    u.pixels = u.images * u.image_pixels;
    return u;
}

/* Adds all taps to the sums, chunk by chunk; x starts at the group's first channel of image 0. */
static inline void sum_unit(global T *restrict sums, global T *restrict copy, const global int *restrict starts,
                            const global T *restrict x, const global T *restrict packed,
                            const global int *restrict table, const kn_conv_direct_layout *g, const unit *u)
{
    for (long c = 0; c < g->inner; c += g->chunk) {
        const long channels = min(g->chunk, g->inner - c), x_image = g->groups * g->inner * g->x_channel;
        const global T *first = x + u->first_image * x_image + c * g->x_channel, *from = copy;
        if (g->in_place)
            from = first + u->rows.low * g->pitch + u->columns.low;
        else
            for (long i = 0; i < u->images; i++)
                copy_image(copy + i * g->image, first + i * x_image, g, u->rows, u->columns, channels);
        for (long block = 0; block < u->blocks; block++)
            for (long b = 0; b < g->classes; b++) {
                const kn_conv_direct_class k = g->of[b];
                const global T *weight = packed + k.weights + ((u->block + block) * g->inner + c) * k.taps * KB;
                for (long i = 0; i < u->pixels; i += PX)
                    sum_tile(sums + ((block * g->classes + b) * g->sums + i) * KB, from, starts + i, weight,
                             table + k.table, channels * k.taps);
            }
    }
}

/* dim 0: g.units_per_item units each, numbered blocks fastest, then columns, rows, images and group. A work-item's part
 * of `scratch` holds the copy of the image, the sums of each block and the starts. `packed` and `table` are
 * conv_prepare's, class by class; only the first chunk's part of a table is read. */
KN_KERNEL_ONCE(conv_direct,
               (KN_ARG(x), KN_ARG(packed), KN_ARG(table), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), layout, has_bias,
                low, high),
               KN_IN(x), KN_IN(packed), KN_IN(table), KN_IN(bias), KN_OUT(y), KN_OUT(scratch),
               kn_conv_direct_layout layout, int has_bias, T low, T high)
{
    const kn_conv_direct_layout g = layout;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, packed);
    KN_BIND_IN(int, table);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long last = min(g.units, (KN_ID(0) + 1) * g.units_per_item), block_sums = g.classes * g.sums;
    global T *copy = scratch + KN_ID(0) * g.scratch_size, *sums = copy + g.copy_size;
    global int *starts = (global int *)(sums + g.unit_blocks * block_sums * KB);

    for (long id = KN_ID(0) * g.units_per_item; id < last; id++) {
        const unit u = unit_of(&g, id);
        const long first_channel = u.group * g.outer + u.first_block * KB;
        write_starts(starts, &g, u.images, u.rows.count, u.columns.count);
        for (long block = 0; block < u.blocks; block++)
            for (long b = 0; b < g.classes; b++)
                start_sums(sums + (block * block_sums + b * g.sums) * KB, bias + first_channel + block * KB,
                           has_bias ? (int)min((long)KB, g.outer - (u.first_block + block) * KB) : 0,
                           u.pixels + PX - 1);
        sum_unit(sums, copy, starts, x + u.group * g.inner * g.x_channel, packed, table, &g, &u);
        for (long block = 0; block < u.blocks; block++)
            for (long i = 0; i < u.images; i++)
                store_image(y + ((u.first_image + i) * g.groups * g.outer + first_channel + block * KB) * g.y_channel,
                            sums + (block * block_sums + i * u.image_pixels) * KB, &g, u.rows, u.columns,
                            min((long)KB, g.outer - (u.first_block + block) * KB), low, high);
    }
}
