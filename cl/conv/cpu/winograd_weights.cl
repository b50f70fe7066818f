/* conv/cpu/winograd_weights.cl - the gradient of a convolution's weights (and bias) by Winograd's method, on CPU
 * devices.
 *
 *     dw = G^T [ sum over tiles of (B^T x B) * (A dy A^T) ] G        (conv/common/winograd.clh)
 *
 * per pair of channels: WP sums of products, one per frequency p, each a matrix product over the tiles,
 *
 *     du[p][c][k] = sum over tiles of v[p][tile][c] * m[p][tile][k]
 *
 * Three steps: the transforms write v and m of a chunk of tiles, small enough to stay in cache, in blocks of VW
 * channels, [block][WP][pitch][VW]; the products read them front to back, VW channels k in vectors and CT channels c as
 * broadcasts; the last step computes [k][c][WRI][WRJ] from du, [pair of blocks][WP][VW c][VW k]. A work-item that
 * computes all frequencies of its blocks does the last step immediately, from cache: with many channels du would be far
 * larger than dw.
 *
 * Measured with AVX-512: the products run at 75 to 90 % of the multiply-add peak if a frequency's v and m come from the
 * L2 or L3 cache (two vectors of m and 8 broadcasts of v make 16 multiply-adds from 10 loads); the transforms,
 * dominated by writing 2.25 (4) times what they read, take a quarter of the time with 64 channels and a tenth with 512.
 *
 * Compiled in: T, VW, WRI, WRJ, WMI, CT (divides VW). Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/pack.clh"

#include "conv/common/winograd.clh"
#include "conv/cpu/winograd_repack.clh"
#include "conv/cpu/winograd.h"

#define PAIR (WP * VW * VW)

/* v[p][tile] = B^T x B for `tiles` tiles of a row in `stage`. */
static inline void transform_inputs(global T *restrict v, const global T *restrict stage, long tiles, long pitch)
{
    const long columns = tiles * WMJ + WRJ - 1;
    for (long tile = 0; tile < tiles; tile++, stage += WMJ * VW, v += VW)
        WINOGRAD_TRANSFORM(winograd_input, WT, WT, VLOAD(i * columns + j, stage),
                           winograd_store_row(v + i * WTJ * pitch * VW, line, WTJ, pitch * VW));
}

static inline V add_to(V *sum, V value)
{
    *sum += value;
    return value;
}

/* m[p][tile] = A dy A^T; returns the sum of dy. */
static inline V transform_gradients(global T *restrict m, const global T *restrict stage, long tiles, long pitch)
{
    V sum = (V)0;
    for (long tile = 0; tile < tiles; tile++, stage += WMJ * VW, m += VW)
        WINOGRAD_TRANSFORM(winograd_gradient, WM, WT, add_to(&sum, VLOAD(i * tiles * WMJ + j, stage)),
                           winograd_store_row(m + i * WTJ * pitch * VW, line, WTJ, pitch * VW));
    return sum;
}

/* Transforms one strip of a block of channels of x or dy; bias_part is [strips of all chunks][channels of dy]. */
KN_ONCE void transform_strip(global T *restrict to, global T *restrict bias_part, global T *restrict stage,
                                   const global T *restrict x, const kn_winograd_side s, const kn_winograd_chunk g,
                                   long block, long strip, int is_gradient)
{
    const long below = is_gradient ? 0 : WRI - 1, beside = is_gradient ? 0 : WRJ - 1; /* what windows add to tiles */
    const long image = strip / g.strips_per_image, row = strip % g.strips_per_image * g.strip_rows;
    const long rows = min(g.strip_rows, g.tile_rows - row), columns = g.tile_columns * WMJ + beside;
    const int channels = (int)min((long)VW, s.channels - block * VW);
    const long tile = (image * g.tile_rows + row) * g.tile_columns - g.first_tile;
    V sum = (V)0;
    winograd_repack(stage, x + (image * s.channels + block * VW) * s.height * s.width, s.height, s.width, channels,
                    row * WMI - s.top, -s.left, rows * WMI + below, columns);
    to += (block * WP * g.pitch + tile) * VW;
    for (long i = 0; i < rows; i++, to += g.tile_columns * VW, stage += WMI * columns * VW) {
        if (is_gradient)
            sum += transform_gradients(to, stage, g.tile_columns, g.pitch);
        else
            transform_inputs(to, stage, g.tile_columns, g.pitch);
    }
    if (is_gradient)
        VSTORE(sum, strip * s.blocks + block, bias_part);
}

