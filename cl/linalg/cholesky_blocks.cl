/* linalg/cholesky_blocks.cl - Cholesky factorisation of large matrices on CPU devices, a panel of columns at a time;
 * products of matrices do most of the work (ops/linalg/blocks.c). Of a the lower triangle counts. */
#include "linalg/lanes.clh"
#include "linalg/panels.clh"

/* Returns the first column without a root, counted from 1, or 0. */
static int factor_panel(global T *t, long rows, long width, long ld)
{
    for (long j = 0; j < width; j++) {
        global T *x = t + j * ld;
        T u[BLOCK];
        for (long k = 0; k < j; k++)
            u[k] = t[k * ld + j];
        for (long r = 0; r < rows; r += BLOCK)
            update_rows(x, t, u, j, r, rows, ld, (largest){(TV)0, (lane_number)0});
        const T square = x[j], root = sqrt(square);
        x[j] = root;
        if (!(square > 0))
            return (int)j + 1;
        divide_rows(x, root, j, rows);
    }
    return 0;
}

/* Columns `from` to `to` of a [n, n]; info: the order of the first leading minor that is not positive, or 0, so far.
 * space [.., BLOCK, ld]. */
KN_KERNEL_ONCE(linalg_cholesky_panel,
               (KN_ARG(a), KN_ARG(info), KN_ARG(space), n_, ld, from, to, reports, fault, fault_operation),
               KN_INOUT(a), KN_INOUT(info), KN_INOUT(space), const long n_, const long ld, const long from,
               const long to, const int reports, KN_FAULT)
{
    KN_BIND_OUT(T, a);
    KN_BIND_OUT(int, info);
    KN_BIND_OUT(T, space);
    const long n = n_, rows = n - from, width = to - from;
    if (from > 0 && info[MATRIX] != 0)
        return;
    a += (MATRIX * n + from) * n + from;
    space += MATRIX * BLOCK * ld;
    copy_panel(a, space, rows, width, n, ld);
    const int failed = factor_panel(space, rows, width, ld);
    copy_back(a, space, rows, width, n, ld);
    info[MATRIX] = failed ? (int)from + failed : 0;
    if (failed && reports)
        kn_report_matrix(fault, KN_FAULT_NOT_POSITIVE, MATRIX, (int)from + failed);
}

/* Rows of matrices [n, n], `count` of all: 0 after the diagonal. */
KN_KERNEL_ONCE(linalg_clear_upper, (KN_ARG(a), n, count), KN_INOUT(a), const long n, const long count)
{
    KN_BIND_OUT(T, a);
    KN_FOR_ONCE(e, count)
    {
        for (long j = e % n + 1; j < n; j++)
            a[e * n + j] = 0;
    }
}
