/* conv/cpu/weights.cl - the gradient of a convolution's weights (and bias) on CPU devices.
 *
 *     dw[k, t] = sum over images and pixels of dy[n, k, pixel] * x[n, start(pixel) + tap[t]]
 *
 * with taps and starts as in conv/cpu/direct.cl. dy is packed pixel by pixel, KB = KV * VW channels wide; a work-item
 * keeps the sums of TAPS taps by KB channels in vector registers and loops over all pixels of its share: per pixel KV
 * vector loads of dy, TAPS broadcasts of x, TAPS * KV multiply-adds.
 *
 * The pixels are split into shares: small enough that a share's dy stays in cache for all taps, and enough of them to
 * occupy all compute units with few taps and channels. Each writes separate sums, which conv/common/sums.cl adds in a
 * fixed order.
 *
 * Compiled in: T, VW, KV, TAPS. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "conv/common/padding.clh"
#include "gemm/pack.clh"

#define KB (KV * VW)
#define RUN 256L /* pixels */

/* Packs dy as [groups][blocks][images][pixels][KB], one (group, block, image) per item, and sums it over the pixels
 * into bias_part[images][groups * blocks * KB]. */
static inline void pack_gradient(global T *restrict packed, global T *restrict bias_part, const global T *restrict dy,
                                 const kn_conv_gradient_layout g, long item)
{
    const long blocks = (g.outer + KB - 1) / KB, pixels = g.rows * g.columns;
    const long image = item % g.images, block = item / g.images % blocks, group = item / g.images / blocks;
    const long channel = group * g.outer + block * KB;
    packed += item * pixels * KB;
    dy += (image * g.groups * g.outer + channel) * pixels;
    V sum[KV];
    for (int v = 0; v < KV; v++)
        sum[v] = (V)0;
    for (long first = 0; first < pixels; first += RUN) { /* summed while they are in the L1 cache */
        const long last = min(first + RUN, pixels);
        pack_panel(packed + first * KB, dy + first, last - first, (int)min((long)KB, g.outer - block * KB), KB, 1,
                   pixels);
        for (long i = first; i < last; i++)
            for (int v = 0; v < KV; v++)
                sum[v] += VLOAD(v, packed + i * KB);
    }
    for (int v = 0; v < KV; v++)
        VSTORE(sum[v], v, bias_part + ((image * g.groups + group) * blocks + block) * KB);
}

/* dim 0: the items that pad x, then one per (group, block, image), then one that writes the tables of taps and of
 * pixels' starts. */
KN_KERNEL_ONCE(conv_weights_prepare,
               (KN_ARG(x), KN_ARG(dy), KN_ARG(padded), KN_ARG(packed), KN_ARG(bias_part), KN_ARG(table),
                KN_ARG(starts), given_p, given_t, given_g),
               KN_IN(x), KN_IN(dy), KN_OUT(padded), KN_OUT(packed), KN_OUT(bias_part), KN_OUT(table), KN_OUT(starts),
               const kn_conv_padding given_p, const kn_conv_tap_list given_t, const kn_conv_gradient_layout given_g)
{
    const kn_conv_padding p = given_p;
    const kn_conv_tap_list t = given_t;
    const kn_conv_gradient_layout g = given_g;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, padded);
    KN_BIND_OUT(T, packed);
    KN_BIND_OUT(T, bias_part);
    KN_BIND_OUT(int, table);
    KN_BIND_OUT(int, starts);
    const long pack_items = g.groups * ((g.outer + KB - 1) / KB) * g.images;
    const long id = KN_ID(0);
    if (id < pad_items(p)) {
        pad_planes(padded, x, p, id);
    } else if (id < pad_items(p) + pack_items) {
        pack_gradient(packed, bias_part, dy, g, id - pad_items(p));
    } else if (id == pad_items(p) + pack_items) {
        write_tap_table(table, t);
        for (long row = 0; row < g.rows; row++)
            for (long column = 0; column < g.columns; column++)
                *starts++ = (int)(row * g.x_row + column * g.x_column);
    }
}

/* dim 0: TAPS taps, dim 1: group and block of channels, dim 2: share of the pixels. sums is [shares], each laid out as
 * dw: [groups * outer][taps], or [taps][outer] if x and dy are swapped. */
KN_KERNEL_ONCE(conv_weights_sums,
               (KN_ARG(x), KN_ARG(packed), KN_ARG(table), KN_ARG(starts), KN_ARG(sums), given),
               KN_IN(x), KN_IN(packed), KN_IN(table), KN_IN(starts), KN_OUT(sums), const kn_conv_gradient_layout given)
{
    const kn_conv_gradient_layout g = given;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, packed);
    KN_BIND_IN(int, table);
    KN_BIND_IN(int, starts);
    KN_BIND_OUT(T, sums);
    const long blocks = (g.outer + KB - 1) / KB, pixels = g.rows * g.columns, all_pixels = g.images * pixels;
    const long block = KN_ID(1) % blocks, group = KN_ID(1) / blocks;
    const long first_tap = KN_ID(0) * TAPS;
    const long last = min(all_pixels, (long)(KN_ID(2) + 1) * g.pixels_per_share);
    const global T *dy = packed + KN_ID(1) * all_pixels * KB;

    long tap[TAPS];
    V sum[TAPS][KV];
#pragma unroll
    for (int i = 0; i < TAPS; i++) {
        tap[i] = group * g.x_group +
                 table[min(first_tap + i, g.taps - 1)]; /* taps past the last repeat it and are not stored */
#pragma unroll
        for (int v = 0; v < KV; v++)
            sum[i][v] = (V)0;
    }
    for (long o = KN_ID(2) * g.pixels_per_share; o < last;) {
        const long image = o / pixels, first_pixel = o % pixels, count = min(pixels - first_pixel, last - o);
        const global T *from[TAPS];
#pragma unroll
        for (int i = 0; i < TAPS; i++)
            from[i] = x + image * g.x_image + tap[i];
        for (long pixel = 0; pixel < count; pixel++) {
            const long start = starts[first_pixel + pixel];
            V d[KV];
#pragma unroll
            for (int v = 0; v < KV; v++)
                d[v] = VLOAD(v, dy + (o + pixel) * KB);
#pragma unroll
            for (int i = 0; i < TAPS; i++) {
                const V value = (V)from[i][start];
#pragma unroll
                for (int v = 0; v < KV; v++)
                    sum[i][v] = fma(value, d[v], sum[i][v]);
            }
        }
        o += count;
    }
    T result[TAPS][KB];
#pragma unroll
    for (int i = 0; i < TAPS; i++)
#pragma unroll
        for (int v = 0; v < KV; v++)
            VSTORE(sum[i][v], v, result[i]);
    sums += KN_ID(2) * g.groups * g.outer * g.taps + (group * g.outer + block * KB) * g.sum_outer +
            first_tap * g.sum_tap;
    for (int k = 0; k < min((long)KB, g.outer - block * KB); k++)
        for (int i = 0; i < min((long)TAPS, g.taps - first_tap); i++)
            sums[k * g.sum_outer + i * g.sum_tap] = result[i][k];
}