/* Each work-item takes a run of (block, strip), those of x first, and has g.stage elements of `stages`. */
KN_KERNEL_ONCE(winograd_weights_transform,
               (KN_ARG(x), KN_ARG(dy), KN_ARG(v), KN_ARG(m), KN_ARG(bias_part), KN_ARG(stages), x_side, dy_side, g),
               KN_IN(x), KN_IN(dy), KN_OUT(v), KN_OUT(m), KN_OUT(bias_part), KN_OUT(stages), kn_winograd_side x_side,
               kn_winograd_side dy_side, kn_winograd_chunk g)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, v);
    KN_BIND_OUT(T, m);
    KN_BIND_OUT(T, bias_part);
    KN_BIND_OUT(T, stages);
    const long all = (x_side.blocks + dy_side.blocks) * g.strips, items = KN_SIZE(0), item = KN_ID(0);
    global T *stage = stages + item * g.stage;
    for (long unit = item * all / items; unit < (item + 1) * all / items; unit++) {
        const long block = unit / g.strips, strip = g.first_strip + unit % g.strips;
        if (block < x_side.blocks)
            transform_strip(v, bias_part, stage, x, x_side, g, block, strip, 0);
        else
            transform_strip(m, bias_part, stage, dy, dy_side, g, block - x_side.blocks, strip, 1);
    }
}

/* du (+)= CT channels c by KV vectors of k, over the tiles. m_stride: elements from one block of m to the next. */
#define PRODUCT(name, KV)                                                                                              \
    KN_ONCE void name(global T *restrict du, const global T *restrict v, const global T *restrict m,            \
                            long m_stride, long tiles, int add)                                                        \
    {                                                                                                                  \
        V sum[CT][KV];                                                                                                 \
        _Pragma("unroll") for (int i = 0; i < CT; i++)                                                                 \
            _Pragma("unroll") for (int j = 0; j < KV; j++)                                                             \
                sum[i][j] = (V)0;                                                                                      \
        for (long tile = 0; tile < tiles; tile++) {                                                                    \
            V d[KV];                                                                                                   \
            _Pragma("unroll") for (int j = 0; j < KV; j++) d[j] = VLOAD(tile, m + j * m_stride);                       \
            _Pragma("unroll") for (int i = 0; i < CT; i++)                                                             \
            {                                                                                                          \
                const V value = (V)v[tile * VW + i];                                                                   \
                _Pragma("unroll") for (int j = 0; j < KV; j++) sum[i][j] = fma(value, d[j], sum[i][j]);                \
            }                                                                                                          \
        }                                                                                                              \
        _Pragma("unroll") for (int i = 0; i < CT; i++)                                                                 \
            _Pragma("unroll") for (int j = 0; j < KV; j++)                                                             \
                VSTORE(add ? sum[i][j] + VLOAD(i, du + j * PAIR) : sum[i][j], i, du + j * PAIR);                       \
    }
PRODUCT(product_1, 1)
PRODUCT(product_2, 2)

/* Tiles whose products are summed alone before they are added to the others': the rounding of longer sums would be the
 * largest error of the gradient. */
#define SUMMED 64

/* The offset in du of the pair of block c and block k: blocks of k in pairs, as computed by product_2. */
static inline long pair_at(long k, long c, long du_row) { return (k & ~1L) * du_row + 2 * c + (k & 1); }

/* A rectangle of blocks: of c from c_first on, c_count; of k likewise. */
typedef struct winograd_blocks {
    long c_first, c_count, k_first, k_count;
} winograd_blocks;

