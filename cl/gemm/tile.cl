/* gemm/tile.cl - matrix multiplication for CPU devices: C = alpha op(A) op(B) + beta C + bias, row-major.
 *
 * The unit of work is a tile of MR rows by NV vectors of VW columns whose sums stay in vector registers while the loop
 * over k runs: per k, NV vector loads of B and MR broadcasts of A feed MR * NV multiply-adds, enough of them to hide
 * the multiply-add's latency. MR * NV + NV + 1 must not exceed the machine's vector registers: a tile that spills
 * halves the speed.
 *
 * B is read as panels of NR = NV * VW columns, [k][NR] each, so that the tile reads it front to back. A is read in
 * place (row_stride, k_stride) or as panels of MR rows, [k][MR]. The loop over k is cut into blocks of KC, so that a
 * block of a B panel stays in the level-2 cache while all rows pass over it.
 *
 * Compiled in: T, VW, NV, MR, KC. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"

#define NR (NV * VW)

typedef struct matrix_layout {
    long row_stride;   /* elements from one row of op(X) to the next */
    long col_stride;   /* elements from one column of op(X) to the next */
    long batch_stride; /* elements from one matrix to the next */
} matrix_layout;

/* Packs one operand: op(X) [k, width] as panels [batch][ceil(width / panel_width)][k][panel_width]. dim 0: panel, dim
 * 1: block of k, dim 2: batch. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
gemm_pack(KN_IN(x), KN_OUT(panels), long k, long width, int panel_width, long k_stride, long stride, long batch_stride)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, panels);
    const long panel = get_global_id(0), batch = get_global_id(2), num_panels = get_global_size(0);
    const long block = (k + get_global_size(1) - 1) / get_global_size(1), k_begin = get_global_id(1) * block;
    const long k_count = min(block, k - k_begin);
    if (k_count <= 0)
        return;
    pack_panel(panels + ((batch * num_panels + panel) * k + k_begin) * panel_width,
               x + batch * batch_stride + k_begin * k_stride + panel * panel_width * stride, k_count,
               (int)min((long)panel_width, width - panel * panel_width), panel_width, k_stride, stride);
}

/* Stores the first `columns` of a row of sums, finished. */
static inline void store_row(global T *restrict c, const V *sums, int columns, const global T *restrict bias,
                             gemm_finish f)
{
#pragma unroll
    for (int v = 0; v < NV; v++) {
        if (columns >= (v + 1) * VW) {
            V r = f.alpha * sums[v];
            if (f.beta != (T)0)
                r = fma((V)f.beta, VLOAD(0, c + v * VW), r);
            if (f.has_bias)
                r += VLOAD(0, bias + v * VW);
            VSTORE(KN_CUT(r, (V)f.low, (V)f.high), 0, c + v * VW);
        } else if (columns > v * VW) {
            T part[VW];
            VSTORE(sums[v], 0, part);
            for (int j = v * VW; j < columns; j++)
                c[j] = finish_value(f, part[j - v * VW], c + j, bias + j);
        }
    }
}

/* One tile: rows (at most MR) by columns (at most NR), over k_count values of k. */
static inline void tile(global T *restrict c, long ldc, const global T *restrict a, long row_stride, long a_k_stride,
                        const global T *restrict b, long b_k_stride, long k_count, int rows, int columns,
                        const global T *restrict bias, gemm_finish f)
{
    const global T *row[MR];
    V sum[MR][NV];
#pragma unroll
    for (int i = 0; i < MR; i++) {
        row[i] = a + min(i, rows - 1) * row_stride; /* rows beyond the edge repeat the last one and are not stored */
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[i][v] = (V)0;
    }
    for (long k = 0; k < k_count; k++) {
        V column[NV];
#pragma unroll
        for (int v = 0; v < NV; v++)
            column[v] = VLOAD(0, b + k * b_k_stride + v * VW);
#pragma unroll
        for (int i = 0; i < MR; i++) {
            const V value = (V)row[i][k * a_k_stride];
#pragma unroll
            for (int v = 0; v < NV; v++)
                sum[i][v] = fma(value, column[v], sum[i][v]);
        }
    }
#pragma unroll
    for (int i = 0; i < MR; i++)
        if (i < rows)
            store_row(c + i * ldc, sum[i], columns, bias, f);
}

/* k is summed block by block in C: the first takes beta, the last the bias and the activation. */
static inline gemm_finish finish_of_part(gemm_finish f, bool first, bool last)
{
    if (!first)
        f.beta = (T)1;
    if (!last) {
        f.has_bias = 0;
        f.low = f.high = (T)NAN;
    }
    return f;
}

/* dim 0: block of rows_per_item rows, dim 1: column panel, dim 2: batch.
 *
 * b_panels: B is packed. Otherwise it is read in place where its columns are contiguous and the panel is full, and
 * staged block by block into this work-item's part of `scratch` (KC * NR elements) where not: for small products one
 * launch that copies a little twice is cheaper than two launches. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
gemm_tiles(KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), KN_OUT(scratch), long m, long n, long k, matrix_layout a_layout,
           int a_packed, matrix_layout b_layout, int b_packed, long ldc, long c_batch_stride, long rows_per_item,
           gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    KN_BIND_OUT(T, scratch);
    const long panel = get_global_id(1), batch = get_global_id(2);
    const long first_row = get_global_id(0) * rows_per_item, last_row = min(m, first_row + rows_per_item);
    const long first_column = panel * NR;
    const int columns = (int)min((long)NR, n - first_column);
    const bool staged = !b_packed && (b_layout.col_stride != 1 || columns < NR);
    a += batch * a_layout.batch_stride;
    b += batch * b_layout.batch_stride + (b_packed ? panel * k * NR : first_column * b_layout.col_stride);
    c += batch * c_batch_stride + first_column;
    scratch += ((batch * get_global_size(1) + panel) * get_global_size(0) + get_global_id(0)) * min(k, (long)KC) * NR;

    for (long k0 = 0; k0 == 0 || k0 < k; k0 += KC) {
        const gemm_finish part = finish_of_part(finish, k0 == 0, k0 + KC >= k);
        const long k_count = min((long)KC, k - k0);
        const global T *block = b + k0 * (b_packed ? NR : b_layout.row_stride);
        if (staged)
            pack_panel(scratch, block, k_count, columns, NR, b_layout.row_stride, b_layout.col_stride);
        for (long i = first_row; i < last_row; i += MR) {
            const int rows = (int)min((long)MR, last_row - i);
            const global T *a_tile =
                a_packed ? a + k0 * m + i * KC : a + i * a_layout.row_stride + k0 * a_layout.col_stride;
            tile(c + i * ldc, ldc, a_tile, a_packed ? KC : a_layout.row_stride, a_packed ? 1 : a_layout.col_stride,
                 staged ? scratch : block, staged || b_packed ? NR : b_layout.row_stride, k_count, rows, columns,
                 bias + first_column, part);
        }
    }
}
