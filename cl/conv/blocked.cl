/* conv/blocked.cl - convolution for GPUs as products whose matrices are never made (gemm/blocked.clh): elements of the image are gathered where a slice is read.
 *
 *     forward, backward-data:  y[channel, pixel]   = sum over taps of w[channel, tap] x[tap, pixel]       pixels of all images in a row
 *     backward-weights:        dw[channel, tap]    = sum over pixels of dy[channel, pixel] x[tap, pixel]  in shares, which are added in order afterwards
 *
 * where tap (c, u, v) of pixel (image, i, j) is x[image, c, row_origin + i row_step + u row_distance, ...], zero outside the image. Backward-data is the correlation of dy with the
 * residues of the kernel (src/ops/conv2d_correlation.h). Pixels of all images and taps are numbered in 32 bits.
 *
 * Compiled in: what gemm/blocked.clh says, and WEIGHTS: 1 for backward-weights, whose slices have neighbours along the pixels summed over; 0 for the others, whose image slices have
 * neighbours along the pixels of a row of y. */
#include "common/koine.clh"
#include "conv/grid.clh"
#include "conv/padding.clh"
#include "gemm/blocked.clh"

/* Of the image that is read, and how its pixels belong to those of the grid. */
typedef struct blocked_image {
    long height, width;         /* of one channel */
    long image, group;          /* elements from one image, from one group of channels to the next */
    long row_step, column_step; /* between neighbours of the grid */
} blocked_image;

typedef struct blocked_tap {
    int inner, u, v;
} blocked_tap;

static inline blocked_tap find_tap(const conv_taps t, long number)
{
    const uint area = (uint)(t.rows * t.columns), inner = (uint)number / area, place = (uint)number % area;
    return (blocked_tap){(int)inner, (int)(place / (uint)t.columns), (int)(place % (uint)t.columns)};
}

/* Where in the image the kernel stands for one pixel of the grid: its corner's row and column, and the image's start. */
typedef struct blocked_pixel {
    int row, column;
    long start;
} blocked_pixel;

static inline blocked_pixel find_pixel(const conv_grid g, const conv_taps t, const blocked_image x, long number)
{
    const uint area = (uint)(g.rows * g.columns), image = (uint)number / area, place = (uint)number % area;
    const uint i = place / (uint)g.columns, j = place % (uint)g.columns;
    return (blocked_pixel){(int)(t.row_origin + i * x.row_step), (int)(t.column_origin + j * x.column_step), image * x.image};
}

static inline T read_tap(const global T *x, const blocked_pixel p, const blocked_tap tap, const conv_taps t, const blocked_image shape)
{
    const int row = p.row + tap.u * (int)t.row_distance, column = p.column + tap.v * (int)t.column_distance;
    return row >= 0 && row < shape.height && column >= 0 && column < shape.width ? x[p.start + (tap.inner * shape.height + row) * shape.width + column] : (T)0;
}

#if !WEIGHTS
/* ---------------------------------------------------------------------------------------------------------------------- */

/* Q taps' weights of one output channel. */
static inline VQ read_weights(const global T *w, const conv_weights g, const conv_taps t, long first, long left)
{
    T part[Q];
#pragma unroll
    for (int e = 0; e < Q; e++) {
        const blocked_tap tap = find_tap(t, first + e);
        part[e] = e < left ? w[tap.inner * g.inner_stride + (g.row_first + tap.u * g.row_step) * g.kernel_columns + g.column_first + tap.v * g.column_step] : (T)0;
    }
    return VLOADQ(0, part);
}

/* One tap of Q pixels. */
static inline VQ read_pixels(const global T *x, const blocked_pixel *pixels, const conv_taps t, const blocked_image shape, long number)
{
    const blocked_tap tap = find_tap(t, number);
    T part[Q];
#pragma unroll
    for (int e = 0; e < Q; e++)
        part[e] = read_tap(x, pixels[e], tap, t, shape);
    return VLOADQ(0, part);
}

#define READ_A(vector, across, step, left) (across < channels ? read_weights(w + across * layout.outer_stride, layout, t, step, left) : (VQ)0)
#define READ_B(vector, across, step, left) read_pixels(x, pixels, t, shape, step)

/* dim 0: block of pixels, dim 1: block of output channels, dim 2: group. */
kernel __attribute__((reqd_work_group_size(BLOCK_ITEMS, 1, 1))) void
conv_blocked(KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), conv_grid g, conv_taps t, conv_weights layout, blocked_image shape, int has_bias, T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    const long group = get_group_id(2), first_channel = (long)get_group_id(1) * BM, channels = g.outer - first_channel;
    const long first_pixel = (long)get_group_id(0) * BN, all_pixels = g.images * g.rows * g.columns;
    x += group * shape.group;
    w += group * layout.group_stride + first_channel * layout.outer_stride;
    y += (group * g.outer + first_channel) * g.y_channel;
    bias += group * g.outer + first_channel;
    /* All vectors that this work-item reads are of the same Q pixels. Pixels beyond the last are outside of every image. */
    blocked_pixel pixels[Q];
