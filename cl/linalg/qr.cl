/* linalg/qr.cl - Householder QR, with LAPACK's signs: a = q r for a [m, n], by the reflections 1 - tau v v^T with v_k =
 * 1, stored below the diagonal. */
#include "linalg/lanes.clh"

/* The reflection that makes a's column k zero below the diagonal. It is computed by all lanes alike. */
typedef struct reflection {
    T tau, diagonal, scale; /* v = scale * column below the diagonal */
} reflection;

static inline reflection reflection_of(const global T *a, long k, long m, long n)
{
    const T first = AT(a, k, k);
    T largest = 0, below = 0, sum = 0;
    for (long i = k + 1; i < m; i++) {
        largest = fmax(largest, fabs(AT(a, i, k))); /* passes over NaN */
        below += fabs(AT(a, i, k));
    }
    if (below == 0)
        return (reflection){0, first, 0};
    largest = fmax(largest, fabs(first));
    for (long i = k; i < m; i++) {
        const T part = AT(a, i, k) / largest;
        sum += part * part;
    }
    const T norm = largest * sqrt(sum), diagonal = first >= 0 ? -norm : norm;
    return (reflection){(diagonal - first) / diagonal, diagonal, 1 / (first - diagonal)};
}

/* Column `column` of x [m, n] minus tau v (v^T column), with v below the diagonal of column k of a [m, stride]. */
static inline void reflect(global T *x, const global T *a, T tau, long k, long column, long m, long n, long stride)
{
    T sum = AT(x, k, column);
    for (long i = k + 1; i < m; i++)
        sum += a[i * stride + k] * AT(x, i, column);
    sum *= tau;
    AT(x, k, column) -= sum;
    for (long i = k + 1; i < m; i++)
        AT(x, i, column) -= a[i * stride + k] * sum;
}

/* a becomes r with the reflections below its diagonal; q [m, columns], columns at most m, unless columns is 0. */
KN_KERNEL_ONCE(linalg_qr, (KN_ARG(a), KN_ARG(tau), KN_ARG(q), m, n_, columns),
               KN_INOUT(a), KN_INOUT(tau), KN_INOUT(q), const long m, const long n_, const long columns)
{
    KN_BIND_OUT(T, a);
    KN_BIND_OUT(T, tau);
    KN_BIND_OUT(T, q);
    long n = n_;
    const long count = min(m, n);
    a += MATRIX * m * n;
    tau += MATRIX * count;
    q += MATRIX * m * columns;
    for (long k = 0; k < count; k++) {
        const reflection h = reflection_of(a, k, m, n);
        SYNC();
        FOR_LANES(i, k + 1, m)
        {
            AT(a, i, k) *= h.scale;
        }
        if (LANE == 0) {
            AT(a, k, k) = h.diagonal;
            tau[k] = h.tau;
        }
        SYNC();
        FOR_LANES(j, k + 1, n)
        {
            reflect(a, a, h.tau, k, j, m, n, n);
        }
        SYNC();
    }
    FOR_LANES(j, 0, columns)
    {
        for (long i = 0; i < m; i++)
            q[i * columns + j] = i == j;
        for (long k = count - 1; k >= 0; k--)
            reflect(q, a, tau[k], k, j, m, columns, n);
    }
}

/* The first rows of r [rows, n], 0 below the diagonal, from a [m, n]. */
KN_KERNEL_ONCE(linalg_upper, (KN_ARG(a), KN_ARG(r), m, rows, n, count),
               KN_IN(a), KN_OUT(r), const long m, const long rows, const long n, const long count)
{
    KN_BIND_IN(T, a);
    KN_BIND_OUT(T, r);
    KN_FOR_ONCE(e, count)
    {
        const long i = e / n % rows, j = e % n;
        r[e] = i <= j ? a[(e / n / rows * m + i) * n + j] : (T)0;
    }
}
