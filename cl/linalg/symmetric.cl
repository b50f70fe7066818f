/* linalg/symmetric.cl - eigenvalues and vectors of symmetric matrices on CPU devices, where a work-item has a matrix:
 * Householder's reflections make it tridiagonal, rotations of implicit QL steps with Wilkinson's shifts then diagonal.
 * All loops run along rows: the vectors are rows of v until the end. */
#include "linalg/finite.clh"
#include "linalg/vectors.clh"

#ifdef KN_USE_F64
#define NEGLIGIBLE (T)1e-280 /* a square of what is 0 beside 1, and has no rounding */
#define EXPONENT 1000
#else
#define NEGLIGIBLE (T)1e-30
#define EXPONENT 120
#endif
#define STEPS 60 /* for a value, at most; two are usual */

/* x -= c y - s z. */
static void subtract_rows(global T *x, const global T *y, T c, const global T *z, T s, long count)
{
    long k = 0;
    for (; k + 16 <= count; k += 16)
        KN_VSTORE(KN_VLOAD(x + k) - c * KN_VLOAD(y + k) - s * KN_VLOAD(z + k), x + k);
    for (; k < count; k++)
        x[k] = x[k] - c * y[k] - s * z[k];
}

/* x -= c y. */
static void subtract_row(global T *x, const global T *y, T c, long count)
{
    long k = 0;
    for (; k + 16 <= count; k += 16)
        KN_VSTORE(KN_VLOAD(x + k) - c * KN_VLOAD(y + k), x + k);
    for (; k < count; k++)
        x[k] -= c * y[k];
}

/* A power of two that makes the largest element one of about 1. */
static T scale_of(const global T *a, long count)
{
    T largest = 0;
    for (long i = 0; i < count; i++)
        largest = fmax(largest, fabs(a[i]));
    return largest > 0 ? ldexp((T)1, clamp(-ilogb(largest), -EXPONENT, EXPONENT)) : (T)1;
}

/* The reflection 1 - tau w w^T that leaves of a row of `count` elements only the first one, which is returned; the row
 * becomes w, and *tau 0 where nothing is to be done. */
static T reflect_row(global T *row, long count, long room, T *tau)
{
    const T first = row[0], rest = product_of(row + 1, row + 1, count - 1, room - 1, room - 1);
    *tau = 0;
    if (!(rest > NEGLIGIBLE))
        return first;
    const T norm = sqrt(fma(first, first, rest)), left = first >= 0 ? -norm : norm;
    row[0] = first - left;
    *tau = 2 / fma(row[0], row[0], rest);
    return left;
}

/* a, of which both triangles count, becomes tridiagonal: d and, from 0 on, e. Row k of a then holds reflection k, with
 * tau in place of a_kk. `w` has room for a row. */
static void make_tridiagonal(global T *a, global T *d, global T *e, global T *w, long n)
{
    for (long k = 0; k < n - 1; k++) {
        global T *row = a + k * n + k + 1;
        const long count = n - k - 1, room = n * n - k * n - k - 1;
        T tau;
        d[k] = AT(a, k, k);
        e[k] = reflect_row(row, count, room, &tau);
        AT(a, k, k) = tau;
        if (tau == 0)
            continue;
        for (long i = 0; i < count; i++)
            w[i] = tau * product_of(row + (i + 1) * n, row, count, room - (i + 1) * n, room);
        subtract_row(w, row, tau / 2 * product_of(w, row, count, count, room), count);
        for (long i = 0; i < count; i++)
            subtract_rows(row + (i + 1) * n, w, row[i], row, w[i], count);
    }
    d[n - 1] = AT(a, n - 1, n - 1);
    e[n - 1] = 0;
}