#pragma unroll
    for (int e = 0; e < Q; e++) {
        const long number = first_pixel + SLICE_ACROSS(get_local_id(0), BN, 0) + e;
        pixels[e] = find_pixel(g, t, shape, min(number, all_pixels - 1));
        pixels[e].row = number < all_pixels ? pixels[e].row : -(1 << 30);
    }
    BLOCK_PRODUCT(g.taps, READ_A, READ_B)
#pragma unroll
    for (int j = 0; j < RESULT_COLUMNS; j++)
#pragma unroll
        for (int e = 0; e < R; e++) {
            const long number = first_pixel + RESULT_COLUMN(j) + e;
            const uint area = (uint)(g.rows * g.columns), place = (uint)number % area;
            global T *to = y + (uint)number / area * g.y_image + place / (uint)g.columns * g.y_row + place % (uint)g.columns * g.y_column;
            if (number < all_pixels)
#pragma unroll
                for (int i = 0; i < RESULT_ROWS; i++)
                    if (RESULT_ROW(i) < channels) {
                        T part[R];
                        VSTORER(RESULT(i, j), 0, part);
                        const T value = has_bias ? part[e] + bias[RESULT_ROW(i)] : part[e];
                        to[RESULT_ROW(i) * g.y_channel] = KN_CUT(value, low, high);
                    }
        }
}
#else
/* ---------------------------------------------------------------------------------------------------------------------- */

/* Q pixels of one channel of dy; dy starts at that channel of the first image. */
static inline VQ read_gradient(const global T *dy, const conv_gradient g, long first, long left)
{
    const long area = g.rows * g.columns;
    T part[Q];
#pragma unroll
    for (int e = 0; e < Q; e++) {
        const uint number = (uint)(first + e), image = number / (uint)area, place = number % (uint)area;
        part[e] = e < left ? dy[image * g.groups * g.outer * area + place] : (T)0;
    }
    return VLOADQ(0, part);
}

static inline VQ read_taps(const global T *x, const conv_grid g, const conv_taps t, const blocked_image shape, long tap_number, long first, long left)
{
    const blocked_tap tap = find_tap(t, tap_number);
    T part[Q];
#pragma unroll
    for (int e = 0; e < Q; e++)
        part[e] = e < left ? read_tap(x, find_pixel(g, t, shape, first + e), tap, t, shape) : (T)0;
    return VLOADQ(0, part);
}

#define READ_A(vector, across, step, left) (across < channels ? read_gradient(dy + across * area, g, first_pixel + step, left) : (VQ)0)
#define READ_B(vector, across, step, left) (across < taps ? read_taps(x, grid, t, shape, first_tap + across, first_pixel + step, left) : (VQ)0)

/* dim 0: block of taps, dim 1: block of channels of dy, dim 2: group and share of the pixels. sums is [shares][groups * outer][taps], the layout of dw. */
kernel __attribute__((reqd_work_group_size(BLOCK_ITEMS, 1, 1))) void
conv_blocked_weights(KN_IN(x), KN_IN(dy), KN_OUT(sums), conv_gradient g, conv_grid grid, conv_taps t, blocked_image shape)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, sums);
    const long group = get_group_id(2) % g.groups, share = get_group_id(2) / g.groups, area = g.rows * g.columns;
    const long first_channel = (long)get_group_id(1) * BM, channels = g.outer - first_channel, first_tap = (long)get_group_id(0) * BN, taps = g.taps - first_tap;
    const long first_pixel = share * g.pixels_per_share, pixels = min(g.pixels_per_share, g.images * area - first_pixel);
    x += group * shape.group;
    dy += (group * g.outer + first_channel) * area;
    sums += ((share * g.groups + group) * g.outer + first_channel) * g.taps + first_tap;
    BLOCK_PRODUCT(pixels, READ_A, READ_B)
#pragma unroll
    for (int i = 0; i < RESULT_ROWS; i++)
#pragma unroll
        for (int j = 0; j < RESULT_COLUMNS; j++) {
            T part[R];
            VSTORER(RESULT(i, j), 0, part);
#pragma unroll
            for (int e = 0; e < R; e++)
                if (RESULT_ROW(i) < channels && RESULT_COLUMN(j) + e < taps)
                    sums[RESULT_ROW(i) * g.taps + RESULT_COLUMN(j) + e] = part[e];
        }
}
#endif
