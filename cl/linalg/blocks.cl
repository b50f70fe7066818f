/* linalg/blocks.cl - LU factorisation and triangular systems of large matrices, a block of BLOCK rows and columns at a
 * time; products of matrices do most of the work (ops/linalg/blocks.c). Where columns are independent, each work-group
 * has BLOCK of those from `begin` on: `chunks` work-groups per matrix. */
#include "linalg/lanes.clh"
#include "linalg/pivots.clh"
#ifdef KN_CPU
#include "linalg/panels.clh"
#else
#include "linalg/lu.clh"
#define BLOCK 64
#endif

#define FIRST_COLUMN(begin, chunks) ((begin) + MATRIX % (chunks) * BLOCK)

/* --- panels: columns `from` to `to` of a [m, n], with rows from `from` on, factored as in linalg/solve.cl --------- *
 * On CPU devices in a copy (linalg/panels.clh), t. Its rows count from 0. */

#ifdef KN_CPU

/* Column j of the panel after the elimination of those before it; returns the row of its pivot, the first of the
 * largest elements from row j on. */
static long eliminate(global T *t, long j, long rows, long ld)
{
    global T *x = t + j * ld;
    T u[BLOCK];
    largest found = {(TV)-1, (lane_number)j};
    for (long k = 0; k < j; k++) {
        u[k] = x[k];
        for (long i = k + 1; i < j; i++)
            x[i] -= t[k * ld + i] * u[k];
    }
    for (long r = 0; r < rows; r += BLOCK)
        found = update_rows(x, t, u, j, r, rows, ld, found);
    T sizes[16], most = -1;
    long places[16], best = j;
    vstore16(found.size, 0, sizes);
    vstore16(convert_long16(found.row), 0, places);
    for (int lane = 0; lane < 16; lane++)
        if (sizes[lane] > most || (sizes[lane] == most && places[lane] < best)) {
            most = sizes[lane];
            best = places[lane];
        }
    return best;
}

/* Exchanges rows j and p, and divides the column below the diagonal by the pivot. */
static void apply_pivot(global T *t, long j, long p, long rows, long width, long ld)
{
    for (long c = 0; c < width && p != j; c++) {
        const T before = t[c * ld + j];
        t[c * ld + j] = t[c * ld + p];
        t[c * ld + p] = before;
    }
    const T pivot = t[j * ld + j];
    if (pivot != 0)
        divide_rows(t + j * ld, pivot, j, rows);
}

/* Returns the first pivot that is 0, counted from 1, or 0. `rows` rows of a, whose columns are the panel. */
static int factor_panel(global T *a, global int *pivots, global T *t, long from, long rows, long width, long n, long ld)
{
    int singular = 0;
    copy_panel(a, t, rows, width, n, ld);
    for (long j = 0; j < width; j++) {
        const long p = eliminate(t, j, rows, ld);
        pivots[j] = (int)(from + p) + 1;
        apply_pivot(t, j, p, rows, width, ld);
        if (t[j * ld + j] == 0 && !singular)
            singular = (int)(from + j) + 1;
    }
    copy_back(a, t, rows, width, n, ld);
    return singular;
}

#else

static int factor_panel(global T *a, global int *pivots, global T *t, long from, long rows, long width, long n, long ld)
{
    return factor_columns(a, pivots, from, rows, width, width, n);
}

#endif

/* info holds the first zero pivot of the panels before. space [.., BLOCK, ld] on CPU devices. */
KN_KERNEL_ONCE(linalg_lu_panel,
               (KN_ARG(a), KN_ARG(pivots), KN_ARG(info), KN_ARG(space), m, n, ld, from, to, reports, fault,
                fault_operation),
               KN_INOUT(a), KN_INOUT(pivots), KN_INOUT(info), KN_INOUT(space), const long m, const long n,
               const long ld, const long from, const long to, const int reports, KN_FAULT)
{
    KN_BIND_OUT(T, a);
    KN_BIND_OUT(int, pivots);
    KN_BIND_OUT(int, info);
    KN_BIND_OUT(T, space);
    const long count = min(m, n);
    int singular = from == 0 ? 0 : info[MATRIX];
    const int found = factor_panel(a + (MATRIX * m + from) * n + from, pivots + MATRIX * count + from,
                                   space + MATRIX * BLOCK * ld, from, m - from, to - from, n, ld);
    singular = singular ? singular : found;
    if (LANE == 0) {
        info[MATRIX] = singular;
        if (singular && reports && to == count)
            kn_report_matrix(fault, KN_FAULT_SINGULAR, MATRIX, singular);
    }
}

