/* conv/gpu/blocked.cl - convolution for GPUs as implicit GEMM (gemm/blocked.clh): elements of the image are gathered as
 * slices are read (conv/gpu/blocked.clh).
 *
 *     forward, backward-data:  y[channel, pixel] = sum over taps of w[channel, tap] x[tap, pixel]
 *     backward-weights:        dw[channel, tap]  = sum over pixels of dy[channel, pixel] x[tap, pixel]
 *
 * over the pixels of all images; backward-weights splits them into shares, whose sums are then added in order.
 *
 * Backward-data is the correlation of dy with the residues of the kernel (src/ops/conv/common/correlation.h), whose
 * weights conv/gpu/pack_taps.cl has packed.
 *
 * On sm_90 a slice of 128 x 128 x 8 takes about 630 instructions per work-item on the common path (backward-weights
 * 700), of which 512 are multiply-adds and 32 reads of local memory.
 *
 * Compiled in: as in gemm/blocked.clh, and PASS: 0 for forward and backward-data, whose image slices are contiguous
 * along the pixels; 1 for backward-weights, whose slices are contiguous along the summed pixels. */
#include "common/koine.clh"
#include "common/divide.clh"
#include "gemm/blocked.clh"
#include "conv/gpu/blocked.clh"

#if PASS == 0
#include "gemm/blocked_matrix.clh"

#define READ_A(j, step, left)                                                                                          \
    read_next(&w_at[j], A_ALONG_K ? BK : BK * weights.tap,                                                             \
              A_ALONG_K ? (left) : (left) > 0 ? w_inside[j] : 0, weights.aligned)
/* One tap of Q pixels. */
#define READ_B(j, step, left)                                                                                          \
    read_pixels(x, pixels, place, find_tap(taps, pixels.width, tap + step), left, result.pointwise)

static inline VQ read_pixels(const global T *x, const kn_conv_pixels pixels, const conv_place *place,
                             const conv_place tap, int left, int pointwise)
{
    if (pointwise)
        return left > 0 && place[0].row >= 0 ? *(const global VQ *)(x + place[0].offset + tap.offset) : (VQ)0;
    T part[Q];
#pragma unroll
    for (int e = 0; e < Q; e++)
        part[e] = left > 0 ? read_tap(x, pixels, place[e], tap) : (T)0;
    return VLOADQ(0, part);
}

/* The offset of pixel `number` in a channel of y; -1 if it does not exist. */
static inline long find_result(const kn_conv_result result, const kn_conv_pixels pixels, uint number)
{
    const uint image = kn_quotient(number, pixels.area), place = kn_remainder(number, image, pixels.area),
               i = kn_quotient(place, pixels.columns);
    return number < (uint)pixels.all
               ? image * result.image + i * result.row + kn_remainder(place, i, pixels.columns) * result.column
               : -1;
}

/* R pixels of one channel. */
static inline void store_pixels(global T *y, VR sum, const long *place, int dense)
{
    T part[R];
    if (dense) {
        if (place[0] >= 0)
            *(global VR *)(y + place[0]) = sum;
        return;
    }
    VSTORER(sum, 0, part);
#pragma unroll
    for (int e = 0; e < R; e++)
        if (place[e] >= 0)
            y[place[e]] = part[e];
}

/* dim 0: block of pixels, dim 1: block of output channels, dim 2: group. */
kernel __attribute__((reqd_work_group_size(BLOCK_ITEMS, 1, 1))) void
conv_blocked(KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), kn_conv_pixels pixels, kn_conv_tap_numbers taps,
             kn_conv_weight_matrix weights, kn_conv_result result, T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    const int item = get_local_id(0);
    const long group = get_group_id(2), first_channel = (long)get_group_id(1) * BM,
               channels = result.channels - first_channel;
    const uint first_pixel = get_group_id(0) * BN, first_image = kn_quotient(first_pixel, pixels.area);
    x += group * result.x_group + (long)first_image * pixels.image;
    w += group * weights.group + first_channel * weights.channel;
    y += (group * result.channels + first_channel) * result.channel;
    bias += group * result.channels + first_channel;
    /* All image vectors that this work-item reads are of the same Q pixels. */
    conv_place place[Q];
    uint tap = 0;
#pragma unroll
    for (int e = 0; e < Q; e++)
        place[e] = find_pixel(pixels, first_image, first_pixel + SLICE_ACROSS(item, BN, 0) + e);
    DECLARE_VECTORS(T, w, A_VECTORS, BM, A_ALONG_K, weights.channel, weights.tap, channels)
#define NEXT_SLICE(start) tap = start;
    BLOCK_PRODUCT(taps.all, NEXT_SLICE, READ_A, READ_B)
