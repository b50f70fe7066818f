/* linalg/symmetric.cl - eigenvalues and vectors of symmetric matrices on CPU devices, where a work-item has a matrix:
 * Householder's reflections make it tridiagonal, rotations of implicit QL steps with Wilkinson's shifts then diagonal.
 * All loops run along rows: the vectors are rows until the end. */
#include "linalg/reflections.clh"

#define STEPS 60 /* for a value, at most; two are usual */

/* Vectors of `size` elements. */
enum { D, E, TAU, OLD, NEW, MOVED, MOVES, TANGENTS, SINES, VECTORS };

/* a, of which both triangles count, becomes tridiagonal: d and, from 0 on, e. Row k of a then holds reflection k. Each
 * pass over the rows applies the reflection before, a - w v^T - v w^T, and multiplies by the next one. */
static void make_tridiagonal(global T *a, global T *space, long n, long size)
{
    global T *d = space + D * size, *e = space + E * size, *tau = space + TAU * size;
    global T *v = space + OLD * size, *next = space + NEW * size, *w = space + MOVED * size, *p = space + MOVES * size;
    const long pad = size - n;

    fill(v, 0, 4 * size);
    for (long k = 0; k < n; k++) {
        global T *row = a + k * size;
        const long at = pad + k, first = at + 1, begin = VECTOR_OF(first);
        update_row(row, w + at, v, v + at, w, v, 0, &tau[k], VECTOR_OF(at), size);
        d[k] = row[at];
        e[k] = 0;
        if (k == n - 1)
            break;
        e[k] = reflection_of(row, next, first, size, &tau[k]);
        for (long j = begin; j < size; j += 16)
            KN_VSTORE(KN_VLOAD(next + j), row + j);
        update_rows(row + size, w + first, v, v + first, w, next, tau[k], p + first, begin, size, n - 1 - k);
        fill(p + begin, 0, first - begin);
        const long count = size - begin;
        const T along = tau[k] / 2 * product_of(p + begin, next + begin, count, count, count);
        for (long j = begin; j < size; j += 16)
            KN_VSTORE(KN_VLOAD(p + j) - along * KN_VLOAD(next + j), p + j);
        global T *const other = v, *const former = w;
        v = next;
        next = other;
        w = p;
        p = former;
    }
}

/* The length of (x, y), also where squares have no precision. */
static T length_of(T x, T y)
{
    const T square = fma(x, x, y * y);
    if (square > NEGLIGIBLE && square < 1 / NEGLIGIBLE)
        return sqrt(square);
    const T largest = fmax(fabs(x), fabs(y)), least = fmin(fabs(x), fabs(y));
    const T part = largest > 0 ? least / largest : (T)0;
    return largest * sqrt(fma(part, part, (T)1));
}

/* What Wilkinson's shift subtracts from d[first], for the `off`-diagonal element next to it. */
static T shift_of(const global T *d, T off, long first)
{
    const T ratio = (d[first + 1] - d[first]) / (2 * off);
    if (fabs(ratio) > (T)1e15) /* whose square may be too large */
        return off / (2 * ratio);
    return off / (ratio + copysign(sqrt(fma(ratio, ratio, (T)1)), ratio));
}

