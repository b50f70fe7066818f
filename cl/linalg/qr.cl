/* linalg/qr.cl - Householder QR, with LAPACK's signs: a = q r for a [m, n], by the reflections 1 - tau v v^T with v_k =
 * 1, stored below the diagonal. */
#include "linalg/lanes.clh"
#ifdef KN_CPU
#include "common/real_lanes.clh"
#endif

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

#ifdef KN_CPU

/* Columns `begin` to `begin` + 16 W of x, W vectors; of one vector only those from `from` to `end` change. */
#define REFLECT_BLOCK(name, W)                                                                                         \
    static void name(global T *x, const global T *v, T tau, long rows, long columns, long stride, long begin,          \
                     long from, long end)                                                                              \
    {                                                                                                                  \
        const lane_number place =                                                                                      \
            (lane_number)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) + (lane_number)begin;                  \
        const lane_number takes = (place >= (lane_number)from) & (place < (lane_number)end);                           \
        TV sum[W];                                                                                                     \
        _Pragma("unroll") for (int w = 0; w < W; w++) sum[w] = KN_VLOAD(x + begin + 16 * w);                           \
        for (long i = 1; i < rows; i++) {                                                                              \
            _Pragma("unroll") for (int w = 0; w < W; w++)                                                              \
                sum[w] += v[i * stride] * KN_VLOAD(x + i * columns + begin + 16 * w);                                  \
        }                                                                                                              \
        _Pragma("unroll") for (int w = 0; w < W; w++) sum[w] *= tau;                                                   \
        for (long i = 0; i < rows; i++) {                                                                              \
            const T factor = i == 0 ? (T)1 : v[i * stride];                                                            \
            _Pragma("unroll") for (int w = 0; w < W; w++)                                                              \
            {                                                                                                          \
                global T *at = x + i * columns + begin + 16 * w;                                                       \
                const TV before = KN_VLOAD(at), after = before - factor * sum[w];                                      \
                KN_VSTORE(W == 1 ? select(before, after, takes) : after, at);                                          \
            }                                                                                                          \
        }                                                                                                              \
    }
REFLECT_BLOCK(reflect_vector, 1)
REFLECT_BLOCK(reflect_vectors, 4)

/* Columns from `from` on of x [m, columns]: from the last ones on, so that all vectors are inside a row. */
static void reflect_columns(global T *x, const global T *a, T tau, long k, long from, long m, long columns, long n)
{
    long end = columns;
    for (; end - from >= 64; end -= 64)
        reflect_vectors(x + k * columns, a + k * n + k, tau, m - k, columns, n, end - 64, from, end);
    for (; end > from && columns >= 16; end = max(end - 16, from))
        reflect_vector(x + k * columns, a + k * n + k, tau, m - k, columns, n, max(end - 16, 0L), from, end);
    for (long j = from; j < end; j++)
        reflect(x, a, tau, k, j, m, columns, n);
}

#define FIRST_OF_Q(k) (k) /* those before have no elements from row k on */

#else

static inline void reflect_columns(global T *x, const global T *a, T tau, long k, long from, long m, long columns,
                                   long n)
{
    FOR_LANES(j, from, columns)
    {
        reflect(x, a, tau, k, j, m, columns, n);
    }
}

#define FIRST_OF_Q(k) 0 /* each lane has columns of its own */

#endif

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
        reflect_columns(a, a, h.tau, k, k + 1, m, n, n);
        SYNC();
    }
    FOR_LANES(j, 0, columns)
    {
        for (long i = 0; i < m; i++)
            q[i * columns + j] = i == j;
    }
    for (long k = count - 1; k >= 0 && columns > 0; k--)
        reflect_columns(q, a, tau[k], k, FIRST_OF_Q(k), m, columns, n);
}

/* The first rows of r [rows, n], 0 below the diagonal, from a [m, n]: `count` rows of all matrices. */
KN_KERNEL_ONCE(linalg_upper, (KN_ARG(a), KN_ARG(r), m, rows, n, count),
               KN_IN(a), KN_OUT(r), const long m, const long rows, const long n, const long count)
{
    KN_BIND_IN(T, a);
    KN_BIND_OUT(T, r);
    KN_FOR_ONCE(e, count)
    {
        const long i = e % rows, diagonal = min(i, n);
        const global T *from = a + (e / rows * m + i) * n;
        for (long j = 0; j < diagonal; j++)
            r[e * n + j] = 0;
        for (long j = diagonal; j < n; j++)
            r[e * n + j] = from[j];
    }
}