#pragma unroll
    for (int j = 0; j < RESULT_COLUMNS; j++) {
        long found[R];
#pragma unroll
        for (int e = 0; e < R; e++)
            found[e] = find_result(result, pixels, first_pixel + RESULT_COLUMN(j) + e);
#pragma unroll
        for (int i = 0; i < RESULT_ROWS; i++)
            if (RESULT_ROW(i) < channels) {
                const VR value = result.has_bias ? RESULT(i, j) + bias[RESULT_ROW(i)] : RESULT(i, j);
                store_pixels(y + RESULT_ROW(i) * result.channel, KN_CLAMP(value, (VR)low, (VR)high), found,
                             result.dense);
            }
    }
}

#else
/* ------------------------------------------------------------------------------------------------------------------ */

/* The Q pixels that this work-item reads of each channel of dy and each tap: the same in all of its vectors. */
typedef struct weight_pixels {
    conv_place place[Q];
    int dy[Q];
} weight_pixels;

static inline void find_pixels(weight_pixels *at, const kn_conv_pixels pixels, const kn_conv_shares shares,
                               uint first_image, uint first)
{
#pragma unroll
    for (int e = 0; e < Q; e++) {
        const uint image = kn_quotient(first + e, pixels.area);
        at->place[e] = find_pixel(pixels, first_image, first + e);
        at->dy[e] =
            (int)(image - first_image) * (int)shares.dy_image + (int)kn_remainder(first + e, image, pixels.area);
    }
}

static inline VQ read_gradient(const global T *channel, const weight_pixels *at, int left)
{
    T part[Q];
#pragma unroll
    for (int e = 0; e < Q; e++)
        part[e] = e < left ? channel[at->dy[e]] : (T)0;
    return VLOADQ(0, part);
}

static inline VQ read_taps(const global T *x, const kn_conv_pixels pixels, const weight_pixels *at,
                           const conv_place tap, int left)
{
    T part[Q];
#pragma unroll
    for (int e = 0; e < Q; e++)
        part[e] = e < left ? read_tap(x, pixels, at->place[e], tap) : (T)0;
    return VLOADQ(0, part);
}

#define NEXT_SLICE(start)                                                                                              \
    find_pixels(&at, pixels, shares, first_image, (uint)(first_pixel + start + SLICE_STEP(item, BM, 1)));
#define READ_A(j, step, left) read_gradient(dy_at[j], &at, left)
#define READ_B(j, step, left) read_taps(x, pixels, &at, tap[j], left)

/* dim 0: block of taps, dim 1: block of channels of dy, dim 2: group and share of the pixels. sums is [shares][groups *
 * channels][taps], the layout of dw. */
kernel __attribute__((reqd_work_group_size(BLOCK_ITEMS, 1, 1))) void
conv_blocked_weights(KN_IN(x), KN_IN(dy), KN_OUT(sums), kn_conv_pixels pixels, kn_conv_tap_numbers taps,
                     kn_conv_shares shares)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, sums);
    const int item = get_local_id(0);
    const long group = get_group_id(2) % shares.groups, share = get_group_id(2) / shares.groups;
    const long first_channel = (long)get_group_id(1) * BM, channels = shares.channels - first_channel,
               first_tap = (long)get_group_id(0) * BN, last_tap = taps.all - first_tap;
    const uint first_pixel = (uint)share * shares.per_share, first_image = kn_quotient(first_pixel, pixels.area);
    x += group * shares.x_group + (long)first_image * pixels.image;
    dy += (long)first_image * shares.dy_image + (group * shares.channels + first_channel) * pixels.area.divisor;
    sums += ((share * shares.groups + group) * shares.channels + first_channel) * taps.all + first_tap;
    weight_pixels at;
    conv_place tap[B_VECTORS];
    const global T *dy_at[A_VECTORS];
#pragma unroll
    for (int j = 0; j < B_VECTORS; j++)
        tap[j] = find_tap(taps, pixels.width,
                          (uint)min(first_tap + SLICE_ACROSS(item + j * BLOCK_ITEMS, BN, 1), (long)taps.all - 1));
#pragma unroll
    for (int j = 0; j < A_VECTORS; j++)
        dy_at[j] = dy + min((long)SLICE_ACROSS(item + j * BLOCK_ITEMS, BM, 1), channels - 1) * pixels.area.divisor;
    BLOCK_PRODUCT(min(shares.per_share, pixels.all - (int)first_pixel), NEXT_SLICE, READ_A, READ_B)
#pragma unroll
    for (int i = 0; i < RESULT_ROWS; i++)
#pragma unroll
        for (int j = 0; j < RESULT_COLUMNS; j++) {
            T part[R];
            VSTORER(RESULT(i, j), 0, part);
#pragma unroll
            for (int e = 0; e < R; e++)
                if (RESULT_ROW(i) < channels && RESULT_COLUMN(j) + e < last_tap)
                    sums[RESULT_ROW(i) * taps.all + RESULT_COLUMN(j) + e] = part[e];
        }
}
#endif