/* Frequencies first_p .. last_p of the rectangle, whose first pair of blocks is du; rows of pairs are du_row long. */
static inline void products(global T *restrict du, long du_row, const global T *restrict v, const global T *restrict m,
                            const winograd_blocks b, const kn_winograd_chunk g, long first_p, long last_p, int add)
{
    const long panel = WP * g.pitch * VW;
    for (long p = first_p; p < last_p; p++)
        for (long k = 0; k < b.k_count; k += 2)
            for (long c = 0; c < b.c_count; c++) {
                const global T *from_v = v + (b.c_first + c) * panel + p * g.pitch * VW;
                const global T *from_m = m + (b.k_first + k) * panel + p * g.pitch * VW;
                global T *to = du + pair_at(k, c, du_row) * PAIR + p * VW * VW;
                for (int i = 0; i < VW; i += CT)
                    for (long t = 0; t < g.tiles; t += SUMMED) {
                        const long tiles = min(g.tiles - t, (long)SUMMED);
                        if (k + 1 < b.k_count)
                            product_2(to + i * VW, from_v + t * VW + i, from_m + t * VW, panel, tiles, add || t > 0);
                        else
                            product_1(to + i * VW, from_v + t * VW + i, from_m + t * VW, panel, tiles, add || t > 0);
                    }
            }
}

/* dw of one pair of blocks. */
KN_ONCE void finish_pair(global T *restrict dw, const global T *restrict du, global T *restrict stage,
                               long in_channels, long out_channels, long c_block, long k_block)
{
    const int columns = (int)min((long)VW, in_channels - c_block * VW) * WTAPS;
    const int rows = (int)min((long)VW, out_channels - k_block * VW);
    dw += (k_block * VW * in_channels + c_block * VW) * WTAPS;
    for (int c = 0; c < VW; c++) {
        WINOGRAD_TRANSFORM(winograd_weight_gradient, WT, WR, VLOAD((i * WTJ + j) * VW + c, du),
                           winograd_store_row(stage + (c * WTAPS + i * WRJ) * VW, line, WRJ, VW));
    }
    for (int j = 0; j < columns; j += VW) {
        V block[VW];
#pragma unroll
        for (int i = 0; i < VW; i++)
            block[i] = VLOAD(j + i, stage);
        zip_transpose(block);
        if (rows == VW && j + VW <= columns) {
#pragma unroll
            for (int i = 0; i < VW; i++)
                VSTORE(block[i], 0, dw + i * in_channels * WTAPS + j);
        } else {
            T part[VW * VW];
#pragma unroll
            for (int i = 0; i < VW; i++)
                VSTORE(block[i], i, part);
            for (int i = 0; i < rows; i++)
                for (int k = 0; k < min(VW, columns - j); k++)
                    dw[i * in_channels * WTAPS + j + k] = part[i * VW + k];
        }
    }
}

/* db = the sum over the strips, in order; skipped where channels is 0. */
static inline void finish_bias(global T *restrict db, const global T *restrict bias_part, long channels, long strips,
                               long padded, long item, long items)
{
    KN_FOR_ITEM(channel, channels, item, items) {
        T total = 0;
        for (long strip = 0; strip < strips; strip++)
            total += bias_part[strip * padded + channel];
        db[channel] = total;
    }
}

static inline winograd_blocks rectangle(const kn_winograd_side x_side, const kn_winograd_side dy_side,
                                        const kn_winograd_sharing plan, long index)
{
    const long across = (x_side.blocks + plan.c_blocks - 1) / plan.c_blocks;
    winograd_blocks b;
    b.c_first = index % across * plan.c_blocks;
    b.k_first = index / across * plan.k_blocks;
    b.c_count = min(plan.c_blocks, x_side.blocks - b.c_first);
    b.k_count = min(plan.k_blocks, dy_side.blocks - b.k_first);
    return b;
}

/* Products of a chunk into du, pairs of blocks in the order of pair_at. dim 0: rectangle, dim 1: an equal share of the
 * frequencies; so one frequency's v and m, of all channels, are reused while in cache. */
