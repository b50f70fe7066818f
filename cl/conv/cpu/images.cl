/* conv/cpu/images.cl - convolution on CPU devices, one pixel of several images at a time.
 *
 * The same correlation as conv/cpu/direct.cl, for small images with relatively much padding: a tile is the same pixel
 * of NX images by KB = KV * VW output channels, so that it reads the same taps throughout, and taps in the padding are
 * skipped instead of multiplied by zeros. (The gradient of a 13 x 13 image through a 5 x 5 kernel on 9 x 9 pixels: 2.1
 * times fewer multiplications.) x is repacked as [images][height][width][channels], the weights as
 * [groups][blocks][rows * columns][inner][KB], so that the innermost loop, over channels, reads both contiguously.
 *
 * Compiled in: T, VW, KV, NX. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "conv/common/padding.clh"
#include "gemm/pack.clh"

#define KB (KV * VW)

/* One (group, block) and one inner channel at a time: the taps, contiguous in w, are written KB * inner apart. */
static inline void pack_weights_by_tap(global T *restrict packed, const global T *restrict w,
                                       const kn_conv_weight_layout g, const kn_conv_tap_list t, long item)
{
    const long blocks = (g.outer + KB - 1) / KB;
    const long inner = item % t.inner, block = item / t.inner % blocks, group = item / t.inner / blocks;
    const int width = (int)min((long)KB, g.outer - block * KB);
    w += group * g.group_stride + block * KB * g.outer_stride + inner * g.inner_stride;
    packed += ((group * blocks + block) * t.rows * t.columns * t.inner + inner) * KB;
    for (long u = 0; u < t.rows; u++)
        for (long v = 0; v < t.columns; v++) {
            const global T *from =
                w + (g.row_first + u * g.row_step) * g.kernel_columns + g.column_first + v * g.column_step;
            global T *to = packed + (u * t.columns + v) * t.inner * KB;
            for (int j = 0; j < KB; j++)
                to[j] = j < width ? from[j * g.outer_stride] : (T)0;
        }
}

/* dim 0: repack_images items that repack one image of x each, then one per (group, block, inner channel) that packs
 * weights. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv_images_prepare(KN_IN(x), KN_IN(w), KN_OUT(repacked), KN_OUT(packed), long repack_images, long channels,
                    long pixels, kn_conv_weight_layout g, kn_conv_tap_list t)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, repacked);
    KN_BIND_OUT(T, packed);
    const long id = get_global_id(0), pack_items = g.groups * ((g.outer + KB - 1) / KB) * t.inner;
    if (id < repack_images)
        pack_panel(repacked + id * channels * pixels, x + id * channels * pixels, pixels, (int)channels, (int)channels,
                   1, pixels);
    else if (id < repack_images + pack_items)
        pack_weights_by_tap(packed, w, g, t, id - repack_images);
}

/* dim 0: row of pixels, dim 1: NX images, dim 2: group and block. Pixel (i, j) reads through tap (u, v) row
 * t.row_origin + i * row_step + u * t.row_distance, column alike, if x has it; x is height by width. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_images(KN_IN(x), KN_IN(packed), KN_IN(bias), KN_OUT(y),
                                                                       kn_conv_grid g, kn_conv_tap_list t, long height,
                                                                       long width, long row_step, long column_step,
                                                                       long channels_of_x, int has_bias, T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, packed);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    const long blocks = (g.outer + KB - 1) / KB;
    const long block = get_global_id(2) % blocks, group = get_global_id(2) / blocks, i = get_global_id(0),
               first_image = get_global_id(1) * NX;
    const int channels = (int)min((long)KB, g.outer - block * KB), images = (int)min((long)NX, g.images - first_image);
    const long first_channel = group * g.outer + block * KB, image_size = height * width * channels_of_x;
    x += first_image * image_size + group * t.inner;
    y += first_image * g.y_image + first_channel * g.y_channel + i * g.y_row;
    packed += get_global_id(2) * t.rows * t.columns * t.inner * KB;

    T start_value[KB];
    for (int k = 0; k < KB; k++)
        start_value[k] = has_bias && k < channels ? bias[first_channel + k] : (T)0;

    for (long j = 0; j < g.columns; j++) {
        V sum[NX][KV];
#pragma unroll
        for (int n = 0; n < NX; n++)
#pragma unroll
            for (int v = 0; v < KV; v++)
                sum[n][v] = VLOAD(v, start_value);
        for (long tap = 0; tap < t.rows * t.columns; tap++) {
            const long row = t.row_origin + i * row_step + tap / t.columns * t.row_distance;
            const long column = t.column_origin + j * column_step + tap % t.columns * t.column_distance;
            if (row < 0 || row >= height || column < 0 || column >= width)
                continue;
            const global T *weight = packed + tap * t.inner * KB;
            const global T *from[NX];
#pragma unroll
            for (int n = 0; n < NX; n++)
                from[n] = x + min(n, images - 1) * image_size + (row * width + column) * channels_of_x;
            for (long c = 0; c < t.inner; c++) {
                V w[KV];
#pragma unroll
                for (int v = 0; v < KV; v++)
                    w[v] = VLOAD(v, weight + c * KB);
#pragma unroll
                for (int n = 0; n < NX; n++) {
                    const V value = (V)from[n][c];
#pragma unroll
                    for (int v = 0; v < KV; v++)
                        sum[n][v] = fma(value, w[v], sum[n][v]);
                }
            }
        }
        T result[NX][KB];
#pragma unroll
        for (int n = 0; n < NX; n++)
#pragma unroll
            for (int v = 0; v < KV; v++)
                VSTORE(KN_CLAMP(sum[n][v], (V)low, (V)high), v, result[n]);
        for (int n = 0; n < images; n++)
            for (int k = 0; k < channels; k++)
                y[n * g.y_image + k * g.y_channel + j * g.y_column] = result[n][k];
    }
}
