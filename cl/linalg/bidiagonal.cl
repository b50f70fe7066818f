/* linalg/bidiagonal.cl - singular values and vectors on CPU devices, where a work-item has a matrix, by Golub and
 * Kahan's method: reflections from both sides make it bidiagonal, rotations of implicit QR steps then diagonal. All
 * loops run along rows, so the matrix is given as its transpose: the rows of u [rows, m], n of them from a, and of v
 * [n, n] become the vectors. Rows have m_size and n_size elements. */
#include "linalg/reflections.clh"

#define STEPS 60 /* for a value, at most; two are usual */

/* Vectors of n_size elements, then some of m_size. */
enum { D, E, TAU_U, TAU_V, COLUMN, OLD, MOVED, MOVES, TANGENTS_U, SINES_U, TANGENTS_V, SINES_V, SHORT_VECTORS };
enum { OLD_ROW, NEW_ROW, SUMS, LONG_VECTORS };

/* z = the sum of x_i times row i, from column `begin` on. */
#define SUM_ROWS(name, W)                                                                                              \
    static void name(const global T *a, const global T *x, global T *z, long size, long rows)                          \
    {                                                                                                                  \
        TV sum[W];                                                                                                     \
        _Pragma("unroll") for (int w = 0; w < W; w++) sum[w] = 0;                                                      \
        for (long i = 0; i < rows; i++) {                                                                              \
            _Pragma("unroll") for (int w = 0; w < W; w++) sum[w] += x[i] * KN_VLOAD(a + i * size + 16 * w);            \
        }                                                                                                              \
        _Pragma("unroll") for (int w = 0; w < W; w++) KN_VSTORE(sum[w], z + 16 * w);                                   \
    }
SUM_ROWS(sum_vectors, 1)
SUM_ROWS(sum_four_vectors, 4)

static void sum_rows(const global T *a, const global T *x, global T *z, long begin, long size, long rows)
{
    long k = begin;
    for (; k + 64 <= size; k += 64)
        sum_four_vectors(a + k, x, z + k, size, rows);
    for (; k < size; k += 16)
        sum_vectors(a + k, x, z + k, size, rows);
}

/* The transpose of a becomes lower bidiagonal: d, and e below it. Its rows, and those of v, then hold the reflections.
 * A pass over the rows applies those of the step before, a - x u^T - y z^T, and multiplies by the next one along rows;
 * a second pass by that down a column, y. */
static void make_bidiagonal(global T *a, global T *v, global T *space, long m, long n, long m_size, long n_size,
                            bool wants_vectors)
{
    global T *d = space + D * n_size, *e = space + E * n_size, *tau_u = space + TAU_U * n_size,
             *tau_v = space + TAU_V * n_size, *column = space + COLUMN * n_size, *y = space + OLD * n_size,
             *x = space + MOVED * n_size, *next_x = space + MOVES * n_size;
    global T *u = space + SHORT_VECTORS * n_size, *next = u + m_size, *z = next + m_size;
    const long m_pad = m_size - m, n_pad = n_size - n;

    fill(y, 0, 3 * n_size);
    fill(u, 0, LONG_VECTORS * m_size);
    for (long k = 0; k < n; k++) {
        global T *row = a + k * m_size;
        const long at = m_pad + k, own = n_pad + k, begin = VECTOR_OF(at), left = n - 1 - k, after = own + 1;
        update_row(row, x + own, u, y + own, z, u, 0, &tau_u[k], begin, m_size);
        d[k] = reflection_of(row, next, at, m_size, &tau_u[k]);
        e[k] = 0;
        for (long j = begin; j < m_size; j += 16)
            KN_VSTORE(KN_VLOAD(next + j), row + j);
        if (left == 0)
            break;
        update_rows(row + m_size, x + after, u, y + after, z, next, tau_u[k], next_x + after, begin, m_size, left);
        fill(next_x + VECTOR_OF(after), 0, after - VECTOR_OF(after));
        for (long i = 0; i < left; i++)
            column[after + i] = row[(i + 1) * m_size + at] - next_x[after + i] * next[at];
        e[k] = reflection_of(column, y, after, n_size, &tau_v[k]);
        for (long j = VECTOR_OF(after); j < n_size && wants_vectors; j += 16)
            KN_VSTORE(KN_VLOAD(y + j), v + k * n_size + j);
        sum_rows(row + m_size, y + after, z, begin, m_size, left);
        const long from = VECTOR_OF(after), count = n_size - from;
        const T along = product_of(y + from, next_x + from, count, count, count), tau = tau_v[k];
        for (long j = begin; j < m_size; j += 16)
            KN_VSTORE(tau * (KN_VLOAD(z + j) - along * KN_VLOAD(next + j)), z + j);
        global T *const other = u, *const former = x;
        u = next;
        next = other;
        x = next_x;
        next_x = former;
    }
}