/* --- rows exchanged as pivots `from` to `to` say, in columns outside a panel -------------------------------------- */

KN_KERNEL_ONCE(linalg_exchange,
               (KN_ARG(x), KN_ARG(pivots), rows, columns, chunks, count, from, to, panel, fault, fault_operation),
               KN_INOUT(x), KN_IN(pivots), const long rows, const long columns, const long chunks, const long count,
               const long from, const long to, const int panel, KN_FAULT)
{
    KN_BIND_OUT(T, x);
    KN_BIND_IN(int, pivots);
    const long matrix = MATRIX / chunks, begin = FIRST_COLUMN(0, chunks), end = min(begin + BLOCK, columns);
    x += matrix * rows * columns;
    for (long k = from; k < to; k++) {
        const long p = exchanged_with(pivots + matrix * count, k, rows, fault, fault_operation);
        if (p == k)
            continue;
        FOR_LANES(c, begin, end)
        {
            if (panel && c >= from && c < to)
                continue;
            const T before = x[k * columns + c];
            x[k * columns + c] = x[p * columns + c];
            x[p * columns + c] = before;
        }
    }
}

/* --- a block of a triangular system ------------------------------------------------------------------------------- */

/* Rows `from` to `to` of x, [.., columns] from column `begin` on, solved with the block of a on its diagonal. */
#ifdef KN_CPU

static void substitute_vectors(const global T *a, global T *x, long n, long columns, long i, long from, long to)
{
    TV sum[BLOCK / 16];
    for (int w = 0; w < BLOCK / 16; w++)
        sum[w] = KN_VLOAD(x + i * columns + 16 * w);
    for (long k = from; k < to; k++)
        for (int w = 0; w < BLOCK / 16; w++)
            sum[w] -= AT(a, i, k) * KN_VLOAD(x + k * columns + 16 * w);
    for (int w = 0; w < BLOCK / 16; w++)
        KN_VSTORE(sum[w], x + i * columns + 16 * w);
}

#endif

/* Row i of x, in so many columns, minus the products of a's row with x's rows `from` to `to`. */
static inline void subtract_products(const global T *a, global T *x, long n, long columns, long i, long from, long to,
                                     long width)
{
#ifdef KN_CPU
    if (width == BLOCK) {
        substitute_vectors(a, x, n, columns, i, from, to);
        return;
    }
#endif
    for (long k = from; k < to; k++) {
        const T factor = AT(a, i, k);
        FOR_LANES(c, 0, width)
        {
            x[i * columns + c] -= factor * x[k * columns + c];
        }
    }
}

KN_KERNEL_ONCE(linalg_substitute_block,
               (KN_ARG(a), KN_ARG(x), a_rows, n_, x_rows, columns, begin, chunks, from, to, upper, unit),
               KN_IN(a), KN_INOUT(x), const long a_rows, const long n_, const long x_rows, const long columns,
               const long begin, const long chunks, const long from, const long to, const int upper, const int unit)
{
    KN_BIND_IN(T, a);
    KN_BIND_OUT(T, x);
    const long n = n_, first = FIRST_COLUMN(begin, chunks), width = min((long)BLOCK, columns - first);
    a += MATRIX / chunks * a_rows * n;
    x += MATRIX / chunks * x_rows * columns + first;
    for (long step = 0; step < to - from; step++) {
        const long i = upper ? to - 1 - step : from + step;
        subtract_products(a, x, n, columns, i, upper ? i + 1 : from, upper ? to : i, width);
        if (!unit) {
            const T pivot = AT(a, i, i);
            FOR_LANES(c, 0, width)
            {
                x[i * columns + c] /= pivot;
            }
        }
    }
}