KN_KERNEL_ONCE(winograd_weights_products,
               (KN_ARG(v), KN_ARG(m), KN_ARG(du), x_side, dy_side, g, plan),
               KN_IN(v), KN_IN(m), KN_OUT(du), kn_winograd_side x_side, kn_winograd_side dy_side, kn_winograd_chunk g,
               kn_winograd_sharing plan)
{
    KN_BIND_IN(T, v);
    KN_BIND_IN(T, m);
    KN_BIND_OUT(T, du);
    const winograd_blocks b = rectangle(x_side, dy_side, plan, KN_ID(0));
    const long share = WP / KN_SIZE(1), first = KN_ID(1) * share;
    products(du + pair_at(b.k_first, b.c_first, x_side.blocks) * PAIR, x_side.blocks, v, m, b, g, first, first + share,
             plan.add);
}

/* dw of all pairs, and db. Each work-item has VW * VW * WTAPS elements of `stages`. */
KN_KERNEL_ONCE(winograd_weights_finish,
               (KN_ARG(du), KN_ARG(bias_part), KN_ARG(dw), KN_ARG(db), KN_ARG(stages), x_side, dy_side, plan),
               KN_IN(du), KN_IN(bias_part), KN_OUT(dw), KN_OUT(db), KN_OUT(stages), kn_winograd_side x_side,
               kn_winograd_side dy_side, kn_winograd_sharing plan)
{
    KN_BIND_IN(T, du);
    KN_BIND_IN(T, bias_part);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, db);
    KN_BIND_OUT(T, stages);
    KN_FOR_ONCE(i, x_side.blocks * dy_side.blocks) {
        const long c = i % x_side.blocks, k = i / x_side.blocks;
        finish_pair(dw, du + pair_at(k, c, x_side.blocks) * PAIR, stages + KN_ID(0) * VW * VW * WTAPS,
                    x_side.channels, dy_side.channels, c, k);
    }
    finish_bias(db, bias_part, plan.bias_channels, plan.bias_strips, dy_side.blocks * VW, KN_ID(0), KN_SIZE(0));
}

/* Products of the only chunk and dw in one launch: each work-item processes a run of rectangles and has room in
 * `stages` for one rectangle's du and for finish_pair. */
KN_KERNEL_ONCE(winograd_weights_at_once,
               (KN_ARG(v), KN_ARG(m), KN_ARG(bias_part), KN_ARG(dw), KN_ARG(db), KN_ARG(stages), x_side, dy_side, g,
                plan),
               KN_IN(v), KN_IN(m), KN_IN(bias_part), KN_OUT(dw), KN_OUT(db), KN_OUT(stages), kn_winograd_side x_side,
               kn_winograd_side dy_side, kn_winograd_chunk g, kn_winograd_sharing plan)
{
    KN_BIND_IN(T, v);
    KN_BIND_IN(T, m);
    KN_BIND_IN(T, bias_part);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, db);
    KN_BIND_OUT(T, stages);
    const long across = (x_side.blocks + plan.c_blocks - 1) / plan.c_blocks;
    const long all = across * ((dy_side.blocks + plan.k_blocks - 1) / plan.k_blocks);
    const long room = plan.c_blocks * plan.k_blocks * PAIR;
    global T *du = stages + KN_ID(0) * (room + VW * VW * WTAPS);
    KN_FOR_ONCE(index, all) {
        const winograd_blocks b = rectangle(x_side, dy_side, plan, index);
        products(du, plan.c_blocks, v, m, b, g, 0, WP, 0);
        for (long k = 0; k < b.k_count; k++)
            for (long c = 0; c < b.c_count; c++)
                finish_pair(dw, du + pair_at(k, c, plan.c_blocks) * PAIR, du + room, x_side.channels, dy_side.channels,
                            b.c_first + c, b.k_first + k);
    }
    finish_bias(db, bias_part, plan.bias_channels, plan.bias_strips, dy_side.blocks * VW, KN_ID(0), KN_SIZE(0));
}
