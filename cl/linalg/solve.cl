/* linalg/solve.cl - Cholesky and LU factorisation, determinants, and solving with triangular matrices.
 *
 * info: 0, or the order of the first leading minor that is not positive, or the place of the first pivot that is 0.
 * With `reports` a matrix without a factorisation is a fault. */
#include "linalg/lanes.clh"
#include "linalg/lu.clh"
#include "linalg/pivots.clh"
#ifdef KN_CPU
#include "linalg/vectors.clh"
#endif

/* --- Cholesky: a = l l^T, of the lower triangle, in place --------------------------------------------------------- */

static inline T row_product(const global T *a, long i, long j, long count, long n)
{
#ifdef KN_CPU
    return product_of(&AT(a, i, 0), &AT(a, j, 0), count, (n - i) * n, (n - j) * n);
#else
    T sum = 0;
    for (long k = 0; k < count; k++)
        sum += AT(a, i, k) * AT(a, j, k);
    return sum;
#endif
}

KN_KERNEL_ONCE(linalg_cholesky, (KN_ARG(a), KN_ARG(info), n, reports, fault, fault_operation),
               KN_INOUT(a), KN_OUT(info), const long n, const int reports, KN_FAULT)
{
    KN_BIND_OUT(T, a);
    KN_BIND_OUT(int, info);
    int failed = 0;
    a += MATRIX * n * n;
    for (long k = 0; k < n && !failed; k++) {
        const T square = AT(a, k, k) - row_product(a, k, k, k, n), root = sqrt(square);
        SYNC();
        failed = square > 0 ? 0 : (int)k + 1;
        if (LANE == 0)
            AT(a, k, k) = root;
        FOR_LANES(i, k + 1, n)
        {
            AT(a, i, k) = (AT(a, i, k) - row_product(a, i, k, k, n)) / root;
        }
        SYNC();
    }
    FOR_LANES(i, 0, n)
    {
        for (long j = i + 1; j < n; j++)
            AT(a, i, j) = 0;
    }
    if (LANE == 0) {
        info[MATRIX] = failed;
        if (failed && reports)
            kn_report_matrix(fault, KN_FAULT_NOT_POSITIVE, MATRIX, failed);
    }
}

/* --- LU: p a = l u with the largest pivot of each column, in place; a is m by n ----------------------------------- */

/* pivots: the row, from 1, that was exchanged with each. */
KN_KERNEL_ONCE(linalg_lu, (KN_ARG(a), KN_ARG(pivots), KN_ARG(info), m, n, reports, fault, fault_operation),
               KN_INOUT(a), KN_OUT(pivots), KN_OUT(info), const long m, const long n, const int reports, KN_FAULT)
{
    KN_BIND_OUT(T, a);
    KN_BIND_OUT(int, pivots);
    KN_BIND_OUT(int, info);
    const long count = min(m, n);
    const int singular = factor_columns(a + MATRIX * m * n, pivots + MATRIX * count, 0, m, count, n, n);
    if (LANE == 0) {
        info[MATRIX] = singular;
        if (singular && reports)
            kn_report_matrix(fault, KN_FAULT_SINGULAR, MATRIX, singular);
    }
}

/* --- triangular systems: b [n, columns] = a^-1 b, each lane some columns ------------------------------------------ */

#ifdef KN_CPU

/* Row i of b minus the products of a's row with the rows `from` to `to` of b. */
static void subtract_products(const global T *a, global T *b, long n, long columns, long i, long from, long to)
{
    const global T *row = a + i * n;
    if (columns == 1) {
        b[i] -= product_of(row + from, b + from, to - from, n * n - i * n - from, n - from);
        return;
    }
    long c = 0;
    for (; c + 64 <= columns; c += 64) {
        global T *at = b + i * columns + c;
        TV sum[4];
#pragma unroll
        for (int w = 0; w < 4; w++)
            sum[w] = KN_VLOAD(at + 16 * w);
        for (long k = from; k < to; k++)
#pragma unroll
            for (int w = 0; w < 4; w++)
                sum[w] -= row[k] * KN_VLOAD(b + k * columns + c + 16 * w);
#pragma unroll
        for (int w = 0; w < 4; w++)
            KN_VSTORE(sum[w], at + 16 * w);
    }
    for (; c < columns; c += 16) {
        global T *at = b + i * columns + c;
        TV sum = load_part(at, columns - c, (n - i) * columns - c, (T)0);
        for (long k = from; k < to; k++)
            sum -= row[k] * load_part(b + k * columns + c, columns - c, (n - k) * columns - c, (T)0);
        store_part(sum, at, columns - c);
    }
}

