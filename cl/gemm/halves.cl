/* gemm/halves.cl - f16 matrix products on the tensor cores of NVIDIA GPUs: C = clamp(alpha op(A) op(B) + beta C +
 * bias), row-major, with sums in f32. f16 is `ushort` here; the device's compiler need not support it.
 *
 * A work-group of BLOCK_ITEMS computes BM x BN of C in slices of BK along k, with STAGES slices in local memory: while
 * one is multiplied, the next STAGES - 1 are being copied from global memory without passing through registers
 * (COPY_ASYNC). There is one barrier per slice, after which the buffer of the previous slice can be overwritten.
 *
 * Slices have the same orientation as in global memory, in rows of vectors of 8 (16 bytes). A warp reads them as 8 x 8
 * matrices, eight vectors of eight neighbouring rows (LOAD_MATRICES), plain or transposed, so that both orientations
 * serve both operands. Eight vectors use each bank once if they are at eight different 16-byte positions modulo 128
 * bytes: PLACE, which swizzles the vectors within a row by the row's index, ensures that, also for the vectors stored
 * by a quarter of a warp.
 *
 * A warp computes WARP_M x WARP_N as tiles of 16 x 8. Per 16 steps of k it reads (WARP_M + WARP_N) * 32 bytes for
 * WARP_M * WARP_N / 128 instructions: with 64 x 32, 24 times 128 bytes, which local memory delivers one per clock, for
 * 16 instructions, of which a multiprocessor starts one per 1.5 clocks at best (capability 9.0, 2048 multiply-adds
 * each): the two are balanced.
 *
 * Compiled in: BM, BN, BK (32), WARP_M, WARP_N (multiples of 16), STAGES (at least 2), A_ALONG_K, B_ALONG_K, PTX (the
 * capability, 80 for 8.0; from 75 on), Q = 8. */
#include "common/koine.clh"
#include "gemm/block.clh"
#define WARPS_N (BN / WARP_N)
#define WARPS (BM / WARP_M * WARPS_N)
#define BLOCK_ITEMS (32 * WARPS)
#define TILES_M (WARP_M / 16)
#define TILES_N (WARP_N / 8)
#include "gemm/mma_halves.clh"
#include "gemm/slices.clh"
#include "gemm/layout.h"

/* The number of vectors in a row of a slice; the position of vector `column` of row `row`. */
#define ROW_VECTORS(width, along_k) (((along_k) ? BK : (width)) / Q)
#define PLACE(row, column, vectors)                                                                                    \
    ((row) * (vectors) + ((column) ^ ((vectors) >= 8 ? (row) % 8 : (row) * (vectors) / 8 % (vectors))))
#define A_SLICE (BM * BK / Q)
#define B_SLICE (BN * BK / Q)

