/* gemm/dots.cl - matrix products on CPU devices whose operands are both contiguous along k (A plain, B transposed),
 * read in place: each element of C is a dot product, vectorised along k.
 *
 * Packing B for gemm/tile.cl would cost as much as some 15 rows of A. A tile is DOT_ROWS by DOT_COLUMNS sums, each a
 * vector whose lanes are added at the end: per vector of k, DOT_ROWS + DOT_COLUMNS loads feed DOT_ROWS * DOT_COLUMNS
 * multiply-adds. A tile's rows of B stay in the level-1 cache for all rows of A.
 *
 * Compiled in: T, VW, REGISTERS (vector registers); BFLOAT (gemm/element.clh): a vector along k is of words of two
 * elements (gemm/pair_words.clh), DOTS as there; ONE_ROW: A has one row, and a tile so many columns. Local size 1, no
 * local memory, no barrier. */
#include "common/koine.clh"
#include "common/bfloat.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"
#include "common/lane_sums.clh"
#include "gemm/element.clh"
#ifdef BFLOAT
#include "gemm/pair_dots.clh"
#include "gemm/pair_words.clh"
typedef U vector;
enum { LANES = PAIR_LANES };
#define LOAD load_pairs
#define LOAD_LAST load_last_pairs
#define ADD_PRODUCT add_pairs
#else
typedef V vector;
enum { LANES = VW };
#define LOAD(x) VLOAD(0, x)
#define LOAD_LAST load_rest
#define ADD_PRODUCT(sum, a, b) fma(a, b, sum)
#endif

/* VW divides the number of sums. */
#ifdef ONE_ROW
#define DOT_ROWS 1
#define DOT_COLUMNS ONE_ROW
#else
#define DOT_ROWS (REGISTERS >= 32 || VW == 16 ? 4 : 2)
#define DOT_COLUMNS 4
#endif

KN_INLINE void add_products(V *sum, const vector *row, const vector *column)
{
#pragma unroll
    for (int i = 0; i < DOT_ROWS; i++)
#pragma unroll
        for (int j = 0; j < DOT_COLUMNS; j++)
            sum[i * DOT_COLUMNS + j] = ADD_PRODUCT(sum[i * DOT_COLUMNS + j], row[i], column[j]);
}

/* C[i, j] for `rows` (at most DOT_ROWS) and `columns` (at most DOT_COLUMNS). */
static inline void dot_tile(global element *restrict c, const global element *restrict a,
                            const global element *restrict b, const global element *restrict bias, long ldc,
                            long a_stride, long b_stride, long k, int rows, int columns, kn_gemm_finish f)
{
    const global element *x[DOT_ROWS], *y[DOT_COLUMNS];
    V sum[DOT_ROWS * DOT_COLUMNS];
    /* Rows and columns beyond the edge repeat the last one and are not stored. */
#pragma unroll
    for (int j = 0; j < DOT_COLUMNS; j++)
        y[j] = b + min(j, columns - 1) * b_stride;
#pragma unroll
    for (int i = 0; i < DOT_ROWS; i++) {
        x[i] = a + min(i, rows - 1) * a_stride;
#pragma unroll
        for (int j = 0; j < DOT_COLUMNS; j++)
            sum[i * DOT_COLUMNS + j] = (V)0;
    }
    vector row[DOT_ROWS], column[DOT_COLUMNS];
    long p = 0;
    for (; p + LANES <= k; p += LANES) {
#pragma unroll
        for (int j = 0; j < DOT_COLUMNS; j++)
            column[j] = LOAD(y[j] + p);
#pragma unroll
        for (int i = 0; i < DOT_ROWS; i++)
            row[i] = LOAD(x[i] + p);
        add_products(sum, row, column);
    }
    if (p > 0 && p < k) {
#pragma unroll
        for (int j = 0; j < DOT_COLUMNS; j++)
            column[j] = LOAD_LAST(y[j], k, (int)(k - p));
#pragma unroll
        for (int i = 0; i < DOT_ROWS; i++)
            row[i] = LOAD_LAST(x[i], k, (int)(k - p));
        add_products(sum, row, column);
        p = k;
    }
    T total[DOT_ROWS * DOT_COLUMNS];
#pragma unroll
    for (int i = 0; i < DOT_ROWS * DOT_COLUMNS; i += VW)
        VSTORE(sums_of_lanes(sum + i), 0, total + i);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            T value = total[i * DOT_COLUMNS + j];
            for (long q = p; q < k; q++)
                value = fma(VALUE(x[i][q]), VALUE(y[j][q]), value);
            FINISH(f, value, c + i * ldc + j, bias + j);
        }
}

/* dim 0: block of columns_per_item columns of C, dim 1: batch. */
KN_KERNEL_ONCE(gemm_dots,
               (KN_ARG(a), KN_ARG(b), KN_ARG(bias), KN_ARG(c), m, n, k, a_stride, a_batch_stride, b_stride,
                b_batch_stride, ldc, c_batch_stride, columns_per_item, given),
               KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), long m, long n, long k, long a_stride, long a_batch_stride,
               long b_stride, long b_batch_stride, long ldc, long c_batch_stride, long columns_per_item,
               const kn_gemm_finish given)
{
    const kn_gemm_finish finish = given;
    KN_BIND_IN(element, a);
    KN_BIND_IN(element, b);
    KN_BIND_IN(element, bias);
    KN_BIND_OUT(element, c);
    const long batch = KN_ID(1), first = KN_ID(0) * columns_per_item,
               last = min(n, first + columns_per_item);
    a += batch * a_batch_stride;
    b += batch * b_batch_stride;
    c += batch * c_batch_stride;
    for (long j = first; j < last; j += DOT_COLUMNS)
        for (long i = 0; i < m; i += DOT_ROWS)
            dot_tile(c + i * ldc + j, a + i * a_stride, b + j * b_stride, bias + j, ldc, a_stride, b_stride, k,
                     (int)min((long)DOT_ROWS, m - i), (int)min((long)DOT_COLUMNS, last - j), finish);
}