/* An implicit QL step for d and e from `first` to `last`. Returns how many rotations it took, from the last row up. */
static long ql_step(global T *d, global T *e, global T *tangents, global T *sines, long first, long last)
{
    T g = d[last] - d[first] + shift_of(d, e[first], first);
    T s = 1, c = 1, moved = 0;

    for (long i = last - 1; i >= first; i--) {
        const T f = s * e[i], b = c * e[i], r = copysign(length_of(f, g), g); /* so that c >= 0 */
        e[i + 1] = r;
        if (r == 0) {
            d[i + 1] -= moved;
            e[last] = 0;
            return last - 1 - i;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - moved;
        const T t = (d[i] - g) * s + 2 * c * b;
        moved = s * t;
        d[i + 1] = g + moved;
        g = c * t - b;
        set_rotation(tangents, sines, last - 1 - i, c, s);
    }
    d[first] -= moved;
    e[first] = g;
    e[last] = 0;
    return last - first;
}

/* The same without rotations, of squares of e, which takes no roots (Pal, Walker and Kahan). */
static void ql_step_of_squares(global T *d, global T *squares, long first, long last)
{
    const T shift = d[first] - shift_of(d, sqrt(squares[first]), first);
    T gamma = d[last] - shift, p = gamma * gamma, c = 1, s = 0;

    for (long i = last - 1; i >= first; i--) {
        const T square = squares[i], r = p + square, c_before = c, before = gamma, p_before = p;
        squares[i + 1] = s * r;
        if (r == 0) { /* all below is diagonal */
            c = 1;
            s = 0;
        } else {
            c = p / r;
            s = square / r;
        }
        gamma = c * (d[i] - shift) - s * before;
        d[i + 1] = before + (d[i] - gamma);
        p = c > NEGLIGIBLE ? gamma * gamma * (r > 0 ? r / p_before : (T)1) : c_before * square;
    }
    squares[first] = s * p;
    squares[last] = 0;
    d[first] = shift + gamma;
}

/* Is the element that couples the values at i and i + 1 to be counted? It may be given as a square. */
static bool is_coupled(const global T *d, T off, long i, T tolerance, bool is_square)
{
    const T least = tolerance * (fabs(d[i]) + fabs(d[i + 1]));
    return is_square ? off > least * least && off > NEGLIGIBLE : fabs(off) > least && off * off > NEGLIGIBLE;
}

static void make_diagonal(global T *v, global T *space, long n, long size, bool wants_vectors, T tolerance)
{
    global T *d = space + D * size, *e = space + E * size;
    global T *tangents = space + TANGENTS * size, *sines = space + SINES * size;

    for (long i = 0; i < n && !wants_vectors; i++)
        e[i] *= e[i];
    for (long first = 0; first < n; first++)
        for (int step = 0; step < STEPS; step++) {
            long last = first;
            while (last < n - 1 && is_coupled(d, e[last], last, tolerance, !wants_vectors))
                last++;
            if (last == first)
                break;
            if (wants_vectors) {
                const long count = ql_step(d, e, tangents, sines, first, last);
                rotate_chain(v + last * size, -size, tangents, sines, count, size);
            } else
                ql_step_of_squares(d, e, first, last);
        }
}

/* The values in order; the vectors with their signs, which become columns. */
static void deliver(global T *v, global T *d, global T *values, global T *vectors, T scale, long n, long size,
                    bool wants_vectors)
{
    for (long i = 0; i < n; i++) {
        long least = i;
        for (long j = i + 1; j < n; j++)
            least = d[j] < d[least] ? j : least;
        const T value = d[least];
        d[least] = d[i];
        values[i] = value / scale;
        if (!wants_vectors)
            continue;
        if (least != i)
            exchange_rows(v + i * size, v + least * size, size);
        if (is_negative_row(v + i * size, size))
            negate_row(v + i * size, size);
    }
    for (long i = 0; i < n && wants_vectors; i++)
        for (long j = 0; j < n; j++)
            AT(vectors, i, j) = v[j * size + size - n + i];
}

/* a [n, n], whose lower triangle counts; work [n, size] and space [VECTORS, size]. vectors may be any tensor if
 * wants_vectors is 0. */
KN_KERNEL_ONCE(linalg_eigh_symmetric,
               (KN_ARG(a), KN_ARG(work), KN_ARG(space), KN_ARG(values), KN_ARG(vectors), n, size, wants_vectors,
                tolerance),
               KN_IN(a), KN_INOUT(work), KN_INOUT(space), KN_INOUT(values), KN_INOUT(vectors), const long n,
               const long size, const long wants_vectors, const T tolerance)
{
    KN_BIND_IN(T, a);
    KN_BIND_OUT(T, work);
    KN_BIND_OUT(T, space);
    KN_BIND_OUT(T, values);
    KN_BIND_OUT(T, vectors);
    const long pad = size - n;
    a += MATRIX * n * n;
    work += MATRIX * n * size;
    space += MATRIX * VECTORS * size;
    values += MATRIX * n;
    vectors += wants_vectors ? MATRIX * n * n : 0;
    for (long i = 0; i < n; i++) {
        fill(work + i * size, 0, pad);
        for (long j = 0; j <= i; j++)
            work[i * size + pad + j] = work[j * size + pad + i] = AT(a, i, j);
    }
    if (!is_finite(work, n * size)) {
        fill(values, NAN, n);
        fill(vectors, NAN, wants_vectors ? n * n : 0);
        return;
    }
    const T scale = scale_of(work, n * size);
    for (long i = 0; i < n * size; i += 16)
        KN_VSTORE(KN_VLOAD(work + i) * scale, work + i);
    make_tridiagonal(work, space, n, size);
    if (wants_vectors)
        multiply_reflections(work, space + TAU * size, space + OLD * size, n - 1, 1, n, pad, size);
    make_diagonal(work, space, n, size, wants_vectors, tolerance);
    deliver(work, space + D * size, values, vectors, scale, n, size, wants_vectors);
}