/* v becomes the product of the reflections, transposed. */
static void multiply_reflections(global T *v, const global T *a, long n)
{
    for (long i = 0; i < n * n; i++)
        v[i] = 0;
    for (long i = 0; i < n; i++)
        AT(v, i, i) = 1;
    for (long k = n - 2; k >= 0; k--) {
        const global T *row = a + k * n + k + 1;
        const long count = n - k - 1, room = n * n - k * n - k - 1;
        const T tau = AT(a, k, k);
        if (tau != 0)
            for (long i = k + 1; i < n; i++) {
                global T *x = &AT(v, i, k + 1);
                subtract_row(x, row, tau * product_of(x, row, count, n * n - i * n - k - 1, room), count);
            }
    }
}

/* The length of (x, y), also where squares have no precision. */
static T length_of(T x, T y)
{
    const T largest = fmax(fabs(x), fabs(y)), least = fmin(fabs(x), fabs(y));
    const T part = largest > 0 ? least / largest : (T)0;
    return largest * sqrt(fma(part, part, (T)1));
}

/* An implicit QL step for d and e from `first` to `last`. */
static void ql_step(global T *d, global T *e, global T *v, long first, long last, long n)
{
    const T ratio = (d[first + 1] - d[first]) / (2 * e[first]);
    T g = d[last] - d[first] + e[first] / (ratio + copysign(sqrt(fma(ratio, ratio, (T)1)), ratio));
    T s = 1, c = 1, moved = 0;

    if (fabs(ratio) > (T)1e15) /* whose square may be too large */
        g = d[last] - d[first] + e[first] / (2 * ratio);
    for (long i = last - 1; i >= first; i--) {
        const T f = s * e[i], b = c * e[i], r = length_of(f, g);
        e[i + 1] = r;
        if (r == 0) {
            d[i + 1] -= moved;
            e[last] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - moved;
        const T t = (d[i] - g) * s + 2 * c * b;
        moved = s * t;
        d[i + 1] = g + moved;
        g = c * t - b;
        rotate_rows(&AT(v, i, 0), &AT(v, i + 1, 0), c, s, n);
    }
    d[first] -= moved;
    e[first] = g;
    e[last] = 0;
}

static void make_diagonal(global T *d, global T *e, global T *v, long n, T tolerance)
{
    for (long first = 0; first < n; first++)
        for (int step = 0; step < STEPS; step++) {
            long last = first;
            while (last < n - 1 && fabs(e[last]) > tolerance * (fabs(d[last]) + fabs(d[last + 1])) &&
                   e[last] * e[last] > NEGLIGIBLE)
                last++;
            if (last == first)
                break;
            ql_step(d, e, v, first, last, n);
        }
}

/* a [n, n], whose lower triangle counts, becomes diagonal; v's columns are the vectors. scratch [3, n]. */
KN_KERNEL_ONCE(linalg_eigh_symmetric, (KN_ARG(a), KN_ARG(v), KN_ARG(scratch), n, tolerance),
               KN_INOUT(a), KN_INOUT(v), KN_INOUT(scratch), const long n, const T tolerance)
{
    KN_BIND_OUT(T, a);
    KN_BIND_OUT(T, v);
    KN_BIND_OUT(T, scratch);
    global T *d = scratch + MATRIX * 3 * n, *e = d + n;
    a += MATRIX * n * n;
    v += MATRIX * n * n;
    for (long i = 0; i < n; i++)
        for (long j = i + 1; j < n; j++)
            AT(a, i, j) = AT(a, j, i);
    if (is_given_up(a, n * n, v, n * n))
        return;
    const T scale = scale_of(a, n * n);
    for (long i = 0; i < n * n; i++)
        a[i] *= scale;
    make_tridiagonal(a, d, e, e + n, n);
    multiply_reflections(v, a, n);
    make_diagonal(d, e, v, n, tolerance);
    for (long i = 0; i < n; i++) {
        AT(a, i, i) = d[i] / scale;
        for (long j = 0; j < i; j++) {
            const T before = AT(v, i, j);
            AT(v, i, j) = AT(v, j, i);
            AT(v, j, i) = before;
        }
    }
}