/* The slow path: unaligned vectors, and edges that COPY_ASYNC cannot truncate. */
static inline uint4 gather_halves(const global ushort *from, int inside)
{
    uint word[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        word[i] = (2 * i < inside ? from[2 * i] : 0u) | (2 * i + 1 < inside ? (uint)from[2 * i + 1] << 16 : 0u);
    return (uint4)(word[0], word[1], word[2], word[3]);
}

static inline void copy_vector(local uint4 *to, const global ushort *from, int inside, int aligned)
{
    if (aligned)
        COPY_ASYNC(to, from, inside);
    else
        *to = gather_halves(from, inside);
}

/* Copies the work-item's part of the next slice, of which `left` steps remain, to `slice`, and advances. Vectors along
 * k are truncated at its end, those across it at the matrix's edge. */
#define COPY_SLICE(slice, x, vectors, width, along_k, stride, aligned)                                                 \
    _Pragma("unroll") for (int j = 0; j < vectors; j++)                                                                \
    {                                                                                                                  \
        const int i = item + j * BLOCK_ITEMS, step = SLICE_STEP(i, width, along_k),                                    \
                  row = i / ROW_VECTORS(width, along_k);                                                               \
        const int inside = (along_k) ? clamp(left - step, 0, Q) : left > step ? x##_inside[j] : 0;                     \
        if (SLICE_HAS(i, width))                                                                                       \
            copy_vector((slice) + PLACE(row, i % ROW_VECTORS(width, along_k), ROW_VECTORS(width, along_k)), x##_at[j], \
                        inside, aligned);                                                                              \
        x##_at[j] += stride;                                                                                           \
    }
#define COPY_SLICES(stage)                                                                                             \
    COPY_SLICE(slices[stage], a, A_VECTORS, BM, A_ALONG_K, A_ALONG_K ? BK : BK *a_layout.col_stride, a_aligned)        \
    COPY_SLICE(slices[stage] + A_SLICE, b, B_VECTORS, BN, B_ALONG_K, B_ALONG_K ? BK : BK * b_layout.row_stride,        \
               b_aligned)                                                                                              \
    left -= BK;                                                                                                        \
    COPY_COMMIT

/* The vector whose address this lane passes to LOAD_MATRICES, for the four matrices that start at (across, step): two
 * across by two along k. across_first: the second matrix is the next one across, as in the tiles of A; else the next
 * along k, as in two tiles of B. */
static inline int matrix_row(int lane, int across, int step, int width, int along_k, int across_first)
{
    const int matrix = lane / 8, next_across = across_first ? matrix % 2 : matrix / 2,
              next_step = across_first ? matrix / 2 : matrix % 2;
    const int row = along_k ? across + next_across * 8 + lane % 8 : step + next_step * 8 + lane % 8;
    const int column = along_k ? step / Q + next_step : across / Q + next_across;
    return PLACE(row, column, ROW_VECTORS(width, along_k));
}

#define MULTIPLY_SLICE(slice)                                                                                          \
    MMA_LOOP for (int step = 0; step < BK; step += 16)                                                                 \
    {                                                                                                                  \
        uint4 a_tile[TILES_M], b_tiles[TILES_N / 2];                                                                   \
        MMA_LOOP for (int i = 0; i < TILES_M; i++)                                                                     \
            LOAD_MATRICES(a_tile[i], (slice) + matrix_row(lane, warp_m + i * 16, step, BM, A_ALONG_K, 1), !A_ALONG_K)  \
                MMA_LOOP for (int j = 0; j < TILES_N / 2; j++)                                                         \
                    LOAD_MATRICES(b_tiles[j],                                                                          \
                                  (slice) + A_SLICE + matrix_row(lane, warp_n + j * 16, step, BN, B_ALONG_K, 0),       \
                                  !B_ALONG_K) MMA_TILES(sum, a_tile, b_tiles)                                          \
    }

/* Stores two neighbours in a row of C, of which `columns` are inside, with the bias of both. */
static inline void store_pair(global ushort *c, float2 sum, float2 bias, long columns, float alpha, float beta,
                              float low, float high, int aligned)
{
    sum = alpha * sum + bias;
    if (beta != 0) {
        sum.s0 += beta * from_half(c[0]);
        if (columns > 1)
            sum.s1 += beta * from_half(c[1]);
    }
    sum = KN_CLAMP(sum, (float2)low, (float2)high);
    const uint first = to_half(sum.s0), second = to_half(sum.s1);
    if (aligned && columns > 1) {
        *(global uint *)c = first | second << 16;
        return;
    }
    c[0] = (ushort)first;
    if (columns > 1)
        c[1] = (ushort)second;
}

/* A work-group makes a block of the result (gemm/block.clh). aligned: base, leading dimension and batch stride are
 * multiples of Q, of C of 2. */
kernel __attribute__((reqd_work_group_size(BLOCK_ITEMS, 1, 1))) void
gemm_halves(KN_IN(a), KN_IN(b), KN_OUT(c), KN_IN(bias), int has_bias, long m, long n, int k, kn_gemm_layout a_layout,
            kn_gemm_layout b_layout, long ldc, long c_batch_stride, float alpha, float beta, int a_aligned,
            int b_aligned, int c_aligned, float low, float high)
{
    KN_BIND_IN(ushort, a);
    KN_BIND_IN(ushort, b);
    KN_BIND_OUT(ushort, c);
    KN_BIND_IN(ushort, bias);
    local uint4 slices[STAGES][A_SLICE + B_SLICE];
    MMA_DECLARE
    const int item = get_local_id(0), lane = item % 32, warp_m = item / 32 / WARPS_N * WARP_M,
              warp_n = item / 32 % WARPS_N * WARP_N;
    const kn_gemm_block place = KN_GEMM_BLOCK(m, n);
    const long first_row = place.row, first_column = place.column, batch = place.batch;
    a += batch * a_layout.batch_stride + first_row * a_layout.row_stride;
    b += batch * b_layout.batch_stride + first_column * b_layout.col_stride;
    c += batch * c_batch_stride + first_row * ldc + first_column;
    m -= first_row; /* what remains from here on */
    n -= first_column;
    DECLARE_VECTORS(ushort, a, A_VECTORS, BM, A_ALONG_K, a_layout.row_stride, a_layout.col_stride, m)
    DECLARE_VECTORS(ushort, b, B_VECTORS, BN, B_ALONG_K, b_layout.col_stride, b_layout.row_stride, n)
    float4 sum[TILES_M][TILES_N];
#pragma unroll
    for (int i = 0; i < TILES_M; i++)
#pragma unroll
        for (int j = 0; j < TILES_N; j++)
            sum[i][j] = (float4)0;

    int left = k, to = STAGES - 1;
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++) {
        COPY_SLICES(stage)
    }
    for (int start = 0, from = 0; start < k; start += BK) {
        COPY_WAIT(STAGES_ON_THE_WAY)
        barrier(CLK_LOCAL_MEM_FENCE);
        COPY_SLICES(to)
        MULTIPLY_SLICE(slices[from])
        from = from == STAGES - 1 ? 0 : from + 1;
        to = to == STAGES - 1 ? 0 : to + 1;
    }
#pragma unroll
    for (int j = 0; j < TILES_N; j++) {
        const long column = warp_n + j * 8 + lane % 4 * 2;
        float2 add = (float2)0;
        if (has_bias && column < n)
            add = (float2)(from_half(bias[first_column + column]),
                           column + 1 < n ? from_half(bias[first_column + column + 1]) : 0);
#pragma unroll
        for (int i = 0; i < TILES_M; i++) {
            const long row = warp_m + i * 16 + lane / 4;
            global ushort *place = c + row * ldc + column;
            if (row < m && column < n)
                store_pair(place, sum[i][j].s01, add, n - column, alpha, beta, low, high, c_aligned);
            if (row + 8 < m && column < n)
                store_pair(place + 8 * ldc, sum[i][j].s23, add, n - column, alpha, beta, low, high, c_aligned);
        }
    }
}