#else

static inline void subtract_products(const global T *a, global T *b, long n, long columns, long i, long from, long to)
{
    for (long k = from; k < to; k++) {
        const T factor = AT(a, i, k);
        FOR_LANES(c, 0, columns)
        {
            b[i * columns + c] -= factor * b[k * columns + c];
        }
    }
}

#endif

static inline void substitute(const global T *a, global T *b, long n, long columns, int upper, int unit)
{
    for (long step = 0; step < n; step++) {
        const long i = upper ? n - 1 - step : step;
        subtract_products(a, b, n, columns, i, upper ? i + 1 : 0, upper ? n : i);
        if (!unit) {
            const T pivot = AT(a, i, i);
            FOR_LANES(c, 0, columns)
            {
                b[i * columns + c] /= pivot;
            }
        }
    }
}

KN_KERNEL_ONCE(linalg_solve_triangular, (KN_ARG(a), KN_ARG(b), n, columns, upper, unit),
               KN_IN(a), KN_INOUT(b), const long n, const long columns, const int upper, const int unit)
{
    KN_BIND_IN(T, a);
    KN_BIND_OUT(T, b);
    substitute(a + MATRIX * n * n, b + MATRIX * n * columns, n, columns, upper, unit);
}

KN_KERNEL_ONCE(linalg_lu_solve, (KN_ARG(lu), KN_ARG(pivots), KN_ARG(b), n, columns, fault, fault_operation),
               KN_IN(lu), KN_IN(pivots), KN_INOUT(b), const long n, const long columns, KN_FAULT)
{
    KN_BIND_IN(T, lu);
    KN_BIND_IN(int, pivots);
    KN_BIND_OUT(T, b);
    lu += MATRIX * n * n;
    b += MATRIX * n * columns;
    for (long k = 0; k < n; k++) {
        const long p = exchanged_with(pivots + MATRIX * n, k, n, fault, fault_operation);
        FOR_LANES(c, 0, columns)
        {
            const T before = b[k * columns + c];
            b[k * columns + c] = b[p * columns + c];
            b[p * columns + c] = before;
        }
    }
    substitute(lu, b, n, columns, 0, 1);
    substitute(lu, b, n, columns, 1, 0);
}

/* p [m, m] with p l u = a: the identity with the columns exchanged that the pivots say, each lane some rows. */
KN_KERNEL_ONCE(linalg_permutation, (KN_ARG(pivots), KN_ARG(p), n, count, fault, fault_operation),
               KN_IN(pivots), KN_OUT(p), const long n, const long count, KN_FAULT)
{
    KN_BIND_IN(int, pivots);
    KN_BIND_OUT(T, p);
    p += MATRIX * n * n;
    FOR_LANES(r, 0, n)
    {
        for (long c = 0; c < n; c++)
            AT(p, r, c) = r == c;
        for (long k = 0; k < count; k++) {
            const long other = exchanged_with(pivots + MATRIX * count, k, n, fault, fault_operation);
            const T before = AT(p, r, k);
            AT(p, r, k) = AT(p, r, other);
            AT(p, r, other) = before;
        }
    }
}

/* --- determinants from LU: one work-item per matrix --------------------------------------------------------------- */

KN_KERNEL_ONCE(linalg_determinant,
               (KN_ARG(lu), KN_ARG(pivots), KN_ARG(sign), KN_ARG(logarithm), n, count, is_product),
               KN_IN(lu), KN_IN(pivots), KN_OUT(sign), KN_OUT(logarithm), const long n, const long count,
               const int is_product)
{
    KN_BIND_IN(T, lu);
    KN_BIND_IN(int, pivots);
    KN_BIND_OUT(T, sign);
    KN_BIND_OUT(T, logarithm);
    KN_FOR_ONCE(m, count)
    {
        T product = 1, sum = 0;
        for (long k = 0; k < n; k++) {
            const T pivot = lu[(m * n + k) * n + k];
            const bool is_exchanged = pivots[m * n + k] != k + 1;
            if (is_product)
                product *= is_exchanged ? -pivot : pivot;
            else
                product *= pivot == 0 ? (T)0 : (pivot < 0) != is_exchanged ? (T)-1 : (T)1;
            sum += log(fabs(pivot));
        }
        sign[m] = product;
        if (!is_product)
            logarithm[m] = sum;
    }
}