/* The rotation (c s; -s c) that makes (f g) (r 0), with c >= 0. Of what is below all precision nothing is turned. */
typedef struct rotation {
    T c, s, r;
} rotation;

static inline rotation rotation_of(T f, T g)
{
    const T square = fma(f, f, g * g);
    if (!(square > NEGLIGIBLE))
        return (rotation){1, 0, f};
    const T r = copysign(sqrt(square), f);
    return (rotation){f / r, g / r, r};
}

/* The smaller singular value of (f g; 0 h). */
static T least_value(T f, T g, T h)
{
    const T large = fmax(fabs(f), fabs(h)), small = fmin(fabs(f), fabs(h)), off = fabs(g);
    if (small == 0)
        return 0;
    if (off > large) {
        const T part = large / off, sum = 1 + small / large, difference = (large - small) / large;
        const T x = sum * part, y = difference * part;
        return 2 * (small / (sqrt(fma(x, x, (T)1)) + sqrt(fma(y, y, (T)1)))) * part;
    }
    const T part = off / large, sum = 1 + small / large, difference = (large - small) / large;
    return 2 * small / (sqrt(fma(sum, sum, part * part)) + sqrt(fma(difference, difference, part * part)));
}

/* An implicit QR step for the upper bidiagonal d and e from `first` to `last`, with a shift. */
static void qr_step(global T *d, global T *e, global T *space, long first, long last, long size, T shift)
{
    global T *tangents_u = space + TANGENTS_U * size, *sines_u = space + SINES_U * size;
    global T *tangents_v = space + TANGENTS_V * size, *sines_v = space + SINES_V * size;
    T f = (fabs(d[first]) - shift) * (copysign((T)1, d[first]) + shift / d[first]), g = e[first];

    for (long i = first; i < last; i++) {
        const rotation right = rotation_of(f, g);
        if (i > first)
            e[i - 1] = right.r;
        f = right.c * d[i] + right.s * e[i];
        const T off = right.c * e[i] - right.s * d[i];
        g = right.s * d[i + 1];
        const T below = right.c * d[i + 1];
        const rotation left = rotation_of(f, g);
        d[i] = left.r;
        f = left.c * off + left.s * below;
        d[i + 1] = left.c * below - left.s * off;
        e[i] = f;
        if (i + 1 < last) {
            g = left.s * e[i + 1];
            e[i + 1] *= left.c;
        }
        set_rotation(tangents_v, sines_v, i - first, right.c, right.s);
        set_rotation(tangents_u, sines_u, i - first, left.c, left.s);
    }
}

/* One with shift 0, which keeps the precision of small values, and leaves no e before a last d of 0 if any d is 0
 * (Demmel and Kahan). */
static void qr_step_of_zero(global T *d, global T *e, global T *space, long first, long last, long size)
{
    global T *tangents_u = space + TANGENTS_U * size, *sines_u = space + SINES_U * size;
    global T *tangents_v = space + TANGENTS_V * size, *sines_v = space + SINES_V * size;
    rotation left = {1, 0, 0};
    T c = 1;

    for (long i = first; i < last; i++) {
        const rotation right = rotation_of(d[i] * c, e[i]);
        if (i > first)
            e[i - 1] = left.s * right.r;
        left = rotation_of(left.c * right.r, d[i + 1] * right.s);
        d[i] = left.r;
        c = right.c;
        set_rotation(tangents_v, sines_v, i - first, right.c, right.s);
        set_rotation(tangents_u, sines_u, i - first, left.c, left.s);
    }
    const T h = d[last] * c;
    d[last] = h * left.c;
    e[last - 1] = h * left.s;
}

/* Shifts that would change no bit of the first step are left out. */
static void step(global T *d, global T *e, global T *space, long first, long last, long size, T least, T tolerance)
{
    bool has_zero = false;
    for (long i = first; i <= last; i++) {
        if (fabs(d[i]) <= least)
            d[i] = 0;
        has_zero |= d[i] == 0;
    }
    const T shift = has_zero ? (T)0 : least_value(d[last - 1], e[last - 1], d[last]), part = shift / d[first];
    if (has_zero || part * part < tolerance)
        qr_step_of_zero(d, e, space, first, last, size);
    else
        qr_step(d, e, space, first, last, size, shift);
}

