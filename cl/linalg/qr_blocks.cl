/* linalg/qr_blocks.cl - QR factorisation of large matrices on CPU devices, a panel of columns at a time: its
 * reflections as one product, 1 - v t v^T (Schreiber and Van Loan, A storage-efficient WY representation for products
 * of Householder transformations, 1989), which products of matrices apply to the other columns
 * (ops/linalg/qr_blocks.c). Reflections and signs are those of linalg/qr.cl. */
#include "linalg/lanes.clh"
#include "linalg/panels.clh"

/* --- one reflection ----------------------------------------------------------------------------------------------- */

typedef struct reflection {
    T tau, diagonal, scale; /* v = scale * column below the diagonal */
} reflection;

/* Elements of vector r of a column, those before row j as 0. */
static inline TV rows_from(const global T *x, long r, long j)
{
    const lane_number lane = (lane_number)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return select((TV)0, KN_VLOAD(x + r), lane + (lane_number)r >= (lane_number)j);
}

static reflection reflection_of(const global T *x, long j, long end)
{
    const T first = x[j];
    TV most = 0, below = 0, sum = 0;
    for (long r = j / 16 * 16; r < end; r += 16) {
        below += fabs(rows_from(x, r, j + 1)); /* NaN if one is */
        most = fmax(most, fabs(rows_from(x, r, j)));
    }
    if (sum_lanes(below) == 0)
        return (reflection){0, first, 0};
    T sizes[16], largest = 0;
    vstore16(most, 0, sizes);
    for (int lane = 0; lane < 16; lane++)
        largest = fmax(largest, sizes[lane]);
    for (long r = j / 16 * 16; r < end; r += 16) {
        const TV part = rows_from(x, r, j) / largest;
        sum += part * part;
    }
    const T norm = largest * sqrt(sum_lanes(sum)), diagonal = first >= 0 ? -norm : norm;
    return (reflection){(diagonal - first) / diagonal, diagonal, 1 / (first - diagonal)};
}

/* v^T x for W columns x from t + c * ld on. v is 0 before its vector `begin`. */
#define DOTS(name, W)                                                                                                  \
    static void name(T *dots, const global T *v, const global T *x, long begin, long end, long ld)                     \
    {                                                                                                                  \
        TV sum[W];                                                                                                     \
        _Pragma("unroll") for (int w = 0; w < W; w++) sum[w] = 0;                                                      \
        for (long r = begin; r < end; r += 16) {                                                                       \
            const TV part = KN_VLOAD(v + r);                                                                           \
            _Pragma("unroll") for (int w = 0; w < W; w++) sum[w] += part * KN_VLOAD(x + w * ld + r);                   \
        }                                                                                                              \
        _Pragma("unroll") for (int w = 0; w < W; w++) dots[w] = sum_lanes(sum[w]);                                     \
    }
DOTS(dots_of_four, 4)
DOTS(dot_of_one, 1)

/* Columns c of t minus factors[c] v. */
#define SUBTRACT(name, W)                                                                                              \
    static void name(const T *factors, const global T *v, global T *x, long begin, long end, long ld)                  \
    {                                                                                                                  \
        for (long r = begin; r < end; r += 16) {                                                                       \
            const TV part = KN_VLOAD(v + r);                                                                           \
            _Pragma("unroll") for (int w = 0; w < W; w++)                                                              \
                KN_VSTORE(KN_VLOAD(x + w * ld + r) - factors[w] * part, x + w * ld + r);                               \
        }                                                                                                              \
    }
SUBTRACT(subtract_from_four, 4)
SUBTRACT(subtract_from_one, 1)

/* Applies 1 - tau v v^T to columns `c` to `width` of t. */
static void reflect(global T *t, const global T *v, T tau, long begin, long end, long c, long width, long ld)
{
    T factors[4];
    for (; c + 4 <= width; c += 4) {
        dots_of_four(factors, v, t + c * ld, begin, end, ld);
        for (int w = 0; w < 4; w++)
            factors[w] *= tau;
        subtract_from_four(factors, v, t + c * ld, begin, end, ld);
    }
    for (; c < width; c++) {
        dot_of_one(factors, v, t + c * ld, begin, end, ld);
        factors[0] *= tau;
        subtract_from_one(factors, v, t + c * ld, begin, end, ld);
    }
}

/* --- panels ------------------------------------------------------------------------------------------------------- */

/* Column j of t becomes v, 1 in row j and 0 above; what stood there, and the diagonal, belongs to r, kept in a. */
static T make_reflection(global T *a, global T *t, long j, long end, long n, long ld)
{
    global T *x = t + j * ld;
    const reflection h = reflection_of(x, j, end);
    for (long i = 0; i < j; i++) {
        AT(a, i, j) = x[i];
        x[i] = 0;
    }
    AT(a, j, j) = h.diagonal;
    x[j] = 1;
    for (long i = j + 1; i < end; i++)
        x[i] *= h.scale;
    return h.tau;
}

/* Column j of the upper triangular matrix of the product 1 - v w v^T of reflections 0 to j. */
static void extend_product(global T *w, const global T *t, T tau, long j, long end, long ld)
{
    T dots[BLOCK];
    for (long k = 0; k < j; k++)
        dot_of_one(dots + k, t + j * ld, t + k * ld, j / 16 * 16, end, ld);
    for (long i = 0; i < j; i++) {
        T sum = 0;
        for (long k = i; k < j; k++)
            sum += w[i * BLOCK + k] * dots[k];
        w[i * BLOCK + j] = -tau * sum;
    }
    w[j * BLOCK + j] = tau;
    for (long i = j + 1; i < BLOCK; i++)
        w[i * BLOCK + j] = 0;
}

/* Columns `from` to `to` of a [m, n]: above the diagonal they become r; the reflections go to v, the panels' of all
 * matrices [.., BLOCK, ld], and w [.., BLOCK, BLOCK]. */
KN_KERNEL_ONCE(linalg_qr_panel, (KN_ARG(a), KN_ARG(v), KN_ARG(w), m, n_, ld, panels, from, to),
               KN_INOUT(a), KN_INOUT(v), KN_INOUT(w), const long m, const long n_, const long ld, const long panels,
               const long from, const long to)
{
    KN_BIND_OUT(T, a);
    KN_BIND_OUT(T, v);
    KN_BIND_OUT(T, w);
    const long n = n_, rows = m - from, width = to - from, end = (rows + 15) / 16 * 16;
    const long panel = MATRIX * panels + from / BLOCK;
    a += (MATRIX * m + from) * n + from;
    v += panel * BLOCK * ld;
    w += panel * BLOCK * BLOCK;
    copy_panel(a, v, rows, width, n, ld);
    for (long j = 0; j < width; j++) {
        const T tau = make_reflection(a, v, j, end, n, ld);
        reflect(v, v + j * ld, tau, j / 16 * 16, end, j + 1, width, ld);
        extend_product(w, v, tau, j, end, ld);
    }
}

/* q [rows, columns] becomes an identity: `count` rows of all matrices. */
KN_KERNEL_ONCE(linalg_set_identity, (KN_ARG(q), rows, columns, count),
               KN_OUT(q), const long rows, const long columns, const long count)
{
    KN_BIND_OUT(T, q);
    KN_FOR_ONCE(e, count)
    {
        for (long j = 0; j < columns; j++)
            q[e * columns + j] = 0;
        if (e % rows < columns)
            q[e * columns + e % rows] = 1;
    }
}