/* Elements below `least`, the precision of the largest, are 0. */
static void make_diagonal(global T *u, global T *v, global T *space, long n, long m_size, long n_size,
                          bool wants_vectors, T tolerance)
{
    global T *d = space + D * n_size, *e = space + E * n_size;
    const global T *tangents_u = space + TANGENTS_U * n_size, *sines_u = space + SINES_U * n_size;
    const global T *tangents_v = space + TANGENTS_V * n_size, *sines_v = space + SINES_V * n_size;
    T least = 0;

    for (long i = 0; i < n; i++)
        least = fmax(least, fmax(fabs(d[i]), fabs(e[i])) * tolerance / 4);
    for (long last = n - 1; last > 0; last--)
        for (int tries = 0; tries < STEPS; tries++) {
            long first = last;
            while (first > 0 && fabs(e[first - 1]) > fmax(least, tolerance * (fabs(d[first - 1]) + fabs(d[first]))))
                first--;
            if (first == last)
                break;
            step(d, e, space, first, last, n_size, least, tolerance);
            if (!wants_vectors)
                continue;
            rotate_chain(u + first * m_size, m_size, tangents_u, sines_u, last - first, m_size);
            rotate_chain(v + first * n_size, n_size, tangents_v, sines_v, last - first, n_size);
        }
}

/* The values in order, and the vectors with their signs. */
static void deliver(global T *u, global T *v, global T *d, global T *values, T scale, long n, long m_size, long n_size,
                    bool wants_vectors)
{
    for (long i = 0; i < n; i++) {
        long most = i;
        for (long j = i + 1; j < n; j++)
            most = fabs(d[j]) > fabs(d[most]) ? j : most;
        const T value = d[most];
        d[most] = d[i];
        values[i] = fabs(value) / scale;
        if (!wants_vectors)
            continue;
        if (most != i) {
            exchange_rows(u + i * m_size, u + most * m_size, m_size);
            exchange_rows(v + i * n_size, v + most * n_size, n_size);
        }
        const bool turns = is_negative_row(u + i * m_size, m_size);
        if (turns)
            negate_row(u + i * m_size, m_size);
        if (turns != (value < 0))
            negate_row(v + i * n_size, n_size);
    }
}

/* u holds the transpose of a. v may be any tensor if wants_vectors is 0. */
KN_KERNEL_ONCE(linalg_svd_bidiagonal,
               (KN_ARG(u), KN_ARG(v), KN_ARG(space), KN_ARG(values), m, n, rows, m_size, n_size, wants_vectors,
                tolerance),
               KN_INOUT(u), KN_INOUT(v), KN_INOUT(space), KN_INOUT(values), const long m, const long n,
               const long rows, const long m_size, const long n_size, const long wants_vectors, const T tolerance)
{
    KN_BIND_OUT(T, u);
    KN_BIND_OUT(T, v);
    KN_BIND_OUT(T, space);
    KN_BIND_OUT(T, values);
    u += MATRIX * rows * m_size;
    v += wants_vectors ? MATRIX * n * n_size : 0;
    space += MATRIX * (SHORT_VECTORS * n_size + LONG_VECTORS * m_size);
    values += MATRIX * n;
    for (long i = 0; i < n; i++)
        fill(u + i * m_size, 0, m_size - m);
    if (!is_finite(u, n * m_size)) {
        fill(values, NAN, n);
        fill(u, NAN, rows * m_size);
        fill(v, NAN, wants_vectors ? n * n_size : 0);
        return;
    }
    const T scale = scale_of(u, n * m_size);
    for (long i = 0; i < n * m_size; i += 16)
        KN_VSTORE(KN_VLOAD(u + i) * scale, u + i);
    make_bidiagonal(u, v, space, m, n, m_size, n_size, wants_vectors);
    if (wants_vectors) {
        multiply_reflections(u, space + TAU_U * n_size, space + SHORT_VECTORS * n_size, n, 0, rows, m_size - m, m_size);
        multiply_reflections(v, space + TAU_V * n_size, space + COLUMN * n_size, n - 1, 1, n, n_size - n, n_size);
    }
    make_diagonal(u, v, space, n, m_size, n_size, wants_vectors, tolerance);
    deliver(u, v, space + D * n_size, values, scale, n, m_size, n_size, wants_vectors);
}
